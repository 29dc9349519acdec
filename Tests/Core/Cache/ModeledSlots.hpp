// What sequences of a cache hold: all of their tokens, and the newest position of each slot; and what rows make of
// them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace mnk::test {

struct ModeledToken {
  std::vector<std::byte> bytes = {};        // of its slot in all planes
  std::vector<float> key = {}, value = {};  // [kvHeads, dim]: the numbers that these bytes represent
};

struct ModeledSequence {
  std::vector<ModeledToken> tokens = {};
  std::map<uint64_t, uint64_t> positionInSlot = {};  // the newest of those that map to a slot

  uint64_t next() const { return tokens.size(); }
  // Positions that can be read.
  uint64_t count() const {
    const auto isKept = [&](const auto& entry) { return entry.second < next(); };
    return static_cast<uint64_t>(std::ranges::count_if(positionInSlot, isKept));
  }
  // The end of all positions that its slots have held since they were empty.
  uint64_t highest() const {
    uint64_t end = 0;
    for (const auto& [slot, position] : positionInSlot) end = std::max(end, position + 1);
    return end;
  }
};

// What a row sees, and how.
struct RowOptions {
  uint64_t window = 0;
  bool seesPinned = false;
  bool isCausal = true;
  uint32_t splits = 0;
  float scale = 0;                             // 0: that of the queries' dim
  std::vector<float> slopes = {}, sinks = {};  // of query heads
};

// The slots of one sequence.
struct ModeledSlots {
  uint64_t capacity = 0, pinned = 0;
  bool isRing = false;

  uint64_t slotOf(uint64_t position) const {
    return isRing && position >= pinned ? pinned + (position - pinned) % (capacity - pinned) : position;
  }
  void append(ModeledSequence& sequence, ModeledToken token) const {
    sequence.positionInSlot[slotOf(sequence.next())] = sequence.next();
    sequence.tokens.push_back(std::move(token));
  }
  // Overwritten positions before the cut stay lost.
  void cut(ModeledSequence& sequence, uint64_t position) const {
    sequence.tokens.resize(position);
    if (position > pinned) return;
    std::erase_if(sequence.positionInSlot, [&](const auto& entry) { return entry.second >= position; });
  }
  bool keeps(const ModeledSequence& sequence, uint64_t position) const {
    const auto slot = sequence.positionInSlot.find(slotOf(position));
    return slot != sequence.positionInSlot.end() && slot->second == position;
  }
  // From here on, and before the first `pinned`, positions can be read.
  uint64_t oldestKept(const ModeledSequence& sequence) const {
    uint64_t oldest = sequence.next();
    while (oldest > pinned && keeps(sequence, oldest - 1)) --oldest;
    return oldest;
  }
  bool hasLost(const ModeledSequence& sequence) const { return oldestKept(sequence) > pinned; }
  // Whether a cut restores no lost position.
  bool canCut(const ModeledSequence& sequence, uint64_t position) const {
    return position <= sequence.next() && (position <= pinned || position >= oldestKept(sequence));
  }
  // Whether the next row then sees all of a window; 0 if there is none.
  bool servesAfterCut(const ModeledSequence& sequence, uint64_t position, uint64_t window) const {
    if (window == 0 || position <= pinned || position >= sequence.next()) return true;
    if (position < oldestKept(sequence)) return false;
    ModeledSequence rest = sequence;
    cut(rest, position);
    append(rest, {});
    return seen(rest, position, {.window = window}).has_value();
  }
  // What these slots hold of a sequence that comes from others; nothing if they cannot hold all that could be read.
  std::optional<ModeledSequence> moved(const ModeledSequence& sequence, const ModeledSlots& from) const {
    const bool fits = from.hasLost(sequence) ? isRing && pinned == from.pinned &&
                                                   sequence.next() - from.oldestKept(sequence) <= capacity - pinned
                                             : sequence.next() <= capacity;
    if (!fits) return std::nullopt;
    ModeledSequence moved{.tokens = sequence.tokens};
    for (uint64_t position = 0; position < sequence.next(); ++position) {
      if (from.keeps(sequence, position)) moved.positionInSlot[slotOf(position)] = position;
    }
    return moved;
  }
  // The positions that a row sees; nothing if its own is lost, or one in its window.
  std::optional<std::vector<uint64_t>> seen(const ModeledSequence& sequence, uint64_t row,
                                            const RowOptions& options) const {
    std::vector<uint64_t> seen;
    for (uint64_t position = 0; position < (options.isCausal ? row + 1 : sequence.next()); ++position) {
      const bool isInWindow = options.window == 0 || position + options.window > row;
      if (!isInWindow && !(options.seesPinned && position < pinned)) continue;
      if (keeps(sequence, position)) {
        seen.push_back(position);
      } else if (options.window != 0 || (options.isCausal && position == row)) {
        return std::nullopt;
      }
    }
    if (seen.empty()) return std::nullopt;
    return seen;
  }
};

// Results of rows of attention, in double.
struct ModeledRows {
  std::vector<double> output = {}, logSumExp = {};
};

// A token and its position among all tokens that a row sees, those of prefixes included.
struct SeenToken {
  uint64_t position = 0;
  const ModeledToken* token = nullptr;
};

// Of a cache.
struct ModeledDims {
  uint64_t kvHeads = 0, headDim = 0, valueHeadDim = 0, latentDim = 0;
};

// Adds what a row at a position makes of tokens. In a latent cache, the value is also the first part of the key.
inline void attendRow(ModeledRows& rows, const ModeledDims& d, std::span<const float> query, uint64_t heads,
                      uint64_t position, const std::vector<SeenToken>& seen, const RowOptions& options) {
  const uint64_t queryDim = query.size() / heads;
  for (uint64_t head = 0; head < heads; ++head) {
    const uint64_t kvHead = head / (heads / d.kvHeads);
    std::vector<double> output(d.valueHeadDim);
    double sum = options.sinks.empty() ? 0 : std::exp(double{options.sinks[head]});
    for (const auto& [at, token] : seen) {
      double score = 0;
      for (uint64_t j = 0; j < queryDim; ++j) {
        score +=
            double{query[head * queryDim + j]} * (j < d.latentDim ? token->value[kvHead * d.valueHeadDim + j]
                                                                  : token->key[kvHead * d.headDim + j - d.latentDim]);
      }
      score *= options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(queryDim));
      if (!options.slopes.empty()) {
        score += options.slopes[head] * (static_cast<double>(at) - static_cast<double>(position));
      }
      const double weight = std::exp(score);
      sum += weight;
      for (uint64_t j = 0; j < d.valueHeadDim; ++j) output[j] += weight * token->value[kvHead * d.valueHeadDim + j];
    }
    for (const double each : output) rows.output.push_back(each / sum);
    rows.logSumExp.push_back(std::log(sum));
  }
}

}  // namespace mnk::test
