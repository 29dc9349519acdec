// What an AttentionCache must hold after calls on it: where sequences stand, all tokens that they ever had, and what
// the calls of an open encoder leave to do or forbid.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "Cache/ModeledSlots.hpp"
#include "CacheNumbers.hpp"
#include "MLXNativeKernels/mnk_attention_cache.h"
#include "RotatedMemory.hpp"

namespace mnk::fuzz {

using test::ModeledSequence, test::RowOptions;

// A sequence of a step and how many of its rows are of that sequence.
struct StepEntry {
  uint32_t sequence;
  uint64_t rows;
};

uint64_t rowsOf(const std::vector<StepEntry>& entries);
bool isEven(const std::vector<StepEntry>& entries);  // as many rows in each

// Where a sequence stands, and how many positions of it can be attended to.
struct Standing {
  uint64_t next = 0, count = 0;
};

// Where the rows of a step lie, and what it rotates them by.
struct StepRows {
  std::vector<RowPlace> queries, keys;
  std::optional<Angles> angles;                // where the step itself rotates
  std::optional<std::vector<StepEntry>> next;  // by the next positions of these entries
};

class CacheModel {
 public:
  // `cache` is resolved and can be made.
  explicit CacheModel(const CacheNumbers& cache)
      : cache_(cache),
        slots_{.capacity = cache.capacity, .pinned = cache.pinned, .isRing = cache.isRing()},
        sequences_(cache.sequences),
        encoded_(cache.sequences) {}

  const CacheNumbers& cache() const { return cache_; }
  const std::vector<ModeledSequence>& sequences() const { return sequences_; }
  std::vector<Standing> standing() const {
    std::vector<Standing> all;
    for (const ModeledSequence& sequence : sequences_) all.push_back({sequence.next(), sequence.count()});
    return all;
  }

  // Whether the encoder has rotated tokens of these sequences otherwise.
  bool isRotatedOtherwise(const std::vector<StepEntry>& entries, const Angles& angles) const {
    return std::ranges::any_of(entries, [&](const StepEntry& entry) {
      const auto own = angles_.find(entry.sequence);
      return entry.rows != 0 && own != angles_.end() && own->second != angles;
    });
  }
  // What an error must say; empty where the call is fine.
  std::string_view refusalOfAppend(const std::vector<StepEntry>& entries, const StepRows& rows) const;
  std::string_view refusalOfAttend(const std::vector<StepEntry>& entries, const RowOptions& options,
                                   const StepRows& rows) const;
  // `isListed`: the entries are a list, or have row counts.
  std::string_view refusalOfBoth(const std::vector<StepEntry>& entries, const RowOptions& options, bool isListed,
                                 const StepRows& rows) const;
  std::string_view refusalOfCut(uint32_t sequence, uint64_t position) const;
  std::string_view refusalOfCopy(uint32_t source, uint32_t target) const;
  std::string_view refusalOfCommit() const;
  // Of the only sequence that a call names.
  std::string_view refusalOfName(uint32_t sequence) const;

  // Another encoder begins.
  void begin() {
    encoded_.assign(sequences_.size(), {});
    rotated_ = {};
    angles_.clear();
    hasRotated_ = false;
  }
  void noteAttend(const std::vector<StepEntry>& entries, const RowOptions& options) {
    std::map<uint32_t, uint64_t> behind;
    for (size_t i = entries.size(); i-- > 0;) {
      const auto [sequence, rows] = entries[i];
      const ModeledSequence& own = sequences_[sequence];
      const uint64_t end = own.next() - std::min(own.next(), behind[sequence]);
      behind[sequence] += rows;
      // A row sees nothing of a ring that was cut where it begins.
      const uint64_t oldest = slots_.hasLost(own) ? slots_.oldestKept(own) : 0;
      const bool isRead = rows != 0 && options.isCausal && end > oldest;
      if (isRead && !encoded_[sequence].isAppended) encoded_[sequence].isAttendedFirst = true;
    }
  }
  // Rows are rotated by the next positions of their sequences.
  void noteRotation(const std::vector<StepEntry>& entries) {
    const auto positions = nextPositions(entries);
    size_t row = 0;
    for (const auto& [sequence, rows] : entries) {
      row += rows;
      uint64_t& end = encoded_[sequence].rotatedEnd;
      if (rows != 0) end = std::max(end, positions[row - 1] + 1);
    }
    hasRotated_ = true;
  }
  // Keys of these entries are appended, with the rotation of the step, or as they lie in memory.
  void noteKeys(const std::vector<StepEntry>& entries, const StepRows& rows) {
    const Tokens tokens = nextTokens(entries);
    for (size_t row = 0; row < tokens.size(); ++row) {
      const auto turned = rows.angles ? rows.angles : rotated_.anglesAt(rows.keys[row]);
      if (turned) angles_.try_emplace(tokens[row]->sequence, *turned);
    }
    hasRotated_ = hasRotated_ || (rows.angles && !tokens.empty());
  }
  std::vector<uint64_t> nextPositions(const std::vector<StepEntry>& entries) const {
    std::map<uint32_t, uint64_t> next;
    std::vector<uint64_t> positions;
    for (const auto& [sequence, rows] : entries) {
      uint64_t& position = next.try_emplace(sequence, sequences_[sequence].next()).first->second;
      for (uint64_t row = 0; row < rows; ++row) positions.push_back(position++);
    }
    return positions;
  }
  Tokens nextTokens(const std::vector<StepEntry>& entries) const {
    const auto positions = nextPositions(entries);
    Tokens tokens;
    for (const auto& [sequence, rows] : entries) {
      for (uint64_t row = 0; row < rows; ++row) tokens.push_back(RotatedToken{sequence, positions[tokens.size()]});
    }
    return tokens;
  }
  // What rotations of this encoder have written.
  RotatedMemory& rotated() { return rotated_; }
  const RotatedMemory& rotated() const { return rotated_; }
  // The next token of a sequence.
  void append(uint32_t sequence, std::vector<float> key, std::vector<float> value) {
    slots_.append(sequences_[sequence], {.key = std::move(key), .value = std::move(value)});
    encoded_[sequence].isAppended = true;
  }
  void cut(uint32_t sequence, uint64_t position) { slots_.cut(sequences_[sequence], position); }
  void copy(uint32_t source, uint32_t target) {
    if (source == target) return;
    sequences_[target] = ModeledSequence(sequences_[source]);
    encoded_[target].rotatedEnd = 0;
    angles_.erase(target);
    encoded_[target].isAppended = true;  // it replaces what attention has read
    encoded_[target].isAttendedFirst = false;
  }
  // Adds what a row at a position of a sequence makes of what it sees.
  void attend(std::vector<double>& into, std::span<const float> query, uint64_t heads, uint32_t sequence,
              uint64_t position, RowOptions options) const {
    options.window = windowOf(options);
    std::vector<test::SeenToken> tokens;
    const auto seen = slots_.seen(sequences_[sequence], position, options);
    for (const uint64_t each : *seen) tokens.push_back({each, &sequences_[sequence].tokens[each]});
    test::ModeledRows rows;
    test::attendRow(rows, {cache_.kv_heads, cache_.head_dim, cache_.value_head_dim, cache_.latent_dim}, query, heads,
                    position, tokens, options);
    into.insert(into.end(), rows.output.begin(), rows.output.end());
  }

 private:
  // What the open encoder has done with a sequence.
  struct Encoded {
    bool isAppended = false, isAttendedFirst = false;
    uint64_t rotatedEnd = 0;
  };

  std::string_view refusalOfOrder(const std::vector<StepEntry>& entries) const;
  std::string_view refusalOfRotation(const std::vector<StepEntry>& entries, const StepRows& rows) const;
  std::string_view refusalOfFull(const std::vector<StepEntry>& entries) const;
  // Of attention over entries that as many newer rows of the same sequences follow.
  Tokens tokensOf(const std::vector<StepEntry>& entries, const std::vector<uint64_t>& behind) const;
  std::string_view refusalOfWindows(const std::vector<StepEntry>& entries, const std::vector<uint64_t>& behind,
                                    const RowOptions& options) const;
  bool isLost(const StepEntry& entry, uint64_t behind, const RowOptions& options) const;
  using AnglesOf = std::map<uint32_t, Angles>;
  std::string_view refusalOfUse(const Tokens& tokens, const std::vector<RowPlace>& places, bool areKeys,
                                AnglesOf& angles) const;
  bool canServe(const ModeledSequence& sequence, uint64_t tokens, const RowOptions& options) const;
  bool reachesLost(const ModeledSequence& sequence, uint64_t row, const RowOptions& options) const;
  uint64_t windowOf(const RowOptions& options) const { return options.window == 0 ? cache_.window() : options.window; }

  CacheNumbers cache_;
  test::ModeledSlots slots_;
  std::vector<ModeledSequence> sequences_;
  std::vector<Encoded> encoded_;
  RotatedMemory rotated_;
  AnglesOf angles_;          // by sequence: those of rotated keys that the encoder appends
  bool hasRotated_ = false;  // tokens of the cache, in the open encoder
};

}  // namespace mnk::fuzz
