// How a FlashDecode is cut into dispatches: which kernel, how many splits, which rows and sequences each dispatch has.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "FlashDecode/FlashDecodeTypes.h"
#include "MLXNativeKernels/FlashDecode.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/FlashDecode/FlashDecodeShape.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Ops/FlashDecode/MeasuredTuning.hpp"

namespace mnk {

// A choice that was measured, of the kernel that is wanted; it takes the place of the table.
using MeasuredChoice = std::optional<FlashDecodeChoice>;

// Whether the matrix kernel may be chosen where the caller names no kernel.
bool mayUseMatrices(const FlashDecode& op);
// Whether the matrix kernel is the one to use on such a device, if it has matrices.
bool wantsMatrices(const FlashDecode& op, const DeviceProfile& profile, const MeasuredChoice& measured = {});
// Whether all rows are to be attended with in one dispatch by the prefill kernel, if the device has matrices.
bool wantsPrefill(const FlashDecode& op, const DeviceProfile& profile, const MeasuredChoice& measured = {});
// Whether the kernel of a choice is one that the op can have on such a device.
bool canFollow(const FlashDecode& op, const DeviceProfile& profile, const FlashDecodeChoice& choice);
// Whether splits may be merged in the dispatch that makes them, if the device orders threadgroups.
bool mayMergeTogether(const FlashDecode& op, const DeviceProfile& profile, const MeasuredChoice& measured = {});

// Rows and sequences of one dispatch: rows from `firstRow` on of each sequence that has them.
struct FlashDecodePass {
  uint64_t firstRow = 0;
  uint64_t rows = 0;  // of a sequence, at most
  uint64_t firstSequence = 0;
  std::vector<FlashDecodeSequence> sequences;
  // Where sequences have numbers of rows: the rows of each, and its index in the op.
  std::vector<FlashDecodeRun> runs = {};
  std::vector<uint32_t> indices = {};

  const AttendedSequence& attended(const FlashDecode& op, size_t index) const {
    return op.sequences[runs.empty() ? firstSequence + index : indices[index]];
  }
  uint64_t rowsOf(size_t index) const { return runs.empty() ? rows : runs[index].rows; }
  // Rows of runs, among those of all sequences. Those that follow each other are one.
  std::vector<ElementRun> joinedRuns() const;

  // Adds what the pass reads of a plane of the cache whose vectors take `vectorBytes` bytes.
  void addReads(const FlashDecode& op, uint64_t vectorBytes, std::vector<Region>& regions) const;
  // The same for keys or values of a dense cache, which may be parts of the same vectors.
  void addDenseReads(const FlashDecode& op, bool areKeys, std::vector<Region>& regions) const;
};

// Queries that an earlier dispatch leaves in the scratch memory of the same plan, one after another: [sequences, rows,
// heads, headDim]. What attention itself needs there follows them.
struct ScratchQueries {
  uint64_t offset = 0;  // of the first, in bytes
  uint64_t bytes = 0;   // of all that attention must leave alone, a multiple of 16
};

struct FlashDecodeLayout {
  std::optional<ScratchQueries> scratchQueries = {};  // in place of the op's
  FlashDecodeTuning tuning;
  QueryShape queries;
  uint64_t keyDim = 0;
  uint64_t valueDim = 0;
  bool isLatent = false;
  uint64_t group = 0;
  uint64_t rows = 0;  // of the longest sequence in a pass
  bool usesMatrices = false;
  bool hasRowMajorMatrices = false;
  PrefillInstance prefill = {};  // with parts, where the prefill kernel is used
  VectorInstance instance = {};  // where neither is
  uint32_t rowsTogether = 0;     // of a simdgroup, or of a threadgroup of the prefill kernel
  uint32_t tileKeys = 0;         // of the matrix kernel
  uint32_t simdgroups = 0;
  uint32_t splits = 0;
  bool mergesTogether = false;  // the splits, in the dispatch that makes them
  std::vector<FlashDecodePass> passes;

  static FlashDecodeLayout of(const FlashDecode& op, const DeviceProfile& profile, const MeasuredChoice& measured = {});

  // Whether vectors are shorter than those that the kernel was made for.
  bool isPadded() const { return usesVectors() && (instance.keyDim != keyDim || instance.valueDim != valueDim); }
  bool usesPrefill() const { return prefill.parts != 0; }
  bool usesVectors() const { return !usesMatrices && !usesPrefill(); }
  FlashDecodeFinish finish(uint64_t kvHeads) const;
  // Groups of rows for each head of the cache, of a sequence with `rows` rows, and of all sequences of a pass.
  uint64_t rowGroups(uint64_t rows) const;
  uint64_t rowGroups(const FlashDecodePass& pass) const;
  uint64_t threadgroups(const FlashDecode& op) const;  // of the first rows of all sequences, for each split
  FlashDecodeChoice choice() const;
  uint32_t automaticSimdgroups(const FlashDecode& op, uint64_t longest) const;
  // For rows of a head of the cache, and at most so many simdgroups.
  void setPrefillRows(const FlashDecode& op, uint64_t headRows, uint32_t mostSimdgroups);
  std::string function() const;
  uint32_t threadgroupBytes(const FlashDecode& op, uint32_t simdgroups) const;
  // Where the results of splits lie in scratch memory, and how much they take.
  uint64_t scratchBeforeSplits() const { return scratchQueries ? scratchQueries->bytes : 0; }
  uint64_t statsBytes() const { return queries.vectors() * splits * 2 * sizeof(float); }
  uint64_t sumsBytes() const { return queries.vectors() * splits * valueDim * sizeof(float); }
  // Counts what a dispatch of the prefill kernel reads of the cache as often as a threadgroup has rows that see it.
  void countReadsAgain(const FlashDecode& op, const FlashDecodePass& pass, Dispatch& dispatch) const;
  // Bytes of the counts of threadgroups, for a pass that merges its splits itself.
  uint64_t countBytes(const FlashDecode& op, const FlashDecodePass& pass) const;
};

// The device's profile, for an op that breaks no rule and is not empty. The device is probed if the plan depends on it.
DeviceProfile profileFor(const FlashDecode& op, Device& device);
// The layout on a device, for an op that breaks no rule and is not empty: as `choice` says, or else as was measured on
// the device, or else as its row of the table says.
Result<FlashDecodeLayout> layoutFor(const FlashDecode& op, const DeviceProfile& profile, MeasuredChoice choice = {});
// On a device, or on any where there is none. Of the op's queries dtype and extents count, not their memory.
Result<Plan> plan(const FlashDecode& op, const ScratchQueries& queries, Device* device);
// What runs with such a choice.
Result<Plan> planAs(const FlashDecode& op, const DeviceProfile& profile, const FlashDecodeChoice& choice);

// Threadgroup memory in which `parts` parts of rows are merged: stats, then sums where float4s can be loaded.
uint64_t mergingBytes(uint64_t parts, uint64_t headDim);

// float4s of a row that a lane holds when a kernel made for this head dim finishes it. A kernel may also serve shorter
// rows, which fewer lanes hold then.
uint32_t finishChunks(uint64_t headDim);
FlashDecodeFinish finishOf(uint64_t heads, uint64_t kvHeads, uint64_t headDim, uint32_t chunks);

}  // namespace mnk
