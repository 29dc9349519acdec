// What only the matrix kernel can get wrong: the range of halves, and a device that must be asked for its layout.
#include <algorithm>
#include <cmath>
#include <future>

#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/Seeded.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/OpRun.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kDim = 64;
constexpr uint64_t kKeys = 40;

Tensor tensorOf(const std::shared_ptr<Device>& device, DType dtype, const std::vector<uint64_t>& extents) {
  return REQUIRE(Tensor::zeros(device, dtype, REQUIRE(Shape::make(extents))));
}

// Tokens of one head, from a token's number and an element's.
template <typename Element>
Tensor tokensOf(const std::shared_ptr<Device>& device, Element element) {
  std::vector<float> elements;
  for (uint64_t i = 0; i < kKeys * kDim; ++i) elements.push_back(element(i / kDim, i % kDim));
  return numbers(device, elements, REQUIRE(Shape::make({kKeys, 1, kDim})));
}

QuantizedKVPlane planeOf(const std::shared_ptr<Device>& device, const KVCodec& codec) {
  const uint64_t bytes = REQUIRE(sizes(codec, kDim)).codeBytes;
  return {.codec = codec,
          .codes = tensorOf(device, DType::u8, {1, kKeys, bytes}),
          .scales = tensorOf(device, codec.scaleType(), {1, kKeys})};
}

FlashDecode over(const std::shared_ptr<Device>& device, const QuantizedKVCacheView& cache,
                 AttentionOptions::Kernel kernel) {
  std::vector<float> queries(2 * kDim);
  for (size_t i = 0; i < queries.size(); ++i) queries[i] = std::sin(static_cast<float>(i));
  return {.queries = numbers(device, queries, REQUIRE(Shape::make({2, kDim}))),
          .cache = cache,
          .sequences = {{0, kKeys}},
          .results = {.output = tensorOf(device, DType::f32, {2, kDim})},
          .options = {.kernel = kernel}};
}

}  // namespace

TEST(FlashDecodeMatrix, ScalesOfValuesMayDifferByAnyFactor) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const KVCodec& codec : {KVCodec{.bits = 4}, KVCodec{.bits = 8}, KVCodec{KVCodec::Name::mlx1, 4}}) {
      // In the first tile, and in one that changes what the tiles before it count in. If scores rise, the last keys
      // have all the weight, and their values are small.
      for (const auto [size, key, rises] : {std::tuple{1e-6f, uint64_t{0}, false},
                                            {1e-3f, 0, false},
                                            {1.0f, 0, false},
                                            {1e3f, 0, false},
                                            {40.0f, kKeys - 1, false},
                                            {1e7f, 0, true}}) {
        const Context context(
            fmt::format("{}, value {} of size {}{}", codec.text(), key, size, rises ? ", rising scores" : ""));
        Seeded random;
        const auto any = [&] { return static_cast<float>(random.below(2001)) / 1000 - 1; };
        const Tensor values = tokensOf(
            device, [&](uint64_t token, uint64_t) { return any() * (token == key ? size : 1) * (rises ? 1e-3f : 1); });
        const Tensor keys = tokensOf(device, [&](uint64_t token, uint64_t i) {
          const auto x = static_cast<float>(i);
          return rises && token >= kKeys - 4 ? 10 * (std::sin(x) + std::sin(kDim + x)) : any();
        });
        const QuantizedKVCacheView cache{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
        run(device, KVCacheQuantize{.keys = keys, .values = values, .into = cache});
        const auto attended = [&](AttentionOptions::Kernel kernel) {
          const FlashDecode op = over(device, cache, kernel);
          run(device, op);
          return floatsOf(*op.results.output);
        };
        const auto expected = attended(AttentionOptions::Kernel::vector),
                   got = attended(AttentionOptions::Kernel::matrix);
        double error = 0, squares = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          error += std::pow(double{got[i]} - expected[i], 2);
          squares += std::pow(double{expected[i]}, 2);
        }
        // A value that is a thousand times the others hides them: they are subnormal halves beside it.
        if (!(error <= (size > 1 ? 1e-5 : 1e-6) * squares)) {
          fail(__FILE__, __LINE__, fmt::format("error {} of {}", error, squares));
        }
      }
    }
  });
}

// Over one key, a result is its value, and the sum of exponents its score. Rotated one-hot queries have
// elements of equal magnitude, which halves hold exactly, so that results differ by rounding of f32 alone.
TEST(FlashDecodeMatrix, ComputesTheLevelsThatOthersLookUp) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint32_t bits : {3u, 5u, 6u, 7u, 8u}) {
      const KVCodec codec{.bits = bits};
      for (uint32_t first = 0; first < 1u << bits; first += kDim) {
        const Context context(fmt::format("{} bits, codes from {}", bits, first));
        const QuantizedKVCacheView cache{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
        std::vector<uint32_t> codes;
        for (uint32_t i = 0; i < kDim; ++i) codes.push_back((first + 37 * i % kDim) % (1u << bits));
        const std::vector<uint16_t> scales(kKeys, 0x3c00);  // 1
        for (const QuantizedKVPlane* plane : {&cache.keys, &*cache.values}) {
          std::vector<std::byte> all(plane->codes.byteCount());
          std::ranges::copy(packed(codec, codes), all.begin());
          REQUIRE(plane->codes.write(all));
          REQUIRE(plane->scales.write(rawBytes(scales)));
        }
        const auto attended = [&](AttentionOptions::Kernel kernel) {
          FlashDecode op = over(device, cache, kernel);
          op.sequences = {{0, 1}};
          op.results.logSumExp = tensorOf(device, DType::f32, {2});
          std::vector<float> queries(2 * kDim);
          queries[5] = queries[kDim + 40] = 1;
          REQUIRE(op.queries.tensor.write(rawBytes(queries)));
          run(device, op);
          std::vector<float> results = floatsOf(*op.results.output);
          for (const float score : floatsOf(*op.results.logSumExp)) results.push_back(score);
          return results;
        };
        const auto expected = attended(AttentionOptions::Kernel::vector),
                   got = attended(AttentionOptions::Kernel::matrix);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT(std::abs(got[i] - expected[i]) <= 1e-6f * (1 + std::abs(expected[i])));
      }
    }
  });
}

TEST(FlashDecodeMatrix, AHandlerOfFinishedWorkDoesNotWaitForTheDevice) {
  const auto device = hostDevice({});
  const KVCodec codec{.bits = 4};
  const QuantizedKVCacheView cache{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
  const auto attend = [&](AttentionOptions::Kernel kernel) {
    CommandEncoder encoder(device, "next");
    return encoder.encode(over(device, cache, kernel));
  };
  std::promise<std::pair<Result<void>, Result<void>>> answered;
  CommandEncoder encoder(device, "first");
  const auto done = REQUIRE(encoder.commit([&](const Result<Summary>&) {
    auto byMatrix = attend(AttentionOptions::Kernel::matrix);
    answered.set_value({std::move(byMatrix), attend(AttentionOptions::Kernel::automatic)});
  }));
  const auto [byMatrix, chosen] = answered.get_future().get();
  REQUIRE(done.wait());
  EXPECT_ERROR(byMatrix, {.code = ErrorCode::unsupported, .what = "cannot run the matrix kernel"});
  EXPECT(bool(chosen));
  EXPECT(device->probe().matrixLayout != MatrixLayout::unknown);
  EXPECT(bool(attend(AttentionOptions::Kernel::matrix)));
  // A plan without a device takes no layout for granted.
  EXPECT_ERROR(plan(over(device, cache, AttentionOptions::Kernel::matrix)),
               {.code = ErrorCode::unsupported, .got = "no device", .fix = "Use automatic."});
}

}  // namespace mnk::test
