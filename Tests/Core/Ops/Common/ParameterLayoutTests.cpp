#include <cstring>
#include <span>

#include "FlashDecode/FlashDecodeTypes.h"
#include "Hadamard/HadamardTypes.h"
#include "Harness/Check.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheDequantize/KVCacheDequantizeTypes.h"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "RotaryAppend/RotaryAppendTypes.h"

namespace mnk::test {

namespace {

struct Field {
  const char* name;
  size_t offset;
  size_t bytes;
};

// Fields follow each other up to the end of the struct.
void expectNoGaps(const char* name, std::span<const Field> fields, size_t bytes) {
  Context context(name);
  size_t end = 0;
  for (const Field& field : fields) {
    Context context(field.name);
    EXPECT_EQ(field.offset, end);
    end = field.offset + field.bytes;
  }
  EXPECT_EQ(end, bytes);
}

#define FIELD(type, name) {#name, offsetof(Struct, name), sizeof(Struct::name)},
#define EXPECT_NO_GAPS(name, FIELDS)             \
  {                                              \
    using Struct = name;                         \
    const Field fields[] = {FIELDS(FIELD)};      \
    expectNoGaps(#name, fields, sizeof(Struct)); \
  }

uint32_t numberAt(const std::vector<std::byte>& bytes, size_t offset) {
  uint32_t number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

}  // namespace

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

TEST(ParameterLayout, APlanOfKVCacheWriteCarriesTheBytesOfTheStruct) {
  const KVCacheWrite op{.keys = planTensor(DType::f16, {5, 2, 8}),
                        .into = {.keys = planTensor(DType::f16, {3, 2, 7, 8}), .wrap = KVWrap::ring, .pinned = 1},
                        .sequence = 2,
                        .position = 4};
  const Plan planned = REQUIRE(plan(op));
  const InlineBytes& params = planned.dispatches.at(0).inlines.at(0);
  EXPECT_EQ(params.index, static_cast<uint32_t>(kKVCacheWriteParams));
  EXPECT_EQ(params.bytes.size(), sizeof(KVCacheWriteParams));
  // By the offsets of the shader, not by the names of the struct.
  EXPECT_EQ(numberAt(params.bytes, 0), 10u);   // keys, in units of 16 bytes: sequences apart
  EXPECT_EQ(numberAt(params.bytes, 8), 2u);    // tokens
  EXPECT_EQ(numberAt(params.bytes, 16), 1u);   // heads
  EXPECT_EQ(numberAt(params.bytes, 56), 2u);   // sequence
  EXPECT_EQ(numberAt(params.bytes, 64), 5u);   // tokens
  EXPECT_EQ(numberAt(params.bytes, 68), 0u);   // sourceStart
  EXPECT_EQ(numberAt(params.bytes, 80), 1u);   // slotStride
  EXPECT_EQ(numberAt(params.bytes, 88), 7u);   // capacity
  EXPECT_EQ(numberAt(params.bytes, 92), 1u);   // pinned
  EXPECT_EQ(numberAt(params.bytes, 108), 4u);  // firstSlot
  EXPECT_EQ(numberAt(params.bytes, 112), 1u);  // keyUnits, of 16 bytes
}

TEST(ParameterLayout, APlanOfKVCacheQuantizeCarriesTheBytesOfTheStruct) {
  const KVCacheQuantize op{.keys = planTensor(DType::f16, {5, 3, 128}),
                           .values = planTensor(DType::f16, {5, 3, 64}),
                           .into = {.keys = {.codec = {.bits = 5},
                                             .codes = planTensor(DType::u8, {3, 7, 80}),
                                             .scales = planTensor(DType::f16, {3, 7})},
                                    .values = QuantizedKVPlane{.codec = {.bits = 3},
                                                               .codes = planTensor(DType::u8, {3, 7, 24}),
                                                               .scales = planTensor(DType::f16, {3, 7})}},
                           .position = 2,
                           .options = {.candidates = 17, .nonFinite = KVNonFinite::propagate}};
  const Plan planned = REQUIRE(plan(op));
  const InlineBytes& params = planned.dispatches.at(0).inlines.at(0);
  EXPECT_EQ(params.index, static_cast<uint32_t>(kKVCacheQuantizeParams));
  EXPECT_EQ(params.bytes.size(), sizeof(KVCacheQuantizeParams));
  EXPECT_EQ(numberAt(params.bytes, 8), 384u);                // keys: tokens apart
  EXPECT_EQ(numberAt(params.bytes, 24 + 8), 192u);           // values: tokens apart
  EXPECT_EQ(numberAt(params.bytes, 64), 5u);                 // tokens
  EXPECT_EQ(numberAt(params.bytes, 112), 128u);              // head dim of keys
  EXPECT_EQ(numberAt(params.bytes, 116), 32u);               // lanes of a key
  EXPECT_EQ(numberAt(params.bytes, 120), 3u);                // simdgroups, one key each
  EXPECT_EQ(numberAt(params.bytes, 124), 80u);               // bytes of its codes
  EXPECT_EQ(numberAt(params.bytes, 136 + 4), 16u);           // lanes of a value
  EXPECT_EQ(numberAt(params.bytes, 136 + 8), 2u);            // simdgroups, two values each
  EXPECT_EQ(numberAt(params.bytes, 136 + 16), 0x3e000000u);  // 1 / sqrt(64)
  EXPECT_EQ(numberAt(params.bytes, 160), 3u);                // heads
  EXPECT_EQ(numberAt(params.bytes, 164), 5u);                // unbiased keys, NaN goes on
  EXPECT_EQ(numberAt(params.bytes, 168), 17u);               // candidates
  EXPECT_EQ(numberAt(params.bytes, 172), 0x3e800000u);       // spacing, a quarter
}

TEST(ParameterLayout, APlanOfMultiRoPECarriesTheBytesOfTheStruct) {
  const MultiRoPE op{.queries = planTensor(DType::f32, {2, 3, 5, 16}),
                     .keys = HeadsView(planTensor(DType::f32, {2, 7, 3, 16}), KVLayout::headMajor),
                     .rotatedQueries = planTensor(DType::f16, {2, 3, 5, 16}),
                     .rotatedKeys = planTensor(DType::f16, {2, 3, 7, 16}),
                     .positions = -9,
                     .rotary = {.ropeDim = 8, .isInverse = true}};
  const Plan planned = REQUIRE(plan(op));
  const InlineBytes& params = planned.dispatches.at(0).inlines.at(0);
  EXPECT_EQ(params.index, static_cast<uint32_t>(kMultiRoPEParams));
  EXPECT_EQ(params.bytes.size(), sizeof(MultiRoPEParams));
  EXPECT_EQ(numberAt(params.bytes, 0), 240u);                         // queries: sequences apart
  EXPECT_EQ(numberAt(params.bytes, 8), 80u);                          // tokens
  EXPECT_EQ(numberAt(params.bytes, 16), 16u);                         // heads
  EXPECT_EQ(numberAt(params.bytes, 48), 5u);                          // heads
  EXPECT_EQ(numberAt(params.bytes, 56 + 8), 16u);                     // keys: tokens apart
  EXPECT_EQ(numberAt(params.bytes, 56 + 16), 48u);                    // heads
  EXPECT_EQ(numberAt(params.bytes, 56 + 32), 112u);                   // tokens of the result
  EXPECT_EQ(numberAt(params.bytes, 112), 3u);                         // tokens
  EXPECT_EQ(numberAt(params.bytes, 116), 6u);                         // of all sequences
  EXPECT_EQ(numberAt(params.bytes, 124), 1u);                         // rotatedUnits, of four pairs
  EXPECT_EQ(numberAt(params.bytes, 128), 4u);                         // pairDistance
  EXPECT_EQ(numberAt(params.bytes, 148), static_cast<uint32_t>(-9));  // firstPosition
  EXPECT_EQ(numberAt(params.bytes, 152), 0x3f800000u);                // cosineScale
  EXPECT_EQ(numberAt(params.bytes, 156), 0xbf800000u);                // sineScale
}

}  // namespace mnk::test
