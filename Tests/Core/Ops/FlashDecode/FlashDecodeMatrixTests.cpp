// What only the matrix kernel can get wrong: the range of halves, a device that must be asked for its layout, when it
// is chosen, and how many simdgroups it has room for.
#include <algorithm>
#include <cmath>
#include <future>

#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/Seeded.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kDim = 64;
constexpr uint64_t kKeys = 40;

Tensor tensorOf(const std::shared_ptr<Device>& device, DType dtype, const std::vector<uint64_t>& extents) {
  return REQUIRE(Tensor::zeros(device, dtype, REQUIRE(Shape::make(extents))));
}

std::vector<float> numbersOf(const Tensor& tensor) {
  std::vector<float> numbers(tensor.shape().elementCount());
  REQUIRE(tensor.read(std::as_writable_bytes(std::span(numbers))));
  return numbers;
}

template <typename Op>
void run(const std::shared_ptr<Device>& device, const Op& op) {
  CommandEncoder encoder(device, "matrix");
  REQUIRE(encoder.encode(op));
  REQUIRE(REQUIRE(encoder.commit()).wait());
}

QuantizedKVPlane planeOf(const std::shared_ptr<Device>& device, const KVCodec& codec) {
  const uint64_t bytes = REQUIRE(sizes(codec, kDim)).codeBytes;
  return {.codec = codec,
          .codes = tensorOf(device, DType::u8, {1, kKeys, bytes}),
          .scales = tensorOf(device, codec.scaleType(), {1, kKeys})};
}

FlashDecode over(const std::shared_ptr<Device>& device, const QuantizedKVCacheView& cache,
                 AttentionOptions::Kernel kernel) {
  const Tensor queries = tensorOf(device, DType::f32, {2, kDim});
  std::vector<float> numbers(2 * kDim);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
  REQUIRE(queries.write(rawBytes(numbers)));
  return {.queries = queries,
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
        const Tensor keys = tensorOf(device, DType::f32, {kKeys, 1, kDim});
        const Tensor values = tensorOf(device, DType::f32, {kKeys, 1, kDim});
        std::vector<float> numbers(kKeys * kDim);
        const auto fill = [&](const Tensor& into, float other) {
          for (size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = (static_cast<float>(random.below(2001)) / 1000 - 1) * (i / kDim == key ? other : 1);
          }
          REQUIRE(into.write(rawBytes(numbers)));
        };
        fill(values, size);
        if (rises) {
          for (float& number : numbers) number *= 1e-3f;
          REQUIRE(values.write(rawBytes(numbers)));
        }
        fill(keys, 1);
        if (rises) {
          for (size_t i = (kKeys - 4) * kDim; i < numbers.size(); ++i) {
            numbers[i] = 10 * (std::sin(static_cast<float>(i % kDim)) + std::sin(static_cast<float>(kDim + i % kDim)));
          }
          REQUIRE(keys.write(rawBytes(numbers)));
        }
        const QuantizedKVCacheView cache{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
        run(device, KVCacheQuantize{.keys = keys, .values = values, .into = cache});
        const FlashDecode exact = over(device, cache, AttentionOptions::Kernel::vector);
        const FlashDecode matrix = over(device, cache, AttentionOptions::Kernel::matrix);
        run(device, exact);
        run(device, matrix);
        const auto expected = numbersOf(*exact.results.output), got = numbersOf(*matrix.results.output);
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
          std::vector<float> numbers = numbersOf(*op.results.output);
          for (const float score : numbersOf(*op.results.logSumExp)) numbers.push_back(score);
          return numbers;
        };
        const auto expected = attended(AttentionOptions::Kernel::vector),
                   got = attended(AttentionOptions::Kernel::matrix);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT(std::abs(got[i] - expected[i]) <= 1e-6f * (1 + std::abs(expected[i])));
      }
    }
  });
}

TEST(FlashDecodeMatrix, ReservesMemoryForTablesOnlyIfLevelsAreLookedUp) {
  const auto device = hostDevice({});
  const auto bytesFor = [&](const KVCodec& keys, const KVCodec& values) {
    const QuantizedKVCacheView cache{.keys = planeOf(device, keys), .values = planeOf(device, values)};
    FlashDecode op = over(device, cache, AttentionOptions::Kernel::matrix);
    op.options.splits = 1;
    const AttentionShape shape(op);
    const auto layout = FlashDecodeLayout::of(shape, {.family = "apple9", .matrixLayout = MatrixLayout::interleaved});
    return layout.threadgroupBytes(1);
  };
  constexpr uint32_t kTables = 1 << 14;
  for (const uint32_t bits : {3u, 5u, 6u, 7u, 8u}) {
    EXPECT(bytesFor({.bits = bits}, {.bits = 8}) < kTables / 4);
    EXPECT_EQ(bytesFor({.bits = bits}, {.bits = 4}), kTables);
    EXPECT_EQ(bytesFor({.bits = 2}, {.bits = bits}), kTables);
  }
  EXPECT_EQ(bytesFor({.bits = 4}, {.bits = 4}), kTables);
  EXPECT_EQ(bytesFor({KVCodec::Name::mlx1, 4}, {KVCodec::Name::mlx1, 4}), kTables);
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
}

TEST(FlashDecodeMatrix, APlanWithoutADeviceTakesNoLayoutForGranted) {
  const auto device = hostDevice({});
  const KVCodec codec{.bits = 4};
  const QuantizedKVCacheView cache{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
  EXPECT_ERROR(plan(over(device, cache, AttentionOptions::Kernel::matrix)),
               {.code = ErrorCode::unsupported, .got = "no device", .fix = "Use automatic."});
}

TEST(FlashDecodeMatrix, IsChosenByTheNumberOfRows) {
  const auto device = hostDevice({});
  const KVCodec codec{.bits = 4};
  const QuantizedKVCacheView quantized{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
  const KVCacheView dense{.keys = tensorOf(device, DType::f16, {1, kKeys, kDim}),
                          .values = tensorOf(device, DType::f16, {1, kKeys, kDim})};
  const auto isChosen = [&](const std::variant<KVCacheView, QuantizedKVCacheView>& cache, uint64_t heads,
                            std::string family, DType queries = DType::f16) {
    const FlashDecode op{.queries = tensorOf(device, queries, {heads, kDim}),
                         .cache = cache,
                         .sequences = {{0, kKeys}},
                         .results = {.output = tensorOf(device, DType::f32, {heads, kDim})}};
    return wantedKernel(AttentionShape(op), {.family = std::move(family)}) == AttentionKernel::matrix;
  };
  EXPECT(!isChosen(quantized, 4, "apple9"));
  EXPECT(isChosen(quantized, 5, "apple9"));
  EXPECT(!isChosen(dense, 4, "apple9"));
  EXPECT(isChosen(dense, 5, "apple9"));
  EXPECT(!isChosen(quantized, 32, "host"));
  EXPECT(!isChosen(dense, 1, "another"));
  EXPECT(isChosen(dense, 2, "another"));
  EXPECT(isChosen(quantized, 1, "another"));
  // Queries that are more precise than halves.
  EXPECT(!isChosen(quantized, 32, "apple9", DType::f32));
  EXPECT(!isChosen(dense, 32, "apple9", DType::f32));
}

// Instances that fit into 128 registers, and tiles that leave no simdgroup without one.
TEST(FlashDecodeMatrix, InstancesDependOnTheDeviceAndTheKeys) {
  const auto device = hostDevice({});
  const auto functionOf = [&](std::string family, uint64_t headDim, uint64_t heads, uint64_t keys) {
    const KVCacheView cache{.keys = tensorOf(device, DType::f16, {1, keys, headDim}),
                            .values = tensorOf(device, DType::f16, {1, keys, headDim})};
    const FlashDecode op{.queries = tensorOf(device, DType::f16, {heads, headDim}),
                         .cache = cache,
                         .sequences = {{0, keys}},
                         .results = {.output = tensorOf(device, DType::f16, {heads, headDim})},
                         .options = {.splits = 1}};
    const AttentionShape shape(op);
    return FlashDecodeLayout::of(shape, {.family = std::move(family), .matrixLayout = MatrixLayout::interleaved})
        .function();
  };
  EXPECT_EQ(functionOf("apple9", 64, 16, 512), "flashDecodeMatrix_64_8_16");
  EXPECT_EQ(functionOf("apple9", 128, 16, 512), "flashDecodeMatrix_128_8_8");
  EXPECT_EQ(functionOf("apple9", 128, 4, 512), "flashDecodeVector_128_128_4");
  EXPECT_EQ(functionOf("apple9", 256, 16, 512), "flashDecodeVector_256_256_4");
  const auto tileOf = [](uint64_t mostKeys) { return matrixTileKeys(128, 8, mostKeys); };
  EXPECT_EQ(tileOf(64), 32u);
  EXPECT_EQ(tileOf(31), 16u);
  EXPECT_EQ(tileOf(0), 8u);
  const FlashDecodeTuning many{.maxMatrixRows = 16}, few{.maxMatrixRows = 8};
  EXPECT_EQ(matrixRows(many, 128, 8), 8u);
  EXPECT_EQ(matrixRows(many, 128, 9), 16u);
  EXPECT_EQ(matrixRows(few, 128, 9), 8u);
  EXPECT_EQ(matrixRows(many, 256, 9), 8u);
}

// A few rows are merged at a time, so that memory holds parts of them from all simdgroups.
TEST(FlashDecodeMatrix, HasAllSimdgroupsForAnyRows) {
  const auto device = hostDevice({});
  constexpr uint64_t kMany = 256;
  const KVCacheView cache{.keys = tensorOf(device, DType::f16, {1, kMany, 256}),
                          .values = tensorOf(device, DType::f16, {1, kMany, 256})};
  for (const uint64_t heads : {1, 4, 8, 16}) {
    const Context context(fmt::format("{} rows", heads));
    const FlashDecode op{.queries = tensorOf(device, DType::f32, {heads, 256}),
                         .cache = cache,
                         .sequences = {{0, kMany}},
                         .results = {.output = tensorOf(device, DType::f32, {heads, 256})},
                         .options = {.splits = 1, .kernel = AttentionOptions::Kernel::matrix}};
    const AttentionShape shape(op);
    for (const auto& [family, simdgroups] : {std::pair{"another", 8u}, {"apple9", 4u}}) {
      const auto layout = FlashDecodeLayout::of(shape, {.family = family, .matrixLayout = MatrixLayout::interleaved});
      EXPECT_EQ(layout.simdgroups, simdgroups);
    }
  }
}

TEST(FlashDecodeMatrix, HasLongTilesWhereASimdgroupHasTwo) {
  const auto device = hostDevice({});
  const KVCodec codec{.bits = 4};
  const auto plane = [&] {
    return QuantizedKVPlane{.codec = codec,
                            .codes = tensorOf(device, DType::u8, {1, 4096, 64}),
                            .scales = tensorOf(device, codec.scaleType(), {1, 4096})};
  };
  const QuantizedKVCacheView cache{.keys = plane(), .values = plane()};
  for (const auto [keys, tile, simdgroups] :
       {std::tuple{uint64_t{1}, 16u, 8u}, {496, 16, 8}, {497, 32, 8}, {2032, 32, 8}, {2033, 32, 12}, {4096, 32, 12}}) {
    const FlashDecode op{.queries = tensorOf(device, DType::f16, {4, 128}),
                         .cache = cache,
                         .sequences = {{0, keys}},
                         .results = {.output = tensorOf(device, DType::f16, {4, 128})},
                         .options = {.splits = 1}};
    const AttentionShape shape(op);
    const auto layout = FlashDecodeLayout::of(shape, {.family = "another", .matrixLayout = MatrixLayout::interleaved});
    EXPECT_EQ(layout.tileKeys, tile);
    EXPECT_EQ(layout.simdgroups, simdgroups);
  }
}

TEST(FlashDecodeMatrix, HasNoMoreSimdgroupsThanTilesBeyondFour) {
  const auto device = hostDevice({});
  const KVCacheView cache{.keys = tensorOf(device, DType::f16, {1, 256, kDim}),
                          .values = tensorOf(device, DType::f16, {1, 256, kDim})};
  for (const auto [keys, splits, simdgroups] :
       {std::tuple{uint64_t{1}, 1u, 4u}, {64, 1, 4}, {65, 1, 5}, {96, 1, 6}, {256, 1, 8}, {256, 2, 8}, {256, 3, 6}}) {
    for (const auto kernel : {AttentionOptions::Kernel::vector, AttentionOptions::Kernel::matrix}) {
      const FlashDecode op{.queries = tensorOf(device, DType::f16, {4, kDim}),
                           .cache = cache,
                           .sequences = {{0, keys}},
                           .results = {.output = tensorOf(device, DType::f16, {4, kDim})},
                           .options = {.splits = splits, .kernel = kernel}};
      const AttentionShape shape(op);
      const auto layout =
          FlashDecodeLayout::of(shape, {.family = "another", .matrixLayout = MatrixLayout::interleaved});
      EXPECT_EQ(layout.simdgroups, simdgroups);
    }
  }
}

}  // namespace mnk::test
