// What Hadamard must do, by the definition of the transform, and how far from it results may be.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/Common/OperandMemory.hpp"

namespace mnk::test {

// Vectors of this length, turned.
std::vector<double> turnedValues(std::span<const double> values, uint64_t length, std::optional<KVCodec::Name> signs,
                                 bool isInverse);

// Of squares, relative.
double errorOf(const std::vector<double>& got, const std::vector<double>& expected);
double allowedHadamardError(DType dtype);

// The results of a call that broke no rule are those of the definition.
void expectTurned(const Hadamard& op, const OperandMemory& memory);

}  // namespace mnk::test
