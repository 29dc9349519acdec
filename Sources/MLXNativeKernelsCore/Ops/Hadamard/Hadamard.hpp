// The contract of Hadamard.
#pragma once
#include <span>

#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Support/Errors.hpp"

namespace mnk {

std::span<const Rule<Hadamard>> hadamardRules();

// Whether results are written in place.
bool isInPlace(const Hadamard& op);
// Elements of a vector: the last axis. 0 for a tensor without axes.
uint64_t lengthOf(const Hadamard& op);

}  // namespace mnk
