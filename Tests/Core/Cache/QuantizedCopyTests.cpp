// Converting a dense cache to a quantized one writes the bytes that appends to the latter write, at the same positions.
#include "CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

AttentionCacheDescriptor denseDescriptor(DType dtype = DType::f32) {
  return {.kvHeads = 2,
          .headDim = 32,
          .capacity = 6,
          .sequences = 3,
          .dtype = dtype,
          .whenFull = KVWrap::ring,
          .pinned = 2};
}

AttentionCache quantizedNow(const std::shared_ptr<Device>& device, const AttentionCache& cache,
                            const KVQuantizedStorage& storage, uint64_t dispatches) {
  CommandEncoder encoder(device);
  const AttentionCache copy = REQUIRE(cache.quantized(encoder, storage));
  EXPECT_EQ(encoder.summary().total.dispatches, dispatches);
  for (uint32_t sequence = 0; sequence < 3; ++sequence) EXPECT_EQ(*copy.nextPosition(sequence), 0u);
  REQUIRE(REQUIRE(encoder.commit()).wait());
  return copy;
}

}  // namespace

TEST(QuantizedCopy, MatchesAppends) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(1);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const auto planes : {KVQuantizedPlanes::both, KVQuantizedPlanes::keys, KVQuantizedPlanes::values}) {
        for (const bool hasMeans : {false, true}) {
          KVQuantizedStorage storage{.keyBits = 5, .valueBits = 3, .planes = planes};
          storage.options.candidates = hasMeans ? 1 : 5;
          if (hasMeans && storage.hasQuantizedKeys()) storage.keyChannelScales = constants(device, 0.5f, 2, 32);
          if (hasMeans && storage.hasQuantizedValues()) storage.valueMeans = constants(device, 0.25f, 2, 32);
          const Context context(
              fmt::format("{}, planes {}, {} means", name(dtype), static_cast<int>(planes), hasMeans));
          AttentionCacheDescriptor descriptor = denseDescriptor(dtype);
          AttentionCache dense = makeCache(device, descriptor);
          descriptor.quantized = storage;
          AttentionCache expected = makeCache(device, descriptor);
          const auto append = [&](uint64_t count, uint32_t sequence) {
            const Tensor keys = someTokens(device, random, dtype, count, 2, 32),
                         values = someTokens(device, random, dtype, count, 2, 32);
            CommandEncoder encoder(device);
            for (AttentionCache* cache : {&dense, &expected}) REQUIRE(cache->append(encoder, keys, values, sequence));
            REQUIRE(REQUIRE(encoder.commit()).wait());
          };
          // Sequences that hold the same slots share a dispatch.
          for (const uint32_t sequence : {0, 1, 2}) append(4, sequence);
          expectSame(quantizedNow(device, dense, storage, hasMeans ? 3 : 1), expected);
          // One sequence has wrapped, one was truncated since, one is empty.
          append(7, 0);
          append(7, 1);
          for (AttentionCache* cache : {&dense, &expected}) {
            REQUIRE(cache->truncate(9, 1));
            REQUIRE(cache->reset(2));
          }
          AttentionCache copy = quantizedNow(device, dense, storage, 3);
          expectSame(copy, expected);
          // The copy continues at the dense cache's positions, and its ring has lost the same ones.
          EXPECT_EQ(bool(copy.truncate(6, 1)), bool(expected.truncate(6, 1)));
          EXPECT(!copy.truncate(3, 0) && bool(copy.truncate(8, 0)) && bool(expected.truncate(8, 0)));
          appendAlike(device, random, {copy, expected}, 3, 0);
          appendAlike(device, random, {copy, expected}, 2, 2);
          expectSame(copy, expected);
        }
      }
    }
  });
}

TEST(QuantizedCopy, KeepsASlidingWindow) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = denseDescriptor(DType::f16);
  descriptor.capacity = 0;
  descriptor.slidingWindow = {.window = 5, .maxRows = 2};
  const AttentionCache cache = makeCache(device, descriptor);
  CommandEncoder encoder(device);
  const AttentionCache copy = REQUIRE(cache.quantized(encoder, {}));
  EXPECT(copy.descriptor().slidingWindow == cache.descriptor().slidingWindow);
  EXPECT_EQ(copy.descriptor().capacity, cache.descriptor().capacity);
  EXPECT(copy.descriptor().dtype == DType::u8);
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);  // it is empty
}

TEST(QuantizedCopy, IsCommittedWithItsEncoder) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, denseDescriptor());
  const auto append = [&](uint64_t count, uint32_t sequence) {
    CommandEncoder encoder(device);
    REQUIRE(cache.append(encoder, tokens(device, count, 2, 32), tokens(device, count, 2, 32), sequence));
    REQUIRE(encoder.commit());
  };
  append(4, 0);
  std::optional<AttentionCache> dropped;
  {
    CommandEncoder encoder(device);
    dropped = REQUIRE(cache.quantized(encoder, {}));
  }
  EXPECT_EQ(*dropped->nextPosition(0), 0u);
  // The tokens it reads must not change; later tokens may be appended meanwhile.
  CommandEncoder reading(device);
  const AttentionCache copy = REQUIRE(cache.quantized(reading, {}));
  append(1, 0);
  REQUIRE(reading.commit());
  EXPECT_EQ(*copy.nextPosition(0), 4u);
  CommandEncoder stale(device);
  const AttentionCache refused = REQUIRE(cache.quantized(stale, {}));
  append(4, 0);
  EXPECT_ERROR(stale.commit(), {.what = "changed while this encoder recorded", .got = "sequence 0"});
  EXPECT_EQ(*refused.nextPosition(0), 0u);
  // Appends of the same encoder count, and the encoder can use the copy.
  CommandEncoder both(device);
  REQUIRE(cache.append(both, tokens(device, 1, 2, 32), tokens(device, 1, 2, 32), 1));
  AttentionCache later = REQUIRE(cache.quantized(both, {}));
  REQUIRE(later.append(both, tokens(device, 1, 2, 32), tokens(device, 1, 2, 32), 1));
  REQUIRE(both.commit());
  EXPECT_EQ(*later.nextPosition(1), 2u);
  EXPECT_EQ(*later.nextPosition(0), 9u);
}

TEST(QuantizedCopy, AFailureLeavesOnlyTheCopySuspect) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, denseDescriptor());
  CommandEncoder first(device);
  REQUIRE(cache.append(first, tokens(device, 4, 2, 32), tokens(device, 4, 2, 32), 0));
  REQUIRE(first.commit());
  device->holdCompletions();
  CommandEncoder encoder(device);
  const AttentionCache copy = REQUIRE(cache.quantized(encoder, {}));
  REQUIRE(encoder.commit());
  EXPECT(device->finishNext(fakeFailure()));
  EXPECT(copy.isSuspect() && !cache.isSuspect());
  // The outputs of a failed step are not read once they are truncated.
  CommandEncoder failing(device);
  REQUIRE(cache.append(failing, tokens(device, 1, 2, 32), tokens(device, 1, 2, 32), 0));
  REQUIRE(failing.commit());
  EXPECT(device->finishNext(fakeFailure()));
  CommandEncoder again(device);
  EXPECT_ERROR(cache.quantized(again, {}), {.op = "AttentionCache.quantized", .what = "suspect"});
  REQUIRE(cache.truncate(4, 0));
  const AttentionCache recovered = REQUIRE(cache.quantized(again, {}));
  const auto done = REQUIRE(again.commit());
  EXPECT(device->finishNext({}));
  REQUIRE(done.wait());
  EXPECT_EQ(*recovered.nextPosition(0), 4u);
}

TEST(QuantizedCopy, ARecordedStepCopiesAgain) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, denseDescriptor());
  const Tensor one = tokens(device, 1, 2, 32);
  std::optional<AttentionCache> copied;
  const RecordedStep step = REQUIRE(RecordedStep::record(
      device,
      [&](CommandEncoder& encoder) -> Result<void> {
        if (auto appended = cache.append(encoder, one, one, 0); !appended) return appended;
        auto copy = cache.quantized(encoder, {});
        if (!copy) return copy.error();
        copied = *copy;
        return {};
      },
      "a step"));
  for (uint64_t run = 1; run <= 9; ++run) {
    REQUIRE(step.run());
    EXPECT_EQ(*copied->nextPosition(0), run);
    EXPECT_EQ(*copied->count(0), *cache.count(0));
  }
}

TEST(QuantizedCopy, RefusesQuantizedAndUnsuitableCaches) {
  const auto device = FakeDevice::make();
  CommandEncoder encoder(device);
  EXPECT_ERROR(makeCache(device, turboDescriptor()).quantized(encoder, {}),
               {.op = "AttentionCache.quantized",
                .what = "only a dense cache can be quantized",
                .got = "a cache of turbo of 5 bits and 3 bits",
                .expected = "a dense cache",
                .fix = "Dequantize its positions, and append them to a cache of the other storage."});
  EXPECT_ERROR(makeCache(device, kDescriptor).quantized(encoder, {}),
               {.op = "AttentionCache.quantized", .what = "the codec does not have these bits or this head dim"});
  const auto another = FakeDevice::make();
  AttentionCache cache = makeCache(another, denseDescriptor());
  const Tensor one = tokens(another, 1, 2, 32);
  REQUIRE(CommandEncoder::run(another, [&](CommandEncoder& own) { return cache.append(own, one, one, 0); }));
  EXPECT_ERROR(cache.quantized(encoder, {}), {.op = "AttentionCache.quantized"});
}

}  // namespace mnk::test
