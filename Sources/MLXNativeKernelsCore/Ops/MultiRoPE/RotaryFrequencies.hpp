// The numbers behind a RotaryEmbedding, in double: how far each pair turns, on which axis, and how far it is stretched.
#pragma once
#include <cstdint>
#include <vector>

#include "MLXNativeKernels/RotaryEmbedding.hpp"

namespace mnk {

bool hasSections(RotaryLayout layout);
uint64_t ropeDimOf(const RotaryEmbedding& rotary, uint64_t headDim);

// Pairs until the sections start again.
uint64_t pairsOfRound(const RotaryEmbedding& rotary);
// The axis whose position turns the pair. Where there are sections their sum is not 0.
uint32_t axisOf(const RotaryEmbedding& rotary, uint64_t pair);

// Radians from one position to the next, for each pair that turns.
std::vector<double> frequenciesOf(const RotaryEmbedding& rotary, uint64_t headDim);
// What both elements of a pair are multiplied by.
double magnitudeOf(const RotaryEmbedding& rotary);

}  // namespace mnk
