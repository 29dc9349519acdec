// The buffers of the three attention kernels, listed once. Metal binds buffers only to parameters of the kernel itself,
// so the list is a macro: it expands to these parameters, and to the struct that helpers take instead of them. A buffer
// whose function constant is false is undefined.
#pragma once
#include "../Common/MetalCompat.h"
#include "FlashDecodeTypes.h"

// clang-format off
#define MNK_ATTENTION_OPERANDS(ROW) \
  ROW(constant FlashDecodeParams&, p, buffer(kFlashDecodeParams)) \
  ROW(constant FlashDecodeSequence*, sequences, buffer(kFlashDecodeSequences)) \
  ROW(device const uchar*, queries, buffer(kFlashDecodeQueries)) \
  ROW(device const uchar*, keys, buffer(kFlashDecodeKeys)) \
  ROW(device const uchar*, values, buffer(kFlashDecodeValues)) \
  ROW(device const uchar*, keyScales, buffer(kFlashDecodeKeyScales), function_constant(kvHasQuantizedKeys)) \
  ROW(device const uchar*, valueScales, buffer(kFlashDecodeValueScales), function_constant(kvHasQuantizedValues)) \
  ROW(device const float*, keyMeans, buffer(kFlashDecodeKeyMeans), function_constant(kvHasKeyMeans)) \
  ROW(device const float*, valueMeans, buffer(kFlashDecodeValueMeans), function_constant(kvHasValueMeans)) \
  ROW(device const float*, channelScales, buffer(kFlashDecodeChannelScales), function_constant(kvHasChannelScales)) \
  ROW(device const uchar*, mask, buffer(kFlashDecodeMask), function_constant(flashHasMask)) \
  ROW(device const float*, slopes, buffer(kFlashDecodeSlopes), function_constant(flashHasSlopes)) \
  ROW(device const float*, sinks, buffer(kFlashDecodeSinks), function_constant(flashHasSinks)) \
  ROW(device uchar*, into, buffer(kFlashDecodeInto), function_constant(flashWritesResults)) \
  ROW(device float*, logSumExp, buffer(kFlashDecodeLogSumExp), function_constant(flashHasLogSumExp)) \
  ROW(device float*, sums, buffer(kFlashDecodeSums), function_constant(flashWritesSums)) \
  ROW(device float*, stats, buffer(kFlashDecodeStats), function_constant(flashWritesSums)) \
  ROW(device atomic_float*, partSums, buffer(kFlashDecodePartSums), function_constant(flashMergesInKernel)) \
  ROW(device atomic_float*, partStats, buffer(kFlashDecodePartStats), function_constant(flashMergesInKernel)) \
  ROW(device atomic_uint*, arrived, buffer(kFlashDecodeArrived), function_constant(flashMergesInKernel)) \
  ROW(constant FlashDecodeRun*, runs, buffer(kFlashDecodeRuns), function_constant(flashIsRagged))
// clang-format on

#define MNK_OPERAND_PARAMETER(type, name, ...) type name [[__VA_ARGS__]],
#define MNK_OPERAND_MEMBER(type, name, ...) type name;
#define MNK_OPERAND_NAME(type, name, ...) name,

struct AttentionOperands {
  MNK_ATTENTION_OPERANDS(MNK_OPERAND_MEMBER)
};

// The first parameters of an attention kernel, and what its operands are initialized with.
#define MNK_ATTENTION_PARAMETERS MNK_ATTENTION_OPERANDS(MNK_OPERAND_PARAMETER)
#define MNK_ATTENTION_ARGUMENTS MNK_ATTENTION_OPERANDS(MNK_OPERAND_NAME)
