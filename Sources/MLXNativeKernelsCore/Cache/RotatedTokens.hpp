// Checks that tokens which a step rotated by the next positions of a cache are used for what they were rotated for.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "Cache/CacheCursors.hpp"
#include "Cache/StepRows.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"

namespace mnk {

// Some of the rows of a call, and the first of the positions at which they are used.
struct PlacedRows {
  uint32_t sequence = 0;
  uint64_t first = 0;  // row of the view
  uint64_t rows = 0;
  uint64_t position = 0;
};
// The rows of entries, each at the positions between its cursors; an entry that begins before its sequence is left out.
std::vector<PlacedRows> placedRows(std::span<const StepEntry> entries);

// The rows of a call of a cache. Only what is known to be wrong is an error: memory that the step writes after a
// rotation may hold rotated tokens or others.
struct UsedRows {
  std::string_view call;
  const CommandEncoder& encoder;
  CacheCursors::Recording& recording;
  const CacheCursors& cache;
  std::vector<PlacedRows> placed;
  uint64_t latentDim = 0;  // of the cache

  // Keys that are appended were rotated for these tokens, if the step rotates rows for them at all.
  Result<void> checkKeys(const HeadsView& keys) const;
  // So were queries that attend, except for their latent part.
  Result<void> checkQueries(const HeadsView& queries) const;
  // They are rotated by this embedding, as all keys that the step has rotated for their sequences.
  Result<void> checkEmbedding(uint64_t embedding) const;
  // The step has not rotated them yet.
  Result<void> checkUnrotated(const HeadsView& tokens) const;
  // Positions that follow a cache are those at which the rows are appended.
  Result<void> checkFollowed(const RotaryPositions& positions) const;
  // What the step rotated for these sequences counts the tokens of prefixes.
  Result<void> checkOffsets(uint64_t prefixTokens) const;

 private:
  Result<void> checkLatent(const HeadsView& queries) const;
};

}  // namespace mnk
