// Steps of an AttentionCache over several sequences, with views of other layouts, and in chunks.
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

TEST(AttentionCacheStep, RefusesMismatchedLists) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(16));
  fixture.appendNow(3, 0);
  fixture.appendNow(2, 1);
  const CacheStep sound{.queries = fixture.zeros({3, kQueryHeads, kAttendedDim}),
                        .keys = fixture.zeros({3, kAttendedHeads, kAttendedDim}),
                        .values = fixture.zeros({3, kAttendedHeads, kAttendedDim}),
                        .rotary = RotaryStep{},
                        .results = {.output = fixture.zeros({3, kQueryHeads, kAttendedDim})},
                        .sequences = {0, 1},
                        .rowCounts = {{2, 1}}};
  CommandEncoder encoder(device);
  const auto refused = [&](std::initializer_list<std::string_view> calls, auto change, ExpectedError expected) {
    for (const std::string_view call : calls) {
      CacheStep step = sound;
      change(step);
      const std::string op = fmt::format("AttentionCache.{}", call);
      expected.op = op;
      const auto done = call == "append"   ? fixture.cache.append(encoder, {.keys = step.keys,
                                                                            .values = step.values,
                                                                            .sequences = step.sequences,
                                                                            .rowCounts = step.rowCounts})
                        : call == "attend" ? fixture.cache.attend(encoder, {.queries = step.queries,
                                                                            .results = step.results,
                                                                            .options = step.options,
                                                                            .sequences = step.sequences,
                                                                            .rowCounts = step.rowCounts})
                                           : fixture.cache.appendAndAttend(encoder, step);
      expectError(__FILE__, __LINE__, "a list", errorOf(done), expected);
    }
  };
  using Counts = std::vector<uint32_t>;
  refused({"append", "attend", "appendAndAttend"}, [](auto& step) { step.rowCounts.reset(); },
          {.what = "the rows do not match the listed sequences",
           .got = "3 rows",
           .expected = "2 rows, or the same number for each of 2 sequences",
           .fix = "row counts"});
  refused({"append", "attend", "appendAndAttend"},
          [](auto& step) {
            step.rowCounts = Counts{2, 2};
          },
          {.what = "the rows do not match the listed sequences",
           .got = "3 rows",
           .expected = "4 rows in one sequence, the sum of the row counts",
           .fix = "one after another"});
  refused({"append", "attend", "appendAndAttend"}, [](auto& step) { step.rowCounts = Counts{3}; },
          {.what = "the row counts do not match the listed sequences",
           .got = "1 row count",
           .expected = "2, one for each sequence",
           .fix = "Pass a row count for each listed sequence"});
  refused({"append", "attend", "appendAndAttend"}, [](auto& step) { step.sequences = {0, 3}; }, {.got = "sequence 3"});
  refused({"attend", "appendAndAttend"},
          [](auto& step) {
            step.sequences = {0, 0}, step.options.isCausal = false;
          },
          {.what = "a sequence is listed again in attention that is not causal",
           .got = "sequence 0",
           .expected = "each sequence once",
           .fix = "with a row count for all of its rows"});
  refused({"attend", "appendAndAttend"},
          [&](auto& step) {
            step.options.mask = fixture.zeros({1, 16});
          },
          {.what = "masks are not supported with unequal row counts",
           .got = "a mask, and row counts that differ",
           .expected = "the same number of rows of each sequence",
           .fix = "Remove the mask, or pass sequences with equal row counts."});
  refused({"attend"},
          [](auto& step) {
            step.sequences = {1, 1, 1}, step.rowCounts.reset();
          },
          {.what = "a sequence has fewer positions than queries",
           .got = "3 rows of sequence 1, which has 2 positions",
           .expected = "rows of tokens that were appended",
           .fix = "Append keys and values"});
  refused({"appendAndAttend"},
          [](auto& step) {
            step.rotary->offsets = std::vector<int32_t>{1, 2};
          },
          {.what = "offsets are given for sequences that differ in their rows",
           .got = "offsets, and other row counts for some of 2 sequences",
           .expected = "the same number of rows for each sequence, or no offsets",
           .fix = "Add the offsets to positions"});
  refused({"appendAndAttend"},
          [&](auto& step) {
            step.queries = fixture.zeros({2, kQueryHeads, kAttendedDim});
          },
          {.what = "queries, keys and values are not of the same tokens"});
  refused({"appendAndAttend"},
          [](auto& step) {
            step.rotary->positions = RotaryPositions(std::vector<int32_t>{1, 2});
          },
          {.what = "positions do not match the tokens"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  EXPECT_EQ(*fixture.cache.nextPosition(1), 2u);
}

// Each part of a divided call would lie inside the tensor, although the whole view does not.
TEST(AttentionCacheStep, ViewsAreCheckedBeforeDivision) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(16));
  fixture.appendNow(16, 0);
  constexpr uint64_t kMax = uint64_t{1} << 40;
  const auto backwards = [](const Tensor& tensor, uint64_t heads) {
    const uint64_t row = heads * kAttendedDim;
    return HeadsView(tensor, {.tokens = 2,
                              .heads = heads,
                              .headDim = kAttendedDim,
                              .offset = row,
                              .tokenStride = -row,
                              .headStride = kAttendedDim});
  };
  const auto many = [](const Tensor& tensor, uint64_t stride) {
    return HeadsView(tensor, {.tokens = kMax,
                              .heads = kAttendedHeads,
                              .headDim = kAttendedDim,
                              .tokenStride = stride,
                              .headStride = kAttendedDim});
  };
  const Tensor keys = fixture.zeros({2, kAttendedHeads, kAttendedDim}), queries = fixture.someQueries(2);
  const Tensor out = fixture.zeros({2, kQueryHeads, kAttendedDim});
  const std::vector<uint32_t> first{0}, apart{0, 1, 0}, oneEach{1, 0, 1};
  CommandEncoder encoder(device);
  EXPECT_ERROR(fixture.cache.attend(encoder, {.queries = backwards(queries, kQueryHeads),
                                              .results = {.output = out},
                                              .sequences = apart,
                                              .rowCounts = oneEach}),
               {.op = "AttentionCache.attend", .what = "queries lie outside of their tensor", .fix = "Correct"});
  CacheStep step{.queries = backwards(queries, kQueryHeads),
                 .keys = keys,
                 .values = keys,
                 .results = {.output = out},
                 .sequences = {0}};
  EXPECT_ERROR(fixture.cache.appendAndAttend(encoder, step),
               {.op = "AttentionCache.appendAndAttend", .what = "queries lie outside of their tensor"});
  step.queries = queries;
  step.values = backwards(keys, kAttendedHeads);
  EXPECT_ERROR(fixture.cache.appendAndAttend(encoder, step),
               {.op = "AttentionCache.appendAndAttend", .what = "vectors lie outside of their tensor"});
  // Extents are checked before rows are listed.
  EXPECT_ERROR(
      fixture.cache.append(
          encoder, {.keys = many(keys, kAttendedHeads * kAttendedDim), .values = many(keys, 0), .sequences = first}),
      {.op = "AttentionCache.append", .what = "vectors lie outside of their tensor", .fix = "Correct"});
  EXPECT_ERROR(fixture.cache.append(encoder, {.keys = many(keys, 0), .values = many(keys, 0), .sequences = {0, 1}}),
               {.op = "AttentionCache.append",
                .what = "an extent is too large for the kernel",
                .got = "1099511627776",
                .expected = "less than 2^31 rows",
                .fix = "Pass fewer rows at a time"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

// A tensor without a layout is token-major, even if its extents would also fit as head-major.
TEST(AttentionCacheStep, HeadMajorTensorsNeedTheirLayout) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(16));
  const Tensor swapped = fixture.zeros({kAttendedHeads, 3, kAttendedDim});
  CommandEncoder encoder(device);
  EXPECT_ERROR(fixture.cache.append(encoder, swapped, swapped, 0),
               {.op = "AttentionCache.append", .got = "3 heads", .fix = "head-major"});
  REQUIRE(fixture.cache.append(encoder, {swapped, KVLayout::headMajor}, {swapped, KVLayout::headMajor}, 0));
  const Tensor queries = fixture.zeros({kQueryHeads, 3, kAttendedDim}),
               out = fixture.zeros({3, kQueryHeads, kAttendedDim});
  EXPECT_ERROR(fixture.cache.attend(encoder, queries, {.output = out}, {}, 0),
               {.op = "AttentionCache.attend", .fix = "head-major"});
  REQUIRE(fixture.cache.attend(encoder, {queries, KVLayout::headMajor}, {.output = out}, {}, 0));
}

TEST(AttentionCacheStep, CacheStepIsRecordedEntirelyOrNotAtAll) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(8));
  const Tensor keys = fixture.zeros({12, kAttendedHeads, kAttendedDim}), queries = fixture.someQueries(12);
  const Tensor out = fixture.zeros({12, kQueryHeads, kAttendedDim});
  CacheStep step{.queries = queries,
                 .keys = keys,
                 .values = keys,
                 .results = {.output = out},
                 .options = {.window = 9},
                 .sequences = {0}};
  CommandEncoder encoder(device);
  // The first chunk of eight would succeed, but no later one.
  EXPECT_ERROR(fixture.cache.appendAndAttend(encoder, step),
               {.op = "AttentionCache.appendAndAttend",
                .what = "the ring is too small for the window",
                .got = "token 8 of 12, whose window of 9 reaches positions that a ring of 8 has overwritten",
                .expected = "a capacity of at least 9",
                .fix = "Make the ring that large, or pass a smaller window."});
  step.options.window = 8;
  step.values = fixture.zeros({11, kAttendedHeads, kAttendedDim});
  EXPECT_ERROR(fixture.cache.appendAndAttend(encoder, step),
               {.op = "AttentionCache.appendAndAttend",
                .what = "queries, keys and values are not of the same tokens",
                .got = "1 sequence and 11 tokens",
                .expected = "12 tokens of one sequence",
                .fix = "of the same tokens"});
  step.values = keys;
  step.options.isCausal = false;
  EXPECT_ERROR(fixture.cache.appendAndAttend(encoder, step),
               {.op = "AttentionCache.appendAndAttend",
                .what = "attention that is not causal cannot be divided into chunks",
                .got = "12 tokens, of which the ring can serve 8 at once",
                .expected = "causal attention, or tokens that the ring can serve at once",
                .fix = "Make the ring larger"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  step.options.isCausal = true;
  REQUIRE(fixture.cache.appendAndAttend(encoder, step));
  EXPECT_EQ(*fixture.cache.nextPosition(0), 0u);
  REQUIRE(REQUIRE(encoder.commit()).wait());
  EXPECT_EQ(*fixture.cache.nextPosition(0), 12u);
}

TEST(AttentionCacheStep, SeveralSequencesNeedAList) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = attendedDescriptor(8);
  descriptor.quantized = KVQuantizedStorage{};
  AttentionFixture fixture(device, descriptor);
  const Tensor two = fixture.zeros({2, 3, kAttendedHeads, kAttendedDim});
  const Tensor one = fixture.zeros({1, 3, kAttendedHeads, kAttendedDim});
  CommandEncoder encoder(device);
  EXPECT_ERROR(fixture.cache.append(encoder, two, two, 0), {.op = "AttentionCache.append",
                                                            .what = "the tokens are of several sequences",
                                                            .got = "2 sequences of 3 tokens",
                                                            .expected = "tokens of one sequence",
                                                            .fix = "List the sequences"});
  REQUIRE(fixture.cache.append(encoder, one, one, 0));
  EXPECT_ERROR(fixture.cache.dequantize(encoder, two, std::nullopt, 0, 0),
               {.what = "the tokens are of several sequences"});
  REQUIRE(fixture.cache.dequantize(encoder, one, std::nullopt, 0, 0));
  // All tokens of the axis count, not only the first.
  EXPECT_ERROR(fixture.cache.dequantize(encoder, one, std::nullopt, 1, 0),
               {.what = "the cache does not hold these positions"});
}

// Results of one part must not be operands of another.
TEST(AttentionCacheStep, ResultsOfDividedCallsMayNotOverlap) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(4));
  fixture.appendNow(4, 0);
  fixture.appendNow(4, 1);
  const Tensor all = fixture.zeros({12, kQueryHeads, kAttendedDim}),
               keys = fixture.zeros({8, kAttendedHeads, kAttendedDim});
  const auto rows = [&](uint64_t first, uint64_t count) { return REQUIRE(all.slice(first, count)); };
  const std::vector<uint32_t> sequences{0, 1}, rowCounts{2, 1};
  CommandEncoder encoder(device);
  EXPECT_ERROR(
      fixture.cache.attend(
          encoder,
          {.queries = rows(0, 3), .results = {.output = rows(2, 3)}, .sequences = sequences, .rowCounts = rowCounts}),
      {.op = "AttentionCache.attend", .what = "operands share memory", .got = "queries overlapping results"});
  EXPECT_ERROR(
      fixture.cache.appendAndAttend(
          encoder,
          {.queries = rows(0, 8), .keys = keys, .values = keys, .results = {.output = rows(4, 8)}, .sequences = {0}}),
      {.op = "AttentionCache.appendAndAttend",
       .what = "operands share memory",
       .got = "queries overlapping results",
       .expected = "separate memory",
       .fix = "separate memory"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

TEST(AttentionCacheStep, ResultsHaveTheAxesOfTheirRows) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(8));
  fixture.appendNow(3, 0);
  fixture.appendNow(3, 1);
  const std::vector<uint32_t> sequences{0, 1};
  const Tensor queries = fixture.zeros({2, 3, kQueryHeads, kAttendedDim});
  CommandEncoder encoder(device);
  const auto attend = [&](std::vector<uint64_t> axes) {
    axes.insert(axes.end(), {kQueryHeads, kAttendedDim});
    return fixture.cache.attend(
        encoder, {.queries = queries, .results = {.output = fixture.zeros(axes)}, .sequences = sequences});
  };
  for (const std::vector<uint64_t>& axes : {std::vector<uint64_t>{2, 3}, {6}}) REQUIRE(attend(axes));
  for (const std::vector<uint64_t>& axes : {std::vector<uint64_t>{3, 2}, {1, 6}, {6, 1}}) {
    EXPECT_ERROR(attend(axes), {.op = "AttentionCache.attend", .what = "a result does not match the queries"});
  }
}

}  // namespace mnk::test
