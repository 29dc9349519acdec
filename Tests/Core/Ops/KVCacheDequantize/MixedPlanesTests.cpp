// A cache of codes beside elements: its codes are those of a quantized cache, its elements those of a dense one, and
// both are read back as they are from those.
#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kHeads = 3, kSlots = 6, kTokens = 5;
constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

struct Mixed {
  bool hasDenseKeys;
  DType dense;
  DType source;
  KVCodec codec;
  uint64_t headDim;
  uint64_t valueHeadDim;
};

Tensor zeros(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents) {
  return REQUIRE(Tensor::zeros(device, dtype, REQUIRE(Shape::make(extents))));
}

void expectPlanesOfBoth(const std::shared_ptr<Device>& device, const Mixed& made, Seeded& random) {
  const Tensor keys = someTokens(device, random, made.source, kTokens, kHeads, made.headDim);
  const Tensor values = someTokens(device, random, made.source, kTokens, kHeads, made.valueHeadDim);
  const KVCacheView dense{.keys = zeros(device, made.dense, {kHeads, kSlots, made.headDim}),
                          .values = zeros(device, made.dense, {kHeads, kSlots, made.valueHeadDim}),
                          .wrap = KVWrap::ring,
                          .pinned = 2};
  const auto coded = [&] {
    return QuantizedKVCacheView{
        .keys = REQUIRE(QuantizedKVPlane::zeros(device, made.codec, kHeads, made.headDim, kSlots)),
        .values = REQUIRE(QuantizedKVPlane::zeros(device, made.codec, kHeads, made.valueHeadDim, kSlots)),
        .wrap = dense.wrap,
        .pinned = dense.pinned};
  };
  const QuantizedKVCacheView both = coded();
  QuantizedKVCacheView mixed = coded();
  QuantizedKVPlane& elements = made.hasDenseKeys ? mixed.keys : *mixed.values;
  elements = {.codes = zeros(device, made.dense, {kHeads, kSlots, elements.headDim()})};
  constexpr uint64_t kPosition = 4;  // from there on the ring wraps

  const Tensor readKeys = zeros(device, DType::f32, {kTokens, kHeads, made.headDim});
  const Tensor readValues = zeros(device, DType::f32, {kTokens, kHeads, made.valueHeadDim});
  const Tensor codedKeys = zeros(device, DType::f32, {kTokens, kHeads, made.headDim});
  const Tensor codedValues = zeros(device, DType::f32, {kTokens, kHeads, made.valueHeadDim});
  for (const KVDomain domain : {KVDomain::original, KVDomain::rotated}) {
    CommandEncoder encoder(device, "mixed");
    REQUIRE(encoder.encode(KVCacheWrite{.keys = keys, .values = values, .into = dense, .position = kPosition}));
    for (const QuantizedKVCacheView& into : {both, mixed}) {
      REQUIRE(encoder.encode(KVCacheQuantize{.keys = keys, .values = values, .into = into, .position = kPosition}));
    }
    // The newest four are held, behind the pinned slots.
    const uint64_t held = kSlots - dense.pinned;
    const auto newest = [&](const Tensor& tensor) { return REQUIRE(tensor.slice(kTokens - held, held)); };
    const uint64_t oldest = kPosition + kTokens - held;
    REQUIRE(encoder.encode(KVCacheDequantize{
        .from = both, .position = oldest, .keys = newest(codedKeys), .values = newest(codedValues), .domain = domain}));
    // Alone and together.
    REQUIRE(encoder.encode(
        KVCacheDequantize{.from = mixed, .position = oldest, .keys = newest(readKeys), .domain = domain}));
    REQUIRE(encoder.encode(
        KVCacheDequantize{.from = mixed,
                          .position = oldest,
                          .keys = domain == KVDomain::original ? std::nullopt : std::optional(newest(readKeys)),
                          .values = newest(readValues),
                          .domain = domain}));
    REQUIRE(REQUIRE(encoder.commit()).wait());

    const Tensor& ofDense = made.hasDenseKeys ? dense.keys : *dense.values;
    const QuantizedKVPlane& ofBoth = made.hasDenseKeys ? *both.values : both.keys;
    const QuantizedKVPlane& ofMixed = made.hasDenseKeys ? *mixed.values : mixed.keys;
    EXPECT(bytesOf(elements.codes) == bytesOf(ofDense));
    EXPECT(bytesOf(ofMixed.codes) == bytesOf(ofBoth.codes));
    EXPECT(bytesOf(ofMixed.scales) == bytesOf(ofBoth.scales));
    EXPECT(made.hasDenseKeys ? bytesOf(readValues) == bytesOf(codedValues) : bytesOf(readKeys) == bytesOf(codedKeys));
    // What was stored, at the slots behind the pinned ones, whatever the domain.
    const uint64_t headDim = elements.headDim();
    const std::vector<float> read = floatsOf(made.hasDenseKeys ? readKeys : readValues);
    const Tensor wide = zeros(device, DType::f32, {kHeads, kSlots, headDim});
    REQUIRE(CommandEncoder::run(
        device,
        [&](CommandEncoder& other) {
          return other.encode(KVCacheWrite{.keys = HeadsView(ofDense, KVLayout::headMajor), .into = {.keys = wide}});
        },
        "as f32"));
    const std::vector<float> stored = floatsOf(wide);
    for (uint64_t token = kTokens - held; token < kTokens; ++token) {
      for (uint64_t head = 0; head < kHeads; ++head) {
        const uint64_t slot = mixed.codes().slotOf(kPosition + token);
        for (uint64_t j = 0; j < headDim; ++j) {
          EXPECT_EQ(read[(token * kHeads + head) * headDim + j], stored[(head * kSlots + slot) * headDim + j]);
        }
      }
    }
  }
}

}  // namespace

TEST(MixedPlanes, AreThoseOfADenseAndOfAQuantizedCache) {
  const KVCodec codecs[] = {{.bits = 4}, {.bits = 3}, {KVCodecName::mlx1, 4}, {KVCodecName::mlx1, 8}};
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random(3);
    for (const bool hasDenseKeys : {true, false}) {
      for (const DType dense : kFloats) {
        for (const KVCodec& codec : codecs) {
          const std::vector<uint64_t> dims = codec.name == KVCodecName::turbo ? std::vector<uint64_t>{64, 80, 112, 192}
                                             : codec.bits == 8                ? std::vector<uint64_t>{256, 512}
                                                                              : std::vector<uint64_t>{64, 256};
          const Mixed made{hasDenseKeys,
                           dense,
                           kFloats[random.below(3)],
                           codec,
                           dims[random.below(dims.size())],
                           dims[random.below(dims.size())]};
          const Context context(fmt::format("{} {} of {}, {} and {} of {}", name(dense),
                                            hasDenseKeys ? "keys" : "values", codec.text(), made.headDim,
                                            made.valueHeadDim, name(made.source)));
          expectPlanesOfBoth(device, made, random);
        }
      }
    }
  });
}

}  // namespace mnk::test
