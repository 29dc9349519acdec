// A case on a device, and the check of what became of its operands, which have the names of makeOp.
#pragma once
#include <vector>

#include "Ops/Common/OpRun.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"
#include "Ops/MultiRoPE/MultiRoPEReference.hpp"

namespace mnk::test {

using MultiRoPERun = OpRun<MultiRoPECase>;

// Numbers around 1 of both signs, and any bit pattern now and then.
std::vector<std::byte> ropeElements(Seeded& random, DType dtype, uint64_t count);
// Numbers that no arithmetic by 1 and 0 can change: finite, and not zero, whose sign a sum may lose.
std::vector<std::byte> plainRopeElements(Seeded& random, DType dtype, uint64_t count);
void fill(MultiRoPERun& run, const MultiRoPECase& rope, Seeded& random);

// The results of an op that broke no rule are those of the reference, which are returned.
MultiRoPEOutcome expectRotated(const MultiRoPE& op, const OperandMemory& memory);
void expectOutcome(const MultiRoPERun& run);

}  // namespace mnk::test
