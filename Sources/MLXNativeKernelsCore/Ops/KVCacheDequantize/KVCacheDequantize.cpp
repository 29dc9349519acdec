#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"

#include "KVCacheDequantize/KVCacheDequantizeTypes.h"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/VectorLanes.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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
