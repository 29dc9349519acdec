// Generated from Sources/API by generate.py: change the description instead.
// What a cache stores, and what it serves.
#ifndef MNK_CACHE_STORAGE_H
#define MNK_CACHE_STORAGE_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// What of a cache is quantized. The rest is dense, with the descriptor's element type.
typedef enum MNK_CLOSED(mnk_kv_quantized_planes) {
  // Keys and values.
  MNK_KV_QUANTIZED_PLANES_BOTH = 0,
  // Keys.
  MNK_KV_QUANTIZED_PLANES_KEYS = 1,
  // Values.
  MNK_KV_QUANTIZED_PLANES_VALUES = 2,
} mnk_kv_quantized_planes;

// What a sliding-window cache must serve exactly: steps of up to `max_rows` rows that each see `window` positions, also
// after a rollback of up to `max_draft` of the newest tokens.
//
// A step of several rows sees `window + maxRows - 1` positions, and a rollback of n tokens has lost n positions. The
// cache has slots for the larger of the two.
typedef struct mnk_sliding_window {
  // How many positions a row sees, including its own.
  uint32_t window;
  // The most rows of one step, or of one chunk of a longer prompt; 0 means the default, 64. The other languages'
  // default is 64.
  uint32_t max_rows;
  // The most tokens that are rolled back at a time.
  uint32_t max_draft;
} mnk_sliding_window;

// How attention chooses kernels, splits and sizes of threadgroups. The choice changes the last bits of results.
typedef enum MNK_CLOSED(mnk_tuning) {
  // By a table that comes with the library. Choices that an earlier call measured stay in use.
  MNK_TUNING_TABLE = 0,
  // By measuring on this device, for some tens of milliseconds for each shape. The choices are kept in a file by
  // device, version of the system and kernels, and not measured again. Until that file changes, results are the same
  // from run to run, bit for bit.
  MNK_TUNING_MEASURE = 1,
} mnk_tuning;

MNK_HEADER_END

#endif
