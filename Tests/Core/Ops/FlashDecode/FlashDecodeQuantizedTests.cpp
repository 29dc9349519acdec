// FlashDecode over quantized caches: made-up codes against their meaning, and what was really stored against what
// reads it back.
#include <cmath>
#include <cstring>

#include "Cache/QuantizedCacheFixture.hpp"
#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"

namespace mnk::test {

namespace {

struct StoredCase {
  KVCodec keys;
  KVCodec values;
  uint64_t headDim;
  bool hasParameters = false;
  double worst = 0;  // squares of errors that codes may bring, relative to the results of the vectors themselves
  uint64_t valueHeadDim = headDim;
};

constexpr uint64_t kTokens = 21, kHeads = 2, kGroup = 3, kRows = 2;

QuantizedKVPlane emptyPlane(const std::shared_ptr<Device>& device, const KVCodec& codec, uint64_t headDim) {
  const KVCodecSizes size = REQUIRE(sizes(codec, headDim));
  const Shape scales =
      size.scales == 1 ? REQUIRE(Shape::make({kHeads, kTokens})) : REQUIRE(Shape::make({kHeads, kTokens, size.scales}));
  return {.codec = codec,
          .codes = REQUIRE(Tensor::zeros(device, DType::u8, REQUIRE(Shape::make({kHeads, kTokens, size.codeBytes})))),
          .scales = REQUIRE(Tensor::zeros(device, codec.scaleType(), scales))};
}

// Attention in double over a dense cache.
std::vector<AttendedRow> attendedOver(const FlashDecode& op, const Tensor& keys, const Tensor& values,
                                      KVLayout layout) {
  FlashDecode dense = op;
  dense.cache = KVCacheView{.keys = keys, .values = values, .layout = layout};
  return attended(dense,
                  {{"queries", bytesOf(op.queries.tensor)}, {"keys", bytesOf(keys)}, {"values", bytesOf(values)}});
}

double relativeError(const std::vector<float>& got, const std::vector<AttendedRow>& expected) {
  double wrong = 0, size = 0;
  for (size_t row = 0; row < expected.size(); ++row) {
    const auto& output = expected[row].output;
    for (size_t j = 0; j < output.size(); ++j) {
      const double difference = static_cast<double>(got[row * output.size() + j]) - output[j];
      wrong += difference * difference;
      size += output[j] * output[j];
    }
  }
  return wrong / size;
}

void expectStoredVectorsAreAttendedTo(const std::shared_ptr<Device>& device, const StoredCase& stored, Seeded& random) {
  const uint64_t headDim = stored.headDim, valueHeadDim = stored.valueHeadDim;
  const auto zeros = [&](std::initializer_list<uint64_t> extents) {
    return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make(extents))));
  };
  const Tensor sourceKeys = someTokens(device, random, kTokens, kHeads, headDim);
  const Tensor sourceValues = someTokens(device, random, kTokens, kHeads, valueHeadDim);
  QuantizedKVCacheView cache{.keys = emptyPlane(device, stored.keys, headDim),
                             .values = emptyPlane(device, stored.values, valueHeadDim)};
  if (stored.hasParameters) {
    cache.keys.means = constants(device, 0.5f, kHeads, headDim);
    cache.keys.channelScales = constants(device, 1.5f, kHeads, headDim);
    cache.values->means = constants(device, -0.25f, kHeads, valueHeadDim);
  }
  FlashDecode op{.queries = someTokens(device, random, kRows, kHeads * kGroup, headDim), .cache = cache};
  op.sequences = {{0, kTokens}};
  op.results.output = zeros({kRows, kHeads * kGroup, valueHeadDim});
  const Tensor keys = zeros({kHeads, kTokens, headDim}), values = zeros({kHeads, kTokens, valueHeadDim});

  CommandEncoder encoder(device, "stored and attended");
  REQUIRE(encoder.encode(KVCacheQuantize{.keys = sourceKeys, .values = sourceValues, .into = cache}));
  REQUIRE(encoder.encode(op));
  REQUIRE(
      encoder.encode(KVCacheDequantize{.from = cache, .keys = keys, .values = values, .layout = KVLayout::headMajor}));
  REQUIRE(REQUIRE(encoder.commit()).wait());

  // KVCacheDequantize is within 1e-12, in squares, of what codes mean.
  const bool isByMatrix = wantedKernel(AttentionShape(op), device->profile()) == AttentionKernel::matrix;
  expectRows(DType::f32, bytesOf(*op.results.output), attendedOver(op, keys, values, KVLayout::headMajor), isByMatrix);
  const auto exact = attendedOver(op, sourceKeys, sourceValues, KVLayout::tokenMajor);
  const double error = relativeError(floatsOf(*op.results.output), exact);
  if (!(error <= stored.worst)) fail(__FILE__, __LINE__, fmt::format("codes bring an error of {}", error));
}

}  // namespace

TEST(FlashDecodeQuantized, AttendsToCodesOfEveryCodec) {
  runOnEveryDevice(quantizedCases());
}

TEST(FlashDecodeQuantized, AttendsToElementsBesideCodes) {
  runOnEveryDevice(mixedDecodeCases());
}

TEST(FlashDecodeQuantized, AttendsToWhatWasStored) {
  const StoredCase cases[] = {
      {{.bits = 8}, {.bits = 8}, 64, false, 2e-3},
      {{.bits = 8}, {.bits = 4}, 128, true, 2e-2},
      {{.bits = 5}, {.bits = 3}, 32, true, 0.3},
      {{.bits = 8}, {.bits = 8}, 80, false, 2e-3},
      {{.bits = 8}, {.bits = 4}, 96, true, 2e-2},
      {{.bits = 8}, {.bits = 7}, 112, true, 2e-3},
      {{.bits = 8}, {.bits = 6}, 192, true, 5e-3, 128},
      {{KVCodec::Name::mlx1, 4}, {KVCodec::Name::mlx1, 4}, 256, false, 0.3},
      {{KVCodec::Name::mlx1, 8}, {KVCodec::Name::mlx1, 8}, 512, false, 0.01},
      {{KVCodec::Name::mlx1Unrotated, 8}, {KVCodec::Name::mlx1Unrotated, 8}, 256, false, 0.01},
      {{KVCodec::Name::mlx1Unrotated, 8}, {KVCodec::Name::mlx1Unrotated, 6}, 512, false, 0.02},
      {{KVCodec::Name::mlx1Affine4, 4}, {KVCodec::Name::mlx1Affine4, 4}, 256, false, 0.4},
      {{KVCodec::Name::mlx1Affine4, 4}, {KVCodec::Name::mlx1Affine4, 4}, 512, false, 0.4},
  };
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random(11);
    for (const StoredCase& stored : cases) {
      const Context context(fmt::format("{} at {} and {} at {}", stored.keys.text(), stored.headDim,
                                        stored.values.text(), stored.valueHeadDim));
      expectStoredVectorsAreAttendedTo(device, stored, random);
    }
  });
}

}  // namespace mnk::test
