#include <cstring>

#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "Support/Check.hpp"
#include "Support/PlanBuffer.hpp"
#include "Types/KVCacheWriteTypes.h"

namespace mnk::test {

namespace {

// The offsets that the shader's compiler asserts on its side; the header fails to compile where they differ.
struct Field {
  const char* name;
  size_t offset;
  size_t bytes;
};
#define FIELD(name) \
  { #name, offsetof(KVCacheWriteParams, name), sizeof(KVCacheWriteParams::name) }
constexpr Field kFields[] = {
    FIELD(sequenceStride), FIELD(sequence),          FIELD(sequences),        FIELD(keyUnits),    FIELD(valueUnits),
    FIELD(tokens),         FIELD(sourceTokenStride), FIELD(sourceHeadStride), FIELD(sourceStart), FIELD(sourceLength),
    FIELD(slotStride),     FIELD(cacheHeadStride),   FIELD(capacity),         FIELD(pinned),      FIELD(isRing),
    FIELD(pinnedTokens),   FIELD(pinnedSlot),        FIELD(skippedTokens),    FIELD(firstSlot)};
#undef FIELD

uint32_t numberAt(const std::vector<std::byte>& bytes, size_t offset) {
  uint32_t number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

}  // namespace

TEST(ParameterLayout, KVCacheWriteParamsHaveNoGapsToFill) {
  size_t end = 0;
  for (const Field& field : kFields) {
    Context context(field.name);
    EXPECT_EQ(field.offset, end);
    end = field.offset + field.bytes;
  }
  EXPECT_EQ(end, sizeof(KVCacheWriteParams));
  EXPECT_EQ(sizeof(KVCacheWriteParams), 80u);
  EXPECT_EQ(alignof(KVCacheWriteParams), 8u);
}

TEST(ParameterLayout, APlanCarriesTheBytesOfTheStruct) {
  const KVCacheWrite op{.keys = planTensor(DType::f16, {5, 2, 8}),
                        .into = {.keys = planTensor(DType::f16, {3, 2, 7, 8}), .wrap = KVWrap::ring, .pinned = 1},
                        .sequence = 2,
                        .position = 4};
  const Plan planned = REQUIRE(plan(op));
  const InlineBytes& params = planned.dispatches.at(0).inlines.at(0);
  EXPECT_EQ(params.index, static_cast<uint32_t>(kKVCacheWriteParams));
  EXPECT_EQ(params.bytes.size(), sizeof(KVCacheWriteParams));
  // By the numbers that the shader asserts, not by the names of the struct.
  EXPECT_EQ(numberAt(params.bytes, 8), 2u);   // sequence
  EXPECT_EQ(numberAt(params.bytes, 16), 1u);  // keyUnits, of 16 bytes
  EXPECT_EQ(numberAt(params.bytes, 24), 5u);  // tokens
  EXPECT_EQ(numberAt(params.bytes, 36), 0u);  // sourceStart
  EXPECT_EQ(numberAt(params.bytes, 44), 1u);  // slotStride
  EXPECT_EQ(numberAt(params.bytes, 52), 7u);  // capacity
  EXPECT_EQ(numberAt(params.bytes, 56), 1u);  // pinned
  EXPECT_EQ(numberAt(params.bytes, 60), 1u);  // isRing
  EXPECT_EQ(numberAt(params.bytes, 76), 4u);  // firstSlot
}

}  // namespace mnk::test
