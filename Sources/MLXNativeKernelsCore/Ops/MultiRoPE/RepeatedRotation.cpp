#include "Ops/MultiRoPE/RepeatedRotation.hpp"

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/MultiRoPE/MultiRoPEOperands.hpp"
#include "Ops/MultiRoPE/MultiRoPERules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr RotaryIndices kRotaryIndices{kMultiRoPEFrequencies, kMultiRoPEPositions, kMultiRoPEOffsets};

void describeRotary(const RotaryEmbedding& rotary, OpForm& form) {
  form.add(rotary.layout);
  for (const uint32_t section : rotary.sections) form.add(section);
  form.add(rotary.base);
  form.add(rotary.ropeDim);
  form.add(rotary.pairing);
  form.add(rotary.otherAxis);
  form.add(rotary.scale);
  form.add(rotary.frequencyFactors.size());
  for (const float factor : rotary.frequencyFactors) form.add(factor);
  form.add(rotary.yarn.has_value());
  if (const auto& yarn = rotary.yarn) {
    form.add(yarn->originalContext);
    for (const float number : {yarn->extensionFactor, yarn->attentionFactor, yarn->betaFast, yarn->betaSlow}) {
      form.add(number);
    }
    form.add(yarn->roundsCorners);
  }
  form.add(rotary.isInverse);
}

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
    describeRotary(rotary, form);
  } else {
    RotaryEmbedding unscaled = rotary;
    unscaled.yarn->attentionFactor = 1;  // of lengths, not angles
    describeRotary(unscaled, form);
  }
  return form.hash();
}

void describeAngles(const MultiRoPE& op, const RotaryIndices& indices, OpForm& form) {
  describeRotary(op.rotary, form);
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

}  // namespace mnk
