#include "Ops/KVCacheQuantize/RepeatedQuantize.hpp"

#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

bool RepeatedQuantize::describe(OpForm& form) const {
  form.add(KVCacheQuantize::name);
  form.bind(kKVCacheQuantizeKeys, op_.keys, Access::read);
  form.add(op_.values.has_value());
  if (op_.values) form.bind(kKVCacheQuantizeValues, *op_.values, Access::read);
  describePlane(
      form, op_.into.keys,
      {kKVCacheQuantizeKeyCodes, kKVCacheQuantizeKeyScales, kKVCacheQuantizeKeyMeans, kKVCacheQuantizeChannelScales},
      Access::write);
  form.add(op_.into.values.has_value());
  if (op_.into.values) {
    describePlane(form, *op_.into.values,
                  {kKVCacheQuantizeValueCodes, kKVCacheQuantizeValueScales, kKVCacheQuantizeValueMeans,
                   kKVCacheQuantizeChannelScales},
                  op_.values ? Access::write : Access::read);
  }
  form.add(op_.options.candidates);
  form.add(op_.options.keyScale);
  form.add(op_.options.valueScale);
  form.add(op_.options.nonFinite);
  form.bind(kKVCacheQuantizeCounts, op_.counts, Access::readWrite);
  form.bind(kKVCacheQuantizeProbe, op_.probe, Access::write);
  return describeAddresses(op_, form);
}

Result<void> RepeatedQuantize::refine(Device&, OpForm& form) {
  addresses_ = addressesOf(op_);
  MNK_TRY(checkRules(cachePositionRules(), addresses_, KVCacheQuantize::name));
  placement_ = placementOf(addresses_);
  refineAddresses(addresses_, form);
  return {};
}

void RepeatedQuantize::patch(size_t, Dispatch& dispatch) const {
  patchInline<KVCacheQuantizeParams>(dispatch, kKVCacheQuantizeParams, [&](KVCacheQuantizeParams& params) {
    patchAddresses(addresses_, placement_, params.address);
  });
  patchRows(placement_, kKVCacheQuantizeSequences, kKVCacheQuantizePositions, dispatch);
  const auto patchPlane = [&](const QuantizedKVPlane& plane, uint32_t codes, uint32_t scales) {
    const KVCodecSizes row = plane.vectorSizes();
    for (Binding& binding : dispatch.buffers) {
      if (binding.index == codes) patchCacheRegions(addresses_, placement_, row.codeBytes, binding);
      if (binding.index == scales) patchCacheRegions(addresses_, placement_, row.scaleBytes, binding);
    }
  };
  patchPlane(op_.into.keys, kKVCacheQuantizeKeyCodes, kKVCacheQuantizeKeyScales);
  if (op_.values) patchPlane(*op_.into.values, kKVCacheQuantizeValueCodes, kKVCacheQuantizeValueScales);
}

Result<void> encodeRepeated(CommandEncoder& encoder, const KVCacheQuantize& op) {
  return guarded(KVCacheQuantize::name, [&] {
    RepeatedQuantize repeated(op);
    return encoder.repeat(repeated);
  });
}

}  // namespace mnk
