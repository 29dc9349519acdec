// The contract of a RotaryEmbedding for vectors of a given length and positions on a given number of axes.
#pragma once
#include <cstdint>
#include <span>

#include "MLXNativeKernels/Generated/Rotary.hpp"
#include "Support/Errors.hpp"

namespace mnk {

struct RotaryCheck {
  RotaryEmbedding rotary;
  uint64_t headDim;         // even, not 0
  uint64_t axes;            // of positions; a single axis serves all sections
  bool axesDiffer = false;  // whether positions of two axes are known to differ
};

// The rules in the order they are checked.
std::span<const Rule<RotaryCheck>> rotaryRules();

}  // namespace mnk
