#include "Ops/KVCacheWriteRules.hpp"

#include <algorithm>

#include "Support/CheckedMath.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = KVCacheWrite;

std::string_view layoutText(KVLayout layout) {
  return layout == KVLayout::headMajor ? "head-major" : "token-major";
}

bool isPair(DType source, DType cache) {
  return source == cache || (isFloat(source) && isFloat(cache));
}

bool isSourceRank(const Tensor& tensor, KVLayout layout) {
  const uint32_t rank = tensor.shape().rank();
  return rank == 3 || (rank == 2 && layout == KVLayout::tokenMajor);
}

bool isCacheRank(const Tensor& tensor) {
  return tensor.shape().rank() == 3 || tensor.shape().rank() == 4;
}

KVCacheView valueView(const Op& op) {
  KVCacheView view = op.into;
  view.keys = *op.into.values;
  return view;
}

std::string cacheShapeText(const KVCacheView& view) {
  return fmt::format("{} heads of {}", view.heads(), view.headDim());
}

std::string sourceText(const Tensor& tensor, KVLayout layout) {
  const KVSourceShape shape = sourceShape(tensor, layout);
  return fmt::format("{} heads of {} in {} {}", shape.heads, shape.headDim, layoutText(layout), tensor.shape().text());
}

bool matches(const Tensor& tensor, KVLayout layout, const KVCacheView& view) {
  const KVSourceShape shape = sourceShape(tensor, layout);
  return shape.heads == view.heads() && shape.headDim == view.headDim();
}

uint64_t largestExtent(const Op& op) {
  uint64_t largest = std::max({op.into.heads(), op.into.capacity(), op.into.sequences(), op.into.headDim(),
                               sourceShape(op.keys, op.sourceLayout).tokens});
  if (op.into.values) largest = std::max(largest, valueView(op).headDim());
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

struct Operand {
  std::string_view name;
  MemoryRange range;
};

// The first source that shares bytes with a destination, or the two destinations that share bytes.
std::optional<std::pair<Operand, Operand>> firstOverlap(const Op& op) {
  std::vector<Operand> sources{{"keys", op.keys.range()}};
  std::vector<Operand> targets{{"the key cache", op.into.keys.range()}};
  if (op.values) sources.push_back({"values", op.values->range()});
  if (op.into.values && op.values) targets.push_back({"the value cache", op.into.values->range()});
  if (op.rows) {
    if (const auto* tensor = std::get_if<Tensor>(&op.rows->sequences))
      sources.push_back({"sequences", tensor->range()});
    if (const auto* tensor = std::get_if<Tensor>(&op.rows->positions))
      sources.push_back({"positions", tensor->range()});
  }
  for (const Operand& target : targets) {
    for (const Operand& source : sources) {
      if (source.range.overlaps(target.range)) return {{source, target}};
    }
  }
  if (targets.size() == 2 && targets[0].range.overlaps(targets[1].range)) return {{targets[0], targets[1]}};
  return std::nullopt;
}

constexpr Rule<Op> kRules[] = {
    {"a source has no memory", [](const Op& op) { return bool(op.keys) && (!op.values || bool(*op.values)); },
     [](const Op& op) { return std::string(op.keys ? "values without memory" : "keys without memory"); },
     [](const Op&) { return std::string("tensors with memory"); }, "Make the tensors before writing them."},

    {"the cache has no memory",
     [](const Op& op) { return bool(op.into.keys) && (!op.into.values || bool(*op.into.values)); },
     [](const Op& op) {
       return std::string(op.into.keys ? "a value cache without memory" : "a key cache without memory");
     },
     [](const Op&) { return std::string("tensors with memory"); }, "Make the cache's tensors before writing to it."},

    {"values are given but the cache has none", [](const Op& op) { return !op.values || op.into.values.has_value(); },
     [](const Op&) { return std::string("values, and a cache of keys alone"); },
     [](const Op&) { return std::string("a cache with values"); },
     "Give the cache a tensor for values, or write keys alone."},

    {"the cache has the wrong rank",
     [](const Op& op) {
       return isCacheRank(op.into.keys) &&
              (!op.values || op.into.values->shape().rank() == op.into.keys.shape().rank());
     },
     [](const Op& op) {
       return op.values ? fmt::format("keys {}, values {}", op.into.keys.shape().text(), op.into.values->shape().text())
                        : op.into.keys.shape().text();
     },
     [](const Op& op) {
       return std::string(op.into.layout == KVLayout::headMajor
                              ? "[heads, capacity, headDim] or [sequences, heads, capacity, headDim]"
                              : "[capacity, heads, headDim] or [sequences, capacity, heads, headDim]");
     },
     "Reshape the cache; keys and values need the same rank."},

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

    {"this pair of dtypes cannot be written",
     [](const Op& op) { return isPair(op.keys.dtype(), op.into.keys.dtype()); },
     [](const Op& op) { return fmt::format("{} to {}", name(op.keys.dtype()), name(op.into.keys.dtype())); },
     [](const Op&) { return std::string("f32, f16 or bf16 to any of these, or equal dtypes"); },
     "Convert the keys, or make the cache with another dtype."},

    {"values have another dtype than keys",
     [](const Op& op) {
       return !op.values || (op.values->dtype() == op.keys.dtype() && op.into.values->dtype() == op.into.keys.dtype());
     },
     [](const Op& op) { return fmt::format("{} to {}", name(op.values->dtype()), name(op.into.values->dtype())); },
     [](const Op& op) {
       return fmt::format("{} to {}, as for keys", name(op.keys.dtype()), name(op.into.keys.dtype()));
     },
     "Use one pair of dtypes for both, or write keys and values separately."},

    {"the cache has no capacity", [](const Op& op) { return op.into.capacity() > 0; },
     [](const Op& op) { return fmt::format("{} {}", layoutText(op.into.layout), op.into.keys.shape().text()); },
     [](const Op&) { return std::string("at least one slot"); }, "Make a cache with a capacity of at least 1."},

    {"the value cache differs from the key cache",
     [](const Op& op) {
       return !op.values ||
              (valueView(op).heads() == op.into.heads() && valueView(op).capacity() == op.into.capacity() &&
               valueView(op).sequences() == op.into.sequences());
     },
     [](const Op& op) { return op.into.values->shape().text(); },
     [](const Op& op) { return fmt::format("{}, but for headDim", op.into.keys.shape().text()); },
     "Make both with the same sequences, heads and capacity."},

    {"keys do not have the cache's heads and headDim",
     [](const Op& op) { return matches(op.keys, op.sourceLayout, op.into); },
     [](const Op& op) { return sourceText(op.keys, op.sourceLayout); },
     [](const Op& op) { return cacheShapeText(op.into); }, "Reshape the keys, or write to a cache made for them."},

    {"values do not have the cache's heads and headDim",
     [](const Op& op) { return !op.values || matches(*op.values, op.sourceLayout, valueView(op)); },
     [](const Op& op) { return sourceText(*op.values, op.sourceLayout); },
     [](const Op& op) { return cacheShapeText(valueView(op)); },
     "Reshape the values, or write to a cache made for them."},

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

    {"source and destination share memory", [](const Op& op) { return !firstOverlap(op); },
     [](const Op& op) {
       const auto [first, second] = *firstOverlap(op);
       return fmt::format("{} overlapping {}", first.name, second.name);
     },
     [](const Op&) { return std::string("separate memory"); }, "Write from a tensor that is not part of the cache."},
};

}  // namespace

std::span<const Rule<KVCacheWrite>> kvCacheWriteRules() {
  return kRules;
}

KVSourceShape sourceShape(const Tensor& tensor, KVLayout layout) {
  const Shape& shape = tensor.shape();
  if (!isSourceRank(tensor, layout)) return {};
  if (shape.rank() == 2) return {.heads = shape[0], .tokens = 1, .headDim = shape[1]};
  if (layout == KVLayout::headMajor) return {.heads = shape[0], .tokens = shape[1], .headDim = shape[2]};
  return {.heads = shape[1], .tokens = shape[0], .headDim = shape[2]};
}

uint64_t tokenCount(const KVCacheWrite& op) {
  const uint64_t length = sourceShape(op.keys, op.sourceLayout).tokens;
  if (op.tokens) return *op.tokens;
  if (op.sourceIsRing) return length;
  return op.sourceOffset < length ? length - op.sourceOffset : 0;
}

}  // namespace mnk
