// Generated from Sources/API by generate.py: change the description instead.
// What a cache stores, and what it serves.
#pragma once
#include <algorithm>
#include <cstdint>

namespace mnk {

// What of a cache is quantized. The rest is dense, with the descriptor's element type.
enum class KVQuantizedPlanes : uint32_t {
  // Keys and values.
  both,
  // Keys.
  keys,
  // Values.
  values,
};

// What a sliding-window cache must serve exactly: steps of up to `maxRows` rows that each see `window` positions, also
// after a rollback of up to `maxDraft` of the newest tokens.
//
// A step of several rows sees `window + maxRows - 1` positions, and a rollback of n tokens has lost n positions. The
// cache has slots for the larger of the two.
struct SlidingWindow {
  // How many positions a row sees, including its own.
  uint32_t window = 0;
  // The most rows of one step, or of one chunk of a longer prompt; 0 means the default, 64.
  uint32_t maxRows = 64;
  // The most tokens that are rolled back at a time.
  uint32_t maxDraft = 0;

  uint64_t slots() const {
    return uint64_t{window} + std::max(maxRows == 0 ? SlidingWindow().maxRows : maxRows, maxDraft) - 1;
  }

  bool operator==(const SlidingWindow&) const = default;
};

// How attention chooses kernels, splits and sizes of threadgroups. The choice changes the last bits of results.
enum class Tuning : uint32_t {
  // By a table that comes with the library. Choices that an earlier call measured stay in use.
  table,
  // By measuring on this device, for some tens of milliseconds for each shape. The choices are kept in a file by
  // device, version of the system and kernels, and not measured again. Until that file changes, results are the same
  // from run to run, bit for bit.
  measure,
};

}  // namespace mnk
