// The op of a case; cases drawn at random, which the op's own tests and the fuzzer share; and cases that a draw would
// rarely hit.
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

#include <algorithm>

#include "Ops/Common/TurboSigns.hpp"

namespace mnk::test {

namespace {

DrawnCoding drawnCoding(Seeded& random, KVCodec::Name name) {
  static const std::vector<DrawnCoding> all = everyCoding();
  for (;;) {
    DrawnCoding coding = all[random.below(all.size())];
    if (coding.codec.name != name) continue;
    const bool hasFactor =
        coding.headDim == 512 && (name == KVCodec::Name::mlx1 || name == KVCodec::Name::mlx1Unrotated);
    if (hasFactor && coin(random, 1, 2)) coding.codec.scaleFactor = oneOf(random, {0.5f, 16.0f});
    return coding;
  }
}

KVQuantizeOptions drawnOptions(Seeded& random) {
  const auto rule = [&] { return coin(random, 1, 2) ? KVScaleRule::unbiased : KVScaleRule::leastSquares; };
  return {.candidates = oneOf<uint32_t>(random, {1, 1, 1, 5, 17}),
          .keyScale = rule(),
          .valueScale = rule(),
          .nonFinite = coin(random, 1, 2) ? KVNonFinite::zero : KVNonFinite::propagate};
}

}  // namespace

QuantizedKVPlane makeCachePlane(const KVCacheQuantizeCase& quantize, bool isKeys, const MakeNamedTensor& makeTensor) {
  const KVCacheWriteCase& write = quantize.write;
  const uint64_t headDim = isKeys ? write.headDim : write.valueHeadDim;
  const auto make = [&](std::string_view part, DType dtype, const Shape& shape, uint64_t shift = 0) {
    return makeTensor(fmt::format("{} {}", isKeys ? "key" : "value", part), dtype, shape, shift);
  };
  if (isKeys ? quantize.hasDenseKeys : quantize.hasDenseValues) {
    return {.codes = make("codes", write.cache, cacheShape(write, headDim), write.cacheShift)};
  }
  QuantizedKVPlane plane{.codec = isKeys ? quantize.keyCodec : quantize.valueCodec};
  const KVCodecSizes size = REQUIRE(sizes(plane.codec, headDim));
  const Shape perHead = REQUIRE(Shape::make({write.heads, headDim}));
  const Shape scales = size.scales == 1 ? cacheShape(write) : cacheShape(write, size.scales);
  plane.codes = make("codes", DType::u8, cacheShape(write, size.codeBytes), write.cacheShift);
  plane.scales = make("scales", plane.codec.scaleType(), scales, quantize.scaleShift);
  if (quantize.hasMeans) plane.means = make("means", DType::f32, perHead);
  if (quantize.hasChannelScales && isKeys) plane.channelScales = make("channel scales", DType::f32, perHead);
  return plane;
}

KVCacheQuantize makeOp(const KVCacheQuantizeCase& quantize, const MakeNamedTensor& makeTensor) {
  const KVCacheWriteCase& write = quantize.write;
  KVCacheQuantize op{.options = quantize.options};
  setPlaces(op, write, makeTensor);
  op.into.keys = makeCachePlane(quantize, true, makeTensor);
  if (write.valueHeadDim) op.into.values = makeCachePlane(quantize, false, makeTensor);
  if (quantize.hasCounts) op.counts = makeTensor("counts", DType::u32, REQUIRE(Shape::make({2})), 0);
  if (quantize.hasProbe) {
    op.probe = makeTensor("probe", DType::f32, REQUIRE(Shape::make({write.heads, write.headDim})), 0);
  }
  return op;
}

std::vector<DrawnCoding> everyCoding() {
  std::vector<DrawnCoding> all;
  for (uint32_t bits = 2; bits <= 8; ++bits) {
    for (uint64_t headDim : kTurboHeadDims) all.push_back({{.bits = bits}, headDim});
  }
  for (uint64_t headDim = 4; headDim <= 4096; headDim *= 2) {
    all.push_back({{.name = KVCodec::Name::mlx1, .bits = 4}, headDim});
  }
  for (uint32_t bits : {5, 6, 8}) {
    for (KVCodec::Name name : {KVCodec::Name::mlx1, KVCodec::Name::mlx1Unrotated}) {
      for (uint64_t headDim : {256, 512}) all.push_back({{.name = name, .bits = bits}, headDim});
    }
  }
  for (uint64_t headDim : {256, 512}) all.push_back({{.name = KVCodec::Name::mlx1Affine4, .bits = 4}, headDim});
  return all;
}

std::vector<std::string> codingsOtherThan(const std::vector<DrawnCoding>& seen) {
  std::vector<std::string> others;
  for (const auto& [codec, headDim] : everyCoding()) {
    const auto isSame = [codec = codec, headDim = headDim](const DrawnCoding& one) {
      return one.codec.name == codec.name && one.codec.bits == codec.bits && one.headDim == headDim;
    };
    if (std::ranges::none_of(seen, isSame)) others.push_back(fmt::format("{} at {}", codec.text(), headDim));
  }
  return others;
}

std::pair<DrawnCoding, DrawnCoding> drawnCodings(Seeded& random) {
  for (;;) {
    const auto name = coin(random, 2, 3)   ? KVCodec::Name::turbo
                      : coin(random, 3, 5) ? KVCodec::Name::mlx1
                      : coin(random, 1, 2) ? KVCodec::Name::mlx1Unrotated
                                           : KVCodec::Name::mlx1Affine4;
    const DrawnCoding keys = drawnCoding(random, name), values = drawnCoding(random, name);
    const auto [shorter, longer] = std::minmax(keys.headDim, values.headDim);
    if (longer <= 128 || shorter >= longer / 32) return {keys, values};
  }
}

KVCacheQuantizeCase drawnQuantize(Seeded& random) {
  KVCacheQuantizeCase quantize{.name = "drawn", .write = drawnWrite(random)};
  const auto [keys, values] = drawnCodings(random);
  KVCacheWriteCase& write = quantize.write;
  const bool isTurbo = keys.codec.name == KVCodec::Name::turbo;
  quantize.keyCodec = keys.codec, quantize.valueCodec = values.codec;
  write.headDim = keys.headDim;
  if (write.valueHeadDim != 0) write.valueHeadDim = values.headDim;
  // Numbers of heads that share simdgroups in every way.
  if (coin(random, 1, 8) && write.heads != 0) write.heads = oneOf<uint64_t>(random, {5, 8, 9, 33});
  write.source = oneOf(random, {DType::f32, DType::f16, DType::bf16});
  write.cache = oneOf(random, {DType::f32, DType::f16, DType::bf16});
  quantize.options = drawnOptions(random);
  quantize.hasMeans = isTurbo && coin(random, 1, 3);
  quantize.hasChannelScales = isTurbo && coin(random, 1, 3);
  quantize.hasCounts = coin(random, 1, 3);
  const bool canBeDense = write.valueHeadDim != 0 && (isTurbo || write.valueHeadDim == write.headDim);
  if (canBeDense && coin(random, 1, 4)) {
    (coin(random, 1, 2) ? quantize.hasDenseKeys : quantize.hasDenseValues) = true;
  }
  const bool isDense = quantize.hasDenseKeys || quantize.hasDenseValues;
  const uint64_t tokens = write.sourceTokens * std::max<uint64_t>(write.sourceSequences, 1);
  quantize.hasProbe =
      keys.codec.name == KVCodec::Name::mlx1 && !quantize.hasDenseKeys && tokens <= 1 && coin(random, 1, 2);
  write.sourceShift = write.cacheShift = 0;
  if (coin(random, 1, 2)) {
    write.sourceShift = byteSize(write.source) * random.below(9);
    write.cacheShift = isDense ? byteSize(write.cache) * random.below(9) : random.below(17);
    quantize.scaleShift = byteSize(keys.codec.scaleType()) * random.below(9);
    // One element off, with everything else in order.
    if (coin(random, 1, 4)) write.sourceShift = byteSize(write.source), write.cacheShift = quantize.scaleShift = 0;
  }
  return quantize;
}

std::vector<KVCacheQuantizeCase> drawnQuantizes(uint64_t count) {
  Seeded random(3, 3);  // the same every time: together they reach every kernel
  std::vector<KVCacheQuantizeCase> cases;
  while (cases.size() < count) {
    KVCacheQuantizeCase quantize = drawnQuantize(random);
    KVCacheWriteCase& write = quantize.write;
    // The reference takes most of the time, so that few of these are long.
    const uint64_t tokens = write.sourceTokens * std::max<uint64_t>(write.sourceSequences, 1);
    if (tokens * write.heads * (write.headDim + write.valueHeadDim) > 20000 && cases.size() % 16 != 0) continue;
    quantize.name = fmt::format("case {}: {} tokens of {}, {} heads, {} at {} and {} at {}", cases.size(), tokens,
                                name(write.source), write.heads, quantize.keyCodec.text(), write.headDim,
                                quantize.valueCodec.text(), write.valueHeadDim);
    cases.push_back(std::move(quantize));
  }
  return cases;
}

std::vector<KVCacheQuantizeCase> probeCases() {
  std::vector<KVCacheQuantizeCase> cases;
  for (const auto& [codec, headDim] : everyCoding()) {
    if (codec.name != KVCodec::Name::mlx1) continue;
    for (bool isRank2 : {false, true}) {
      cases.push_back(
          {.name = fmt::format("probe of {} at {}, source of rank {}", codec.text(), headDim, isRank2 ? 2 : 3),
           .write = {.source = isRank2 ? DType::f16 : DType::f32,
                     .heads = headDim > 512 ? 1u : 3u,
                     .headDim = headDim,
                     .valueHeadDim = headDim > 512 || isRank2 ? 0u : 16u,
                     .isSourceRank2 = isRank2,
                     .position = 5},
           .keyCodec = codec,
           .valueCodec = {.name = KVCodec::Name::mlx1, .bits = 4},
           .hasCounts = isRank2,
           .hasProbe = true});
    }
  }
  return cases;
}

// Many vectors are shared by fewer lanes each.
std::vector<KVCacheQuantizeCase> manyVectorsCases() {
  std::vector<KVCacheQuantizeCase> cases;
  for (int dense = 0; dense < 3; ++dense) {
    cases.push_back({.name = fmt::format("many vectors, dense keys or values: {}", dense),
                     .write = {.source = DType::f16,
                               .heads = 8,
                               .headDim = 128,
                               .valueHeadDim = 32,
                               .capacity = 300,
                               .sourceTokens = 300},
                     .valueCodec = {.bits = 3},
                     .options = {.candidates = 1},
                     .hasDenseKeys = dense == 1,
                     .hasDenseValues = dense == 2});
  }
  return cases;
}

}  // namespace mnk::test
