#include "Ops/MultiRoPE/MultiRoPEOperands.hpp"

#include <algorithm>

#include "Ops/Common/HeadsMemory.hpp"
#include "Runtime/HazardTracker.hpp"

namespace mnk {

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

}  // namespace mnk
