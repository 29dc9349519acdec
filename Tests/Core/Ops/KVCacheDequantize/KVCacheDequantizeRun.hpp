// One call of KVCacheDequantize as a name and a few numbers, on a cache whose bytes and scales are made up, and the
// check of what is read.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "Ops/Common/OpRun.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

namespace mnk::test {

enum class KVReads { both, keys, values };

// Reads what a call of KVCacheQuantize would have stored, into tensors like those that it would have come from.
struct KVCacheDequantizeCase {
  std::string name;
  KVCacheQuantizeCase stored;
  KVDomain domain = KVDomain::original;
  KVReads reads = KVReads::both;
};

// Valid cases of every kind.
KVCacheDequantizeCase drawnDequantize(Seeded& random);

// The op of a case on tensors of the caller's making: "keys" and "values" are the targets.
KVCacheDequantize makeOp(const KVCacheDequantizeCase& read, const MakeNamedTensor& makeTensor);

using KVCacheDequantizeRun = OpRun<KVCacheDequantizeCase>;
using WriteTensor = std::function<void(const Tensor& tensor, std::span<const std::byte> bytes)>;
// Codes and scales of no real vectors, and means and channel scales, for an op that breaks no rule.
void fillInputs(const KVCacheDequantize& op, Seeded& random, const WriteTensor& write);
void fill(KVCacheDequantizeRun& run, const KVCacheDequantizeCase& read, Seeded& random);
// What was read is what the reference says.
void expectDequantized(const KVCacheDequantize& op, const OperandMemory& memory);
void expectOutcome(const KVCacheDequantizeRun& run);

}  // namespace mnk::test
