// Every rule of KVCacheWrite, broken on purpose, and operands that share a buffer or a tensor, which no rule forbids.
#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheWriteCase.hpp"
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

Tensor over(const std::shared_ptr<Buffer>& buffer, DType dtype, std::initializer_list<uint64_t> extents,
            uint64_t offset = 0) {
  return REQUIRE(Tensor::over(buffer, dtype, REQUIRE(Shape::make(extents)), offset));
}

// Keys and values in columns of one projection, whose last keys end at byte 3 * 64 + 32, and caches behind it.
void useOneBuffer(KVCacheWrite& op, uint64_t keyCache) {
  const auto buffer = std::make_shared<PlanBuffer>(1024);
  const Tensor fused = over(buffer, DType::f16, {4, 32});
  op = {.keys = REQUIRE(HeadsView::columns(fused, 8, 2, 4)),
        .values = REQUIRE(HeadsView::columns(fused, 16, 2, 4)),
        .tokens = 2,
        .into = {.keys = over(buffer, DType::f16, {2, 2, 4}, keyCache),
                 .values = over(buffer, DType::f16, {2, 2, 4}, keyCache + 32)}};
}

// Keys in a buffer of their own, over memory in which the cache is as well.
void useOneMemory(KVCacheWrite& op, uint64_t keys) {
  static const int space = 0;
  const auto at = [&](uint64_t begin) { return std::make_shared<PlanBuffer>(1024, begin, &space); };
  op = {.keys = over(at(keys), DType::f32, {1, 2, 4}), .into = {.keys = over(at(0), DType::f16, {2, 5, 4})}};
}

const Break<KVCacheWrite> kSoundWrites[] = {
    // Rows take the place of sequence and position.
    [](KVCacheWrite& op) { setRows(op, list(0, 1, 0), list(0, 1, 2)), op.sequence = 99, op.position = UINT64_MAX; },
    // The value cache may be anything while only keys are written.
    [](KVCacheWrite& op) { op.values.reset(), op.into.values = u8(3); },
    // Tensors that only share a buffer are apart, and views where their vectors are.
    [](KVCacheWrite& op) { useOneBuffer(op, 256); },
    [](KVCacheWrite& op) { useOneBuffer(op, 256), op.values = op.keys; },
    [](KVCacheWrite& op) { useOneBuffer(op, 224), op.values = op.keys; },
    [](KVCacheWrite& op) { useOneMemory(op, 80); },
    // Values without elements may be wherever they like.
    [](KVCacheWrite& op) {
      op.values = HeadsView(f32(1), {.tokens = 3, .heads = 2, .offset = 7}), op.into.values = f16(2, 2, 5, 0);
    },
};

constexpr GoldenText kWriteErrors{
    "Ops/KVCacheWrite/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(KVCacheWriteRules, EachHasItsError) {
  expectRules<KVCacheWrite>(kWriteErrors, kvCacheWriteRules(), planOp(kSound), kBrokenWrites);
}

TEST(KVCacheWriteRules, AcceptsWhatOnlyLooksWrong) {
  for (const auto& change : kSoundWrites) {
    const Context context(fmt::format("case {}", &change - kSoundWrites));
    KVCacheWrite op = planOp(kSound);
    change(op);
    const Plan planned = REQUIRE(plan(op));
    EXPECT_EQ(planned.dispatches.size(), 1u);
    for (const Binding& binding : planned.dispatches.at(0).buffers) EXPECT(binding.offset <= binding.buffer->length());
  }
  KVCacheWrite op;
  useOneMemory(op, 64);
  EXPECT_ERROR(plan(op), {.what = "source and destination share memory"});
  useOneBuffer(op, 222);
  EXPECT_ERROR(plan(op), {.what = "source and destination share memory", .got = "keys overlapping the key cache"});
}

// One head for all heads of the cache, and one token for all tokens.
TEST(KVCacheWriteRules, VectorsMayBeReadMoreThanOnce) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    const KVCacheWriteRun opRun(device, {.name = "broadcast", .heads = 3, .capacity = 8, .sourceTokens = 2}, random);
    KVCacheWrite op = opRun.op();
    op.values.reset();
    op.keys.strides = HeadsView::Strides{.sequences = 2, .tokens = 3, .heads = 3, .headDim = 4, .sequenceStride = 4};
    run(device, op);
    expectWritten(op, opRun.memory());
  });
}

}  // namespace mnk::test
