#include "Ops/KVCacheWrite/KVCacheWriteRules.hpp"

#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/Overlap.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

using Op = KVCacheWrite;

bool isPair(DType source, DType cache) {
  return source == cache || (isFloat(source) && isFloat(cache));
}

bool hasRankOfCaches(const Tensor& tensor) {
  return tensor.shape().rank() == 3 || tensor.shape().rank() == 4;
}

std::string cacheShapeText(const KVCacheView& view) {
  return fmt::format("{} heads of {}", view.heads(), view.headDim());
}

// The first source that shares bytes with a destination, or the two destinations that share bytes.
std::optional<Overlap> writeOverlap(const Op& op) {
  std::vector<NamedRange> sources{{"keys", rangeOf(sourceOf(op.keys, op.sourceLayout))}};
  std::vector<NamedRange> targets{{"the key cache", op.into.keys.range()}};
  if (op.values) sources.push_back({"values", rangeOf(sourceOf(*op.values, op.sourceLayout))});
  if (op.into.values && op.values) targets.push_back({"the value cache", op.into.values->range()});
  addRows(sources, op.rows);
  return firstOverlap(sources, targets);
}

constexpr Rule<Op> kCacheRules[] = {
    INVALID_IF(!op.into.keys || (op.into.values && !*op.into.values), "the cache has no memory",
               op.into.keys ? "a value cache without memory" : "a key cache without memory", "tensors with memory",
               "Make the cache's tensors before writing to it."),

    INVALID_IF(op.values && !op.into.values, "values are given but the cache has none",
               "values, and a cache of keys alone", "a cache with values",
               "Give the cache a tensor for values, or write keys alone."),

    INVALID_IF(
        !hasRankOfCaches(op.into.keys) || (op.values && op.into.values->shape().rank() != op.into.keys.shape().rank()),
        "the cache has the wrong rank",
        op.values ? fmt::format("keys {}, values {}", op.into.keys.shape().text(), op.into.values->shape().text())
                  : op.into.keys.shape().text(),
        op.into.layout == KVLayout::headMajor ? "[heads, capacity, headDim] or [sequences, heads, capacity, headDim]"
                                              : "[capacity, heads, headDim] or [sequences, capacity, heads, headDim]",
        "Reshape the cache; keys and values need the same rank."),

    INVALID_IF(!isPair(op.keys.tensor.dtype(), op.into.keys.dtype()), "this pair of dtypes cannot be written",
               fmt::format("{} to {}", name(op.keys.tensor.dtype()), name(op.into.keys.dtype())),
               "f32, f16 or bf16 to any of these, or equal dtypes",
               "Convert the keys, or make the cache with another dtype."),

    INVALID_IF(op.values && (op.values->tensor.dtype() != op.keys.tensor.dtype() ||
                             op.into.values->dtype() != op.into.keys.dtype()),
               "values have another dtype than keys",
               fmt::format("{} to {}", name(op.values->tensor.dtype()), name(op.into.values->dtype())),
               fmt::format("{} to {}, as for keys", name(op.keys.tensor.dtype()), name(op.into.keys.dtype())),
               "Use one pair of dtypes for both, or write keys and values separately."),

    INVALID_IF(op.into.capacity() == 0, "the cache has no capacity",
               fmt::format("{} {}", layoutText(op.into.layout), op.into.keys.shape().text()), "at least one slot",
               "Make a cache with a capacity of at least 1."),

    INVALID_IF(op.values && !areValuesLikeKeys(op.into), "the value cache differs from the key cache",
               op.into.values->shape().text(), fmt::format("{}, but for headDim", op.into.keys.shape().text()),
               "Make both with the same sequences, heads and capacity."),
};

constexpr Rule<Op> kFitRules[] = {
    INVALID_IF(!isOf(op.keys, op.sourceLayout, op.into.heads(), op.into.headDim()),
               "keys do not have the cache's heads and headDim", sourceText(op.keys, op.sourceLayout),
               cacheShapeText(op.into), "Reshape the keys, or write to a cache made for them."),

    INVALID_IF(op.values && !isOf(*op.values, op.sourceLayout, op.into.heads(), valuesOf(op.into).headDim()),
               "values do not have the cache's heads and headDim", sourceText(*op.values, op.sourceLayout),
               cacheShapeText(valuesOf(op.into)), "Reshape the values, or write to a cache made for them."),
};

constexpr Rule<Op> kWriteOverlapRules[] = {
    INVALID_IF(writeOverlap(op), "source and destination share memory", writeOverlap(op)->text(), "separate memory",
               "Write from a tensor that is not part of the cache."),
};

}  // namespace

std::span<const Rule<KVCacheWrite>> kvCacheWriteRules() {
  static const std::vector<Rule<KVCacheWrite>> all = joined<KVCacheWrite>(
      {cacheSourceRules(), kCacheRules, cacheLayoutRules(), kFitRules, cacheAddressRules(), kWriteOverlapRules});
  return all;
}

}  // namespace mnk
