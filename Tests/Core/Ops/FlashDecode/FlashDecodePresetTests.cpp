// The attention of mlx-native as calls of FlashDecode, against the reference over the slots that its kernels see: keys
// by their slots, with the slot of the oldest one, and windows that are there for one type of mask alone.
#include <cmath>

#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/FlashDecode/TokenAttention.hpp"

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

  Halves(const std::shared_ptr<Device>& device, const Numbers& elements, const std::vector<uint64_t>& shape) {
    std::vector<uint16_t> bits;
    for (const float element : elements) {
      bits.push_back(static_cast<uint16_t>(nearestBits(DType::f16, element)));
      values.push_back(static_cast<float>(valueOf(DType::f16, bits.back())));
    }
    tensor = REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make(shape))));
    REQUIRE(tensor.write(std::as_bytes(std::span(bits))));
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

}  // namespace

TEST(FlashDecodePreset, PeerPortIsOneSplitAndNwg32AreThirtyTwo) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(7);
    for (const Preset& p : kPresets) {
      const Context context(p.text());
      const Halves queries(device, uniform(random, p.heads * 256), {p.heads, 256});
      const Halves keys(device, uniform(random, p.kvHeads * p.capacity * 256), {p.kvHeads, p.capacity, 256});
      const Halves values(device, uniform(random, p.kvHeads * p.capacity * 256), {p.kvHeads, p.capacity, 256});
      const std::vector<double> expected =
          attendedThere(p, KVLayout::headMajor, queries.values, keys.values, values.values);
      const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.tensor.shape()));
      for (const uint32_t splits : {1u, 32u}) {
        const FlashDecode call = callFor(p, queries.tensor, keys.tensor, values.tensor, out, splits);
        CommandEncoder encoder(device);
        REQUIRE(encoder.encode(call));
        REQUIRE(REQUIRE(encoder.commit()).wait());
        EXPECT(nmse(floatsOf(out), expected) <= 1e-6);
      }
    }
  });
}

// Values that are 1 at the element of their slot alone make results of the weights.
TEST(FlashDecodePreset, ExactlyTheVisibleSlotsHaveWeight) {
  const auto device = devicesUnderTest().front().device;
  Seeded random(8);
  for (const Preset& p : kPresets) {
    const Context context(p.text());
    const Halves queries(device, uniform(random, p.heads * 256), {p.heads, 256});
    const Halves keys(device, uniform(random, p.kvHeads * p.capacity * 256), {p.kvHeads, p.capacity, 256});
    Numbers ones(p.kvHeads * p.capacity * 256);
    for (uint64_t vector = 0; vector < p.kvHeads * p.capacity; ++vector) ones[vector * 256 + vector % p.capacity] = 1;
    const Halves values(device, ones, {p.kvHeads, p.capacity, 256});
    const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.tensor.shape()));
    for (const uint32_t splits : {1u, 32u}) {
      CommandEncoder encoder(device);
      REQUIRE(encoder.encode(callFor(p, queries.tensor, keys.tensor, values.tensor, out, splits)));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      const std::vector<float> weights = floatsOf(out);
      for (uint64_t i = 0; i < weights.size(); ++i) {
        const uint64_t slot = i % 256;
        if ((weights[i] > 0) != isVisibleThere(p, slot)) {
          fail(__FILE__, __LINE__, fmt::format("slot {} of head {} has weight {}", slot, i / 256, weights[i]));
        }
      }
    }
  }
}

TEST(FlashDecodePreset, FullyMaskedRowsAreZero) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(9);
    const Preset p{.seqLen = 40, .capacity = 40, .ringStart = 3};
    const Halves queries(device, uniform(random, p.heads * 256), {p.heads, 256});
    const Halves keys(device, uniform(random, p.kvHeads * p.capacity * 256), {p.kvHeads, p.capacity, 256});
    const Tensor mask = numbers(device, std::vector<float>(40, -INFINITY), REQUIRE(Shape::make({1, 40})));
    for (const uint32_t splits : {1u, 32u}) {
      const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.tensor.shape()));
      REQUIRE(out.write(rawBytes(std::vector<float>(p.heads * 256, 7))));
      FlashDecode call = callFor(p, queries.tensor, keys.tensor, keys.tensor, out, splits);
      call.options.mask = mask;
      CommandEncoder encoder(device);
      REQUIRE(encoder.encode(call));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      EXPECT(bytesOf(out) == std::vector<std::byte>(p.heads * 256 * 4));
    }
  });
}

TEST(FlashDecodePreset, OneSplitIsOneDispatch) {
  const auto device = devicesUnderTest().front().device;
  const Preset p{.seqLen = 64, .capacity = 64};
  const Tensor queries = REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({4, 256}))));
  const Tensor cache = REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({2, 64, 256}))));
  const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.shape()));
  const Plan one = REQUIRE(plan(callFor(p, queries, cache, cache, out, 1)));
  EXPECT_EQ(one.dispatches.size(), 1u);
  EXPECT_EQ(one.scratchBytes, 0u);
  const Plan many = REQUIRE(plan(callFor(p, queries, cache, cache, out, 32)));
  EXPECT_EQ(many.dispatches.size(), 2u);
  EXPECT(many.scratchBytes > 0);
}

// There, a query is turned, attends to codes, and the result is turned back, in three calls. Here that is one.
TEST(FlashDecodePreset, QuantizedAttentionRotatesQueriesAndResults) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(10);
    for (const uint64_t headDim : {256, 512}) {
      for (const uint32_t bits : {4u, 5u, 6u, 8u}) {
        const Context context(fmt::format("mlx1, {} bits, head dim {}", bits, headDim));
        const Preset p{.seqLen = 20, .capacity = 20, .maskType = 2, .slidingWindow = 12, .headDim = headDim};
        const float factor = headDim == 512 ? 0.75f : 1;
        AttentionCacheDescriptor descriptor{.kvHeads = 2, .headDim = static_cast<uint32_t>(headDim), .capacity = 20};
        descriptor.quantized =
            KVQuantizedStorage{.codec = KVCodec::Name::mlx1, .keyBits = bits, .valueBits = bits, .scaleFactor = factor};
        AttentionCache cache = makeCache(device, descriptor);
        const Tensor keys = someTokens(device, random, 20, 2, headDim),
                     values = someTokens(device, random, 20, 2, headDim);
        const Tensor queries = someTokens(device, random, 1, 4, headDim);
        const Shape rows = REQUIRE(Shape::make({4, headDim}));
        const Tensor turned = REQUIRE(Tensor::zeros(device, DType::f32, rows));
        const Tensor readKeys = tokens(device, 20, 2, headDim), readValues = tokens(device, 20, 2, headDim);
        const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, rows));
        CommandEncoder encoder(device);
        REQUIRE(cache.append(encoder, keys, values, 0));
        REQUIRE(encoder.encode(Hadamard{.from = REQUIRE(queries.reshaped(rows)),
                                        .into = turned,
                                        .signs = KVCodec::Name::mlx1,
                                        .isInverse = false}));
        REQUIRE(cache.dequantize(encoder, readKeys, readValues, 0, 0, KVDomain::rotated));
        REQUIRE(encoder.encode(FlashDecode{.queries = REQUIRE(queries.reshaped(rows)),
                                           .cache = *cache.quantizedView(),
                                           .sequences = {{0, 20}},
                                           .results = {.output = out},
                                           .options = {.scale = static_cast<float>(p.scale), .window = 12}}));
        REQUIRE(REQUIRE(encoder.commit()).wait());

        const std::vector<double> there =
            attendedThere(p, KVLayout::tokenMajor, floatsOf(turned), floatsOf(readKeys), floatsOf(readValues));
        const Tensor back = numbers(device, {there.begin(), there.end()}, rows);
        CommandEncoder undo(device);
        REQUIRE(undo.encode(Hadamard{.from = back, .signs = KVCodec::Name::mlx1, .isInverse = true}));
        REQUIRE(REQUIRE(undo.commit()).wait());
        EXPECT(nmse(floatsOf(out), floatsOf(back)) <= 1e-6);
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
        const Context context(fmt::format("{} bits, head dim {}", bits, headDim));
        const Preset p{.seqLen = 20, .capacity = 20, .maskType = 2, .slidingWindow = 12, .headDim = headDim};
        AttentionCacheDescriptor descriptor{
            .kvHeads = 2, .headDim = static_cast<uint32_t>(headDim), .capacity = 20, .dtype = DType::f16};
        descriptor.quantized = KVQuantizedStorage{
            .codec = KVCodec::Name::mlx1Unrotated, .valueBits = bits, .planes = KVQuantizedPlanes::values};
        AttentionCache cache = makeCache(device, descriptor);
        const Tensor queries = someTokens(device, random, 1, 4, headDim);
        const Shape rows = REQUIRE(Shape::make({4, headDim}));
        const Tensor readKeys = tokens(device, 20, 2, headDim), readValues = tokens(device, 20, 2, headDim),
                     rotated = tokens(device, 20, 2, headDim);
        const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, rows));
        const Tensor sourceValues = someTokens(device, random, 20, 2, headDim);
        CommandEncoder encoder(device);
        REQUIRE(cache.append(encoder, someTokens(device, random, 20, 2, headDim), sourceValues));
        REQUIRE(cache.dequantize(encoder, readKeys, readValues, 0, 0, KVDomain::original));
        REQUIRE(cache.dequantize(encoder, std::nullopt, rotated, 0, 0, KVDomain::rotated));
        REQUIRE(cache.attend(encoder, REQUIRE(queries.reshaped(rows)), {.output = out},
                             {.scale = static_cast<float>(p.scale), .window = 12}));
        REQUIRE(REQUIRE(encoder.commit()).wait());
        EXPECT(floatsOf(rotated) == floatsOf(readValues));
        EXPECT(nmse(floatsOf(readValues), floatsOf(sourceValues)) <= (bits == 8 ? 1e-4 : 5e-3));
        const std::vector<double> there =
            attendedThere(p, KVLayout::tokenMajor, floatsOf(queries), floatsOf(readKeys), floatsOf(readValues));
        EXPECT(nmse(floatsOf(out), there) <= 1e-10);
      }
    }
  });
}

}  // namespace mnk::test
