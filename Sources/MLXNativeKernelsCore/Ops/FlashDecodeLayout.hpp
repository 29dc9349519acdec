// How a FlashDecode is cut into dispatches: which kernel, how many splits, which rows and sequences each dispatch has.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "MLXNativeKernels/FlashDecode.hpp"
#include "Ops/FlashDecodeShape.hpp"
#include "Ops/FlashDecodeTuning.hpp"
#include "Types/FlashDecodeTypes.h"

namespace mnk {

// What is known of the device that runs it.
struct FlashDecodeTarget {
  DeviceProfile profile = {};
  bool hasMatrices = false;          // 8x8 matrices of simdgroups, in a layout that kernels know
  bool hasRowMajorMatrices = false;  // which layout
  bool ordersThreadgroups = false;   // or nobody has asked
};

// Whether the matrix kernel is the one to use on such a device, if it has matrices.
bool wantsMatrices(const FlashDecode& op, const DeviceProfile& profile);
// Whether splits may be merged in the dispatch that makes them, if the device orders threadgroups.
bool mayMergeTogether(const FlashDecode& op, const DeviceProfile& profile);

// Rows and sequences of one dispatch.
struct FlashDecodePass {
  uint64_t firstRow = 0;
  uint64_t rows = 0;
  uint64_t firstSequence = 0;
  std::vector<FlashDecodeSequence> sequences;
  std::vector<KeyRange> keys;  // of each sequence
};

struct FlashDecodeLayout {
  FlashDecodeTuning tuning;
  QueryShape queries;
  uint64_t keyDim = 0;
  uint64_t valueDim = 0;
  uint64_t group = 0;
  bool usesMatrices = false;
  bool hasRowMajorMatrices = false;
  VectorInstance instance = {};  // where it does not
  uint32_t rowsTogether = 0;     // of a simdgroup
  uint32_t simdgroups = 0;
  uint32_t splits = 0;
  bool mergesTogether = false;  // the splits, in the dispatch that makes them
  std::vector<FlashDecodePass> passes;

  static FlashDecodeLayout of(const FlashDecode& op, const FlashDecodeTarget& target);

  // Whether vectors are shorter than those that the kernel was made for.
  bool isPadded() const { return !usesMatrices && (instance.keyDim != keyDim || instance.valueDim != valueDim); }
  uint64_t rowGroups(const FlashDecodePass& pass) const;
  std::string function() const;
  uint32_t threadgroupBytes(const FlashDecode& op, uint32_t simdgroups) const;
  // Where the results of splits lie in scratch memory, and how much they take.
  uint64_t statsBytes() const { return queries.vectors() * splits * 2 * sizeof(float); }
  uint64_t sumsBytes() const { return queries.vectors() * splits * valueDim * sizeof(float); }
  // Bytes of the counts of threadgroups, for a pass that merges its splits itself.
  uint64_t countBytes(const FlashDecode& op, const FlashDecodePass& pass) const;
};

// Threadgroup memory in which so many parts of rows are merged: stats, then sums where float4s can be loaded.
uint64_t mergingBytes(uint64_t parts, uint64_t headDim);

// float4s of a row that a lane holds when the row is finished, and lanes that hold it.
uint32_t finishChunks(uint64_t headDim);
FlashDecodeFinish finishOf(uint64_t heads, uint64_t kvHeads, uint64_t headDim);

}  // namespace mnk
