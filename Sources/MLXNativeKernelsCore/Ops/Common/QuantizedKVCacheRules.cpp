#include "Ops/QuantizedKVCacheRules.hpp"

#include "Ops/CacheAddressRules.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using View = QuantizedKVCacheView;
using Plane = QuantizedKVPlane;

// The first plane that does not satisfy a condition, keys before values.
const Plane* firstWithout(const View& view, bool (*holds)(const Plane&)) {
  if (!holds(view.keys)) return &view.keys;
  if (view.values && !holds(*view.values)) return &*view.values;
  return nullptr;
}

std::string planeName(const View& view, const Plane* plane) {
  return plane == &view.keys ? "keys" : "values";
}

bool hasMemory(const Plane& plane) {
  return plane.codes && plane.scales;
}
bool isCacheRank(const Plane& plane) {
  return plane.codes.shape().rank() == 3 || plane.codes.shape().rank() == 4;
}
bool hasByteCodes(const Plane& plane) {
  return plane.codes.dtype() == DType::u8;
}
bool hasHeadDim(const Plane& plane) {
  return plane.headDim() != 0;
}
bool hasScaleType(const Plane& plane) {
  return plane.scales.dtype() == plane.codec.scaleType();
}

bool hasFittingFactor(const Plane& plane) {
  return plane.codec.canScale(plane.headDim());
}

// Codes without their last axis, and an axis of scales where there are several.
std::vector<uint64_t> scaleExtents(const Plane& plane) {
  const Shape& shape = plane.codes.shape();
  std::vector<uint64_t> extents;
  for (uint32_t axis = 0; axis + 1 < shape.rank(); ++axis) extents.push_back(shape[axis]);
  const auto known = sizes(plane.codec, plane.headDim());
  if (known && known->scales > 1) extents.push_back(known->scales);
  return extents;
}

bool hasFittingScales(const Plane& plane) {
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

bool hasFittingFactors(const View& view, const Plane& plane) {
  const uint64_t heads = view.codes().heads();
  return isFactor(plane.means, heads, plane.headDim()) && isFactor(plane.channelScales, heads, plane.headDim());
}

const Plane& planeOfFactors(const View& view) {
  return hasFittingFactors(view, view.keys) ? *view.values : view.keys;
}

bool hasFactors(const Plane& plane) {
  return plane.means || plane.channelScales;
}

constexpr Rule<View> kRules[] = {
    {"the cache has no memory", [](const View& v) { return !firstWithout(v, hasMemory); },
     [](const View& v) {
       const Plane* plane = firstWithout(v, hasMemory);
       return fmt::format("{} whose {} have none", planeName(v, plane), plane->codes ? "scales" : "codes");
     },
     [](const View&) { return std::string("codes and scales with memory"); },
     "Make the cache's tensors before using it."},

    {"the cache has the wrong rank",
     [](const View& v) {
       return !firstWithout(v, isCacheRank) &&
              (!v.values || v.values->codes.shape().rank() == v.keys.codes.shape().rank());
     },
     [](const View& v) {
       return v.values ? fmt::format("codes of keys {}, of values {}", v.keys.codes.shape().text(),
                                     v.values->codes.shape().text())
                       : v.keys.codes.shape().text();
     },
     [](const View& v) {
       return std::string(v.layout == KVLayout::headMajor
                              ? "[heads, capacity, codeBytes] or [sequences, heads, capacity, codeBytes]"
                              : "[capacity, heads, codeBytes] or [sequences, capacity, heads, codeBytes]");
     },
     "Reshape the codes; keys and values need the same rank."},

    {"codes are not bytes", [](const View& v) { return !firstWithout(v, hasByteCodes); },
     [](const View& v) { return firstWithout(v, hasByteCodes)->codes.text(); },
     [](const View&) { return std::string("u8"); }, "Make tensors of u8 for codes."},

    {"keys and values have different codecs",
     [](const View& v) { return !v.values || v.values->codec.name == v.keys.codec.name; },
     [](const View& v) { return fmt::format("{} and {}", name(v.keys.codec.name), name(v.values->codec.name)); },
     [](const View&) { return std::string("one codec, with bits for each"); }, "Use one codec for both, or two ops."},

    {"the codec has no codes of this length", [](const View& v) { return !firstWithout(v, hasHeadDim); },
     [](const View& v) {
       const Plane& plane = *firstWithout(v, hasHeadDim);
       const Shape& shape = plane.codes.shape();
       return fmt::format("{}, {} bytes of codes", plane.codec.text(), shape[shape.rank() - 1]);
     },
     [](const View& v) {
       return std::string(v.keys.codec.name == KVCodecName::turbo
                              ? "2 to 8 bits, and bits * headDim / 8 bytes for a head dim of 32, 64, 128, 256 or 512"
                              : "4 bits and half a head dim of 4 to 4096, or 5, 6 or 8 bits and 256 or 512 bytes");
     },
     "Ask the codec for its sizes, and give the codes that last axis."},

    {"the scale factor cannot be used", [](const View& v) { return !firstWithout(v, hasFittingFactor); },
     [](const View& v) {
       const Plane& plane = *firstWithout(v, hasFittingFactor);
       return fmt::format("{} for {} at head dim {}", plane.codec.scaleFactor, name(plane.codec.name), plane.headDim());
     },
     [](const View&) { return std::string("1, or for mlx1 at head dim 512 a number from 1e-6 to 1e6"); },
     "Leave the scale factor at 1."},

    {"the cache has no capacity", [](const View& v) { return v.codes().capacity() > 0; },
     [](const View& v) { return fmt::format("codes {}", v.keys.codes.shape().text()); },
     [](const View&) { return std::string("at least one slot"); }, "Make a cache with a capacity of at least 1."},

    {"the value cache differs from the key cache",
     [](const View& v) {
       if (!v.values) return true;
       const KVCacheView keys = v.codes();
       const KVCacheView values = valuesOf(keys);
       return values.heads() == keys.heads() && values.capacity() == keys.capacity() &&
              values.sequences() == keys.sequences();
     },
     [](const View& v) { return v.values->codes.shape().text(); },
     [](const View& v) { return fmt::format("{}, but for the last axis", v.keys.codes.shape().text()); },
     "Make both with the same sequences, heads and capacity."},

    {"scales have the wrong dtype", [](const View& v) { return !firstWithout(v, hasScaleType); },
     [](const View& v) { return firstWithout(v, hasScaleType)->scales.text(); },
     [](const View& v) { return std::string(name(firstWithout(v, hasScaleType)->codec.scaleType())); },
     "Make scales of f16 for turbo, and of f32 for mlx1."},

    {"scales do not match the codes", [](const View& v) { return !firstWithout(v, hasFittingScales); },
     [](const View& v) { return firstWithout(v, hasFittingScales)->scales.shape().text(); },
     [](const View& v) { return scaleText(*firstWithout(v, hasFittingScales)); },
     "Give scales the axes of the codes but for the last, and one of 2 where a vector has two."},

    {"the codec has no means or channel scales",
     [](const View& v) {
       if (v.values && v.values->channelScales) return false;
       return v.keys.codec.name == KVCodecName::turbo || !(hasFactors(v.keys) || (v.values && hasFactors(*v.values)));
     },
     [](const View& v) {
       return v.values && v.values->channelScales ? std::string("channel scales of values")
                                                  : std::string("means or channel scales with mlx1");
     },
     [](const View&) { return std::string("means, and for keys channel scales, with turbo"); },
     "Leave them out, or use turbo."},

    {"means or channel scales do not match the cache",
     [](const View& v) { return hasFittingFactors(v, v.keys) && (!v.values || hasFittingFactors(v, *v.values)); },
     [](const View& v) {
       const Plane& plane = planeOfFactors(v);
       return isFactor(plane.means, v.codes().heads(), plane.headDim()) ? plane.channelScales->text()
                                                                        : plane.means->text();
     },
     [](const View& v) { return fmt::format("f32 [{}, {}]", v.codes().heads(), planeOfFactors(v).headDim()); },
     "Pass f32 [heads, headDim]."},
};

}  // namespace

std::span<const Rule<QuantizedKVCacheView>> quantizedKVCacheRules() {
  return kRules;
}

void addFactors(std::vector<NamedRange>& ranges, const QuantizedKVPlane& plane) {
  if (plane.means) ranges.push_back({"means", plane.means->range()});
  if (plane.channelScales) ranges.push_back({"channel scales", plane.channelScales->range()});
}

}  // namespace mnk
