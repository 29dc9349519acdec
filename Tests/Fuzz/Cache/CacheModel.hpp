// What an AttentionCache must hold after calls on it: where sequences stand, all tokens that they ever had, and what
// the calls of an open encoder leave to do or forbid.
#pragma once
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
  uint64_t count(const Cursor& cursor) const;  // positions that can be attended to
  const test::AttentionHistory& history() const { return history_; }

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
  void noteAttend(const std::vector<StepEntry>& entries, const RowOptions& options);
  // Rows are rotated by the next positions of their sequences.
  void noteRotation(const std::vector<StepEntry>& entries);
  // Keys of these entries are appended, with the rotation of the step, or as they lie in memory.
  void noteKeys(const std::vector<StepEntry>& entries, const StepRows& rows);
  std::vector<uint64_t> nextPositions(const std::vector<StepEntry>& entries) const;
  Tokens nextTokens(const std::vector<StepEntry>& entries) const;
  // What rotations of this encoder have written.
  RotatedMemory& rotated() { return rotated_; }
  const RotatedMemory& rotated() const { return rotated_; }
  // The next token of a sequence.
  void append(uint32_t sequence, const std::vector<float>& keys, const std::vector<float>& values);
  void cut(uint32_t sequence, uint64_t position);
  void copy(uint32_t source, uint32_t target);
  // What rows of an entry see that `behind` newer rows of the same sequence follow.
  SeenPositions seen(const StepEntry& entry, uint64_t behind, const RowOptions& options) const;

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
  uint64_t oldest(const Cursor& cursor) const;
  bool holds(const Cursor& cursor, uint64_t position) const;
  bool canServe(const Cursor& cursor, uint64_t tokens, const RowOptions& options) const;
  bool reachesLost(const Cursor& cursor, uint64_t row, const RowOptions& options) const;
  uint64_t windowOf(const RowOptions& options) const { return options.window == 0 ? cache_.window : options.window; }

  CacheNumbers cache_;
  std::vector<Cursor> cursors_;
  std::vector<Encoded> encoded_;
  RotatedMemory rotated_;
  AnglesOf angles_;          // by sequence: those of rotated keys that the encoder appends
  bool hasRotated_ = false;  // tokens of the cache, in the open encoder
  test::AttentionHistory history_;
};

}  // namespace mnk::fuzz
