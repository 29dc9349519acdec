#include <algorithm>

#include "KVCacheWriteCall.hpp"
#include "MultiRoPE/MultiRoPECall.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheWriteSpec;
using Wide = unsigned __int128;  // sums of 64-bit numbers as they are, not wrapped

constexpr uint64_t kMostRows = 1024;
constexpr uint64_t kExtentEnd = uint64_t{1} << 31;

// What the C API itself refuses, before an op exists.
std::string refusalOfRows(const RowSpec& rows) {
  if (rows.tensor) return {};
  const uint64_t count = rows.listCount.value_or(rows.list.size());
  if (!rows.hasList && count != 0) return "the list of rows is missing";
  return count > kMostRows ? "there are too many rows" : "";
}

std::string refusalOfStruct(const Spec& spec) {
  const mnk_kv_cache_write& n = spec.numbers;
  if (spec.isNull) return "mnk_kv_cache_write is missing";
  const bool isLonger = n.size > sizeof n;
  if (n.size < sizeof n || n.size > 2 * sizeof n || (isLonger && spec.tail != 0)) {
    return "mnk_kv_cache_write has the wrong size";
  }
  if (std::string what = refusalOfSourceHandles(spec); !what.empty()) return what;
  if (n.into.size != sizeof n.into) return "mnk_kv_cache_view has the wrong size";
  if (!spec.keyCache) return "into.keys is missing";
  if (static_cast<uint32_t>(n.into.layout) > 1) return "the number is not a layout";
  if (static_cast<uint32_t>(n.into.wrap) > 1) return "the number is not a wrap";
  return refusalOfLists(spec);
}

bool isFloat(mnk_dtype dtype) {
  return dtype == MNK_F32 || dtype == MNK_F16 || dtype == MNK_BF16;
}

std::string refusalOfViewHandle(const std::optional<mnk_heads_view>& view, const std::optional<TensorSpec>& tensor,
                                const std::string& name) {
  if (!view) return {};
  if (!tensor) return name + "->tensor is missing";
  if (view->size != sizeof *view) return "mnk_heads_view has the wrong size";
  return !view->has_strides && static_cast<uint32_t>(view->layout) > 1 ? "the number is not a layout" : "";
}

bool isInside(const TensorSpec& tensor, const mnk_heads_view& places) {
  if (places.sequences == 0 || places.tokens == 0 || places.heads == 0 || places.head_dim == 0) return true;
  const std::pair<uint64_t, uint64_t> axes[] = {{places.sequences, places.sequence_stride},
                                                {places.tokens, places.token_stride},
                                                {places.heads, places.head_stride}};
  Wide end = Wide{places.offset} + places.head_dim;
  for (const auto& [count, stride] : axes) end += Wide{stride} * (count - 1);
  return end <= tensor.elements();
}

// Whether a source that is read in this layout has the cache's heads in the other one alone.
bool isSwapped(const TensorSpec& tensor, const std::optional<mnk_heads_view>& view, const Spec& spec,
               mnk_kv_layout layout) {
  if (view && view->has_strides) return false;
  if ((view ? view->layout : spec.numbers.source_layout) != layout) return false;
  const uint64_t heads = cacheDims(*spec.keyCache, spec.numbers.into.layout).heads;
  const mnk_kv_layout other = layout == MNK_HEAD_MAJOR ? MNK_TOKEN_MAJOR : MNK_HEAD_MAJOR;
  const auto swapped = placesOfSource(tensor, std::nullopt, other);
  return sourceDims(tensor, layout).heads != heads && swapped && swapped->heads == heads;
}

SourceDims dimsOf(const std::optional<mnk_heads_view>& places) {
  if (!places) return {};
  return {places->sequences, places->heads, places->sequences * places->tokens, places->head_dim, places->tokens};
}

// Ranks, dtypes and extents of the operands.
std::string refusalOfOperands(const Spec& spec) {
  const mnk_kv_cache_write& n = spec.numbers;
  const TensorSpec& keys = *spec.keys;
  const TensorSpec& keyCache = *spec.keyCache;
  const size_t rank = keyCache.shape.size();
  if (std::string what = refusalOfSources(spec); !what.empty()) return what;
  if (spec.values && !spec.valueCache) return "values are given but the cache has none";
  if ((rank != 3 && rank != 4) || (spec.values && spec.valueCache->shape.size() != rank)) {
    return "the cache has the wrong rank";
  }
  if (keys.dtype != keyCache.dtype && !(isFloat(keys.dtype) && isFloat(keyCache.dtype))) {
    return "this pair of dtypes cannot be written";
  }
  if (spec.values && (spec.values->dtype != keys.dtype || spec.valueCache->dtype != keyCache.dtype)) {
    return "values have another dtype than keys";
  }
  const CacheDims cache = cacheDims(keyCache, n.into.layout);
  const SourceDims source = dimsOfKeys(spec);
  if (cache.capacity == 0) return "the cache has no capacity";
  // A cache without values to write is still one cache: the extents of its value tensor count.
  uint64_t valueHeadDim = spec.valueCache && !spec.valueCache->shape.empty() ? spec.valueCache->shape.back() : 0;
  if (spec.values) {
    const CacheDims second = cacheDims(*spec.valueCache, n.into.layout);
    const SourceDims values = dimsOfValues(spec);
    if (second.sequences != cache.sequences || second.heads != cache.heads || second.capacity != cache.capacity) {
      return "the value cache differs from the key cache";
    }
    if (std::string what = refusalOfLayouts(spec); !what.empty()) return what;
    if (source.heads != cache.heads || source.headDim != cache.headDim) {
      return "keys do not have the cache's heads and headDim";
    }
    if (values.heads != cache.heads || values.headDim != second.headDim) {
      return "values do not have the cache's heads and headDim";
    }
    if (!isOfSameTokens(values, source)) return "values hold another number of tokens than keys";
  } else if (std::string what = refusalOfLayouts(spec); !what.empty()) {
    return what;
  } else if (source.heads != cache.heads || source.headDim != cache.headDim) {
    return "keys do not have the cache's heads and headDim";
  }
  const uint64_t largest = std::max({cache.sequences, cache.heads, cache.capacity, cache.headDim, valueHeadDim});
  return largest >= kExtentEnd || hasTooManyTokens(spec) ? "an extent is too large for the kernel" : "";
}

uint64_t countOf(const RowSpec& rows) {
  return rows.tensor ? rows.tensor->elements() : rows.listCount.value_or(rows.list.size());
}

bool isListBelow(const RowSpec& rows, uint64_t end) {
  return rows.tensor || std::all_of(rows.list.begin(), rows.list.end(), [&](uint32_t row) { return row < end; });
}

std::string refusalOfListedRows(const Spec& spec, uint64_t tokens, const CacheDims& cache) {
  for (const RowSpec* rows : {&spec.sequences, &spec.positions}) {
    if (rows->tensor && rows->tensor->dtype != MNK_U32) return "row indices are not u32";
  }
  if (countOf(spec.sequences) != tokens || countOf(spec.positions) != tokens) {
    return "the rows do not match the tokens";
  }
  if (tokens > kMostRows) return "the write has too many rows";
  if (!isListBelow(spec.sequences, cache.sequences)) return "a row names a sequence that is not in the cache";
  const bool isRing = spec.numbers.into.wrap == MNK_RING;
  return !isRing && !isListBelow(spec.positions, cache.capacity) ? "a row runs past the end of a linear cache" : "";
}

bool sharesMemory(const Spec& spec) {
  const TensorSpec keys =
      rangeOfSource(*spec.keys, *placesOfSource(*spec.keys, spec.keysView, spec.numbers.source_layout));
  TensorSpec values;
  std::vector<const TensorSpec*> sources{&keys};
  std::vector<const TensorSpec*> targets{&*spec.keyCache};
  if (spec.values) {
    values = rangeOfSource(*spec.values, *placesOfSource(*spec.values, spec.valuesView, spec.numbers.source_layout));
    sources.push_back(&values);
    targets.push_back(&*spec.valueCache);
  }
  if (spec.numbers.has_rows && spec.sequences.tensor) sources.push_back(&*spec.sequences.tensor);
  if (spec.numbers.has_rows && spec.positions.tensor) sources.push_back(&*spec.positions.tensor);
  for (const TensorSpec* target : targets) {
    for (const TensorSpec* source : sources) {
      if (target->overlaps(*source)) return true;
    }
  }
  return targets.size() == 2 && targets[0]->overlaps(*targets[1]);
}

}  // namespace

SourceDims sourceDims(const TensorSpec& tensor, mnk_kv_layout layout) {
  return dimsOf(placesOfSource(tensor, std::nullopt, layout));
}
SourceDims dimsOfKeys(const Spec& spec) {
  return dimsOf(placesOfSource(*spec.keys, spec.keysView, spec.numbers.source_layout));
}
SourceDims dimsOfValues(const Spec& spec) {
  return dimsOf(placesOfSource(*spec.values, spec.valuesView, spec.numbers.source_layout));
}

bool isOfSameTokens(const SourceDims& a, const SourceDims& b) {
  return a.sequences == b.sequences && a.tokensOfEach == b.tokensOfEach;
}

bool hasTooManyTokens(const Spec& spec) {
  const auto places = placesOfSource(spec.keys ? *spec.keys : *spec.values, spec.keysView, spec.numbers.source_layout);
  return std::max({Wide{places->sequences}, Wide{places->tokens}, Wide{places->sequences} * places->tokens}) >=
         kExtentEnd;
}

std::optional<mnk_heads_view> placesOfSource(const TensorSpec& tensor, const std::optional<mnk_heads_view>& view,
                                             mnk_kv_layout layout) {
  HeadsSpec heads{.tensor = tensor};
  heads.view.layout = layout;
  if (view) heads.view = *view;
  return placesOf(heads);
}

uint64_t elementAt(const mnk_heads_view& places, uint64_t token, uint64_t head) {
  return places.offset + token / places.tokens * places.sequence_stride + token % places.tokens * places.token_stride +
         head * places.head_stride;
}

TensorSpec rangeOfSource(const TensorSpec& tensor, const mnk_heads_view& places) {
  TensorSpec range = tensor;
  range.offset += places.offset * tensor.elementBytes();
  range.shape = {0};
  if (places.sequences == 0 || places.tokens == 0 || places.heads == 0 || places.head_dim == 0) return range;
  const uint64_t last = elementAt(places, places.sequences * places.tokens - 1, places.heads - 1);
  range.shape = {last - places.offset + places.head_dim};
  return range;
}

CacheDims cacheDims(const TensorSpec& tensor, mnk_kv_layout layout) {
  const uint64_t* axes = tensor.shape.data() + (tensor.shape.size() - 3);
  const uint64_t sequences = tensor.shape.size() == 4 ? tensor.shape[0] : 1;
  return layout == MNK_HEAD_MAJOR ? CacheDims{sequences, axes[0], axes[1], axes[2]}
                                  : CacheDims{sequences, axes[1], axes[0], axes[2]};
}

std::string refusalOfLists(const Spec& spec) {
  if (!spec.numbers.has_rows) return {};
  const std::string sequences = refusalOfRows(spec.sequences);
  return sequences.empty() ? refusalOfRows(spec.positions) : sequences;
}

std::string refusalOfSourceHandles(const Spec& spec) {
  if (!spec.keys && !spec.keysView) return "keys is missing";
  if (static_cast<uint32_t>(spec.numbers.source_layout) > 1) return "the number is not a layout";
  const std::string keys = refusalOfViewHandle(spec.keysView, spec.keys, "keys_view");
  return keys.empty() ? refusalOfViewHandle(spec.valuesView, spec.values, "values_view") : keys;
}

std::string refusalOfSources(const Spec& spec) {
  const auto places = [&](const std::optional<TensorSpec>& tensor, const std::optional<mnk_heads_view>& view) {
    return placesOfSource(*tensor, view, spec.numbers.source_layout);
  };
  const auto keys = places(spec.keys, spec.keysView);
  if (!keys) return "keys have the wrong rank";
  const auto values = spec.values ? places(spec.values, spec.valuesView) : std::nullopt;
  if (spec.values && !values) return "values have the wrong rank";
  const bool isOutside = !isInside(*spec.keys, *keys) || (spec.values && !isInside(*spec.values, *values));
  return isOutside ? "vectors lie outside of their tensor" : "";
}

std::string refusalOfLayouts(const Spec& spec) {
  for (const mnk_kv_layout layout : {MNK_TOKEN_MAJOR, MNK_HEAD_MAJOR}) {
    if (isSwapped(*spec.keys, spec.keysView, spec, layout) ||
        (spec.values && isSwapped(*spec.values, spec.valuesView, spec, layout))) {
      return layout == MNK_TOKEN_MAJOR ? "a head-major source is read as token-major"
                                       : "a token-major source is read as head-major";
    }
  }
  return {};
}

std::string refusalOfPlaces(const Spec& spec) {
  const mnk_kv_cache_write& n = spec.numbers;
  const CacheDims cache = cacheDims(*spec.keyCache, n.into.layout);
  const uint64_t length = dimsOfKeys(spec).tokens;
  const uint64_t tokens = tokensOf(spec);
  const bool isRing = n.into.wrap == MNK_RING;
  const bool isInSource =
      n.source_is_ring ? tokens <= length : Wide{n.source_offset} + (n.has_tokens ? n.tokens : 0) <= length;
  if (!isInSource) return "the write reads past the end of the source";
  if (n.into.pinned != 0 && (!isRing || n.into.pinned >= cache.capacity)) {
    return "the cache has no room for its pinned slots";
  }
  if (n.has_rows) return refusalOfListedRows(spec, tokens, cache);
  if (n.sequence >= cache.sequences) return "the sequence is not in the cache";
  if (Wide{n.position} + tokens > UINT64_MAX) return "the position is too large to count";
  if (!isRing && Wide{n.position} + tokens > cache.capacity) return "the write runs past the end of a linear cache";
  return {};
}

uint64_t tokensOf(const Spec& spec) {
  const mnk_kv_cache_write& n = spec.numbers;
  const uint64_t length = dimsOfKeys(spec).tokens;
  if (n.has_tokens) return n.tokens;
  if (n.source_is_ring) return length;
  return n.source_offset < length ? length - n.source_offset : 0;
}

std::string refusalOf(const Spec& spec) {
  for (const auto refusal : {refusalOfStruct, refusalOfOperands, refusalOfPlaces}) {
    if (std::string what = refusal(spec); !what.empty()) return what;
  }
  return sharesMemory(spec) ? "source and destination share memory" : "";
}

}  // namespace mnk::fuzz
