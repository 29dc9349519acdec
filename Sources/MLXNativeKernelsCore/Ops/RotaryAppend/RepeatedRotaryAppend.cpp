#include "Ops/RotaryAppend/RepeatedRotaryAppend.hpp"

#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/KVCacheWrite/RepeatedWrite.hpp"
#include "Ops/MultiRoPE/MultiRoPERules.hpp"
#include "Ops/MultiRoPE/RepeatedRotation.hpp"
#include "RotaryAppend/RotaryAppendTypes.h"
#include "Support/Try.hpp"

namespace mnk {

namespace {

constexpr WriteIndices kWriteIndices{kRotaryAppendKeys,       kRotaryAppendValues,    kRotaryAppendKeyCache,
                                     kRotaryAppendValueCache, kRotaryAppendSequences, kRotaryAppendSlots};
constexpr RotaryIndices kDenseIndices{kRotaryAppendFrequencies, kRotaryAppendPositions, kRotaryAppendOffsets};
constexpr RotaryIndices kQuantizedIndices{kKVCacheQuantizeFrequencies, kKVCacheQuantizeRotaryPositions,
                                          kKVCacheQuantizeRotaryOffsets};

}  // namespace

RepeatedRotaryAppend::RepeatedRotaryAppend(const RotaryAppend& op)
    : op_(op), dense_(std::get_if<KVCacheWrite>(&op.append)) {
  if (!dense_) quantize_.emplace(std::get<KVCacheQuantize>(op.append));
}

bool RepeatedRotaryAppend::describe(OpForm& form) const {
  form.add(RotaryAppend::name);
  form.add(op_.firstToken);
  form.bind(dense_ ? uint32_t{kRotaryAppendQueries} : uint32_t{kKVCacheQuantizeQueries}, op_.rotation.queries,
            Access::read);
  describeAngles(op_.rotation, dense_ ? kDenseIndices : kQuantizedIndices, form);
  return dense_ ? describeWrite(*dense_, kWriteIndices, form) : quantize_->describe(form);
}

void RepeatedRotaryAppend::addPositions(OpPositions& positions) const {
  std::visit([&](const auto& append) { addWritePositions(positions, append); }, op_.append);
  addNumbers(positions, op_.rotation.positions);
  addNumbers(positions, op_.rotation.offsets);
}

Result<void> RepeatedRotaryAppend::refine(Device& device, OpForm& form) {
  MNK_TRY(checkRules(multiRoPEPositionRules(), op_.rotation, RotaryAppend::name));
  if (quantize_) return quantize_->refine(device, form);
  MNK_TRY(checkRules(cachePositionRules(), *dense_, KVCacheWrite::name));
  placement_ = placementOf(*dense_);
  refineAddresses(*dense_, form);
  return {};
}

void RepeatedRotaryAppend::patch(size_t index, Dispatch& dispatch) const {
  if (dense_) {
    patchInline<RotaryAppendParams>(dispatch, kRotaryAppendParams, [&](RotaryAppendParams& params) {
      patchPositions(op_.rotation, params.rotation);
      patchAddresses(*dense_, placement_, params.address);
    });
    patchWritten(*dense_, placement_, kWriteIndices, dispatch);
  } else {
    quantize_->patch(index, dispatch);
    patchInline<MultiRoPEParams>(dispatch, kKVCacheQuantizeRotation,
                                 [&](MultiRoPEParams& params) { patchPositions(op_.rotation, params); });
  }
  patchNumbers(op_.rotation, dense_ ? kDenseIndices : kQuantizedIndices, dispatch);
}

}  // namespace mnk
