#include "CacheRotation.hpp"

#include <fmt/ranges.h>

#include <cmath>

#include "Harness/SoftFloat.hpp"
#include "Numbers.hpp"
#include "Ops/MultiRoPE/MultiRoPEReference.hpp"

namespace mnk::fuzz {

int64_t CacheRotation::position(uint64_t row, uint64_t entry, uint64_t rowOfEntry, uint64_t rowsOfEntry, uint64_t next,
                                uint64_t runs) const {
  const int64_t offset = offsets.empty() ? 0 : offsets[entry];
  if (!positions.empty()) return offset + positions[row];
  if (first) return offset + *first + static_cast<int64_t>(runs * rowsOfEntry + rowOfEntry);
  return offset + static_cast<int64_t>(next);
}

void CacheRotation::rotate(float* row, uint64_t heads, uint64_t headDim, int64_t position, mnk_dtype dtype) const {
  const uint64_t ropeDim = embedding.has_rope_dim ? embedding.rope_dim : headDim;
  const bool isInterleaved = embedding.layout == MNK_INTERLEAVED_PAIRS;
  const RotaryEmbedding rotary{.base = embedding.base, .ropeDim = ropeDim};
  for (uint64_t pair = 0; pair < ropeDim / 2; ++pair) {
    const long double turned = test::referenceFrequency(rotary, headDim, pair) * static_cast<long double>(position);
    const auto c = static_cast<double>(std::cos(turned));
    const auto s = static_cast<double>(embedding.is_inverse ? -std::sin(turned) : std::sin(turned));
    for (float* head = row; head != row + heads * headDim; head += headDim) {
      float& x = head[isInterleaved ? 2 * pair : pair];
      float& y = head[isInterleaved ? 2 * pair + 1 : pair + ropeDim / 2];
      const double before = x;
      x = rounded(static_cast<float>(before * c - y * s), dtype);
      y = rounded(static_cast<float>(before * s + y * c), dtype);
    }
  }
}

std::string CacheRotation::text() const {
  return fmt::format(
      "\n    rotary (size {}): layout {}, base {}, rope dim {}{}, first {}, positions [{}]{}, offsets [{}]", size,
      static_cast<uint32_t>(embedding.layout), embedding.base, embedding.rope_dim,
      embedding.is_inverse ? ", inverse" : "", first ? fmt::format("{}", *first) : "none", fmt::join(positions, ", "),
      positionsIn ? " in " + positionsIn->text() : "", fmt::join(offsets, ", "));
}

CacheRotation drawRotation(test::Seeded& random, uint64_t headDim, uint64_t rows, uint64_t entries, bool isEven) {
  CacheRotation rotation;
  rotation.embedding = {.size = sizeof rotation.embedding,
                        .layout = oneOf(random, {MNK_HALF_SPLIT, MNK_INTERLEAVED_PAIRS}),
                        .base = oneOf(random, {10000.0, 500000.0, 2.0}),
                        .has_rope_dim = coin(random, 1, 3),
                        .rope_dim = 2 * (1 + random.below(headDim / 2)),
                        .scale = 1,
                        .is_inverse = coin(random, 1, 6)};
  const auto number = [&] { return static_cast<int32_t>(random.below(1 << 21)) - (1 << 20); };
  switch (random.below(3)) {
    case 0:
      rotation.first = number();
      break;
    case 1:
      for (uint64_t row = 0; row < rows; ++row) rotation.positions.push_back(number());
      break;
    default:
      break;  // they follow the cache
  }
  for (uint64_t entry = 0; isEven && entry < entries && (entry != 0 || coin(random, 1, 4)); ++entry) {
    rotation.offsets.push_back(number());
  }
  if (rotation.offsets.size() != entries) rotation.offsets.clear();
  return rotation;
}

std::string mutate(CacheRotation& rotation, bool isEven, test::Seeded& random) {
  switch (random.below(7)) {
    case 0:
      rotation.size = oneOf<size_t>(random, {0, rotation.size - 1, 2 * rotation.size + 1});
      return "mnk_rotary_step has the wrong size";
    case 1:
      rotation.embedding.size += coin(random, 1, 2) ? 8 : -8;
      return "mnk_rotary_embedding has the wrong size";
    case 2:
      rotation.embedding.has_rope_dim = true;
      rotation.embedding.rope_dim = coin(random, 1, 2) ? 0 : rotation.embedding.rope_dim - 1;
      return "the rope dim is odd or zero";
    case 3:
      rotation.embedding.base = oneOf(random, {0.0, -1.0, std::nan(""), HUGE_VAL});
      return "the base is not a positive number";
    case 4:
      rotation.positions.clear();
      rotation.positionsIn.reset();
      rotation.first = oneOf(random, {INT64_MAX, INT64_MIN, int64_t{1} << 31, -(int64_t{1} << 31) - 1});
      return "a position is out of range";
    case 5:
      rotation.first.reset();
      rotation.positionsIn.reset();
      rotation.positions.resize(rotation.positions.size() + 97);
      return "positions do not match the tokens";
    default:
      rotation.offsets.resize(rotation.offsets.size() + 6);
      return isEven ? "offsets do not match the sequences"
                    : "offsets are given for sequences that differ in their rows";
  }
}

float rounded(float number, mnk_dtype dtype) {
  const auto to = static_cast<DType>(dtype);
  return static_cast<float>(test::valueOf(to, test::nearestBits(to, number)));
}

}  // namespace mnk::fuzz
