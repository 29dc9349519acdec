// KVCacheDequantize on every device against the meaning of bytes and scales that the test itself makes up.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/GuardedTensor.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/Seeded.hpp"
#include "KVCacheDequantizeRun.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/TurboSigns.hpp"

namespace mnk::test {

namespace {

using Case = KVCacheDequantizeCase;

constexpr KVLayout kLayouts[] = {KVLayout::headMajor, KVLayout::tokenMajor};
constexpr DType kTargets[] = {DType::f32, DType::f16, DType::bf16};

}  // namespace

TEST(KVCacheDequantize, ReadsEveryCodecInBothDomains) {
  Seeded random(1);
  std::vector<Case> cases;
  const auto add = [&](const KVCodec& codec, uint64_t headDim) {
    for (KVDomain domain : {KVDomain::rotated, KVDomain::original}) {
      for (DType dtype : kTargets) {
        const bool isLong = headDim > 512;
        if (isLong && dtype != DType::f32) continue;
        cases.push_back({.name = fmt::format("{} at {} to {}, {}", codec.text(), headDim, name(dtype),
                                             domain == KVDomain::rotated ? "rotated" : "original"),
                         .keyCodec = codec,
                         .valueCodec = {.name = codec.name, .bits = 4},
                         .headDim = headDim,
                         .valueHeadDim = isLong ? 256u : 64u,
                         .heads = isLong ? 1u : 3u,
                         .cacheLayout = kLayouts[random.below(2)],
                         .tokens = isLong ? 1u : 2u,
                         .layout = kLayouts[random.below(2)],
                         .dtype = dtype,
                         .domain = domain,
                         .hasParameters = codec.name == KVCodecName::turbo && random.below(3) == 0});
      }
    }
  };
  for (uint32_t bits = 2; bits <= 8; ++bits) {
    for (uint64_t headDim : kTurboHeadDims) add({.bits = bits}, headDim);
  }
  for (uint64_t headDim = 4; headDim <= 4096; headDim *= 2) add({.name = KVCodecName::mlx1, .bits = 4}, headDim);
  for (uint32_t bits : {5, 6, 8}) {
    add({.name = KVCodecName::mlx1, .bits = bits}, 256);
    add({.name = KVCodecName::mlx1, .bits = bits, .scaleFactor = bits == 6 ? 0.75f : 1.0f}, 512);
  }
  runOnEveryDevice(cases);
}

TEST(KVCacheDequantize, ReadsPositionsWhereTheyLie) {
  std::vector<Case> cases;
  for (KVLayout cacheLayout : kLayouts) {
    for (uint32_t pinned : {0u, 2u}) {
      for (uint64_t position : {0, 1, 3, 4, 5, 11, 1000003}) {
        for (uint64_t tokens : {1, 3}) {
          const uint64_t number = cases.size();
          cases.push_back({.name = fmt::format("{} tokens from {} of a ring of 5, {} pinned", tokens, position, pinned),
                           .keyCodec = {.bits = 5},
                           .valueCodec = {.bits = 3},
                           .headDim = 32,
                           .valueHeadDim = 128,
                           .heads = 1 + number % 4,
                           .sequences = number % 3,
                           .sequence = number % 3 == 2 ? 1u : 0u,
                           .cacheLayout = cacheLayout,
                           .pinned = pinned,
                           .position = position,
                           .tokens = tokens,
                           .isRank2 = tokens == 1 && number % 4 == 0,
                           .domain = number % 2 ? KVDomain::rotated : KVDomain::original});
        }
      }
    }
  }
  for (KVLayout layout : kLayouts) {
    for (uint64_t targetSequences : {1, 2, 4}) {
      cases.push_back({.name = fmt::format("{} sequences of tokens", targetSequences),
                       .headDim = 32,
                       .targetSequences = targetSequences,
                       .layout = layout,
                       .dtype = DType::f16});
    }
  }
  for (uint64_t position = 0; position < 5; ++position) {
    cases.push_back({.name = fmt::format("the rest of a linear cache from {}", position),
                     .wrap = KVWrap::linear,
                     .position = position,
                     .tokens = 5 - position});
  }
  runOnEveryDevice(cases);
}

TEST(KVCacheDequantize, ReadsKeysOrValuesAlone) {
  std::vector<Case> cases;
  for (KVReads reads : {KVReads::keys, KVReads::values, KVReads::both}) {
    for (KVDomain domain : {KVDomain::rotated, KVDomain::original}) {
      for (uint64_t shift : {0, 1, 2, 4, 9}) {
        cases.push_back({.name = fmt::format("reads {}, codes at byte {}", static_cast<int>(reads), shift),
                         .keyCodec = {.bits = 7},
                         .valueCodec = {.bits = 4},
                         .headDim = shift == 9   ? 112u
                                    : shift == 2 ? 512u
                                                 : 128u,
                         .valueHeadDim = shift == 4 || shift == 2 ? 80u : 32u,
                         .dtype = kTargets[shift % 3],
                         .domain = domain,
                         .reads = reads,
                         .hasParameters = true,
                         .codeShift = shift,
                         .targetShift = shift / 2 * 4});
      }
    }
  }
  runOnEveryDevice(cases);
}

// A scale that is NaN, as vectors with a NaN may be stored, gives NaN; its neighbors are numbers.
TEST(KVCacheDequantize, PassesNaNOn) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (KVDomain domain : {KVDomain::rotated, KVDomain::original}) {
      const GuardedTensor codes(device, DType::u8, REQUIRE(Shape::make({1, 3, 16})));
      const GuardedTensor scales(device, DType::f16, REQUIRE(Shape::make({1, 3})));
      const GuardedTensor into(device, DType::f32, REQUIRE(Shape::make({3, 1, 32})));
      codes.set(std::vector<std::byte>(48, std::byte{0x77}));
      scales.set(rawBytes(std::vector<uint16_t>{0x3c00, 0x7e00, 0x3c00}));
      CommandEncoder encoder(device, "dequantize");
      REQUIRE(encoder.encode(KVCacheDequantize{
          .from = {.keys = {.codec = {.bits = 4}, .codes = codes.tensor(), .scales = scales.tensor()}},
          .keys = into.tensor(),
          .domain = domain}));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      std::vector<float> got(96);
      std::memcpy(got.data(), into.bytes().data(), 96 * sizeof(float));
      for (size_t j = 0; j < got.size(); ++j) EXPECT_EQ(std::isnan(got[j]), j / 32 == 1);
    }
  });
}

// Memory may hold anything: what a byte has beyond its code does not lead out of the table.
TEST(KVCacheDequantize, ReadsTheLowBitsOfABytesCode) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint32_t bits : {5u, 6u}) {
      const GuardedTensor codes(device, DType::u8, REQUIRE(Shape::make({1, 2, 256})));
      const GuardedTensor scales(device, DType::f32, REQUIRE(Shape::make({1, 2})));
      const GuardedTensor into(device, DType::f32, REQUIRE(Shape::make({2, 1, 256})));
      std::vector<std::byte> bytes(512);
      for (size_t j = 0; j < 256; ++j) {
        bytes[j] = std::byte(j);
        bytes[256 + j] = std::byte(j & ((1u << bits) - 1));
      }
      codes.set(bytes);
      scales.set(rawBytes(std::vector<float>{16, 16}));
      CommandEncoder encoder(device, "dequantize");
      REQUIRE(encoder.encode(KVCacheDequantize{
          .from = {.keys = {.codec = {KVCodecName::mlx1, bits}, .codes = codes.tensor(), .scales = scales.tensor()}},
          .keys = into.tensor(),
          .domain = KVDomain::rotated}));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      const std::vector<std::byte> got = into.bytes();
      EXPECT(std::equal(got.begin(), got.begin() + 1024, got.begin() + 1024));
    }
  });
}

// A norm near the largest number stays one.
TEST(KVCacheDequantize, ReadsHugeVectors) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint64_t headDim : {256, 512}) {
      const uint64_t blocks = headDim / 256;
      const GuardedTensor codes(device, DType::u8, REQUIRE(Shape::make({1, 1, headDim / 2})));
      const GuardedTensor scales(device, DType::f32,
                                 blocks == 1 ? REQUIRE(Shape::make({1, 1})) : REQUIRE(Shape::make({1, 1, 2})));
      const GuardedTensor into(device, DType::f32, REQUIRE(Shape::make({1, 1, headDim})));
      codes.set(std::vector<std::byte>(headDim / 2, std::byte{0x88}));
      // Of equal elements; the transform adds them all up in one place.
      scales.set(rawBytes(std::vector<float>(blocks, blocks == 1 ? 3e38f : 1e37f)));
      CommandEncoder encoder(device, "dequantize");
      REQUIRE(encoder.encode(KVCacheDequantize{
          .from = {.keys = {.codec = {KVCodecName::mlx1, 4}, .codes = codes.tensor(), .scales = scales.tensor()}},
          .keys = into.tensor()}));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      std::vector<float> got(headDim);
      std::memcpy(got.data(), into.bytes().data(), headDim * sizeof(float));
      const double level = 0.128395;
      const double expected = blocks == 1 ? level * 3e38 : level * 1e37 * std::sqrt(512);
      EXPECT(std::abs(std::abs(got[0]) / expected - 1) < 1e-6);
      for (size_t j = 1; j < headDim; ++j) EXPECT_EQ(got[j], 0.0f);
    }
  });
}

}  // namespace mnk::test
