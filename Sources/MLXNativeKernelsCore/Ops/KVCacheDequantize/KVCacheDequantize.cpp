#include "Ops/KVCacheDequantize/KVCacheDequantize.hpp"

#include "KVCacheDequantize/KVCacheDequantizeTypes.h"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Support/Bytes.hpp"

namespace mnk {

namespace {

uint64_t tokensOf(const KVCacheDequantize& op) {
  return sourceShape(op.keys ? *op.keys : *op.values, op.layout).totalTokens();
}

bool isUnsetOrHasMemory(const std::optional<Tensor>& tensor) {
  return !tensor || *tensor;
}

// A target of the wrong rank has no shape, and fits no cache.
const DequantizedPlane* firstMisfit(const KVCacheDequantize& op, const std::vector<DequantizedPlane>& planes) {
  for (const DequantizedPlane& plane : planes) {
    if (!isOf(plane.into, op.layout, op.from.codes().heads(), plane.from.headDim())) return &plane;
  }
  return nullptr;
}

// Whether the positions map to different slots.
bool holds(const KVCacheDequantize& op) {
  const uint64_t capacity = op.from.codes().capacity();
  if (op.from.wrap == KVWrap::linear) return fits(op.position, tokensOf(op), capacity);
  if (!checkedAdd(op.position, tokensOf(op))) return false;
  return placementOf(addressesOf(op)).skippedTokens == 0;
}

std::optional<Overlap> overlapOf(const KVCacheDequantize& op) {
  std::vector<NamedRange> sources;
  std::vector<NamedRange> targets;
  for (const DequantizedPlane& plane : planesOf(op)) addPlane(sources, plane.from);
  if (op.keys) targets.push_back({"keys", op.keys->range()});
  if (op.values) targets.push_back({"values", op.values->range()});
  return firstOverlap(sources, targets);
}

constexpr Rule<KVCacheDequantize> kDequantizeRules[] = {
    INVALID_IF(!op.keys && !op.values, "there is nothing to read into", "neither keys nor values",
               "a tensor for keys, for values, or for both", "Pass the tensors that results go to."),

    INVALID_IF(!isUnsetOrHasMemory(op.keys) || !isUnsetOrHasMemory(op.values), "a target has no memory",
               isUnsetOrHasMemory(op.keys) ? "values without memory" : "keys without memory", "tensors with memory",
               "Make the tensors before reading into them."),

    INVALID_IF(op.values && !op.from.values, "values are asked for but the cache has none",
               "values, and a cache of keys alone", "a cache with values", "Read keys alone."),

    INVALID_IF(op.domain > KVDomain::rotated, "the domain is not known",
               fmt::format("domain {}", static_cast<uint32_t>(op.domain)), "original or rotated",
               "Pass one that KVDomain names."),

    INVALID_IF(op.layout > KVLayout::tokenMajor, "the layout of targets is not known",
               fmt::format("layout {}", static_cast<uint32_t>(op.layout)), "headMajor or tokenMajor",
               "Pass one that KVLayout names."),

    INVALID_IF((op.keys && !isFloat(op.keys->dtype())) || (op.values && !isFloat(op.values->dtype())),
               "the target cannot hold numbers",
               name(op.keys && !isFloat(op.keys->dtype()) ? op.keys->dtype() : op.values->dtype()), "f32, f16 or bf16",
               "Make tensors of floats."),

    INVALID_IF(op.keys.has_value() && op.values && op.keys->dtype() != op.values->dtype(),
               "values have another dtype than keys", name(op.values->dtype()),
               fmt::format("{}, as for keys", name(op.keys->dtype())), "Use one dtype for both, or two ops."),

    INVALID_IF(firstMisfit(op, planesOf(op)), "a target does not have the cache's heads and headDim",
               sourceText(firstMisfit(op, planesOf(op))->into, op.layout),
               fmt::format("{} heads of {}", op.from.codes().heads(), firstMisfit(op, planesOf(op))->from.headDim()),
               "Reshape the target: [tokens, heads, headDim], or [heads, tokens, headDim] where it is head-major."),

    INVALID_IF(op.keys.has_value() && op.values && !isOfSameTokens(*op.values, *op.keys, op.layout),
               "keys and values hold different numbers of tokens",
               fmt::format("{} of values", tokensText(*op.values, op.layout)),
               fmt::format("{}, as for keys", tokensText(*op.keys, op.layout)), "Pass tensors for the same tokens."),

    INVALID_IF(
        op.keys.has_value() && op.values && !VectorLanes::canShare(op.from.keys.headDim(), op.from.values->headDim()),
        "head dims of keys and values are too different",
        fmt::format("{} and {}", op.from.keys.headDim(), op.from.values->headDim()), "at most 32 times the other",
        "Use one op for keys and one for values."),

    INVALID_IF(!isSequenceOf(op.sequence, op.from.codes().sequences()), "the sequence is not in the cache",
               sequenceText(op.sequence), fmt::format("a number less than {}", op.from.codes().sequences()),
               "Name a sequence that the cache holds."),

    INVALID_IF(!hasRoomForPinned(SlotExtents::of(op.from.codes())), "the cache has no room for its pinned slots",
               pinnedText(SlotExtents::of(op.from.codes())),
               "fewer pinned slots than the ring's capacity, and none in a linear cache",
               "Pin fewer slots, or make the cache a larger ring."),

    INVALID_IF(!holds(op), "the cache does not hold these positions",
               fmt::format("position {} + {} tokens", op.position, tokensOf(op)),
               fmt::format("at most {} positions, the capacity of the cache", op.from.codes().capacity()),
               "Read fewer positions at a time."),

    INVALID_IF(overlapOf(op), "operands share memory", overlapOf(op)->text(), "separate memory",
               "Read into tensors that are not part of the cache."),
};

}  // namespace

std::span<const Rule<KVCacheDequantize>> kvCacheDequantizeRules() {
  return kDequantizeRules;
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

Result<void> checkRules(const KVCacheDequantize& op) {
  MNK_TRY(checkRules(quantizedKVCacheRules(), op.from, KVCacheDequantize::name));
  MNK_TRY(checkRules(kvCacheDequantizeRules(), op, KVCacheDequantize::name));
  return checkRules(cacheAddressRules(), addressesOf(op), KVCacheDequantize::name);
}

namespace {

// The kernel's indices for the first plane that is read, and for the second.
struct Indices {
  uint32_t into;
  uint32_t codes;
  uint32_t scales;
  uint32_t means;
};
constexpr Indices kIndices[] = {
    {kKVCacheDequantizeKeys, kKVCacheDequantizeKeyCodes, kKVCacheDequantizeKeyScales, kKVCacheDequantizeKeyMeans},
    {kKVCacheDequantizeValues, kKVCacheDequantizeValueCodes, kKVCacheDequantizeValueScales,
     kKVCacheDequantizeValueMeans}};

void bindPlane(Dispatch& dispatch, const CacheAddressing& addressing, const DequantizedPlane& plane,
               const Indices& indices) {
  const KVCodecSizes row = plane.from.vectorSizes();
  Binding into = addressing.sourceBinding(indices.into, plane.into, Access::write);
  Binding codes = Binding::whole(indices.codes, plane.from.codes, Access::read);
  codes.reads = addressing.cacheRegions(row.codeBytes);
  dispatch.buffers.insert(dispatch.buffers.end(), {std::move(into), std::move(codes)});
  if (!plane.from.isDense()) {
    Binding scales = Binding::whole(indices.scales, plane.from.scales, Access::read);
    scales.reads = addressing.cacheRegions(row.scaleBytes);
    dispatch.buffers.push_back(std::move(scales));
  }
  if (plane.from.means) dispatch.buffers.push_back(Binding::whole(indices.means, *plane.from.means, Access::read));
  if (plane.from.channelScales) {
    dispatch.buffers.push_back(
        Binding::whole(kKVCacheDequantizeChannelScales, *plane.from.channelScales, Access::read));
  }
}

Dispatch makeDequantizeDispatch(const KVCacheDequantize& op) {
  const std::vector<DequantizedPlane> planes = planesOf(op);
  const CacheAddressing addressing(addressesOf(op));
  const uint64_t heads = addressing.op.into.heads();
  std::vector<HeadsView> targets;
  for (const DequantizedPlane& plane : planes) targets.push_back(sourceOf(plane.into, op.layout));
  const QuantizedKVPlane& first = planes.front().from;
  const QuantizedKVPlane* second = planes.size() > 1 ? &planes[1].from : nullptr;
  const VectorLanes lanes = VectorLanes::forPlanes(heads * addressing.params().tokens, first, second);
  KVCacheDequantizeParams params{.address = addressing.params(),
                                 .keys = codecPlaneOf(first, lanes, heads),
                                 .values = {},
                                 .heads = static_cast<uint32_t>(heads),
                                 .isOriginal = op.domain == KVDomain::original};
  if (second) params.values = codecPlaneOf(*second, lanes, heads);

  Dispatch dispatch;
  dispatch.kind = KVCacheDequantize::name;
  dispatch.kernel.function = fmt::format("kvCacheDequantize_{}", lanes.chunks);
  dispatch.kernel.constants = addressing.constants();
  const auto own = codecConstants(first, second, lanes, targets);
  dispatch.kernel.constants.insert(dispatch.kernel.constants.end(), own.begin(), own.end());
  dispatch.inlines.push_back(InlineBytes::of(kKVCacheDequantizeParams, params));
  for (size_t plane = 0; plane < planes.size(); ++plane) {
    bindPlane(dispatch, addressing, planes[plane], kIndices[plane]);
  }
  dispatch.grid = gridOf(lanes, uint64_t{params.keys.simdgroups} + params.values.simdgroups, params.address.tokens);
  return dispatch;
}

}  // namespace

Result<Plan> plan(const KVCacheDequantize& op) {
  return guarded(KVCacheDequantize::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(op));
    Plan plan{.op = std::string(KVCacheDequantize::name), .dispatches = {}};
    if (tokenCount(addressesOf(op)) == 0 || op.from.codes().heads() == 0) return plan;
    plan.dispatches.push_back(makeDequantizeDispatch(op));
    return plan;
  });
}

}  // namespace mnk
