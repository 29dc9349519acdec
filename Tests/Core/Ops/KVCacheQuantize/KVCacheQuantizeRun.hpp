// A case on a device, and the check of what became of its operands, which have the names of makeOp.
#pragma once
#include <vector>

#include "Ops/Common/OpRun.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

using KVCacheQuantizeRun = OpRun<KVCacheQuantizeCase>;

// An op that writes to the same slots.
KVCacheWrite placesOf(const KVCacheQuantize& op);

// Vectors of this length and of many sizes, a few of them without a direction or without a value.
std::vector<std::byte> sourceVectors(Seeded& random, DType dtype, uint64_t count, uint64_t headDim);
// Means, or channel scales.
std::vector<float> quantizeFactors(Seeded& random, uint64_t count, bool areScales);
void fill(KVCacheQuantizeRun& run, const KVCacheQuantizeCase& quantize, Seeded& random);

// The cache, the counts and the probe of a call that broke no rule hold what the reference says.
void expectStored(const KVCacheQuantize& op, const OperandMemory& memory);
void expectOutcome(const KVCacheQuantizeRun& run);

}  // namespace mnk::test
