// The shape of a cache, when its positions advance, and which calls it refuses. AttentionCacheProperty checks what a
// cache holds.
#include "AttentionCacheFixture.hpp"
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
  AttentionCacheDescriptor descriptor{.kvHeads = 1, .headDim = 8, .pinned = 4};
  struct Expected {
    SlidingWindow sliding;
    uint32_t slots, maxRows;
  };
  for (const auto& [sliding, slots, maxRows] : {Expected{{.window = 32, .maxRows = 16, .maxDraft = 4}, 32 + 16 - 1, 16},
                                                {{.window = 32, .maxRows = 1, .maxDraft = 4}, 32 + 4 - 1, 1},
                                                {{.window = 32}, 32 + 64 - 1, 64},
                                                {{.window = 32, .maxRows = 0}, 32 + 64 - 1, 64}}) {
    descriptor.slidingWindow = sliding;
    const AttentionCache cache = makeCache(device, descriptor);
    EXPECT_EQ(cache.descriptor().capacity, 4 + slots);
    EXPECT_EQ(cache.descriptor().slidingWindow->maxRows, maxRows);
    EXPECT(cache.descriptor().whenFull == KVWrap::ring);
  }
  descriptor.capacity = 100;
  EXPECT_EQ(makeCache(device, descriptor).descriptor().capacity, 100u);
  descriptor.capacity = 0;
  descriptor.slidingWindow = SlidingWindow{.window = UINT32_MAX, .maxRows = UINT32_MAX};
  EXPECT_ERROR(AttentionCache::make(device, descriptor), {.what = "an extent is too large for the kernels"});
}

TEST(AttentionCache, ReportsItsShapesAndSizes) {
  AttentionCacheDescriptor descriptor{.kvHeads = 2, .headDim = 8, .capacity = 5, .sequences = 3, .dtype = DType::bf16};
  const AttentionCache alike = makeCache(FakeDevice::make(), descriptor);
  EXPECT_EQ(alike.descriptor().valueHeadDim, 8u);
  EXPECT_EQ(alike.view().values->shape(), alike.view().keys.shape());
  descriptor.valueHeadDim = 16;
  const AttentionCache cache = makeCache(FakeDevice::make(), descriptor);
  EXPECT_EQ(cache.view().keys.shape(), REQUIRE(Shape::make({3, 2, 5, 8})));
  EXPECT_EQ(cache.view().values->shape(), REQUIRE(Shape::make({3, 2, 5, 16})));
  EXPECT_EQ(cache.view().keys.dtype(), DType::bf16);
  EXPECT(cache.view().wrap == KVWrap::linear && makeCache(FakeDevice::make()).view().wrap == KVWrap::ring);
  EXPECT_EQ(cache.byteCount(), 3u * 2 * 5 * (8 + 16) * 2);
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

TEST(AttentionCache, AppendsToDifferentSlotsNeedNoBarrier) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  const std::vector<uint32_t> second{1};
  REQUIRE(append(cache, encoder, 2));
  REQUIRE(append(cache, encoder, 1));
  for (int row = 0; row < 2; ++row) {
    REQUIRE(cache.append(encoder, {.keys = tokens(device, 1), .values = tokens(device, 1), .sequences = second}));
  }
  EXPECT_EQ(encoder.summary().barriers, 0u);
  REQUIRE(append(cache, encoder, 2));  // slots 3 and 0: the ring wraps
  EXPECT_EQ(encoder.summary().barriers, 1u);
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
  AttentionCache cache =
      makeCache(device, {.kvHeads = 2, .headDim = 4, .capacity = 4, .sequences = 3, .isStorageOnly = true});
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
}

TEST(AttentionCache, OverwrittenPositionsStayLost) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor pinned = kDescriptor;
  pinned.pinned = 2;
  AttentionCache ring = makeCache(device), pinning = makeCache(device, pinned);
  for (AttentionCache* cache : {&ring, &pinning}) appendNow(*cache, device, 10);  // 6 to 9; 0, 1, 8 and 9
  struct Refused {
    AttentionCache& cache;
    uint64_t position;
    std::string_view expected;
  };
  for (const auto& [cache, position, expected] : {Refused{ring, 5, "6 to 10"},
                                                  {ring, 11, "6 to 10"},
                                                  {pinning, 7, "0 to 2, or 8 to 10"},
                                                  {pinning, 3, "0 to 2, or 8 to 10"}}) {
    EXPECT_ERROR(cache.truncate(position, 0),
                 {.op = "AttentionCache",
                  .what = "the sequence cannot be cut there",
                  .got = fmt::format("position {}", position),
                  .expected = expected,
                  .fix = "Cut at a position whose predecessors the cache still holds, or reset"});
  }
  EXPECT_EQ(*ring.nextPosition(0), 10u);
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
