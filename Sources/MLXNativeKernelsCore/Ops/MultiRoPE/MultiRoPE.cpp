#include "Ops/MultiRoPE/MultiRoPE.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Runtime/HazardTracker.hpp"

namespace mnk {

namespace {

// YaRN's ramp: pairs below `low` keep their frequency and pairs above `high` are interpolated, according to their
// number of rotations in the original context.
struct Ramp {
  double low = 0;
  double high = 0;

  Ramp(const RotaryEmbedding::YaRN& yarn, double base, double dims) {
    const double context = static_cast<double>(yarn.originalContext);
    const auto pairWithTurns = [&](double turns) {
      return dims * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
    };
    const double fast = pairWithTurns(yarn.betaFast), slow = pairWithTurns(yarn.betaSlow);
    low = std::max(0.0, yarn.roundsCorners ? std::floor(fast) : fast);
    high = std::min(dims - 1, yarn.roundsCorners ? std::ceil(slow) : slow);
  }

  // 1 for pairs that are kept, 0 for those that are scaled.
  double kept(double pair) const { return 1 - std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0); }
};

// The powers of the base, restarting after `firstSection` pairs. Repeated multiplication is cheaper than pow and
// accurate enough: the relative error of pair p is at most about p * 2^-52, and with a base above 1 the frequency
// itself decreases faster than this error grows.
std::vector<double> ladder(uint64_t pairs, double base, double dims, uint64_t firstSection) {
  std::vector<double> steps(pairs);
  const double ratio = std::pow(base, -2 / dims);
  double frequency = 1;
  for (uint64_t pair = 0; pair < pairs; ++pair) {
    if (pair == firstSection) frequency = 1;
    steps[pair] = frequency;
    frequency *= ratio;
  }
  return steps;
}

}  // namespace

bool hasSections(RotaryEmbedding::Layout layout) {
  return layout == RotaryEmbedding::Layout::mrope || layout == RotaryEmbedding::Layout::imrope ||
         layout == RotaryEmbedding::Layout::vision;
}

uint64_t ropeDimOf(const RotaryEmbedding& rotary, uint64_t headDim) {
  return rotary.ropeDim == 0 ? headDim : rotary.ropeDim;
}

uint64_t pairsOfRound(const RotaryEmbedding& rotary) {
  const size_t sections = rotary.layout == RotaryEmbedding::Layout::vision ? 2 : rotary.sections.size();
  uint64_t sum = 0;
  for (size_t i = 0; i < sections; ++i) sum += rotary.sections[i];
  return sum;
}

uint32_t axisOf(const RotaryEmbedding& rotary, uint64_t pair) {
  if (!hasSections(rotary.layout)) return 0;
  const auto& sections = rotary.sections;
  const uint64_t place = pair % pairsOfRound(rotary);
  if (rotary.layout == RotaryEmbedding::Layout::imrope) {
    const auto axis = static_cast<uint32_t>(place % 3);
    if (place < 3 * uint64_t{sections[axis]}) return axis;
    return rotary.otherAxis == RotaryEmbedding::OtherAxis::axis0 ? 0 : 3;
  }
  uint64_t end = 0;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    end += sections[axis];
    if (place < end) return axis;
  }
  return 3;
}

std::vector<double> frequenciesOf(const RotaryEmbedding& rotary, uint64_t headDim) {
  const uint64_t ropeDim = ropeDimOf(rotary, headDim);
  const bool isVision = rotary.layout == RotaryEmbedding::Layout::vision;
  const auto dims = static_cast<double>(isVision ? headDim / 2 : ropeDim);
  auto frequencies = ladder(ropeDim / 2, rotary.base, dims, isVision ? rotary.sections[0] : UINT64_MAX);
  for (size_t pair = 0; pair < rotary.frequencyFactors.size() && pair < frequencies.size(); ++pair) {
    const float factor = rotary.frequencyFactors[pair];
    frequencies[pair] = std::isinf(factor) ? 0 : frequencies[pair] / factor;
  }
  if (!rotary.yarn || rotary.yarn->extensionFactor == 0) {
    for (double& frequency : frequencies) frequency *= rotary.scale;
    return frequencies;
  }
  const Ramp ramp(*rotary.yarn, rotary.base, dims);
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    const double kept = ramp.kept(static_cast<double>(pair)) * rotary.yarn->extensionFactor;
    frequencies[pair] *= rotary.scale * (1 - kept) + kept;
  }
  return frequencies;
}

double magnitudeOf(const RotaryEmbedding& rotary) {
  if (!rotary.yarn) return 1;
  const RotaryEmbedding::YaRN& yarn = *rotary.yarn;
  // -log(scale) instead of log(1 / scale), which can overflow.
  const double growth = yarn.extensionFactor == 0 ? 1 : 1 - 0.1 * std::log(rotary.scale);
  return yarn.attentionFactor * growth;
}

namespace {

// The bytes of a view's vectors; offsets count from the start of its space.
std::vector<Region> vectorRegions(const HeadsView& view) {
  const ElementRun all{0, view.resolved().headDim};
  Binding binding = bindingOf(0, view, {&all, 1}, Access::read);
  for (Region& region : binding.reads) region.offset += rangeOf(view).begin;
  return binding.reads;
}

// Disjoint ranges, the usual case, need no further check. A moderate number of vectors is compared one by one. More are
// compared as regions, where interleaved rows with different strides count as overlapping.
bool shareBytes(const HeadsView& a, const HeadsView& b) {
  if (!rangeOf(a).overlaps(rangeOf(b))) return false;
  constexpr uint64_t kMaxVectors = 16384;
  if (vectorCount(a) <= kMaxVectors && vectorCount(b) <= kMaxVectors) return vectorsOverlap(a, b);
  const auto ones = vectorRegions(a), others = vectorRegions(b);
  return std::any_of(ones.begin(), ones.end(), [&](const Region& one) {
    return std::any_of(others.begin(), others.end(), [&](const Region& other) { return overlap(one, other); });
  });
}

// A tensor of numbers as one vector.
HeadsView vectorOf(const Tensor& numbers) {
  return HeadsView(numbers, HeadsView::Strides{.headDim = numbers.shape().elementCount()});
}

}  // namespace

bool RotaryOperand::isInPlace() const {
  if (&from == &into) return true;
  const HeadsView::Strides a = from.resolved(), b = into.resolved();
  const MemoryRange source = rangeOf(from), target = rangeOf(into);
  const auto isSame = [](uint64_t count, uint64_t one, uint64_t other) { return count <= 1 || one == other; };
  return from.tensor.dtype() == into.tensor.dtype() && source.space == target.space && source.begin == target.begin &&
         isSame(a.sequences, a.sequenceStride, b.sequenceStride) && isSame(a.tokens, a.tokenStride, b.tokenStride) &&
         isSame(a.heads, a.headStride, b.headStride);
}

bool RotaryOperand::isLike(const RotaryOperand& other) const {
  return from.tensor.dtype() == other.from.tensor.dtype() && into.tensor.dtype() == other.into.tensor.dtype() &&
         isInPlace() == other.isInPlace();
}

std::vector<RotaryOperand> operandsOf(const MultiRoPE& op) {
  std::vector<RotaryOperand> operands;
  operands.reserve(2);
  operands.push_back({"queries", "rotated queries", op.queries, op.rotatedQueries ? *op.rotatedQueries : op.queries});
  if (op.keys) operands.push_back({"keys", "rotated keys", *op.keys, op.rotatedKeys ? *op.rotatedKeys : *op.keys});
  return operands;
}

std::vector<NamedView> viewsOf(const MultiRoPE& op) {
  std::vector<NamedView> views;
  views.reserve(4);
  for (const RotaryOperand& operand : operandsOf(op)) {
    views.push_back({operand.name, operand.from});
    if (&operand.into != &operand.from) views.push_back({operand.rotatedName, operand.into});
  }
  return views;
}

const RotaryPositions::List* positionList(const MultiRoPE& op) {
  return std::get_if<RotaryPositions::List>(&op.positions.source);
}
const Tensor* positionTensor(const MultiRoPE& op) {
  return std::get_if<Tensor>(&op.positions.source);
}
const std::vector<int32_t>* offsetList(const MultiRoPE& op) {
  return op.offsets ? std::get_if<std::vector<int32_t>>(&*op.offsets) : nullptr;
}
const Tensor* offsetTensor(const MultiRoPE& op) {
  return op.offsets ? std::get_if<Tensor>(&*op.offsets) : nullptr;
}

uint64_t axisCount(const MultiRoPE& op) {
  if (const auto* list = positionList(op)) return list->axes;
  const Tensor* tensor = positionTensor(op);
  return tensor && tensor->shape().rank() > 1 ? tensor->shape()[0] : 1;
}

bool axesDiffer(const MultiRoPE& op) {
  const auto* list = positionList(op);
  if (!list || list->axes < 2) return false;
  const auto next = list->numbers.begin() + static_cast<ptrdiff_t>(list->numbers.size() / list->axes);
  return !std::equal(next, list->numbers.end(), list->numbers.begin());
}

uint64_t positionsOfAxis(const MultiRoPE& op) {
  if (const auto* list = positionList(op)) return list->numbers.size() / list->axes;
  const Tensor* tensor = positionTensor(op);
  return tensor ? tensor->shape().elementCount() / axisCount(op) : 0;
}

std::optional<std::pair<std::string_view, std::string_view>> firstOverlap(const MultiRoPE& op) {
  const Tensor* positions = positionTensor(op);
  const Tensor* offsets = offsetTensor(op);
  const auto operands = operandsOf(op);
  for (const RotaryOperand& operand : operands) {
    const bool isInPlace = operand.isInPlace();
    const std::string_view name = isInPlace ? operand.name : operand.rotatedName;
    if (positions && shareBytes(operand.into, vectorOf(*positions))) return {{name, "positions"}};
    if (offsets && shareBytes(operand.into, vectorOf(*offsets))) return {{name, "offsets"}};
    for (const RotaryOperand& other : operands) {
      const bool isOwn = &other == &operand;
      if (!(isOwn && isInPlace) && shareBytes(operand.into, other.from)) return {{name, other.name}};
      if (!isOwn && shareBytes(operand.into, other.into)) return {{name, other.rotatedName}};
    }
  }
  return std::nullopt;
}

bool hasFixedPositions(const MultiRoPE& op) {
  return op.positions.areNumbers() && !offsetTensor(op);
}

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
