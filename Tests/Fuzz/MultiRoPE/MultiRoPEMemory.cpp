#include <bitset>

#include "MultiRoPECall.hpp"

namespace mnk::fuzz {

namespace {

using Spec = MultiRoPESpec;

// The bytes of an operand in its region.
struct Footprint {
  uint32_t region = 0;
  std::bitset<Arena::kRegionBytes> touched = {};

  void touch(uint64_t begin, uint64_t bytes) {
    for (uint64_t byte = begin; byte < begin + bytes; ++byte) touched.set(byte);
  }
  bool meets(const Footprint& other) const { return region == other.region && (touched & other.touched).any(); }
};

Footprint footprintOf(const TensorSpec& tensor) {
  Footprint footprint{.region = tensor.region};
  footprint.touch(tensor.offset, tensor.bytes());
  return footprint;
}

Footprint footprintOf(const HeadsSpec& heads) {
  const mnk_heads_view places = *placesOf(heads);
  const uint64_t size = heads.tensor->elementBytes();
  Footprint footprint{.region = heads.tensor->region};
  if (places.tokens == 0) return footprint;
  for (uint64_t sequence = 0; sequence < places.sequences; ++sequence) {
    for (uint64_t token = 0; token < places.tokens; ++token) {
      for (uint64_t head = 0; head < places.heads; ++head) {
        const uint64_t element =
            places.offset + sequence * places.sequence_stride + token * places.token_stride + head * places.head_stride;
        footprint.touch(heads.tensor->offset + element * size, places.head_dim * size);
      }
    }
  }
  return footprint;
}

}  // namespace

bool isInPlace(const RotatedSpec& rotated) {
  if (rotated.from == rotated.into) return true;
  const TensorSpec &from = *rotated.from->tensor, &into = *rotated.into->tensor;
  const mnk_heads_view a = *placesOf(*rotated.from), b = *placesOf(*rotated.into);
  const uint64_t size = from.elementBytes();
  return from.dtype == into.dtype && from.region == into.region &&
         from.offset + a.offset * size == into.offset + b.offset * size &&
         (a.sequences == 1 || a.sequence_stride == b.sequence_stride) &&
         (a.tokens == 1 || a.token_stride == b.token_stride) && (a.heads == 1 || a.head_stride == b.head_stride);
}

// Byte for byte: for as few vectors as a region holds the answer must be exact.
bool sharesMemory(const Spec& spec) {
  struct Operand {
    Footprint from, into;
    bool isInPlace;
  };
  std::vector<Operand> operands;
  for (const RotatedSpec& rotated : rotatedOf(spec)) {
    operands.push_back({footprintOf(*rotated.from), footprintOf(*rotated.into), isInPlace(rotated)});
  }
  for (const Operand& operand : operands) {
    for (const NumberSpec* numbers : {&spec.positions, &spec.offsets}) {
      if (numbers->tensor && operand.into.meets(footprintOf(*numbers->tensor))) return true;
    }
    for (const Operand& other : operands) {
      const bool isOwn = &other == &operand;
      if (!(isOwn && operand.isInPlace) && operand.into.meets(other.from)) return true;
      if (!isOwn && operand.into.meets(other.into)) return true;
    }
  }
  return false;
}

}  // namespace mnk::fuzz
