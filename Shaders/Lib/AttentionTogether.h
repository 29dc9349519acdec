// Merging in the dispatch that attends: threadgroups store their parts of rows and count themselves, and the one that
// counts last finds all parts stored. It merges and finishes the rows of all.
#pragma once
#include "AttentionFinish.h"
#include "AttentionRows.h"

#if MNK_HAS_DEVICE_FENCES

// Whether this threadgroup is the last of `parts` that store parts of the same rows; then it can read what they have
// stored. `arrived` was 0 before the first. Fences stand on both sides of the count, in each thread: what a thread of
// any threadgroup has stored before comes before what a thread of the last one loads afterwards.
inline bool arrivesLast(device atomic_uint* arrived, uint parts, threadgroup uint* count, bool isFirstThread) {
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  threadgroup_barrier(mem_flags::mem_threadgroup);  // all threads have stored, and are done with what `count` replaces
  if (isFirstThread) {
    *count = atomic_fetch_add_explicit(arrived, 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (*count + 1u != parts) {
    return false;
  }
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  return true;
}

// Called by all threads after finishPart has stored the threadgroup's parts of up to `Rows` rows. Rows are merged by a
// simdgroup each, or by several that share the parts where there are simdgroups enough.
template <ushort Chunks, ushort Rows>
inline void finishTogether(
    constant FlashDecodeParams& p, uint sequenceIndex, uint3 place, uint firstRow, threadgroup float* pool,
    uint simdgroups, uint simdgroup, uint lane, device const float* valueMeans, device const float* sinks,
    device uchar* into, device float* logSumExp, device float* sums, device float* stats, device atomic_float* partSums,
    device atomic_float* partStats, device atomic_uint* arrived) {
  const bool isFirstThread = simdgroup == 0u && lane == 0u;
  const uint group = place.z * p.finish.kvHeads + place.y;
  if (!arrivesLast(arrived + group, p.splits, reinterpret_cast<threadgroup uint*>(pool), isFirstThread)) {
    return;
  }
  const uint headDim = p.finish.headDim;
  const uint first = lane * (4u * Chunks);
  const uint rows = min(uint(Rows), p.group * p.rows - firstRow);
  const uint sharers = max(min(simdgroups / rows, p.splits), 1u);
  threadgroup float2* poolStats = reinterpret_cast<threadgroup float2*>(pool + kFlashDecodeCountBytes / 4);
  threadgroup float* poolSums = pool + kFlashDecodeCountBytes / 4 + firstPartSum(sharers * rows);
  if (sharers > 1u) {
    const uint row = simdgroup % rows;
    const uint sharer = simdgroup / rows;
    if (sharer < sharers) {
      const ulong start = rowIndex(p, sequenceIndex, place.y, firstRow + row) * p.splits;
      const MergedRow<Chunks> merged = mergedInMemory<Chunks, atomic_float>(
          partSums + start * headDim, partStats + 2u * start, p.splits, 1, headDim, first, sharer, sharers);
      storeInThreadgroup<Chunks>(merged, poolSums, poolStats, simdgroup, headDim, first);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint row = simdgroup; row < rows; row += simdgroups) {
    const ulong index = rowIndex(p, sequenceIndex, place.y, firstRow + row);
    MergedRow<Chunks> merged;
    if (sharers > 1u) {
      merged = mergedInThreadgroup<Chunks>(poolSums + row * headDim, poolStats + row, sharers, rows, headDim, first);
    } else {
      merged = mergedInMemory<Chunks, atomic_float>(
          partSums + index * p.splits * headDim, partStats + 2u * index * p.splits, p.splits, 1, headDim, first, 0, 1);
    }
    finishRow<Chunks>(merged, p.finish, index, lane, valueMeans, sinks, into, logSumExp, sums, stats);
  }
}

#endif
