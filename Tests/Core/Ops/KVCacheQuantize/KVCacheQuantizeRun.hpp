// A case on a device: operands with known contents between guards, and the check of what became of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "Harness/Seeded.hpp"
#include "Ops/Common/GuardedOperands.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

// An op that writes to the same slots.
KVCacheWrite placesOf(const KVCacheQuantize& op);

// Vectors of this length and of many sizes, a few of them without a direction or without a value.
std::vector<std::byte> sourceVectors(Seeded& random, DType dtype, uint64_t count, uint64_t headDim);
// Means, or channel scales.
std::vector<float> quantizeFactors(Seeded& random, uint64_t count, bool areScales);

// The cache, the counts and the probe of a call that broke no rule hold what the reference says.
void expectStored(const KVCacheQuantize& op, const OperandMemory& memory);

class KVCacheQuantizeRun : public GuardedOperands {
 public:
  KVCacheQuantizeRun(const std::shared_ptr<Device>& device, const KVCacheQuantizeCase& quantize, Seeded& random);

  const KVCacheQuantize& op() const { return op_; }
  // The cache holds what the reference says; everything else is as it was.
  void expectStored() const;

 private:
  std::string name_;
  KVCacheQuantize op_;
};

// Encodes each case on every device, many to a submission, and checks each.
void runOnEveryDevice(const std::vector<KVCacheQuantizeCase>& cases);

}  // namespace mnk::test
