// A MultiRoPE in numbers, made by the generator and checked by the contract beside it.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "MLXNativeKernels/MultiRoPE.hpp"
#include "OpCase.hpp"

namespace mnk::fuzz {

// Vectors as they are passed. Without a tensor they are left out.
struct HeadsSpec {
  std::optional<TensorSpec> tensor = {};
  mnk_heads_view view{};  // everything but the tensor
};

// Positions or offsets as they are passed: a list, a tensor with these contents, or both, of which the tensor counts.
struct NumberSpec {
  std::vector<int32_t> list = {};  // a u32 tensor has the same bits
  bool hasList = false;
  std::optional<uint64_t> listCount = {};  // in place of the list's own
  uint32_t listAxes = 0;
  std::optional<TensorSpec> tensor = {};

  uint64_t count() const { return listCount.value_or(list.size()); }
};

struct MultiRoPESpec {
  bool isNull = false;
  HeadsSpec queries, keys, rotatedQueries, rotatedKeys;
  NumberSpec positions, offsets;
  std::vector<float> factors = {};
  bool hasFactors = false;
  std::optional<uint64_t> factorCount = {};
  // What is not said above: the size, the first position and the embedding.
  mnk_multi_rope numbers{};
  // What follows the struct, for callers who claim that theirs is longer.
  uint8_t tail = 0;
  // Whether every position is 0, so that the bits of the results are known.
  bool isStill = false;

  std::array<HeadsSpec*, 4> views() { return {&queries, &rotatedQueries, &keys, &rotatedKeys}; }
  std::string text() const;
};

// Valid numbers, with regions for every operand.
MultiRoPESpec validRope(Seeded& random, Bank bank);
// The same after one to three mutations; some leave it valid.
MultiRoPESpec mutatedRope(Seeded& random, Bank bank);

// The contract of MultiRoPE.hpp, RotaryEmbedding.hpp, HeadsView.hpp and mnk_multi_rope.h restated over plain numbers:
// what the error must say, or nothing.
std::string refusalOf(const MultiRoPESpec& spec);
// Whether it leaves the answer open, because numbers are so near a limit that rounding decides.
bool isOpen(const MultiRoPESpec& spec);

// Where the vectors lie, with strides whatever the view had. Nothing where its tensor has another rank.
std::optional<mnk_heads_view> placesOf(const HeadsSpec& heads);
// What is rotated, and where it goes.
struct RotatedSpec {
  const HeadsSpec* from;
  const HeadsSpec* into;
};
std::vector<RotatedSpec> rotatedOf(const MultiRoPESpec& spec);
// Whether results take the place of what they are made of. Views must have places.
bool isInPlace(const RotatedSpec& rotated);

// The part about memory: views must lie in their tensors, and those of results must keep their vectors apart.
bool sharesMemory(const MultiRoPESpec& spec);

// The part about the embedding, for vectors of an even number of elements.
RotaryEmbedding embeddingOf(const MultiRoPESpec& spec);
std::string refusalOfRotary(const MultiRoPESpec& spec, uint64_t headDim, uint64_t axes);
bool isRotaryOpen(const MultiRoPESpec& spec, uint64_t headDim);
// The highest axis that a pair is turned by. The sections must be valid.
uint64_t highestAxisOf(const mnk_rotary_embedding& rotary, uint64_t ropeDim);

std::unique_ptr<OpCall> makeMultiRoPECall(Arena& arena, Seeded& random, Wish wish, Bank bank);
Target multiRoPETarget();

}  // namespace mnk::fuzz
