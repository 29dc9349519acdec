// What KVCacheWrite accepts: empty work, and operands that share a buffer or a tensor.
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheWriteRun.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

TEST(KVCacheWriteRules, EmptyWorkSucceedsAndEncodesNothing) {
  const KVCacheWriteCase empty[] = {
      {.name = "no tokens in the source", .sourceTokens = 0},
      {.name = "no tokens asked for", .sourceTokens = 3, .tokens = 0},
      {.name = "an offset at the end", .sourceTokens = 3, .sourceOffset = 3},
      {.name = "no heads", .heads = 0, .sourceTokens = 3},
      {.name = "no elements", .headDim = 0, .valueHeadDim = 0, .sourceTokens = 3},
      {.name = "an empty source ring", .sourceTokens = 0, .isSourceRing = true, .sourceOffset = 5},
      {.name = "no rows", .sourceTokens = 0, .rows = std::vector<KVCacheWriteCase::Row>{}},
      {.name = "nothing at the end of a linear cache", .wrap = KVWrap::linear, .sourceTokens = 0, .position = 4},
  };
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (const KVCacheWriteCase& write : empty) {
      const Context context(write.name);
      const KVCacheWriteRun opRun(device, write, random);
      EXPECT_EQ(REQUIRE(plan(opRun.op())).dispatches.size(), 0u);
      CommandEncoder encoder(device);
      REQUIRE(encoder.encode(opRun.op()));
      EXPECT_EQ(encoder.summary().total.dispatches, 0u);
      REQUIRE(REQUIRE(encoder.commit()).wait());
      opRun.expectUntouched();
    }
  });
}

// Tensors that only share a buffer are apart.
TEST(KVCacheWriteRules, NeighborsInOneBufferDoNotOverlap) {
  const auto buffer = std::make_shared<PlanBuffer>(1024);
  const auto over = [&](DType dtype, std::initializer_list<uint64_t> extents, uint64_t offset) {
    return REQUIRE(Tensor::over(buffer, dtype, REQUIRE(Shape::make(extents)), offset));
  };
  const KVCacheWrite op{.keys = over(DType::f32, {1, 2, 4}, 0),
                        .values = over(DType::f32, {1, 2, 4}, 32),
                        .into = {.keys = over(DType::f16, {2, 5, 4}, 64), .values = over(DType::f16, {2, 5, 4}, 144)}};
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

TEST(KVCacheWriteRules, DifferentBuffersOverTheSameMemoryOverlap) {
  const int space = 0;
  const auto over = [&](DType dtype, std::initializer_list<uint64_t> extents, uint64_t begin) {
    const auto buffer = std::make_shared<PlanBuffer>(1024, begin, &space);
    return REQUIRE(Tensor::over(buffer, dtype, REQUIRE(Shape::make(extents))));
  };
  KVCacheWrite op{.keys = over(DType::f32, {1, 2, 4}, 64), .into = {.keys = over(DType::f16, {2, 5, 4}, 0)}};
  EXPECT_ERROR(plan(op), {.what = "source and destination share memory"});
  op.keys = over(DType::f32, {1, 2, 4}, 80);
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

// Keys and values of one projection are read from it, and only what lies between the first of them and the last must be
// apart from the cache.
TEST(KVCacheWriteRules, ViewsOverlapWhereTheirVectorsLie) {
  const auto buffer = std::make_shared<PlanBuffer>(1024);
  const auto over = [&](DType dtype, std::initializer_list<uint64_t> extents, uint64_t offset) {
    return REQUIRE(Tensor::over(buffer, dtype, REQUIRE(Shape::make(extents)), offset));
  };
  const Tensor fused = over(DType::f16, {4, 32}, 0);  // 256 bytes
  KVCacheWrite op{.keys = REQUIRE(HeadsView::columns(fused, 8, 2, 4)),
                  .values = REQUIRE(HeadsView::columns(fused, 16, 2, 4)),
                  .into = {.keys = over(DType::f16, {2, 4, 4}, 256), .values = over(DType::f16, {2, 4, 4}, 320)}};
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  op.values = op.keys;
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  // The last keys end at byte 3 * 64 + 32.
  op.into.keys = over(DType::f16, {2, 2, 4}, 224);
  op.into.values = over(DType::f16, {2, 2, 4}, 256);
  op.tokens = 2;
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  op.into.keys = over(DType::f16, {2, 2, 4}, 222);
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
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(op));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    std::vector<std::byte> source(op.keys.tensor.byteCount()), cache(op.into.keys.byteCount());
    REQUIRE(op.keys.tensor.read(source));
    REQUIRE(op.into.keys.read(cache));
    const auto expected = reference(op, {.keys = source, .keyCache = cache}).keyCache.bytes;
    EXPECT(cache == expected);
  });
}

}  // namespace mnk::test
