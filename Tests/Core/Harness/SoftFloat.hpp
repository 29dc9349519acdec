// Floating-point formats as bit patterns, read and rounded only with integer arithmetic.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

// The value of an f32, f16 or bf16; exact, because double represents them all.
double valueOf(DType dtype, uint64_t bits);
// The nearest value of the dtype, ties to even; NaN gives a quiet NaN.
uint64_t nearestBits(DType dtype, double value);
bool isNaN(DType dtype, uint64_t bits);

// Elements of any dtype, as tensors hold them.
uint64_t bitsAt(std::span<const std::byte> bytes, DType dtype, uint64_t element);
std::vector<std::byte> bytesOfBits(DType dtype, std::span<const uint64_t> bits);
std::vector<std::byte> bytesOfValues(DType dtype, std::span<const double> values);
std::vector<double> valuesOf(DType dtype, std::span<const std::byte> bytes);

}  // namespace mnk::test
