#include "CacheRotation.hpp"

#include <algorithm>
#include <cmath>

#include "Arena.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"

namespace mnk::fuzz {

std::vector<int64_t> CacheRotation::turns(const std::vector<StepEntry>& entries,
                                          const std::vector<uint64_t>& inCache) const {
  std::vector<int64_t> all;
  for (size_t i = 0; i < entries.size(); ++i) {
    for (uint64_t row = 0; row < entries[i].rows; ++row) {
      auto position = static_cast<int64_t>(inCache[all.size()]);
      if (first) position = *first + static_cast<int64_t>(row);
      if (!positions.empty()) position = positions[all.size()];
      all.push_back(position + (offsets.empty() ? 0 : offsets[i]));
    }
  }
  return all;
}

void CacheRotation::rotate(float* row, uint64_t heads, uint64_t headDim, int64_t position, mnk_dtype dtype) const {
  const uint64_t ropeDim = embedding.rope_dim == 0 ? headDim : embedding.rope_dim;
  const bool isInterleaved = embedding.layout == MNK_ROTARY_EMBEDDING_LAYOUT_INTERLEAVED_PAIRS;
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

NextSpec drawNext(const std::vector<StepEntry>& entries, bool hasRowCounts, bool hasAxis, const CacheModel& model,
                  test::Seeded& random) {
  const auto sequences = static_cast<uint32_t>(model.sequences().size());
  NextSpec next{.hasRowCounts = hasRowCounts, .entries = entries};
  const uint64_t draw = hasAxis ? 9 : random.below(10);
  const bool isOfOne = std::all_of(entries.begin(), entries.end(),
                                   [&](const auto& entry) { return entry.sequence == entries[0].sequence; });
  if (draw < 2) {  // row by row
    next.hasRowCounts = false;
    next.entries.clear();
    for (const auto& [sequence, rows] : entries) next.entries.insert(next.entries.end(), rows, {sequence, 1});
  } else if (draw < 4 && hasRowCounts) {  // a sequence without rows
    next.entries.push_back({static_cast<uint32_t>(random.below(sequences)), 0});
  } else if (draw < 6 && isOfOne) {  // all rows in one
    next.entries = {{entries[0].sequence, rowsOf(entries)}};
  } else if (draw == 6) {  // rows of another sequence, which may never get them
    next.entries[random.below(entries.size())].sequence = static_cast<uint32_t>(random.below(sequences));
  } else {  // in another order, mostly where only the positions of a later run tell
    std::vector<StepEntry> swapped = entries;
    std::swap(swapped[random.below(entries.size())], swapped[random.below(entries.size())]);
    if (draw == 7 || model.nextPositions(swapped) == model.nextPositions(entries)) next.entries = swapped;
  }
  for (const auto& [sequence, rows] : next.entries) {
    next.sequences.push_back(sequence);
    if (next.hasRowCounts) next.rowCounts.push_back(static_cast<uint32_t>(rows));
  }
  if (sequences != 1 || next.entries.size() != 1) return next;
  next.hasSequences = coin(random, 1, 2);
  if (coin(random, 1, 2)) next.sequences[0] = MNK_ONLY_SEQUENCE;
  return next;
}

CacheRotation drawRotation(test::Seeded& random, uint64_t headDim, uint64_t rows, uint64_t entries, bool isEven) {
  CacheRotation rotation;
  rotation.embedding = {
      .layout = oneOf(random, {MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, MNK_ROTARY_EMBEDDING_LAYOUT_INTERLEAVED_PAIRS}),
      .base = oneOf(random, {10000.0, 500000.0, 2.0}),
      .rope_dim = coin(random, 1, 3) ? 2 * (1 + random.below(headDim / 2)) : 0,
      .scale = 1,
      .is_inverse = coin(random, 1, 6)};
  const auto number = [&] { return static_cast<int32_t>(random.below(1 << 21)) - (1 << 20); };
  switch (random.below(4)) {
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
  switch (random.below(5)) {
    case 0:
      rotation.embedding.rope_dim += rotation.embedding.rope_dim == 0 ? 1 : -1;
      return "the rope dim is odd or zero";
    case 1:
      rotation.embedding.base = oneOf(random, {0.0, -1.0, std::nan(""), HUGE_VAL});
      return "the base is not a positive number";
    case 2:
      rotation.next.reset();
      rotation.positions.clear();
      rotation.positionsIn.reset();
      rotation.first = oneOf(random, {INT64_MAX, INT64_MIN, int64_t{1} << 31, -(int64_t{1} << 31) - 1});
      return "a position is out of range";
    case 3:
      rotation.next.reset();
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

std::string mutateNext(CacheRotation& rotation, std::string_view positions, const CacheModel& model,
                       test::Seeded& random) {
  NextSpec& next = *rotation.next;
  const auto sequences = static_cast<uint32_t>(model.sequences().size());
  switch (random.below(7)) {
    case 0:
      if (!next.hasSequences && !next.hasRowCounts) return {};
      next.hasCache = false;
      return fmt::format("{}.cache is missing", positions);
    case 1:
      next.hasSequences = false;
      next.sequenceCount = 1 + random.below(3);
      return fmt::format("{}.sequences is missing", positions);
    case 2:
      rotation.first = 1 + static_cast<int64_t>(random.below(9));
      return fmt::format("there are several values for {}", positions);
    case 3:
      if (!next.hasSequences) return {};
      next.sequences[random.below(next.sequences.size())] = oneOf(random, {sequences, sequences + 1, 1u << 31});
      return "the sequence is not in the cache";
    case 4:
      if (sequences == 1 || next.sequences.size() != 1) return {};
      next.hasSequences = coin(random, 1, 2);
      next.sequences[0] = MNK_ONLY_SEQUENCE;
      return "the call does not say which sequence of the cache it is for";
    case 5:
      if (!next.hasRowCounts) return {};
      next.rowCounts[random.below(next.rowCounts.size())] += coin(random, 1, 2) ? 1 : UINT32_MAX;
      return "the rows do not match the listed sequences";
    default:
      if (!next.hasSequences) return {};
      next.sequenceCount = oneOf<size_t>(random, {1028, SIZE_MAX, size_t{1} << 40});
      return fmt::format("there are too many {}.sequences", positions);
  }
}

float rounded(float number, mnk_dtype dtype) {
  const auto to = static_cast<DType>(dtype);
  return static_cast<float>(test::valueOf(to, test::nearestBits(to, number)));
}

}  // namespace mnk::fuzz
