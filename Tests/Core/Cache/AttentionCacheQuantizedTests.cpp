// The shapes and sizes of caches that store codes, and what can be dequantized. AttentionCacheProperty checks what they
// hold.
#include "Harness/FakeDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "QuantizedCacheFixture.hpp"

namespace mnk::test {

TEST(AttentionCacheQuantized, ReportsItsShapesAndSizes) {
  const AttentionCache cache = makeCache(FakeDevice::make(), turboDescriptor());
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
}

TEST(AttentionCacheQuantized, OfOnePlaneReportsItsShapesAndSizes) {
  const auto device = FakeDevice::make();
  const AttentionCache cache = makeCache(device, mixed(turboDescriptor(), KVQuantizedPlanes::values, DType::bf16));
  const AttentionCacheDescriptor& d = cache.descriptor();
  EXPECT(d.dtype == DType::bf16 && d.quantized->planes == KVQuantizedPlanes::values);
  EXPECT_EQ(d.quantized->keyBits, 0u);
  EXPECT_EQ(d.quantized->valueBits, 3u);
  const auto view = cache.quantizedView();
  EXPECT(view->keys.isDense() && !view->values->isDense() && !view->keys.scales);
  EXPECT_EQ(view->keys.codes.shape(), REQUIRE(Shape::make({3, 2, 4, 32})));
  EXPECT(view->keys.codes.dtype() == DType::bf16);
  EXPECT_EQ(view->values->codes.shape(), REQUIRE(Shape::make({3, 2, 4, 24})));
  EXPECT(cache.view().keys.dtype() == DType::bf16 && cache.view().values->dtype() == DType::u8);
  EXPECT_EQ(cache.bytesPerToken(), 2u * (64 + 24 + 2));
  EXPECT_EQ(cache.byteCount(), cache.bytesPerToken() * 3 * 4);
  EXPECT(cache.text().starts_with("2 heads of 32 and 64 as bf16 and turbo of 3 bits, 3 sequences"));
  const AttentionCache other = makeCache(device, mixed(turboDescriptor(), KVQuantizedPlanes::keys, DType::f32));
  EXPECT_EQ(other.bytesPerToken(), 2u * (20 + 2 + 256));
  EXPECT(other.text().starts_with("2 heads of 32 and 64 as turbo of 5 bits and f32, 3 sequences"));
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

TEST(AttentionCacheQuantized, ReadsOnlyHeldPositions) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = turboDescriptor();
  descriptor.pinned = 1;
  AttentionCache cache = makeCache(device, descriptor);
  CommandEncoder encoder(device);
  REQUIRE(cache.append(encoder, tokens(device, 7, 2, 32), tokens(device, 7, 2, 64), 0));  // holds 0, 4, 5, 6
  const auto read = [&](uint64_t position, uint64_t count, uint32_t sequence = 0) {
    return cache.dequantize(encoder, tokens(device, count, 2, 32), std::nullopt, position, sequence);
  };
  REQUIRE(read(0, 1));
  REQUIRE(read(4, 3));
  REQUIRE(read(7, 0));
  for (const auto& [position, count] : {std::pair(0, 2), {3, 2}, {7, 1}, {8, 0}}) {
    EXPECT_ERROR(read(position, count),
                 {.op = "AttentionCache",
                  .what = "the cache does not hold these positions",
                  .got = fmt::format("position {} + {} token", position, count),
                  .expected = "positions 4 to 6 and the first 1",
                  .fix = "Read positions that were appended and that the ring has not overwritten."});
  }
  EXPECT_ERROR(read(UINT64_MAX, 1), {.op = "AttentionCache.dequantize"});
  EXPECT_ERROR(read(0, 1, 3), {.op = "AttentionCache", .what = "the sequence is not in the cache"});
  EXPECT_ERROR(cache.dequantize(encoder, std::nullopt, std::nullopt, 0, 0), {.op = "AttentionCache.dequantize"});
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
