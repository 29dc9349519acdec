// What MultiRoPE reads and writes, for its rules and its plan.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Generated/MultiRoPE.hpp"

namespace mnk {

// Queries or keys, where they come from and where they go.
struct RotaryOperand {
  std::string_view name;
  std::string_view rotatedName;
  const HeadsView& from;
  const HeadsView& into;

  // Whether results are written in place.
  bool isInPlace() const;
  // Whether one dispatch can rotate both.
  bool isLike(const RotaryOperand& other) const;
};
std::vector<RotaryOperand> operandsOf(const MultiRoPE& op);

struct NamedView {
  std::string_view name;
  const HeadsView& view;
};
// All views of the op; results come after sources.
std::vector<NamedView> viewsOf(const MultiRoPE& op);

// Null where the numbers come from elsewhere.
const RotaryPositions::List* positionList(const MultiRoPE& op);
const Tensor* positionTensor(const MultiRoPE& op);
const std::vector<int32_t>* offsetList(const MultiRoPE& op);
const Tensor* offsetTensor(const MultiRoPE& op);
// Whether all that the rotation depends on is known in advance.
bool hasFixedPositions(const MultiRoPE& op);
// The number of axes of positions with a valid shape.
uint64_t axisCount(const MultiRoPE& op);
// Whether a list has different positions on two axes.
bool axesDiffer(const MultiRoPE& op);
// How many numbers a list or a tensor of positions has on each axis.
uint64_t positionsOfAxis(const MultiRoPE& op);

// Two operands that overlap, at least one of which is written. Results in place do not count.
std::optional<std::pair<std::string_view, std::string_view>> firstOverlap(const MultiRoPE& op);

}  // namespace mnk
