#include "Ops/FlashDecode/RepeatedAttention.hpp"

#include <algorithm>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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
  std::apply([&](auto... numbers) { (form.add(numbers), ...); }, numbersOf(op_.options));
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
