// Calls of attention over an AttentionCache that are refused, and masks. AttentionCacheProperty checks what rows see.
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

// The row axis of a mask covers only sequences with rows.
TEST(AttentionCacheAttend, MasksOmitSequencesWithoutRows) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(8));
  fixture.appendNow(4);
  const std::vector<uint32_t> sequences{0, 1, 2}, counts{3, 0, 0};
  const AttentionOptions masked{.mask = fixture.zeros({3, 4})};
  CommandEncoder encoder(device);
  REQUIRE(fixture.cache.attend(encoder, {.queries = fixture.someQueries(3),
                                         .results = {.output = fixture.zeros({3, kQueryHeads, kAttendedDim})},
                                         .options = masked,
                                         .sequences = sequences,
                                         .rowCounts = counts}));
  EXPECT_EQ(encoder.summary().total.dispatches, 1u);
}

TEST(AttentionCacheAttend, RowsWithoutAWindowSeeTheWholeRing) {
  const auto device = devicesUnderTest().front().device;
  RefusedCalls no;
  for (const uint32_t pinned : {0, 2}) {
    AttentionFixture fixture(device, attendedDescriptor(6, pinned));
    fixture.appendNow(10);  // holds 4 to 9, or 0, 1 and 6 to 9
    const auto expectLost = [&](uint32_t rows) {
      const Tensor queries = fixture.someQueries(rows), out = fixture.someQueries(rows);
      CommandEncoder encoder(device);
      no(fixture.cache.attend(encoder, queries, {.output = out}, {}, 0));
      no(fixture.cache.attend(
          encoder, {.queries = queries, .results = {.output = out}, .sequences = {0}, .rowCounts = {{rows}}}));
    };
    // A mask has a column for each key in the ring.
    const auto held = positions(0, pinned) + positions(4 + pinned, 10);
    const Tensor queries = fixture.someQueries(6 - pinned);
    EXPECT(largestDifference(fixture.attendNow(queries, {.mask = fixture.zeros({1, held.size()})}),
                             fixture.expected(queries, 6 - pinned, held)) < kF32Sums);
    expectLost(7 - pinned);
    if (pinned != 0) continue;
    fixture.truncate(8, 0);
    fixture.truncate(4, 0);  // no position of the ring is left
    expectLost(1);
  }
}

TEST(AttentionCacheAttend, RefusesWindowsOverLostPositions) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(6));
  fixture.appendNow(10, 1);
  fixture.truncate(7, 1);  // holds 4 to 6
  fixture.appendNow(2, 2);
  const Tensor two = fixture.someQueries(2), out = fixture.zeros({2, kQueryHeads, kAttendedDim});
  CommandEncoder encoder(device);
  RefusedCalls no;
  no(fixture.cache.attend(encoder, two, {.output = out}, {.window = 3}, 1));
  no(fixture.cache.attend(encoder,
                          {.queries = two, .results = {.output = out}, .options = {.window = 4}, .sequences = {2, 1}}));
  fixture.truncate(4, 1);  // no position of the ring is left
  no(fixture.cache.attend(encoder, REQUIRE(two.slice(0, 1)), {.output = REQUIRE(out.slice(0, 1))}, {.window = 1}, 1));
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

TEST(AttentionCacheAttend, ChunksNeedCapacityOfWindowPlusChunk) {
  const auto device = devicesUnderTest().front().device;
  RefusedCalls no;
  for (const auto& [capacity, chunk, fits] :
       {std::tuple(32u, 16u, false), {46u, 16u, false}, {47u, 16u, true}, {47u, 48u, false}}) {
    AttentionFixture fixture(device, attendedDescriptor(capacity));
    fixture.appendNow(48);
    const Tensor queries = fixture.someQueries(chunk);
    CommandEncoder encoder(device);
    fixture.append(encoder, chunk);
    const auto attended =
        fixture.cache.attend(encoder, queries, {.output = fixture.someQueries(chunk)}, {.window = 32}, 0);
    if (fits) {
      REQUIRE(attended);
    } else {
      no(attended);
    }
  }
}

TEST(AttentionCacheAttend, RefusesUnknownSequences) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(8));
  const Tensor queries = fixture.someQueries(1), out = fixture.zeros({1, kQueryHeads, kAttendedDim});
  RefusedCalls no;
  CommandEncoder encoder(device);
  no(fixture.cache.attend(encoder, queries, {.output = out}, {}, 3));
  no(fixture.cache.attend(encoder, {.queries = queries, .results = {.output = out}, .sequences = {0, 7}}));
  no(fixture.cache.attend(encoder, queries, {.output = fixture.zeros({1, kQueryHeads, 8})}, {}, 0));
  no(fixture.cache.attend(encoder, Tensor(), {.output = out}, {}, 0));
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

TEST(AttentionCacheLatent, NeedsAScaleAndRotatedKeys) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(
      device, {.kvHeads = 1, .headDim = 64, .capacity = 40, .sequences = 2, .dtype = DType::f32, .latentDim = 512});
  CacheStep step{.queries = tokens(device, 4, 4, 576),
                 .keys = tokens(device, 4, 1, 64),
                 .values = tokens(device, 4, 1, 512),
                 .results = {.output = tokens(device, 4, 4, 512)},
                 .sequences = {0}};
  CommandEncoder encoder(device);
  RefusedCalls no;
  no(cache.appendAndAttend(encoder, step));
  step.options.scale = 0.1f;
  step.rotary.emplace();
  no(cache.appendAndAttend(encoder, step));
  EXPECT_EQ(*cache.nextPosition(0), 0u);
}

}  // namespace mnk::test
