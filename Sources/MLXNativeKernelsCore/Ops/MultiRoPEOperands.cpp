#include "Ops/MultiRoPEOperands.hpp"

#include <algorithm>

#include "Encoding/HazardTracker.hpp"
#include "Ops/HeadsMemory.hpp"

namespace mnk {

namespace {

// Bytes that an op touches, for messages about those that it touches twice.
struct Touched {
  std::string_view name;
  const void* space;
  std::vector<Region> regions;  // offsets count from the start of the space
};

Touched touched(std::string_view name, const Binding& binding) {
  const MemoryRange range = binding.buffer->range();
  Touched result{name, range.space, binding.reads};
  for (Region& region : result.regions) region.offset += range.begin + binding.offset;
  return result;
}

Touched touched(const NamedView& named) {
  const ElementRun all{0, named.view.resolved().headDim};
  return touched(named.name, bindingOf(0, named.view, {&all, 1}, Access::read));
}

bool meet(const Touched& a, const Touched& b) {
  return a.space == b.space && std::any_of(a.regions.begin(), a.regions.end(), [&](const Region& one) {
           return std::any_of(b.regions.begin(), b.regions.end(),
                              [&](const Region& other) { return overlap(one, other); });
         });
}

}  // namespace

bool RotaryOperand::isInPlace() const {
  if (&from == &into) return true;
  const HeadsView::Strides a = from.resolved(), b = into.resolved();
  const auto first = [](const HeadsView& view) {
    const MemoryRange range = view.tensor.range();
    return std::pair(range.space, range.begin + view.resolved().offset * byteSize(view.tensor.dtype()));
  };
  const auto isSame = [](uint64_t count, uint64_t one, uint64_t other) { return count <= 1 || one == other; };
  return from.tensor.dtype() == into.tensor.dtype() && first(from) == first(into) &&
         isSame(a.sequences, a.sequenceStride, b.sequenceStride) && isSame(a.tokens, a.tokenStride, b.tokenStride) &&
         isSame(a.heads, a.headStride, b.headStride);
}

std::vector<RotaryOperand> operandsOf(const MultiRoPE& op) {
  std::vector<RotaryOperand> operands;
  operands.push_back({"queries", "rotated queries", op.queries, op.rotatedQueries ? *op.rotatedQueries : op.queries});
  if (op.keys) operands.push_back({"keys", "rotated keys", *op.keys, op.rotatedKeys ? *op.rotatedKeys : *op.keys});
  return operands;
}

std::vector<NamedView> viewsOf(const MultiRoPE& op) {
  std::vector<NamedView> views;
  for (const RotaryOperand& operand : operandsOf(op)) {
    views.push_back({operand.name, operand.from});
    if (&operand.into != &operand.from) views.push_back({operand.rotatedName, operand.into});
  }
  return views;
}

const std::vector<int32_t>* positionList(const MultiRoPE& op) {
  return std::get_if<std::vector<int32_t>>(&op.positions.source);
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
  const uint64_t tokens = op.queries.resolved().totalTokens();
  if (const auto* list = positionList(op)) return tokens == 0 ? 1 : list->size() / tokens;
  const Tensor* tensor = positionTensor(op);
  return tensor && tensor->shape().rank() == 2 ? tensor->shape()[0] : 1;
}

std::optional<std::pair<std::string_view, std::string_view>> firstOverlap(const MultiRoPE& op) {
  std::vector<Touched> read;
  for (const Tensor* tensor : {positionTensor(op), offsetTensor(op)}) {
    if (!tensor) continue;
    const bool isOffsets = tensor == offsetTensor(op);
    read.push_back(touched(isOffsets ? "offsets" : "positions", Binding::whole(0, *tensor, Access::read)));
  }
  const auto operands = operandsOf(op);
  for (const RotaryOperand& operand : operands) {
    const bool isInPlace = operand.isInPlace();
    const Touched into = touched({isInPlace ? operand.name : operand.rotatedName, operand.into});
    for (const Touched& other : read) {
      if (meet(into, other)) return {{into.name, other.name}};
    }
    for (const RotaryOperand& other : operands) {
      const Touched from = touched({other.name, other.from});
      const bool isOwn = &other == &operand;
      if (!(isOwn && isInPlace) && meet(into, from)) return {{into.name, from.name}};
      const Touched otherInto = touched({other.rotatedName, other.into});
      if (!isOwn && meet(into, otherInto)) return {{into.name, otherInto.name}};
    }
  }
  return std::nullopt;
}

}  // namespace mnk
