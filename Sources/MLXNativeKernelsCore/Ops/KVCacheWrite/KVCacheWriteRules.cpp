#include "Ops/KVCacheWriteRules.hpp"

#include "Ops/CacheAddressRules.hpp"
#include "Ops/HeadsMemory.hpp"
#include "Ops/Overlap.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = KVCacheWrite;

bool isPair(DType source, DType cache) {
  return source == cache || (isFloat(source) && isFloat(cache));
}

bool isCacheRank(const Tensor& tensor) {
  return tensor.shape().rank() == 3 || tensor.shape().rank() == 4;
}

std::string cacheShapeText(const KVCacheView& view) {
  return fmt::format("{} heads of {}", view.heads(), view.headDim());
}

// The first source that shares bytes with a destination, or the two destinations that share bytes.
std::optional<Overlap> firstOverlap(const Op& op) {
  std::vector<NamedRange> sources{{"keys", rangeOf(sourceOf(op.keys, op.sourceLayout))}};
  std::vector<NamedRange> targets{{"the key cache", op.into.keys.range()}};
  if (op.values) sources.push_back({"values", rangeOf(sourceOf(*op.values, op.sourceLayout))});
  if (op.into.values && op.values) targets.push_back({"the value cache", op.into.values->range()});
  addRows(sources, op.rows);
  return firstOverlap(sources, targets);
}

constexpr Rule<Op> kCacheRules[] = {
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

    {"this pair of dtypes cannot be written",
     [](const Op& op) { return isPair(op.keys.tensor.dtype(), op.into.keys.dtype()); },
     [](const Op& op) { return fmt::format("{} to {}", name(op.keys.tensor.dtype()), name(op.into.keys.dtype())); },
     [](const Op&) { return std::string("f32, f16 or bf16 to any of these, or equal dtypes"); },
     "Convert the keys, or make the cache with another dtype."},

    {"values have another dtype than keys",
     [](const Op& op) {
       return !op.values ||
              (op.values->tensor.dtype() == op.keys.tensor.dtype() && op.into.values->dtype() == op.into.keys.dtype());
     },
     [](const Op& op) {
       return fmt::format("{} to {}", name(op.values->tensor.dtype()), name(op.into.values->dtype()));
     },
     [](const Op& op) {
       return fmt::format("{} to {}, as for keys", name(op.keys.tensor.dtype()), name(op.into.keys.dtype()));
     },
     "Use one pair of dtypes for both, or write keys and values separately."},

    {"the cache has no capacity", [](const Op& op) { return op.into.capacity() > 0; },
     [](const Op& op) { return fmt::format("{} {}", layoutText(op.into.layout), op.into.keys.shape().text()); },
     [](const Op&) { return std::string("at least one slot"); }, "Make a cache with a capacity of at least 1."},

    {"the value cache differs from the key cache",
     [](const Op& op) {
       return !op.values ||
              (valuesOf(op.into).heads() == op.into.heads() && valuesOf(op.into).capacity() == op.into.capacity() &&
               valuesOf(op.into).sequences() == op.into.sequences());
     },
     [](const Op& op) { return op.into.values->shape().text(); },
     [](const Op& op) { return fmt::format("{}, but for headDim", op.into.keys.shape().text()); },
     "Make both with the same sequences, heads and capacity."},
};

constexpr Rule<Op> kFitRules[] = {
    {"keys do not have the cache's heads and headDim",
     [](const Op& op) { return isOf(op.keys, op.sourceLayout, op.into.heads(), op.into.headDim()); },
     [](const Op& op) { return sourceText(op.keys, op.sourceLayout); },
     [](const Op& op) { return cacheShapeText(op.into); }, "Reshape the keys, or write to a cache made for them."},

    {"values do not have the cache's heads and headDim",
     [](const Op& op) {
       return !op.values || isOf(*op.values, op.sourceLayout, op.into.heads(), valuesOf(op.into).headDim());
     },
     [](const Op& op) { return sourceText(*op.values, op.sourceLayout); },
     [](const Op& op) { return cacheShapeText(valuesOf(op.into)); },
     "Reshape the values, or write to a cache made for them."},
};

constexpr Rule<Op> kOverlapRules[] = {
    {"source and destination share memory", [](const Op& op) { return !firstOverlap(op); },
     [](const Op& op) { return firstOverlap(op)->text(); }, [](const Op&) { return std::string("separate memory"); },
     "Write from a tensor that is not part of the cache."},
};

}  // namespace

std::span<const Rule<KVCacheWrite>> kvCacheWriteRules() {
  static const std::vector<Rule<KVCacheWrite>> all = joined<KVCacheWrite>(
      {cacheSourceRules(), kCacheRules, cacheLayoutRules(), kFitRules, cacheAddressRules(), kOverlapRules});
  return all;
}

}  // namespace mnk
