#include "MLXNativeKernels/Generated/MultiRoPE.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/MultiRoPE/MultiRoPEOperands.hpp"
#include "Ops/MultiRoPE/MultiRoPERules.hpp"
#include "Ops/MultiRoPE/RotaryDispatch.hpp"
#include "Ops/MultiRoPE/RotaryFrequencies.hpp"
#include "Ops/MultiRoPE/RotaryRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

using Strides = HeadsView::Strides;

// Made from the list that the shader instantiates, so neither side can name a kernel the other lacks.
struct RotaryKernel {
  DType from;
  DType into;
  std::string_view function;
};
constexpr RotaryKernel kKernels[] = {
#define ROW(from, into) {DType::from, DType::into, "multiRoPE_" #from "_" #into},
    MNK_MULTI_ROPE_DTYPES(ROW)
#undef ROW
};

std::string_view functionFor(const RotaryOperand& operand) {
  const RotaryKernel& kernel =
      *std::find_if(std::begin(kKernels), std::prev(std::end(kKernels)), [&](const RotaryKernel& candidate) {
        return candidate.from == operand.from.tensor.dtype() && candidate.into == operand.into.tensor.dtype();
      });
  return kernel.function;
}

// Properties of a dispatch that all its threads share.
struct Work {
  uint64_t headDim = 0;
  uint64_t ropeDim = 0;
  uint64_t pairsPerUnit = 1;
  bool isInPlace = false;  // pairs outside ropeDim are then not copied
  uint64_t headsPerGroup = 1;

  uint64_t units() const { return (isInPlace ? ropeDim : headDim) / 2 / pairsPerUnit; }
};

Work workOf(const MultiRoPE& op, std::span<const RotaryOperand> operands) {
  const Strides queries = op.queries.resolved();
  Work work{.headDim = queries.headDim, .ropeDim = ropeDimOf(op.rotary, queries.headDim)};
  work.isInPlace = operands[0].isInPlace();
  bool isVectorized = hasPairsInFours(op);
  for (const RotaryOperand& operand : operands) {
    for (const HeadsView* view : {&operand.from, &operand.into}) {
      isVectorized = isVectorized && elementAlignment(*view, kVectorPairs) == kVectorPairs;
    }
  }
  work.pairsPerUnit = isVectorized ? kVectorPairs : 1;
  work.headsPerGroup = rotatedHeadsPerGroup(queries.totalTokens());
  return work;
}

bool isInterleaved(const MultiRoPE& op) {
  return op.rotary.layout == RotaryEmbedding::Layout::interleavedPairs ||
         op.rotary.pairing == RotaryEmbedding::Pairing::neighbors;
}

// The elements that a dispatch touches in each vector.
std::vector<ElementRun> runsOf(const MultiRoPE& op, const Work& work) {
  if (!work.isInPlace) return {{0, work.headDim}};
  const bool isSplitHead = !isInterleaved(op) && op.rotary.pairing == RotaryEmbedding::Pairing::halfOfHeadDim;
  if (!isSplitHead || work.ropeDim == work.headDim) return {{0, work.ropeDim}};
  return {{0, work.ropeDim / 2}, {work.headDim / 2, work.ropeDim / 2}};
}

uint32_t narrow(uint64_t value) {
  return static_cast<uint32_t>(value);  // the rules bound every extent
}

// Packs the rotation per position as a fraction of a turn, with the axis in the two lowest, insignificant bits.
RotaryFrequency packed(double radians, uint32_t axis) {
  const double turns = radians * (0.5 * std::numbers::inv_pi);
  const auto bits = static_cast<uint64_t>((turns - std::floor(turns)) * 0x1p64);
  return {.low = static_cast<uint32_t>(bits & ~uint64_t{3}) | axis, .high = static_cast<uint32_t>(bits >> 32)};
}

// Sets the byte counts if the declared regions cover more than is moved.
void countBytes(Dispatch& dispatch, std::span<const RotaryOperand> operands, const std::vector<ElementRun>& runs) {
  uint64_t read = 0, written = 0;
  for (const RotaryOperand& operand : operands) {
    read += bytesOf(operand.from, runs);
    written += bytesOf(operand.into, runs);
  }
  for (const Binding& binding : dispatch.buffers) {
    const bool isNumbers = binding.index == kMultiRoPEPositions || binding.index == kMultiRoPEOffsets;
    if (isNumbers) read += binding.length;
  }
  if (dispatch.countedBytesRead() != read) dispatch.bytesRead = read;
  if (dispatch.countedBytesWritten() != written) dispatch.bytesWritten = written;
}

MultiRoPEParams paramsOf(const MultiRoPE& op, std::span<const RotaryOperand> operands, const Work& work) {
  MultiRoPEParams params = rotaryParams(op, work.pairsPerUnit, work.headsPerGroup);
  for (size_t i = 0; i < operands.size(); ++i) {
    (i == 0 ? params.queries : params.keys) =
        rotaryOperand(operands[i].from.resolved(), operands[i].into.resolved(), work.headsPerGroup);
  }
  return params;
}

// One dispatch rotates operands with the same element types and placement.
Dispatch makeRotaryDispatch(const MultiRoPE& op, std::span<const RotaryOperand> operands) {
  const Work work = workOf(op, operands);
  const auto runs = runsOf(op, work);
  const MultiRoPEParams params = paramsOf(op, operands, work);

  Dispatch dispatch;
  dispatch.kind = MultiRoPE::name;
  dispatch.kernel.function = functionFor(operands[0]);
  const bool hasKeys = operands.size() > 1;
  dispatch.kernel.constants = {{kMultiRoPEHasKeys, hasKeys},
                               {kMultiRoPEIsOutOfPlace, !work.isInPlace},
                               {kMultiRoPEHasKeysOutOfPlace, hasKeys && !work.isInPlace}};
  const auto constants = rotaryConstants(op, work.pairsPerUnit == kVectorPairs);
  dispatch.kernel.constants.insert(dispatch.kernel.constants.end(), constants.begin(), constants.end());
  dispatch.inlines.push_back(InlineBytes::of(kMultiRoPEParams, params));
  for (size_t i = 0; i < operands.size(); ++i) {
    const uint32_t index = i == 0 ? kMultiRoPEQueries : kMultiRoPEKeys;
    if (!work.isInPlace) dispatch.buffers.push_back(bindingOf(index, operands[i].from, runs, Access::read));
    const Access access = work.isInPlace ? Access::readWrite : Access::write;
    dispatch.buffers.push_back(bindingOf(index + 1, operands[i].into, runs, access));
  }
  bindRotary(dispatch, op, {kMultiRoPEFrequencies, kMultiRoPEPositions, kMultiRoPEOffsets});
  countBytes(dispatch, operands, runs);
  dispatch.grid.extent = {narrow(work.units()), params.queries.headGroups + params.keys.headGroups, params.totalTokens};
  return dispatch;
}

}  // namespace

// With few tokens, heads are spread over more threads. With these numbers, 40 heads of 128 elements use 20,000 threads
// from 32 tokens on.
uint64_t rotatedHeadsPerGroup(uint64_t tokens) {
  constexpr uint64_t kTokens = 32, kMaxHeads = 8;
  return std::clamp<uint64_t>(tokens / kTokens, 1, kMaxHeads);
}

bool hasPairsInFours(const MultiRoPE& op) {
  const uint64_t headDim = op.queries.resolved().headDim;
  return headDim / 2 % kVectorPairs == 0 && ropeDimOf(op.rotary, headDim) / 2 % kVectorPairs == 0;
}

MultiRoPEOperand rotaryOperand(const Strides& from, const Strides& into, uint64_t headsPerGroup) {
  return {.fromSequenceStride = from.sequenceStride,
          .fromTokenStride = from.tokenStride,
          .fromHeadStride = from.headStride,
          .intoSequenceStride = into.sequenceStride,
          .intoTokenStride = into.tokenStride,
          .intoHeadStride = into.headStride,
          .heads = narrow(from.heads),
          .headGroups = narrow((from.heads + headsPerGroup - 1) / headsPerGroup)};
}

MultiRoPEParams rotaryParams(const MultiRoPE& op, uint64_t pairsPerUnit, uint64_t headsPerGroup) {
  const Strides queries = op.queries.resolved();
  const uint64_t headDim = queries.headDim, ropeDim = ropeDimOf(op.rotary, headDim);
  const bool isSplitHead = op.rotary.pairing == RotaryEmbedding::Pairing::halfOfHeadDim;
  const Tensor* positions = positionTensor(op);
  const Tensor* offsets = offsetTensor(op);
  const bool hasSignedPositions = !positions || positions->dtype() == DType::i32;
  const bool hasSignedOffsets = !offsets || offsets->dtype() == DType::i32;
  const uint32_t signs =
      (hasSignedPositions ? kMultiRoPESignedPositions : 0) | (hasSignedOffsets ? kMultiRoPESignedOffsets : 0);
  const auto* first = std::get_if<int64_t>(&op.positions.source);
  const double magnitude = magnitudeOf(op.rotary);
  const double scale = op.rotary.isInverse ? 1 / magnitude : magnitude;
  return {.queries = {},
          .keys = {},
          .tokens = narrow(queries.tokens),
          .totalTokens = narrow(queries.totalTokens()),
          .headsPerGroup = narrow(headsPerGroup),
          .rotatedUnits = narrow(ropeDim / 2 / pairsPerUnit),
          .pairDistance = narrow((isSplitHead ? headDim : ropeDim) / 2),
          .copiedOffset = narrow(isSplitHead ? 0 : ropeDim / 2),
          .copiedDistance = narrow((isSplitHead ? headDim : headDim - ropeDim) / 2),
          .axisStride = narrow(axisCount(op) > 1 ? positionsOfAxis(op) : 0),
          .signs = signs,
          .firstPosition = first ? static_cast<int32_t>(*first) : 0,
          .cosineScale = static_cast<float>(scale),
          .sineScale = static_cast<float>(op.rotary.isInverse ? -scale : scale)};
}

std::vector<FunctionConstant> rotaryConstants(const MultiRoPE& op, bool isVectorized) {
  return {{kMultiRoPEHasPositions, positionList(op) || positionTensor(op)},
          {kMultiRoPEHasOffsets, op.offsets.has_value()},
          {kMultiRoPEIsInterleaved, isInterleaved(op)},
          {kMultiRoPEIsVectorized, isVectorized}};
}

void bindRotary(Dispatch& dispatch, const MultiRoPE& op, const RotaryIndices& indices, uint64_t firstToken) {
  const auto radians = frequenciesOf(op.rotary, op.queries.resolved().headDim);
  std::vector<RotaryFrequency> frequencies(radians.size());
  for (size_t pair = 0; pair < radians.size(); ++pair) {
    frequencies[pair] = packed(radians[pair], axisOf(op.rotary, pair));
  }
  dispatch.inlines.push_back(InlineBytes::ofAll(indices.frequencies, frequencies));
  if (const auto* list = positionList(op)) {
    dispatch.inlines.push_back(InlineBytes::ofAll(indices.positions, list->numbers));
  }
  if (const Tensor* tensor = positionTensor(op)) {
    const uint64_t start = firstToken * sizeof(uint32_t),
                   bytes = op.queries.resolved().totalTokens() * sizeof(uint32_t);
    Binding binding = Binding::whole(indices.positions, *tensor, Access::read);
    binding.offset += start;
    binding.length -= start;
    if (bytes != positionsOfAxis(op) * sizeof(uint32_t)) {
      binding.reads = {{.rowBytes = bytes, .rowStride = positionsOfAxis(op) * sizeof(uint32_t), .rows = axisCount(op)}};
    }
    dispatch.buffers.push_back(std::move(binding));
  }
  if (const auto* list = offsetList(op)) dispatch.inlines.push_back(InlineBytes::ofAll(indices.offsets, *list));
  if (const Tensor* tensor = offsetTensor(op)) {
    dispatch.buffers.push_back(Binding::whole(indices.offsets, *tensor, Access::read));
  }
}

Result<Plan> plan(const MultiRoPE& op) {
  return guarded(MultiRoPE::name, [&]() -> Result<Plan> {
    if (op.positions.follows()) {
      return Error{.op = std::string(MultiRoPE::name),
                   .what = "a plan cannot follow a cache",
                   .got = "the next positions of a cache",
                   .expected = "positions that are known, or a tensor",
                   .fix = "Encode the op instead of its plan, or pass positions as numbers."};
    }
    MNK_TRY(checkRules(multiRoPERules(), op, MultiRoPE::name));
    const Strides queries = op.queries.resolved();
    const RotaryCheck check{
        .rotary = op.rotary, .headDim = queries.headDim, .axes = axisCount(op), .axesDiffer = axesDiffer(op)};
    MNK_TRY(checkRules(rotaryRules(), check, MultiRoPE::name));
    Plan plan{.op = std::string(MultiRoPE::name), .dispatches = {}, .hasFixedPositions = hasFixedPositions(op)};
    if (queries.totalTokens() == 0) return plan;
    const auto operands = operandsOf(op);
    const bool isOne = operands.size() == 1 || operands[0].isLike(operands[1]);
    const size_t together = isOne ? operands.size() : 1;
    for (size_t first = 0; first < operands.size(); first += together) {
      plan.dispatches.push_back(makeRotaryDispatch(op, std::span(operands).subspan(first, together)));
    }
    return plan;
  });
}

}  // namespace mnk
