#include <algorithm>

#include "KVCacheWriteCall.hpp"

namespace mnk::fuzz {

namespace {

using Words = KVCacheWriteWords;
using Wide = unsigned __int128;  // sums of 64-bit numbers as they are, not wrapped

constexpr uint64_t kMostRows = 1024;
constexpr uint64_t kExtentEnd = uint64_t{1} << 31;

// What the C door itself refuses, before an op exists.
std::string refusalOfRows(const RowWords& rows) {
  if (rows.tensor) return {};
  const uint64_t count = rows.listCount.value_or(rows.list.size());
  if (!rows.hasList && count != 0) return "the list of rows is missing";
  return count > kMostRows ? "there are too many rows" : "";
}

std::string refusalOfStruct(const Words& words) {
  const mnk_kv_cache_write& n = words.numbers;
  if (words.isNull) return "mnk_kv_cache_write is missing";
  const bool isLonger = n.size > sizeof n;
  if (n.size < sizeof n || n.size > 2 * sizeof n || (isLonger && words.tail != 0)) {
    return "mnk_kv_cache_write has the wrong size";
  }
  if (!words.keys) return "keys is missing";
  if (static_cast<uint32_t>(n.source_layout) > 1) return "the number is not a layout";
  if (n.into.size != sizeof n.into) return "mnk_kv_cache_view has the wrong size";
  if (!words.keyCache) return "into.keys is missing";
  if (static_cast<uint32_t>(n.into.layout) > 1) return "the number is not a layout";
  if (static_cast<uint32_t>(n.into.wrap) > 1) return "the number is not a wrap";
  return refusalOfLists(words);
}

bool isFloat(mnk_dtype dtype) {
  return dtype == MNK_F32 || dtype == MNK_F16 || dtype == MNK_BF16;
}

bool isSource(const TensorWords& tensor, mnk_kv_layout layout) {
  return tensor.shape.size() == 3 || (tensor.shape.size() == 2 && layout == MNK_TOKEN_MAJOR);
}

// Ranks, dtypes and extents of the operands.
std::string refusalOfOperands(const Words& words) {
  const mnk_kv_cache_write& n = words.numbers;
  const TensorWords& keys = *words.keys;
  const TensorWords& keyCache = *words.keyCache;
  const size_t rank = keyCache.shape.size();
  if (std::string what = refusalOfSources(words); !what.empty()) return what;
  if (words.values && !words.valueCache) return "values are given but the cache has none";
  if ((rank != 3 && rank != 4) || (words.values && words.valueCache->shape.size() != rank)) {
    return "the cache has the wrong rank";
  }
  if (keys.dtype != keyCache.dtype && !(isFloat(keys.dtype) && isFloat(keyCache.dtype))) {
    return "this pair of dtypes cannot be written";
  }
  if (words.values && (words.values->dtype != keys.dtype || words.valueCache->dtype != keyCache.dtype)) {
    return "values have another dtype than keys";
  }
  const CacheDims cache = cacheDims(keyCache, n.into.layout);
  const SourceDims source = sourceDims(keys, n.source_layout);
  if (cache.capacity == 0) return "the cache has no capacity";
  // A cache without values to write is still one cache: the extents of its value tensor count.
  uint64_t valueHeadDim = words.valueCache && !words.valueCache->shape.empty() ? words.valueCache->shape.back() : 0;
  if (words.values) {
    const CacheDims second = cacheDims(*words.valueCache, n.into.layout);
    const SourceDims values = sourceDims(*words.values, n.source_layout);
    if (second.sequences != cache.sequences || second.heads != cache.heads || second.capacity != cache.capacity) {
      return "the value cache differs from the key cache";
    }
    if (source.heads != cache.heads || source.headDim != cache.headDim) {
      return "keys do not have the cache's heads and headDim";
    }
    if (values.heads != cache.heads || values.headDim != second.headDim) {
      return "values do not have the cache's heads and headDim";
    }
    if (values.tokens != source.tokens) return "values hold another number of tokens than keys";
  } else if (source.heads != cache.heads || source.headDim != cache.headDim) {
    return "keys do not have the cache's heads and headDim";
  }
  const uint64_t largest =
      std::max({cache.sequences, cache.heads, cache.capacity, cache.headDim, source.tokens, valueHeadDim});
  return largest >= kExtentEnd ? "an extent is too large for the kernel" : "";
}

uint64_t countOf(const RowWords& rows) {
  return rows.tensor ? rows.tensor->elements() : rows.listCount.value_or(rows.list.size());
}

bool isListBelow(const RowWords& rows, uint64_t end) {
  return rows.tensor || std::all_of(rows.list.begin(), rows.list.end(), [&](uint32_t row) { return row < end; });
}

std::string refusalOfListedRows(const Words& words, uint64_t tokens, const CacheDims& cache) {
  for (const RowWords* rows : {&words.sequences, &words.positions}) {
    if (rows->tensor && rows->tensor->dtype != MNK_U32) return "row indices are not u32";
  }
  if (countOf(words.sequences) != tokens || countOf(words.positions) != tokens) {
    return "the rows do not match the tokens";
  }
  if (tokens > kMostRows) return "the write has too many rows";
  if (!isListBelow(words.sequences, cache.sequences)) return "a row names a sequence that is not in the cache";
  const bool isRing = words.numbers.into.wrap == MNK_RING;
  return !isRing && !isListBelow(words.positions, cache.capacity) ? "a row runs past the end of a linear cache" : "";
}

bool sharesMemory(const Words& words) {
  std::vector<const TensorWords*> sources{&*words.keys};
  std::vector<const TensorWords*> targets{&*words.keyCache};
  if (words.values) {
    sources.push_back(&*words.values);
    targets.push_back(&*words.valueCache);
  }
  if (words.numbers.has_rows && words.sequences.tensor) sources.push_back(&*words.sequences.tensor);
  if (words.numbers.has_rows && words.positions.tensor) sources.push_back(&*words.positions.tensor);
  for (const TensorWords* target : targets) {
    for (const TensorWords* source : sources) {
      if (target->overlaps(*source)) return true;
    }
  }
  return targets.size() == 2 && targets[0]->overlaps(*targets[1]);
}

}  // namespace

SourceDims sourceDims(const TensorWords& tensor, mnk_kv_layout layout) {
  const std::vector<uint64_t>& shape = tensor.shape;
  if (shape.size() == 2) return {shape[0], 1, shape[1]};
  return layout == MNK_HEAD_MAJOR ? SourceDims{shape[0], shape[1], shape[2]} : SourceDims{shape[1], shape[0], shape[2]};
}

CacheDims cacheDims(const TensorWords& tensor, mnk_kv_layout layout) {
  const uint64_t* axes = tensor.shape.data() + (tensor.shape.size() - 3);
  const uint64_t sequences = tensor.shape.size() == 4 ? tensor.shape[0] : 1;
  return layout == MNK_HEAD_MAJOR ? CacheDims{sequences, axes[0], axes[1], axes[2]}
                                  : CacheDims{sequences, axes[1], axes[0], axes[2]};
}

std::string refusalOfLists(const Words& words) {
  if (!words.numbers.has_rows) return {};
  const std::string sequences = refusalOfRows(words.sequences);
  return sequences.empty() ? refusalOfRows(words.positions) : sequences;
}

std::string refusalOfSources(const Words& words) {
  const mnk_kv_layout layout = words.numbers.source_layout;
  if (!isSource(*words.keys, layout)) return "keys have the wrong rank";
  return words.values && !isSource(*words.values, layout) ? "values have the wrong rank" : "";
}

std::string refusalOfPlaces(const Words& words) {
  const mnk_kv_cache_write& n = words.numbers;
  const CacheDims cache = cacheDims(*words.keyCache, n.into.layout);
  const uint64_t length = sourceDims(*words.keys, n.source_layout).tokens;
  const uint64_t tokens = tokensOf(words);
  const bool isRing = n.into.wrap == MNK_RING;
  const bool isInSource =
      n.source_is_ring ? tokens <= length : Wide{n.source_offset} + (n.has_tokens ? n.tokens : 0) <= length;
  if (!isInSource) return "the write reads past the end of the source";
  if (n.into.pinned != 0 && (!isRing || n.into.pinned >= cache.capacity)) {
    return "the cache has no room for its pinned slots";
  }
  if (n.has_rows) return refusalOfListedRows(words, tokens, cache);
  if (n.sequence >= cache.sequences) return "the sequence is not in the cache";
  if (Wide{n.position} + tokens > UINT64_MAX) return "the position is too large to count";
  if (!isRing && Wide{n.position} + tokens > cache.capacity) return "the write runs past the end of a linear cache";
  return {};
}

uint64_t tokensOf(const Words& words) {
  const mnk_kv_cache_write& n = words.numbers;
  const uint64_t length = sourceDims(*words.keys, n.source_layout).tokens;
  if (n.has_tokens) return n.tokens;
  if (n.source_is_ring) return length;
  return n.source_offset < length ? length - n.source_offset : 0;
}

std::string refusalOf(const Words& words) {
  for (const auto refusal : {refusalOfStruct, refusalOfOperands, refusalOfPlaces}) {
    if (std::string what = refusal(words); !what.empty()) return what;
  }
  return sharesMemory(words) ? "source and destination share memory" : "";
}

}  // namespace mnk::fuzz
