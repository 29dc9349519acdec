// A cache that stores codes: it has the positions of a dense cache and the bytes KVCacheQuantize writes, and it can be
// dequantized.
#include <cmath>

#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "QuantizedCacheFixture.hpp"

namespace mnk::test {

TEST(AttentionCacheQuantized, ReportsItsShapesAndSizes) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const AttentionCache cache = makeCache(device, turboDescriptor());
    const auto view = cache.quantizedView();
    if (!view) return fail(__FILE__, __LINE__, "no quantized view");
    EXPECT_EQ(view->keys.codes.shape(), REQUIRE(Shape::make({3, 2, 4, 20})));
    EXPECT_EQ(view->keys.scales.shape(), REQUIRE(Shape::make({3, 2, 4})));
    EXPECT_EQ(view->values->codes.shape(), REQUIRE(Shape::make({3, 2, 4, 24})));
    EXPECT(view->keys.scales.dtype() == DType::f16);
    EXPECT_EQ(cache.view().keys.shape(), view->keys.codes.shape());
    EXPECT(cache.view().keys.dtype() == DType::u8 && cache.view().wrap == KVWrap::ring);
    EXPECT(cache.descriptor().dtype == DType::u8);
    EXPECT_EQ(cache.bytesPerToken(), 2u * (20 + 2 + 24 + 2));
    EXPECT_EQ(cache.byteCount(), cache.bytesPerToken() * 3 * 4);
    EXPECT_EQ(cache.bytesSaved(), int64_t{3 * 4} * (2 * (32 + 64) * 2 - 2 * (20 + 2 + 24 + 2)));
  });
}

TEST(AttentionCacheQuantized, TwoScalesPerVectorAddAnAxis) {
  const AttentionCache cache = makeCache(
      FakeDevice::make(), {.kvHeads = 1,
                           .headDim = 512,
                           .capacity = 3,
                           .quantized = KVQuantizedStorage{
                               .codec = KVCodec::Name::mlx1, .keyBits = 8, .valueBits = 4, .scaleFactor = 0.5f}});
  EXPECT_EQ(cache.quantizedView()->keys.codes.shape(), REQUIRE(Shape::make({1, 1, 3, 512})));
  EXPECT_EQ(cache.quantizedView()->values->codes.shape(), REQUIRE(Shape::make({1, 1, 3, 256})));
  EXPECT_EQ(cache.quantizedView()->keys.scales.shape(), REQUIRE(Shape::make({1, 1, 3, 2})));
  EXPECT_EQ(cache.quantizedView()->keys.codec.scaleFactor, 0.5f);
  EXPECT_EQ(cache.bytesPerToken(), 512u + 8 + 256 + 8);
}

TEST(AttentionCacheQuantized, DenseCachesReportSizesToo) {
  AttentionCacheDescriptor dense = kDescriptor;
  EXPECT_EQ(makeCache(FakeDevice::make(), dense).bytesSaved(), 0);
  EXPECT_EQ(makeCache(FakeDevice::make(), dense).bytesPerToken(), 2u * 2 * 4 * 2);
  dense.dtype = DType::f32;
  EXPECT_EQ(makeCache(FakeDevice::make(), dense).bytesSaved(), -int64_t{2 * 2 * 4 * 2 * 4 * 3});
  EXPECT(!makeCache(FakeDevice::make(), dense).quantizedView());
}

// Writing to the tensors of the descriptor does not change the cache.
TEST(AttentionCacheQuantized, MeansAndChannelScalesAreCopied) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = turboDescriptor();
  const Tensor means = constants(device, 1, 2, 32), scales = constants(device, 2, 2, 32);
  descriptor.quantized->keyMeans = means;
  descriptor.quantized->keyChannelScales = scales;
  descriptor.quantized->valueMeans = constants(device, 3, 2, 64);
  const AttentionCache cache = makeCache(device, descriptor);
  REQUIRE(means.write(rawBytes(std::vector<float>(64, 9))));
  REQUIRE(scales.write(rawBytes(std::vector<float>(64, 0))));
  const auto view = cache.quantizedView();
  EXPECT(floatsOf(*view->keys.means) == std::vector<float>(64, 1));
  EXPECT(floatsOf(*view->keys.channelScales) == std::vector<float>(64, 2));
  EXPECT(floatsOf(*view->values->means) == std::vector<float>(128, 3));
  EXPECT(cache.descriptor().quantized->keyMeans->range().begin == view->keys.means->range().begin);
}

TEST(AttentionCacheQuantized, NeedsADeviceWithEnoughMemory) {
  AttentionCacheDescriptor descriptor = turboDescriptor();
  descriptor.quantized->keyMeans = constants(FakeDevice::make(), 1, 2, 32);
  EXPECT_ERROR(AttentionCache::make(nullptr, descriptor), {.what = "no device"});
  for (uint32_t buffer = 0; buffer < 5; ++buffer) {
    const auto device = FakeDevice::make();
    device->failAt(FakeDevice::Call::makeBuffer, buffer);
    EXPECT(!AttentionCache::make(device, descriptor));
  }
}

// Appends write the bytes that KVCacheQuantize writes to the cache's memory at the same positions.
TEST(AttentionCacheQuantized, AppendsAreQuantizedAtTheirPositions) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(1);
    AttentionCacheDescriptor descriptor = turboDescriptor();
    descriptor.pinned = 1;
    descriptor.quantized->keyMeans = constants(device, 0.25f, 2, 32);
    descriptor.quantized->keyChannelScales = constants(device, 3, 2, 32);
    descriptor.quantized->options = {.candidates = 1, .valueScale = KVScaleRule::unbiased};
    AttentionCache cache = makeCache(device, descriptor);
    const AttentionCache other = makeCache(device, descriptor);
    CommandEncoder encoder(device);
    uint64_t position = 0;
    for (const uint64_t count : {3, 1, 2}) {  // the ring wraps
      const Tensor keys = someTokens(device, random, count, 2, 32), values = someTokens(device, random, count, 2, 64);
      REQUIRE(cache.append(encoder, keys, values, 1));
      REQUIRE(encoder.encode(KVCacheQuantize{.keys = keys,
                                             .values = values,
                                             .into = *other.quantizedView(),
                                             .sequence = 1,
                                             .position = position,
                                             .options = descriptor.quantized->options}));
      position += count;
    }
    const Tensor keys = someTokens(device, random, 3, 2, 32), values = someTokens(device, random, 3, 2, 64);
    const std::vector<uint32_t> sequences{2, 1, 2};
    REQUIRE(cache.append(encoder, {.keys = keys, .values = values, .sequences = sequences}));
    REQUIRE(encoder.encode(
        KVCacheQuantize{.keys = keys,
                        .values = values,
                        .into = *other.quantizedView(),
                        .rows = KVCacheWrite::Rows{sequences, std::vector<uint32_t>{0, uint32_t(position), 1}},
                        .options = descriptor.quantized->options}));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT_EQ(*cache.nextPosition(1), 7u);
    EXPECT_EQ(*cache.count(1), 4u);
    EXPECT_EQ(*cache.nextPosition(2), 2u);
    EXPECT(contents(*cache.quantizedView()) == contents(*other.quantizedView()));
    EXPECT(contents(*cache.quantizedView()) != contents(*makeCache(device, descriptor).quantizedView()));
  });
}

TEST(AttentionCacheQuantized, ARefusedOpAdvancesNothing) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, turboDescriptor());
  CommandEncoder encoder(device);
  EXPECT_ERROR(cache.append(encoder, tokens(device, 1, 2, 64), tokens(device, 1, 2, 64), 0),
               {.op = "AttentionCache.append"});
  EXPECT_ERROR(cache.append(encoder, tokens(device, 1, 2, 32), tokens(device, 1, 2, 64), 3),
               {.op = "AttentionCache", .what = "the sequence is not in the cache"});
  REQUIRE(encoder.commit());
  EXPECT_EQ(*cache.nextPosition(0), 0u);
}

// Eight bits leave an error that is small relative to the numbers, in the original domain and for both planes.
TEST(AttentionCacheQuantized, ReadsBackAppendedTokens) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(2);
    AttentionCacheDescriptor descriptor = turboDescriptor();
    descriptor.quantized->keyBits = descriptor.quantized->valueBits = 8;
    descriptor.quantized->keyMeans = constants(device, -1, 2, 32);
    descriptor.quantized->valueMeans = constants(device, 1, 2, 64);
    descriptor.quantized->keyChannelScales = constants(device, 0.5f, 2, 32);
    AttentionCache cache = makeCache(device, descriptor);
    const Tensor keys = someTokens(device, random, 6, 2, 32), values = someTokens(device, random, 6, 2, 64);
    const Tensor readKeys = tokens(device, 4, 2, 32), readValues = tokens(device, 4, 2, 64);
    CommandEncoder encoder(device);
    REQUIRE(cache.append(encoder, keys, values, 2));
    REQUIRE(cache.dequantize(encoder, readKeys, readValues, 2, 2));  // in the same step
    REQUIRE(REQUIRE(encoder.commit()).wait());
    const auto expectClose = [](const Tensor& read, const Tensor& written, uint64_t skipped) {
      const std::vector<float> got = floatsOf(read), expected = floatsOf(written);
      // Codebook entries of 8 bits are within 0.06 of each other, except for the outermost; norms are about 2.5.
      for (size_t i = 0; i < got.size(); ++i) EXPECT(std::abs(got[i] - expected[skipped + i]) < 0.2f);
    };
    expectClose(readKeys, keys, 2 * 2 * 32);
    expectClose(readValues, values, 2 * 2 * 64);
  });
}

TEST(AttentionCacheQuantized, ReadsOnlyHeldPositions) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = turboDescriptor();
  descriptor.pinned = 1;
  AttentionCache cache = makeCache(device, descriptor);
  CommandEncoder first(device);
  REQUIRE(cache.append(first, tokens(device, 7, 2, 32), tokens(device, 7, 2, 64), 0));
  REQUIRE(first.commit());  // holds 0, 4, 5, 6
  CommandEncoder encoder(device);
  const auto read = [&](uint64_t position, uint64_t count) {
    return cache.dequantize(encoder, tokens(device, count, 2, 32), std::nullopt, position, 0);
  };
  REQUIRE(read(0, 1));
  REQUIRE(read(4, 3));
  REQUIRE(read(6, 1));
  REQUIRE(read(7, 0));
  const ExpectedError gone{.op = "AttentionCache",
                           .what = "the cache does not hold these positions",
                           .expected = "positions 4 to 6 and the first 1",
                           .fix = "Read positions that were appended and that the ring has not overwritten."};
  for (const auto& [position, count] : {std::pair(0, 2), {0, 4}, {1, 1}, {3, 1}, {3, 2}, {6, 2}, {7, 1}, {8, 0}}) {
    const Context context(fmt::format("{} + {}", position, count));
    EXPECT_ERROR(read(position, count), (gone));
  }
  EXPECT_ERROR(read(UINT64_MAX, 1), {.op = "AttentionCache.dequantize"});
  EXPECT_ERROR(cache.dequantize(encoder, tokens(device, 1, 2, 32), std::nullopt, 0, 3),
               {.op = "AttentionCache", .what = "the sequence is not in the cache"});
  EXPECT_ERROR(cache.dequantize(encoder, std::nullopt, std::nullopt, 0, 0), {.op = "AttentionCache.dequantize"});

  // An encoder sees its own appends, and no longer the positions they overwrote.
  REQUIRE(cache.append(encoder, tokens(device, 1, 2, 32), tokens(device, 1, 2, 64), 0));
  REQUIRE(read(7, 1));
  EXPECT_ERROR(read(4, 1), {.what = "does not hold", .got = "position 4 + 1 token of sequence 0"});
  CommandEncoder another(device);
  REQUIRE(cache.dequantize(another, tokens(device, 1, 2, 32), std::nullopt, 4, 0));
}

TEST(AttentionCacheQuantized, DoesNotReadSuspectPositions) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, turboDescriptor());
  const auto append = [&](CommandEncoder& encoder, uint64_t count) {
    return cache.append(encoder, tokens(device, count, 2, 32), tokens(device, count, 2, 64), 0);
  };
  CommandEncoder good(device);
  REQUIRE(append(good, 2));
  REQUIRE(good.commit());
  device->holdCompletions();
  CommandEncoder bad(device);
  REQUIRE(append(bad, 1));
  REQUIRE(bad.commit());
  EXPECT(device->finishNext(fakeFailure()));
  CommandEncoder encoder(device);
  REQUIRE(cache.dequantize(encoder, tokens(device, 2, 2, 32), std::nullopt, 0, 0));
  EXPECT_ERROR(cache.dequantize(encoder, tokens(device, 2, 2, 32), std::nullopt, 1, 0), {.what = "suspect"});
}

TEST(AttentionCacheQuantized, ADenseCacheSuggestsAnAlternative) {
  const auto device = FakeDevice::make();
  const AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  EXPECT_ERROR(cache.dequantize(encoder, tokens(device, 1), std::nullopt, 0, 0),
               {.op = "AttentionCache",
                .what = "only a quantized cache can be dequantized",
                .got = "a cache of f16",
                .expected = "a cache of quantized storage",
                .fix = "Read the keys and values of a dense cache as they are, at the slots of their positions."});
}

}  // namespace mnk::test
