// What ops that apply RoPE share: angles, operands, rules, and what their dispatches bind.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MLXNativeKernels/Generated/Rotary.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "Support/Errors.hpp"

namespace mnk {

// Frequencies, axes and magnitude of a RotaryEmbedding, computed in double.
bool hasSections(RotaryEmbedding::Layout layout);
uint64_t ropeDimOf(const RotaryEmbedding& rotary, uint64_t headDim);

// The number of pairs after which the sections repeat.
uint64_t pairsOfRound(const RotaryEmbedding& rotary);
// The axis whose position rotates the pair. If there are sections, their sum must not be 0.
uint32_t axisOf(const RotaryEmbedding& rotary, uint64_t pair);

// The rotation per position in radians, for each rotated pair.
std::vector<double> frequenciesOf(const RotaryEmbedding& rotary, uint64_t headDim);
// What both elements of a pair are multiplied by.
double magnitudeOf(const RotaryEmbedding& rotary);

// The contract of a RotaryEmbedding for vectors of a given length and positions on a given number of axes.
struct RotaryCheck {
  RotaryEmbedding rotary;
  uint64_t headDim;         // even, not 0
  uint64_t axes;            // of positions; a single axis serves all sections
  bool axesDiffer = false;  // whether positions of two axes are known to differ
};

// The rules in the order they are checked.
std::span<const Rule<RotaryCheck>> rotaryRules();

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

// The rules in the order they are checked, without those of its RotaryEmbedding.
std::span<const Rule<MultiRoPE>> multiRoPERules();
// Those of them about positions.
std::span<const Rule<MultiRoPE>> multiRoPEPositionRules();
// The subset for sources only, for ops that store results elsewhere.
std::span<const Rule<MultiRoPE>> rotarySourceRules();

inline constexpr uint64_t kVectorPairs = 4;  // pairs per thread if vectors are aligned to four elements

// Heads that one thread rotates with the angles that it computes once.
uint64_t rotatedHeadsPerGroup(uint64_t tokens);

// Whether the head dim and the rotated part of it have a multiple of four pairs.
bool hasPairsInFours(const MultiRoPE& op);

// Where the kernels find queries, or keys, and where these go.
MultiRoPEOperand rotaryOperand(const HeadsView::Strides& from, const HeadsView::Strides& into, uint64_t headsPerGroup);
// All but the operands.
MultiRoPEParams rotaryParams(const MultiRoPE& op, uint64_t pairsPerUnit, uint64_t headsPerGroup);
std::vector<FunctionConstant> rotaryConstants(const MultiRoPE& op, bool isVectorized);

struct RotaryIndices {
  uint32_t frequencies;
  uint32_t positions;
  uint32_t offsets;
};
// Binds what angles are made of. Positions in a tensor are those from `firstToken` on, on each axis.
void bindRotary(Dispatch& dispatch, const MultiRoPE& op, const RotaryIndices& indices, uint64_t firstToken = 0);

}  // namespace mnk
