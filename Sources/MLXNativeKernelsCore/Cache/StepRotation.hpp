// The RoPE rotation of a cache step.
#pragma once
#include <vector>

#include "Cache/ResolvedStep.hpp"

namespace mnk {

// Sets the rotation of a part of a step that rotates. Positions after prefixes count their tokens. If canRotateAtOnce
// is false, that of the whole step lacks its positions and is only good for checking rules.
Result<void> setRotation(MultiRoPE& rotation, const ResolvedStep& step, const StepPart& part,
                         uint64_t prefixTokens = 0);
// The positions of that rotation.
RotaryPositions rotationPositions(const ResolvedStep& step, const StepPart& part, uint64_t prefixTokens = 0);
// Whether one dispatch can take the positions of all tokens.
bool canRotateAtOnce(const ResolvedStep& step);

// Adds positions and offsets that lie in tensors.
void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary);

}  // namespace mnk
