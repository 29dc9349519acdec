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
  kFlashDecodeCacheType = 26,  // a FloatType, as the next three; of no meaning where the cache is coded
  kFlashDecodeQueryType = 27,
  kFlashDecodeIntoType = 28,
  kFlashDecodeMaskType = 29,
  kFlashDecodeIsAligned = 30,     // the cache's memory: vectors of 16 bytes can be loaded
  kFlashDecodeIsVectorized = 31,  // queries
  kFlashDecodeHasMask = 32,
  kFlashDecodeHasSlopes = 33,
  kFlashDecodeHasSinks = 34,
  kFlashDecodeHasSoftcap = 35,
  kFlashDecodeHasLogSumExp = 36,
  kFlashDecodeIsSplit = 37,         // rows are merged by another dispatch
  kFlashDecodeWritesPartials = 38,  // what is finished are partials
  kFlashDecodeIsCoded = 39,
  kFlashDecodeHasRowMajorMatrices = 40,
  kFlashDecodeIsVectorizedInto = 41,
  kFlashDecodeWritesResults = 42,
  kFlashDecodeWritesSums = 43,
  kFlashDecodeMergesTogether = 44,  // rows are merged by the last threadgroup that stores a part of them
  kFlashDecodeIsInOrder = 45,       // the keys of a head lie one after the other, and stay there
  kFlashDecodeHasTokens = 46,       // a sequence has several rows of queries
  kFlashDecodeIsPadded = 47,        // vectors of the cache are shorter than the instance's
  kFlashDecodeSeesPinned = 48,      // rows with a window also see pinned positions
};
