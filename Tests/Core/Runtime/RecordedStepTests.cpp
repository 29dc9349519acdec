#include "MLXNativeKernels/CommandEncoder.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <latch>
#include <thread>

#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/Golden.hpp"
#include "Harness/RawBytes.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "Support/Errors.hpp"

namespace mnk::test {

namespace {

using Call = FakeDevice::Call;
using Body = std::function<Result<void>(CommandEncoder&)>;

RecordedStep record(const std::shared_ptr<Device>& device, const Body& body) {
  return REQUIRE(RecordedStep::record(device, body, "a step"));
}

// A device, and two caches of four slots that refuse a fifth token.
struct RecordingFixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  AttentionCache cache = make(), other = make();
  Tensor token = tokens(device, 1), rows = tokens(device, 1, 2, 64);

  AttentionCache make() const {
    AttentionCacheDescriptor descriptor = kDescriptor;
    descriptor.whenFull = KVWrap::linear;
    return makeCache(device, descriptor);
  }
  Result<void> append(CommandEncoder& encoder) { return cache.append(encoder, token, token, 0); }
  // Appends to both caches.
  RecordedStep both() {
    return record(device, [&](CommandEncoder& encoder) -> Result<void> {
      MNK_TRY(append(encoder));
      return other.append(encoder, token, token, 0);
    });
  }
};

// The error of the call that would append the fifth token.
const ExpectedError kFull{.op = "AttentionCache.append", .what = "the write runs past the end of a linear cache"};

std::vector<std::byte> inlineBytes(const FakeDevice::Recorded& recorded, size_t dispatch, uint32_t index) {
  for (const InlineBytes& inlined : recorded.dispatches[dispatch].dispatch.inlines) {
    if (inlined.index == index) return inlined.bytes;
  }
  return {};
}

}  // namespace

TEST(RecordedStep, RecordingRunsAndAdvancesNothing) {
  RecordingFixture s;
  RefusedCalls no;
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) {
    no(encoder.commit());
    no(encoder.join(&s, nullptr));
    return s.append(encoder);
  });
  EXPECT_EQ(*s.cache.nextPosition(0), 0u);
  EXPECT_EQ(s.device->tried(Call::commit), 0u);
  EXPECT_EQ(s.device->droppedSubmissions(), 1u);
  EXPECT_EQ(step.summary().total.dispatches, 1u);
  EXPECT(step.device() == s.device);
  // A recording does not keep caches from changing, and such changes do not keep it from running.
  appendNow(s.cache, s.device, 1);
  REQUIRE(s.cache.truncate(0, 0));
  REQUIRE(step.run());
  EXPECT_EQ(*s.cache.nextPosition(0), 1u);
}

TEST(RecordedStep, RefusesAnEncoderOfAnotherDevice) {
  RecordingFixture s;
  CommandEncoder encoder(FakeDevice::make());
  RefusedCalls no;
  no(s.both().encode(encoder));
  REQUIRE(encoder.commit());
}

TEST(RecordedStep, RunsRepeatCallsAndBarriers) {
  RecordingFixture s;
  const Tensor a = tokens(s.device, 1), b = tokens(s.device, 1);
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
    MNK_TRY(encoder.dispatch(fakeDispatch("A", {}, {a})));
    MNK_TRY(encoder.dispatch(fakeDispatch("B", {a}, {b})));
    MNK_TRY(encoder.barrier());
    MNK_TRY(encoder.dispatch(fakeDispatch("C", {}, {})));
    return encoder.encode(Plan{.op = "Own", .dispatches = {fakeDispatch("D", {b}, {a}), fakeDispatch("E", {a}, {})}});
  });
  EXPECT_EQ(step.summary().text(), "5 dispatches, 3 barriers, 96 bytes read, 96 bytes written");
  for (uint64_t run = 1; run <= 3; ++run) {
    const Completion done = REQUIRE(step.run());
    EXPECT_EQ(done.summary().text(), step.summary().text());
    EXPECT_EQ(s.device->committed().size(), run);
    EXPECT_EQ(s.device->committed().back().trace, "A | B | C D | E");
    EXPECT_EQ(s.device->committed().back().label, "a step");
  }
  const RecordedStep empty = record(s.device, [](CommandEncoder&) { return Result<void>(); });
  REQUIRE(REQUIRE(empty.run()).wait());
}

// Numbers would stay while the cache advances.
TEST(RecordedStep, RefusesNumbersBesideAnAppend) {
  RecordingFixture s;
  RefusedCalls no;
  const Tensor tensor = REQUIRE(Tensor::zeros(s.device, DType::i32, REQUIRE(Shape::make({1}))));
  const Plan planned = REQUIRE(plan(MultiRoPE{.queries = s.rows, .positions = 5}));
  const RecordedStep inner =
      record(s.device, [&](CommandEncoder& encoder) { return encoder.encode(MultiRoPE{.queries = s.rows}); });
  const auto recorded = [&](const Body& first, const Body& second) {
    return RecordedStep::record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
      MNK_TRY(first(encoder));
      return second(encoder);
    });
  };
  const auto rotation = [&](const MultiRoPE& op) -> Body {
    return [op](CommandEncoder& encoder) { return encoder.encode(op); };
  };
  const Body append = [&](CommandEncoder& encoder) { return s.append(encoder); };
  for (const Body& rotate : {rotation({.queries = s.rows, .positions = 5}),
                             rotation({.queries = s.rows, .positions = std::vector<int32_t>{5}}),
                             Body([&](CommandEncoder& encoder) { return encoder.encode(planned); }),
                             Body([&](CommandEncoder& encoder) { return inner.encode(encoder); })}) {
    no(recorded(rotate, append));
    no(recorded(append, rotate));
  }
  for (const Body& rotate :
       {rotation({.queries = s.rows, .positions = tensor}), rotation({.queries = s.rows, .offsets = tensor})}) {
    REQUIRE(recorded(rotate, append));
    REQUIRE(recorded(append, rotate));
  }
}

TEST(RecordedStep, RebuildsForgottenKernels) {
  RecordingFixture s;
  const Tensor two = tokens(s.device, 2, 2, 64);
  const std::vector<int32_t> positions{3, 9};
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) {
    return encoder.encode(MultiRoPE{.queries = two, .positions = positions});
  });
  for (const uint64_t made : {1, 2}) {
    for (int run = 0; run < 3; ++run) {
      REQUIRE(step.run());
      const auto bytes = inlineBytes(s.device->committed().back(), 0, kMultiRoPEPositions);
      EXPECT(bytes == rawBytes(positions));  // numbers stay
    }
    EXPECT_EQ(s.device->tried(Call::makePipeline), made);
    s.device->registry().clear();
  }
  const auto committed = s.device->committed();
  EXPECT(committed[5].dispatches[0].pipeline != committed[2].dispatches[0].pipeline);
}

TEST(RecordedStep, APartlyEncodedStepCannotBeCommitted) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  REQUIRE(step.run());
  {
    CommandEncoder encoder(s.device);
    REQUIRE(append(s.other, encoder, 3));
    EXPECT_ERROR(step.encode(encoder), (kFull));
    EXPECT_ERROR(s.append(encoder), (kFull));
    EXPECT_ERROR(encoder.commit(), (kFull));
  }
  // If the first call is refused, the encoder holds no part of the step.
  CommandEncoder encoder(s.device);
  REQUIRE(append(s.cache, encoder, 3));
  EXPECT_ERROR(step.encode(encoder), (kFull));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*s.cache.nextPosition(0), 4u);
  EXPECT_EQ(*s.other.nextPosition(0), 1u);
}

TEST(RecordedStep, IsRefusedIfACacheAdvanced) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  CommandEncoder encoder(s.device);
  REQUIRE(step.encode(encoder));
  appendNow(s.other, s.device, 1);
  const auto refused = encoder.commit();
  EXPECT_ERROR(refused, {.op = "AttentionCache", .what = "the cache was changed while this encoder recorded"});
  EXPECT(!refused && refused.error().retryable);
  EXPECT_EQ(*s.cache.nextPosition(0), 0u);
}

TEST(RecordedStep, FailingCallsAreNotRecorded) {
  RecordingFixture s;
  const Tensor wrong = tokens(s.device, 1, 3);
  // A body that fails records nothing; one that continues after an error records the successful calls.
  EXPECT_ERROR(RecordedStep::record(s.device, [&](CommandEncoder& e) { return s.cache.append(e, wrong, wrong, 0); }),
               {.op = "AttentionCache.append"});
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) {
    EXPECT(!s.cache.append(encoder, wrong, wrong, 0));
    EXPECT(!encoder.encode(MultiRoPE{.queries = wrong, .positions = int64_t{1} << 40}));
    return s.append(encoder);
  });
  REQUIRE(step.run());
  EXPECT_EQ(*s.cache.nextPosition(0), 1u);
  EXPECT_EQ(s.device->committed().back().dispatches.size(), 1u);
}

TEST(RecordedStep, ReportsErrorsOfRecording) {
  const auto device = FakeDevice::make();
  RefusedCalls no;
  no(RecordedStep::record(device, {}));
  no(RecordedStep::record(nullptr, [](CommandEncoder&) { return Result<void>(); }));
  no(RecordedStep::record(device, [](CommandEncoder&) -> Result<void> { throw std::bad_alloc(); }));
  device->failAt(Call::makeSubmission);
  EXPECT(!RecordedStep::record(device, [](CommandEncoder& encoder) { return encoder.barrier(); }));
}

TEST(RecordedStep, ADeviceFailureReachesItsCaches) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  REQUIRE(step.run());
  s.device->holdCompletions();
  const Completion failed = REQUIRE(step.run());
  EXPECT(s.device->finishNext(fakeFailure()));
  EXPECT(!failed.wait());
  EXPECT(s.cache.isSuspect() && s.other.isSuspect());
  EXPECT_ERROR(step.run(), {.op = "AttentionCache.append"});
  for (AttentionCache* cache : {&s.cache, &s.other}) REQUIRE(cache->truncate(1, 0));
  const Completion again = REQUIRE(step.run());
  EXPECT(s.device->finishNext({}));
  REQUIRE(again.wait());
  EXPECT_EQ(*s.cache.nextPosition(0), 2u);
}

// A recorded call patches what it planned: over a ring of codes that wraps, it stores the bytes and gives the results
// of calls that are made anew.
TEST(RecordedStep, GivesTheResultsOfFreshStepsOnARingOfCodes) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    AttentionCacheDescriptor descriptor = turboDescriptor();
    descriptor.capacity = 24, descriptor.pinned = 2, descriptor.valueHeadDim = 0, descriptor.isStorageOnly = false;
    const AttentionCache recorded = makeCache(device, descriptor), fresh = makeCache(device, descriptor);
    const auto row = [&] { return someTokens(device, random, 1, descriptor.kvHeads, descriptor.headDim); };
    const Tensor token = row(), into = row(), expected = row();  // queries are like keys
    const auto encode = [&](AttentionCache cache, const Tensor& results) {
      return [=](CommandEncoder& encoder) mutable {
        return cache.appendAndAttend(encoder, {.queries = token,
                                               .keys = token,
                                               .values = token,
                                               .rotary = RotaryStep{},
                                               .results = {.output = results},
                                               .options = {.window = 20},
                                               .sequences = {0}});
      };
    };
    const RecordedStep step = record(device, encode(recorded, into));
    for (int run = 0; run < 30; ++run) {
      REQUIRE(token.write(bytesOf(row())));
      REQUIRE(REQUIRE(step.run()).wait());
      CommandEncoder encoder(device);
      REQUIRE(encode(fresh, expected)(encoder));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      EXPECT(bytesOf(into) == bytesOf(expected));
    }
    const auto got = *recorded.quantizedView(), wanted = *fresh.quantizedView();
    EXPECT(bytesOf(got.keys.codes) == bytesOf(wanted.keys.codes));
    EXPECT(bytesOf(got.values->scales) == bytesOf(wanted.values->scales));
  });
}

TEST(RecordedStep, AMovedFromStepIsEmpty) {
  const auto device = FakeDevice::make();
  RecordedStep step = record(device, [](CommandEncoder&) { return Result<void>(); });
  const RecordedStep moved = std::move(step);
  const RecordedStep never;
  RefusedCalls no;
  CommandEncoder encoder(device);
  for (const RecordedStep* empty : {static_cast<const RecordedStep*>(&step), &never}) {
    no(empty->run());
    no(empty->encode(encoder));
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
  RecordingFixture s;
  CommandEncoder encoder(s.device);
  StepRecording::begin(encoder);
  REQUIRE(s.append(encoder));
  EXPECT_EQ(s.device->droppedSubmissions(), 0u);
  const std::weak_ptr<Buffer> memory = s.cache.view().keys.buffer();
  {
    const RecordedStep step = REQUIRE(StepRecording::end(encoder));
    EXPECT_EQ(s.device->droppedSubmissions(), 1u);
    s.cache = s.make();
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
  RefusedCalls no;
  for (const int times : {1, 4}) {
    const auto nested = [&](const RecordedStep& inner) {
      return RecordedStep::record(device, [&](CommandEncoder& encoder) -> Result<void> {
        for (int i = 0; i < times; ++i) MNK_TRY(inner.encode(encoder));
        return {};
      });
    };
    auto step = RecordedStep::record(device, [](CommandEncoder& encoder) { return encoder.barrier(); });
    int steps = 0;
    for (; step && steps < 100; ++steps) step = nested(*step);
    // 4 ^ 8 calls are recorded, 4 ^ 9 are more than 2 ^ 17.
    EXPECT_EQ(steps, times == 1 ? 16 : 9);
    no(step);
  }
}

TEST(RecordedStep, CallsHaveALimit) {
  const auto device = FakeDevice::make();
  uint64_t calls = 0;
  const auto recorded = RecordedStep::record(device, [&](CommandEncoder& encoder) -> Result<void> {
    for (;; ++calls) MNK_TRY(encoder.barrier());
  });
  RefusedCalls no;
  no(recorded);
  EXPECT_EQ(calls, 131072u);
}

// A run that is refused because another thread was faster is retried.
TEST(RecordedStep, ThreadsAndHandlersShareAStep) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCache cache = makeCache(device);
    const Tensor token = tokens(device, 1);
    const RecordedStep step =
        record(device, [&](CommandEncoder& encoder) { return cache.append(encoder, token, token, 0); });
    constexpr int kThreads = 2, kRuns = 50;
    std::atomic<int> finished = 0;
    std::atomic<bool> isBad = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int run = 0; run < kRuns && !isBad;) {
          const auto ran = step.run([&](const Result<Summary>&) { ++finished; });
          if (ran) ++run;
          if (!ran && !ran.error().retryable) isBad = true;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(CommandEncoder::run(device, [](CommandEncoder& encoder) { return encoder.barrier(); }));
    EXPECT(!isBad);
    EXPECT_EQ(*cache.nextPosition(0), uint64_t{kThreads * kRuns});
    EXPECT_EQ(finished.load(), kThreads * kRuns);
    // Handlers run the next step.
    std::latch all(10);
    std::atomic<int> left = 10;
    std::function<void(const Result<Summary>&)> next = [&](const Result<Summary>& result) {
      EXPECT(result);
      if (--left > 0) EXPECT(step.run(next));
      all.count_down();  // the last run ends this test
    };
    REQUIRE(step.run(next));
    all.wait();
    EXPECT_EQ(*cache.nextPosition(0), uint64_t{kThreads * kRuns} + 10);
  });
}

}  // namespace mnk::test
