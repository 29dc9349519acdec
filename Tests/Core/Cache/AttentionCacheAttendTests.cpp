// Attention over an AttentionCache: which positions an encoder sees, and which calls are refused.
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

TEST(AttentionCacheAttend, RowsAreTheNewestTokens) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionFixture fixture(device, attendedDescriptor(64));
    for (const uint64_t tokens : {1, 7, 3, 30}) {
      fixture.appendNow(tokens, 1);
      const uint64_t next = *fixture.cache.nextPosition(1);
      for (const uint64_t rows : {uint64_t{1}, tokens}) {
        const Tensor queries = fixture.someQueries(rows);
        EXPECT(largestDifference(fixture.attendNow(queries, {}, 1),
                                 fixture.expected(queries, rows, positions(0, next), 1)) < kF32Sums);
      }
    }
  });
}

TEST(AttentionCacheAttend, SeesTokensAppendedByTheSameEncoder) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionFixture fixture(device, attendedDescriptor(16));
    fixture.appendNow(3);
    const Tensor queries = fixture.someQueries(1), early = fixture.zeros({1, kQueryHeads, kAttendedDim});
    const Tensor late = fixture.zeros({kQueryHeads, kAttendedDim});
    CommandEncoder encoder(device);
    fixture.append(encoder, 1);
    REQUIRE(fixture.cache.attend(encoder, queries, {.output = early}, {}, 0));
    const std::vector<double> expectedEarly = fixture.expected(queries, 1, positions(0, 4));
    fixture.append(encoder, 2);
    REQUIRE(fixture.cache.attend(encoder, REQUIRE(queries.reshaped(late.shape())), {.output = late}, {}, 0));
    EXPECT_EQ(*fixture.cache.nextPosition(0), 3u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT(largestDifference(floatsOf(early), expectedEarly) < kF32Sums);
    EXPECT(largestDifference(floatsOf(late), fixture.expected(queries, 1, positions(0, 6))) < kF32Sums);
  });
}

TEST(AttentionCacheAttend, SequencesHaveTheirOwnLengths) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionFixture fixture(device, attendedDescriptor(16));
    const std::vector<uint32_t> sequences{2, 0};
    fixture.appendNow(4, 0);
    fixture.appendNow(9, 2);
    for (const uint64_t rows : {1, 2}) {
      const uint64_t part = rows * kQueryHeads * kAttendedDim;
      const std::vector<float> elements = smallNumbers(fixture.random, 2 * part);
      const Tensor queries = fixture.tensor(elements, {2, rows, kQueryHeads, kAttendedDim});
      const Tensor out = fixture.zeros({2, rows, kQueryHeads, kAttendedDim}),
                   logs = fixture.zeros({2, rows, kQueryHeads});
      CommandEncoder encoder(device);
      REQUIRE(fixture.cache.attend(
          encoder, {.queries = queries, .results = {.output = out, .logSumExp = logs}, .sequences = sequences}));
      // A single row may omit the row axis.
      const Tensor flat = fixture.zeros({2, kQueryHeads, kAttendedDim}), flatLogs = fixture.zeros({2, kQueryHeads});
      if (rows == 1) {
        REQUIRE(fixture.cache.attend(encoder, {.queries = REQUIRE(queries.reshaped(flat.shape())),
                                               .results = {.output = flat, .logSumExp = flatLogs},
                                               .sequences = sequences}));
      }
      REQUIRE(REQUIRE(encoder.commit()).wait());
      const std::vector<float> got = floatsOf(out);
      for (size_t s = 0; s < 2; ++s) {
        const Tensor own = fixture.tensor({elements.begin() + s * part, elements.begin() + (s + 1) * part},
                                          {rows, kQueryHeads, kAttendedDim});
        const std::vector<float> gotOwn(got.begin() + s * part, got.begin() + (s + 1) * part);
        EXPECT(largestDifference(gotOwn, fixture.expected(own, rows, positions(0, s == 0 ? 9 : 4), sequences[s])) <
               kF32Sums);
      }
      if (rows == 1) {
        EXPECT_EQ(floatsOf(flat), got);
        EXPECT_EQ(floatsOf(flatLogs), floatsOf(logs));
      }
    }
  });
}

// A batch of a prompt, drafts and single tokens computes the same results as separate calls per sequence.
TEST(AttentionCacheAttend, UnequalRowsShareADispatch) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const bool isCoded : {false, true}) {
      AttentionCacheDescriptor descriptor = attendedDescriptor(40);
      if (isCoded) descriptor.quantized = KVQuantizedStorage{};
      AttentionFixture fixture(device, descriptor);
      const std::vector<uint32_t> sequences{2, 0, 1, 2}, counts{3, 1, 8, 2};
      for (const uint32_t sequence : {0u, 1u, 2u}) fixture.appendNow(11 + 5 * sequence, sequence);
      const Tensor queries = fixture.someQueries(14), out = fixture.zeros({14, kQueryHeads, kAttendedDim});
      const Tensor logs = fixture.zeros({14, kQueryHeads}), alone = fixture.zeros({14, kQueryHeads, kAttendedDim});
      const Tensor logsAlone = fixture.zeros({14, kQueryHeads}), split = fixture.zeros({14, kQueryHeads, kAttendedDim});
      CommandEncoder encoder(device);
      REQUIRE(fixture.cache.attend(encoder, {.queries = queries,
                                             .results = {.output = out, .logSumExp = logs},
                                             .options = {.splits = 1},
                                             .sequences = sequences,
                                             .rowCounts = counts}));
      EXPECT_EQ(encoder.summary().total.dispatches, 1u);
      REQUIRE(fixture.cache.attend(encoder, {.queries = queries,
                                             .results = {.output = split},
                                             .options = {.splits = 2, .merge = AttentionOptions::Merge::separate},
                                             .sequences = sequences,
                                             .rowCounts = counts}));
      EXPECT_EQ(encoder.summary().total.dispatches, 3u);
      const auto rows = [](const Tensor& tensor, uint64_t first, uint64_t count) {
        return REQUIRE(tensor.slice(first, count));
      };
      // Sequence 2 is listed twice: the rows of its first entry precede those of its second.
      REQUIRE(fixture.cache.attend(encoder, rows(queries, 3, 1),
                                   {.output = rows(alone, 3, 1), .logSumExp = rows(logsAlone, 3, 1)}, {}, 0));
      REQUIRE(fixture.cache.attend(encoder, rows(queries, 4, 8),
                                   {.output = rows(alone, 4, 8), .logSumExp = rows(logsAlone, 4, 8)}, {}, 1));
      std::vector<float> ofSecond = floatsOf(rows(queries, 0, 3));
      const std::vector<float> newest = floatsOf(rows(queries, 12, 2));
      ofSecond.insert(ofSecond.end(), newest.begin(), newest.end());
      const Tensor second = fixture.zeros({5, kQueryHeads, kAttendedDim}), secondLogs = fixture.zeros({5, kQueryHeads});
      REQUIRE(fixture.cache.attend(encoder, fixture.tensor(ofSecond, {5, kQueryHeads, kAttendedDim}),
                                   {.output = second, .logSumExp = secondLogs}, {}, 2));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      const auto expectSame = [&](const Tensor& got, const Tensor& expected, uint64_t first, uint64_t count,
                                  uint64_t from) {
        const std::vector<float> sums = floatsOf(rows(expected, from, count));
        EXPECT(largestDifference(floatsOf(rows(got, first, count)), {sums.begin(), sums.end()}) < kF32Sums);
      };
      expectSame(split, out, 0, 14, 0);
      expectSame(out, alone, 3, 9, 3), expectSame(logs, logsAlone, 3, 9, 3);
      expectSame(out, second, 0, 3, 0), expectSame(logs, secondLogs, 0, 3, 0);
      expectSame(out, second, 12, 2, 3), expectSame(logs, secondLogs, 12, 2, 3);
    }
  });
}

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

TEST(AttentionCacheAttend, RingsAttendToHeldPositions) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint32_t pinned : {0, 2}) {
      AttentionFixture fixture(device, attendedDescriptor(6, pinned));
      for (uint64_t next = 1; next <= 15; ++next) {
        fixture.appendNow(1);
        const uint64_t ring = 6 - pinned;
        const uint64_t oldest = next > 6 ? next - ring : std::min<uint64_t>(pinned, next);
        const std::vector<uint64_t> held = positions(0, std::min<uint64_t>(pinned, next)) + positions(oldest, next);
        const Tensor queries = fixture.someQueries(1);
        EXPECT(largestDifference(fixture.attendNow(queries), fixture.expected(queries, 1, held)) < kF32Sums);
        EXPECT(largestDifference(fixture.attendNow(queries, {.window = 3}), fixture.expected(queries, 1, held, 0, 3)) <
               kF32Sums);
      }
    }
  });
}

// Rows of a draft are attended to at once; later rows do not see rejected tokens, which are truncated.
TEST(AttentionCacheAttend, DraftsOfASlidingWindowAreExactAndRollBack) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCacheDescriptor descriptor = attendedDescriptor(0);
    descriptor.slidingWindow = SlidingWindow{.window = 8, .maxRows = 4, .maxDraft = 4};
    AttentionFixture fixture(device, descriptor);  // wraps during the test
    EXPECT_EQ(fixture.cache.descriptor().capacity, 11u);
    uint64_t next = 0;
    for (const uint64_t accepted : {3, 1, 4, 2, 1, 3, 0, 0, 4, 1}) {
      CommandEncoder encoder(device);
      const Tensor queries = fixture.someQueries(4), out = fixture.zeros({4, kQueryHeads, kAttendedDim});
      fixture.append(encoder, 4);
      REQUIRE(fixture.cache.attend(encoder, queries, {.output = out}, {}, 0));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      EXPECT(largestDifference(floatsOf(out), fixture.expected(queries, 4, positions(0, next + 4), 0, 8)) < kF32Sums);
      next += accepted;
      fixture.truncate(next, 0);
    }
  });
}

TEST(AttentionCacheAttend, RowsWithoutAWindowSeeTheWholeRing) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint32_t pinned : {0, 2}) {
      AttentionFixture fixture(device, attendedDescriptor(6, pinned));
      fixture.appendNow(10);  // holds 4 to 9, or 0, 1 and 6 to 9
      const uint64_t oldest = 4 + pinned;
      const auto held = [&] { return positions(0, pinned) + positions(oldest, *fixture.cache.nextPosition(0)); };
      const auto expectHeld = [&](uint64_t rows) {
        const Tensor queries = fixture.someQueries(rows);
        EXPECT(largestDifference(fixture.attendNow(queries), fixture.expected(queries, rows, held())) < kF32Sums);
        // A mask has a column for each key in the ring.
        const AttentionOptions masked{.mask = fixture.zeros({1, held().size()})};
        EXPECT(largestDifference(fixture.attendNow(queries, masked), fixture.expected(queries, rows, held())) <
               kF32Sums);
      };
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
      expectHeld(10 - oldest);
      expectLost(11 - oldest, pinned == 0 ? "7 rows up to position 9 of sequence 0" : "5 rows up to position 9",
                 pinned == 0 ? "positions 4 to 9" : "positions 6 to 9 and the first 2");
      fixture.truncate(8, 0);  // tokens overwritten by the truncated ones stay lost
      EXPECT_EQ(*fixture.cache.count(0), held().size());
      expectHeld(1);
      expectHeld(2);
      fixture.appendNow(1);
      expectHeld(3);
      if (pinned == 0) {
        fixture.truncate(4, 0);  // no position of the ring is left
        expectLost(1, "1 row up to position 3", "");
        continue;
      }
      fixture.truncate(1, 0);  // at a pinned position the ring is empty again
      const Tensor one = fixture.someQueries(1);
      EXPECT(largestDifference(fixture.attendNow(one), fixture.expected(one, 1, positions(0, 1))) < kF32Sums);
    }
  });
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
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  EXPECT(largestDifference(fixture.attendNow(two, {.window = 2}, 1), fixture.expected(two, 2, positions(4, 7), 1, 2)) <
         kF32Sums);
  REQUIRE(fixture.cache.attend(
      encoder, {.queries = two, .results = {.output = out}, .options = {.window = 3}, .sequences = both}));

  // No position of the ring is left.
  fixture.truncate(4, 1);
  EXPECT_ERROR(
      fixture.cache.attend(encoder, REQUIRE(two.slice(0, 1)), {.output = REQUIRE(out.slice(0, 1))}, {.window = 1}, 1),
      {.op = "AttentionCache.attend", .got = "over a ring that holds no position"});
}

// A prompt of 48 tokens with a window of 32, appended in chunks.
TEST(AttentionCacheAttend, ChunksNeedCapacityOfWindowPlusChunk) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint32_t capacity : {32, 46, 47}) {
      for (const uint64_t chunk : {16, 48}) {
        AttentionFixture fixture(device, attendedDescriptor(capacity));
        for (uint64_t next = chunk; next <= 96; next += chunk) {
          const Tensor queries = fixture.someQueries(chunk), out = fixture.zeros({chunk, kQueryHeads, kAttendedDim});
          CommandEncoder encoder(device);
          fixture.append(encoder, chunk);
          const auto attended = fixture.cache.attend(encoder, queries, {.output = out}, {.window = 32}, 0);
          const bool isHeld = next <= capacity || capacity >= 32 + chunk - 1;
          EXPECT_EQ(bool(attended), isHeld);
          REQUIRE(REQUIRE(encoder.commit()).wait());
          if (!isHeld) {
            EXPECT_ERROR(attended,
                         {.expected = fmt::format("a capacity of at least {}", std::min(32 + chunk - 1, next))});
            continue;
          }
          EXPECT(largestDifference(floatsOf(out), fixture.expected(queries, chunk, positions(0, next), 0, 32)) <
                 kF32Sums);
        }
      }
    }
  });
}

// The reference attends to the dequantized keys and values.
TEST(AttentionCacheAttend, QuantizedCachesAttendToDequantizedTokens) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCacheDescriptor descriptor = attendedDescriptor(12);
    descriptor.quantized = KVQuantizedStorage{.keyBits = 4,
                                              .valueBits = 3,
                                              .keyMeans = constants(device, 0.25f, kAttendedHeads, kAttendedDim),
                                              .valueMeans = constants(device, -0.5f, kAttendedHeads, kAttendedDim),
                                              .keyChannelScales = constants(device, 2, kAttendedHeads, kAttendedDim)};
    AttentionFixture fixture(device, descriptor);
    descriptor.quantized.reset();
    AttentionFixture dense(device, descriptor);
    fixture.appendNow(20);  // holds 8 to 19
    const Tensor keys = fixture.zeros({12, kAttendedHeads, kAttendedDim});
    const Tensor values = fixture.zeros({12, kAttendedHeads, kAttendedDim});
    CommandEncoder encoder(device);
    REQUIRE(fixture.cache.dequantize(encoder, keys, values, 8, 0));
    REQUIRE(dense.cache.append(encoder, keys, values, 0));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    for (const uint64_t rows : {1, 3}) {
      const Tensor queries = fixture.someQueries(rows);
      // The weight of a sink shows whether the scores include the key means.
      const AttentionOptions options{.sinks = fixture.tensor({1, 2, 3, 4}, {kQueryHeads})};
      const std::vector<float> expected = dense.attendNow(queries, options);
      EXPECT(largestDifference(fixture.attendNow(queries, options), {expected.begin(), expected.end()}) < kF32Sums);
    }
  });
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
