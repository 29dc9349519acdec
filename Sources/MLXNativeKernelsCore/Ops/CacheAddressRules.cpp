#include "Ops/CacheAddressRules.hpp"

#include <algorithm>

#include "Support/CheckedMath.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = KVCacheWrite;

bool isSourceRank(const Tensor& tensor, KVLayout layout) {
  const uint32_t rank = tensor.shape().rank();
  return rank == 3 || (rank == 2 && layout == KVLayout::tokenMajor);
}

uint64_t largestExtent(const Op& op) {
  uint64_t largest = std::max({op.into.heads(), op.into.capacity(), op.into.sequences(), op.into.headDim(),
                               sourceShape(op.keys, op.sourceLayout).tokens});
  if (op.into.values) largest = std::max(largest, valuesOf(op.into).headDim());
  return largest;
}

uint64_t indexCount(const RowIndices& indices) {
  if (const auto* list = std::get_if<std::vector<uint32_t>>(&indices)) return list->size();
  const Tensor& tensor = std::get<Tensor>(indices);
  return tensor ? tensor.shape().elementCount() : 0;
}

const std::vector<uint32_t>* listOf(const RowIndices& indices) {
  return std::get_if<std::vector<uint32_t>>(&indices);
}

// Whether a listed index is past the end; tensors are read by the kernel, which skips such rows.
bool isListBelow(const RowIndices& indices, uint64_t end) {
  const auto* list = listOf(indices);
  return !list || std::all_of(list->begin(), list->end(), [&](uint32_t index) { return index < end; });
}

std::string largestText(const RowIndices& indices) {
  const auto* list = listOf(indices);
  return fmt::format("{}", *std::max_element(list->begin(), list->end()));
}

bool isIndexTensor(const RowIndices& indices) {
  const auto* tensor = std::get_if<Tensor>(&indices);
  return !tensor || (*tensor && tensor->dtype() == DType::u32);
}

std::string indicesText(const RowIndices& indices) {
  if (const auto* list = listOf(indices)) return fmt::format("a list of {}", list->size());
  return std::get<Tensor>(indices).text();
}

constexpr Rule<Op> kSourceRules[] = {
    {"a source has no memory", [](const Op& op) { return bool(op.keys) && (!op.values || bool(*op.values)); },
     [](const Op& op) { return std::string(op.keys ? "values without memory" : "keys without memory"); },
     [](const Op&) { return std::string("tensors with memory"); }, "Make the tensors before writing them."},

    {"keys have the wrong rank", [](const Op& op) { return isSourceRank(op.keys, op.sourceLayout); },
     [](const Op& op) { return op.keys.shape().text(); },
     [](const Op& op) {
       return std::string(op.sourceLayout == KVLayout::headMajor ? "[heads, tokens, headDim]"
                                                                 : "[tokens, heads, headDim] or [heads, headDim]");
     },
     "Reshape the keys, or set sourceLayout."},

    {"values have the wrong rank", [](const Op& op) { return !op.values || isSourceRank(*op.values, op.sourceLayout); },
     [](const Op& op) { return op.values->shape().text(); },
     [](const Op& op) {
       return std::string(op.sourceLayout == KVLayout::headMajor ? "[heads, tokens, headDim]"
                                                                 : "[tokens, heads, headDim] or [heads, headDim]");
     },
     "Reshape the values, or set sourceLayout."},
};

constexpr Rule<Op> kAddressRules[] = {
    {"values hold another number of tokens than keys",
     [](const Op& op) {
       return !op.values ||
              sourceShape(*op.values, op.sourceLayout).tokens == sourceShape(op.keys, op.sourceLayout).tokens;
     },
     [](const Op& op) { return fmt::format("{} tokens", sourceShape(*op.values, op.sourceLayout).tokens); },
     [](const Op& op) { return fmt::format("{} tokens", sourceShape(op.keys, op.sourceLayout).tokens); },
     "Pass keys and values of the same tokens."},

    {"an extent is too large for the kernel", [](const Op& op) { return largestExtent(op) < kMaxKVExtent; },
     [](const Op& op) { return fmt::format("{}", largestExtent(op)); },
     [](const Op&) { return std::string("less than 2^31 on every axis"); }, "Split the cache or the write."},

    {"the write reads past the end of the source",
     [](const Op& op) {
       const uint64_t length = sourceShape(op.keys, op.sourceLayout).tokens;
       if (op.sourceIsRing) return tokenCount(op) <= length;
       return fits(op.sourceOffset, op.tokens.value_or(0), length);
     },
     [](const Op& op) { return fmt::format("offset {} and {} tokens", op.sourceOffset, tokenCount(op)); },
     [](const Op& op) {
       return fmt::format("at most {} tokens {}", sourceShape(op.keys, op.sourceLayout).tokens,
                          op.sourceIsRing ? "of a ring" : "with the offset");
     },
     "Pass a smaller offset or fewer tokens, or a longer source."},

    {"the cache has no room for its pinned slots",
     [](const Op& op) {
       return op.into.pinned == 0 || (op.into.wrap == KVWrap::ring && op.into.pinned < op.into.capacity());
     },
     [](const Op& op) {
       return fmt::format("{} pinned slots in a {} of {}", op.into.pinned,
                          op.into.wrap == KVWrap::ring ? "ring" : "linear cache", op.into.capacity());
     },
     [](const Op&) { return std::string("fewer pinned slots than the ring's capacity, and none in a linear cache"); },
     "Pin fewer slots, or make the cache a larger ring."},

    {"the sequence is not in the cache", [](const Op& op) { return op.rows || op.sequence < op.into.sequences(); },
     [](const Op& op) { return fmt::format("sequence {}", op.sequence); },
     [](const Op& op) { return fmt::format("less than {}", op.into.sequences()); },
     "Pass a sequence that the cache holds."},

    {"the position is too large to count",
     [](const Op& op) { return op.rows || checkedAdd(op.position, tokenCount(op)).has_value(); },
     [](const Op& op) { return fmt::format("position {} + {} tokens", op.position, tokenCount(op)); },
     [](const Op&) { return std::string("less than 2^64"); }, "Pass a smaller position."},

    {"the write runs past the end of a linear cache",
     [](const Op& op) {
       return op.rows || op.into.wrap == KVWrap::ring || fits(op.position, tokenCount(op), op.into.capacity());
     },
     [](const Op& op) { return fmt::format("position {} + {} tokens", op.position, tokenCount(op)); },
     [](const Op& op) { return fmt::format("at most capacity {}", op.into.capacity()); },
     "Grow the cache, or make it a ring."},

    {"row indices are not u32",
     [](const Op& op) { return !op.rows || (isIndexTensor(op.rows->sequences) && isIndexTensor(op.rows->positions)); },
     [](const Op& op) {
       return indicesText(isIndexTensor(op.rows->sequences) ? op.rows->positions : op.rows->sequences);
     },
     [](const Op&) { return std::string("a u32 tensor with memory, or a list"); },
     "Pass sequences and positions as u32."},

    {"the rows do not match the tokens",
     [](const Op& op) {
       return !op.rows ||
              (indexCount(op.rows->sequences) == tokenCount(op) && indexCount(op.rows->positions) == tokenCount(op));
     },
     [](const Op& op) {
       return fmt::format("{} sequences and {} positions", indexCount(op.rows->sequences),
                          indexCount(op.rows->positions));
     },
     [](const Op& op) { return fmt::format("{} of each, one for a token", tokenCount(op)); },
     "Give every token one sequence and one position."},

    {"the write has too many rows", [](const Op& op) { return !op.rows || tokenCount(op) <= Op::kMaxRows; },
     [](const Op& op) { return fmt::format("{} rows", tokenCount(op)); },
     [](const Op&) { return fmt::format("at most {}", Op::kMaxRows); }, "Split the rows over several writes."},

    {"a row names a sequence that is not in the cache",
     [](const Op& op) { return !op.rows || isListBelow(op.rows->sequences, op.into.sequences()); },
     [](const Op& op) { return fmt::format("sequence {}", largestText(op.rows->sequences)); },
     [](const Op& op) { return fmt::format("less than {}", op.into.sequences()); },
     "Pass sequences that the cache holds."},

    {"a row runs past the end of a linear cache",
     [](const Op& op) {
       return !op.rows || op.into.wrap == KVWrap::ring || isListBelow(op.rows->positions, op.into.capacity());
     },
     [](const Op& op) { return fmt::format("position {}", largestText(op.rows->positions)); },
     [](const Op& op) { return fmt::format("less than capacity {}", op.into.capacity()); },
     "Grow the cache, or make it a ring."},
};

}  // namespace

std::span<const Rule<KVCacheWrite>> cacheSourceRules() {
  return kSourceRules;
}
std::span<const Rule<KVCacheWrite>> cacheAddressRules() {
  return kAddressRules;
}

KVCacheView valuesOf(const KVCacheView& cache) {
  KVCacheView view = cache;
  view.keys = *cache.values;
  return view;
}

KVSourceShape sourceShape(const Tensor& tensor, KVLayout layout) {
  const Shape& shape = tensor.shape();
  if (!isSourceRank(tensor, layout)) return {};
  if (shape.rank() == 2) return {.heads = shape[0], .tokens = 1, .headDim = shape[1]};
  if (layout == KVLayout::headMajor) return {.heads = shape[0], .tokens = shape[1], .headDim = shape[2]};
  return {.heads = shape[1], .tokens = shape[0], .headDim = shape[2]};
}

std::string_view layoutText(KVLayout layout) {
  return layout == KVLayout::headMajor ? "head-major" : "token-major";
}

std::string sourceText(const Tensor& tensor, KVLayout layout) {
  const KVSourceShape shape = sourceShape(tensor, layout);
  return fmt::format("{} heads of {} in {} {}", shape.heads, shape.headDim, layoutText(layout), tensor.shape().text());
}

bool isOf(const Tensor& tensor, KVLayout layout, uint64_t heads, uint64_t headDim) {
  const KVSourceShape shape = sourceShape(tensor, layout);
  return shape.heads == heads && shape.headDim == headDim;
}

uint64_t tokenCount(const KVCacheWrite& op) {
  const uint64_t length = sourceShape(op.keys, op.sourceLayout).tokens;
  if (op.tokens) return *op.tokens;
  if (op.sourceIsRing) return length;
  return op.sourceOffset < length ? length - op.sourceOffset : 0;
}

}  // namespace mnk
