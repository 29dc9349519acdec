// The index of every function constant. One list, because all kernels may be compiled as one text, where an index
// can have only one meaning.
#pragma once

enum FunctionConstantIndex {
  kKVCacheWriteHasValues = 0,
  kKVCacheWriteHasRows = 1,
  kKVCacheWriteRowsMayRepeat = 2,
  kKVCacheWriteIsVectorized = 3,
  kMultiRoPEHasKeys = 4,
  kMultiRoPEHasPositions = 5,
  kMultiRoPEHasAxes = 6,
  kMultiRoPEHasOffsets = 7,
  kMultiRoPEIsInterleaved = 8,
  kMultiRoPEIsVectorized = 9,
};
