#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"

#include <cmath>

#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/VectorLanes.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// Keys or values: a source, where its codes go, and the indices that the kernel knows them by.
struct TargetPlane {
  HeadsView source;
  const QuantizedKVPlane& into;
  uint32_t sourceIndex;
  uint32_t codesIndex;
  uint32_t scalesIndex;
  uint32_t meansIndex;
};

std::vector<TargetPlane> planesOf(const KVCacheQuantize& op) {
  std::vector<TargetPlane> planes{{sourceOf(op.keys, op.sourceLayout), op.into.keys, kKVCacheQuantizeKeys,
                                   kKVCacheQuantizeKeyCodes, kKVCacheQuantizeKeyScales, kKVCacheQuantizeKeyMeans}};
  if (op.values) {
    planes.push_back({sourceOf(*op.values, op.sourceLayout), *op.into.values, kKVCacheQuantizeValues,
                      kKVCacheQuantizeValueCodes, kKVCacheQuantizeValueScales, kKVCacheQuantizeValueMeans});
  }
  return planes;
}

void bindQuantizedPlane(Dispatch& dispatch, const CacheAddressing& addressing, const TargetPlane& plane) {
  const KVCodecSizes row = plane.into.vectorSizes();
  Binding source = addressing.sourceBinding(plane.sourceIndex, plane.source, Access::read);
  Binding codes = Binding::whole(plane.codesIndex, plane.into.codes, Access::write);
  codes.writes = addressing.cacheRegions(row.codeBytes);
  dispatch.buffers.insert(dispatch.buffers.end(), {std::move(source), std::move(codes)});
  if (!plane.into.isDense()) {
    Binding scales = Binding::whole(plane.scalesIndex, plane.into.scales, Access::write);
    scales.writes = addressing.cacheRegions(row.scaleBytes);
    dispatch.buffers.push_back(std::move(scales));
  }
  if (plane.into.means) dispatch.buffers.push_back(Binding::whole(plane.meansIndex, *plane.into.means, Access::read));
  if (plane.into.channelScales) {
    dispatch.buffers.push_back(Binding::whole(kKVCacheQuantizeChannelScales, *plane.into.channelScales, Access::read));
  }
  addressing.countWritten(dispatch, row.byteCount());
}

uint32_t flagsOf(const KVQuantizeOptions& options) {
  return (options.keyScale == KVScaleRule::unbiased ? uint32_t{kKVUnbiasedKeys} : 0) |
         (options.valueScale == KVScaleRule::unbiased ? uint32_t{kKVUnbiasedValues} : 0) |
         (options.nonFinite == KVNonFinite::propagate ? uint32_t{kKVPropagatesNonFinite} : 0);
}

Dispatch makeQuantizeDispatch(const KVCacheQuantize& op) {
  const std::vector<TargetPlane> planes = planesOf(op);
  const CacheAddressing addressing(addressesOf(op));
  const uint64_t heads = addressing.op.into.heads();
  std::vector<HeadsView> sources;
  for (const TargetPlane& plane : planes) sources.push_back(plane.source);
  const QuantizedKVPlane* values = op.values ? &*op.into.values : nullptr;
  const VectorLanes lanes = VectorLanes::forPlanes(heads * addressing.params().tokens, op.into.keys, values);
  KVCacheQuantizeParams params{
      .address = addressing.params(),
      .keys = codecPlaneOf(op.into.keys, lanes, heads),
      .values = {},
      .heads = static_cast<uint32_t>(heads),
      .flags = flagsOf(op.options),
      .candidates = op.options.candidates,
      .candidateSpacing = op.options.candidates > 1 ? 1 / std::sqrt(op.options.candidates - 1.0f) : 0};
  if (values) params.values = codecPlaneOf(*values, lanes, heads);

  Dispatch dispatch;
  dispatch.kind = KVCacheQuantize::name;
  dispatch.kernel.function = fmt::format("kvCacheQuantize_{}", lanes.chunks);
  dispatch.kernel.constants = {
      {kKVCacheQuantizeHasCounts, op.counts.has_value()},
      {kKVCacheQuantizeHasProbe, op.probe.has_value()},
      {kKVCacheQuantizeHasSearch, op.into.codecName() == KVCodec::Name::turbo && op.options.candidates > 1},
      {kKVCacheQuantizeAppliesRoPE, false},
      {kRotaryAppendQueryType, uint32_t{kFloat32}},
      {kMultiRoPEHasPositions, false},
      {kMultiRoPEHasOffsets, false},
      {kMultiRoPEIsInterleaved, false},
      {kMultiRoPEIsVectorized, false}};
  for (const auto& more : {addressing.constants(), codecConstants(op.into.keys, values, lanes, sources)}) {
    dispatch.kernel.constants.insert(dispatch.kernel.constants.end(), more.begin(), more.end());
  }
  dispatch.inlines.push_back(InlineBytes::of(kKVCacheQuantizeParams, params));
  for (const TargetPlane& plane : planes) bindQuantizedPlane(dispatch, addressing, plane);
  addressing.bindRows(dispatch, kKVCacheQuantizeSequences, kKVCacheQuantizePositions);
  if (op.counts) {
    dispatch.buffers.push_back(Binding::whole(kKVCacheQuantizeCounts, *op.counts, Access::readWrite));
  }
  if (op.probe) dispatch.buffers.push_back(Binding::whole(kKVCacheQuantizeProbe, *op.probe, Access::write));
  dispatch.grid = gridOf(lanes, uint64_t{params.keys.simdgroups} + params.values.simdgroups, params.address.tokens);
  return dispatch;
}

}  // namespace

Result<Plan> plan(const KVCacheQuantize& op) {
  return guarded(KVCacheQuantize::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(op));
    Plan plan{.op = std::string(KVCacheQuantize::name), .dispatches = {}};
    if (storesNothing(addressesOf(op))) return plan;
    plan.dispatches.push_back(makeQuantizeDispatch(op));
    return plan;
  });
}

}  // namespace mnk
