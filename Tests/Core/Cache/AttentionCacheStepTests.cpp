// Steps of an AttentionCache over several sequences, with views of other layouts, and in chunks.
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kRow = kQueryHeads * kAttendedDim;
constexpr uint64_t kToken = kAttendedHeads * kAttendedDim;

std::vector<float> part(const std::vector<float>& all, uint64_t begin, uint64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

}  // namespace

// The rows of a list are the tokens that the same list appends.
TEST(AttentionCacheStep, ListsAgreeInCacheStep) {
  struct List {
    std::vector<uint32_t> sequences;
    std::optional<std::vector<uint32_t>> rowCounts;
  };
  const List lists[] = {{{0, 0}, {}},
                        {{0, 0, 1}, {}},
                        {{2, 0, 2, 2}, {}},
                        {{0, 1, 2}, {{3, 1, 2}}},
                        {{1, 0, 2, 0}, {{1, 4, 0, 4}}},
                        {{2, 2, 0}, {{2, 3, 0}}},
                        {{0, 1}, {{0, 0}}}};
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const List& list : lists) {
      AttentionFixture fixture(device, attendedDescriptor(16));
      fixture.appendNow(3, 0);
      fixture.appendNow(5, 2);
      std::vector<uint32_t> rowSequences;
      for (size_t i = 0; i < list.sequences.size(); ++i) {
        rowSequences.insert(rowSequences.end(), list.rowCounts ? (*list.rowCounts)[i] : 1, list.sequences[i]);
      }
      const uint64_t rows = rowSequences.size();
      const std::vector<float> keys = smallNumbers(fixture.random, rows * kToken);
      const std::vector<float> values = smallNumbers(fixture.random, rows * kToken);
      const std::vector<float> queries = smallNumbers(fixture.random, rows * kRow);
      const Tensor out = fixture.zeros({rows, kQueryHeads, kAttendedDim}), logs = fixture.zeros({rows, kQueryHeads});
      CommandEncoder encoder(device);
      REQUIRE(fixture.cache.append(encoder, {.keys = fixture.tensor(keys, {rows, kAttendedHeads, kAttendedDim}),
                                             .values = fixture.tensor(values, {rows, kAttendedHeads, kAttendedDim}),
                                             .sequences = list.sequences,
                                             .rowCounts = list.rowCounts}));
      REQUIRE(fixture.cache.attend(encoder, {.queries = fixture.tensor(queries, {rows, kQueryHeads, kAttendedDim}),
                                             .results = {.output = out, .logSumExp = logs},
                                             .sequences = list.sequences,
                                             .rowCounts = list.rowCounts}));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      const std::vector<float> got = floatsOf(out);
      std::vector<uint64_t> own(rows);
      for (uint64_t row = 0; row < rows; ++row) {
        own[row] = fixture.history.size(rowSequences[row]);
        fixture.history.append(part(keys, row * kToken, kToken), part(values, row * kToken, kToken), rowSequences[row]);
      }
      for (uint64_t row = 0; row < rows; ++row) {
        const Context context(fmt::format("row {} of sequence {}", row, rowSequences[row]));
        const auto expected =
            fixture.history.attended(part(queries, row * kRow, kRow), {positions(0, own[row] + 1)}, rowSequences[row]);
        EXPECT(largestDifference(part(got, row * kRow, kRow), expected) < kF32Sums);
      }
      for (uint32_t sequence = 0; sequence < 3; ++sequence) {
        EXPECT_EQ(*fixture.cache.nextPosition(sequence), fixture.history.size(sequence));
      }
    }
  });
}

TEST(AttentionCacheStep, RefusesMismatchedLists) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(16));
  fixture.appendNow(3, 0);
  const Tensor keys = fixture.zeros({3, kAttendedHeads, kAttendedDim}), queries = fixture.someQueries(3);
  const Tensor out = fixture.zeros({3, kQueryHeads, kAttendedDim});
  const std::vector<uint32_t> two{0, 1}, twice{0, 0}, oneAndTwo{1, 2}, twoAndTwo{2, 2}, one{3}, fourTimes{0, 0, 0, 0};
  CommandEncoder encoder(device);
  constexpr std::string_view kRows = "the rows do not match the listed sequences";
  EXPECT_ERROR(fixture.cache.append(encoder, {.keys = keys, .values = keys, .sequences = two}),
               {.op = "AttentionCache.append",
                .what = kRows,
                .got = "3 rows",
                .expected = "2 rows, or the same number for each of 2 sequences",
                .fix = "row counts"});
  EXPECT_ERROR(fixture.cache.attend(encoder, {.queries = queries, .results = {.output = out}, .sequences = two}),
               {.op = "AttentionCache.attend", .what = kRows, .got = "3 rows"});
  EXPECT_ERROR(fixture.cache.append(encoder, {.keys = keys, .values = keys, .sequences = two, .rowCounts = twoAndTwo}),
               {.op = "AttentionCache.append",
                .what = kRows,
                .got = "3 rows",
                .expected = "4 rows in one sequence, the sum of the row counts",
                .fix = "one after another"});
  EXPECT_ERROR(fixture.cache.append(encoder, {.keys = keys, .values = keys, .sequences = two, .rowCounts = one}),
               {.what = "the row counts do not match the listed sequences",
                .got = "1 row count",
                .expected = "2, one for each sequence",
                .fix = "Pass a row count for each listed sequence"});
  EXPECT_ERROR(fixture.cache.attend(encoder, {.queries = queries,
                                              .results = {.output = out},
                                              .options = {.isCausal = false},
                                              .sequences = twice,
                                              .rowCounts = oneAndTwo}),
               {.op = "AttentionCache.attend",
                .what = "a sequence is listed again in attention that is not causal",
                .got = "sequence 0",
                .expected = "each sequence once",
                .fix = "with a row count for all of its rows"});
  EXPECT_ERROR(fixture.cache.attend(encoder, {.queries = fixture.someQueries(4),
                                              .results = {.output = fixture.zeros({4, kQueryHeads, kAttendedDim})},
                                              .sequences = fourTimes}),
               {.op = "AttentionCache.attend",
                .what = "a sequence has fewer positions than queries",
                .got = "4 rows of sequence 0, which has 3 positions",
                .expected = "rows of tokens that were appended",
                .fix = "Append keys and values"});
  fixture.appendNow(2, 1);
  EXPECT_ERROR(fixture.cache.attend(encoder, {.queries = queries,
                                              .results = {.output = out},
                                              .options = {.mask = fixture.zeros({1, 16})},
                                              .sequences = two,
                                              .rowCounts = oneAndTwo}),
               {.op = "AttentionCache.attend",
                .what = "masks are not supported with unequal row counts",
                .got = "a mask, and row counts that differ",
                .expected = "the same number of rows of each sequence",
                .fix = "Remove the mask, or pass sequences with equal row counts."});
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

TEST(AttentionCacheStep, ChunkedStepsMatchSingleTokens) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint32_t pinned : {0, 3}) {
      for (const uint32_t capacity : {20, 27}) {
        for (const uint32_t window : {0, 7, 17}) {
          const Context context(fmt::format("{} slots, {} pinned, window {}", capacity, pinned, window));
          AttentionFixture fixture(device, attendedDescriptor(capacity, pinned));
          for (const uint64_t tokens : {5, 30, 1, 22}) {
            const std::vector<float> queries = smallNumbers(fixture.random, tokens * kRow);
            const std::vector<float> keys = smallNumbers(fixture.random, tokens * kToken);
            const std::vector<float> values = smallNumbers(fixture.random, tokens * kToken);
            const Tensor out = fixture.zeros({tokens, kQueryHeads, kAttendedDim});
            CommandEncoder encoder(device);
            REQUIRE(fixture.cache.appendAndAttend(
                encoder, {.queries = fixture.tensor(queries, {tokens, kQueryHeads, kAttendedDim}),
                          .keys = fixture.tensor(keys, {tokens, kAttendedHeads, kAttendedDim}),
                          .values = fixture.tensor(values, {tokens, kAttendedHeads, kAttendedDim}),
                          .results = {.output = out},
                          .options = {.window = window},
                          .sequences = {0}}));
            REQUIRE(REQUIRE(encoder.commit()).wait());
            std::vector<std::vector<uint64_t>> seen;
            for (uint64_t token = 0; token < tokens; ++token) {
              const uint64_t end = fixture.history.size() + token + 1, ring = capacity - pinned;
              const uint64_t oldest = end > capacity ? end - ring : std::min<uint64_t>(pinned, end);
              seen.push_back(window == 0 ? positions(0, std::min<uint64_t>(pinned, end)) + positions(oldest, end)
                                         : positions(end - std::min<uint64_t>(end, window), end));
            }
            fixture.history.append(keys, values);
            EXPECT(largestDifference(floatsOf(out), fixture.history.attended(queries, seen)) < kF32Sums);
            EXPECT_EQ(*fixture.cache.nextPosition(0), fixture.history.size());
          }
        }
      }
    }
  });
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
