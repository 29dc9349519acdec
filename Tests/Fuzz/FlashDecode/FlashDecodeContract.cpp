#include <algorithm>
#include <cmath>

#include "FlashDecodeCall.hpp"

namespace mnk::fuzz {

namespace {

using Words = FlashDecodeWords;

constexpr uint64_t kExtentEnd = uint64_t{1} << 31;

bool isFloat(const TensorWords& tensor) {
  return tensor.dtype == MNK_F32 || tensor.dtype == MNK_F16 || tensor.dtype == MNK_BF16;
}

bool isF32(const std::optional<TensorWords>& tensor, const std::vector<uint64_t>& shape) {
  return !tensor || (tensor->dtype == MNK_F32 && tensor->shape == shape);
}

// What the C door itself refuses, before an op exists.
std::string refusalOfStruct(const Words& words) {
  constexpr size_t own = sizeof(mnk_flash_decode);
  if (words.isNull) return "mnk_flash_decode is missing";
  if (words.size < own || words.size > 2 * own || (words.size > own && words.tail != 0)) {
    return "mnk_flash_decode has the wrong size";
  }
  if (!words.queries) return words.queriesView ? "queries_view.tensor is missing" : "queries is missing";
  if (words.queriesView) {
    if (words.queriesView->size != sizeof(mnk_heads_view)) return "mnk_heads_view has the wrong size";
    const bool isLayout = words.queriesView->has_strides || static_cast<uint32_t>(words.queriesView->layout) <= 1;
    if (!isLayout) return "the number is not a layout";
  }
  if (words.hasDense == words.hasQuantized) return "attention needs one cache";
  if (words.hasQuantized) {
    if (std::string what = refusalOfView(words.cache, "quantized"); !what.empty()) return what;
  } else {
    if (words.view().size != sizeof(mnk_kv_cache_view)) return "mnk_kv_cache_view has the wrong size";
    if (!words.cache.write.keyCache) return "dense.keys is missing";
    if (static_cast<uint32_t>(words.view().layout) > 1) return "the number is not a layout";
    if (static_cast<uint32_t>(words.view().wrap) > 1) return "the number is not a wrap";
  }
  const uint64_t count = words.sequenceCount.value_or(words.sequences.size());
  if (!words.hasSequences && count != 0) return "sequences is missing";
  const auto places = queryPlaces(words);
  if (count > (places ? places->sequences : 1)) return "there are too many sequences";
  if (!words.hasResults) return "mnk_attention_results is missing";
  constexpr size_t results = sizeof(mnk_attention_results), options = sizeof(mnk_attention_options);
  if (words.resultsSize < results || words.resultsSize > 2 * results) {
    return "mnk_attention_results has the wrong size";
  }
  if (words.sums.has_value() != words.stats.has_value()) {
    return words.sums ? "partial_stats is missing" : "partial_sums is missing";
  }
  if (!words.hasOptions) return {};
  if (words.options.size < options || words.options.size > 2 * options) {
    return "mnk_attention_options has the wrong size";
  }
  if (static_cast<uint32_t>(words.options.kernel) > 2) return "the number is not a kernel of FlashDecode";
  return static_cast<uint32_t>(words.options.merge) > 2 ? "the number is not a way of merging" : "";
}

// The element after the last of all queries; 0 where there are none.
unsigned __int128 endOfQueries(const Words& words) {
  const mnk_heads_view places = *queryPlaces(words);
  if (std::min({places.sequences, places.tokens, places.heads, places.head_dim}) == 0) return 0;
  using Wide = unsigned __int128;
  return Wide{places.offset} + places.head_dim + Wide{places.sequence_stride} * (places.sequences - 1) +
         Wide{places.token_stride} * (places.tokens - 1) + Wide{places.head_stride} * (places.heads - 1);
}

// The memory from the first query to the end of the last.
TensorWords memoryOfQueries(const Words& words) {
  const mnk_heads_view places = *queryPlaces(words);
  const auto end = static_cast<uint64_t>(endOfQueries(words));
  TensorWords memory = *words.queries;
  memory.offset += places.offset * memory.elementBytes();
  memory.shape = {end == 0 ? 0 : end - places.offset};
  return memory;
}

bool areGrouped(uint64_t heads, uint64_t kvHeads) {
  return kvHeads != 0 && heads % kvHeads == 0 && heads / kvHeads <= 32;
}

std::string refusalOfQueries(const Words& words) {
  if (!queryPlaces(words)) return "queries have the wrong rank";
  if (!isFloat(*words.queries)) return "queries are not floats";
  return endOfQueries(words) <= words.queries->elements() ? "" : "queries lie outside of their tensor";
}

std::string refusalOfMemory(const Words& words) {
  const std::optional<TensorWords>& values = words.cache.write.valueCache;
  if (words.hasQuantized) {
    if (std::string what = refusalOfCache(words.cache); !what.empty()) return what;
    return values ? "" : "the cache has no values";
  }
  const TensorWords& keys = *words.cache.write.keyCache;
  if (!values) return "the cache has no values";
  const size_t rank = keys.shape.size();
  if ((rank != 3 && rank != 4) || values->shape.size() != rank) return "the cache has the wrong rank";
  if (!isFloat(keys) || values->dtype != keys.dtype) return "the cache does not hold numbers of one type";
  const CacheDims cache = cacheDims(keys, words.view().layout), other = cacheDims(*values, words.view().layout);
  if (cache.capacity == 0) return "the cache has no capacity";
  const bool isAlike =
      cache.sequences == other.sequences && cache.heads == other.heads && cache.capacity == other.capacity;
  return isAlike ? "" : "the value cache differs from the key cache";
}

bool hasKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized) {
  if (isQuantized) {
    const uint64_t dims[] = {32, 64, 128, 256, 512};
    return keyDim == valueDim && std::find(std::begin(dims), std::end(dims), keyDim) != std::end(dims);
  }
  const auto isMultiple = [](uint64_t dim) { return dim >= 8 && dim <= 256 && dim % 8 == 0; };
  if (isMultiple(keyDim) && isMultiple(valueDim)) return true;
  return valueDim == 512 && (keyDim == 512 || keyDim == 576);
}

std::string refusalOfShapes(const Words& words) {
  const QueryDims queries = queryDims(words);
  const CacheDims cache = cacheDims(*words.cache.write.keyCache, words.view().layout);
  const bool isRing = words.view().wrap == MNK_RING;
  if (std::max({queries.vectors(), cache.capacity, cache.heads, cache.sequences}) >= kExtentEnd) {
    return "an extent is too large for the kernel";
  }
  const uint32_t pinned = words.view().pinned;
  if (pinned != 0 && (!isRing || pinned >= cache.capacity)) return "the cache has no room for its pinned slots";
  if (queries.headDim != keyDimOf(words)) return "queries have another head dim than keys";
  if (!hasKernel(keyDimOf(words), valueDimOf(words), words.hasQuantized))
    return "there is no kernel for these head dims";
  const bool isPlain =
      !words.queriesView || (!words.queriesView->has_strides && words.queriesView->layout == MNK_TOKEN_MAJOR);
  const bool isMultiple = cache.heads != 0 && queries.heads % cache.heads == 0;
  if (isPlain && words.queries->shape.size() >= 3 && queries.rows != 0 && !isMultiple &&
      areGrouped(queries.rows, cache.heads)) {
    return "queries fit the cache only as head-major";
  }
  if (queries.heads == 0 || areGrouped(queries.heads, cache.heads)) return {};
  return isMultiple ? "there are too many query heads for each head of the cache"
                    : "query heads are no multiple of the cache's heads";
}

std::string refusalOfSequences(const Words& words) {
  const QueryDims queries = queryDims(words);
  const CacheDims cache = cacheDims(*words.cache.write.keyCache, words.view().layout);
  const bool isRing = words.view().wrap == MNK_RING;
  const mnk_attention_options options = words.usedOptions();
  const std::vector<mnk_attended_sequence>& all = words.sequences;
  const auto any = [&](auto is) { return std::any_of(all.begin(), all.end(), is); };
  if (words.sequenceCount.value_or(all.size()) != queries.sequences) return "the sequences do not match the queries";
  if (any([&](const auto& s) { return s.sequence >= cache.sequences; })) return "the sequence is not in the cache";
  if (any([](const auto& s) { return writtenOf(s) < s.length; })) {
    return "a sequence has had fewer positions than it has";
  }
  if (any([&](const auto& s) { return !isRing && writtenOf(s) > cache.capacity; })) {
    return "a sequence is longer than its cache";
  }
  if (any([](const auto& s) { return writtenOf(s) >= kExtentEnd; })) return "a sequence has too many positions";
  const bool hasPositions = !options.is_bidirectional || options.window != 0 || words.used(words.slopes);
  if (hasPositions && any([&](const auto& s) { return s.length != 0 && s.length < queries.rows; })) {
    return "a sequence has fewer positions than queries";
  }
  return {};
}

std::string refusalOfResults(const Words& words) {
  if (words.into.has_value() == words.sums.has_value()) return "attention has no target, or two";
  const QueryDims queries = queryDims(words);
  // Axes of 1 before the heads may be left out.
  const auto fits = [&](const std::optional<TensorWords>& tensor, std::optional<uint64_t> last) {
    if (!tensor) return true;
    std::vector<uint64_t> full{queries.sequences, queries.rows, queries.heads};
    if (last) full.push_back(*last);
    const size_t missing = full.size() - std::min(full.size(), tensor->shape.size());
    if (missing > 2 || (missing > 0 && queries.sequences != 1) || (missing > 1 && queries.rows != 1)) return false;
    return std::vector<uint64_t>(full.begin() + static_cast<ptrdiff_t>(missing), full.end()) == tensor->shape;
  };
  const auto isFloat32 = [](const std::optional<TensorWords>& tensor) { return !tensor || tensor->dtype == MNK_F32; };
  const bool isFitting = (!words.into || isFloat(*words.into)) && isFloat32(words.sums) && isFloat32(words.stats) &&
                         isFloat32(words.logSumExp) && fits(words.into, valueDimOf(words)) &&
                         fits(words.sums, valueDimOf(words)) && fits(words.stats, 2) &&
                         fits(words.logSumExp, std::nullopt);
  return isFitting ? "" : "a result does not match the queries";
}

bool isMask(const Words& words, const TensorWords& mask) {
  const QueryDims queries = queryDims(words);
  const size_t rank = mask.shape.size();
  if (!isFloat(mask) || rank < 2 || rank > 4) return false;
  const uint64_t wanted[] = {queries.sequences, queries.heads, queries.rows};
  for (size_t axis = 0; axis + 1 < rank; ++axis) {
    const uint64_t extent = mask.shape[axis];
    if (extent != 1 && extent != wanted[4 - rank + axis]) return false;
  }
  return mask.shape.back() >= mostHeld(words) && mask.shape.back() < kExtentEnd;
}

bool canUseMatrices(const Words& words) {
  const uint64_t headDim = keyDimOf(words);
  if (valueDimOf(words) != headDim || (headDim != 64 && headDim != 128 && headDim != 256)) return false;
  return words.hasQuantized || (words.cache.write.keyCache->dtype == MNK_F16 && !words.used(words.mask));
}

// Whether the window of a row begins before the oldest position that a ring holds, pinned ones aside.
bool windowReachesLost(const Words& words) {
  const uint64_t window = words.usedOptions().window, rows = queryDims(words).rows, pinned = words.view().pinned;
  const uint64_t capacity = cacheDims(*words.cache.write.keyCache, words.view().layout).capacity;
  if (window == 0) return false;
  for (const mnk_attended_sequence& s : words.sequences) {
    if (writtenOf(s) <= capacity) continue;
    const uint64_t oldest = writtenOf(s) - capacity + pinned;
    for (uint64_t position = s.length - std::min(rows, s.length); position < s.length; ++position) {
      const uint64_t begin = std::max(position + 1 - std::min(position + 1, window), pinned);
      if (position >= pinned && begin < oldest) return true;
    }
  }
  return false;
}

std::string refusalOfOptions(const Words& words) {
  const mnk_attention_options options = words.usedOptions();
  const std::vector<uint64_t> heads{queryDims(words).heads};
  const auto isWithin = [](float x, float least, float most) { return x == 0 || (x >= least && x <= most); };
  if (!isWithin(options.scale, 1e-37f, 1e38f)) return "the scale cannot be used";
  if (!isWithin(options.softcap, 1e-30f, 1e30f)) return "the softcap cannot be used";
  if (options.window >= kExtentEnd) return "the window is too large";
  if (windowReachesLost(words)) return "a window reaches positions that the ring has overwritten";
  if (const auto& mask = words.used(words.mask); mask && !isMask(words, *mask)) {
    return "the mask does not match the queries";
  }
  if (!isF32(words.used(words.slopes), heads)) return "slopes do not match the queries";
  if (!isF32(words.used(words.sinks), heads)) return "sinks do not match the queries";
  if (words.used(words.sinks) && words.sums) return "partials cannot have sinks";
  if (options.splits > 1024) return "there are too many splits";
  if (options.kernel == MNK_KERNEL_MATRIX && !canUseMatrices(words)) return "the matrix kernel cannot attend to this";
  return words.scratch && words.scratch->dtype != MNK_U8 ? "scratch memory is not of bytes" : "";
}

bool sharesMemory(const Words& words) {
  const TensorWords queries = memoryOfQueries(words);
  std::vector<const TensorWords*> read{&queries, &*words.cache.write.keyCache, &*words.cache.write.valueCache};
  std::vector<const TensorWords*> written;
  const auto add = [](std::vector<const TensorWords*>& to, const std::optional<TensorWords>& tensor) {
    if (tensor) to.push_back(&*tensor);
  };
  if (words.hasQuantized) {
    for (const QuantizedPlaneWords* plane : {&words.cache.keys, &words.cache.values}) {
      add(read, plane->scales), add(read, plane->means), add(read, plane->channelScales);
    }
  }
  for (const auto* tensor : {&words.mask, &words.slopes, &words.sinks}) add(read, words.used(*tensor));
  for (const auto* tensor : {&words.into, &words.sums, &words.stats, &words.logSumExp, &words.scratch}) {
    add(written, *tensor);
  }
  for (size_t i = 0; i < written.size(); ++i) {
    const auto meets = [&](const TensorWords* other) { return written[i]->overlaps(*other); };
    if (std::any_of(read.begin(), read.end(), meets)) return true;
    if (std::any_of(written.begin() + static_cast<ptrdiff_t>(i) + 1, written.end(), meets)) return true;
  }
  return false;
}

// Where splits are asked for; where they are not, the generator gives no scratch memory.
bool hasRoom(const Words& words) {
  const uint64_t splits = words.usedOptions().splits, vectors = queryDims(words).vectors();
  if (!words.scratch || vectors == 0) return true;
  const uint64_t needed = splits > 1 ? vectors * splits * (valueDimOf(words) + 2) * 4 : 0;
  return words.scratch->bytes() >= needed && words.scratch->offset % 16 == 0;
}

}  // namespace

mnk_attention_options FlashDecodeWords::usedOptions() const {
  return hasOptions ? options : mnk_attention_options{};
}

const std::optional<TensorWords>& FlashDecodeWords::used(const std::optional<TensorWords>& tensorOfOptions) const {
  static const std::optional<TensorWords> none;
  return hasOptions ? tensorOfOptions : none;
}

std::optional<mnk_heads_view> queryPlaces(const Words& words) {
  const mnk_heads_view plain{.size = sizeof plain, .layout = MNK_TOKEN_MAJOR};
  return placesOf({words.queries, words.queriesView.value_or(plain)});
}

uint64_t QueryDims::vectors() const {
  uint64_t tokens = 0, all = 0;
  const bool isTooMany =
      __builtin_mul_overflow(sequences, rows, &tokens) || __builtin_mul_overflow(tokens, heads, &all);
  return isTooMany ? UINT64_MAX : all;
}

QueryDims queryDims(const Words& words) {
  const auto places = queryPlaces(words);
  return places ? QueryDims{places->sequences, places->tokens, places->heads, places->head_dim} : QueryDims{};
}

uint64_t keyDimOf(const Words& words) {
  const uint64_t last = words.cache.write.keyCache->shape.back();
  return words.hasQuantized ? headDimOf(words.cache.keys.codec, last) : last;
}
uint64_t valueDimOf(const Words& words) {
  const uint64_t last = words.cache.write.valueCache->shape.back();
  return words.hasQuantized ? headDimOf(words.cache.values.codec, last) : last;
}

std::string refusalOf(const Words& words) {
  if (std::string what = refusalOfStruct(words); !what.empty()) return what;
  for (const auto refuses :
       {refusalOfQueries, refusalOfMemory, refusalOfShapes, refusalOfSequences, refusalOfResults, refusalOfOptions}) {
    if (std::string what = refuses(words); !what.empty()) return what;
  }
  if (sharesMemory(words)) return "operands share memory";
  return hasRoom(words) ? "" : "there is too little scratch memory";
}

}  // namespace mnk::fuzz
