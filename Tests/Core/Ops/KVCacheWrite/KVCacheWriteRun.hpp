// A case on a device, and the check of what became of its operands, which have the names of makeOp.
#pragma once
#include "Ops/Common/OpRun.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

using KVCacheWriteRun = OpRun<KVCacheWriteCase>;

// The numbers of a case's rows, where they are tensors, by the operand's name; none for other operands.
std::vector<std::byte> rowNumbers(const KVCacheWriteCase& write, std::string_view name);
void fill(KVCacheWriteRun& run, const KVCacheWriteCase& write, Seeded& random);

// The cache of a call that broke no rule holds what the reference says. Returns what that is.
KVCacheWriteOutcome expectWritten(const KVCacheWrite& op, const OperandMemory& memory);
void expectOutcome(const KVCacheWriteRun& run);

}  // namespace mnk::test
