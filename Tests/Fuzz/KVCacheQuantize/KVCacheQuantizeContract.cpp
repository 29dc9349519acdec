#include <algorithm>
#include <bit>
#include <cmath>

#include "KVCacheQuantizeCall.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheQuantizeSpec;
using Wide = unsigned __int128;  // sums of 64-bit numbers as they are, not wrapped

constexpr uint64_t kExtentEnd = uint64_t{1} << 31;

bool isFloat(mnk_dtype dtype) {
  return dtype == MNK_F32 || dtype == MNK_F16 || dtype == MNK_BF16;
}

// What the C API itself refuses, before an op exists.
std::string refusalOfPlane(const std::optional<TensorSpec>& codes, const QuantizedPlaneSpec& plane,
                           const std::string& name, bool isNeeded) {
  const bool isMeant = isNeeded || plane.scales || plane.means || plane.channelScales;
  if (!codes) return isMeant ? name + ".codes is missing" : "";
  if (!plane.scales && !isFloat(codes->dtype)) return name + ".scales is missing";
  return static_cast<uint32_t>(plane.codec.name) > 1 ? "the number is not a codec" : "";
}

std::string refusalOfStruct(const Spec& spec) {
  const std::string name = spec.isRead ? "mnk_kv_cache_dequantize" : "mnk_kv_cache_quantize";
  const size_t own = spec.ownSize();
  if (spec.isNull) return name + " is missing";
  if (spec.size < own || spec.size > 2 * own || (spec.size > own && spec.tail != 0)) {
    return name + " has the wrong size";
  }
  const bool isLayout = static_cast<uint32_t>(spec.write.numbers.source_layout) <= 1;
  if (!spec.isRead) {
    if (std::string what = refusalOfSourceHandles(spec.write); !what.empty()) return what;
  }
  if (std::string what = refusalOfView(spec, spec.isRead ? "from" : "into"); !what.empty()) return what;
  if (spec.isRead) {
    if (!isLayout) return "the number is not a layout";
    return static_cast<uint32_t>(spec.domain) > 1 ? "the number is not a domain" : "";
  }
  if (std::string what = refusalOfLists(spec.write); !what.empty()) return what;
  const mnk_kv_quantize_options& options = spec.options;
  if (static_cast<uint32_t>(options.key_scale) > 2 || static_cast<uint32_t>(options.value_scale) > 2) {
    return "the number is not a rule for scales";
  }
  return static_cast<uint32_t>(options.non_finite) > 1 ? "the number is not a treatment of NaN and infinity" : "";
}

// Keys, and values where the cache has them.
struct CachePlane {
  const TensorSpec* codes;
  const QuantizedPlaneSpec* plane;

  bool isDense() const { return isFloat(codes->dtype); }
  uint64_t headDim() const { return isDense() ? codes->shape.back() : headDimOf(plane->codec, codes->shape.back()); }
};

std::vector<CachePlane> cachePlanes(const Spec& spec) {
  std::vector<CachePlane> planes{{&*spec.write.keyCache, &spec.keys}};
  if (spec.write.valueCache) planes.push_back({&*spec.write.valueCache, &spec.values});
  return planes;
}

bool isFactor(const CachePlane& plane) {
  if (plane.isDense()) return true;
  const float factor = plane.plane->codec.scale_factor == 0 ? 1 : plane.plane->codec.scale_factor;
  return factor == 1 ||
         (plane.plane->codec.name == MNK_MLX1 && plane.headDim() == 512 && factor >= 1e-6f && factor <= 1e6f);
}

bool fitsCodes(const CachePlane& plane) {
  if (plane.isDense()) return true;
  std::vector<uint64_t> expected(plane.codes->shape.begin(), plane.codes->shape.end() - 1);
  if (plane.plane->codec.name == MNK_MLX1 && plane.headDim() == 512) expected.push_back(2);
  return plane.plane->scales->shape == expected;
}

bool canCode(const mnk_kv_codec& codec, uint64_t headDim) {
  const bool isByteCoded = codec.name == MNK_MLX1 && codec.bits != 4;
  return headDim != 0 && headDimOf(codec, isByteCoded ? headDim : headDim * codec.bits / 8) == headDim;
}

bool isMatrix(const std::optional<TensorSpec>& tensor, uint64_t heads, uint64_t headDim) {
  return !tensor || (tensor->dtype == MNK_F32 && tensor->shape == std::vector<uint64_t>{heads, headDim});
}

bool hasVectors(bool isKeys, const Spec& spec, const CachePlane& plane) {
  const KVCacheWriteSpec& write = spec.write;
  if (!(isKeys ? write.keys : write.values)) return true;
  const mnk_kv_cache_write& n = write.numbers;
  const SourceDims dims = isKeys ? dimsOfKeys(write) : dimsOfValues(write);
  return dims.heads == cacheDims(*plane.codes, n.into.layout).heads && dims.headDim == plane.headDim();
}

// Kernels hold an element of the shorter ones in every lane, and at most 128 of 4096 elements.
bool isTooDifferent(uint64_t a, uint64_t b) {
  const auto [shorter, longer] = std::minmax(a, b);
  return longer > 128 && shorter * 32 < longer;
}

bool hasLargeExtents(const Spec& spec) {
  const mnk_kv_cache_write& n = spec.write.numbers;
  const CacheDims cache = cacheDims(*spec.write.keyCache, n.into.layout);
  return std::max({cache.sequences, cache.heads, cache.capacity}) >= kExtentEnd || hasTooManyTokens(spec.write);
}

std::string refusalOfOperands(const Spec& spec) {
  const auto planes = cachePlanes(spec);
  const KVCacheWriteSpec& write = spec.write;
  const bool hasValues = write.values.has_value();
  if (hasValues && !write.valueCache) return "values are given but the cache has none";
  if (!isFloat(write.keys->dtype)) return "the source cannot be coded";
  if (hasValues && write.values->dtype != write.keys->dtype) return "values have another dtype than keys";
  if (!hasVectors(true, spec, planes[0])) return "keys do not have the cache's heads and headDim";
  if (!hasVectors(false, spec, planes.back())) return "values do not have the cache's heads and headDim";
  if (hasValues && isTooDifferent(planes[0].headDim(), planes[1].headDim())) {
    return "head dims of keys and values are too different";
  }
  const uint32_t candidates = spec.options.candidates;
  if (candidates != 0 && candidates != 1 && candidates != 5 && candidates != 17) {
    return "there is no search with so many candidates";
  }
  if (spec.counts && (spec.counts->dtype != MNK_U32 || spec.counts->elements() != 2)) return "the counts do not fit";
  const CacheDims cache = cacheDims(*planes[0].codes, write.numbers.into.layout);
  if (spec.probe && (spec.keys.codec.name != MNK_MLX1 || tokensOf(write) > 1)) {
    return "the probe is for one token of mlx1";
  }
  if (!isMatrix(spec.probe, cache.heads, planes[0].headDim())) return "the probe does not fit";
  if (hasValues && !isOfSameTokens(dimsOfValues(write), dimsOfKeys(write))) {
    return "values hold another number of tokens than keys";
  }
  return hasLargeExtents(spec) ? "an extent is too large for the kernel" : refusalOfPlaces(write);
}

std::string refusalOfReading(const Spec& spec) {
  const auto planes = cachePlanes(spec);
  const KVCacheWriteSpec& write = spec.write;
  const mnk_kv_cache_write& n = write.numbers;
  if (!write.keys && !write.values) return "there is nothing to read into";
  if (write.values && !write.valueCache) return "values are asked for but the cache has none";
  if ((write.keys && !isFloat(write.keys->dtype)) || (write.values && !isFloat(write.values->dtype))) {
    return "the target cannot hold numbers";
  }
  const bool hasBoth = write.keys && write.values;
  if (hasBoth && write.keys->dtype != write.values->dtype) return "values have another dtype than keys";
  if (!hasVectors(true, spec, planes[0]) || !hasVectors(false, spec, planes.back())) {
    return "a target does not have the cache's heads and headDim";
  }
  const uint64_t tokens = sourceDims(write.keys ? *write.keys : *write.values, n.source_layout).tokens;
  if (hasBoth && !isOfSameTokens(dimsOfValues(write), dimsOfKeys(write))) {
    return "keys and values hold different numbers of tokens";
  }
  if (hasBoth && isTooDifferent(planes[0].headDim(), planes[1].headDim())) {
    return "head dims of keys and values are too different";
  }
  const CacheDims cache = cacheDims(*planes[0].codes, n.into.layout);
  const bool isRing = n.into.wrap == MNK_RING;
  if (n.sequence >= cache.sequences) return "the sequence is not in the cache";
  if (n.into.pinned != 0 && (!isRing || n.into.pinned >= cache.capacity)) {
    return "the cache has no room for its pinned slots";
  }
  const Wide end = Wide{n.position} + tokens;
  const uint64_t pinned = n.position < n.into.pinned ? std::min<uint64_t>(tokens, n.into.pinned - n.position) : 0;
  const bool isHeld =
      isRing ? end <= UINT64_MAX && tokens - pinned <= cache.capacity - n.into.pinned : end <= cache.capacity;
  return isHeld ? "" : "the cache does not hold these positions";
}

bool sharesMemory(const Spec& spec) {
  const KVCacheWriteSpec& write = spec.write;
  std::vector<TensorSpec> ranges;
  ranges.reserve(2);
  std::vector<const TensorSpec*> vectors, cache, factors;
  const auto add = [](std::vector<const TensorSpec*>& to, const std::optional<TensorSpec>& tensor) {
    if (tensor) to.push_back(&*tensor);
  };
  for (const QuantizedPlaneOperands& plane : planesOf(spec)) {
    ranges.push_back(rangeOfSource(*plane.vectors, plane.places));
    vectors.push_back(&ranges.back());
    cache.push_back(plane.codes);
    add(cache, plane.plane->scales);
    if (spec.isRead && spec.domain == MNK_ROTATED_DOMAIN) continue;
    add(factors, plane.plane->means);
    add(factors, plane.plane->channelScales);
  }
  if (!spec.isRead && write.numbers.has_rows) {
    add(factors, write.sequences.tensor);
    add(factors, write.positions.tensor);
  }
  std::vector<const TensorSpec*>& written = spec.isRead ? vectors : cache;
  std::vector<const TensorSpec*>& read = spec.isRead ? cache : vectors;
  read.insert(read.end(), factors.begin(), factors.end());
  if (!spec.isRead) add(written, spec.counts), add(written, spec.probe);
  for (size_t i = 0; i < written.size(); ++i) {
    const auto meets = [&](const TensorSpec* other) { return written[i]->overlaps(*other); };
    if (std::any_of(read.begin(), read.end(), meets)) return true;
    if (std::any_of(written.begin() + static_cast<ptrdiff_t>(i) + 1, written.end(), meets)) return true;
  }
  return false;
}

}  // namespace

uint64_t headDimOf(const mnk_kv_codec& codec, uint64_t codeBytes) {
  for (const uint64_t headDim : {32, 64, 80, 96, 112, 128, 192, 256, 512}) {
    const bool isTurbo = codec.name == MNK_TURBO && codec.bits >= 2 && codec.bits <= 8;
    if (isTurbo && codeBytes == headDim * codec.bits / 8) return headDim;
  }
  for (uint64_t headDim = 4; headDim <= 4096; headDim *= 2) {
    const bool isNibbles = codec.name == MNK_MLX1 && codec.bits == 4;
    const bool isBytes = codec.name == MNK_MLX1 && (codec.bits == 5 || codec.bits == 6 || codec.bits == 8) &&
                         (headDim == 256 || headDim == 512);
    if (isNibbles && codeBytes == headDim / 2) return headDim;
    if (isBytes && codeBytes == headDim) return headDim;
  }
  return 0;
}

std::string refusalOfView(const Spec& spec, const std::string& name) {
  const mnk_kv_cache_view& n = spec.write.numbers.into;
  if (spec.viewSize != sizeof(mnk_quantized_kv_view)) return "mnk_quantized_kv_view has the wrong size";
  for (const bool isKeys : {true, false}) {
    const std::string what = isKeys ? refusalOfPlane(spec.write.keyCache, spec.keys, name + ".keys", true)
                                    : refusalOfPlane(spec.write.valueCache, spec.values, name + ".values", false);
    if (!what.empty()) return what;
  }
  if (static_cast<uint32_t>(n.layout) > 1) return "the number is not a layout";
  return static_cast<uint32_t>(n.wrap) > 1 ? "the number is not a wrap" : "";
}

std::string refusalOfCache(const Spec& spec) {
  const std::vector<CachePlane> planes = cachePlanes(spec);
  const auto all = [&](auto holds) { return std::all_of(planes.begin(), planes.end(), holds); };
  const size_t rank = planes[0].codes->shape.size();
  if ((rank != 3 && rank != 4) || planes.back().codes->shape.size() != rank) return "the cache has the wrong rank";
  if (!all([](const auto& p) { return p.codes->dtype == MNK_U8 || p.isDense(); })) return "codes are not bytes";
  if (all([](const auto& p) { return p.isDense(); })) return "nothing in the cache is quantized";
  const auto isBare = [](const auto& p) { return !p.plane->scales && !p.plane->means && !p.plane->channelScales; };
  if (!all([&](const auto& p) { return !p.isDense() || isBare(p); })) {
    return "dense vectors have no scales, means or channel scales";
  }
  const bool isMixed = planes[0].isDense() || planes.back().isDense();
  const mnk_kv_codec_name name = planes[0].isDense() ? spec.values.codec.name : spec.keys.codec.name;
  if (!isMixed && planes.back().plane->codec.name != name) return "keys and values have different codecs";
  if (!all([](const auto& p) { return p.headDim() != 0; })) return "the codec has no codes of this length";
  const CachePlane& coded = planes[planes[0].isDense() ? 1 : 0];
  if (!all([&](const auto& p) { return !p.isDense() || canCode(coded.plane->codec, p.headDim()); })) {
    return "dense vectors have a head dim that the codec beside them does not have";
  }
  if (!all(isFactor)) return "the scale factor cannot be used";
  const CacheDims cache = cacheDims(*planes[0].codes, spec.write.numbers.into.layout);
  const CacheDims other = cacheDims(*planes.back().codes, spec.write.numbers.into.layout);
  if (cache.capacity == 0) return "the cache has no capacity";
  if (other.sequences != cache.sequences || other.heads != cache.heads || other.capacity != cache.capacity) {
    return "the value cache differs from the key cache";
  }
  const mnk_dtype scales = name == MNK_TURBO ? MNK_F16 : MNK_F32;
  if (!all([&](const auto& p) { return p.isDense() || p.plane->scales->dtype == scales; }))
    return "scales have the wrong dtype";
  if (!all(fitsCodes)) return "scales do not match the codes";
  const bool isPlain = all([](const auto& p) { return !p.plane->means && !p.plane->channelScales; });
  if ((spec.write.valueCache && spec.values.channelScales) || (name == MNK_MLX1 && !isPlain)) {
    return "the codec has no means or channel scales";
  }
  const bool isFitting = all([&](const auto& p) {
    return isMatrix(p.plane->means, cache.heads, p.headDim()) &&
           isMatrix(p.plane->channelScales, cache.heads, p.headDim());
  });
  return isFitting ? "" : "means or channel scales do not match the cache";
}

void avoidMixed(Spec& spec) {
  if (!spec.write.keyCache || !refusalOfView(spec, "").empty() || !refusalOfCache(spec).empty()) return;
  for (auto* codes : {&spec.write.keyCache, &spec.write.valueCache}) {
    if (*codes && isFloat((*codes)->dtype)) (*codes)->dtype = MNK_U8;
  }
}

std::vector<QuantizedPlaneOperands> planesOf(const Spec& spec) {
  const KVCacheWriteSpec& write = spec.write;
  std::vector<QuantizedPlaneOperands> planes;
  const auto add = [&](const std::optional<TensorSpec>& vectors, const std::optional<mnk_heads_view>& view,
                       const std::optional<TensorSpec>& codes, const QuantizedPlaneSpec& plane) {
    if (!vectors) return;
    planes.push_back({&*vectors, *placesOfSource(*vectors, view, write.numbers.source_layout), &*codes, &plane,
                      headDimOf(plane.codec, codes->shape.back())});
  };
  add(write.keys, write.keysView, write.keyCache, spec.keys);
  add(write.values, write.valuesView, write.valueCache, spec.values);
  return planes;
}

std::string refusalOf(const Spec& spec) {
  if (std::string what = refusalOfStruct(spec); !what.empty()) return what;
  if (!spec.isRead) {
    if (std::string what = refusalOfSources(spec.write); !what.empty()) return what;
  }
  if (std::string what = refusalOfCache(spec); !what.empty()) return what;
  if (std::string what = spec.isRead ? "" : refusalOfLayouts(spec.write); !what.empty()) return what;
  if (std::string what = spec.isRead ? refusalOfReading(spec) : refusalOfOperands(spec); !what.empty()) return what;
  if (sharesMemory(spec)) return "operands share memory";
  return spec.isRead && hasLargeExtents(spec) ? "an extent is too large for the kernel" : "";
}

}  // namespace mnk::fuzz
