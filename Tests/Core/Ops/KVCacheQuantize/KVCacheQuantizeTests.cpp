// KVCacheQuantize on every device against the reference.
#include <algorithm>
#include <array>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "KVCacheQuantizeRun.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/StoredVector.hpp"

namespace mnk::test {

TEST(KVCacheQuantize, QuantizesEveryHeadDimWithEveryCodec) {
  runOnEveryDevice(codecCases());
}

TEST(KVCacheQuantize, FollowsTheReference) {
  runOnEveryDevice(drawnQuantizes(kDrawnQuantizes));
}

TEST(KVCacheQuantize, SharesManyVectorsAmongFewerLanes) {
  runOnEveryDevice(manyVectorsCases());
}

// What counts is what is left when means and channel scales are applied: nothing, or more than f32 holds.
TEST(KVCacheQuantize, JudgesVectorsByWhatIsCoded) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    std::array<float, 64> means, channelScales;
    means.fill(3.7f);
    channelScales.fill(-2.0f);
    channelScales[40] = 1e10f;
    const VectorCoding coding{.codec = {.bits = 5}, .means = means, .channelScales = channelScales};
    Seeded random;
    std::vector<std::vector<float>> vectors(4, normalVector(random, 64));
    vectors[1].assign(64, 3.7f);
    vectors[2][40] = 1e30f;
    const StoredVectors got = stored(device, coding, vectors);
    EXPECT_EQ(got.counts[0], 1u);
    for (size_t v = 0; v < vectors.size(); ++v)
      EXPECT_EQ(fault(coding, encoded(coding, widened(vectors[v])), got.vectors[v]), "");
    EXPECT_EQ(got.vectors[1].scales[0], 0u);
    EXPECT_EQ(got.vectors[2].scales[0], 0u);
    EXPECT(got.vectors[3].bytes == got.vectors[0].bytes);
  });
}

// Sequences of unequal capacity in one memory, as mlx-native's banked calls have them: row base + head * capacity +
// position holds a vector. Each is a view of a slice.
TEST(KVCacheQuantize, SequencesOfAnyCapacityAreSlicesOfOneMemory) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    struct Bank {
      uint64_t base, capacity, position;
    };
    constexpr uint64_t kHeads = 2, kDim = 256, kRows = 16;
    const VectorCoding coding{.codec = {.name = KVCodec::Name::mlx1, .bits = 8}};
    const auto shape = [](std::initializer_list<uint64_t> extents) { return REQUIRE(Shape::make(extents)); };
    const Tensor codes = REQUIRE(Tensor::zeros(device, DType::u8, shape({kRows, kDim})));
    const Tensor scales = REQUIRE(Tensor::zeros(device, DType::f32, shape({kRows})));
    std::vector<std::vector<float>> expected(kRows);
    Seeded random;
    CommandEncoder encoder(device);
    for (const Bank& bank : {Bank{0, 3, 1}, Bank{6, 5, 4}}) {
      const uint64_t rows = kHeads * bank.capacity;
      const Tensor source = REQUIRE(Tensor::zeros(device, DType::f32, shape({kHeads, kDim})));
      std::vector<float> elements;
      for (uint64_t head = 0; head < kHeads; ++head) {
        auto& vector = expected[bank.base + head * bank.capacity + bank.position] = normalVector(random, kDim);
        elements.insert(elements.end(), vector.begin(), vector.end());
      }
      REQUIRE(source.write(std::as_bytes(std::span(elements))));
      const Tensor ownCodes = REQUIRE(codes.slice(bank.base, rows)), ownScales = REQUIRE(scales.slice(bank.base, rows));
      REQUIRE(encoder.encode(
          KVCacheQuantize{.keys = source,
                          .into = {.keys = {.codec = coding.codec,
                                            .codes = REQUIRE(ownCodes.reshaped(shape({kHeads, bank.capacity, kDim}))),
                                            .scales = REQUIRE(ownScales.reshaped(shape({kHeads, bank.capacity})))}},
                          .position = bank.position}));
    }
    REQUIRE(REQUIRE(encoder.commit()).wait());
    std::vector<std::byte> bytes(kRows * kDim);
    std::vector<uint32_t> norms(kRows);
    REQUIRE(codes.read(bytes));
    REQUIRE(scales.read(std::as_writable_bytes(std::span(norms))));
    for (uint64_t row = 0; row < kRows; ++row) {
      const auto begin = bytes.begin() + static_cast<ptrdiff_t>(row * kDim);
      const StoredVector got{.bytes = {begin, begin + kDim}, .scales = {norms[row]}};
      if (expected[row].empty()) {
        EXPECT(norms[row] == 0 && std::count(begin, begin + kDim, std::byte{0}) == kDim);
      } else {
        EXPECT_EQ(fault(coding, encoded(coding, widened(expected[row])), got), "");
      }
    }
  });
}

TEST(KVCacheQuantize, ProbeReturnsNormalizedElements) {
  runOnEveryDevice(probeCases());
}

}  // namespace mnk::test
