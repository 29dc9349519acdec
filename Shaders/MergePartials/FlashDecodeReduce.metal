// Merges the parts of rows, one threadgroup per row. Its simdgroups share the parts, and the first simdgroup finishes
// the row.
#include "../FlashDecode/OnlineSoftmax.h"

template <ushort Chunks>
kernel void flashDecodeReduce(
    constant FlashDecodeReduceParams& p [[buffer(kFlashDecodeParams)]],
    device const float* partSums [[buffer(kFlashDecodePartSums)]],
    device const float* partStats [[buffer(kFlashDecodePartStats)]],
    MNK_ATTENTION_OUTPUTS(MNK_OPERAND_PARAMETER) threadgroup float* pool [[threadgroup_memory(0)]],
    uint row [[threadgroup_position_in_grid]], uint simdgroups [[simdgroups_per_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint headDim = p.finish.headDim;
  const uint lanes = p.finish.lanes;
  const ulong start = ulong(row) * p.rowStride;
  const StoredParts stored{partSums + start * headDim, partStats + 2u * start, p.partStride, flashIsAligned};
  MergedRow<Chunks> merged = mergedInMemory<Chunks, 4>(stored, p.parts, lanes, lane, simdgroup, simdgroups);
  if (simdgroups > 1u) {
    threadgroup float2* poolStats = reinterpret_cast<threadgroup float2*>(pool);
    threadgroup float* poolSums = pool + firstPartSum(simdgroups);
    storeInThreadgroup<Chunks>(merged, poolSums, poolStats, simdgroup, headDim, lane * (4u * Chunks));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup == 0u) {
      merged = mergedInThreadgroup<Chunks>(poolSums, headDim, poolStats, 1, simdgroups, lanes, lane);
    }
  }
  if (simdgroup == 0u) {
    finishRow<Chunks>(merged, p.finish, row, lane, AttentionOutputs{MNK_ATTENTION_OUTPUTS(MNK_OPERAND_NAME)});
  }
}

#define ROW(chunks) instantiate_kernel("flashDecodeReduce_" #chunks, flashDecodeReduce, chunks)
MNK_FLASH_REDUCE_INSTANCES(ROW)
#undef ROW
