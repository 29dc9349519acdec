// Every rule of KVCacheWrite, broken on purpose.
#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheWriteRun.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/KVCacheWrite/KVCacheWrite.hpp"

namespace mnk::test {

namespace {

using List = std::vector<uint32_t>;

// Three tokens of two heads, f32 [3, 2, 4] and [3, 2, 6], to a linear f16 cache of 2 sequences and 5 slots.
const KVCacheWriteCase kSound{.name = "a sound write",
                              .wrap = KVWrap::linear,
                              .valueHeadDim = 6,
                              .capacity = 5,
                              .sequences = 2,
                              .sourceTokens = 3,
                              .sequence = 1,
                              .position = 2};

template <typename... Numbers>
List list(Numbers... numbers) {
  return {static_cast<uint32_t>(numbers)...};
}

void setRows(KVCacheWrite& op, RowIndices sequences, RowIndices positions) {
  op.rows = KVCacheWrite::Rows{std::move(sequences), std::move(positions)};
}

// As many sequences as tokens, of one token each in memory.
void repeatKeys(KVCacheWrite& op, uint64_t tokens) {
  op.values.reset();
  op.keys.strides = {.sequences = tokens, .tokens = tokens, .heads = 2, .headDim = 4, .headStride = 4};
}

const Break<KVCacheWrite> kBrokenWrites[] = {
    [](KVCacheWrite& op) { op.keys = {}; },
    [](KVCacheWrite& op) { op.values = Tensor{}; },
    [](KVCacheWrite& op) { op.into.keys = {}; },
    [](KVCacheWrite& op) { op.into.values = Tensor{}; },
    [](KVCacheWrite& op) { op.into.values.reset(); },
    [](KVCacheWrite& op) { op.into.keys = f16(2, 20); },
    [](KVCacheWrite& op) { op.into.values = f16(4, 5, 6); },
    [](KVCacheWrite& op) {
      op.values.reset(), op.into.layout = KVLayout::tokenMajor, op.into.keys = f16(1, 2, 5, 2, 4);
    },
    [](KVCacheWrite& op) { op.values->layout = static_cast<KVLayout>(2); },
    [](KVCacheWrite& op) { op.sourceLayout = static_cast<KVLayout>(3); },
    [](KVCacheWrite& op) { op.keys = f32(24); },
    [](KVCacheWrite& op) { op.sourceLayout = KVLayout::headMajor, op.keys = f32(2, 4); },
    [](KVCacheWrite& op) { op.values = f32(1, 1, 3, 2, 6); },
    [](KVCacheWrite& op) { op.values = HeadsView(f32(2, 6), KVLayout::headMajor); },
    [](KVCacheWrite& op) { op.keys = REQUIRE(HeadsView::columns(f32(3, 20), 5, 2, 4)), op.keys.tensor = f32(52); },
    [](KVCacheWrite& op) { op.values = REQUIRE(HeadsView::columns(f32(3, 20), 9, 2, 6)); },
    [](KVCacheWrite& op) { op.keys = f32(2, 3, 4); },
    [](KVCacheWrite& op) { op.values = f32(1, 2, 3, 6); },
    [](KVCacheWrite& op) { op.sourceLayout = KVLayout::headMajor; },
    [](KVCacheWrite& op) { op.values->layout = KVLayout::headMajor; },
    [](KVCacheWrite& op) { op.keys = u32(3, 2, 4); },
    [](KVCacheWrite& op) { op.into.keys = u16(2, 2, 5, 4); },
    [](KVCacheWrite& op) { op.keys = i32(3, 2, 4), op.into.keys = u32(2, 2, 5, 4); },
    [](KVCacheWrite& op) { op.values = f16(3, 2, 6); },
    [](KVCacheWrite& op) { op.into.values = bf16(2, 2, 5, 6); },
    [](KVCacheWrite& op) { op.into.keys = f16(2, 2, 0, 4); },
    [](KVCacheWrite& op) { op.into.values = f16(2, 2, 4, 6); },
    [](KVCacheWrite& op) { op.into.values = f16(2, 3, 5, 6); },
    [](KVCacheWrite& op) { op.into.values = f16(3, 2, 5, 6); },
    [](KVCacheWrite& op) { op.keys = f32(3, 5, 4); },
    [](KVCacheWrite& op) { op.keys = f32(3, 2, 5); },
    [](KVCacheWrite& op) { op.keys.strides = HeadsView::Strides{.tokens = 3, .headDim = 4, .tokenStride = 8}; },
    [](KVCacheWrite& op) { op.values = f32(3, 1, 6); },
    [](KVCacheWrite& op) { op.values = f32(3, 2, 4); },
    [](KVCacheWrite& op) { op.values = f32(2, 2, 6); },
    [](KVCacheWrite& op) { op.values = f32(3, 1, 2, 6); },
    [](KVCacheWrite& op) { op.values.reset(), op.keys = f32(k2To31, 2, 4); },
    [](KVCacheWrite& op) { repeatKeys(op, 1 << 16); },
    [](KVCacheWrite& op) { repeatKeys(op, uint64_t{1} << 32); },  // the product wraps around
    [](KVCacheWrite& op) { op.values.reset(), op.into.values.reset(), op.into.keys = f16(2, 2, k2To31, 4); },
    [](KVCacheWrite& op) { op.values = f32(3, 2, k2To31 + 1), op.into.values = f16(2, 2, 5, k2To31 + 1); },
    [](KVCacheWrite& op) { op.sourceOffset = 2, op.tokens = 2; },
    [](KVCacheWrite& op) { op.sourceOffset = 4; },
    [](KVCacheWrite& op) { op.sourceOffset = UINT64_MAX, op.tokens = 2; },
    [](KVCacheWrite& op) { op.sourceOffset = 1, op.tokens = 4, op.sourceIsRing = true; },
    [](KVCacheWrite& op) { op.into.pinned = 1; },
    [](KVCacheWrite& op) { op.into.wrap = KVWrap::ring, op.into.pinned = 5; },
    [](KVCacheWrite& op) { op.sequence = 2; },
    [](KVCacheWrite& op) { op.sequence = kOnlySequence; },
    [](KVCacheWrite& op) { op.sequence = (uint64_t{1} << 32) + 1; },
    [](KVCacheWrite& op) { op.into.wrap = KVWrap::ring, op.position = UINT64_MAX - 2; },
    [](KVCacheWrite& op) { op.position = 3; },
    [](KVCacheWrite& op) { op.position = uint64_t{1} << 32; },
    [](KVCacheWrite& op) { setRows(op, i32(3), list(0, 1, 2)); },
    [](KVCacheWrite& op) { setRows(op, list(0, 1, 0), Tensor{}); },
    [](KVCacheWrite& op) { setRows(op, list(0, 1), list(0, 1, 2)); },
    [](KVCacheWrite& op) { setRows(op, list(0, 1, 0), u32(4)); },
    [](KVCacheWrite& op) { op.values.reset(), op.keys = f32(1025, 2, 4), setRows(op, List(1025), u32(1025)); },
    [](KVCacheWrite& op) { setRows(op, list(0, 7, 2), list(0, 1, 2)); },
    [](KVCacheWrite& op) { setRows(op, list(0, 1, 1), list(5, 1, 2)); },
    [](KVCacheWrite& op) { op.values.reset(), op.keys = aliased(op.into.keys, f32(1, 2, 4), 16); },
    [](KVCacheWrite& op) { op.values = aliased(op.into.keys, f32(1, 2, 6)), op.keys = f32(1, 2, 4); },
    [](KVCacheWrite& op) { op.values = aliased(*op.into.values, f32(1, 2, 6), 4), op.keys = f32(1, 2, 4); },
    [](KVCacheWrite& op) { setRows(op, list(0, 1, 0), aliased(*op.into.values, u32(3))); },
    [](KVCacheWrite& op) { setRows(op, aliased(op.into.keys, u32(3)), list(0, 1, 2)); },
    [](KVCacheWrite& op) {
      op.into.keys = aliased(f16(200), op.into.keys), op.into.values = aliased(op.into.keys, *op.into.values, 158);
    },
};

KVCacheWrite soundWrite() {
  return makeOp(kSound, [](std::string_view, DType dtype, const Shape& shape, uint64_t shift) {
    return planTensor(dtype, shape, shift);
  });
}

constexpr GoldenText kWriteErrors{
    "Ops/KVCacheWrite/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(KVCacheWriteRules, EachHasItsError) {
  ErrorLines errors;
  expectRules<KVCacheWrite>(errors, kvCacheWriteRules(), KVCacheWrite::name, soundWrite(), kBrokenWrites,
                            [](const KVCacheWrite& op) { return plan(op); });
  expectGolden(kWriteErrors, errors.lines());
}

// Nothing is recorded for a refused write, and the encoder stays usable.
TEST(KVCacheWriteRules, ASoundWriteFollowsARefusedOne) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (const Break<KVCacheWrite>& breakIn : kBrokenWrites) {
      const KVCacheWriteRun opRun(device, kSound, random);
      KVCacheWrite op = opRun.op();
      breakIn(op);
      const Error refusal = checkRules(kvCacheWriteRules(), op, KVCacheWrite::name).error();
      const Context context(refusal.message());
      CommandEncoder encoder(device);
      EXPECT_ERROR(encoder.encode(op), {.op = KVCacheWrite::name, .what = refusal.what});
      EXPECT_EQ(encoder.summary().total.dispatches, 0u);
      REQUIRE(encoder.encode(opRun.op()));
      EXPECT_EQ(encoder.summary().total.dispatches, 1u);
      EXPECT_EQ(encoder.summary().barriers, 0u);
      EXPECT_EQ(REQUIRE(REQUIRE(encoder.commit()).wait()).total.dispatches, 1u);
      opRun.expectWritten();
    }
  });
}

TEST(KVCacheWriteRules, RowsTakeThePlaceOfSequenceAndPosition) {
  KVCacheWrite op = soundWrite();
  setRows(op, list(0, 1, 0), list(0, 1, 2));
  op.sequence = 99;
  op.position = UINT64_MAX;
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

// The value cache may be anywhere, and anything, while only keys are written.
TEST(KVCacheWriteRules, KeysAloneDoNotLookAtTheValueCache) {
  KVCacheWrite op = soundWrite();
  op.values.reset();
  op.into.values = u8(3);
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

}  // namespace mnk::test
