// What MultiRoPE must do, pair after pair as its headers define it, in plain loops and extended precision.
#pragma once
#include <cstdint>
#include <vector>

#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/Common/OperandMemory.hpp"

namespace mnk::test {

// One element of a result.
struct TurnedElement {
  uint64_t sequence = 0;
  uint64_t token = 0;
  uint64_t head = 0;
  uint64_t element = 0;
  uint64_t from = 0;  // its place in the tensor that it is made of
  uint64_t into = 0;  // and in the one that it goes to

  bool isTurned = false;
  uint64_t bits = 0;  // of an element that is kept, in the result's dtype

  double value = 0;  // of an element that is turned; not finite where one of its pair is not
  double size = 0;   // of its pair: (|x| + |y|) times the magnitude
  // By how much its angle may be wrong. Frequencies are powers by repeated multiplication in double, so that of pair p
  // may be wrong by (2p + 8) 2^-53 of itself; where YaRN subtracts, by more.
  double uncertainty = 0;
};

struct MultiRoPEOutcome {
  std::vector<TurnedElement> queries;
  std::vector<TurnedElement> keys;
};

MultiRoPEOutcome reference(const MultiRoPE& op, const ReadTensor& before);

// How far a pair turns from one position to the next, in radians.
long double referenceFrequency(const RotaryEmbedding& rotary, uint64_t headDim, uint64_t pair);

}  // namespace mnk::test
