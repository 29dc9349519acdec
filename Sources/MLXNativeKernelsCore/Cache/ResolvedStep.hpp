// A CacheStep as the cache runs it: defaults are filled in, and each row has its place.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "Cache/StepRows.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"

namespace mnk {

// Entries of a step whose rows are stored before the first of them attends: all entries, or some rows of one.
struct StepPart {
  std::span<const StepEntry> entries = {};
  uint64_t firstRow = 0;  // of the step
  bool isWhole = true;
  // Of some rows: which entry of the step they belong to, and the row at which it begins.
  size_t entry = 0;
  uint64_t entryRow = 0;

  HeadsView viewOf(const HeadsView& view) const {
    return isWhole ? view : runsOf(view, firstRow, entries.front().rows, 1);
  }
};

struct ResolvedStep {
  // What the step does with its tokens.
  enum class Kind : uint8_t { append, attend, appendAndAttend };

  Kind kind;
  const CacheStep& step;
  const RotaryStep* rotary = nullptr;  // that of the step, or a copy whose positions are those of the cache
  uint32_t window = 0;                 // of the step, or else of the cache
  std::span<const StepEntry> entries = {};

  bool appends() const { return kind != Kind::attend; }
  bool attends() const { return kind != Kind::append; }
  std::string_view call() const;
  // The operand whose tokens are divided among entries.
  const HeadsView& tokens() const { return appends() ? step.keys : step.queries; }
  bool isListed() const { return step.sequences.size() != 1 || step.rowCounts; }
  StepPart whole() const { return {.entries = entries}; }
};

}  // namespace mnk
