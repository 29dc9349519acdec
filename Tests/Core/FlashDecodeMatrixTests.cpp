// What only the matrix kernel can get wrong: the range of halves, a device that must be asked for its layout, when it
// is chosen, and how many simdgroups it has room for.
#include <cmath>
#include <future>

#include "HostTestSupport.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Ops/FlashDecodeLayout.hpp"
#include "Support/EveryDevice.hpp"
#include "Support/RawBytes.hpp"
#include "Support/Seeded.hpp"

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

FlashDecode over(const std::shared_ptr<Device>& device, const QuantizedKVCacheView& cache, FlashDecodeKernel kernel) {
  const Tensor queries = tensorOf(device, DType::f32, {2, kDim});
  std::vector<float> numbers(2 * kDim);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
  REQUIRE(queries.write(rawBytes(numbers)));
  return {.queries = queries,
          .over = cache,
          .sequences = {{0, kKeys}},
          .results = {.into = tensorOf(device, DType::f32, {2, kDim})},
          .options = {.kernel = kernel}};
}

}  // namespace

TEST(FlashDecodeMatrix, ScalesOfValuesMayDifferByAnyFactor) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const KVCodec& codec : {KVCodec{.bits = 4}, KVCodec{.bits = 8}, KVCodec{KVCodecName::mlx1, 4}}) {
      // In the first tile, and in one that changes what the tiles before it count in.
      for (const auto [size, key] :
           {std::pair{1e-6f, uint64_t{0}}, {1e-3f, 0}, {1.0f, 0}, {1e3f, 0}, {40.0f, kKeys - 1}}) {
        const Context context(fmt::format("{}, value {} of size {}", codec.text(), key, size));
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
        fill(keys, 1);
        fill(values, size);
        const QuantizedKVCacheView cache{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
        run(device, KVCacheQuantize{.keys = keys, .values = values, .into = cache});
        const FlashDecode exact = over(device, cache, FlashDecodeKernel::vector);
        const FlashDecode matrix = over(device, cache, FlashDecodeKernel::matrix);
        run(device, exact);
        run(device, matrix);
        const auto expected = numbersOf(*exact.results.into), got = numbersOf(*matrix.results.into);
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

TEST(FlashDecodeMatrix, AHandlerOfFinishedWorkDoesNotWaitForTheDevice) {
  const auto device = hostDevice({});
  const KVCodec codec{.bits = 4};
  const QuantizedKVCacheView cache{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
  const auto attend = [&](FlashDecodeKernel kernel) {
    CommandEncoder encoder(device, "next");
    return encoder.encode(over(device, cache, kernel));
  };
  std::promise<std::pair<Result<void>, Result<void>>> answered;
  CommandEncoder encoder(device, "first");
  const auto done = REQUIRE(encoder.commit([&](const Result<Summary>&) {
    auto byMatrix = attend(FlashDecodeKernel::matrix);
    answered.set_value({std::move(byMatrix), attend(FlashDecodeKernel::automatic)});
  }));
  const auto [byMatrix, chosen] = answered.get_future().get();
  REQUIRE(done.wait());
  EXPECT_ERROR(byMatrix, {.code = ErrorCode::unsupported, .what = "has no matrices that the kernel knows"});
  EXPECT(bool(chosen));
  EXPECT(device->matrixLayout() != MatrixLayout::unknown);
  EXPECT(bool(attend(FlashDecodeKernel::matrix)));
}

TEST(FlashDecodeMatrix, APlanWithoutADeviceTakesNoLayoutForGranted) {
  const auto device = hostDevice({});
  const KVCodec codec{.bits = 4};
  const QuantizedKVCacheView cache{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
  EXPECT_ERROR(plan(over(device, cache, FlashDecodeKernel::matrix)),
               {.code = ErrorCode::unsupported, .got = "no device", .fix = "Let the kernel be chosen."});
}

TEST(FlashDecodeMatrix, IsChosenByTheNumberOfRows) {
  const auto device = hostDevice({});
  const KVCodec codec{.bits = 4};
  const QuantizedKVCacheView coded{.keys = planeOf(device, codec), .values = planeOf(device, codec)};
  const KVCacheView dense{.keys = tensorOf(device, DType::f16, {1, kKeys, kDim}),
                          .values = tensorOf(device, DType::f16, {1, kKeys, kDim})};
  const auto isChosen = [&](const std::variant<KVCacheView, QuantizedKVCacheView>& cache, uint64_t heads,
                            std::string family, DType queries = DType::f16) {
    const FlashDecode op{.queries = tensorOf(device, queries, {heads, kDim}),
                         .over = cache,
                         .sequences = {{0, kKeys}},
                         .results = {.into = tensorOf(device, DType::f32, {heads, kDim})}};
    return wantsMatrices(op, {.family = std::move(family)});
  };
  EXPECT(!isChosen(coded, 4, "apple9"));
  EXPECT(isChosen(coded, 5, "apple9"));
  EXPECT(!isChosen(dense, 8, "apple9"));
  EXPECT(isChosen(dense, 9, "apple9"));
  EXPECT(!isChosen(coded, 32, "host"));
  EXPECT(!isChosen(dense, 32, "another"));
  // Queries that may be beyond the range of halves.
  EXPECT(!isChosen(coded, 32, "apple9", DType::f32));
  EXPECT(!isChosen(dense, 32, "apple9", DType::f32));
}

// Rows that pad a matrix take no memory where simdgroups merge theirs, so that fewer rows leave room for more
// simdgroups.
TEST(FlashDecodeMatrix, HasAsManySimdgroupsAsMemoryHoldsRowsOf) {
  const auto device = hostDevice({});
  const KVCacheView cache{.keys = tensorOf(device, DType::f16, {1, kKeys, 256}),
                          .values = tensorOf(device, DType::f16, {1, kKeys, 256})};
  for (const auto [heads, simdgroups] : {std::pair{uint64_t{1}, 8u}, {4, 7u}, {8, 3u}, {16, 3u}}) {
    const Context context(fmt::format("{} rows", heads));
    const FlashDecode op{.queries = tensorOf(device, DType::f32, {heads, 256}),
                         .over = cache,
                         .sequences = {{0, kKeys}},
                         .results = {.into = tensorOf(device, DType::f32, {heads, 256})},
                         .options = {.kernel = FlashDecodeKernel::matrix}};
    const auto layout = FlashDecodeLayout::of(op, {.profile = {.family = "apple9"}, .hasMatrices = true});
    EXPECT_EQ(layout.simdgroups, simdgroups);
    EXPECT(layout.simdgroups == 8 || layout.threadgroupBytes(op, layout.simdgroups + 1) > 32u * 1024);
  }
}

}  // namespace mnk::test
