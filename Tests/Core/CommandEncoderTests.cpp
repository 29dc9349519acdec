#include "MLXNativeKernels/CommandEncoder.hpp"

#include <latch>
#include <stdexcept>
#include <thread>

#include "Support/Check.hpp"
#include "Support/FakeDevice.hpp"
#include "Support/PlanBuffer.hpp"

namespace mnk::test {

namespace {

using Call = FakeDevice::Call;

// A device and a few tensors on it.
struct Scene {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  Tensor a = make(), b = make(), c = make(), d = make();

  Tensor make() const { return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({16})))); }
};

// A kernel that reads some tensors and writes one.
Dispatch kernel(const std::string& name, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) {
  std::vector<Binding> bindings;
  uint32_t index = 0;
  for (const Tensor& tensor : reads) bindings.push_back(Binding::whole(index++, tensor, Access::read));
  for (const Tensor& tensor : writes) bindings.push_back(Binding::whole(index++, tensor, Access::write));
  return fakeDispatch(name, std::move(bindings));
}

// What the device was given for these dispatches, and whether the encoder counted the barriers that it placed.
std::string traceOf(const Scene& scene, const std::vector<Dispatch>& dispatches) {
  CommandEncoder encoder(scene.device);
  for (const Dispatch& dispatch : dispatches) REQUIRE(encoder.dispatch(dispatch));
  REQUIRE(encoder.commit());
  const std::string trace = scene.device->committed().back().trace;
  EXPECT_EQ(encoder.summary().barriers, static_cast<uint64_t>(std::count(trace.begin(), trace.end(), '|')));
  EXPECT_EQ(encoder.summary().total.dispatches, dispatches.size());
  return trace;
}

const ExpectedError kUsedAfterCommit{.op = "CommandEncoder",
                                     .what = "the encoder is used after it was committed",
                                     .got = "a committed encoder",
                                     .expected = "an encoder that still records",
                                     .fix = "Make a new encoder for further work."};

// Writes what happens to it, and to others that share the text, in order.
struct Witness : EncodingParticipant {
  std::string name;
  std::string* story;
  bool refuses = false;

  Witness(std::string name, std::string* story, bool refuses = false)
      : name(std::move(name)), story(story), refuses(refuses) {}
  void tell(const char* what) const { *story += fmt::format("{}{} {}", story->empty() ? "" : ", ", name, what); }

  Result<void> advance() override {
    tell(refuses ? "refuses" : "advances");
    return refuses ? Result<void>(Error{.op = "Witness", .what = "refused"}) : Result<void>();
  }
  void retreat() override { tell("retreats"); }
  void finished(const Result<void>& outcome) override { tell(outcome ? "succeeds" : "fails"); }
};

}  // namespace

// Barriers

TEST(CommandEncoder, IndependentWorkNeedsNoBarrier) {
  const Scene s;
  EXPECT_EQ(traceOf(s, {kernel("A", {s.a}, {s.b}), kernel("B", {s.a}, {s.c}), kernel("C", {s.a}, {s.d})}), "A B C");
}

TEST(CommandEncoder, AChainHasABarrierAtEachLink) {
  const Scene s;
  EXPECT_EQ(traceOf(s, {kernel("A", {}, {s.a}), kernel("B", {s.a}, {s.b}), kernel("C", {s.b}, {s.c})}), "A | B | C");
}

TEST(CommandEncoder, OneBarrierServesAllEarlierWork) {
  const Scene s;
  // D reads what A and B wrote; one barrier before C already orders both.
  EXPECT_EQ(traceOf(s, {kernel("A", {}, {s.a}), kernel("B", {}, {s.b}), kernel("C", {s.a}, {s.c}),
                        kernel("D", {s.b}, {s.d})}),
            "A B | C D");
}

TEST(CommandEncoder, ADiamondHasTwoBarriers) {
  const Scene s;
  EXPECT_EQ(traceOf(s, {kernel("A", {}, {s.a}), kernel("B", {s.a}, {s.b}), kernel("C", {s.a}, {s.c}),
                        kernel("D", {s.b, s.c}, {s.d})}),
            "A | B C | D");
}

TEST(CommandEncoder, OverwritingWaitsForReadersAndWriters) {
  const Scene s;
  EXPECT_EQ(traceOf(s, {kernel("A", {s.a}, {s.b}), kernel("B", {s.c}, {s.a})}), "A | B");
  EXPECT_EQ(traceOf(s, {kernel("A", {}, {s.a}), kernel("B", {}, {s.a})}), "A | B");
}

TEST(CommandEncoder, DisjointSlicesNeedNoBarrier) {
  const Scene s;
  const Tensor low = REQUIRE(s.a.slice(0, 8));
  const Tensor high = REQUIRE(s.a.slice(8, 8));
  const Tensor middle = REQUIRE(s.a.slice(7, 2));
  EXPECT_EQ(traceOf(s, {kernel("A", {}, {low}), kernel("B", {}, {high}), kernel("C", {middle}, {s.b})}), "A B | C");
}

TEST(CommandEncoder, WrappedMemoryIsKnownAgain) {
  const Scene s;
  std::vector<std::byte> memory(64);
  const auto wrap = [&] {
    return REQUIRE(Tensor::over(REQUIRE(s.device->wrapMemory(memory.data(), memory.size(), {})), DType::u8,
                                REQUIRE(Shape::make({64}))));
  };
  EXPECT_EQ(traceOf(s, {kernel("A", {}, {wrap()}), kernel("B", {wrap()}, {s.b})}), "A | B");
}

TEST(CommandEncoder, ADispatchMayReadWhatItWrites) {
  const Scene s;
  EXPECT_EQ(traceOf(s, {kernel("A", {s.a}, {s.a}), kernel("B", {s.b}, {s.b})}), "A B");
}

TEST(CommandEncoder, AnExplicitBarrierOrdersAndIsCounted) {
  const Scene s;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(kernel("A", {}, {s.a})));
  REQUIRE(encoder.barrier());
  REQUIRE(encoder.dispatch(kernel("B", {s.a}, {s.b})));
  REQUIRE(encoder.dispatch(kernel("C", {}, {s.a})));
  EXPECT_EQ(encoder.summary().barriers, 2u);
  REQUIRE(encoder.commit());
  EXPECT_EQ(s.device->committed()[0].trace, "A | B | C");
}

// Recording

TEST(CommandEncoder, TheDeviceGetsLabelPipelineAndThreadgroupShape) {
  const Scene s;
  s.device->describe("A", {.maxThreads = 48});
  CommandEncoder encoder(s.device, "a step");
  Dispatch dispatch = kernel("A", {s.a}, {s.b});
  dispatch.grid.extent = {100, 7, 3};
  REQUIRE(encoder.dispatch(dispatch));
  dispatch.grid.threadgroup = {4, 3, 2};
  dispatch.buffers.clear();
  REQUIRE(encoder.dispatch(dispatch));
  REQUIRE(encoder.commit());
  const auto recorded = s.device->committed().at(0);
  EXPECT_EQ(recorded.label, "a step");
  const auto& [chosen, given] = std::tie(recorded.dispatches.at(0), recorded.dispatches.at(1));
  EXPECT(chosen.threadgroup == (Size3{48, 1, 1}));
  EXPECT(given.threadgroup == (Size3{4, 3, 2}));
  EXPECT(chosen.pipeline == given.pipeline);
  EXPECT(chosen.dispatch.buffers.at(0).buffer == s.a.buffer());
  EXPECT_EQ(chosen.dispatch.buffers.at(1).length, 64u);
}

TEST(CommandEncoder, APlanIsRecordedWholeOrNotAtAll) {
  const Scene s;
  Dispatch bad = kernel("B", {s.a}, {s.b});
  bad.buffers[0].length = 65;
  const Plan plan{.op = "Pair", .dispatches = {kernel("A", {}, {s.a}), kernel("C", {s.a}, {s.c}), bad}};
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(kernel("before", {}, {s.a})));
  EXPECT_ERROR(encoder.encode(plan), {.what = "a binding reaches past its buffer"});
  EXPECT_EQ(encoder.summary().total.dispatches, 1u);
  EXPECT_EQ(encoder.summary().barriers, 0u);
  s.device->failAt(Call::makePipeline, 1);
  EXPECT_ERROR(encoder.encode(Plan{.op = "Pair", .dispatches = {kernel("new", {}, {s.a}), kernel("newer", {}, {s.b})}}),
               {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
  REQUIRE(encoder.dispatch(kernel("after", {}, {s.b})));
  REQUIRE(encoder.commit());
  EXPECT_EQ(s.device->committed()[0].trace, "before after");
}

TEST(CommandEncoder, APlanThatTheDeviceTookInPartIsNeverSubmitted) {
  const Scene s;
  const ExpectedError expected{.code = ErrorCode::deviceFault, .op = "FakeDevice", .what = "told to fail"};
  for (uint32_t taken : {1, 2}) {
    Context context(fmt::format("the device takes {}", taken));
    CommandEncoder encoder(s.device);
    const auto refuse = [&](const char* call, const auto& result) {
      expectError(__FILE__, __LINE__, call, errorOf(result), expected);
    };
    const Plan plan{.op = "Three",
                    .dispatches = {kernel("A", {}, {s.a}), kernel("B", {s.a}, {s.b}), kernel("C", {}, {s.c})}};
    s.device->failAt(Call::dispatch, taken);
    refuse("encode", encoder.encode(plan));
    // Later calls say why.
    refuse("dispatch", encoder.dispatch(kernel("D", {}, {s.d})));
    refuse("barrier", encoder.barrier());
    refuse("commit", encoder.commit());
  }
  EXPECT_EQ(s.device->committed().size(), 0u);
}

TEST(CommandEncoder, ADispatchThatTheDeviceRefusesLeavesTheRestAlone) {
  const Scene s;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(kernel("A", {}, {s.a})));
  s.device->failAt(Call::dispatch);
  EXPECT_ERROR(encoder.dispatch(kernel("B", {}, {s.b})), {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
  REQUIRE(encoder.dispatch(kernel("C", {}, {s.b})));
  EXPECT_EQ(encoder.summary().total.dispatches, 2u);
  REQUIRE(encoder.commit());
  EXPECT_EQ(s.device->committed()[0].trace, "A C");
}

TEST(CommandEncoder, ScratchMemoryTakesThePlaceOfMissingBuffers) {
  const Scene s;
  const Region all{.offset = 0, .rowBytes = 32, .rowStride = 32, .rows = 1};
  const auto scratch = [&](uint64_t offset, std::vector<Region> reads, std::vector<Region> writes) {
    return Binding{.index = 9, .buffer = nullptr, .offset = offset, .length = 32, .reads = reads, .writes = writes};
  };
  Dispatch low = kernel("low", {s.a}, {}), high = kernel("high", {s.a}, {}), join = kernel("join", {}, {s.b});
  low.buffers.push_back(scratch(0, {}, {all}));
  high.buffers.push_back(scratch(32, {}, {all}));
  join.buffers.push_back(scratch(0, {all}, {}));
  const Plan plan{.op = "Split", .dispatches = {low, high, join}, .scratchBytes = 64};
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.encode(plan));
  Plan again = plan;
  again.dispatches[2] = kernel("other", {}, {s.c});
  REQUIRE(encoder.encode(again));
  REQUIRE(encoder.commit());
  const auto recorded = s.device->committed()[0];
  // The second plan has scratch memory of its own, so it does not wait for the first.
  EXPECT_EQ(recorded.trace, "low high | join low high other");
  const auto bufferOf = [&](size_t i) { return recorded.dispatches.at(i).dispatch.buffers.back().buffer; };
  EXPECT(bufferOf(0) && bufferOf(0) == bufferOf(1) && bufferOf(0) == bufferOf(2));
  EXPECT_EQ(bufferOf(0)->length(), 64u);
  EXPECT(bufferOf(3) && bufferOf(3) != bufferOf(0));
}

TEST(CommandEncoder, ScratchMemoryThatIsMissingOrTooSmallIsRefused) {
  const Scene s;
  Dispatch dispatch = kernel("A", {}, {});
  dispatch.buffers.push_back({.index = 0, .buffer = nullptr, .offset = 0, .length = 32, .reads = {}, .writes = {}});
  CommandEncoder encoder(s.device);
  EXPECT_ERROR(encoder.encode(Plan{.op = "P", .dispatches = {dispatch}}), {.what = "a binding has no memory"});
  EXPECT_ERROR(encoder.dispatch(dispatch), {.what = "a binding has no memory"});
  EXPECT_ERROR(encoder.encode(Plan{.op = "P", .dispatches = {dispatch}, .scratchBytes = 31}),
               {.what = "a binding reaches past its buffer"});
  s.device->failAt(Call::makeBuffer);
  EXPECT_ERROR(encoder.encode(Plan{.op = "P", .dispatches = {dispatch}, .scratchBytes = 32}),
               {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

TEST(CommandEncoder, MemoryOfNobodyAndOfAnotherDeviceIsRefused) {
  const Scene s;
  CommandEncoder encoder(s.device);
  EXPECT_ERROR(encoder.dispatch(kernel("A", {planTensor(DType::f32, {4})}, {s.a})),
               {.what = "a tensor belongs to another device", .got = "memory of no device"});
  EXPECT_ERROR(encoder.dispatch(kernel("A", {Scene().a}, {s.a})), {.what = "a tensor belongs to another device"});
  EXPECT_ERROR(encoder.dispatch(kernel("A", {Tensor()}, {s.a})), {.what = "a binding has no memory"});
}

TEST(CommandEncoder, AnEmptyGridIsCheckedAndRecordsNothing) {
  const Scene s;
  CommandEncoder encoder(s.device);
  for (size_t axis = 0; axis < 3; ++axis) {
    Dispatch empty = kernel("A", {s.a}, {s.b});
    empty.grid.extent[axis] = 0;
    REQUIRE(encoder.dispatch(empty));
    empty.buffers[0].length = 65;
    EXPECT_ERROR(encoder.dispatch(empty), {.what = "a binding reaches past its buffer"});
  }
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  REQUIRE(encoder.dispatch(kernel("B", {s.b}, {s.c})));
  REQUIRE(encoder.commit());
  EXPECT_EQ(s.device->committed()[0].trace, "B");
}

TEST(CommandEncoder, ADroppedEncoderSubmitsNothing) {
  const Scene s;
  std::string story;
  {
    CommandEncoder encoder(s.device);
    REQUIRE(encoder.join(&s, std::make_shared<Witness>("one", &story)));
    REQUIRE(encoder.dispatch(kernel("A", {s.a}, {s.b})));
  }
  EXPECT_EQ(s.device->committed().size(), 0u);
  EXPECT_EQ(s.device->droppedSubmissions(), 1u);
  EXPECT_EQ(story, "");
}

TEST(CommandEncoder, WithoutADeviceEveryCallSaysSo) {
  CommandEncoder encoder(nullptr);
  const ExpectedError expected{.op = "CommandEncoder",
                               .what = "the encoder has no device",
                               .got = "a null device",
                               .expected = "a device",
                               .fix = "Make one with Device::makeDefault"};
  const auto refuse = [&](const char* call, const auto& result) {
    expectError(__FILE__, __LINE__, call, errorOf(result), expected);
  };
  refuse("dispatch", encoder.dispatch(fakeDispatch("A")));
  refuse("encode", encoder.encode(Plan{}));
  refuse("barrier", encoder.barrier());
  refuse("join", encoder.join(&encoder, nullptr));
  refuse("commit", encoder.commit());
  EXPECT(!encoder.device());
  EXPECT(!encoder.participant(&encoder));
}

TEST(CommandEncoder, ADeviceThatCannotStartIsReported) {
  const Scene s;
  CommandEncoder encoder(s.device);
  s.device->failAt(Call::makeSubmission, 0, 2);
  EXPECT_ERROR(encoder.dispatch(kernel("A", {s.a}, {s.b})), {.code = ErrorCode::deviceFault});
  EXPECT_ERROR(encoder.commit(), {.code = ErrorCode::deviceFault});
  REQUIRE(encoder.dispatch(kernel("A", {s.a}, {s.b})));
  REQUIRE(encoder.commit());
  EXPECT_EQ(s.device->committed()[0].trace, "A");
}

// Committing

TEST(CommandEncoder, UseAfterCommitIsAnError) {
  const Scene s;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(kernel("A", {s.a}, {s.b})));
  REQUIRE(encoder.commit());
  const auto refuse = [&](const char* call, const auto& result) {
    expectError(__FILE__, __LINE__, call, errorOf(result), kUsedAfterCommit);
  };
  std::string story;
  refuse("dispatch", encoder.dispatch(kernel("B", {s.a}, {s.b})));
  refuse("encode", encoder.encode(Plan{}));
  refuse("barrier", encoder.barrier());
  refuse("join", encoder.join(&s, std::make_shared<Witness>("late", &story)));
  int calls = 0;
  refuse("commit", encoder.commit([&](const Result<Summary>&) { ++calls; }));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(s.device->committed().size(), 1u);
  EXPECT_EQ(s.device->committed()[0].trace, "A");
  EXPECT_EQ(encoder.summary().total.dispatches, 1u);
}

TEST(CommandEncoder, AnEmptyCommitCompletes) {
  const Scene s;
  CommandEncoder encoder(s.device);
  int calls = 0;
  const Completion done = REQUIRE(encoder.commit([&](const Result<Summary>& result) { calls += bool(result); }));
  EXPECT_EQ(REQUIRE(done.wait()).total.dispatches, 0u);
  EXPECT_EQ(calls, 1);
}

TEST(CommandEncoder, CountsInTotalAndPerKind) {
  const Scene s;
  Dispatch first = kernel("A", {s.a, s.b}, {s.c});
  first.kind = "Attend";
  Dispatch second = kernel("B", {s.a}, {s.d});
  second.kind = "Write";
  second.bytesRead = 5;
  second.bytesWritten = 6;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(first));
  REQUIRE(encoder.dispatch(second));
  REQUIRE(encoder.dispatch(second));
  s.device->holdCompletions();
  const Completion done = REQUIRE(encoder.commit());
  EXPECT_EQ(done.summary().deviceSeconds, 0.0);
  s.device->finishNext({}, 0.25);
  const Summary summary = REQUIRE(done.wait());
  EXPECT_EQ(summary.total.dispatches, 3u);
  EXPECT_EQ(summary.total.bytesRead, 138u);
  EXPECT_EQ(summary.total.bytesWritten, 76u);
  EXPECT_EQ(summary.barriers, 1u);
  EXPECT_EQ(summary.deviceSeconds, 0.25);
  EXPECT_EQ(summary.kinds.size(), 2u);
  EXPECT_EQ(summary.kinds.at("Attend").dispatches, 1u);
  EXPECT_EQ(summary.kinds.at("Attend").bytesRead, 128u);
  EXPECT_EQ(summary.kinds.at("Attend").bytesWritten, 64u);
  EXPECT_EQ(summary.kinds.at("Write").dispatches, 2u);
  EXPECT_EQ(summary.kinds.at("Write").bytesRead, 10u);
  EXPECT_EQ(summary.kinds.at("Write").bytesWritten, 12u);
}

TEST(CommandEncoder, IsDoneOnlyWhenTheDeviceIsDone) {
  const Scene s;
  s.device->holdCompletions();
  CommandEncoder encoder(s.device);
  int calls = 0;
  const Completion done = REQUIRE(encoder.commit([&](const Result<Summary>&) { ++calls; }));
  EXPECT(!done.isDone());
  EXPECT_EQ(calls, 0);
  EXPECT(s.device->finishNext({}));
  EXPECT(done.isDone());
  EXPECT_EQ(calls, 1);
  EXPECT(!s.device->finishNext({}));
}

TEST(CommandEncoder, AFailureReachesWaitersAndTheCallback) {
  const Scene s;
  s.device->holdCompletions();
  CommandEncoder encoder(s.device);
  std::string told;
  const Completion done =
      REQUIRE(encoder.commit([&](const Result<Summary>& result) { told = result ? "success" : result.error().what; }));
  s.device->finishNext(fakeFailure());
  EXPECT_EQ(told, fakeFailure().what);
  for (int i = 0; i < 2; ++i) EXPECT_ERROR(done.wait(), {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
  EXPECT(done.isDone());
}

TEST(CommandEncoder, WaitingInTheCallbackDoesNotHang) {
  const Scene s;
  s.device->holdCompletions();
  CommandEncoder encoder(s.device);
  std::optional<Completion> done;
  bool succeeded = false;
  done = REQUIRE(encoder.commit([&](const Result<Summary>&) { succeeded = done->isDone() && bool(done->wait()); }));
  s.device->finishNext({});
  EXPECT(succeeded);
}

TEST(CommandEncoder, ACallbackThatThrowsStopsNothing) {
  const Scene s;
  CommandEncoder first(s.device);
  const Completion done =
      REQUIRE(first.commit([](const Result<Summary>&) { throw std::runtime_error("the caller's own"); }));
  EXPECT(bool(done.wait()));
  CommandEncoder second(s.device);
  EXPECT(bool(REQUIRE(second.commit([](const Result<Summary>&) { throw 5; })).wait()));
}

TEST(CommandEncoder, SeveralThreadsMayWait) {
  const Scene s;
  s.device->holdCompletions();
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(kernel("A", {s.a}, {s.b})));
  const Completion done = REQUIRE(encoder.commit());
  constexpr int kThreads = 4;
  std::latch waiting(kThreads);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      waiting.count_down();
      const auto result = done.wait();
      right += result && result->total.dispatches == 1 && result->deviceSeconds == 2;
    });
  }
  waiting.wait();
  s.device->finishNext({}, 2);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right.load(), kThreads);
}

TEST(CommandEncoder, WorkOutlivesItsEncoderAndItsCompletion) {
  const Scene s;
  s.device->holdCompletions();
  int calls = 0;
  {
    CommandEncoder encoder(s.device);
    REQUIRE(encoder.dispatch(kernel("A", {s.a}, {s.b})));
    REQUIRE(encoder.commit([&](const Result<Summary>& result) { calls += bool(result); }));
  }
  EXPECT_EQ(s.device->droppedSubmissions(), 0u);
  EXPECT(s.device->finishNext({}));
  EXPECT_EQ(calls, 1);
}

TEST(CommandEncoder, AnEmptyCompletionIsRefused) {
  const Completion none;
  EXPECT_ERROR(none.wait(), {.op = "Completion", .what = "nothing was committed"});
  EXPECT(!none.isDone());
  EXPECT_EQ(none.summary().total.dispatches, 0u);
}

// Participants

TEST(CommandEncoder, ParticipantsAdvanceInOrderAndFinishBeforeWaitersAreTold) {
  const Scene s;
  s.device->holdCompletions();
  std::string story;
  CommandEncoder encoder(s.device);
  int first = 0, second = 0;
  const auto one = std::make_shared<Witness>("one", &story);
  REQUIRE(encoder.join(&first, one));
  REQUIRE(encoder.join(&second, std::make_shared<Witness>("two", &story)));
  EXPECT(encoder.participant(&first) == one);
  EXPECT(!encoder.participant(&s));
  REQUIRE(encoder.commit([&](const Result<Summary>&) { story += ", callback"; }));
  EXPECT_EQ(story, "one advances, two advances");
  s.device->finishNext({});
  EXPECT_EQ(story, "one advances, two advances, one succeeds, two succeeds, callback");
  EXPECT(!encoder.participant(&first));
}

TEST(CommandEncoder, ParticipantsHearOfFailure) {
  const Scene s;
  s.device->holdCompletions();
  std::string story;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.join(&s, std::make_shared<Witness>("one", &story)));
  REQUIRE(encoder.commit());
  s.device->finishNext(fakeFailure());
  EXPECT_EQ(story, "one advances, one fails");
}

TEST(CommandEncoder, ARefusalTakesBackEarlierAdvancesInReverseAndSubmitsNothing) {
  const Scene s;
  std::string story;
  CommandEncoder encoder(s.device);
  int keys[4];
  const auto reluctant = std::make_shared<Witness>("three", &story, true);
  REQUIRE(encoder.join(&keys[0], std::make_shared<Witness>("one", &story)));
  REQUIRE(encoder.join(&keys[1], std::make_shared<Witness>("two", &story)));
  REQUIRE(encoder.join(&keys[2], reluctant));
  REQUIRE(encoder.join(&keys[3], std::make_shared<Witness>("four", &story)));
  REQUIRE(encoder.dispatch(kernel("A", {s.a}, {s.b})));
  int calls = 0;
  EXPECT_ERROR(encoder.commit([&](const Result<Summary>&) { ++calls; }), {.op = "Witness", .what = "refused"});
  EXPECT_EQ(story, "one advances, two advances, three refuses, two retreats, one retreats");
  EXPECT_EQ(s.device->committed().size(), 0u);
  EXPECT_EQ(calls, 0);
  // Nothing was submitted, so the same work may be committed once the reason is gone.
  reluctant->refuses = false;
  story.clear();
  REQUIRE(encoder.commit());
  EXPECT_EQ(story,
            "one advances, two advances, three advances, four advances, "
            "one succeeds, two succeeds, three succeeds, four succeeds");
  EXPECT_EQ(s.device->committed()[0].trace, "A");
}

TEST(CommandEncoder, NobodyCannotJoin) {
  const Scene s;
  CommandEncoder encoder(s.device);
  EXPECT_ERROR(encoder.join(&s, nullptr), {.op = "CommandEncoder", .what = "participant", .got = "null"});
  REQUIRE(encoder.commit());
}

TEST(CommandEncoder, SeveralThreadsEncodeOnTheirOwnEncoders) {
  const Scene s;
  constexpr int kThreads = 4;
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) {
        CommandEncoder encoder(s.device);
        auto result = encoder.dispatch(kernel(fmt::format("k{}", n % 5), {s.a}, {s.b}));
        if (result) result = encoder.dispatch(kernel("last", {s.b}, {s.c}));
        auto done = encoder.commit();
        if (!result || !done || !done->wait()) failures[i] = "a call failed";
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  EXPECT_EQ(s.device->committed().size(), 200u);
  for (const auto& recorded : s.device->committed()) EXPECT(recorded.trace.ends_with(" | last"));
  EXPECT_EQ(s.device->tried(Call::makePipeline), 6u);
}

}  // namespace mnk::test
