#include "Ops/KVCacheWrite/RepeatedWrite.hpp"

#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr WriteIndices kWriteIndices{kKVCacheWriteKeys,       kKVCacheWriteValues,    kKVCacheWriteKeyCache,
                                     kKVCacheWriteValueCache, kKVCacheWriteSequences, kKVCacheWritePositions};

}  // namespace

bool describeWrite(const KVCacheWrite& op, const WriteIndices& indices, OpForm& form) {
  form.bind(indices.keys, op.keys, Access::read);
  form.add(op.values.has_value());
  if (op.values) form.bind(indices.values, *op.values, Access::read);
  form.bind(indices.keyCache, op.into.keys, Access::write);
  form.bind(indices.valueCache, op.into.values, op.values ? Access::write : Access::read);
  return describeAddresses(op, form);
}

void patchWritten(const KVCacheWrite& op, const Placement& placement, const WriteIndices& indices, Dispatch& dispatch) {
  patchRows(placement, indices.sequences, indices.positions, dispatch);
  for (Binding& binding : dispatch.buffers) {
    const bool isKey = binding.index == indices.keyCache;
    if (!isKey && binding.index != indices.valueCache) continue;
    const Tensor& cache = isKey ? op.into.keys : *op.into.values;
    const Shape& shape = cache.shape();
    patchCacheRegions(op, placement, shape[shape.rank() - 1] * byteSize(cache.dtype()), binding);
  }
}

bool RepeatedWrite::describe(OpForm& form) const {
  form.add(KVCacheWrite::name);
  return describeWrite(op_, kWriteIndices, form);
}

Result<void> RepeatedWrite::refine(Device&, OpForm& form) {
  MNK_TRY(checkRules(cachePositionRules(), op_, KVCacheWrite::name));
  placement_ = placementOf(op_);
  refineAddresses(op_, form);
  return {};
}

void RepeatedWrite::patch(size_t, Dispatch& dispatch) const {
  patchInline<KVCacheWriteParams>(dispatch, kKVCacheWriteParams,
                                  [&](KVCacheWriteParams& params) { patchAddresses(op_, placement_, params.address); });
  patchWritten(op_, placement_, kWriteIndices, dispatch);
}

Result<void> encodeRepeated(CommandEncoder& encoder, const KVCacheWrite& op) {
  RepeatedWrite repeated(op);
  return encoder.repeat(repeated);
}

}  // namespace mnk
