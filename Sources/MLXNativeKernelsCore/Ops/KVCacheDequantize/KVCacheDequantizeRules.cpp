#include "Ops/KVCacheDequantizeRules.hpp"

#include "Ops/CacheAddressRules.hpp"
#include "Ops/CacheAddressing.hpp"
#include "Ops/Overlap.hpp"
#include "Ops/QuantizedKVCacheRules.hpp"
#include "Ops/VectorLanes.hpp"
#include "Support/CheckedMath.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = KVCacheDequantize;

uint64_t tokensOf(const Op& op) {
  return sourceShape(op.keys ? *op.keys : *op.values, op.layout).totalTokens();
}

bool hasMemory(const std::optional<Tensor>& tensor) {
  return !tensor || *tensor;
}

// A target of the wrong rank has no shape, and fits no cache.
const DequantizedPlane* firstMisfit(const Op& op, const std::vector<DequantizedPlane>& planes) {
  for (const DequantizedPlane& plane : planes) {
    if (!isOf(plane.into, op.layout, op.from.codes().heads(), plane.from.headDim())) return &plane;
  }
  return nullptr;
}

// Whether each position has a slot of its own.
bool holds(const Op& op) {
  const uint64_t capacity = op.from.codes().capacity();
  if (op.from.wrap == KVWrap::linear) return fits(op.position, tokensOf(op), capacity);
  if (!checkedAdd(op.position, tokensOf(op))) return false;
  return placementOf(addressesOf(op)).skippedTokens == 0;
}

std::optional<Overlap> firstOverlap(const Op& op) {
  std::vector<NamedRange> sources;
  std::vector<NamedRange> targets;
  for (const DequantizedPlane& plane : planesOf(op)) {
    sources.push_back({"codes", plane.from.codes.range()});
    sources.push_back({"scales", plane.from.scales.range()});
    addFactors(sources, plane.from);
  }
  if (op.keys) targets.push_back({"keys", op.keys->range()});
  if (op.values) targets.push_back({"values", op.values->range()});
  return firstOverlap(sources, targets);
}

constexpr Rule<Op> kRules[] = {
    {"there is nothing to read into", [](const Op& op) { return op.keys || op.values; },
     [](const Op&) { return std::string("neither keys nor values"); },
     [](const Op&) { return std::string("a tensor for keys, for values, or for both"); },
     "Pass the tensors that results go to."},

    {"a target has no memory", [](const Op& op) { return hasMemory(op.keys) && hasMemory(op.values); },
     [](const Op& op) { return std::string(hasMemory(op.keys) ? "values without memory" : "keys without memory"); },
     [](const Op&) { return std::string("tensors with memory"); }, "Make the tensors before reading into them."},

    {"values are asked for but the cache has none", [](const Op& op) { return !op.values || op.from.values; },
     [](const Op&) { return std::string("values, and a cache of keys alone"); },
     [](const Op&) { return std::string("a cache with values"); }, "Read keys alone."},

    {"the target cannot hold numbers",
     [](const Op& op) {
       return (!op.keys || isFloat(op.keys->dtype())) && (!op.values || isFloat(op.values->dtype()));
     },
     [](const Op& op) {
       return std::string(name(op.keys && !isFloat(op.keys->dtype()) ? op.keys->dtype() : op.values->dtype()));
     },
     [](const Op&) { return std::string("f32, f16 or bf16"); }, "Make tensors of floats."},

    {"values have another dtype than keys",
     [](const Op& op) { return !op.keys || !op.values || op.keys->dtype() == op.values->dtype(); },
     [](const Op& op) { return std::string(name(op.values->dtype())); },
     [](const Op& op) { return fmt::format("{}, as for keys", name(op.keys->dtype())); },
     "Use one dtype for both, or two ops."},

    {"a target does not have the cache's heads and headDim",
     [](const Op& op) { return !firstMisfit(op, planesOf(op)); },
     [](const Op& op) {
       const auto planes = planesOf(op);
       return sourceText(firstMisfit(op, planes)->into, op.layout);
     },
     [](const Op& op) {
       const auto planes = planesOf(op);
       return fmt::format("{} heads of {}", op.from.codes().heads(), firstMisfit(op, planes)->from.headDim());
     },
     "Reshape the target: [tokens, heads, headDim], or [heads, tokens, headDim] where it is head-major."},

    {"keys and values hold different numbers of tokens",
     [](const Op& op) { return !op.keys || !op.values || isOfSameTokens(*op.values, *op.keys, op.layout); },
     [](const Op& op) { return fmt::format("{} of values", tokensText(*op.values, op.layout)); },
     [](const Op& op) { return fmt::format("{}, as for keys", tokensText(*op.keys, op.layout)); },
     "Pass tensors for the same tokens."},

    {"head dims of keys and values are too different",
     [](const Op& op) {
       return !op.keys || !op.values || VectorLanes::canShare(op.from.keys.headDim(), op.from.values->headDim());
     },
     [](const Op& op) { return fmt::format("{} and {}", op.from.keys.headDim(), op.from.values->headDim()); },
     [](const Op&) { return std::string("at most 32 times the other"); }, "Use one op for keys and one for values."},

    {"the sequence is not in the cache", [](const Op& op) { return op.sequence < op.from.codes().sequences(); },
     [](const Op& op) { return fmt::format("sequence {}", op.sequence); },
     [](const Op& op) { return fmt::format("less than {}", op.from.codes().sequences()); },
     "Pass a sequence that the cache holds."},

    {"the cache has no room for its pinned slots",
     [](const Op& op) {
       return op.from.pinned == 0 || (op.from.wrap == KVWrap::ring && op.from.pinned < op.from.codes().capacity());
     },
     [](const Op& op) {
       return fmt::format("{} pinned slots in a {} of {}", op.from.pinned,
                          op.from.wrap == KVWrap::ring ? "ring" : "linear cache", op.from.codes().capacity());
     },
     [](const Op&) { return std::string("fewer pinned slots than the ring's capacity, and none in a linear cache"); },
     "Pin fewer slots, or make the cache a larger ring."},

    {"the cache does not hold these positions", [](const Op& op) { return holds(op); },
     [](const Op& op) { return fmt::format("position {} + {} tokens", op.position, tokensOf(op)); },
     [](const Op& op) { return fmt::format("positions that {} slots can hold together", op.from.codes().capacity()); },
     "Read fewer positions at a time."},

    {"operands share memory", [](const Op& op) { return !firstOverlap(op); },
     [](const Op& op) { return firstOverlap(op)->text(); }, [](const Op&) { return std::string("separate memory"); },
     "Read into tensors that are not part of the cache."},
};

}  // namespace

std::span<const Rule<KVCacheDequantize>> kvCacheDequantizeRules() {
  return kRules;
}

std::vector<DequantizedPlane> planesOf(const KVCacheDequantize& op) {
  std::vector<DequantizedPlane> planes;
  if (op.keys) planes.push_back({op.from.keys, *op.keys});
  if (op.values) planes.push_back({*op.from.values, *op.values});
  if (op.domain == KVDomain::original) return planes;
  for (DequantizedPlane& plane : planes) {  // they belong to the original domain
    plane.from.means.reset();
    plane.from.channelScales.reset();
  }
  return planes;
}

KVCacheWrite addressesOf(const KVCacheDequantize& op) {
  const std::vector<DequantizedPlane> planes = planesOf(op);
  KVCacheWrite addresses{.keys = planes[0].into,
                         .sourceLayout = op.layout,
                         .into = op.from.codes(),
                         .sequence = op.sequence,
                         .position = op.position};
  if (planes.size() > 1) addresses.values = planes[1].into;
  return addresses;
}

std::optional<Error> firstBroken(const KVCacheDequantize& op) {
  if (auto error = firstBroken(quantizedKVCacheRules(), op.from, Op::name)) return error;
  if (auto error = firstBroken(kvCacheDequantizeRules(), op, Op::name)) return error;
  return firstBroken(cacheAddressRules(), addressesOf(op), Op::name);
}

}  // namespace mnk
