// Ends of recordings, and empty steps.
#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

struct EndedRecording {
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
  EndedRecording s;
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

// Without limits, a loop that records each step in the next one takes minutes, and one that records it twice never
// ends.
TEST(RecordedStep, NestingHasALimit) {
  const auto device = FakeDevice::make();
  for (const int times : {1, 4}) {
    const auto nested = [&](const RecordedStep& inner) {
      return RecordedStep::record(device, [&](CommandEncoder& encoder) -> Result<void> {
        for (int i = 0; i < times; ++i) {
          if (auto encoded = inner.encode(encoder); !encoded) return encoded;
        }
        return {};
      });
    };
    auto step = RecordedStep::record(device, [](CommandEncoder& encoder) { return encoder.barrier(); });
    int steps = 0;
    for (; step && steps < 100; ++steps) step = nested(*step);
    // 4 ^ 8 calls are recorded, 4 ^ 9 are more than 2 ^ 17.
    EXPECT_EQ(steps, times == 1 ? 16 : 9);
    if (times == 1) {
      EXPECT_ERROR(step, {.op = "RecordedStep",
                          .what = "recorded steps are nested too deeply",
                          .got = "17 steps, each in the next",
                          .expected = "at most 16",
                          .fix = "Record the calls of the inner steps in one step"});
    } else {
      EXPECT_ERROR(step, {.op = "RecordedStep",
                          .what = "a recording has too many calls",
                          .got = "196608 calls, with those of the steps in it",
                          .expected = "at most 131072",
                          .fix = "Record fewer calls"});
    }
  }
}

TEST(RecordedStep, CallsHaveALimit) {
  const auto device = FakeDevice::make();
  uint64_t calls = 0;
  const auto recorded = RecordedStep::record(device, [&](CommandEncoder& encoder) -> Result<void> {
    for (;; ++calls) {
      if (auto done = encoder.barrier(); !done) return done;
    }
  });
  EXPECT_ERROR(recorded, {.what = "a recording has too many calls", .got = "131073 calls"});
  EXPECT_EQ(calls, 131072u);
}

}  // namespace mnk::test
