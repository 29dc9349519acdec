#include "Ops/Common/RepeatedOps.hpp"

#include <algorithm>

#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "RotaryAppend/RotaryAppendTypes.h"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

struct WriteIndices {
  uint32_t keys, values, keyCache, valueCache, sequences, positions;
};

constexpr WriteIndices kWriteIndices{kKVCacheWriteKeys,       kKVCacheWriteValues,    kKVCacheWriteKeyCache,
                                     kKVCacheWriteValueCache, kKVCacheWriteSequences, kKVCacheWritePositions};

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

}  // namespace

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
  form.add(op_.options);
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

namespace {

constexpr RotaryIndices kRotaryIndices{kMultiRoPEFrequencies, kMultiRoPEPositions, kMultiRoPEOffsets};

void describeOperand(OpForm& form, uint32_t index, const HeadsView& from, const std::optional<HeadsView>& into) {
  form.bind(index, from, into ? Access::read : Access::readWrite);
  form.add(into.has_value());
  form.bind(index + 1, into ? *into : from, Access::write);
}

class RepeatedRotation final : public RepeatedOp {
 public:
  explicit RepeatedRotation(const MultiRoPE& op) : op_(op) {}

  std::string_view name() const override { return MultiRoPE::name; }
  Result<Plan> plan(Device*) const override { return mnk::plan(op_); }

  bool describe(OpForm& form) const override {
    if (!op_.keys && op_.rotatedKeys) return false;
    form.add(MultiRoPE::name);
    describeOperand(form, kMultiRoPEQueries, op_.queries, op_.rotatedQueries);
    form.add(op_.keys.has_value());
    if (op_.keys) describeOperand(form, kMultiRoPEKeys, *op_.keys, op_.rotatedKeys);
    describeAngles(op_, kRotaryIndices, form);
    return true;
  }

  void addPositions(OpPositions& positions) const override {
    addNumbers(positions, op_.positions);
    addNumbers(positions, op_.offsets);
  }
  Result<void> refine(Device&, OpForm&) override { return checkRules(multiRoPEPositionRules(), op_, MultiRoPE::name); }

  void patch(size_t, Dispatch& dispatch) const override {
    patchInline<MultiRoPEParams>(dispatch, kMultiRoPEParams,
                                 [&](MultiRoPEParams& params) { patchPositions(op_, params); });
    patchNumbers(op_, kRotaryIndices, dispatch);
  }

 private:
  const MultiRoPE& op_;
};

}  // namespace

uint64_t hashOf(const RotaryEmbedding& rotary) {
  OpForm form;
  if (!rotary.yarn || rotary.yarn->attentionFactor == 1) {
    form.add(rotary);
  } else {
    RotaryEmbedding unscaled = rotary;
    unscaled.yarn->attentionFactor = 1;  // of lengths, not angles
    form.add(unscaled);
  }
  return form.hash();
}

void describeAngles(const MultiRoPE& op, const RotaryIndices& indices, OpForm& form) {
  form.add(op.rotary);
  form.add(op.positions.source.index());
  if (const auto* list = positionList(op)) {
    form.add(list->axes);
    form.add(axesDiffer(op));
    form.add(list->numbers.size());
  }
  if (const Tensor* tensor = positionTensor(op)) form.bind(indices.positions, *tensor, Access::read);
  form.add(op.offsets.has_value() ? op.offsets->index() + 1 : 0);
  if (const auto* list = offsetList(op)) form.add(list->size());
  if (const Tensor* tensor = offsetTensor(op)) form.bind(indices.offsets, *tensor, Access::read);
}

void addNumbers(OpPositions& positions, const RotaryPositions& of) {
  if (const auto* first = std::get_if<int64_t>(&of.source)) positions.add(*first);
  if (const auto* list = std::get_if<RotaryPositions::List>(&of.source)) {
    for (const int32_t number : list->numbers) positions.add(number);
  }
}

void addNumbers(OpPositions& positions, const std::optional<RotaryOffsets>& offsets) {
  const auto* list = offsets ? std::get_if<std::vector<int32_t>>(&*offsets) : nullptr;
  if (!list) return;
  for (const int32_t number : *list) positions.add(number);
}

void patchPositions(const MultiRoPE& op, MultiRoPEParams& params) {
  if (const auto* first = std::get_if<int64_t>(&op.positions.source)) {
    params.firstPosition = static_cast<int32_t>(*first);
  }
}

void patchNumbers(const MultiRoPE& op, const RotaryIndices& indices, Dispatch& dispatch) {
  if (const auto* list = positionList(op)) patchList(dispatch, indices.positions, list->numbers);
  if (const auto* list = offsetList(op)) patchList(dispatch, indices.offsets, *list);
}

Result<void> encodeRepeated(CommandEncoder& encoder, const MultiRoPE& op) {
  const PositionSource* const source = op.positions.follows();
  if (!source) {
    RepeatedRotation repeated(op);
    MNK_TRY(encoder.repeat(repeated));
    if (hasFixedPositions(op)) encoder.noteFixedPositions();
    return {};
  }
  return guarded(MultiRoPE::name, [&]() -> Result<void> {
    MultiRoPE resolved = op;
    MNK_TRY(resolved.positions, source->resolve(encoder, op.queries, &op, false));
    RepeatedRotation repeated(resolved);
    MNK_TRY(encoder.repeat(repeated));
    source->recorded(encoder, &op);
    return {};
  });
}

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

namespace {

void describeResults(const AttentionResults& results, OpForm& form) {
  form.bind(kFlashDecodeInto, results.output, Access::write);
  form.add(results.partials.has_value());
  if (results.partials) {
    form.bind(kFlashDecodeSums, results.partials->sums, Access::write);
    form.bind(kFlashDecodeStats, results.partials->stats, Access::write);
  }
  form.bind(kFlashDecodeLogSumExp, results.logSumExp, Access::write);
}

// Adds to the form the properties of a layout that the plan depends on, apart from those in the form already and
// constants of the device.
void describeLayout(const FlashDecodeLayout& layout, OpForm& form) {
  form.add(layout.kernel);
  form.add(layout.hasRowMajorMatrices);
  for (const uint32_t number : {layout.instance.keyDim, layout.instance.valueDim, layout.instance.rows,
                                layout.prefill.parts, layout.prefill.rowBlocks, layout.prefill.keys, layout.rowsPerTile,
                                layout.tileKeys, layout.simdgroups, layout.splits}) {
    form.add(number);
  }
  form.add(layout.mergesInKernel);
}

template <typename View>
void describeSlots(const View& view, OpForm& form) {
  form.add(view.layout);
  form.add(view.wrap);
  form.add(view.pinned);
  form.add(view.latentDim);
}

}  // namespace

void addAttended(OpPositions& positions, const AttendedSequence& attended) {
  positions.add(attended.sequence, attended.length, attended.highest);
  if (attended.position) positions.add(*attended.position);  // the form says which have one
}

RepeatedAttention::RepeatedAttention(const FlashDecode& op, const std::optional<ScratchQueries>& queries)
    : op_(op), queries_(queries) {}

Result<Plan> RepeatedAttention::plan(Device* device) const {
  return mnk::plan(op_, queries_, device);
}

void RepeatedAttention::addPositions(OpPositions& positions) const {
  for (const AttendedSequence& each : op_.sequences) addAttended(positions, each);
}

bool RepeatedAttention::describe(OpForm& form) const {
  if (op_.options.mask || op_.scratch) return false;  // a mask grows with the keys
  form.add(FlashDecode::name);
  form.add(queries_.has_value());
  if (queries_) {
    form.add(op_.queries.tensor.dtype());
    form.add(op_.queries.resolved());
    form.add(queries_->offset);
    form.add(queries_->bytes);
  } else {
    form.bind(kFlashDecodeQueries, op_.queries, Access::read);
  }
  form.add(op_.sequences.size());
  const bool hasRows = std::ranges::any_of(op_.sequences, [](const auto& each) { return each.rows != 0; });
  form.add(hasRows);
  for (const AttendedSequence& each : op_.sequences) {
    if (hasRows) form.add(each.rows);
    form.add(each.position.has_value());
  }
  form.add(op_.cache.index());
  if (const auto* quantized = std::get_if<QuantizedKVCacheView>(&op_.cache)) {
    if (!quantized->values) return false;
    describePlane(form, quantized->keys,
                  {kFlashDecodeKeys, kFlashDecodeKeyScales, kFlashDecodeKeyMeans, kFlashDecodeChannelScales},
                  Access::read);
    describePlane(form, *quantized->values,
                  {kFlashDecodeValues, kFlashDecodeValueScales, kFlashDecodeValueMeans, kFlashDecodeChannelScales},
                  Access::read);
    describeSlots(*quantized, form);
  } else {
    const auto& dense = std::get<KVCacheView>(op_.cache);
    form.bind(kFlashDecodeKeys, dense.keys, Access::read);
    form.bind(kFlashDecodeValues, dense.values, Access::read);
    if (!dense.values) form.bind(kFlashDecodeValues, dense.keys, Access::read);  // dispatches bind it twice
    describeSlots(dense, form);
  }
  describeResults(op_.results, form);
  form.add(op_.options);
  form.bind(kFlashDecodeSlopes, op_.options.slopes, Access::read);
  form.bind(kFlashDecodeSinks, op_.options.sinks, Access::read);
  return true;
}

Result<void> RepeatedAttention::refine(Device& device, OpForm& form) {
  shape_.emplace(op_, queries_);
  MNK_TRY(checkRules(attentionPositionRules(), *shape_, FlashDecode::name));
  MNK_TRY(layout_, layoutFor(*shape_, device));
  describeLayout(layout_, form);
  return {};
}

void RepeatedAttention::patch(size_t index, Dispatch& dispatch) const {
  if (index >= layout_.passes.size()) return;  // the merge dispatch does not depend on positions
  const FlashDecodePass& pass = layout_.passes[index];
  patchList(dispatch, kFlashDecodeSequences, pass.sequences);
  const auto patchReads = [&](uint32_t at, const auto& addTo) {
    for (Binding& binding : dispatch.buffers) {
      if (binding.index != at) continue;
      binding.reads.clear();
      addTo(binding.reads);
    }
  };
  if (shape_->quantized) {
    const auto patchPlane = [&](const KVCodecSizes& vector, uint32_t codes, uint32_t scales) {
      patchReads(codes, [&](auto& reads) { pass.addReads(*shape_, vector.codeBytes, reads); });
      patchReads(scales, [&](auto& reads) { pass.addReads(*shape_, vector.scaleBytes, reads); });
    };
    patchPlane(shape_->keyVector, kFlashDecodeKeys, kFlashDecodeKeyScales);
    patchPlane(shape_->valueVector, kFlashDecodeValues, kFlashDecodeValueScales);
  } else {
    patchReads(kFlashDecodeKeys, [&](auto& reads) { pass.addDenseReads(*shape_, true, reads); });
    patchReads(kFlashDecodeValues, [&](auto& reads) { pass.addDenseReads(*shape_, false, reads); });
  }
  layout_.addRepeatedReads(pass, dispatch);
}

Result<void> encodeRepeated(CommandEncoder& encoder, const FlashDecode& op) {
  RepeatedAttention repeated(op);
  return encoder.repeat(repeated);
}

}  // namespace mnk
