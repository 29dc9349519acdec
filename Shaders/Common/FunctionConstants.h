// All function constants: the op or group of ops, the name, and the index. They are in one list because all kernels may
// be compiled as one translation unit, in which an index must be unique.
#pragma once

// clang-format off
#define MNK_FUNCTION_CONSTANTS(ROW) \
  ROW(KVCache, HasValues, 0) \
  ROW(KVCache, HasRows, 1) \
  ROW(KVCache, RowsMayRepeat, 2) \
  ROW(KVCacheWrite, IsVectorized, 3) \
  ROW(MultiRoPE, HasKeys, 4) \
  ROW(MultiRoPE, IsOutOfPlace, 5) \
  ROW(MultiRoPE, HasKeysOutOfPlace, 6) \
  ROW(MultiRoPE, HasPositions, 7) \
  ROW(MultiRoPE, HasOffsets, 8) \
  ROW(MultiRoPE, IsInterleaved, 9) \
  ROW(MultiRoPE, IsVectorized, 10) \
  ROW(KVCodec, IsTurbo, 11) \
  ROW(KVCodec, KeyBits, 12) \
  ROW(KVCodec, ValueBits, 13) \
  ROW(KVCodec, ElementType, 14) /* a FloatType, of the tensors outside the cache */ \
  ROW(KVCodec, IsVectorized, 15) \
  ROW(KVCodec, HasKeyMeans, 16) \
  ROW(KVCodec, HasValueMeans, 17) \
  ROW(KVCodec, HasChannelScales, 18) \
  ROW(KVCodec, HasAlignedCodes, 19) \
  ROW(KVCacheQuantize, HasCounts, 20) \
  ROW(KVCacheQuantize, HasProbe, 21) \
  ROW(Hadamard, FromType, 22) \
  ROW(Hadamard, IntoType, 23) \
  ROW(Hadamard, IsOutOfPlace, 24) \
  ROW(Hadamard, IsVectorized, 25) \
  ROW(FlashDecode, CacheType, 26) /* a FloatType, as the next three; unused if keys and values are quantized */ \
  ROW(FlashDecode, QueryType, 27) \
  ROW(FlashDecode, IntoType, 28) \
  ROW(FlashDecode, MaskType, 29) \
  ROW(FlashDecode, IsAligned, 30) /* the cache, and queries of the matrix kernel: 16-byte loads are legal */ \
  ROW(FlashDecode, IsVectorized, 31) /* queries */ \
  ROW(FlashDecode, HasMask, 32) \
  ROW(FlashDecode, HasSlopes, 33) \
  ROW(FlashDecode, HasSinks, 34) \
  ROW(FlashDecode, HasSoftcap, 35) \
  ROW(FlashDecode, HasLogSumExp, 36) \
  ROW(FlashDecode, IsSplit, 37) /* rows are merged by another dispatch */ \
  ROW(FlashDecode, WritesPartials, 38) /* the op's results are partials */ \
  ROW(KVCodec, HasQuantizedKeys, 39) /* otherwise keys are dense */ \
  ROW(FlashDecode, HasRowMajorMatrices, 40) \
  ROW(FlashDecode, IsVectorizedInto, 41) \
  ROW(FlashDecode, WritesResults, 42) \
  ROW(FlashDecode, WritesSums, 43) \
  ROW(FlashDecode, MergesInKernel, 44) /* rows are merged by the last threadgroup that stores a part of them */ \
  ROW(FlashDecode, IsInOrder, 45) /* the keys of a head are contiguous and never wrap */ \
  ROW(FlashDecode, HasTokens, 46) /* a sequence has several rows of queries */ \
  ROW(FlashDecode, IsPadded, 47) /* cached vectors are shorter than the kernel instance's */ \
  ROW(FlashDecode, SeesPinned, 48) /* rows with a window also see pinned positions */ \
  ROW(KVCodec, KeyDim, 49) /* elements of a vector */ \
  ROW(KVCodec, ValueDim, 50) \
  ROW(FlashDecode, TableBits, 51) /* the matrix kernel's codebook tables take two to this power bytes */ \
  ROW(RotaryAppend, QueryType, 52) \
  ROW(RotaryAppend, KeyType, 53) /* of values too */ \
  ROW(RotaryAppend, CacheType, 54) \
  ROW(KVCacheQuantize, AppliesRoPE, 55) /* applies RoPE to keys, and to queries out of place */ \
  ROW(FlashDecode, SimdgroupsPerRow, 56) /* simdgroups of the prefill kernel that share rows */ \
  ROW(KVCodec, HasQuantizedValues, 57) \
  ROW(KVCodec, DenseType, 58) /* of keys or values that are stored as elements: a FloatType */ \
  ROW(FlashDecode, IsOneTensor, 59) /* a key of a latent cache follows its value in the same vector */ \
  ROW(FlashDecode, IsRagged, 60) /* sequences have unequal numbers of rows */ \
  ROW(KVCodec, IsUnrotated, 61) /* mlx1Unrotated: neither signs nor transform */ \
  ROW(KVCodec, IsAffine, 62) /* mlx1Affine4: evenly spaced codebook entries, no signs */ \
  ROW(KVCacheQuantize, HasSearch, 63) /* turbo tries several divisors */
// clang-format on

#define ROW(op, name, index) k##op##name = index,
enum FunctionConstantIndex { MNK_FUNCTION_CONSTANTS(ROW) };
#undef ROW
