#include "Ops/KVCacheQuantizeRules.hpp"

#include "Ops/CacheAddressRules.hpp"
#include "Ops/HeadsMemory.hpp"
#include "Ops/QuantizedKVCacheRules.hpp"
#include "Ops/VectorLanes.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = KVCacheQuantize;

std::string planeText(const Op& op, const QuantizedKVPlane& plane) {
  return fmt::format("{} heads of {}", op.into.codes().heads(), plane.headDim());
}

bool isCounts(const Tensor& tensor) {
  return tensor && tensor.dtype() == DType::u32 && tensor.shape().elementCount() == 2;
}

bool isProbe(const Op& op) {
  const Shape& shape = op.probe->shape();
  return *op.probe && op.probe->dtype() == DType::f32 && shape.rank() == 2 && shape[0] == op.into.codes().heads() &&
         shape[1] == op.into.keys.headDim();
}

std::optional<Overlap> firstOverlap(const Op& op) {
  std::vector<NamedRange> sources{{"keys", rangeOf(sourceOf(op.keys, op.sourceLayout))}};
  std::vector<NamedRange> targets{{"codes of keys", op.into.keys.codes.range()},
                                  {"scales of keys", op.into.keys.scales.range()}};
  addFactors(sources, op.into.keys);
  if (op.values) {
    sources.push_back({"values", rangeOf(sourceOf(*op.values, op.sourceLayout))});
    targets.push_back({"codes of values", op.into.values->codes.range()});
    targets.push_back({"scales of values", op.into.values->scales.range()});
    addFactors(sources, *op.into.values);
  }
  addRows(sources, op.rows);
  if (op.counts) targets.push_back({"counts", op.counts->range()});
  if (op.probe) targets.push_back({"the probe", op.probe->range()});
  return firstOverlap(sources, targets);
}

constexpr Rule<Op> kRules[] = {
    {"values are given but the cache has none", [](const Op& op) { return !op.values || op.into.values.has_value(); },
     [](const Op&) { return std::string("values, and a cache of keys alone"); },
     [](const Op&) { return std::string("a cache with values"); },
     "Give the cache codes and scales for values, or write keys alone."},

    {"the source cannot be coded", [](const Op& op) { return isFloat(op.keys.tensor.dtype()); },
     [](const Op& op) { return std::string(name(op.keys.tensor.dtype())); },
     [](const Op&) { return std::string("f32, f16 or bf16"); }, "Convert the keys and values."},

    {"values have another dtype than keys",
     [](const Op& op) { return !op.values || op.values->tensor.dtype() == op.keys.tensor.dtype(); },
     [](const Op& op) { return std::string(name(op.values->tensor.dtype())); },
     [](const Op& op) { return fmt::format("{}, as for keys", name(op.keys.tensor.dtype())); },
     "Use one dtype for both, or write keys and values separately."},

    {"keys do not have the cache's heads and headDim",
     [](const Op& op) { return isOf(op.keys, op.sourceLayout, op.into.codes().heads(), op.into.keys.headDim()); },
     [](const Op& op) { return sourceText(op.keys, op.sourceLayout); },
     [](const Op& op) { return planeText(op, op.into.keys); }, "Reshape the keys, or write to a cache made for them."},

    {"values do not have the cache's heads and headDim",
     [](const Op& op) {
       return !op.values || isOf(*op.values, op.sourceLayout, op.into.codes().heads(), op.into.values->headDim());
     },
     [](const Op& op) { return sourceText(*op.values, op.sourceLayout); },
     [](const Op& op) { return planeText(op, *op.into.values); },
     "Reshape the values, or write to a cache made for them."},

    {"head dims of keys and values are too different",
     [](const Op& op) {
       return !op.values || VectorLanes::canShare(op.into.keys.headDim(), op.into.values->headDim());
     },
     [](const Op& op) { return fmt::format("{} and {}", op.into.keys.headDim(), op.into.values->headDim()); },
     [](const Op&) { return std::string("at most 32 times the other"); }, "Use one op for keys and one for values."},

    {"there is no search with so many candidates", [](const Op& op) { return op.options.hasSearch(); },
     [](const Op& op) { return fmt::format("{}", op.options.candidates); },
     [](const Op&) { return std::string("1, 5 or 17"); }, "Use 5, or 17 for a little less error."},

    {"the counts do not fit", [](const Op& op) { return !op.counts || isCounts(*op.counts); },
     [](const Op& op) { return op.counts->text(); }, [](const Op&) { return std::string("u32 [2]"); },
     "Pass a tensor of two u32."},

    {"the probe is for one token of mlx1",
     [](const Op& op) {
       return !op.probe || (op.into.keys.codec.name == KVCodecName::mlx1 && tokenCount(addressesOf(op)) <= 1);
     },
     [](const Op& op) {
       return fmt::format("{} tokens of {}", tokenCount(addressesOf(op)), name(op.into.keys.codec.name));
     },
     [](const Op&) { return std::string("one token, and mlx1"); }, "Leave the probe out."},

    {"the probe does not fit", [](const Op& op) { return !op.probe || isProbe(op); },
     [](const Op& op) { return op.probe->text(); },
     [](const Op& op) { return fmt::format("f32 [{}, {}]", op.into.codes().heads(), op.into.keys.headDim()); },
     "Pass f32 [heads, headDim]."},
};

constexpr Rule<Op> kOverlapRules[] = {
    {"operands share memory", [](const Op& op) { return !firstOverlap(op); },
     [](const Op& op) { return firstOverlap(op)->text(); }, [](const Op&) { return std::string("separate memory"); },
     "Keep what is written apart from what is read."},
};

}  // namespace

std::span<const Rule<KVCacheQuantize>> kvCacheQuantizeRules() {
  return kRules;
}
std::span<const Rule<KVCacheQuantize>> kvCacheQuantizeOverlapRules() {
  return kOverlapRules;
}

KVCacheWrite addressesOf(const KVCacheQuantize& op) {
  return {.keys = op.keys,
          .values = op.values,
          .sourceLayout = op.sourceLayout,
          .sourceOffset = op.sourceOffset,
          .tokens = op.tokens,
          .sourceIsRing = op.sourceIsRing,
          .into = op.into.codes(),
          .sequence = op.sequence,
          .position = op.position,
          .rows = op.rows};
}

std::optional<Error> firstBroken(const KVCacheQuantize& op) {
  const KVCacheWrite addresses = addressesOf(op);
  if (auto error = firstBroken(cacheSourceRules(), addresses, Op::name)) return error;
  if (auto error = firstBroken(quantizedKVCacheRules(), op.into, Op::name)) return error;
  if (auto error = firstBroken(cacheLayoutRules(), addresses, Op::name)) return error;
  if (auto error = firstBroken(kvCacheQuantizeRules(), op, Op::name)) return error;
  if (auto error = firstBroken(cacheAddressRules(), addresses, Op::name)) return error;
  return firstBroken(kvCacheQuantizeOverlapRules(), op, Op::name);
}

}  // namespace mnk
