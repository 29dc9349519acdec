// What preparing a device takes of its memory.
#include "Harness/TimedDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"

namespace mnk::test {

// Kernels for many rows do not depend on how many sequences have them.
TEST(PrepareMemory, TakesMemoryForOneLongPromptAndServesSeveral) {
  constexpr uint32_t kSequences = 32, kRows = 520, kQueryHeads = 4, kDim = 128;
  TimedDevice timed({.family = "timed", .cores = 64});  // splits what one prompt reads
  const AttentionCache cache = REQUIRE(
      AttentionCache::make(timed.device, {.kvHeads = 1, .headDim = kDim, .capacity = 1024, .sequences = kSequences}));
  const uint64_t before = timed.device->bytesMade();
  REQUIRE(prepare(timed.device, {.caches = {cache}, .queryHeads = kQueryHeads, .rows = kRows, .dtype = DType::f16}));
  const uint64_t ofPrompt = uint64_t{kRows} * kQueryHeads * kDim * byteSize(DType::f16);
  EXPECT(timed.device->bytesMade() - before < 12 * ofPrompt);
  const size_t made = timed.device->registry().pipelineCount();
  const Shape shape = REQUIRE(Shape::make({kSequences, kRows, kQueryHeads, kDim}));
  FlashDecode op{.queries = REQUIRE(Tensor::zeros(timed.device, DType::f16, shape)),
                 .cache = cache.view(),
                 .results = {.output = REQUIRE(Tensor::zeros(timed.device, DType::f16, shape))}};
  for (const uint64_t length : {520, 700, 1024}) {
    op.sequences.clear();
    for (uint64_t sequence = 0; sequence < kSequences; ++sequence) op.sequences.push_back({sequence, length});
    const Plan planned = REQUIRE(plan(op, *timed.device));
    EXPECT(planned.dispatches.at(0).kernel.function.starts_with("flashPrefill_"));
    for (const Dispatch& dispatch : planned.dispatches) REQUIRE(timed.device->registry().pipeline(dispatch.kernel));
  }
  EXPECT_EQ(timed.device->registry().pipelineCount(), made);
}

}  // namespace mnk::test
