// The attention of mlx-native as calls of FlashDecode, against the reference over the slots that its kernels see: keys
// by their slots, with the slot of the oldest one, and windows that are there for one type of mask alone.
#include <cmath>

#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/FlashDecode/AttentionHistory.hpp"

namespace mnk::test {

namespace {

// The parameters of a call there.
struct Preset {
  uint64_t heads = 4;
  uint64_t kvHeads = 2;
  uint64_t seqLen = 0;  // slots that are in use
  uint64_t capacity = 0;
  uint64_t maskType = 1;
  uint64_t slidingWindow = 0;
  uint64_t ringStart = 0;
  double scale = 0.0625;
  uint64_t headDim = 256;

  std::string text() const {
    return fmt::format("heads {}/{}, {} of {} slots, mask {}, window {}, ring start {}", heads, kvHeads, seqLen,
                       capacity, maskType, slidingWindow, ringStart);
  }
  // The number of positions after which a ring stands so: any number of turns may lie behind it.
  uint64_t length() const { return seqLen < capacity ? seqLen : 3 * capacity + ringStart; }
};

const std::vector<Preset> kPresets{
    {.seqLen = 1, .capacity = 8},
    {.heads = 2, .kvHeads = 2, .seqLen = 31, .capacity = 40},
    {.heads = 8, .kvHeads = 1, .seqLen = 33, .capacity = 40, .maskType = 0, .scale = 1},
    {.seqLen = 64, .capacity = 64, .ringStart = 0},
    {.seqLen = 64, .capacity = 64, .ringStart = 17},
    {.seqLen = 100, .capacity = 100, .maskType = 1, .slidingWindow = 16, .ringStart = 99},
    {.seqLen = 64, .capacity = 80, .maskType = 2, .slidingWindow = 16},
    {.seqLen = 64, .capacity = 64, .maskType = 2, .slidingWindow = 16, .ringStart = 5},
    {.seqLen = 64, .capacity = 64, .maskType = 2, .slidingWindow = 1, .ringStart = 0},
    {.seqLen = 50, .capacity = 64, .maskType = 2, .slidingWindow = 50},
    {.seqLen = 50, .capacity = 64, .maskType = 2, .slidingWindow = 200},
    {.seqLen = 50, .capacity = 50, .maskType = 2, .slidingWindow = 0, .ringStart = 49},
    {.seqLen = 200, .capacity = 200, .maskType = 2, .slidingWindow = 130, .ringStart = 77},
};

bool isVisibleThere(const Preset& p, uint64_t slot) {
  if (slot >= p.seqLen) return false;
  const uint64_t logical = (slot + p.capacity - p.ringStart) % p.capacity;
  const bool hasWindow = p.maskType == 2 && p.slidingWindow > 0 && p.seqLen > p.slidingWindow;
  return logical < p.seqLen && logical >= (hasWindow ? p.seqLen - p.slidingWindow : 0);
}

using Numbers = std::vector<float>;

// Queries [heads, D]; keys and values of all slots.
std::vector<double> attendedThere(const Preset& p, KVLayout layout, const Numbers& queries, const Numbers& keys,
                                  const Numbers& values) {
  // There, 65504 is taken away from scores that are hidden, so that their weight underflows.
  return attended({.heads = p.heads,
                   .kvHeads = p.kvHeads,
                   .headDim = p.headDim,
                   .length = p.capacity,
                   .layout = layout,
                   .queries = queries,
                   .keys = keys,
                   .values = values,
                   .options = {.scale = static_cast<float>(p.scale), .isCausal = false},
                   .sees = [&](uint64_t, uint64_t slot) { return isVisibleThere(p, slot); }});
}

// The error that mlx-native's callers compare, relative to what is expected.
template <typename Expected>
double nmse(const Numbers& got, const Expected& expected) {
  double error = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(got[i] - expected[i], 2);
    all += std::pow(expected[i], 2);
  }
  return got.size() == expected.size() ? error / all : INFINITY;
}

// Elements rounded to f16, as numbers and as a tensor.
struct Halves {
  Numbers values;
  Tensor tensor;

  Halves(const std::shared_ptr<Device>& device, const Numbers& elements, const std::vector<uint64_t>& shape)
      : tensor(REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make(shape))))) {
    std::vector<uint64_t> bits;
    for (const float element : elements) {
      bits.push_back(nearestBits(DType::f16, element));
      values.push_back(static_cast<float>(valueOf(DType::f16, bits.back())));
    }
    REQUIRE(tensor.write(bytesOfBits(DType::f16, bits)));
  }
};

Numbers uniform(Seeded& random, uint64_t count) {
  Numbers elements(count);
  for (float& element : elements) element = static_cast<float>(random.below(20001)) / 10000 - 1;
  return elements;
}

// The call here for one there. Queries that are rounded to f16 are an f16 tensor.
FlashDecode callFor(const Preset& p, const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& out,
                    uint32_t splits) {
  const bool hasWindow = p.maskType == 2 && p.slidingWindow > 0;
  return {.queries = queries,
          .cache = KVCacheView{.keys = keys, .values = values, .wrap = KVWrap::ring},
          .sequences = {{0, p.length()}},
          .results = {.output = out},
          .options = {.scale = static_cast<float>(p.scale),
                      .window = hasWindow ? static_cast<uint32_t>(p.slidingWindow) : 0,
                      .splits = splits}};
}

// There, a query is turned, attends to codes, and the result is turned back, in three calls. Here that is one.
void expectAttendedOverCodes(const std::shared_ptr<Device>& device, Seeded& random, uint64_t headDim,
                             const KVQuantizedStorage& storage) {
  const Context context(fmt::format("{} of {} bits, head dim {}", name(storage.codec), storage.valueBits, headDim));
  const bool isRotated = storage.codec == KVCodec::Name::mlx1;
  const Preset p{.seqLen = 20, .capacity = 20, .maskType = 2, .slidingWindow = 12, .headDim = headDim};
  AttentionCache cache = makeCache(device, {.kvHeads = 2,
                                            .headDim = static_cast<uint32_t>(headDim),
                                            .capacity = 20,
                                            .dtype = DType::f16,
                                            .quantized = storage});
  const Shape rows = REQUIRE(Shape::make({4, headDim}));
  const Tensor sourceValues = someTokens(device, random, 20, 2, headDim);
  const Tensor queries = REQUIRE(someTokens(device, random, 1, 4, headDim).reshaped(rows));
  const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, rows));
  const Tensor keys = tokens(device, 20, 2, headDim), values = tokens(device, 20, 2, headDim);
  const Tensor rotatedQueries = REQUIRE(Tensor::zeros(device, DType::f32, rows));
  CommandEncoder encoder(device);
  REQUIRE(cache.append(encoder, someTokens(device, random, 20, 2, headDim), sourceValues));
  if (isRotated) {
    REQUIRE(encoder.encode(
        Hadamard{.from = queries, .into = rotatedQueries, .signs = KVCodec::Name::mlx1, .isInverse = false}));
    REQUIRE(cache.dequantize(encoder, keys, values, 0, 0, KVDomain::rotated));
  } else {
    REQUIRE(cache.dequantize(encoder, keys, std::nullopt, 0, 0, KVDomain::original));
    REQUIRE(cache.dequantize(encoder, std::nullopt, values, 0, 0, KVDomain::rotated));
  }
  REQUIRE(cache.attend(encoder, queries, {.output = out}, {.scale = static_cast<float>(p.scale), .window = 12}));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  const auto there = attendedThere(p, KVLayout::tokenMajor, floatsOf(isRotated ? rotatedQueries : queries),
                                   floatsOf(keys), floatsOf(values));
  if (!isRotated) {
    EXPECT(nmse(floatsOf(values), floatsOf(sourceValues)) <= (storage.valueBits == 8 ? 1e-4 : 5e-3));
    EXPECT(nmse(floatsOf(out), there) <= 1e-10);
    return;
  }
  const Tensor back = numbers(device, {there.begin(), there.end()}, rows);
  REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& undo) {
    return undo.encode(Hadamard{.from = back, .signs = KVCodec::Name::mlx1, .isInverse = true});
  }));
  EXPECT(nmse(floatsOf(out), floatsOf(back)) <= 1e-6);
}

}  // namespace

// Values that are 1 at the element of their slot alone make results of the weights. The peer port is one split, and
// nwg32 are 32.
TEST(FlashDecodePreset, ExactlyTheVisibleSlotsHaveWeight) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(7);
    for (const Preset& p : kPresets) {
      const Context context(p.text());
      const uint64_t vectors = p.kvHeads * p.capacity;
      const Halves queries(device, uniform(random, p.heads * 256), {p.heads, 256});
      const Halves keys(device, uniform(random, vectors * 256), {p.kvHeads, p.capacity, 256});
      Numbers ones(vectors * 256);
      for (uint64_t vector = 0; vector < vectors; ++vector) ones[vector * 256 + vector % p.capacity] = 1;
      const Halves values(device, ones, {p.kvHeads, p.capacity, 256});
      const auto expected = attendedThere(p, KVLayout::headMajor, queries.values, keys.values, values.values);
      const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.tensor.shape()));
      for (const uint32_t splits : {1u, 32u}) {
        REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) {
          return encoder.encode(callFor(p, queries.tensor, keys.tensor, values.tensor, out, splits));
        }));
        const Numbers weights = floatsOf(out);
        EXPECT(nmse(weights, expected) <= 1e-6);
        for (uint64_t i = 0; i < weights.size(); ++i) {
          // Weights of scores that halves compute may underflow.
          const bool isSmall = expected[i] < 1e-6 && weights[i] == 0;
          if (isVisibleThere(p, i % 256) ? weights[i] > 0 || isSmall : weights[i] == 0) continue;
          fail(__FILE__, __LINE__, fmt::format("slot {} of head {} has weight {}", i % 256, i / 256, weights[i]));
        }
      }
    }
  });
}

TEST(FlashDecodePreset, QuantizedAttentionRotatesQueriesAndResults) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(10);
    for (const uint64_t headDim : {256, 512}) {
      for (const uint32_t bits : {4u, 5u, 6u, 8u}) {
        expectAttendedOverCodes(device, random, headDim,
                                {.codec = KVCodec::Name::mlx1,
                                 .keyBits = bits,
                                 .valueBits = bits,
                                 .scaleFactor = headDim == 512 ? 0.75f : 1});
      }
    }
  });
}

// There, keys are copied as f16 and values quantized without a rotation, so that queries and results are not rotated.
TEST(FlashDecodePreset, HybridAttentionRotatesNothing) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(10);
    for (const uint64_t headDim : {256, 512}) {
      for (const uint32_t bits : {5u, 6u, 8u}) {
        expectAttendedOverCodes(
            device, random, headDim,
            {.codec = KVCodec::Name::mlx1Unrotated, .valueBits = bits, .planes = KVQuantizedPlanes::values});
      }
    }
  });
}

}  // namespace mnk::test
