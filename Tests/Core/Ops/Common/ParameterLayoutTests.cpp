// The structs that carry the parameters of kernels have the same layout in every compiler.
#include "FlashDecode/FlashDecodeTypes.h"
#include "Hadamard/HadamardTypes.h"
#include "Harness/Check.hpp"
#include "KVCacheDequantize/KVCacheDequantizeTypes.h"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "MultiRoPE/MultiRoPETypes.h"
#include "RotaryAppend/RotaryAppendTypes.h"

namespace mnk::test {

// Fields as long together as their struct leave no gaps between them, and none at its end.
#define BYTES(type, name) +sizeof(Struct::name)
#define EXPECT_NO_GAPS(name, FIELDS)          \
  {                                           \
    using Struct = name;                      \
    const Context context(#name);             \
    EXPECT_EQ(FIELDS(BYTES), sizeof(Struct)); \
  }

TEST(ParameterLayout, StructsHaveNoGapsToFill) {
  EXPECT_NO_GAPS(CacheSource, MNK_CACHE_SOURCE);
  EXPECT_NO_GAPS(CacheAddressParams, MNK_CACHE_ADDRESS_PARAMS);
  EXPECT_NO_GAPS(KVCacheWriteParams, MNK_KV_CACHE_WRITE_PARAMS);
  EXPECT_NO_GAPS(KVCodecPlane, MNK_KV_CODEC_PLANE);
  EXPECT_NO_GAPS(KVCacheQuantizeParams, MNK_KV_CACHE_QUANTIZE_PARAMS);
  EXPECT_NO_GAPS(KVCacheDequantizeParams, MNK_KV_CACHE_DEQUANTIZE_PARAMS);
  EXPECT_NO_GAPS(HadamardParams, MNK_HADAMARD_PARAMS);
  EXPECT_NO_GAPS(FlashDecodeFinish, MNK_FLASH_DECODE_FINISH);
  EXPECT_NO_GAPS(FlashDecodeSequence, MNK_FLASH_DECODE_SEQUENCE);
  EXPECT_NO_GAPS(FlashDecodeParams, MNK_FLASH_DECODE_PARAMS);
  EXPECT_NO_GAPS(FlashDecodeReduceParams, MNK_FLASH_DECODE_REDUCE_PARAMS);
  EXPECT_NO_GAPS(RotaryFrequency, MNK_ROTARY_FREQUENCY);
  EXPECT_NO_GAPS(MultiRoPEOperand, MNK_MULTI_ROPE_OPERAND);
  EXPECT_NO_GAPS(MultiRoPEParams, MNK_MULTI_ROPE_PARAMS);
  EXPECT_NO_GAPS(RotaryAppendParams, MNK_ROTARY_APPEND_PARAMS);
  EXPECT_EQ(sizeof(KVCacheWriteParams), 120u);
  EXPECT_EQ(alignof(KVCacheWriteParams), 8u);
  EXPECT_EQ(sizeof(MultiRoPEParams), 160u);
  EXPECT_EQ(alignof(MultiRoPEParams), 8u);
}

}  // namespace mnk::test
