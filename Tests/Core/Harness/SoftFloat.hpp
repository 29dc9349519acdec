// Floating-point formats as bit patterns, read and rounded only with integer arithmetic.
#pragma once
#include <cstdint>

#include "MLXNativeKernels/DType.hpp"

namespace mnk::test {

// The value of an f32, f16 or bf16; exact, because double represents them all.
double valueOf(DType dtype, uint64_t bits);
// The nearest value of the dtype, ties to even; NaN gives a quiet NaN.
uint64_t nearestBits(DType dtype, double value);
bool isNaN(DType dtype, uint64_t bits);

}  // namespace mnk::test
