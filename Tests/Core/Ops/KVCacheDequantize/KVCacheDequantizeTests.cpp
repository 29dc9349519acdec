// KVCacheDequantize on every device against the meaning of bytes and scales that the test itself makes up.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "KVCacheDequantizeRun.hpp"

namespace mnk::test {

namespace {

// What vectors of one head mean whose codes and scales are these.
std::vector<double> readBack(const std::shared_ptr<Device>& device, const KVCodec& codec, uint64_t headDim,
                             std::span<const std::byte> codes, std::span<const std::byte> scales, KVDomain domain) {
  const uint64_t slots = codes.size() / REQUIRE(sizes(codec, headDim)).codeBytes;
  GuardedOperands operands(device);
  const KVCacheDequantizeCase read{
      .stored = {.write = {.heads = 1, .headDim = headDim, .valueHeadDim = 0, .capacity = slots, .sourceTokens = slots},
                 .keyCodec = codec},
      .domain = domain};
  const KVCacheDequantize op = makeOp(read, operands.maker());
  operands.set("key codes", codes);
  operands.set("key scales", scales);
  run(device, op);
  return valuesOf(DType::f32, operands.now("keys"));
}

}  // namespace

// Every coding is among them.
TEST(KVCacheDequantize, FollowsTheReference) {
  Seeded random(4, 4);
  std::vector<KVCacheDequantizeCase> cases;
  std::set<std::tuple<KVCodec::Name, uint32_t, uint64_t>> seen;
  for (uint64_t i = 0; i < 900; ++i) {
    KVCacheDequantizeCase& read = cases.emplace_back(drawnDequantize(random));
    const KVCacheWriteCase& slots = read.stored.write;
    read.name = fmt::format("case {}: {} at {} and {} at {}", i, read.stored.keyCodec.text(), slots.headDim,
                            read.stored.valueCodec.text(), slots.valueHeadDim);
    if (slots.heads == 0 || slots.sourceTokens == 0) continue;
    const auto see = [&](const KVCodec& codec, uint64_t headDim) { seen.insert({codec.name, codec.bits, headDim}); };
    if (read.reads != KVReads::values && !read.stored.hasDenseKeys) see(read.stored.keyCodec, slots.headDim);
    if (read.reads != KVReads::keys && !read.stored.hasDenseValues) see(read.stored.valueCodec, slots.valueHeadDim);
  }
  EXPECT_EQ(seen.size(), everyCoding().size());
  runOnEveryDevice(cases);
}

// A scale that is NaN, as vectors with a NaN may be stored, gives NaN; its neighbors are numbers.
TEST(KVCacheDequantize, PassesNaNOn) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (KVDomain domain : {KVDomain::rotated, KVDomain::original}) {
      const auto got = readBack(device, {.bits = 4}, 32, std::vector<std::byte>(48, std::byte{0x77}),
                                rawBytes(std::vector<uint16_t>{0x3c00, 0x7e00, 0x3c00}), domain);
      for (size_t j = 0; j < got.size(); ++j) EXPECT_EQ(std::isnan(got[j]), j / 32 == 1);
    }
  });
}

// Memory may hold anything: what a byte has beyond its code does not lead out of the table.
TEST(KVCacheDequantize, ReadsTheLowBitsOfABytesCode) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint32_t bits : {5u, 6u}) {
      std::vector<std::byte> bytes(512);
      for (size_t j = 0; j < 256; ++j) {
        bytes[j] = std::byte(j);
        bytes[256 + j] = std::byte(j & ((1u << bits) - 1));
      }
      const auto got = readBack(device, {KVCodec::Name::mlx1, bits}, 256, bytes, rawBytes(std::vector<float>{16, 16}),
                                KVDomain::rotated);
      EXPECT(std::equal(got.begin(), got.begin() + 256, got.begin() + 256));
    }
  });
}

// A norm near the largest number stays one. The elements are equal; the transform adds them all up in one place.
TEST(KVCacheDequantize, ReadsHugeVectors) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint64_t blocks : {1, 2}) {
      const float norm = blocks == 1 ? 3e38f : 1e37f;
      const auto got = readBack(device, {KVCodec::Name::mlx1, 4}, 256 * blocks,
                                std::vector<std::byte>(128 * blocks, std::byte{0x88}),
                                rawBytes(std::vector<float>(blocks, norm)), KVDomain::original);
      const double expected = 0.128395 * double{norm} * (blocks == 1 ? 1 : std::sqrt(512));
      EXPECT(std::abs(std::abs(got[0]) / expected - 1) < 1e-6);
      for (size_t j = 1; j < got.size(); ++j) EXPECT_EQ(got[j], 0.0);
    }
  });
}

}  // namespace mnk::test
