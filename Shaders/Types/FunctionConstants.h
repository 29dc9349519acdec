// The index of every function constant. One list, because all kernels may be compiled as one text, where an index
// can have only one meaning.
#pragma once

enum FunctionConstantIndex {
  kKVCacheHasValues = 0,
  kKVCacheHasRows = 1,
  kKVCacheRowsMayRepeat = 2,
  kKVCacheWriteIsVectorized = 3,
  kMultiRoPEHasKeys = 4,
  kMultiRoPEIsApart = 5,
  kMultiRoPEHasKeysApart = 6,
  kMultiRoPEHasPositions = 7,
  kMultiRoPEHasOffsets = 8,
  kMultiRoPEIsInterleaved = 9,
  kMultiRoPEIsVectorized = 10,
  kKVCodecIsTurbo = 11,
  kKVCodecKeyBits = 12,
  kKVCodecValueBits = 13,
  kKVCodecElementType = 14,  // of the side that is not coded: a FloatType
  kKVCodecIsVectorized = 15,
  kKVCodecHasKeyMeans = 16,
  kKVCodecHasValueMeans = 17,
  kKVCodecHasChannelScales = 18,
  kKVCacheQuantizeStoresWords = 19,
  kKVCacheQuantizeHasCounts = 20,
  kKVCacheQuantizeHasProbe = 21,
  kHadamardFromType = 22,
  kHadamardIntoType = 23,
  kHadamardIsApart = 24,
  kHadamardIsVectorized = 25,
};
