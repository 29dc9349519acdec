// How FlashDecode is laid out on a device: one row of a table for each family of devices, with what it rests on.
// `prepare` can measure instead, and `decode-bench --tune` shows what that gains over the table.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/FlashDecode.hpp"

namespace mnk {

struct FlashDecodeTuning {
  std::string_view family;        // of DeviceProfile
  uint32_t vectorSimdgroups = 8;  // of a threadgroup
  uint32_t matrixSimdgroups = 8;
  uint32_t reduceSimdgroups = 8;
  uint32_t threadgroupsPerCore = 1;  // as long as no split has fewer keys than the next
  uint32_t leastKeys = 64;
  uint32_t denseMatrixRows = UINT32_MAX;  // dense f16 caches: from so many rows on the matrix kernel is faster
  uint32_t codedMatrixRows = UINT32_MAX;  // quantized caches
  uint32_t vectorRowsTogether = 8;        // the most rows that a simdgroup of the vector kernel computes
  uint32_t matrixRowsTogether = 8;        // and of the matrix kernel
  uint32_t matrixHeadDim = 256;           // the longest vectors that the matrix kernel is chosen for
  uint32_t denseMatrixTile = 2048;        // the most elements in its tiles of keys
  uint32_t codedMatrixTile = 2048;
  uint32_t matrixTableBits = 14;  // its codebook tables take two to this power bytes of threadgroup memory: 14 or 15
  // Up to so many splits their parts are merged in the dispatch that makes them, where the device allows it.
  uint32_t mostSplitsTogether = 0;
  // From this number of rows of a sequence on, the prefill kernel attends in one dispatch, where it has the head dim.
  uint32_t leastPrefillRows = FlashDecode::kRowsPerPass + 1;
  uint32_t prefillSimdgroups = 12;
  // From this number of rows of a head of a latent cache on, the same kernel does, since the vector kernel reads the
  // cache for each row.
  uint32_t leastLatentRows = 2;
  uint32_t cores = 16;  // where the device does not say
  // The vector kernel's instances in which few lanes share a vector, which the Host device alone has.
  bool sharesAmongFewLanes = false;
};

FlashDecodeTuning tuningFor(const DeviceProfile& profile);

// Whether there is a kernel for these head dims, over elements, over codes or over a latent cache of either, and which
// dims have one.
bool hasAttentionKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized, bool isLatent);
std::string attentionDimsText(bool isQuantized, bool isLatent);

// The instance of the vector kernel for `rows` rows of a head of the cache: of these head dims, or the smallest that
// they fit in; for a quantized cache one for a power of two, the same for keys and values. It has 0 rows where there is
// none.
struct VectorInstance {
  uint32_t keyDim = 0;
  uint32_t valueDim = 0;
  uint32_t rows = 0;  // that a simdgroup computes together
};
VectorInstance vectorInstance(const FlashDecodeTuning& tuning, uint64_t keyDim, uint64_t valueDim, uint64_t rows,
                              bool isQuantized, bool isLatent);

// Instances of the matrix kernel.
struct MatrixInstance {
  uint32_t headDim = 0;
  uint32_t rows = 0;  // that a simdgroup computes together
  uint32_t keys = 0;  // of a tile
};
std::span<const MatrixInstance> matrixInstances();
// The one for `rows` rows of a head of the cache: the rows that a simdgroup computes, and the keys of a tile, at most
// `mostKeys` unless there is no smaller tile.
uint32_t matrixRows(const FlashDecodeTuning& tuning, uint64_t headDim, uint64_t rows);
uint32_t matrixTileKeys(uint64_t headDim, uint32_t instanceRows, uint64_t mostKeys);

// The instance of the prefill kernel for a head dim, with tiles of f16 or of f32. It has 0 parts where there is none.
struct PrefillInstance {
  bool isHalf = false;
  uint32_t dim = 0;        // elements of a row that a simdgroup has
  uint32_t extra = 0;      // and of its query besides, over a latent cache
  uint32_t rowBlocks = 0;  // eights of rows that it computes together
  uint32_t keys = 0;       // of a tile
  uint32_t parts = 0;      // simdgroups that share rows

  bool operator==(const PrefillInstance&) const = default;
};
PrefillInstance prefillInstance(uint64_t keyDim, uint64_t valueDim, bool isHalf, bool isLatent = false);

// Parts that the longest of the key ranges is divided into, where nobody asks for a number.
uint32_t automaticSplits(const FlashDecodeTuning& tuning, const DeviceProfile& profile, uint64_t threadgroups,
                         uint64_t longest);
// At most `splits` parts of `keys` keys, none of them empty.
uint32_t withoutEmptySplits(uint64_t splits, uint64_t keys);
// Keys of each part but the last.
uint64_t splitKeys(uint64_t keys, uint64_t splits);

}  // namespace mnk
