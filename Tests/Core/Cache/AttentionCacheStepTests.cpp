// Steps of an AttentionCache over several sequences, with views of other layouts, and in chunks.
#include <functional>
#include <tuple>

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
  RefusedCalls no;
  enum Calls : uint8_t { append = 1, attend = 2, both = 4 };
  const auto refused = [&](int calls, const std::function<void(CacheStep&)>& change) {
    CacheStep step = sound;
    change(step);
    const auto [queries, keys, values, sequences, counts] =
        std::tie(step.queries, step.keys, step.values, step.sequences, step.rowCounts);
    if (calls & append) {
      no(fixture.cache.append(encoder, {.keys = keys, .values = values, .sequences = sequences, .rowCounts = counts}));
    }
    if (calls & attend) {
      no(fixture.cache.attend(encoder, {.queries = queries,
                                        .results = step.results,
                                        .options = step.options,
                                        .sequences = sequences,
                                        .rowCounts = counts}));
    }
    if (calls & both) no(fixture.cache.appendAndAttend(encoder, step));
  };
  refused(append | attend | both, [](CacheStep& step) { step.rowCounts.reset(); });
  refused(append | attend | both, [](CacheStep& step) { step.rowCounts = {{2, 2}}; });
  refused(append | attend | both, [](CacheStep& step) { step.rowCounts = {{3}}; });
  refused(append | attend | both, [](CacheStep& step) { step.sequences = {0, 3}; });
  refused(attend | both, [](CacheStep& step) { step.sequences = {0, 0}, step.options.isCausal = false; });
  refused(attend | both, [&](CacheStep& step) { step.options.mask = fixture.zeros({1, 16}); });
  refused(attend, [](CacheStep& step) { step.sequences = {1, 1, 1}, step.rowCounts.reset(); });
  refused(both, [](CacheStep& step) { step.rotary->offsets = std::vector<int32_t>{1, 2}; });
  refused(both, [&](CacheStep& step) { step.queries = fixture.zeros({2, kQueryHeads, kAttendedDim}); });
  refused(both, [](CacheStep& step) { step.rotary->positions = RotaryPositions(std::vector<int32_t>{1, 2}); });
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
  const std::vector<uint32_t> apart{0, 1, 0}, oneEach{1, 0, 1};
  CommandEncoder encoder(device);
  RefusedCalls no;
  no(fixture.cache.attend(encoder, {.queries = backwards(queries, kQueryHeads),
                                    .results = {.output = out},
                                    .sequences = apart,
                                    .rowCounts = oneEach}));
  CacheStep step{.queries = backwards(queries, kQueryHeads),
                 .keys = keys,
                 .values = keys,
                 .results = {.output = out},
                 .sequences = {0}};
  no(fixture.cache.appendAndAttend(encoder, step));
  step.queries = queries;
  step.values = backwards(keys, kAttendedHeads);
  no(fixture.cache.appendAndAttend(encoder, step));
  // Extents are checked before rows are listed.
  const HeadsView outside = many(keys, kAttendedHeads * kAttendedDim), folded = many(keys, 0);
  no(fixture.cache.append(encoder, {.keys = outside, .values = folded, .sequences = {0}}));
  no(fixture.cache.append(encoder, {.keys = folded, .values = folded, .sequences = {0, 1}}));
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

// A tensor without a layout is token-major, even if its extents would also fit as head-major.
TEST(AttentionCacheStep, HeadMajorTensorsNeedTheirLayout) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(16));
  const Tensor swapped = fixture.zeros({kAttendedHeads, 3, kAttendedDim});
  CommandEncoder encoder(device);
  RefusedCalls no;
  no(fixture.cache.append(encoder, swapped, swapped, 0));
  REQUIRE(fixture.cache.append(encoder, {swapped, KVLayout::headMajor}, {swapped, KVLayout::headMajor}, 0));
  const Tensor queries = fixture.zeros({kQueryHeads, 3, kAttendedDim}),
               out = fixture.zeros({3, kQueryHeads, kAttendedDim});
  no(fixture.cache.attend(encoder, queries, {.output = out}, {}, 0));
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
  RefusedCalls no;
  no(fixture.cache.appendAndAttend(encoder, step));  // the first chunk of eight would succeed, but no later one
  step.options.window = 8;
  step.values = fixture.zeros({11, kAttendedHeads, kAttendedDim});
  no(fixture.cache.appendAndAttend(encoder, step));
  step.values = keys;
  step.options.isCausal = false;
  no(fixture.cache.appendAndAttend(encoder, step));
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
  RefusedCalls no;
  no(fixture.cache.append(encoder, two, two, 0));
  REQUIRE(fixture.cache.append(encoder, one, one, 0));
  no(fixture.cache.dequantize(encoder, two, std::nullopt, 0, 0));
  REQUIRE(fixture.cache.dequantize(encoder, one, std::nullopt, 0, 0));
  no(fixture.cache.dequantize(encoder, one, std::nullopt, 1, 0));  // all tokens of the axis count, not only the first
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
  RefusedCalls no;
  no(fixture.cache.attend(
      encoder,
      {.queries = rows(0, 3), .results = {.output = rows(2, 3)}, .sequences = sequences, .rowCounts = rowCounts}));
  no(fixture.cache.appendAndAttend(
      encoder,
      {.queries = rows(0, 8), .keys = keys, .values = keys, .results = {.output = rows(4, 8)}, .sequences = {0}}));
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
  RefusedCalls no;
  for (const std::vector<uint64_t>& axes : {std::vector<uint64_t>{3, 2}, {1, 6}, {6, 1}}) no(attend(axes));
}

}  // namespace mnk::test
