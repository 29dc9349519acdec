// Caches that store codes: their means, their memory and what can be dequantized. AttentionCacheProperty checks what
// they hold.
#include "Harness/FakeDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "QuantizedCacheFixture.hpp"

namespace mnk::test {

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
  RefusedCalls no;
  no(AttentionCache::make(nullptr, descriptor));
  for (uint32_t buffer = 0; buffer < 5; ++buffer) {
    const auto device = FakeDevice::make();
    device->failAt(FakeDevice::Call::makeBuffer, buffer);
    no(AttentionCache::make(device, descriptor));
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
  RefusedCalls no;
  for (const auto& [position, count] : {std::pair(0, 2), {3, 2}, {7, 1}, {8, 0}}) no(read(position, count));
  no(read(UINT64_MAX, 1));
  no(read(0, 1, 3));
  no(cache.dequantize(encoder, std::nullopt, std::nullopt, 0, 0));
}

TEST(AttentionCacheQuantized, ADenseCacheSuggestsAnAlternative) {
  const auto device = FakeDevice::make();
  const AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  RefusedCalls no;
  no(cache.dequantize(encoder, tokens(device, 1), std::nullopt, 0, 0));
}

}  // namespace mnk::test
