#include <cstring>
#include <span>

#include "MLXNativeKernels/KVCacheQuantize.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "Support/Check.hpp"
#include "Support/PlanBuffer.hpp"
#include "Types/FlashDecodeTypes.h"
#include "Types/HadamardTypes.h"
#include "Types/KVCacheDequantizeTypes.h"
#include "Types/KVCacheQuantizeTypes.h"
#include "Types/KVCacheWriteTypes.h"
#include "Types/MultiRoPETypes.h"

namespace mnk::test {

namespace {

// The offsets that the shader's compiler asserts on its side; the header fails to compile where they differ.
struct Field {
  const char* name;
  size_t offset;
  size_t bytes;
};
#define FIELD(type, name) \
  { #name, offsetof(type, name), sizeof(type::name) }
constexpr Field kSourceFields[] = {FIELD(CacheSource, sequenceStride), FIELD(CacheSource, tokenStride),
                                   FIELD(CacheSource, headStride)};

constexpr Field kAddressFields[] = {FIELD(CacheAddressParams, keys),
                                    FIELD(CacheAddressParams, values),
                                    FIELD(CacheAddressParams, sequenceStride),
                                    FIELD(CacheAddressParams, sequence),
                                    FIELD(CacheAddressParams, sequences),
                                    FIELD(CacheAddressParams, tokens),
                                    FIELD(CacheAddressParams, sourceStart),
                                    FIELD(CacheAddressParams, sourceLength),
                                    FIELD(CacheAddressParams, sourceSequenceLength),
                                    FIELD(CacheAddressParams, slotStride),
                                    FIELD(CacheAddressParams, cacheHeadStride),
                                    FIELD(CacheAddressParams, capacity),
                                    FIELD(CacheAddressParams, pinned),
                                    FIELD(CacheAddressParams, pinnedTokens),
                                    FIELD(CacheAddressParams, pinnedSlot),
                                    FIELD(CacheAddressParams, skippedTokens),
                                    FIELD(CacheAddressParams, firstSlot)};
constexpr Field kKVCacheWriteFields[] = {FIELD(KVCacheWriteParams, address), FIELD(KVCacheWriteParams, keyUnits),
                                         FIELD(KVCacheWriteParams, valueUnits)};
constexpr Field kCodecPlaneFields[] = {FIELD(KVCodecPlane, headDim),     FIELD(KVCodecPlane, lanes),
                                       FIELD(KVCodecPlane, simdgroups),  FIELD(KVCodecPlane, codeBytes),
                                       FIELD(KVCodecPlane, inverseRoot), FIELD(KVCodecPlane, scaleFactor)};
constexpr Field kQuantizeFields[] = {
    FIELD(KVCacheQuantizeParams, address),         FIELD(KVCacheQuantizeParams, keys),
    FIELD(KVCacheQuantizeParams, values),          FIELD(KVCacheQuantizeParams, heads),
    FIELD(KVCacheQuantizeParams, flags),           FIELD(KVCacheQuantizeParams, candidates),
    FIELD(KVCacheQuantizeParams, candidateSpacing)};
constexpr Field kDequantizeFields[] = {FIELD(KVCacheDequantizeParams, address), FIELD(KVCacheDequantizeParams, keys),
                                       FIELD(KVCacheDequantizeParams, values), FIELD(KVCacheDequantizeParams, heads),
                                       FIELD(KVCacheDequantizeParams, isOriginal)};
constexpr Field kHadamardFields[] = {FIELD(HadamardParams, length),    FIELD(HadamardParams, lanes),
                                     FIELD(HadamardParams, vectors),   FIELD(HadamardParams, signs),
                                     FIELD(HadamardParams, isInverse), FIELD(HadamardParams, inverseRoot)};
constexpr Field kFinishFields[] = {FIELD(FlashDecodeFinish, heads), FIELD(FlashDecodeFinish, kvHeads),
                                   FIELD(FlashDecodeFinish, headDim), FIELD(FlashDecodeFinish, lanes),
                                   FIELD(FlashDecodeFinish, inverseRoot)};
constexpr Field kSequenceFields[] = {FIELD(FlashDecodeSequence, sequence), FIELD(FlashDecodeSequence, hidden),
                                     FIELD(FlashDecodeSequence, length),   FIELD(FlashDecodeSequence, skipped),
                                     FIELD(FlashDecodeSequence, start),    FIELD(FlashDecodeSequence, firstKey),
                                     FIELD(FlashDecodeSequence, endKey),   FIELD(FlashDecodeSequence, splitKeys)};
constexpr Field kFlashDecodeFields[] = {FIELD(FlashDecodeParams, finish),
                                        FIELD(FlashDecodeParams, group),
                                        FIELD(FlashDecodeParams, rows),
                                        FIELD(FlashDecodeParams, firstRow),
                                        FIELD(FlashDecodeParams, allRows),
                                        FIELD(FlashDecodeParams, firstSequence),
                                        FIELD(FlashDecodeParams, rowGroups),
                                        FIELD(FlashDecodeParams, splits),
                                        FIELD(FlashDecodeParams, capacity),
                                        FIELD(FlashDecodeParams, pinned),
                                        FIELD(FlashDecodeParams, slotStride),
                                        FIELD(FlashDecodeParams, cacheHeadStride),
                                        FIELD(FlashDecodeParams, isCausal),
                                        FIELD(FlashDecodeParams, window),
                                        FIELD(FlashDecodeParams, queryScale),
                                        FIELD(FlashDecodeParams, softcap),
                                        FIELD(FlashDecodeParams, keyInverseRoot),
                                        FIELD(FlashDecodeParams, keyScaleFactor),
                                        FIELD(FlashDecodeParams, valueScaleFactor),
                                        FIELD(FlashDecodeParams, keyCodeBytes),
                                        FIELD(FlashDecodeParams, valueCodeBytes),
                                        FIELD(FlashDecodeParams, maskRowStride),
                                        FIELD(FlashDecodeParams, maskHeadStride),
                                        FIELD(FlashDecodeParams, maskSequenceStride),
                                        FIELD(FlashDecodeParams, querySequenceStride),
                                        FIELD(FlashDecodeParams, queryRowStride),
                                        FIELD(FlashDecodeParams, queryHeadStride)};
constexpr Field kReduceFields[] = {FIELD(FlashDecodeReduceParams, finish), FIELD(FlashDecodeReduceParams, parts),
                                   FIELD(FlashDecodeReduceParams, rowStride),
                                   FIELD(FlashDecodeReduceParams, partStride)};
constexpr Field kMultiRoPEFields[] = {
    FIELD(MultiRoPEParams, queries),      FIELD(MultiRoPEParams, keys),          FIELD(MultiRoPEParams, tokens),
    FIELD(MultiRoPEParams, totalTokens),  FIELD(MultiRoPEParams, headsPerGroup), FIELD(MultiRoPEParams, rotatedUnits),
    FIELD(MultiRoPEParams, pairDistance), FIELD(MultiRoPEParams, copiedOffset),  FIELD(MultiRoPEParams, copiedDistance),
    FIELD(MultiRoPEParams, axisStride),   FIELD(MultiRoPEParams, signs),         FIELD(MultiRoPEParams, firstPosition),
    FIELD(MultiRoPEParams, cosineScale),  FIELD(MultiRoPEParams, sineScale)};
constexpr Field kMultiRoPEOperandFields[] = {FIELD(MultiRoPEOperand, fromSequenceStride),
                                             FIELD(MultiRoPEOperand, fromTokenStride),
                                             FIELD(MultiRoPEOperand, fromHeadStride),
                                             FIELD(MultiRoPEOperand, intoSequenceStride),
                                             FIELD(MultiRoPEOperand, intoTokenStride),
                                             FIELD(MultiRoPEOperand, intoHeadStride),
                                             FIELD(MultiRoPEOperand, heads),
                                             FIELD(MultiRoPEOperand, headGroups)};
#undef FIELD

// Fields follow each other up to the end of the struct.
void expectNoGaps(std::span<const Field> fields, size_t bytes) {
  size_t end = 0;
  for (const Field& field : fields) {
    Context context(field.name);
    EXPECT_EQ(field.offset, end);
    end = field.offset + field.bytes;
  }
  EXPECT_EQ(end, bytes);
}

uint32_t numberAt(const std::vector<std::byte>& bytes, size_t offset) {
  uint32_t number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

}  // namespace

TEST(ParameterLayout, StructsHaveNoGapsToFill) {
  expectNoGaps(kSourceFields, sizeof(CacheSource));
  expectNoGaps(kAddressFields, sizeof(CacheAddressParams));
  expectNoGaps(kKVCacheWriteFields, sizeof(KVCacheWriteParams));
  EXPECT_EQ(sizeof(KVCacheWriteParams), 120u);
  EXPECT_EQ(alignof(KVCacheWriteParams), 8u);
  expectNoGaps(kCodecPlaneFields, sizeof(KVCodecPlane));
  expectNoGaps(kQuantizeFields, sizeof(KVCacheQuantizeParams));
  expectNoGaps(kDequantizeFields, sizeof(KVCacheDequantizeParams));
  expectNoGaps(kHadamardFields, sizeof(HadamardParams));
  expectNoGaps(kFinishFields, sizeof(FlashDecodeFinish));
  expectNoGaps(kSequenceFields, sizeof(FlashDecodeSequence));
  expectNoGaps(kFlashDecodeFields, sizeof(FlashDecodeParams));
  expectNoGaps(kReduceFields, sizeof(FlashDecodeReduceParams));
  expectNoGaps(kMultiRoPEFields, sizeof(MultiRoPEParams));
  expectNoGaps(kMultiRoPEOperandFields, sizeof(MultiRoPEOperand));
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
  // By the numbers that the shader asserts, not by the names of the struct.
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
