// Checks that tokens which a step rotated by the next positions of a cache are used at these positions.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "Cache/CacheCursors.hpp"
#include "Cache/SequenceRows.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/HeadsView.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"

namespace mnk {

// Some of the rows of a call, and the first of the positions at which they are used.
struct PlacedRows {
  uint32_t sequence = 0;
  uint64_t first = 0;  // row of the view
  uint64_t rows = 0;
  uint64_t position = 0;
};
// The rows of entries that are appended to sequences at `next`.
std::vector<PlacedRows> placedRows(std::span<const SequenceRows> entries, std::map<uint32_t, uint64_t> next);

// Keys that are appended were rotated for their positions, if the step rotates tokens for these positions at all.
Result<void> checkRotatedKeys(std::string_view call, const CommandEncoder& encoder, CacheCursors::Recording& recording,
                              const HeadsView& keys, std::span<const PlacedRows> placed);
// Queries that the step rotated are rotated for the positions at which they attend; with offsets if prefixes precede.
Result<void> checkRotatedQueries(std::string_view call, const CommandEncoder& encoder,
                                 CacheCursors::Recording& recording, const HeadsView& queries,
                                 std::span<const PlacedRows> placed, bool isAfterPrefixes = false);
// Tokens that a call rotates by positions of this cache have not been rotated for them before.
Result<void> checkUnrotated(std::string_view call, const CommandEncoder& encoder, const CacheCursors& cache,
                            const HeadsView& tokens, std::span<const PlacedRows> placed);
// Positions that follow a cache are those at which the rows are appended.
Result<void> checkFollowed(std::string_view call, CacheCursors::Recording& recording, const RotaryPositions& positions,
                           std::span<const PlacedRows> placed);

}  // namespace mnk
