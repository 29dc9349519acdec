// One rotation as a name and a few numbers, and what it must do: pair after pair, as its headers define it. Cases that
// are drawn run on every device, through the plan and in the fuzzer.
#pragma once
#include <string>
#include <vector>

#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/Common/OpRun.hpp"

namespace mnk::test {

// Where queries and keys lie.
enum class RopeMemory {
  tokenMajor,  // tensors of their own, read by shape
  headMajor,
  oneToken,        // [heads, headDim]
  columns,         // both in one [tokens, width] tensor, with unrelated columns before, between and after
  tokenMajorGaps,  // tensors of their own with strides that leave gaps
  headMajorGaps,
  sequencesInside,  // the sequences of a token side by side
};

enum class RopePlacing {
  inPlace,
  inPlaceByName,  // the results are named, and are what is rotated
  apart,
  beside,    // in further columns of the same tensor
  keysStay,  // queries apart, keys in place
  queriesStay,
};

enum class RopeNumbers { none, first, list, i32, u32 };

struct MultiRoPECase {
  std::string name;
  DType from = DType::f32;
  DType into = DType::f32;  // as `from` where something stays in place
  RopePlacing placing = RopePlacing::inPlace;
  RopeMemory fromMemory = RopeMemory::tokenMajor;
  RopeMemory intoMemory = RopeMemory::tokenMajor;  // of results that are apart
  uint64_t fromGap = 3;                            // elements, in memory that has gaps, and unrelated columns
  uint64_t intoGap = 3;
  uint64_t fromShift = 0;  // elements past an aligned address
  uint64_t intoShift = 0;

  uint64_t sequences = 0;  // 0: tensors have no axis for them
  uint64_t tokens = 3;
  uint64_t heads = 2;
  uint64_t keyHeads = 1;  // 0: queries alone
  uint64_t headDim = 16;
  RotaryEmbedding rotary = {};

  RopeNumbers positions = RopeNumbers::first;
  uint64_t axes = 1;
  int64_t firstPosition = 5;
  uint64_t spread = 211;  // listed positions are less than this apart
  RopeNumbers offsets = RopeNumbers::none;
  int64_t firstOffset = 3;  // of the first sequence
  int64_t offsetStep = 7;   // from one to the next

  uint64_t totalTokens() const { return (sequences == 0 ? 1 : sequences) * tokens; }
};

// The numbers of a case that lists them: positions axis after axis, offsets by sequence.
std::vector<int64_t> positionsOf(const MultiRoPECase& rope);
std::vector<int64_t> offsetsOf(const MultiRoPECase& rope);

namespace rope {

inline constexpr RotaryEmbedding::Layout kLayouts[] = {
    RotaryEmbedding::Layout::interleavedPairs, RotaryEmbedding::Layout::halfSplit, RotaryEmbedding::Layout::mrope,
    RotaryEmbedding::Layout::imrope, RotaryEmbedding::Layout::vision};
inline constexpr RotaryEmbedding::Pairing kPairings[] = {RotaryEmbedding::Pairing::halfOfRopeDim,
                                                         RotaryEmbedding::Pairing::halfOfHeadDim,
                                                         RotaryEmbedding::Pairing::neighbors};
inline constexpr RotaryEmbedding::OtherAxis kOtherAxes[] = {RotaryEmbedding::OtherAxis::axis0,
                                                            RotaryEmbedding::OtherAxis::axis3};

bool isSectioned(RotaryEmbedding::Layout layout);

// Sections that share out the pairs unequally, all of them used where there are enough pairs.
RotaryEmbedding rotaryOf(RotaryEmbedding::Layout layout, uint64_t pairs);
// A case with another position on each axis, where the layout has them.
MultiRoPECase rotated(std::string name, uint64_t headDim, RotaryEmbedding rotary);

// Valid cases of every kind, with at most a few thousand elements.
MultiRoPECase drawnCase(Seeded& random);
inline constexpr uint64_t kDraws = 3000;  // which together reach every kernel
std::vector<MultiRoPECase> drawnCases(uint64_t count);
std::vector<MultiRoPECase> edgeCases();  // what a draw would rarely hit
int64_t drawPosition(Seeded& random);    // any that i32 holds, often one of the ends

}  // namespace rope

// The op of a case on tensors of the caller's making: "queries", "keys", "rotated queries", "rotated keys", "positions"
// and "offsets". Where queries and keys share a tensor it is asked for once, under the name of the queries.
MultiRoPE makeOp(const MultiRoPECase& rope, const MakeNamedTensor& makeTensor);

// One element of a result.
struct TurnedElement {
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

// Element after element of each head, of each token.
struct MultiRoPEOutcome {
  std::vector<TurnedElement> queries;
  std::vector<TurnedElement> keys;
};

MultiRoPEOutcome reference(const MultiRoPE& op, const ReadTensor& before);

// How far a pair turns from one position to the next, in radians.
long double referenceFrequency(const RotaryEmbedding& rotary, uint64_t headDim, uint64_t pair);

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
