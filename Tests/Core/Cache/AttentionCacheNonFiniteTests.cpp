// What becomes of NaN, infinities and numbers beyond f16 that are appended to a cache, as the documentation says.
#include <limits>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

enum class Row { finite, nan };

// A token whose keys or values have this number in one element, between two ordinary tokens: what rows that see it
// give. Rows that do not see it are finite.
Row rowThatSees(const std::shared_ptr<Device>& device, const AttentionCacheDescriptor& descriptor, float number,
                bool isKey, bool inAllElements = false) {
  AttentionCache cache = makeCache(device, descriptor);
  std::vector<float> ordinary(3 * kAttendedHeads * kAttendedDim, 0.5f), special = ordinary;
  for (uint64_t i = 0; i < kAttendedHeads * kAttendedDim; ++i) {
    if (inAllElements || i % kAttendedDim == 3) special[kAttendedHeads * kAttendedDim + i] = number;
  }
  const Shape shape = REQUIRE(Shape::make({3, kAttendedHeads, kAttendedDim}));
  const Tensor keys = numbers(device, isKey ? special : ordinary, shape);
  const Tensor values = numbers(device, isKey ? ordinary : special, shape);
  const Tensor queries = numbers(device, std::vector<float>(3 * kQueryHeads * kAttendedDim, 1.0f),
                                 REQUIRE(Shape::make({3, kQueryHeads, kAttendedDim})));
  const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.shape()));
  REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
    if (auto ok = cache.append(encoder, keys, values, uint32_t{0}); !ok) return ok;
    return cache.attend(encoder, queries, {.output = out}, {.window = 1}, uint32_t{0});
  }));
  const std::vector<float> rows = floatsOf(out);
  const uint64_t rowSize = kQueryHeads * kAttendedDim;
  uint64_t notFinite = 0;
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const bool isSeen = i / rowSize == 1;
    if (!isSeen) EXPECT(std::isfinite(rows[i]));
    notFinite += isSeen && !std::isfinite(rows[i]) ? 1 : 0;
  }
  return notFinite == 0 ? Row::finite : Row::nan;
}

AttentionCacheDescriptor dense(DType dtype) {
  AttentionCacheDescriptor descriptor = attendedDescriptor(8);
  descriptor.dtype = dtype;
  return descriptor;
}

AttentionCacheDescriptor quantized(KVCodec::Name codec, KVQuantizeOptions options = {}) {
  AttentionCacheDescriptor descriptor = attendedDescriptor(8);
  descriptor.headDim = kAttendedDim;
  descriptor.quantized = KVQuantizedStorage{.codec = codec, .options = options};
  return descriptor;
}

}  // namespace

TEST(AttentionCacheNonFinite, ReachesTheRowsThatSeeIt) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const bool isKey : {true, false}) {
      const Context context(isKey ? "a key" : "a value");
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (const float number : {kNaN, kInfinity, -kInfinity}) {
          // A score of minus infinity has no weight.
          const Row expected = isKey && number == -kInfinity ? Row::finite : Row::nan;
          EXPECT(rowThatSees(device, dense(dtype), number, isKey, true) == expected);
        }
      }
      for (const float number : {kNaN, kInfinity, -kInfinity}) {
        EXPECT(rowThatSees(device, quantized(KVCodec::Name::turbo), number, isKey) == Row::nan);
        EXPECT(rowThatSees(device, quantized(KVCodec::Name::turbo, {.nonFinite = KVNonFinite::zero}), number, isKey) ==
               Row::finite);
      }
      // Beyond f16, which ends at 65504: infinite in a cache of f16, and as it is in the others.
      EXPECT(rowThatSees(device, dense(DType::f16), 65519, isKey, true) == Row::finite);
      EXPECT(rowThatSees(device, dense(DType::f16), 65520, isKey, true) == Row::nan);
      EXPECT(rowThatSees(device, dense(DType::bf16), 1e6f, isKey, true) == Row::finite);
      EXPECT(rowThatSees(device, dense(DType::bf16), 3.4e38f, false, true) == Row::nan);
      EXPECT(rowThatSees(device, dense(DType::f32), 1e6f, isKey, true) == Row::finite);
      // Codes: the scale of a vector ends at 65504.
      EXPECT(rowThatSees(device, quantized(KVCodec::Name::turbo), 1e9f, isKey, true) == Row::finite);
    }
  });
}

// Scores of the largest f16 queries and keys with the largest scale are finite.
TEST(AttentionCacheNonFinite, ScoresOfF16AreFiniteWithAnyScale) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    AttentionCache cache = makeCache(device, dense(DType::f16));
    const auto constant = [&](float number, uint64_t rows, uint64_t heads) {
      return numbers(device, std::vector<float>(rows * heads * kAttendedDim, number),
                     REQUIRE(Shape::make({rows, heads, kAttendedDim})));
    };
    REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) {
      return cache.append(encoder, constant(65504, 5, kAttendedHeads), constant(0.5f, 5, kAttendedHeads), uint32_t{0});
    }));
    for (const float query : {65504.0f, -65504.0f, 0.0f, 1.0f}) {
      for (const float scale : {1e-37f, 1.0f, 4e19f / kAttendedDim}) {
        const Context context(fmt::format("queries of {}, a scale of {}", query, scale));
        const Tensor out =
            REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({1, kQueryHeads, kAttendedDim}))));
        REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) {
          return cache.attend(encoder, constant(query, 1, kQueryHeads), {.output = out}, {.scale = scale}, uint32_t{0});
        }));
        EXPECT(largestDifference(floatsOf(out), std::vector<double>(kQueryHeads * kAttendedDim, 0.5)) < kF32Sums);
      }
    }
  });
}

}  // namespace mnk::test
