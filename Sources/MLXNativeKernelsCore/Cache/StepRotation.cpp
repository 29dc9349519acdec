#include "Cache/StepRotation.hpp"

#include "Cache/SequenceRows.hpp"

namespace mnk {

namespace {

// Of positions that fit the step.
RotaryPositions positionsFrom(const RotaryPositions& all, uint64_t first, uint64_t tokens) {
  if (const auto* number = std::get_if<int64_t>(&all.source)) return *number + static_cast<int64_t>(first);
  const auto* list = std::get_if<RotaryPositions::List>(&all.source);
  if (!list) return all;
  const uint64_t ofAxis = list->numbers.size() / list->axes;
  std::vector<int32_t> numbers;
  for (uint64_t axis = 0; axis < list->axes; ++axis) {
    const auto begin = list->numbers.begin() + static_cast<int64_t>(axis * ofAxis + first);
    numbers.insert(numbers.end(), begin, begin + static_cast<int64_t>(tokens));
  }
  return {std::move(numbers), list->axes};
}

}  // namespace

MultiRoPE rotationOf(const AppendAndAttend& step, uint64_t first, uint64_t tokens, uint64_t position) {
  const RotaryStep& rotary = *step.rotary;
  MultiRoPE rotation{.queries = step.queries,
                     .keys = step.keys,
                     .positions = RotaryPositions(position),
                     .offsets = rotary.offsets,
                     .rotary = rotary.embedding};
  if (rotary.positions) rotation.positions = *rotary.positions;
  if (tokens == step.keys.resolved().totalTokens()) return rotation;
  rotation.queries = runsOf(step.queries, first, tokens, 1);
  rotation.keys = runsOf(step.keys, first, tokens, 1);
  if (rotary.positions) rotation.positions = positionsFrom(*rotary.positions, first, tokens);
  return rotation;
}

void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary) {
  const auto* positions = rotary.positions ? std::get_if<Tensor>(&rotary.positions->source) : nullptr;
  const auto* offsets = rotary.offsets ? std::get_if<Tensor>(&*rotary.offsets) : nullptr;
  if (positions) sources.push_back({"positions", positions->range()});
  if (offsets) sources.push_back({"offsets", offsets->range()});
}

}  // namespace mnk
