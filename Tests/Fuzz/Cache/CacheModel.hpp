// What an AttentionCache must hold after calls on it: where sequences stand, all tokens that they ever had, and what
// the calls of an open encoder leave to do or forbid.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "CacheNumbers.hpp"
#include "MLXNativeKernels/mnk_attention_cache.h"
#include "Ops/FlashDecode/AttentionHistory.hpp"
#include "RotatedMemory.hpp"

namespace mnk::fuzz {

// A sequence of a step and how many of its rows are of that sequence.
struct StepEntry {
  uint32_t sequence;
  uint64_t rows;
};

uint64_t rowsOf(const std::vector<StepEntry>& entries);
bool isEven(const std::vector<StepEntry>& entries);  // as many rows in each

struct RowOptions {
  uint64_t window = 0;  // that of the cache where it is 0
  bool seesPinned = false;
  bool isBidirectional = false;
};

// Where the rows of a step lie, and what it rotates them by.
struct StepRows {
  std::vector<RowPlace> queries, keys;
  std::optional<Angles> angles;                // where the step itself rotates
  std::optional<std::vector<StepEntry>> next;  // by the next positions of these entries
};

// Positions that each row of an entry sees.
using SeenPositions = std::vector<std::vector<uint64_t>>;

class CacheModel {
 public:
  struct Cursor {
    uint64_t next = 0, highest = 0;
  };

  // `cache` is resolved and can be made.
  CacheModel(const CacheNumbers& cache, uint64_t queryHeads);

  const CacheNumbers& cache() const { return cache_; }
  const std::vector<Cursor>& cursors() const { return cursors_; }
  // Positions that can be attended to.
  uint64_t count(const Cursor& cursor) const {
    uint64_t held = 0;
    for (uint64_t position = 0; position < cursor.next; ++position) held += holds(cursor, position);
    return held;
  }
  const test::AttentionHistory& history() const { return history_; }

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
    encoded_.assign(cursors_.size(), {});
    rotated_ = {};
    angles_.clear();
    hasRotated_ = false;
  }
  void noteAttend(const std::vector<StepEntry>& entries, const RowOptions& options) {
    std::map<uint32_t, uint64_t> behind;
    for (size_t i = entries.size(); i-- > 0;) {
      const auto [sequence, rows] = entries[i];
      const Cursor& cursor = cursors_[sequence];
      const uint64_t end = cursor.next - std::min(cursor.next, behind[sequence]);
      behind[sequence] += rows;
      // A row sees nothing of a ring that was cut where it begins.
      const bool isRead = rows != 0 && !options.isBidirectional && end > oldest(cursor);
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
      uint64_t& position = next.try_emplace(sequence, cursors_[sequence].next).first->second;
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
  void append(uint32_t sequence, const std::vector<float>& keys, const std::vector<float>& values) {
    Cursor& cursor = cursors_[sequence];
    cursor.highest = std::max(cursor.highest, ++cursor.next);
    encoded_[sequence].isAppended = true;
    std::vector<float> whole = keys;
    if (cache_.latent_dim != 0) whole.insert(whole.begin(), values.begin(), values.end());
    history_.append(whole, values, sequence);
  }
  void cut(uint32_t sequence, uint64_t position) {
    Cursor& cursor = cursors_[sequence];
    cursor.next = position;
    if (position <= cache_.pinned) cursor.highest = position;  // a ring is empty again
    history_.truncate(position, sequence);
  }
  void copy(uint32_t source, uint32_t target) {
    if (source == target) return;
    cursors_[target] = cursors_[source];
    encoded_[target].rotatedEnd = 0;
    angles_.erase(target);
    encoded_[target].isAppended = true;  // it replaces what attention has read
    encoded_[target].isAttendedFirst = false;
    history_.copy(source, target);
  }
  // What rows of an entry see that `behind` newer rows of the same sequence follow.
  SeenPositions seen(const StepEntry& entry, uint64_t behind, const RowOptions& options) const {
    const Cursor& cursor = cursors_[entry.sequence];
    const auto length = static_cast<int64_t>(cursor.next - std::min(cursor.next, behind));
    const auto window = static_cast<int64_t>(windowOf(options));
    SeenPositions all(entry.rows);
    for (uint64_t row = 0; row < entry.rows; ++row) {
      const int64_t own = length - static_cast<int64_t>(entry.rows - row);
      for (int64_t position = 0; position < length; ++position) {
        if (!options.isBidirectional && position > own) continue;
        const bool isPinned = options.seesPinned && position < cache_.pinned;
        if (window != 0 && position <= own - window && !isPinned) continue;
        if (holds(cursor, static_cast<uint64_t>(position))) all[row].push_back(static_cast<uint64_t>(position));
      }
    }
    return all;
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
  // The first position that a ring has not overwritten.
  uint64_t oldest(const Cursor& cursor) const {
    const bool hasLost = cache_.isRing() && cursor.highest > cache_.capacity;
    return hasLost ? cursor.highest - (cache_.capacity - cache_.pinned) : 0;
  }
  bool holds(const Cursor& cursor, uint64_t position) const {
    if (position >= cursor.next) return false;
    if (!cache_.isRing() || position < cache_.pinned || cursor.highest <= cache_.capacity) return true;
    return position + (cache_.capacity - cache_.pinned) >= cursor.highest;
  }
  bool canServe(const Cursor& cursor, uint64_t tokens, const RowOptions& options) const;
  bool reachesLost(const Cursor& cursor, uint64_t row, const RowOptions& options) const;
  uint64_t windowOf(const RowOptions& options) const { return options.window == 0 ? cache_.window() : options.window; }

  CacheNumbers cache_;
  std::vector<Cursor> cursors_;
  std::vector<Encoded> encoded_;
  RotatedMemory rotated_;
  AnglesOf angles_;          // by sequence: those of rotated keys that the encoder appends
  bool hasRotated_ = false;  // tokens of the cache, in the open encoder
  test::AttentionHistory history_;
};

}  // namespace mnk::fuzz
