// A case on a device: operands with known contents between guards, and the check of what became of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "Harness/Seeded.hpp"
#include "Ops/Common/GuardedOperands.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

// The cache of a call that broke no rule holds what the reference says. Returns what that is.
KVCacheWriteOutcome expectWritten(const KVCacheWrite& op, const OperandMemory& memory);
// Indices of rows, wherever they are.
std::vector<uint32_t> indicesOf(const RowIndices& indices, const OperandMemory& memory);

// Sets the rows of a case, where they are tensors.
void setRows(GuardedOperands& operands, const KVCacheWriteCase& write);

// Operands have the names of makeOp.
class KVCacheWriteRun : public GuardedOperands {
 public:
  KVCacheWriteRun(const std::shared_ptr<Device>& device, const KVCacheWriteCase& write, Seeded& random);

  const KVCacheWrite& op() const { return op_; }
  // The cache holds what the reference says; everything else is as it was.
  void expectWritten() const;

 private:
  std::string name_;
  KVCacheWrite op_;
};

// Encodes an op by itself on a device, and waits for it.
void run(const std::shared_ptr<Device>& device, const KVCacheWrite& op);
// Encodes each case on every device, many to a submission, and checks each.
void runOnEveryDevice(const std::vector<KVCacheWriteCase>& cases);

}  // namespace mnk::test
