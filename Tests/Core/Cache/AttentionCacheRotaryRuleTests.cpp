#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/EveryDevice.hpp"

namespace mnk::test {

TEST(AttentionCacheRotary, RefusesMismatchesBeforeEncoding) {
  const auto device = devicesUnderTest().front().device;
  AttentionCache cache = makeCache(device, {.kvHeads = 2, .headDim = 64, .capacity = 40, .dtype = DType::f32});
  const auto tensor = [&](DType dtype, std::vector<uint64_t> shape) {
    return REQUIRE(Tensor::zeros(device, dtype, REQUIRE(Shape::make(shape))));
  };
  const CacheStep sound{.queries = tensor(DType::f32, {2, 4, 64}),
                        .keys = tensor(DType::f32, {2, 2, 64}),
                        .values = tensor(DType::f32, {2, 2, 64}),
                        .rotary = RotaryStep{},
                        .results = {.output = tensor(DType::f32, {2, 4, 64})},
                        .sequences = {0}};
  CommandEncoder encoder(device);
  const auto refused = [&](auto change, ExpectedError expected) {
    CacheStep step = sound;
    change(step);
    expected.op = "AttentionCache.appendAndAttend";
    expectError(__FILE__, __LINE__, "a step", errorOf(cache.appendAndAttend(encoder, step)), expected);
  };
  const auto numbersOver = [&](const Tensor& memory) {
    return REQUIRE(Tensor::over(memory.buffer(), DType::i32, REQUIRE(Shape::make({2})), memory.byteOffset()));
  };
  refused([](auto& step) { step.rotary->embedding.ropeDim = 3; }, {.what = "the rope dim is odd or zero", .got = "3"});
  refused([](auto& step) { step.rotary->embedding.base = 0; }, {.what = "the base is not a positive number"});
  refused(
      [](auto& step) {
        step.rotary->positions = RotaryPositions(std::vector<int32_t>{1, 2, 3});
      },
      {.what = "positions do not match the tokens"});
  refused([](auto& step) { step.rotary->positions = RotaryPositions(std::vector<int32_t>{}, 0); },
          {.what = "positions do not match the tokens"});
  refused([&](auto& step) { step.rotary->positions = RotaryPositions(tensor(DType::f32, {2})); },
          {.what = "positions are not i32 or u32"});
  refused([](auto& step) { step.rotary->positions = RotaryPositions(int64_t{1} << 40); },
          {.what = "a position is out of range"});
  refused(
      [](auto& step) {
        step.rotary->offsets = std::vector<int32_t>{1, 2};
      },
      {.what = "offsets do not match the sequences"});
  refused([&](auto& step) { step.rotary->positions = RotaryPositions(numbersOver(*step.results.output)); },
          {.what = "operands share memory", .got = "positions overlapping"});
  refused([&](auto& step) { step.rotary->offsets = RotaryOffsets(numbersOver(*step.results.output)); },
          {.what = "offsets do not match the sequences"});
  refused([&](auto& step) { step.rotary->positions = RotaryPositions(numbersOver(cache.view().keys)); },
          {.what = "operands share memory", .got = "positions overlapping the cache"});
  refused(
      [&](auto& step) {
        step.queries = HeadsView(*cache.view().values,
                                 {.tokens = 2, .heads = 4, .headDim = 64, .tokenStride = 256, .headStride = 64});
      },
      {.what = "operands share memory", .got = "queries overlapping the cache"});
  refused([&](auto& step) { step.keys = tensor(DType::f32, {2, 2, 32}); }, {.what = "keys do not match queries"});
  refused(
      [&](auto& step) {
        step.values = tensor(DType::f32, {2, 2, 32});
      },
      {.what = "values do not have the cache's heads and headDim"});
  refused(
      [&](auto& step) {
        step.results.output = tensor(DType::f32, {2, 4, 32});
      },
      {.what = "a result does not match the queries"});
  refused([&](auto& step) { step.queries = tensor(DType::f32, {2, 3, 64}); }, {});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  EXPECT_EQ(*cache.nextPosition(0), 0u);
  REQUIRE(cache.appendAndAttend(encoder, sound));
  EXPECT_EQ(encoder.summary().total.dispatches, 2u);
  EXPECT_EQ(encoder.summary().kinds.at("RotaryAppend").dispatches, 1u);
}

}  // namespace mnk::test
