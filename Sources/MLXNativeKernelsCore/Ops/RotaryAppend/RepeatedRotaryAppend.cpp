#include "Ops/RotaryAppend/RepeatedRotaryAppend.hpp"

#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/KVCacheWrite/RepeatedWrite.hpp"
#include "Ops/MultiRoPE/MultiRoPERules.hpp"
#include "Ops/MultiRoPE/RepeatedRotation.hpp"
#include "RotaryAppend/RotaryAppendTypes.h"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr WriteIndices kRotaryAppendIndices{kRotaryAppendKeys,       kRotaryAppendValues,    kRotaryAppendKeyCache,
                                            kRotaryAppendValueCache, kRotaryAppendSequences, kRotaryAppendSlots};
constexpr RotaryIndices kDenseIndices{kRotaryAppendFrequencies, kRotaryAppendPositions, kRotaryAppendOffsets};
constexpr RotaryIndices kQuantizedIndices{kKVCacheQuantizeFrequencies, kKVCacheQuantizeRotaryPositions,
                                          kKVCacheQuantizeRotaryOffsets};

}  // namespace

RepeatedRotaryAppend::RepeatedRotaryAppend(const MultiRoPE& rotation, uint64_t firstToken,
                                           const RotaryAppend::Append& append)
    : rotation_(rotation), firstToken_(firstToken), append_(append), dense_(std::get_if<KVCacheWrite>(&append)) {
  if (!dense_) quantize_.emplace(std::get<KVCacheQuantize>(append));
}

bool RepeatedRotaryAppend::describe(OpForm& form) const {
  form.add(RotaryAppend::name);
  form.add(firstToken_);
  form.bind(dense_ ? uint32_t{kRotaryAppendQueries} : uint32_t{kKVCacheQuantizeQueries}, rotation_.queries,
            Access::read);
  describeAngles(rotation_, dense_ ? kDenseIndices : kQuantizedIndices, form);
  return dense_ ? describeWrite(*dense_, kRotaryAppendIndices, form) : quantize_->describe(form);
}

void RepeatedRotaryAppend::addPositions(OpPositions& positions) const {
  std::visit([&](const auto& append) { addWritePositions(positions, append); }, append_);
  addNumbers(positions, rotation_.positions);
  addNumbers(positions, rotation_.offsets);
}

Result<void> RepeatedRotaryAppend::refine(Device& device, OpForm& form) {
  MNK_TRY(checkRules(multiRoPEPositionRules(), rotation_, RotaryAppend::name));
  if (quantize_) return quantize_->refine(device, form);
  MNK_TRY(checkRules(cachePositionRules(), *dense_, KVCacheWrite::name));
  placement_ = placementOf(*dense_);
  refineAddresses(*dense_, form);
  return {};
}

void RepeatedRotaryAppend::patch(size_t index, Dispatch& dispatch) const {
  if (dense_) {
    patchInline<RotaryAppendParams>(dispatch, kRotaryAppendParams, [&](RotaryAppendParams& params) {
      patchPositions(rotation_, params.rotation);
      patchAddresses(*dense_, placement_, params.address);
    });
    patchWritten(*dense_, placement_, kRotaryAppendIndices, dispatch);
  } else {
    quantize_->patch(index, dispatch);
    patchInline<MultiRoPEParams>(dispatch, kKVCacheQuantizeRotation,
                                 [&](MultiRoPEParams& params) { patchPositions(rotation_, params); });
  }
  patchNumbers(rotation_, dense_ ? kDenseIndices : kQuantizedIndices, dispatch);
}

}  // namespace mnk
