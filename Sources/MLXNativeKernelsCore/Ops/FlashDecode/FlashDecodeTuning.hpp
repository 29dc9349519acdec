// The FlashDecode tuning table: one row per device family, with its rationale. `prepare` can measure instead, and
// `bench decode --tune` shows the gain over the table.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"

namespace mnk {

struct FlashDecodeTuning {
  std::string_view family;        // of DeviceProfile
  uint32_t vectorSimdgroups = 8;  // of a threadgroup
  uint32_t matrixSimdgroups = 8;
  uint32_t longMatrixSimdgroups = 0;  // over 4 bits, if splits have at least 2,048 keys
  uint32_t reduceSimdgroups = 8;
  uint32_t threadgroupsPerCore = 1;  // target, unless splits would have fewer than minSplitKeys keys
  uint32_t longVectorFactor = 1;     // of that, for the vector kernel over vectors padded to 128 or 256, or of 512
  bool fillsCores = false;           // rounds the number of splits up
  uint32_t minSplitKeys = 64;
  uint32_t denseMatrixRows = UINT32_MAX;      // rows from which the matrix kernel is faster, for dense f16 caches
  uint32_t quantizedMatrixRows = UINT32_MAX;  // the same for quantized caches
  uint32_t maxVectorRows = 8;                 // maximum rows per simdgroup of the vector kernel
  uint32_t maxMatrixRows = 8;                 // maximum rows per simdgroup of the matrix kernel
  uint32_t matrixHeadDim = 256;               // maximum head dim for which the matrix kernel is selected
  uint32_t denseMatrixTile = 2048;            // maximum elements in its key tiles
  uint32_t quantizedMatrixTile = 2048;
  uint32_t minMatrixKeys = 8;     // of a key tile, however long its vectors are
  uint32_t matrixTableBits = 14;  // log2 of the bytes of its codebook tables in threadgroup memory: 14 or 15
  // Maximum number of splits for an in-kernel merge, if the device supports it.
  uint32_t maxInKernelSplits = 0;
  // Minimum rows per sequence for the prefill kernel, if it supports the head dim.
  uint32_t minPrefillRows = FlashDecode::kRowsPerPass + 1;
  uint32_t prefillSimdgroups = 12;
  uint32_t maxPrefillBlocks = 2;  // maximum blocks of eight rows per simdgroup of the prefill kernel
  // Minimum group rows for the prefill kernel over a latent cache. The vector kernel would read the cache once per row.
  uint32_t minLatentRows = 2;
  uint32_t cores = 16;  // if the device does not report it
  // Whether to use the instances of the vector kernel in which few lanes share a vector; Host device only.
  bool sharesAmongFewLanes = false;
};

const FlashDecodeTuning& tuningFor(const DeviceProfile& profile);

// Whether a kernel supports these head dims, for a dense, quantized or latent cache, and a text that lists the
// supported ones.
bool hasAttentionKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized, bool isLatent);
std::string attentionDimsText(bool isQuantized, bool isLatent);

// The vector kernel instance for `rows` group rows: with these head dims, or the smallest ones that they fit in. A
// quantized cache needs a power of two, the same for keys and values. `rows` is 0 if there is no such instance.
struct AttentionInstance {
  uint32_t keyDim = 0;
  uint32_t valueDim = 0;
  uint32_t rows = 0;  // computed per simdgroup
};
AttentionInstance vectorInstance(const FlashDecodeTuning& tuning, uint64_t keyDim, uint64_t valueDim, uint64_t rows,
                                 bool isQuantized, bool isLatent);

// Instances of the matrix kernel.
struct MatrixInstance {
  uint32_t headDim = 0;
  uint32_t rows = 0;  // computed per simdgroup
  uint32_t keys = 0;  // of a tile
};
std::span<const MatrixInstance> matrixInstances();
// The head dim of the instances that compute vectors of `headDim` elements, or 0 if there are none. Codes can be
// padded.
uint32_t matrixDim(uint64_t headDim, bool isQuantized);
// The matrix kernel instance for `rows` group rows: the rows per simdgroup, and the keys of a tile, at most `mostKeys`
// if such a tile exists.
uint32_t matrixRows(const FlashDecodeTuning& tuning, uint64_t headDim, uint64_t rows);
uint32_t matrixTileKeys(uint64_t headDim, uint32_t instanceRows, uint64_t mostKeys);

// The prefill kernel instance for a head dim, with f16 or f32 tiles and at most `maxBlocks` blocks of rows. `parts` is
// 0 if there is none.
struct PrefillInstance {
  bool isHalf = false;
  uint32_t dim = 0;        // elements of a row that a simdgroup has
  uint32_t extra = 0;      // further elements of its query, over a latent cache
  uint32_t rowBlocks = 0;  // blocks of eight rows per simdgroup
  uint32_t keys = 0;       // of a tile
  uint32_t parts = 0;      // simdgroups that share rows

  bool operator==(const PrefillInstance&) const = default;
};
PrefillInstance prefillInstance(uint64_t keyDim, uint64_t valueDim, bool isHalf, bool isLatent,
                                uint32_t maxBlocks = UINT32_MAX);

// What the device reports, or the estimate of the table.
uint64_t coresOf(const FlashDecodeTuning& tuning, const DeviceProfile& profile);
// The number of splits for the longest key range if the caller does not set one.
uint32_t automaticSplits(const FlashDecodeTuning& tuning, const DeviceProfile& profile, uint64_t threadgroups,
                         uint64_t longest);
// At most `splits` parts of `keys` keys, none of them empty.
uint32_t withoutEmptySplits(uint64_t splits, uint64_t keys);
// Keys of each part but the last.
uint64_t splitKeys(uint64_t keys, uint64_t splits);

// The measured choices for FlashDecode on one device.
struct AttentionShape;

// How a FlashDecode runs, unless the caller sets it.
struct FlashDecodeChoice {
  bool usesMatrices = false;
  bool usesPrefill = false;  // by the prefill kernel, which few rows take over a latent cache alone
  uint32_t rowsPerTile = 0;  // of the matrix and the prefill kernel: rows of a simdgroup, and keys of a tile
  uint32_t tileKeys = 0;
  uint32_t simdgroups = 0;  // of a threadgroup
  uint32_t splits = 0;
  bool mergesInKernel = false;

  bool operator==(const FlashDecodeChoice&) const = default;
  std::string text() const;  // "matrix 8x16, 8 simdgroups, 16 splits, merged together"
};

// What the speed of a FlashDecode depends on besides the device.
struct FlashDecodeWorkload {
  std::string storage;  // "f16", "turbo4:3" for keys of 4 bits and values of 3, "f16:turbo4" for dense keys
  DType queries = DType::f16;
  uint64_t keyDim = 0;
  uint64_t valueDim = 0;
  uint64_t rows = 0;      // of each head of the cache: heads of its group, times tokens
  bool isPrompt = false;  // in one dispatch of the prefill kernel; then tokens are rounded up to a power of two
  uint64_t heads = 0;     // of the cache, in all sequences
  uint64_t keys = 0;      // of the longest sequence

  static FlashDecodeWorkload of(const AttentionShape& shape, bool isPrompt = false);
  auto operator<=>(const FlashDecodeWorkload&) const = default;
  std::string text() const;  // "turbo4:4, head dim 128, 4 rows of f16, 8 heads, 4096 keys"
};

class MeasuredTuning {
 public:
  // The choice for the nearest measured workload that has half to twice the number of keys and is otherwise equal.
  std::optional<FlashDecodeChoice> find(const FlashDecodeWorkload& workload) const;
  void set(const FlashDecodeWorkload& workload, const FlashDecodeChoice& choice);
  // Adds the choices of `other` for new workloads.
  void add(const MeasuredTuning& other) { choices_.insert(other.choices_.begin(), other.choices_.end()); }
  size_t size() const { return choices_.size(); }
  bool operator==(const MeasuredTuning&) const = default;

  // One line for each workload.
  std::string lines() const;
  // Parses the output of `lines`. Returns nullopt if the text is malformed or names a kernel that does not exist.
  static std::optional<MeasuredTuning> parse(std::string_view lines);

 private:
  std::map<FlashDecodeWorkload, FlashDecodeChoice> choices_;  // ordered by `keys` last
};

// Measures the fastest way to run a FlashDecode on a device.
struct MeasuredFlashDecode {
  FlashDecodeWorkload workload;
  FlashDecodeChoice planned;  // without any measurement
  FlashDecodeChoice fastest;
  double plannedSeconds = 0;  // of one call
  double fastestSeconds = 0;
  uint64_t candidates = 0;
};

// `ops` is not empty. All ops have the same workload but different KV caches: they run in rotation, so that no op finds
// its data in the GPU's caches. Results are overwritten. No further candidate is tried after `budget` seconds of device
// time.
Result<MeasuredFlashDecode> measureFlashDecode(const std::shared_ptr<Device>& device, std::span<const FlashDecode> ops,
                                               double budget);

}  // namespace mnk
