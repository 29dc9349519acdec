// Ends of recordings, empty steps and failing runs.
#include <cstring>

#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "MLXNativeKernels/RecordedStep.hpp"
#include "RotaryAppend/RotaryAppendTypes.h"

namespace mnk::test {

namespace {

struct Fixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  AttentionCache cache = makeCache(device, {.kvHeads = 2, .headDim = 64, .capacity = 4096, .sequences = 2});

  Tensor zeros(uint64_t tokens) const {
    return REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({tokens, 2, 64}))));
  }
  // Uneven row counts of two sequences whose positions count from a number.
  AppendAndAttend uneven(uint32_t one, uint32_t other) const {
    const Tensor rows = zeros(one + other);
    return {.queries = rows,
            .keys = rows,
            .values = rows,
            .rotary = RotaryStep{.positions = RotaryPositions(7)},
            .results = {.into = zeros(one + other)},
            .sequences = {0, 1},
            .rowCounts = {one, other}};
  }
  Result<RecordedStep> record(const AppendAndAttend& step) {
    return RecordedStep::record(device, [&](CommandEncoder& encoder) { return cache.appendAndAttend(encoder, step); });
  }
};

std::vector<int32_t> listedPositions(const FakeDevice::Recorded& recorded) {
  for (const InlineBytes& inlined : recorded.dispatches[0].dispatch.inlines) {
    if (inlined.index != kRotaryAppendPositions) continue;
    std::vector<int32_t> numbers(inlined.bytes.size() / sizeof(int32_t));
    std::memcpy(numbers.data(), inlined.bytes.data(), inlined.bytes.size());
    return numbers;
  }
  return {};
}

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
    EXPECT_EQ(empty->runs(), 0u);
    EXPECT_EQ(empty->summary().total.dispatches, 0u);
    EXPECT(!empty->device());
  }
  step.setRuns(3);
  EXPECT_EQ(step.runs(), 0u);
  REQUIRE(encoder.commit());
  REQUIRE(moved.run());
  step = moved;
  EXPECT_EQ(step.runs(), 1u);
}

// An encoder that accepts no more calls retains neither a command buffer nor a cache.
TEST(RecordedStep, AFinishedRecordingReleasesItsEncoder) {
  Fixture s;
  const Tensor token = s.zeros(1);
  CommandEncoder encoder(s.device);
  StepRecording::begin(encoder);
  REQUIRE(s.cache.append(encoder, token, token));
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

TEST(RecordedStep, LimitsUnevenRowsCountedFromANumber) {
  Fixture s;
  const RecordedStep step = REQUIRE(s.record(s.uneven(1000, 24)));
  for (const int32_t run : {0, 1, 2}) {
    REQUIRE(step.run());
    const auto numbers = listedPositions(s.device->committed().back());
    EXPECT_EQ(numbers.size(), 1024u);
    EXPECT_EQ(numbers[0], 7 + 1000 * run);
    EXPECT_EQ(numbers[999], 1006 + 1000 * run);
    EXPECT_EQ(numbers[1000], 7 + 24 * run);
    EXPECT_EQ(numbers[1023], 30 + 24 * run);
  }
  AppendAndAttend more = s.uneven(1000, 25);
  EXPECT_ERROR(s.record(more),
               {.op = "AttentionCache.appendAndAttend",
                .what = "a recorded step cannot count the positions of this many tokens",
                .got = "a number as rotary position, uneven row counts and 1025 tokens",
                .expected = "at most 1024 tokens",
                .fix = "Leave the positions out, so that they follow the cache, or pass them in a tensor."});
  CommandEncoder once(s.device);
  REQUIRE(s.cache.appendAndAttend(once, more));  // needs no positions of later runs
  more.rotary->positions.reset();
  const RecordedStep following = REQUIRE(s.record(more));
  REQUIRE(following.run());
  EXPECT_EQ(s.cache.nextPosition(0), 4000u);
}

// A run that fails on the device still counts.
TEST(RecordedStep, RunsCanBeResetAfterAFailure) {
  Fixture s;
  RecordedStep step = REQUIRE(s.record(s.uneven(2, 1)));
  REQUIRE(step.run());
  s.device->holdCompletions();
  const Completion failed = REQUIRE(step.run());
  EXPECT(s.device->finishNext(fakeFailure()));
  EXPECT(!failed.wait());
  EXPECT_EQ(step.runs(), 2u);
  EXPECT_ERROR(step.run(), {.op = "AttentionCache.appendAndAttend"});
  EXPECT_EQ(step.runs(), 2u);
  REQUIRE(s.cache.truncate(2, 0));
  REQUIRE(s.cache.truncate(1, 1));
  step.setRuns(1);
  const Completion again = REQUIRE(step.run());
  EXPECT(s.device->finishNext({}));
  REQUIRE(again.wait());
  EXPECT(listedPositions(s.device->committed().back()) == (std::vector<int32_t>{9, 10, 8}));
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
