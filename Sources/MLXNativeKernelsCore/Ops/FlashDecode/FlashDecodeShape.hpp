// The numbers of a FlashDecode: its queries, its cache, and which keys of a sequence which rows see.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/FlashDecode.hpp"
#include "Ops/Common/CacheAddressing.hpp"

namespace mnk {

// Axes of queries; zeros where the rank is wrong.
struct QueryShape {
  uint64_t sequences = 0;
  uint64_t rows = 0;
  uint64_t heads = 0;
  uint64_t headDim = 0;

  uint64_t vectors() const;  // saturates
};
QueryShape queryShape(const HeadsView& queries);

// Whether sequences have their own row counts and queries are one list of all rows.
bool isRagged(const FlashDecode& op);
// The rows of a sequence of the op, and of the one that has the most.
uint64_t rowsOf(const FlashDecode& op, const AttendedSequence& attended);
uint64_t longestRows(const FlashDecode& op);

// A dense view of the cache; a quantized cache is viewed as a cache of bytes.
KVCacheView cacheOf(const FlashDecode& op);
SlotExtents slotsOf(const FlashDecode& op);
const QuantizedKVCacheView* quantizedOf(const FlashDecode& op);  // null if it is dense
std::optional<DType> denseType(const FlashDecode& op);           // nullopt if keys and values are quantized
uint64_t latentDimOf(const FlashDecode& op);                     // 0 if the cache is not latent
// The head dim of keys; in a latent cache, of their RoPE part only.
uint64_t keyDimOf(const FlashDecode& op);
uint64_t valueDimOf(const FlashDecode& op);
uint64_t queryDimOf(const FlashDecode& op);
// Whether keys of a latent cache follow their values in the same vectors.
bool isOneTensor(const FlashDecode& op);

// The position of a sequence's first row. It is below 0 if the cache holds a part that begins after the row, or if
// attention does not depend on positions and there are more rows than positions.
int64_t firstPosition(const FlashDecode& op, const AttendedSequence& attended);
// How many positions there are up to and including that of a row.
uint64_t endOfRow(const FlashDecode& op, const AttendedSequence& attended, uint64_t row);

// Whether rows see pinned positions in addition to a window.
bool seesPinned(const FlashDecode& op);

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

// What a sequence of `length` positions holds, where `oldest` is the oldest position held besides the pinned ones:
// "positions 6 to 9 and the first 2".
std::string heldPositionsText(uint64_t pinned, uint64_t oldest, uint64_t length);

// The keys that some of the rows [firstRow, firstRow + rows) of a sequence see.
struct KeyRange {
  uint64_t first = 0;
  uint64_t end = 0;

  uint64_t count() const { return end - first; }
};
KeyRange keysSeen(const FlashDecode& op, const AttendedKeys& keys, const AttendedSequence& attended, uint64_t firstRow,
                  uint64_t rows);

// The keys of a sequence, numbered for a dispatch that starts at row `firstRow`.
AttendedKeys keysOf(const FlashDecode& op, const AttendedSequence& attended, uint64_t firstRow);

}  // namespace mnk
