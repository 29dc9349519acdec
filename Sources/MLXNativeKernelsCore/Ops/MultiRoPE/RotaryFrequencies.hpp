// Frequencies, axes and magnitude of a RotaryEmbedding, computed in double.
#pragma once
#include <cstdint>
#include <vector>

#include "MLXNativeKernels/Generated/Rotary.hpp"

namespace mnk {

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

}  // namespace mnk
