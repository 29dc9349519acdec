// Merges splits in the attention dispatch itself. Each threadgroup stores its parts of rows and increments an arrival
// counter; the last to arrive finds all parts stored, merges them and finishes the rows.
#pragma once
#include "AttentionRows.h"
#include "OnlineSoftmax.h"

#if MNK_HAS_DEVICE_FENCES

// Whether this threadgroup is the last of `parts` threadgroups that store parts of the same rows. If so, it can read
// all of their parts. `arrived` starts at 0. The barriers order the accesses of a threadgroup with those of its first
// thread, and the fences of that thread order them between threadgroups.
inline bool arrivesLast(device atomic_uint* arrived, uint parts, threadgroup uint* count, bool isFirstThread) {
  // All threads have stored, and have finished with the memory that `count` reuses.
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (isFirstThread) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    *count = atomic_fetch_add_explicit(arrived, 1u, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  return *count + 1u == parts;
}

// All threads call this after finishPart has stored the threadgroup's parts of up to `Rows` rows. One simdgroup merges
// each row and has most of its loads in flight at once, which takes less time than sharing its parts.
template <ushort Chunks, ushort Rows>
MNK_SHARED void mergeInKernel(
    thread const AttentionOperands& operands, AttentionTokens tokens, uint firstRow, threadgroup float* pool) {
  constant FlashDecodeParams& p = operands.p;
  const bool isFirstThread = operands.simdgroup == 0u && operands.lane == 0u;
  const uint group = operands.place.z * p.finish.kvHeads + tokens.kvHead;
  if (!arrivesLast(operands.arrived + group, p.splits, reinterpret_cast<threadgroup uint*>(pool), isFirstThread)) {
    return;
  }
  const uint headDim = p.finish.headDim;
  const uint rows = min(uint(Rows), rowsOf(p, tokens) - firstRow);
  constexpr ushort Ahead = Chunks > 2 ? 4 : Chunks > 1 ? 8 : 16;
  for (uint row = operands.simdgroup; row < rows; row += operands.simdgroups) {
    const ulong index = rowIndex(p, tokens, firstRow + row);
    const AtomicParts parts{operands.partSums + index * p.splits * headDim, operands.partStats + 2u * index * p.splits};
    finishRow<Chunks>(
        mergedInMemory<Chunks, Ahead>(parts, p.splits, p.finish.lanes, operands.lane, 0, 1), p.finish, index,
        operands.lane, operands.out);
  }
}

#endif
