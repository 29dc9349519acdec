// Generated from Sources/API by generate.py: change the description instead.
// What a cache stores, and what it serves.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "MLXNativeKernels/Generated/Basics.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/QuantizedViews.hpp"
#include "MLXNativeKernels/Tensor.hpp"

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

// How a cache quantizes what is appended. Means and channel scales are for turbo only. They are copied when the cache
// is made, so that their sources may be changed afterwards; the copies may not, while the cache holds anything.
struct KVQuantizedStorage {
  // Which codec.
  KVCodec::Name codec = KVCodec::Name::turbo;
  // Bits of one code of a key. Those of a dense plane are ignored, and read as 0.
  uint32_t keyBits = 4;
  // Bits of one code of a value.
  uint32_t valueBits = 4;
  // For mlx1 and mlx1Unrotated at a head dim of 512.
  float scaleFactor = 1;
  // How vectors are quantized where the format allows a choice.
  KVQuantizeOptions options = {};
  // f32, `[kvHeads, headDim]`.
  std::optional<Tensor> keyMeans = {};
  // f32, `[kvHeads, valueHeadDim]`.
  std::optional<Tensor> valueMeans = {};
  // f32, `[kvHeads, headDim]`, none of them 0.
  std::optional<Tensor> keyChannelScales = {};
  // What of the cache is quantized.
  KVQuantizedPlanes planes = KVQuantizedPlanes::both;

  bool hasQuantizedKeys() const { return planes != KVQuantizedPlanes::values; }
  bool hasQuantizedValues() const { return planes != KVQuantizedPlanes::keys; }
  KVCodec keyCodec() const { return {codec, keyBits, scaleFactor}; }
  KVCodec valueCodec() const { return {codec, valueBits, scaleFactor}; }
};

// The extents of a cache, and how it stores.
struct AttentionCacheDescriptor {
  // Heads of keys and values.
  uint32_t kvHeads = 0;
  // Elements of a key of one head.
  uint32_t headDim = 0;
  // Elements of a value of one head; 0 means those of a key, or of its latent part.
  uint32_t valueHeadDim = 0;
  // Slots of one sequence; 0 means the number that the sliding window needs.
  uint32_t capacity = 0;
  // Sequences that are kept side by side.
  uint32_t sequences = 1;
  // A float type. If keys and values are both quantized, it is ignored, and reads as u8.
  DType dtype = DType::f16;
  // What an append does when every slot is taken: it fails, or the newest tokens take the slots of the oldest.
  KVWrap whenFull = KVWrap::linear;
  // First positions that a ring never overwrites.
  uint32_t pinned = 0;
  // How keys, values or both are quantized; none for a dense cache.
  std::optional<KVQuantizedStorage> quantized = {};
  // Makes a ring that serves this window, with the slots that it needs unless `capacity` is larger. Rows that attend
  // without their own window use this one.
  std::optional<SlidingWindow> slidingWindow = {};
  // Makes a latent cache (multi-head latent attention): what is appended as values is also the first part of keys, of
  // this length, and what is appended as keys is the rest of them, rotated already. Queries are those of absorbed
  // attention, with the elements of both together, and attention needs a scale. 0 if keys and values are separate.
  uint32_t latentDim = 0;
  // Whether the cache only stores, so that it may have any head dims.
  bool isStorageOnly = false;
};

}  // namespace mnk
