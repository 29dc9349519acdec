// What planning needs of a FlashDecode: its extents, its cache, and which keys the rows of a sequence see.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "FlashDecode/FlashDecodeTypes.h"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/Errors.hpp"

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

// The contract of FlashDecode: rules of its queries and its cache, then those of the shape that both have.
std::span<const Rule<HeadsView>> queryRules();
// Rules of dense caches; those of quantized caches are quantizedKVCacheRules.
std::span<const Rule<KVCacheView>> attendedCacheRules();
std::span<const Rule<AttentionShape>> attentionRules();
// The subset for the positions of sequences, without masks.
std::span<const Rule<AttentionShape>> attentionPositionRules();

// Checks the rules of queries and cache.
Result<void> checkAttendedCache(const FlashDecode& op);

// Rules for the results of ops that finish attention.
bool hasMemory(const AttentionResults& results);
bool hasOneTarget(const AttentionResults& results);
template <typename Op>
inline constexpr Rule<Op> kResultRules[] = {
    INVALID_IF(!hasOneTarget(op.results), "attention needs exactly one target",
               op.results.output ? "results and partials" : "neither results nor partials",
               "a tensor for results, or for partials", "Set exactly one of `output` and `partials`."),

    INVALID_IF(!hasMemory(op.results), "a result has no memory", "a tensor without memory", "tensors with memory",
               "Make the tensors that results go to."),
};

// Whether the tensor has these axes.
bool isShaped(const Tensor& tensor, const std::vector<uint64_t>& extents);
std::string shapeText(const std::vector<uint64_t>& extents);

// The first result whose dtype or shape does not match rows with one of these lists of axes: its description, such as
// "sums f32 [4, 8]", and what is expected.
struct MisfitResult {
  std::string got;
  std::string expected;
};
std::optional<MisfitResult> firstMisfit(const AttentionResults& results, const std::vector<std::vector<uint64_t>>& rows,
                                        uint64_t headDim);

void addTargets(std::vector<NamedRange>& targets, const AttentionResults& results);

// How a FlashDecode is divided into dispatches: the kernel, the number of splits, and the rows and sequences of each
// dispatch.

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

// A range of memory: of a tensor, or, if `buffer` is null, of the plan's scratch memory.
struct MemoryPart {
  std::shared_ptr<Buffer> buffer;
  uint64_t offset = 0;
  uint64_t length = 0;

  static MemoryPart of(const Tensor& tensor);
};

// The dispatch that merges parts of rows, of FlashDecode and of MergePartials.
struct ReduceDispatch {
  std::string_view kind;
  uint64_t rows = 0;
  uint64_t parts = 0;
  uint64_t rowStride = 0;  // in vectors
  uint64_t partStride = 0;
  uint32_t simdgroups = 0;  // at most
  FlashDecodeFinish finish = {};
  MemoryPart sums;
  MemoryPart stats;
  const QuantizedKVCacheView* quantized = nullptr;  // the cache that the parts are from
  std::optional<Tensor> sinks;
  AttentionResults results;
};
Dispatch makeReduce(const ReduceDispatch& reduce);

}  // namespace mnk
