#include "Ops/Common/QuantizedKVCacheRules.hpp"

#include "Ops/Common/CacheAddressing.hpp"

namespace mnk {

namespace {

using Plane = QuantizedKVPlane;

// The first plane that does not satisfy a condition, keys before values.
const Plane* firstWithout(const QuantizedKVCacheView& op, bool (*holds)(const Plane&)) {
  if (!holds(op.keys)) return &op.keys;
  if (op.values && !holds(*op.values)) return &*op.values;
  return nullptr;
}

bool hasMemory(const Plane& plane) {
  return plane.codes && (plane.isDense() || plane.scales);
}
bool isCacheRank(const Plane& plane) {
  return plane.codes.shape().rank() == 3 || plane.codes.shape().rank() == 4;
}
bool isStorable(const Plane& plane) {
  return plane.codes.dtype() == DType::u8 || plane.isDense();
}
bool hasHeadDim(const Plane& plane) {
  return plane.headDim() != 0;
}
bool hasScaleType(const Plane& plane) {
  return plane.isDense() || plane.scales.dtype() == plane.codec.scaleType();
}

bool hasFittingFactor(const Plane& plane) {
  return plane.isDense() || plane.codec.canScale(plane.headDim());
}

bool isAllDense(const QuantizedKVCacheView& op) {
  return op.keys.isDense() && (!op.values || op.values->isDense());
}

// The dense plane of a mixed cache, or null.
const Plane* densePlane(const QuantizedKVCacheView& op) {
  return op.keys.isDense() ? &op.keys : op.values && op.values->isDense() ? &*op.values : nullptr;
}
// Kernels distribute vectors of both planes over lanes as the codec requires, so a dense plane needs a head dim that
// the codec supports.
bool hasQuantizableDim(const QuantizedKVCacheView& op) {
  const Plane* dense = densePlane(op);
  return !dense || (dense == &op.keys ? *op.values : op.keys).codec.canQuantize(dense->headDim());
}

// The extents of the codes without their last axis, plus an axis of scales if a vector has several.
std::vector<uint64_t> scaleExtents(const Plane& plane) {
  const Shape& shape = plane.codes.shape();
  std::vector<uint64_t> extents;
  for (uint32_t axis = 0; axis + 1 < shape.rank(); ++axis) extents.push_back(shape[axis]);
  const auto known = sizes(plane.codec, plane.headDim());
  if (known && known->scales > 1) extents.push_back(known->scales);
  return extents;
}

bool hasFittingScales(const Plane& plane) {
  if (plane.isDense()) return true;
  const std::vector<uint64_t> expected = scaleExtents(plane);
  const Shape& shape = plane.scales.shape();
  if (shape.rank() != expected.size()) return false;
  for (uint32_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != expected[axis]) return false;
  }
  return true;
}

std::string scaleText(const Plane& plane) {
  const auto shape = Shape::make(scaleExtents(plane));
  return shape ? shape->text() : std::string("fewer axes");
}

bool isFactor(const std::optional<Tensor>& factor, uint64_t heads, uint64_t headDim) {
  if (!factor) return true;
  const Shape& shape = factor->shape();
  return *factor && factor->dtype() == DType::f32 && shape.rank() == 2 && shape[0] == heads && shape[1] == headDim;
}

bool hasFittingFactors(const QuantizedKVCacheView& op, const Plane& plane) {
  const uint64_t heads = op.codes().heads();
  return isFactor(plane.means, heads, plane.headDim()) && isFactor(plane.channelScales, heads, plane.headDim());
}

const Plane& planeOfFactors(const QuantizedKVCacheView& op) {
  return hasFittingFactors(op, op.keys) ? *op.values : op.keys;
}

bool hasFactors(const Plane& plane) {
  return plane.means || plane.channelScales;
}

bool isPlain(const Plane& plane) {
  return !plane.isDense() || (!plane.scales && !hasFactors(plane));
}
std::string besideText(const Plane& plane) {
  return fmt::format("{} with {}", plane.codes.text(),
                     plane.scales  ? "scales"
                     : plane.means ? "means"
                                   : "channel scales");
}

bool hasChannelScales(const std::optional<Plane>& plane) {
  return plane && plane->channelScales;
}

std::string memoryText(const QuantizedKVCacheView& op, const Plane* plane) {
  return fmt::format("{} whose {} have none", plane == &op.keys ? "keys" : "values", plane->codes ? "scales" : "codes");
}

std::string codeText(const Plane& plane) {
  const Shape& shape = plane.codes.shape();
  return fmt::format("{}, {} bytes of codes", plane.codec.text(), shape[shape.rank() - 1]);
}

std::string_view lengthsOf(KVCodec::Name codec) {
  switch (codec) {
    case KVCodec::Name::turbo:
      return "2 to 8 bits, and bits * headDim / 8 bytes for a head dim of 32, 64, 80, 96, 112, 128, 192, 256 or 512";
    case KVCodec::Name::mlx1:
      return "4 bits and half a head dim of 4 to 4096, or 5, 6 or 8 bits and 256 or 512 bytes";
    case KVCodec::Name::mlx1Unrotated:
      return "5, 6 or 8 bits and 256 or 512 bytes";
    case KVCodec::Name::mlx1Affine4:
      return "4 bits and 128 or 256 bytes";
  }
  return "a codec of KVCodec::Name";
}

std::string scaleFactorText(const Plane& plane) {
  return fmt::format("{} for {} at head dim {}", plane.codec.scaleFactor, name(plane.codec.name), plane.headDim());
}

std::string factorText(const QuantizedKVCacheView& op, const Plane& plane) {
  const bool areMeans = isFactor(plane.means, op.codes().heads(), plane.headDim());
  return areMeans ? plane.channelScales->text() : plane.means->text();
}

constexpr Rule<QuantizedKVCacheView> kRules[] = {
    INVALID_IF(firstWithout(op, hasMemory), "the cache has no memory", memoryText(op, firstWithout(op, hasMemory)),
               "codes and scales with memory", "Make the cache's tensors before using it."),

    INVALID_IF(
        firstWithout(op, isCacheRank) || (op.values && op.values->codes.shape().rank() != op.keys.codes.shape().rank()),
        "the cache has the wrong rank",
        op.values ? fmt::format("codes of keys {}, of values {}", op.keys.codes.shape().text(),
                                op.values->codes.shape().text())
                  : op.keys.codes.shape().text(),
        op.layout == KVLayout::headMajor ? "[heads, capacity, codeBytes] or [sequences, heads, capacity, codeBytes]"
                                         : "[capacity, heads, codeBytes] or [sequences, capacity, heads, codeBytes]",
        "Reshape the codes; keys and values need the same rank."),

    INVALID_IF(firstWithout(op, isStorable), "codes are not bytes", firstWithout(op, isStorable)->codes.text(),
               "u8, or for one of keys and values f32, f16 or bf16", "Make tensors of u8 for codes."),

    INVALID_IF(isAllDense(op), "nothing in the cache is quantized", op.keys.codes.text(),
               "u8 codes of keys or of values", "Pass a KVCacheView for a dense cache."),

    INVALID_IF(firstWithout(op, isPlain), "dense vectors have no scales, means or channel scales",
               besideText(*firstWithout(op, isPlain)), "elements alone",
               "Leave them out, or make tensors of u8 for codes."),

    INVALID_IF(op.values.has_value() && !densePlane(op) && op.values->codec.name != op.keys.codec.name,
               "keys and values have different codecs",
               fmt::format("{} and {}", name(op.keys.codec.name), name(op.values->codec.name)),
               "one codec, with bits for each", "Use one codec for both, or two ops."),

    INVALID_IF(firstWithout(op, hasHeadDim), "the codec has no codes of this length",
               codeText(*firstWithout(op, hasHeadDim)), lengthsOf(op.codecName()),
               "Ask the codec for its sizes, and give the codes that last axis."),

    INVALID_IF(!hasQuantizableDim(op), "dense vectors have a head dim that the codec beside them does not have",
               densePlane(op)->codes.text(),
               fmt::format("a head dim of {}", (densePlane(op) == &op.keys ? *op.values : op.keys).codec.text()),
               "Use a head dim that the codec can code, or a dense cache."),

    INVALID_IF(firstWithout(op, hasFittingFactor), "the scale factor cannot be used",
               scaleFactorText(*firstWithout(op, hasFittingFactor)),
               "1, or for mlx1 and mlx1Unrotated at head dim 512 a number from 1e-6 to 1e6",
               "Leave the scale factor at 1."),

    INVALID_IF(op.codes().capacity() == 0, "the cache has no capacity",
               fmt::format("codes {}", op.keys.codes.shape().text()), "at least one slot",
               "Make a cache with a capacity of at least 1."),

    INVALID_IF(op.values && !areValuesLikeKeys(op.codes()), "the value cache differs from the key cache",
               op.values->codes.shape().text(), fmt::format("{}, but for the last axis", op.keys.codes.shape().text()),
               "Make both with the same sequences, heads and capacity."),

    INVALID_IF(firstWithout(op, hasScaleType), "scales have the wrong dtype",
               firstWithout(op, hasScaleType)->scales.text(), name(firstWithout(op, hasScaleType)->codec.scaleType()),
               "Make scales of f16 for turbo, and of f32 for the other codecs."),

    INVALID_IF(firstWithout(op, hasFittingScales), "scales do not match the codes",
               firstWithout(op, hasFittingScales)->scales.shape().text(),
               scaleText(*firstWithout(op, hasFittingScales)),
               "Give scales the axes of the codes but for the last, and one of 2 where a vector has two."),

    INVALID_IF(hasChannelScales(op.values) || (op.codecName() != KVCodec::Name::turbo &&
                                               (hasFactors(op.keys) || (op.values && hasFactors(*op.values)))),
               "the codec has no means or channel scales",
               hasChannelScales(op.values) ? std::string("channel scales of values")
                                           : fmt::format("means or channel scales with {}", name(op.codecName())),
               "means, and for keys channel scales, with turbo", "Leave them out, or use turbo."),

    INVALID_IF(!hasFittingFactors(op, op.keys) || (op.values && !hasFittingFactors(op, *op.values)),
               "means or channel scales do not match the cache", factorText(op, planeOfFactors(op)),
               fmt::format("f32 [{}, {}]", op.codes().heads(), planeOfFactors(op).headDim()),
               "Pass f32 [heads, headDim]."),
};

}  // namespace

std::span<const Rule<QuantizedKVCacheView>> quantizedKVCacheRules() {
  return kRules;
}

void addFactors(std::vector<NamedRange>& ranges, const QuantizedKVPlane& plane) {
  if (plane.means) ranges.push_back({"means", plane.means->range()});
  if (plane.channelScales) ranges.push_back({"channel scales", plane.channelScales->range()});
}

void addPlane(std::vector<NamedRange>& ranges, const QuantizedKVPlane& plane) {
  ranges.push_back({plane.isDense() ? "dense vectors" : "codes", plane.codes.range()});
  if (!plane.isDense()) ranges.push_back({"scales", plane.scales.range()});
  addFactors(ranges, plane);
}

void describePlane(OpForm& form, const QuantizedKVPlane& plane, const PlaneIndices& indices, Access access) {
  form.add(plane.codec.name);
  form.add(plane.codec.bits);
  form.add(plane.codec.scaleFactor);
  form.bind(indices.codes, plane.codes, access);
  if (!plane.isDense()) form.bind(indices.scales, plane.scales, access);  // codes have another dtype
  form.bind(indices.means, plane.means, Access::read);
  form.bind(indices.channelScales, plane.channelScales, Access::read);
}

}  // namespace mnk
