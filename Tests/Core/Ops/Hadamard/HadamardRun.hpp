// What Hadamard must do, by the definition of the transform, and how far from it results may be; and its cases.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/Common/OpRun.hpp"

namespace mnk::test {

// The results of a call that broke no rule are those of the definition.
void expectTurned(const Hadamard& op, const OperandMemory& memory);

// One call as a few numbers.
struct HadamardCase {
  std::string name = {};
  uint64_t length = 32;
  uint64_t vectors = 3;
  DType from = DType::f32;
  std::optional<DType> into = {};  // in place without
  std::optional<KVCodec::Name> signs = {};
  bool isInverse = false;
  uint64_t shift = 0;  // elements past an aligned address
};
using HadamardRun = OpRun<HadamardCase>;

// On tensors of the caller's making: "from", and "into" if there is one.
Hadamard makeOp(const HadamardCase& turn, const MakeNamedTensor& makeTensor);
void fill(HadamardRun& run, const HadamardCase& turn, Seeded& random);
void expectOutcome(const HadamardRun& run);

}  // namespace mnk::test
