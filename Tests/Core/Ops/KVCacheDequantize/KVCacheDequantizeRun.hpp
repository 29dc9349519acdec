// One call of KVCacheDequantize as a name and a few numbers, on a cache whose bytes and scales are made up, and the
// check of what is read.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/Common/OperandMemory.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

namespace mnk::test {

enum class KVReads { both, keys, values };

struct KVCacheDequantizeCase {
  std::string name;
  KVCodec keyCodec = {};
  KVCodec valueCodec = {};
  uint64_t headDim = 64;
  uint64_t valueHeadDim = 64;
  uint64_t heads = 3;
  uint64_t sequences = 0;
  uint64_t sequence = 0;
  uint64_t capacity = 5;
  KVLayout cacheLayout = KVLayout::headMajor;
  KVWrap wrap = KVWrap::ring;
  uint32_t pinned = 0;
  uint64_t position = 3;
  uint64_t tokens = 4;
  bool isRank2 = false;
  uint64_t targetSequences = 0;  // that share the tokens; 0: the target has no axis for them
  KVLayout layout = KVLayout::tokenMajor;
  DType dtype = DType::f32;
  KVDomain domain = KVDomain::original;
  KVReads reads = KVReads::both;
  bool hasParameters = false;           // means, and channel scales of keys
  std::optional<DType> denseKeys = {};  // of a cache whose keys, or values, are stored as elements
  std::optional<DType> denseValues = {};
  uint64_t codeShift = 0;
  uint64_t targetShift = 0;
};

// Valid cases of every kind.
KVCacheDequantizeCase drawnDequantize(Seeded& random);

// The op of a case on tensors of the caller's making.
KVCacheDequantize makeOp(const KVCacheDequantizeCase& read, const MakeNamedTensor& makeTensor);

using WriteTensor = std::function<void(const Tensor& tensor, std::span<const std::byte> bytes)>;
// Codes and scales of no real vectors, and means and channel scales, for an op that breaks no rule.
void fillInputs(const KVCacheDequantize& op, Seeded& random, const WriteTensor& write);
// What was read is what the reference says.
void expectDequantized(const KVCacheDequantize& op, const OperandMemory& memory);

// Runs each case on every device and checks it against the reference.
void runOnEveryDevice(const std::vector<KVCacheDequantizeCase>& cases);

}  // namespace mnk::test
