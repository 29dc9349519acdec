// The parameters of the attention kernels, listed once. Metal binds buffers only to parameters of the kernel itself, so
// the lists are macros: they expand to these parameters, and to structs that helpers take instead. A buffer whose
// function constant is false is undefined.
#pragma once
#include "../Common/MetalCompat.h"
#include "FlashDecodeTypes.h"

// clang-format off
// What finishing a row needs, also in the kernel that merges parts of rows.
#define MNK_ATTENTION_OUTPUTS(ROW) \
  ROW(device const float*, valueMeans, buffer(kFlashDecodeValueMeans), function_constant(kvHasValueMeans)) \
  ROW(device const float*, sinks, buffer(kFlashDecodeSinks), function_constant(flashHasSinks)) \
  ROW(device uchar*, into, buffer(kFlashDecodeInto), function_constant(flashWritesResults)) \
  ROW(device float*, logSumExp, buffer(kFlashDecodeLogSumExp), function_constant(flashHasLogSumExp)) \
  ROW(device float*, sums, buffer(kFlashDecodeSums), function_constant(flashWritesSums)) \
  ROW(device float*, stats, buffer(kFlashDecodeStats), function_constant(flashWritesSums))
#define MNK_ATTENTION_OPERANDS(ROW) \
  ROW(constant FlashDecodeParams&, p, buffer(kFlashDecodeParams)) \
  ROW(constant FlashDecodeSequence*, sequences, buffer(kFlashDecodeSequences)) \
  ROW(device const uchar*, queries, buffer(kFlashDecodeQueries)) \
  ROW(device const uchar*, keys, buffer(kFlashDecodeKeys)) \
  ROW(device const uchar*, values, buffer(kFlashDecodeValues)) \
  ROW(device const uchar*, keyScales, buffer(kFlashDecodeKeyScales), function_constant(kvHasQuantizedKeys)) \
  ROW(device const uchar*, valueScales, buffer(kFlashDecodeValueScales), function_constant(kvHasQuantizedValues)) \
  ROW(device const float*, keyMeans, buffer(kFlashDecodeKeyMeans), function_constant(kvHasKeyMeans)) \
  ROW(device const float*, channelScales, buffer(kFlashDecodeChannelScales), function_constant(kvHasChannelScales)) \
  ROW(device const uchar*, mask, buffer(kFlashDecodeMask), function_constant(flashHasMask)) \
  ROW(device const float*, slopes, buffer(kFlashDecodeSlopes), function_constant(flashHasSlopes)) \
  ROW(constant FlashDecodeRun*, runs, buffer(kFlashDecodeRuns), function_constant(flashIsRagged)) \
  ROW(device atomic_float*, partSums, buffer(kFlashDecodePartSums), function_constant(flashMergesInKernel)) \
  ROW(device atomic_float*, partStats, buffer(kFlashDecodePartStats), function_constant(flashMergesInKernel)) \
  ROW(device atomic_uint*, arrived, buffer(kFlashDecodeArrived), function_constant(flashMergesInKernel)) \
  ROW(uint3, place, threadgroup_position_in_grid) \
  ROW(uint3, grid, threadgroups_per_grid) \
  ROW(uint, simdgroups, simdgroups_per_threadgroup) \
  ROW(uint, simdgroup, simdgroup_index_in_threadgroup) \
  ROW(uint, lane, thread_index_in_simdgroup)

#define MNK_OPERAND_MEMBER(type, name, ...) type name;
#define MNK_OPERAND_PARAMETER(type, name, ...) type name [[__VA_ARGS__]],
#define MNK_OPERAND_NAME(type, name, ...) name,
// The parameters of an attention kernel, and the initializer of its operands. The Host device allows no threadgroup
// pointer in a struct.
#define MNK_ATTENTION_PARAMETERS \
  MNK_ATTENTION_OPERANDS(MNK_OPERAND_PARAMETER) MNK_ATTENTION_OUTPUTS(MNK_OPERAND_PARAMETER) \
  threadgroup float* pool [[threadgroup_memory(0)]]
#define MNK_ATTENTION_ARGUMENTS MNK_ATTENTION_OPERANDS(MNK_OPERAND_NAME) {MNK_ATTENTION_OUTPUTS(MNK_OPERAND_NAME)}
// clang-format on

struct AttentionOutputs {
  MNK_ATTENTION_OUTPUTS(MNK_OPERAND_MEMBER)
};
struct AttentionOperands {
  MNK_ATTENTION_OPERANDS(MNK_OPERAND_MEMBER)
  AttentionOutputs out;
};
