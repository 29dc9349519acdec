// The index of every function constant. One list, because all kernels may be compiled as one text, where an index
// can have only one meaning.
#pragma once

enum FunctionConstantIndex {
  kKVCacheWriteHasValues = 0,
  kKVCacheWriteHasRows = 1,
  kKVCacheWriteRowsMayRepeat = 2,
  kKVCacheWriteIsVectorized = 3,
  kMultiRoPEHasKeys = 4,
  kMultiRoPEIsApart = 5,
  kMultiRoPEHasKeysApart = 6,
  kMultiRoPEHasPositions = 7,
  kMultiRoPEHasOffsets = 8,
  kMultiRoPEIsInterleaved = 9,
  kMultiRoPEIsVectorized = 10,
};
