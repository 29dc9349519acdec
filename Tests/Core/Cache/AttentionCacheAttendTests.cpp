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
  for (const uint32_t pinned : {0, 2}) {
    AttentionFixture fixture(device, attendedDescriptor(6, pinned));
    fixture.appendNow(10);  // holds 4 to 9, or 0, 1 and 6 to 9
    const auto expectLost = [&](uint64_t rows, std::string_view got, std::string_view expected) {
      const Tensor queries = fixture.someQueries(rows), out = fixture.someQueries(rows);
      const ExpectedError error{.op = "AttentionCache.attend",
                                .what = "rows are of tokens that the ring has overwritten",
                                .got = got,
                                .expected = expected,
                                .fix = "Append keys and values of the queries' tokens first"};
      CommandEncoder encoder(device);
      EXPECT_ERROR(fixture.cache.attend(encoder, queries, {.output = out}, {}, 0), (error));
      const std::vector<uint32_t> rowCounts{static_cast<uint32_t>(rows)};
      EXPECT_ERROR(
          fixture.cache.attend(
              encoder, {.queries = queries, .results = {.output = out}, .sequences = {0}, .rowCounts = rowCounts}),
          (error));
    };
    // A mask has a column for each key in the ring.
    const auto held = positions(0, pinned) + positions(4 + pinned, 10);
    const Tensor queries = fixture.someQueries(6 - pinned);
    EXPECT(largestDifference(fixture.attendNow(queries, {.mask = fixture.zeros({1, held.size()})}),
                             fixture.expected(queries, 6 - pinned, held)) < kF32Sums);
    expectLost(7 - pinned, pinned == 0 ? "7 rows up to position 9 of sequence 0" : "5 rows up to position 9",
               pinned == 0 ? "positions 4 to 9" : "positions 6 to 9 and the first 2");
    if (pinned != 0) continue;
    fixture.truncate(8, 0);
    fixture.truncate(4, 0);  // no position of the ring is left
    expectLost(1, "1 row up to position 3", "");
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
  EXPECT_ERROR(fixture.cache.attend(encoder, two, {.output = out}, {.window = 3}, 1),
               {.op = "AttentionCache.attend",
                .what = "a window reaches positions that the ring has overwritten",
                .got = "row 0 of sequence 1, whose window of 3 reaches position 3, over a ring that holds positions 4 "
                       "to 6",
                .expected = "a window of at most 2",
                .fix = "Reset the sequence and store its tokens again"});
  const std::vector<uint32_t> both{2, 1};
  EXPECT_ERROR(fixture.cache.attend(
                   encoder, {.queries = two, .results = {.output = out}, .options = {.window = 4}, .sequences = both}),
               {.op = "AttentionCache.attend", .got = "row 0 of sequence 1", .expected = "a window of at most 3"});
  fixture.truncate(4, 1);  // no position of the ring is left
  EXPECT_ERROR(
      fixture.cache.attend(encoder, REQUIRE(two.slice(0, 1)), {.output = REQUIRE(out.slice(0, 1))}, {.window = 1}, 1),
      {.op = "AttentionCache.attend", .got = "over a ring that holds no position"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

TEST(AttentionCacheAttend, ChunksNeedCapacityOfWindowPlusChunk) {
  const auto device = devicesUnderTest().front().device;
  for (const auto& [capacity, chunk, needed] :
       {std::tuple(32u, 16u, 47), {46u, 16u, 47}, {47u, 16u, 0}, {47u, 48u, 79}}) {
    AttentionFixture fixture(device, attendedDescriptor(capacity));
    fixture.appendNow(48);
    const Tensor queries = fixture.someQueries(chunk);
    CommandEncoder encoder(device);
    fixture.append(encoder, chunk);
    const auto attended =
        fixture.cache.attend(encoder, queries, {.output = fixture.someQueries(chunk)}, {.window = 32}, 0);
    if (needed != 0) EXPECT_ERROR(attended, {.expected = fmt::format("a capacity of at least {}", needed)});
    if (needed == 0) REQUIRE(attended);
  }
}

TEST(AttentionCacheAttend, RefusesUnknownAndSuspectSequences) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(8));
  const Tensor queries = fixture.someQueries(1), out = fixture.zeros({1, kQueryHeads, kAttendedDim});
  {
    CommandEncoder encoder(device);
    EXPECT_ERROR(fixture.cache.attend(encoder, queries, {.output = out}, {}, 3),
                 {.op = "AttentionCache", .what = "the sequence is not in the cache", .got = "sequence 3"});
    const std::vector<uint32_t> unknown{0, 7};
    EXPECT_ERROR(fixture.cache.attend(encoder, {.queries = queries, .results = {.output = out}, .sequences = unknown}),
                 {.op = "AttentionCache.attend", .got = "sequence 7"});
    EXPECT_ERROR(fixture.cache.attend(encoder, queries, {.output = fixture.zeros({1, kQueryHeads, 8})}, {}, 0),
                 {.op = "AttentionCache.attend"});
    EXPECT_ERROR(fixture.cache.attend(encoder, Tensor(), {.output = out}, {}, 0), {.op = "AttentionCache.attend"});
    EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  }
  device->holdCompletions();
  CommandEncoder failing(device);
  fixture.append(failing, 2, 1);
  const auto done = REQUIRE(failing.commit());
  device->finishNext(fakeFailure());
  EXPECT(!done.wait());
  CommandEncoder encoder(device);
  EXPECT_ERROR(fixture.cache.attend(encoder, queries, {.output = out}, {}, 1),
               {.op = "AttentionCache", .what = "suspect", .got = "sequence 1, unknown from position 0"});
  const std::vector<uint32_t> both{0, 1};
  EXPECT_ERROR(fixture.cache.attend(encoder, {.queries = fixture.someQueries(2),
                                              .results = {.output = fixture.zeros({2, kQueryHeads, kAttendedDim})},
                                              .sequences = both}),
               {.op = "AttentionCache", .what = "suspect"});
}

}  // namespace mnk::test
