// When a cache's positions advance, which calls it refuses, and what it holds after a truncation.
#include "AttentionCacheFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"

namespace mnk::test {

TEST(AttentionCache, NeedsADeviceWithEnoughMemory) {
  EXPECT_ERROR(AttentionCache::make(nullptr, kDescriptor), {.what = "no device"});
  const auto device = FakeDevice::make();
  device->failAt(FakeDevice::Call::makeBuffer, 1);  // keys fit, values do not
  EXPECT(!AttentionCache::make(device, kDescriptor));
  AttentionCacheDescriptor huge = kDescriptor;
  huge.kvHeads = huge.headDim = huge.capacity = huge.sequences = (1u << 31) - 1;
  EXPECT_ERROR(AttentionCache::make(device, huge), {.op = "Shape", .what = "more elements than 64-bit sizes"});
}

TEST(AttentionCache, ComputesItsCapacity) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor{.kvHeads = 1,
                                      .headDim = 8,
                                      .pinned = 4,
                                      .slidingWindow = SlidingWindow{.window = 32, .maxRows = 16, .maxDraft = 4}};
  EXPECT_EQ(makeCache(device, descriptor).descriptor().capacity, 4u + 32 + 16 - 1);
  EXPECT(makeCache(device, descriptor).descriptor().whenFull == KVWrap::ring);
  descriptor.slidingWindow = SlidingWindow{.window = 32, .maxRows = 1, .maxDraft = 4};
  EXPECT_EQ(makeCache(device, descriptor).descriptor().capacity, 4u + 32 + 4 - 1);
  descriptor.slidingWindow = SlidingWindow{.window = 32};
  EXPECT_EQ(makeCache(device, descriptor).descriptor().capacity, 4u + 32 + 64 - 1);
  descriptor.slidingWindow->maxRows = 0;
  EXPECT_EQ(makeCache(device, descriptor).descriptor().capacity, 4u + 32 + 64 - 1);
  EXPECT_EQ(makeCache(device, descriptor).descriptor().slidingWindow->maxRows, 64u);
  descriptor.capacity = 100;
  EXPECT_EQ(makeCache(device, descriptor).descriptor().capacity, 100u);
  descriptor.capacity = 0;
  descriptor.slidingWindow = SlidingWindow{.window = UINT32_MAX, .maxRows = UINT32_MAX};
  EXPECT_ERROR(AttentionCache::make(device, descriptor), {.what = "an extent is too large for the kernels"});
}

TEST(AttentionCache, RefusesToOverwriteByDefault) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, {.kvHeads = 2, .headDim = 4, .capacity = 64, .isStorageOnly = true});
  CommandEncoder encoder(device);
  EXPECT_ERROR(append(cache, encoder, 100), {.op = "AttentionCache.append", .got = "position 0 + 100 tokens"});
}

TEST(AttentionCache, StartsEmpty) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const AttentionCache cache = makeCache(
        device, {.kvHeads = 2, .headDim = 8, .valueHeadDim = 16, .capacity = 5, .sequences = 3, .dtype = DType::bf16});
    EXPECT_EQ(cache.view().keys.shape(), REQUIRE(Shape::make({3, 2, 5, 8})));
    EXPECT_EQ(cache.view().values->shape(), REQUIRE(Shape::make({3, 2, 5, 16})));
    EXPECT_EQ(cache.view().keys.dtype(), DType::bf16);
    EXPECT_EQ(cache.byteCount(), 3u * 2 * 5 * (8 + 16) * 2);
    for (uint32_t sequence = 0; sequence < 3; ++sequence) {
      EXPECT_EQ(*cache.nextPosition(sequence), 0u);
      EXPECT_EQ(*cache.count(sequence), 0u);
      EXPECT(!cache.isSuspect(sequence));
    }
  });
}

TEST(AttentionCache, ValuesDefaultToTheHeadDimOfKeys) {
  const AttentionCache cache = makeCache(FakeDevice::make());
  EXPECT_EQ(cache.descriptor().valueHeadDim, 4u);
  EXPECT_EQ(cache.view().values->shape(), cache.view().keys.shape());
  EXPECT(cache.view().wrap == KVWrap::ring);
}

TEST(AttentionCache, AppendAdvancesWhenTheEncoderIsCommitted) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 3));
  EXPECT_EQ(*cache.nextPosition(0), 0u);
  EXPECT_EQ(*cache.count(0), 0u);
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 3u);
  EXPECT_EQ(*cache.count(0), 3u);
  EXPECT_EQ(*cache.nextPosition(1), 0u);
}

TEST(AttentionCache, AdvancesBeforeTheWorkIsDone) {
  const auto device = FakeDevice::make();
  device->holdCompletions();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 2));
  const Completion completion = REQUIRE(encoder.commit());
  EXPECT(!completion.isDone());
  EXPECT_EQ(*cache.nextPosition(0), 2u);
  EXPECT(device->finishNext({}));
  EXPECT_EQ(*cache.nextPosition(0), 2u);
  EXPECT(!cache.isSuspect());
}

TEST(AttentionCache, AnAbandonedEncoderAdvancesNothing) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  {
    CommandEncoder encoder(device);
    REQUIRE(append(cache, encoder, 3));
  }
  EXPECT_EQ(*cache.nextPosition(0), 0u);
  EXPECT(device->committed().empty());
  appendNow(cache, device, 1);
  EXPECT_EQ(*cache.nextPosition(0), 1u);
}

TEST(AttentionCache, ARefusedAppendAdvancesNothing) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  const Tensor good = tokens(device, 2);
  EXPECT_ERROR(cache.append(encoder, tokens(device, 1, 3), good, 0),
               {.op = "AttentionCache.append", .what = "keys do not have"});
  EXPECT_ERROR(cache.append(encoder, good, tokens(device, 1), 0),
               {.op = "AttentionCache.append", .what = "another number"});
  EXPECT_ERROR(cache.append(encoder, Tensor{}, good, 0),
               {.op = "AttentionCache.append", .what = "a source has no memory"});
  REQUIRE(cache.append(encoder, good, good, 0));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 2u);
  EXPECT_EQ(device->committed().at(0).dispatches.size(), 1u);
}

TEST(AttentionCache, AFailingEncoderAdvancesNothing) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  device->failAt(FakeDevice::Call::dispatch);
  EXPECT(!append(cache, encoder, 2));
  device->failAt(FakeDevice::Call::makePipeline);
  device->registry().clear();
  EXPECT(!append(cache, encoder, 2));
  REQUIRE(append(cache, encoder, 1));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 1u);
}

TEST(AttentionCache, ACommittedEncoderRefusesAppends) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 1));
  REQUIRE(encoder.commit());
  EXPECT_ERROR(append(cache, encoder, 1), {.op = "AttentionCache.append", .what = "after it was committed"});
  EXPECT_ERROR(encoder.commit(), {.op = "CommandEncoder", .what = "after it was committed"});
  EXPECT_EQ(*cache.nextPosition(0), 1u);
}

TEST(AttentionCache, AppendsOfOneEncoderAreConsecutive) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 2));
  REQUIRE(append(cache, encoder, 1));
  REQUIRE(append(cache, encoder, 1, 2));
  EXPECT_EQ(encoder.summary().barriers, 0u);  // they fill different slots
  REQUIRE(append(cache, encoder, 2));         // slots 3 and 0: the ring wraps
  EXPECT_EQ(encoder.summary().barriers, 1u);
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 5u);
  EXPECT_EQ(*cache.count(0), 4u);
  EXPECT_EQ(*cache.nextPosition(2), 1u);
}

TEST(AttentionCache, AnEmptyAppendChangesNothing) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 0));
  REQUIRE(cache.append(
      encoder, {.keys = tokens(device, 0), .values = tokens(device, 0), .sequences = {0, 1}, .rowCounts = {{0, 0}}}));
  const Tensor none = tokens(device, 0), one = tokens(device, 1);
  REQUIRE(cache.append(encoder, {.keys = none, .values = none, .sequences = {}}));
  EXPECT_ERROR(cache.append(encoder, {.keys = one, .values = one, .sequences = {}}),
               {.op = "AttentionCache.append",
                .what = "the step has no sequence",
                .got = "an empty list of sequences",
                .expected = "at least one sequence",
                .fix = "List the sequences that the tokens continue."});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 0u);
}

TEST(AttentionCache, OneTokenMayHaveRank2) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  const Tensor token = REQUIRE(tokens(device, 1).reshaped(REQUIRE(Shape::make({2, 4}))));
  REQUIRE(cache.append(encoder, token, token, 0));
  REQUIRE(cache.append(encoder, {.keys = token, .values = token, .sequences = {1}, .rowCounts = {{1}}}));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 1u);
  EXPECT_EQ(*cache.nextPosition(1), 1u);
}

TEST(AttentionCache, ABatchAppendsOneTokenToEachListedSequence) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 2, 1);
  CommandEncoder encoder(device);
  const std::vector<uint32_t> sequences{2, 1, 2};
  REQUIRE(cache.append(encoder, {.keys = tokens(device, 3), .values = tokens(device, 3), .sequences = sequences}));
  EXPECT_EQ(encoder.summary().total.dispatches, 1u);
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 0u);
  EXPECT_EQ(*cache.nextPosition(1), 3u);
  EXPECT_EQ(*cache.nextPosition(2), 2u);
}

TEST(AttentionCache, ABatchNeedsOneTokenPerSequence) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  const std::vector<uint32_t> sequences{0, 1};
  EXPECT_ERROR(cache.append(encoder, {.keys = tokens(device, 3), .values = tokens(device, 3), .sequences = sequences}),
               {.op = "AttentionCache.append", .what = "the rows do not match the listed sequences"});
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 0u);
  EXPECT_EQ(*cache.nextPosition(1), 0u);
}

TEST(AttentionCache, RefusesUnknownSequences) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  const ExpectedError expected{.op = "AttentionCache",
                               .what = "the sequence is not in the cache",
                               .got = "sequence 3",
                               .expected = "less than 3",
                               .fix = "Pass a sequence that the cache holds."};
  const std::vector<uint32_t> sequences{0, 3};
  EXPECT_ERROR(append(cache, encoder, 1, 3), (expected));
  EXPECT_ERROR(cache.append(encoder, {.keys = tokens(device, 2), .values = tokens(device, 2), .sequences = sequences}),
               (expected));
  EXPECT_ERROR(cache.truncate(0, 3), (expected));
  EXPECT_ERROR(cache.reset(3), (expected));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 0u);
}

TEST(AttentionCache, AFullLinearCacheRefusesAppends) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor linear = kDescriptor;
  linear.whenFull = KVWrap::linear;
  AttentionCache cache = makeCache(device, linear);
  appendNow(cache, device, 3);
  CommandEncoder encoder(device);
  EXPECT_ERROR(
      append(cache, encoder, 2),
      {.op = "AttentionCache.append", .what = "past the end of a linear cache", .got = "position 3 + 2 tokens"});
  const std::vector<uint32_t> sequences{0, 1, 0};
  EXPECT_ERROR(cache.append(encoder, {.keys = tokens(device, 3), .values = tokens(device, 3), .sequences = sequences}),
               {.op = "AttentionCache",
                .what = "the sequence is full",
                .got = "sequence 0 at position 4",
                .expected = "less than capacity 4",
                .fix = "Grow the cache or let it overwrite the oldest, or truncate the sequence."});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  REQUIRE(append(cache, encoder, 1));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 4u);
  EXPECT_EQ(*cache.nextPosition(1), 0u);
}

TEST(AttentionCache, TruncateDropsLaterTokens) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 3);
  REQUIRE(cache.truncate(1, 0));
  EXPECT_EQ(*cache.nextPosition(0), 1u);
  EXPECT_EQ(*cache.count(0), 1u);
  REQUIRE(cache.truncate(1, 0));
  EXPECT_ERROR(
      cache.truncate(2, 0),
      {.op = "AttentionCache", .what = "the sequence cannot be cut there", .got = "position 2", .expected = "0 to 1"});
}

TEST(AttentionCache, OverwrittenPositionsStayLost) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 10);  // a ring of 4 holds 6 to 9
  EXPECT_EQ(*cache.count(0), 4u);
  REQUIRE(cache.truncate(8, 0));
  EXPECT_EQ(*cache.count(0), 2u);  // 6 and 7; 4 and 5 were overwritten
  EXPECT_ERROR(cache.truncate(5, 0), {.op = "AttentionCache",
                                      .what = "the sequence cannot be cut there",
                                      .got = "position 5",
                                      .expected = "6 to 8",
                                      .fix = "Cut at a position whose predecessors the cache still holds, or reset"});
  EXPECT_EQ(*cache.nextPosition(0), 8u);
  appendNow(cache, device, 1);
  EXPECT_EQ(*cache.count(0), 3u);
  REQUIRE(cache.truncate(6, 0));
  EXPECT_EQ(*cache.count(0), 0u);
  appendNow(cache, device, 4);
  EXPECT_EQ(*cache.count(0), 4u);
  REQUIRE(cache.truncate(0, 0));
  EXPECT_EQ(*cache.nextPosition(0), 0u);
}

TEST(AttentionCache, PinnedPositionsSurviveInARing) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor pinned = kDescriptor;
  pinned.pinned = 2;
  AttentionCache cache = makeCache(device, pinned);
  appendNow(cache, device, 10);  // holds 0, 1, 8, 9
  EXPECT_EQ(*cache.count(0), 4u);
  REQUIRE(cache.truncate(9, 0));
  EXPECT_EQ(*cache.count(0), 3u);
  EXPECT_ERROR(cache.truncate(7, 0), {.what = "cannot be cut there", .expected = "0 to 2, or 8 to 9"});
  EXPECT_ERROR(cache.truncate(3, 0), {.what = "cannot be cut there"});
  REQUIRE(cache.truncate(2, 0));
  EXPECT_EQ(*cache.count(0), 2u);
  appendNow(cache, device, 2);  // the ring wrapped
  EXPECT_EQ(*cache.count(0), 4u);
  REQUIRE(cache.truncate(1, 0));
  EXPECT_EQ(*cache.count(0), 1u);
}

TEST(AttentionCache, ResetsOneSequenceOrAll) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  for (uint32_t sequence = 0; sequence < 3; ++sequence) appendNow(cache, device, 6, sequence);
  REQUIRE(cache.reset(1));
  EXPECT_EQ(*cache.nextPosition(0), 6u);
  EXPECT_EQ(*cache.nextPosition(1), 0u);
  cache.reset();
  EXPECT_EQ(*cache.nextPosition(0), 0u);
  EXPECT_EQ(*cache.nextPosition(2), 0u);
  appendNow(cache, device, 2);
  EXPECT_EQ(*cache.count(0), 2u);
}

TEST(AttentionCache, CopiesAndMovesReferToTheSameCache) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  AttentionCache copy = cache;
  AttentionCache moved = std::move(cache);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 1));
  REQUIRE(append(copy, encoder, 2));
  REQUIRE(append(moved, encoder, 1));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 4u);
  EXPECT_EQ(*copy.nextPosition(0), 4u);
  EXPECT_EQ(*moved.nextPosition(0), 4u);
}

TEST(AttentionCache, RowsOfDifferentSequencesNeedNoBarrier) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  const std::vector<uint32_t> first{0}, second{1};
  REQUIRE(cache.append(encoder, {.keys = tokens(device, 1), .values = tokens(device, 1), .sequences = first}));
  REQUIRE(cache.append(encoder, {.keys = tokens(device, 1), .values = tokens(device, 1), .sequences = second}));
  EXPECT_EQ(encoder.summary().barriers, 0u);
  REQUIRE(cache.append(encoder, {.keys = tokens(device, 1), .values = tokens(device, 1), .sequences = second}));
  EXPECT_EQ(encoder.summary().barriers, 0u);  // the next slot
}

TEST(AttentionCache, ServesMoreSequencesThanOneWriteHolds) {
  const auto device = REQUIRE(Device::makeDefault());
  const auto count = static_cast<uint32_t>(2 * KVCacheWrite::kMaxRows + 3);
  AttentionCache cache = REQUIRE(AttentionCache::make(
      device,
      {.kvHeads = 1, .headDim = 2, .capacity = 2, .sequences = count, .dtype = DType::f32, .isStorageOnly = true}));
  std::vector<float> numbers(count * 2);
  std::vector<uint32_t> sequences(count);
  for (uint32_t i = 0; i < count; ++i) {
    numbers[2 * i] = numbers[2 * i + 1] = static_cast<float>(i + 1);
    sequences[i] = count - 1 - i;
  }
  const Tensor source = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({count, 1, 2}))));
  REQUIRE(source.write(std::as_bytes(std::span(numbers))));
  CommandEncoder encoder(device);
  REQUIRE(cache.append(encoder, {.keys = source, .values = source, .sequences = sequences}));
  EXPECT_EQ(encoder.summary().total.dispatches, 3u);
  EXPECT_EQ(encoder.summary().barriers, 0u);
  REQUIRE(REQUIRE(encoder.commit()).wait());
  std::vector<float> stored(count * 4);
  REQUIRE(cache.view().keys.read(std::as_writable_bytes(std::span(stored))));
  for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(stored[sequences[i] * 4], static_cast<float>(i + 1));
  EXPECT_EQ(*cache.nextPosition(count - 1), 1u);

  CommandEncoder longer(device);
  sequences.pop_back();
  EXPECT_ERROR(cache.append(longer, {.keys = source, .values = source, .sequences = sequences}),
               {.what = "the rows do not match the listed sequences"});
  EXPECT_EQ(longer.summary().total.dispatches, 0u);
}

}  // namespace mnk::test
