// What planning needs of a FlashDecode: its extents, its cache, and which keys the rows of a sequence see.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/Common/CacheAddressing.hpp"

namespace mnk {

// Queries that an earlier dispatch of the same plan stores in scratch memory: [sequences, rows, heads, headDim],
// contiguous. The scratch memory of attention itself follows them.
struct ScratchQueries {
  uint64_t offset = 0;  // of the first, in bytes
  uint64_t bytes = 0;   // reserved at the start of scratch memory, a multiple of 16
};

// Keys of a sequence, counted from the oldest that the cache holds.
struct AttendedKeys {
  uint64_t skipped = 0;  // positions after the pinned ones that the numbering skips: overwritten or hidden
  uint64_t hidden = 0;   // cached positions after the pinned ones that the numbering skips
  uint64_t start = 0;    // slot minus key index, after the pinned ones
  uint64_t pinned = 0;
  uint64_t capacity = 0;

  AttendedKeys(const SlotExtents& cache, const AttendedSequence& sequence);

  // The oldest position that is counted, other than pinned ones.
  uint64_t oldest() const { return skipped == 0 ? 0 : pinned + skipped; }
  // Removes the positions between the pinned ones and `position` from the numbering.
  void hideUntil(uint64_t position);
  // The first key at a position or after it.
  uint64_t keyOf(uint64_t position) const;
  SlotRuns slots(uint64_t firstKey, uint64_t endKey) const;
};

// The keys that some rows of a sequence see.
struct KeyRange {
  uint64_t first = 0;
  uint64_t end = 0;

  uint64_t count() const { return end - first; }
};

// Refers to the op, which must outlive it.
struct AttentionShape {
  // Checks every rule of the op.
  static Result<AttentionShape> of(const FlashDecode& op, const std::optional<ScratchQueries>& scratchQueries = {});
  // For an op whose queries and cache fulfill their rules.
  explicit AttentionShape(const FlashDecode& op, const std::optional<ScratchQueries>& scratchQueries = {});

  const HeadsView& queryView;
  const std::vector<AttendedSequence>& sequences;
  const AttentionResults& results;
  const AttentionOptions& options;
  const std::optional<Tensor>& scratch;

  std::optional<ScratchQueries> scratchQueries;  // in place of those of the op
  HeadsView::Strides queries;
  const QuantizedKVCacheView* quantized;  // null if the cache is dense
  const Tensor* keyPlane;                 // elements or codes
  const Tensor* valuePlane;               // null if the cache is one tensor
  SlotExtents slots;
  uint32_t latentDim;  // 0 if the cache is not latent
  uint64_t keyDim;     // in a latent cache, of the RoPE part only
  uint64_t valueDim;
  KVCodecSizes keyVector;  // elements of a dense plane count as codes
  KVCodecSizes valueVector;
  std::optional<DType> denseType;  // nullopt if keys and values are quantized
  bool isRagged;                   // sequences have their own row counts, and queries are one list of all rows
  uint64_t longestRows;            // of a sequence

  bool isLatent() const { return latentDim != 0; }
  // Whether keys of a latent cache follow their values in the same vectors.
  bool isOneTensor() const { return !valuePlane; }
  uint64_t queryDim() const { return keyDim + latentDim; }
  uint64_t queryVectors() const;  // saturates
  uint64_t group() const { return queries.heads / slots.heads; }
  uint64_t rowsOf(const AttendedSequence& attended) const {
    return attended.rows != 0 ? attended.rows : queries.tokens;
  }
  // Whether rows see pinned positions in addition to a window.
  bool seesPinned() const { return options.windowSeesPinned && options.window != 0 && slots.pinned != 0; }
  // Whether the matrix kernel supports the op, on a device that has matrices.
  bool canUseMatrices() const;

  // The position of a sequence's first row. It is below 0 if the cache holds a part that begins after the row, or if
  // attention does not depend on positions and there are more rows than positions.
  int64_t firstPosition(const AttendedSequence& attended) const;
  // How many positions there are up to and including that of a row.
  uint64_t endOfRow(const AttendedSequence& attended, uint64_t row) const;
  // The keys that some of the rows [firstRow, firstRow + rows) see.
  KeyRange keysSeen(const AttendedKeys& keys, const AttendedSequence& attended, uint64_t firstRow, uint64_t rows) const;
  // The keys of a sequence, numbered for a dispatch that starts at row `firstRow`.
  AttendedKeys keysOf(const AttendedSequence& attended, uint64_t firstRow) const;

 private:
  uint64_t startOfWindow(const AttendedSequence& attended, uint64_t row) const;
};

// What a sequence of `length` positions holds, where `oldest` is the oldest position held besides the pinned ones:
// "positions 6 to 9 and the first 2".
std::string heldPositionsText(uint64_t pinned, uint64_t oldest, uint64_t length);

}  // namespace mnk
