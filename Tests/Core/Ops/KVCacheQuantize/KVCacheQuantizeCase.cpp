#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

#include "Harness/Check.hpp"

namespace mnk::test {

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

}  // namespace mnk::test
