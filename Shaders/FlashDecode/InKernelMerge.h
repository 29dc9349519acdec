// Merges splits in the attention dispatch itself. Each threadgroup stores its parts of rows and increments an arrival
// counter; the last to arrive finds all parts stored, merges them and finishes the rows.
#pragma once
#include "AttentionFinish.h"
#include "AttentionRows.h"

#if MNK_HAS_DEVICE_FENCES

// Whether this threadgroup is the last of `parts` threadgroups that store parts of the same rows. If so, it can read
// all of their parts. `arrived` starts at 0. Every thread issues a fence before and after the count, so that all stores
// of all threadgroups happen before the loads of the last one.
inline bool arrivesLast(device atomic_uint* arrived, uint parts, threadgroup uint* count, bool isFirstThread) {
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  // All threads have stored, and have finished with the memory that `count` reuses.
  threadgroup_barrier(mem_flags::mem_threadgroup);
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

// All threads call this after finishPart has stored the threadgroup's parts of up to `Rows` rows. One simdgroup merges
// each row, or several share its parts if there are more simdgroups than rows.
template <ushort Chunks, ushort Rows>
MNK_SHARED void mergeInKernel(
    constant FlashDecodeParams& p, AttentionTokens tokens, uint3 place, uint firstRow, threadgroup float* pool,
    uint simdgroups, uint simdgroup, uint lane, AttentionOutputs out) {
  const bool isFirstThread = simdgroup == 0u && lane == 0u;
  const uint group = place.z * p.finish.kvHeads + place.y;
  if (!arrivesLast(out.arrived + group, p.splits, reinterpret_cast<threadgroup uint*>(pool), isFirstThread)) {
    return;
  }
  const uint headDim = p.finish.headDim;
  const uint lanes = p.finish.lanes;
  const uint rows = min(uint(Rows), p.group * tokens.count - firstRow);
  uint rowBits = 0;  // log2 of the rows, rounded up; avoids a slow division
  while (1u << rowBits < rows) {
    ++rowBits;
  }
  const uint sharers = min(simdgroups >> rowBits, p.splits);
  const uint sharer = sharers > 1u ? simdgroup >> rowBits : 0u;
  const uint step = sharers > 1u ? 1u << rowBits : simdgroups;
  threadgroup float2* poolStats = reinterpret_cast<threadgroup float2*>(pool + kFlashDecodeCountBytes / 4);
  threadgroup float* poolSums = pool + kFlashDecodeCountBytes / 4 + firstPartSum(sharers * rows);
  constexpr ushort Ahead = Chunks > 2 ? 4 : 8;
  for (uint row = sharers > 1u ? simdgroup % step : simdgroup; row < rows; row += step) {
    const ulong index = rowIndex(p, tokens, place.y, firstRow + row);
    const AtomicParts parts{out.partSums + index * p.splits * headDim, out.partStats + 2u * index * p.splits};
    if (sharers > 1u && sharer < sharers) {
      storeInThreadgroup<Chunks>(
          mergedInMemory<Chunks, Ahead>(parts, p.splits, lanes, lane, sharer, sharers), poolSums, poolStats,
          sharer * rows + row, headDim, lane * (4u * Chunks));
    } else if (sharers < 2u) {
      finishRow<Chunks>(mergedInMemory<Chunks, Ahead>(parts, p.splits, lanes, lane, 0, 1), p.finish, index, lane, out);
    }
  }
  if (sharers < 2u) {
    return;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup < rows) {
    finishRow<Chunks>(
        mergedInThreadgroup<Chunks>(
            poolSums + simdgroup * headDim, rows * headDim, poolStats + simdgroup, rows, sharers, lanes, lane),
        p.finish, rowIndex(p, tokens, place.y, firstRow + simdgroup), lane, out);
  }
}

#endif
