#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

#include "Harness/Check.hpp"

namespace mnk::test {

namespace {

// One vector of codes or its scales for every slot; `each` is 0 where a slot holds one number and needs no axis for it.
Shape slotsShape(const KVCacheWriteCase& write, uint64_t each) {
  std::vector<uint64_t> extents;
  if (write.sequences) extents.push_back(write.sequences);
  extents.push_back(write.cacheLayout == KVLayout::headMajor ? write.heads : write.capacity);
  extents.push_back(write.cacheLayout == KVLayout::headMajor ? write.capacity : write.heads);
  if (each) extents.push_back(each);
  return REQUIRE(Shape::make(extents));
}

QuantizedKVPlane emptyPlane(const KVCacheQuantizeCase& quantize, std::string_view name, const KVCodec& codec,
                            uint64_t headDim, const MakeNamedTensor& makeTensor) {
  const KVCacheWriteCase& write = quantize.write;
  if (name == "key" ? quantize.hasDenseKeys : quantize.hasDenseValues) {
    return {.codes =
                makeTensor(fmt::format("{} codes", name), write.cache, slotsShape(write, headDim), write.cacheShift)};
  }
  const KVCodecSizes size = REQUIRE(sizes(codec, headDim));
  const auto called = [&](std::string_view part) { return fmt::format("{} {}", name, part); };
  const Shape perHead = REQUIRE(Shape::make({write.heads, headDim}));
  QuantizedKVPlane plane{.codec = codec};
  plane.codes = makeTensor(called("codes"), DType::u8, slotsShape(write, size.codeBytes), write.cacheShift);
  plane.scales = makeTensor(called("scales"), codec.scaleType(), slotsShape(write, size.scales == 1 ? 0 : size.scales),
                            quantize.scaleShift);
  if (quantize.hasMeans) plane.means = makeTensor(called("means"), DType::f32, perHead, 0);
  if (quantize.hasChannelScales && name == "key") {
    plane.channelScales = makeTensor(called("channel scales"), DType::f32, perHead, 0);
  }
  return plane;
}

}  // namespace

KVCacheQuantize makeOp(const KVCacheQuantizeCase& quantize, const MakeNamedTensor& makeTensor) {
  const KVCacheWriteCase& write = quantize.write;
  KVCacheQuantize op;
  const KVSources sources = makeSources(write, [&](std::string_view name, const Shape& shape) {
    return makeTensor(name, write.source, shape, write.sourceShift);
  });
  op.keys = sources.keys;
  op.values = sources.values;
  op.into.keys = emptyPlane(quantize, "key", quantize.keyCodec, write.headDim, makeTensor);
  if (write.valueHeadDim) {
    op.into.values = emptyPlane(quantize, "value", quantize.valueCodec, write.valueHeadDim, makeTensor);
  }
  op.into.layout = write.cacheLayout;
  op.into.wrap = write.wrap;
  op.into.pinned = write.pinned;
  op.sourceLayout = sources.layout;
  op.sourceOffset = write.sourceOffset;
  op.tokens = write.tokens;
  op.sourceIsRing = write.isSourceRing;
  op.sequence = write.sequence;
  op.position = write.position;
  op.options = quantize.options;
  if (quantize.hasCounts) op.counts = makeTensor("counts", DType::u32, REQUIRE(Shape::make({2})), 0);
  if (quantize.hasProbe) {
    op.probe = makeTensor("probe", DType::f32, REQUIRE(Shape::make({write.heads, write.headDim})), 0);
  }
  op.rows = makeRows(write, makeTensor);
  return op;
}

}  // namespace mnk::test
