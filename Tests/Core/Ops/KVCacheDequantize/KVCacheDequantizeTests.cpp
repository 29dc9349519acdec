// KVCacheDequantize on every device against the meaning of bytes and scales that the test itself makes up.
#include <algorithm>
#include <cmath>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/Seeded.hpp"
#include "Harness/SoftFloat.hpp"
#include "KVCacheDequantizeRun.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/GuardedOperands.hpp"

namespace mnk::test {

namespace {

using Case = KVCacheDequantizeCase;

// What vectors of one head mean whose codes and scales are these.
std::vector<double> readBack(const std::shared_ptr<Device>& device, const KVCodec& codec, uint64_t headDim,
                             std::span<const std::byte> codes, std::span<const std::byte> scales, KVDomain domain) {
  const KVCodecSizes size = REQUIRE(sizes(codec, headDim));
  const uint64_t slots = codes.size() / size.codeBytes;
  GuardedOperands operands(device);
  const auto make = [&](std::string_view name, DType dtype, std::initializer_list<uint64_t> extents) {
    return operands.make(name, dtype, REQUIRE(Shape::make(extents)), 0);
  };
  KVCacheDequantize op{
      .from = {.keys = {.codec = codec, .codes = make("codes", DType::u8, {1, slots, size.codeBytes})}},
      .keys = make("keys", DType::f32, {slots, 1, headDim}),
      .domain = domain};
  op.from.keys.scales = size.scales == 1 ? make("scales", codec.scaleType(), {1, slots})
                                         : make("scales", codec.scaleType(), {1, slots, size.scales});
  operands.set("codes", codes);
  operands.set("scales", scales);
  CommandEncoder encoder(device, "dequantize");
  REQUIRE(encoder.encode(op));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  return valuesOf(DType::f32, operands.now("keys"));
}

}  // namespace

TEST(KVCacheDequantize, ReadsEveryCodecInBothDomains) {
  Seeded random(1);
  std::vector<Case> cases;
  for (auto [codec, headDim] : everyCoding()) {
    if (codec.bits == 6 && headDim == 512 && codec.name != KVCodec::Name::turbo) codec.scaleFactor = 0.75f;
    const bool isVariant = codec.name > KVCodec::Name::mlx1;  // of two head dims only
    for (KVDomain domain : {KVDomain::rotated, KVDomain::original}) {
      for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        const bool isLong = headDim > 512;
        if (isLong && dtype != DType::f32) continue;
        cases.push_back({.name = fmt::format("{} at {} to {}, {}", codec.text(), headDim, name(dtype),
                                             domain == KVDomain::rotated ? "rotated" : "original"),
                         .keyCodec = codec,
                         .valueCodec = {.name = codec.name, .bits = isVariant ? codec.bits : 4},
                         .headDim = headDim,
                         .valueHeadDim = isLong || isVariant ? 256u : 64u,
                         .heads = isLong ? 1u : 3u,
                         .tokens = isLong ? 1u : 2u,
                         .dtype = dtype,
                         .domain = domain,
                         .hasParameters = codec.name == KVCodec::Name::turbo && coin(random, 1, 3)});
      }
    }
  }
  runOnEveryDevice(cases);
}

TEST(KVCacheDequantize, FollowsTheReference) {
  Seeded random;
  std::vector<Case> cases;
  for (uint64_t i = 0; i < 400; ++i) {
    cases.push_back(drawnDequantize(random));
    cases.back().name = fmt::format("case {}", i);
  }
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
