// How a FlashDecode is divided into dispatches: the kernel, the number of splits, and the rows and sequences of each
// dispatch.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "FlashDecode/FlashDecodeTypes.h"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/FlashDecode/AttentionShape.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Ops/FlashDecode/MeasuredTuning.hpp"

namespace mnk {

// A measured choice for the selected kernel, which overrides the table.
using MeasuredChoice = std::optional<FlashDecodeChoice>;

enum class AttentionKernel { vector, matrix, prefill };
// The kernel that should attend on this device if its matrix layout is known, and otherwise the vector kernel.
AttentionKernel wantedKernel(const AttentionShape& shape, const DeviceProfile& profile,
                             const MeasuredChoice& measured = {});
// What a measured choice on this device depends on.
FlashDecodeWorkload workloadOf(const AttentionShape& shape, const DeviceProfile& profile);

// Rows and sequences of one dispatch: rows from `firstRow` on of each sequence that has them.
struct FlashDecodePass {
  uint64_t firstRow = 0;
  uint64_t rows = 0;  // of a sequence, at most
  uint64_t firstSequence = 0;
  std::vector<FlashDecodeSequence> sequences;
  // If the op is ragged: the rows of each sequence, and its index in the op.
  std::vector<FlashDecodeRun> runs = {};
  std::vector<uint32_t> indices = {};

  const AttendedSequence& attended(const AttentionShape& shape, size_t index) const {
    return shape.sequences[runs.empty() ? firstSequence + index : indices[index]];
  }
  uint64_t rowsOf(size_t index) const { return runs.empty() ? rows : runs[index].rows; }
  // The rows of all runs as indices among the rows of all sequences. Adjacent runs are joined.
  std::vector<ElementRun> joinedRuns() const;

  // Adds what the pass reads of a plane of the cache whose vectors take `vectorBytes` bytes.
  void addReads(const AttentionShape& shape, uint64_t vectorBytes, std::vector<Region>& regions) const;
  // The same for keys or values of a dense cache, which may be parts of the same vectors.
  void addDenseReads(const AttentionShape& shape, bool areKeys, std::vector<Region>& regions) const;
};

struct FlashDecodeLayout {
  const AttentionShape* shape = nullptr;  // outlives the layout
  FlashDecodeTuning tuning;
  AttentionKernel kernel = AttentionKernel::vector;
  uint64_t rows = 0;  // of the longest sequence in a pass
  bool hasRowMajorMatrices = false;
  PrefillInstance prefill = {};
  AttentionInstance instance = {};  // of the vector or the matrix kernel
  uint32_t rowsPerTile = 0;         // of a simdgroup, or of a threadgroup of the prefill kernel
  uint32_t tileKeys = 0;            // of the matrix kernel
  uint32_t simdgroups = 0;
  uint32_t splits = 0;
  bool mergesInKernel = false;  // the splits, in the dispatch that makes them
  std::vector<FlashDecodePass> passes;

  static FlashDecodeLayout of(const AttentionShape& shape, const DeviceProfile& profile,
                              const MeasuredChoice& measured = {});
  static FlashDecodeLayout of(AttentionShape&&, const DeviceProfile&, const MeasuredChoice& = {}) = delete;

  // Whether cached vectors are shorter than those of the kernel instance.
  bool isPadded() const {
    return !usesPrefill() && (instance.keyDim != shape->keyDim || instance.valueDim != shape->valueDim);
  }
  // Whether a vector takes many more registers than elements of the kernel's shorter instances.
  bool isLong() const;
  bool usesVectors() const { return kernel == AttentionKernel::vector; }
  bool usesMatrices() const { return kernel == AttentionKernel::matrix; }
  bool usesPrefill() const { return kernel == AttentionKernel::prefill; }
  FlashDecodeFinish finish() const;
  // Row groups per head of the cache: of one sequence with `rows` rows, or of all sequences of a pass.
  uint64_t rowGroups(uint64_t rows) const;
  uint64_t rowGroups(const FlashDecodePass& pass) const;
  uint64_t threadgroups() const;  // of the first rows of all sequences, for each split
  FlashDecodeChoice choice() const;
  uint32_t automaticSimdgroups(uint64_t longest) const;
  // Sets the tile for the rows of a KV head, with at most `maxSimdgroups` simdgroups.
  void setPrefillRows(uint64_t headRows, uint32_t maxSimdgroups);
  // The same with the number of simdgroups for which a device with `cores` cores finishes first, if a core runs one
  // threadgroup at a time.
  void choosePrefillRows(uint64_t headRows, uint64_t cores);
  std::string function() const;
  uint32_t threadgroupBytes(uint32_t simdgroups) const;
  // Where the results of splits lie in scratch memory, and how much they take.
  uint64_t scratchBeforeSplits() const { return shape->scratchQueries ? shape->scratchQueries->bytes : 0; }
  uint64_t statsBytes() const { return shape->queryVectors() * splits * 2 * sizeof(float); }
  uint64_t sumsBytes() const { return shape->queryVectors() * splits * shape->valueDim * sizeof(float); }
  // Adds to the dispatch's byte count the cache bytes that several threadgroups of the prefill kernel read.
  void addRepeatedReads(const FlashDecodePass& pass, Dispatch& dispatch) const;
  // Bytes of the arrival counters, for a pass with an in-kernel merge.
  uint64_t countBytes(const FlashDecodePass& pass) const;
};

// The layout of a non-empty op on a device. Uses `choice` if there is one, otherwise the measured choice, otherwise the
// table.
Result<FlashDecodeLayout> layoutFor(const AttentionShape& shape, const DeviceProfile& profile,
                                    MeasuredChoice choice = {});
// The same, after a probe of the device if the kernel depends on its matrix layout.
Result<FlashDecodeLayout> layoutFor(const AttentionShape& shape, Device& device);
Result<FlashDecodeLayout> layoutFor(AttentionShape&&, const DeviceProfile&, MeasuredChoice = {}) = delete;
Result<FlashDecodeLayout> layoutFor(AttentionShape&&, Device&) = delete;
// Plans with queries in scratch memory, for any device if `device` is null. Only the dtype and the extents of the op's
// queries are used, not their memory.
Result<Plan> plan(const FlashDecode& op, const std::optional<ScratchQueries>& queries, Device* device);
// The plan with the given choice.
Result<Plan> planAs(const FlashDecode& op, const DeviceProfile& profile, const FlashDecodeChoice& choice);

// Threadgroup memory for merging `parts` parts of rows: stats, then sums, aligned to float4.
uint64_t mergingBytes(uint64_t parts, uint64_t headDim);

// float4s per lane of a row that a kernel instance for this head dim finishes. Shorter rows use fewer lanes.
uint32_t finishChunks(uint64_t headDim);
FlashDecodeFinish finishOf(uint64_t heads, uint64_t kvHeads, uint64_t headDim, uint32_t chunks);

}  // namespace mnk
