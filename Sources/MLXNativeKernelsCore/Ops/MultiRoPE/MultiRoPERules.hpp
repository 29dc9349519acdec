// The contract of MultiRoPE, but for its RotaryEmbedding, which has rules of its own.
#pragma once
#include <span>

#include "MLXNativeKernels/MultiRoPE.hpp"
#include "Support/Rule.hpp"

namespace mnk {

// The rules in the order they are checked.
std::span<const Rule<MultiRoPE>> multiRoPERules();
// Those of them about positions.
std::span<const Rule<MultiRoPE>> multiRoPEPositionRules();
// Those of what is read alone, for ops that put results elsewhere.
std::span<const Rule<MultiRoPE>> rotarySourceRules();

}  // namespace mnk
