// What KVCacheWrite accepts: operands that share a buffer or a tensor.
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheWriteRun.hpp"

namespace mnk::test {

namespace {

Tensor over(const std::shared_ptr<Buffer>& buffer, DType dtype, std::initializer_list<uint64_t> extents,
            uint64_t offset = 0) {
  return REQUIRE(Tensor::over(buffer, dtype, REQUIRE(Shape::make(extents)), offset));
}

}  // namespace

// Tensors that only share a buffer are apart.
TEST(KVCacheWriteRules, NeighborsInOneBufferDoNotOverlap) {
  const auto buffer = std::make_shared<PlanBuffer>(1024);
  const KVCacheWrite op{
      .keys = over(buffer, DType::f32, {1, 2, 4}, 0),
      .values = over(buffer, DType::f32, {1, 2, 4}, 32),
      .into = {.keys = over(buffer, DType::f16, {2, 5, 4}, 64), .values = over(buffer, DType::f16, {2, 5, 4}, 144)}};
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

TEST(KVCacheWriteRules, DifferentBuffersOverTheSameMemoryOverlap) {
  const int space = 0;
  const auto at = [&](uint64_t begin) { return std::make_shared<PlanBuffer>(1024, begin, &space); };
  KVCacheWrite op{.keys = over(at(64), DType::f32, {1, 2, 4}), .into = {.keys = over(at(0), DType::f16, {2, 5, 4})}};
  EXPECT_ERROR(plan(op), {.what = "source and destination share memory"});
  op.keys = over(at(80), DType::f32, {1, 2, 4});
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

// Keys and values of one projection are read from it, and only what lies between the first of them and the last must be
// apart from the cache.
TEST(KVCacheWriteRules, ViewsOverlapWhereTheirVectorsLie) {
  const auto buffer = std::make_shared<PlanBuffer>(1024);
  const Tensor fused = over(buffer, DType::f16, {4, 32}, 0);  // 256 bytes
  KVCacheWrite op{
      .keys = REQUIRE(HeadsView::columns(fused, 8, 2, 4)),
      .values = REQUIRE(HeadsView::columns(fused, 16, 2, 4)),
      .into = {.keys = over(buffer, DType::f16, {2, 4, 4}, 256), .values = over(buffer, DType::f16, {2, 4, 4}, 320)}};
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  op.values = op.keys;
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  // The last keys end at byte 3 * 64 + 32.
  op.into.keys = over(buffer, DType::f16, {2, 2, 4}, 224);
  op.into.values = over(buffer, DType::f16, {2, 2, 4}, 256);
  op.tokens = 2;
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  op.into.keys = over(buffer, DType::f16, {2, 2, 4}, 222);
  EXPECT_ERROR(plan(op), {.what = "source and destination share memory", .got = "keys overlapping the key cache"});
}

// Values without elements may be wherever they like.
TEST(KVCacheWriteRules, EmptyVectorsLieAnywhere) {
  KVCacheWrite op{.keys = planTensor(DType::f16, {3, 2, 4}),
                  .into = {.keys = planTensor(DType::f16, {2, 5, 4}), .values = planTensor(DType::f16, {2, 5, 0})}};
  op.values = HeadsView(planTensor(DType::f16, {1}), {.tokens = 3, .heads = 2, .offset = 7});
  const Dispatch dispatch = REQUIRE(plan(op)).dispatches.at(0);
  for (const Binding& binding : dispatch.buffers) EXPECT(binding.offset <= binding.buffer->length());
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
    const auto expected = reference(op, {.keys = opRun.before("keys"), .keyCache = opRun.before("key cache")});
    EXPECT(opRun.now("key cache") == expected.keyCache.bytes);
  });
}

}  // namespace mnk::test
