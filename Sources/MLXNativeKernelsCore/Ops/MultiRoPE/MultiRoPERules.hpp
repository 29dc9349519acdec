// Rules of MultiRoPE. RotaryRules.hpp has those of its RotaryEmbedding.
#pragma once
#include <span>

#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Support/Errors.hpp"

namespace mnk {

// The rules in the order they are checked.
std::span<const Rule<MultiRoPE>> multiRoPERules();
// Those of them about positions.
std::span<const Rule<MultiRoPE>> multiRoPEPositionRules();
// The subset for sources only, for ops that store results elsewhere.
std::span<const Rule<MultiRoPE>> rotarySourceRules();

}  // namespace mnk
