// Ends of recordings, and empty steps.
#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/RecordedStep.hpp"

namespace mnk::test {

namespace {

struct Fixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  AttentionCache cache = makeCache(device, {.kvHeads = 2, .headDim = 64, .capacity = 4096});

  Tensor zeros(uint64_t tokens) const {
    return REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({tokens, 2, 64}))));
  }
};

}  // namespace

TEST(RecordedStep, AMovedFromStepIsEmpty) {
  const auto device = FakeDevice::make();
  RecordedStep step = REQUIRE(RecordedStep::record(device, [](CommandEncoder&) { return Result<void>(); }));
  const RecordedStep moved = std::move(step);
  const RecordedStep never;
  const ExpectedError expected{.op = "RecordedStep",
                               .what = "there is no step to run",
                               .got = "a step that was moved from, or never recorded",
                               .expected = "a recorded step",
                               .fix = "Record a step, and run it where it was moved to."};
  CommandEncoder encoder(device);
  for (const RecordedStep* empty : {static_cast<const RecordedStep*>(&step), &never}) {
    EXPECT_ERROR(empty->run(), (expected));
    EXPECT_ERROR(empty->encode(encoder), (expected));
    EXPECT_EQ(empty->summary().total.dispatches, 0u);
    EXPECT(!empty->device());
  }
  REQUIRE(encoder.commit());
  REQUIRE(moved.run());
  step = moved;
  REQUIRE(step.run());
}

// An encoder that accepts no more calls retains neither a command buffer nor a cache.
TEST(RecordedStep, AFinishedRecordingReleasesItsEncoder) {
  Fixture s;
  const Tensor token = s.zeros(1);
  CommandEncoder encoder(s.device);
  StepRecording::begin(encoder);
  REQUIRE(s.cache.append(encoder, token, token, 0));
  EXPECT_EQ(s.device->droppedSubmissions(), 0u);
  const std::weak_ptr<Buffer> memory = s.cache.view().keys.buffer();
  {
    const RecordedStep step = REQUIRE(StepRecording::end(encoder));
    EXPECT_EQ(s.device->droppedSubmissions(), 1u);
    s.cache = makeCache(s.device);
    EXPECT(!memory.expired());
  }
  EXPECT(memory.expired());
  EXPECT_ERROR(encoder.barrier(), {.op = "CommandEncoder", .what = "the encoder of a recording never runs"});
  EXPECT_EQ(s.device->droppedSubmissions(), 1u);
}

}  // namespace mnk::test
