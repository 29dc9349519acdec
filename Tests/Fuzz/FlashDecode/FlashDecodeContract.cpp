#include <algorithm>
#include <cmath>

#include "FlashDecodeCall.hpp"

namespace mnk::fuzz {

namespace {

using Spec = FlashDecodeSpec;

constexpr uint64_t kExtentEnd = uint64_t{1} << 31;

bool isFloat(const TensorSpec& tensor) {
  return tensor.dtype == MNK_F32 || tensor.dtype == MNK_F16 || tensor.dtype == MNK_BF16;
}

bool isF32(const std::optional<TensorSpec>& tensor, const std::vector<uint64_t>& shape) {
  return !tensor || (tensor->dtype == MNK_F32 && tensor->shape == shape);
}

// What the C API itself refuses, before an op exists.
std::string refusalOfStruct(const Spec& spec) {
  constexpr size_t own = sizeof(mnk_flash_decode);
  if (spec.isNull) return "mnk_flash_decode is missing";
  if (spec.size < own || spec.size > 2 * own || (spec.size > own && spec.tail != 0)) {
    return "mnk_flash_decode has the wrong size";
  }
  if (!spec.queries) return spec.queriesView ? "queries_view.tensor is missing" : "queries is missing";
  if (spec.queriesView) {
    if (spec.queriesView->size != sizeof(mnk_heads_view)) return "mnk_heads_view has the wrong size";
    const bool isLayout = spec.queriesView->has_strides || static_cast<uint32_t>(spec.queriesView->layout) <= 1;
    if (!isLayout) return "the number is not a layout";
  }
  if (spec.hasDense == spec.hasQuantized) return "attention needs one cache";
  if (spec.hasQuantized) {
    if (std::string what = refusalOfView(spec.cache, "quantized"); !what.empty()) return what;
  } else {
    if (spec.view().size != sizeof(mnk_kv_cache_view)) return "mnk_kv_cache_view has the wrong size";
    if (!spec.cache.write.keyCache) return "dense.keys is missing";
    if (static_cast<uint32_t>(spec.view().layout) > 1) return "the number is not a layout";
    if (static_cast<uint32_t>(spec.view().wrap) > 1) return "the number is not a wrap";
  }
  const uint64_t count = spec.sequenceCount.value_or(spec.sequences.size());
  if (!spec.hasSequences && count != 0) return "sequences is missing";
  const auto places = queryPlaces(spec);
  if (count > mostSequences(places)) return "there are too many sequences";
  if (!spec.hasResults) return "mnk_attention_results is missing";
  constexpr size_t results = sizeof(mnk_attention_results), options = sizeof(mnk_attention_options);
  if (spec.resultsSize < results || spec.resultsSize > 2 * results) {
    return "mnk_attention_results has the wrong size";
  }
  if (spec.sums.has_value() != spec.stats.has_value()) {
    return spec.sums ? "partial_stats is missing" : "partial_sums is missing";
  }
  if (!spec.hasOptions) return {};
  if (spec.options.size < options || spec.options.size > 2 * options) {
    return "mnk_attention_options has the wrong size";
  }
  if (static_cast<uint32_t>(spec.options.kernel) > 2) return "the number is not a kernel of FlashDecode";
  return static_cast<uint32_t>(spec.options.merge) > 2 ? "the number is not a way of merging" : "";
}

// The element after the last of all queries; 0 where there are none.
unsigned __int128 endOfQueries(const Spec& spec) {
  const mnk_heads_view places = *queryPlaces(spec);
  if (std::min({places.sequences, places.tokens, places.heads, places.head_dim}) == 0) return 0;
  using Wide = unsigned __int128;
  return Wide{places.offset} + places.head_dim + Wide{places.sequence_stride} * (places.sequences - 1) +
         Wide{places.token_stride} * (places.tokens - 1) + Wide{places.head_stride} * (places.heads - 1);
}

// The memory from the first query to the end of the last.
TensorSpec memoryOfQueries(const Spec& spec) {
  const mnk_heads_view places = *queryPlaces(spec);
  const auto end = static_cast<uint64_t>(endOfQueries(spec));
  TensorSpec memory = *spec.queries;
  memory.offset += places.offset * memory.elementBytes();
  memory.shape = {end == 0 ? 0 : end - places.offset};
  return memory;
}

bool areGrouped(uint64_t heads, uint64_t kvHeads) {
  return kvHeads != 0 && heads % kvHeads == 0 && heads / kvHeads <= 128;
}

std::string refusalOfQueries(const Spec& spec) {
  if (!queryPlaces(spec)) return "queries have the wrong rank";
  if (!isFloat(*spec.queries)) return "queries are not floats";
  return endOfQueries(spec) <= spec.queries->elements() ? "" : "queries lie outside of their tensor";
}

bool hasLatentPart(const Spec& spec) {
  return spec.view().latent_dim == 0 || spec.view().latent_dim == valueDimOf(spec);
}

std::string refusalOfMemory(const Spec& spec) {
  const std::optional<TensorSpec>& values = spec.cache.write.valueCache;
  if (spec.hasQuantized) {
    if (std::string what = refusalOfCache(spec.cache); !what.empty()) return what;
    if (!values) return "the cache has no values";
    return hasLatentPart(spec) ? "" : "the latent part does not match the cache";
  }
  const TensorSpec& keys = *spec.cache.write.keyCache;
  if (!values) return "the cache has no values";
  const size_t rank = keys.shape.size();
  if ((rank != 3 && rank != 4) || values->shape.size() != rank) return "the cache has the wrong rank";
  if (!isFloat(keys) || values->dtype != keys.dtype) return "the cache does not hold numbers of one type";
  const CacheDims cache = cacheDims(keys, spec.view().layout), other = cacheDims(*values, spec.view().layout);
  if (cache.capacity == 0) return "the cache has no capacity";
  const bool isAlike =
      cache.sequences == other.sequences && cache.heads == other.heads && cache.capacity == other.capacity;
  if (!isAlike) return "the value cache differs from the key cache";
  return hasLatentPart(spec) ? "" : "the latent part does not match the cache";
}

bool hasKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized, bool isLatent) {
  if (isLatent) return keyDim == 64 && valueDim == 512;
  if (isQuantized) {
    const uint64_t dims[] = {32, 64, 80, 96, 112, 128, 192, 256};
    const auto isShort = [&](uint64_t dim) {
      return std::find(std::begin(dims), std::end(dims), dim) != std::end(dims);
    };
    return (isShort(keyDim) && isShort(valueDim)) || (keyDim == 512 && valueDim == 512);
  }
  const auto isMultiple = [](uint64_t dim) { return dim >= 8 && dim <= 256 && dim % 8 == 0; };
  if (isMultiple(keyDim) && isMultiple(valueDim)) return true;
  return valueDim == 512 && (keyDim == 512 || keyDim == 576);
}

std::string refusalOfShapes(const Spec& spec) {
  const QueryDims queries = queryDims(spec);
  const CacheDims cache = cacheDims(*spec.cache.write.keyCache, spec.view().layout);
  const bool isRing = spec.view().wrap == MNK_RING;
  if (std::max({queries.vectors(), cache.capacity, cache.heads, cache.sequences}) >= kExtentEnd) {
    return "an extent is too large for the kernel";
  }
  const uint32_t pinned = spec.view().pinned;
  if (pinned != 0 && (!isRing || pinned >= cache.capacity)) return "the cache has no room for its pinned slots";
  const uint32_t latentDim = spec.view().latent_dim;
  if (queries.headDim != latentDim + keyDimOf(spec)) return "queries have another head dim than keys";
  if (!hasKernel(keyDimOf(spec), valueDimOf(spec), spec.hasQuantized, latentDim != 0)) {
    return "there is no kernel for these head dims";
  }
  const bool isPlain =
      !spec.queriesView || (!spec.queriesView->has_strides && spec.queriesView->layout == MNK_TOKEN_MAJOR);
  const bool isMultiple = cache.heads != 0 && queries.heads % cache.heads == 0;
  if (isPlain && spec.queries->shape.size() >= 3 && queries.rows != 0 && !isMultiple &&
      areGrouped(queries.rows, cache.heads)) {
    return "queries fit the cache only as head-major";
  }
  if (queries.heads == 0 || areGrouped(queries.heads, cache.heads)) return {};
  return isMultiple ? "there are too many query heads for each head of the cache"
                    : "query heads are no multiple of the cache's heads";
}

std::string refusalOfSequences(const Spec& spec) {
  const QueryDims queries = queryDims(spec);
  const CacheDims cache = cacheDims(*spec.cache.write.keyCache, spec.view().layout);
  const bool isRing = spec.view().wrap == MNK_RING;
  const mnk_attention_options options = spec.usedOptions();
  const std::vector<mnk_attended_sequence>& all = spec.sequences;
  const auto any = [&](auto is) { return std::any_of(all.begin(), all.end(), is); };
  const auto hasRows = [](const auto& s) { return s.rows != 0; };
  if (any(hasRows)) {
    if (!std::all_of(all.begin(), all.end(), hasRows))
      return "some sequences have a number of rows, and some have none";
    unsigned __int128 sum = 0;
    for (const auto& s : all) sum += s.rows;
    if (queries.sequences != 1 || queries.rows != sum) return "the rows of sequences do not match the queries";
  } else if (spec.sequenceCount.value_or(all.size()) != queries.sequences) {
    return "the sequences do not match the queries";
  }
  if (any([&](const auto& s) { return s.sequence >= cache.sequences; })) return "the sequence is not in the cache";
  if (any([](const auto& s) { return writtenOf(s) < s.length; })) {
    return "a sequence has had fewer positions than it has";
  }
  if (any([&](const auto& s) { return !isRing && writtenOf(s) > cache.capacity; })) {
    return "a sequence is longer than its cache";
  }
  if (any([](const auto& s) { return writtenOf(s) >= kExtentEnd; })) return "a sequence has too many positions";
  const bool hasPositions = !options.is_bidirectional || options.window != 0 || spec.used(spec.slopes);
  if (hasPositions && any([&](const auto& s) { return s.length != 0 && s.length < rowsOf(spec, s); })) {
    return "a sequence has fewer positions than queries";
  }
  return {};
}

std::string refusalOfResults(const Spec& spec) {
  if (spec.into.has_value() == spec.sums.has_value()) return "attention has no target, or two";
  const QueryDims queries = queryDims(spec);
  // Axes of 1 before the heads may be left out.
  const auto fits = [&](const std::optional<TensorSpec>& tensor, std::optional<uint64_t> last) {
    if (!tensor) return true;
    std::vector<uint64_t> full{queries.sequences, queries.rows, queries.heads};
    if (last) full.push_back(*last);
    const size_t missing = full.size() - std::min(full.size(), tensor->shape.size());
    if (missing > 2 || (missing > 0 && queries.sequences != 1) || (missing > 1 && queries.rows != 1)) return false;
    return std::vector<uint64_t>(full.begin() + static_cast<ptrdiff_t>(missing), full.end()) == tensor->shape;
  };
  const auto isFloat32 = [](const std::optional<TensorSpec>& tensor) { return !tensor || tensor->dtype == MNK_F32; };
  const bool isFitting = (!spec.into || isFloat(*spec.into)) && isFloat32(spec.sums) && isFloat32(spec.stats) &&
                         isFloat32(spec.logSumExp) && fits(spec.into, valueDimOf(spec)) &&
                         fits(spec.sums, valueDimOf(spec)) && fits(spec.stats, 2) && fits(spec.logSumExp, std::nullopt);
  return isFitting ? "" : "a result does not match the queries";
}

bool isMask(const Spec& spec, const TensorSpec& mask) {
  const QueryDims queries = queryDims(spec);
  const size_t rank = mask.shape.size();
  if (!isFloat(mask) || rank < 2 || rank > 4) return false;
  const uint64_t wanted[] = {queries.sequences, queries.heads, queries.rows};
  for (size_t axis = 0; axis + 1 < rank; ++axis) {
    const uint64_t extent = mask.shape[axis];
    if (extent != 1 && extent != wanted[4 - rank + axis]) return false;
  }
  return mask.shape.back() >= mostHeld(spec) && mask.shape.back() < kExtentEnd;
}

bool canUseMatrices(const Spec& spec) {
  const uint64_t headDim = keyDimOf(spec);
  if (spec.view().latent_dim != 0 || valueDimOf(spec) != headDim || (headDim != 64 && headDim != 128 && headDim != 256))
    return false;
  return spec.hasQuantized || (spec.cache.write.keyCache->dtype == MNK_F16 && !spec.used(spec.mask));
}

// Whether the window of a row begins before the oldest position that a ring holds, pinned ones aside.
bool windowReachesLost(const Spec& spec) {
  const uint64_t window = spec.usedOptions().window, pinned = spec.view().pinned;
  const uint64_t capacity = cacheDims(*spec.cache.write.keyCache, spec.view().layout).capacity;
  if (window == 0) return false;
  for (const mnk_attended_sequence& s : spec.sequences) {
    if (writtenOf(s) <= capacity) continue;
    const uint64_t oldest = writtenOf(s) - capacity + pinned;
    for (uint64_t position = s.length - std::min(rowsOf(spec, s), s.length); position < s.length; ++position) {
      const uint64_t begin = std::max(position + 1 - std::min(position + 1, window), pinned);
      if (position >= pinned && begin < oldest) return true;
    }
  }
  return false;
}

std::string refusalOfOptions(const Spec& spec) {
  const mnk_attention_options options = spec.usedOptions();
  const std::vector<uint64_t> heads{queryDims(spec).heads};
  const auto isWithin = [](float x, float least, float most) { return x == 0 || (x >= least && x <= most); };
  if (!isWithin(options.scale, 1e-37f, 1e38f)) return "the scale cannot be used";
  if (spec.view().latent_dim != 0 && options.scale == 0) return "attention over a latent cache has no scale";
  if (!isWithin(options.softcap, 1e-30f, 1e30f)) return "the softcap cannot be used";
  if (options.window >= kExtentEnd) return "the window is too large";
  if (windowReachesLost(spec)) return "a window reaches positions that the ring has overwritten";
  if (spec.used(spec.mask) && spec.sequences.size() != 0 && spec.sequences[0].rows != 0) {
    return "a mask cannot serve sequences that have numbers of rows";
  }
  if (const auto& mask = spec.used(spec.mask); mask && !isMask(spec, *mask)) {
    return "the mask does not match the queries";
  }
  if (!isF32(spec.used(spec.slopes), heads)) return "slopes do not match the queries";
  if (!isF32(spec.used(spec.sinks), heads)) return "sinks do not match the queries";
  if (spec.used(spec.sinks) && spec.sums) return "partials cannot have sinks";
  if (options.splits > 1024) return "there are too many splits";
  if (options.kernel == MNK_KERNEL_MATRIX && !canUseMatrices(spec)) return "the matrix kernel cannot attend to this";
  return spec.scratch && spec.scratch->dtype != MNK_U8 ? "scratch memory is not of bytes" : "";
}

bool sharesMemory(const Spec& spec) {
  const TensorSpec queries = memoryOfQueries(spec);
  std::vector<const TensorSpec*> read{&queries, &*spec.cache.write.keyCache, &*spec.cache.write.valueCache};
  std::vector<const TensorSpec*> written;
  const auto add = [](std::vector<const TensorSpec*>& to, const std::optional<TensorSpec>& tensor) {
    if (tensor) to.push_back(&*tensor);
  };
  if (spec.hasQuantized) {
    for (const QuantizedPlaneSpec* plane : {&spec.cache.keys, &spec.cache.values}) {
      add(read, plane->scales), add(read, plane->means), add(read, plane->channelScales);
    }
  }
  for (const auto* tensor : {&spec.mask, &spec.slopes, &spec.sinks}) add(read, spec.used(*tensor));
  for (const auto* tensor : {&spec.into, &spec.sums, &spec.stats, &spec.logSumExp, &spec.scratch}) {
    add(written, *tensor);
  }
  for (size_t i = 0; i < written.size(); ++i) {
    const auto meets = [&](const TensorSpec* other) { return written[i]->overlaps(*other); };
    if (std::any_of(read.begin(), read.end(), meets)) return true;
    if (std::any_of(written.begin() + static_cast<ptrdiff_t>(i) + 1, written.end(), meets)) return true;
  }
  return false;
}

// Where splits are asked for; where they are not, the generator gives no scratch memory.
bool hasRoom(const Spec& spec) {
  const uint64_t splits = spec.usedOptions().splits, vectors = queryDims(spec).vectors();
  if (!spec.scratch || vectors == 0) return true;
  const uint64_t needed = splits > 1 ? vectors * splits * (valueDimOf(spec) + 2) * 4 : 0;
  return spec.scratch->bytes() >= needed && spec.scratch->offset % 16 == 0;
}

}  // namespace

mnk_attention_options FlashDecodeSpec::usedOptions() const {
  return hasOptions ? options : mnk_attention_options{};
}

const std::optional<TensorSpec>& FlashDecodeSpec::used(const std::optional<TensorSpec>& tensorOfOptions) const {
  static const std::optional<TensorSpec> none;
  return hasOptions ? tensorOfOptions : none;
}

std::optional<mnk_heads_view> queryPlaces(const Spec& spec) {
  const mnk_heads_view plain{.size = sizeof plain, .layout = MNK_TOKEN_MAJOR};
  return placesOf({spec.queries, spec.queriesView.value_or(plain)});
}

uint64_t QueryDims::vectors() const {
  uint64_t tokens = 0, all = 0;
  const bool isTooMany =
      __builtin_mul_overflow(sequences, rows, &tokens) || __builtin_mul_overflow(tokens, heads, &all);
  return isTooMany ? UINT64_MAX : all;
}

QueryDims queryDims(const Spec& spec) {
  const auto places = queryPlaces(spec);
  return places ? QueryDims{places->sequences, places->tokens, places->heads, places->head_dim} : QueryDims{};
}

uint64_t mostSequences(const std::optional<mnk_heads_view>& places) {
  if (!places) return 1;
  // Sequences with numbers of rows share those of one.
  return places->sequences == 1 ? std::max<uint64_t>(places->tokens, 1) : places->sequences;
}

uint64_t keyDimOf(const Spec& spec) {
  const uint64_t last = spec.cache.write.keyCache->shape.back();
  return spec.hasQuantized ? headDimOf(spec.cache.keys.codec, last) : last;
}
uint64_t valueDimOf(const Spec& spec) {
  const uint64_t last = spec.cache.write.valueCache->shape.back();
  return spec.hasQuantized ? headDimOf(spec.cache.values.codec, last) : last;
}

std::string refusalOf(const Spec& spec) {
  if (std::string what = refusalOfStruct(spec); !what.empty()) return what;
  for (const auto refuses :
       {refusalOfQueries, refusalOfMemory, refusalOfShapes, refusalOfSequences, refusalOfResults, refusalOfOptions}) {
    if (std::string what = refuses(spec); !what.empty()) return what;
  }
  if (sharesMemory(spec)) return "operands share memory";
  return hasRoom(spec) ? "" : "there is too little scratch memory";
}

}  // namespace mnk::fuzz
