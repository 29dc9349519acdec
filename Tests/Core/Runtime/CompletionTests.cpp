#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

// A device and a few tensors on it.
struct GatedWork {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  Tensor a = make(), b = make(), c = make(), d = make();

  Tensor make() const { return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({16})))); }
};

const ExpectedError kUsedAfterCommit{.op = "CommandEncoder",
                                     .what = "the encoder is used after it was committed",
                                     .got = "a committed encoder",
                                     .expected = "an encoder that still records",
                                     .fix = "Make a new encoder for further work."};

// Appends its events to a text that participants share, so that tests see their order.
struct Witness : EncodingParticipant {
  std::string name;
  std::string* story;
  bool refuses = false;

  Witness(std::string name, std::string* story, bool refuses = false)
      : name(std::move(name)), story(story), refuses(refuses) {}
  void tell(const char* what) const { *story += fmt::format("{}{} {}", story->empty() ? "" : ", ", name, what); }

  Result<void> check() override {
    if (!refuses) return {};
    tell("refuses");
    return Error{.op = "Witness", .what = "refused"};
  }
  void advance() noexcept override { tell("advances"); }
  void finished(const Result<void>& outcome) noexcept override { tell(outcome ? "succeeds" : "fails"); }
};

}  // namespace

TEST(Completion, ADroppedEncoderSubmitsNothing) {
  const GatedWork s;
  std::string story;
  {
    CommandEncoder encoder(s.device);
    REQUIRE(encoder.join(&s, std::make_shared<Witness>("one", &story)));
    REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  }
  EXPECT_EQ(s.device->committed().size(), 0u);
  EXPECT_EQ(s.device->droppedSubmissions(), 1u);
  EXPECT_EQ(story, "");
}

TEST(Completion, UseAfterCommitIsAnError) {
  const GatedWork s;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  REQUIRE(encoder.commit());
  const auto refuse = [&](const char* call, const auto& result) {
    expectError(__FILE__, __LINE__, call, errorOf(result), kUsedAfterCommit);
  };
  std::string story;
  refuse("dispatch", encoder.dispatch(fakeDispatch("B", {s.a}, {s.b})));
  refuse("encode", encoder.encode(Plan{}));
  refuse("barrier", encoder.barrier());
  refuse("measureOps", encoder.measureOps());
  refuse("join", encoder.join(&s, std::make_shared<Witness>("late", &story)));
  int calls = 0;
  refuse("commit", encoder.commit([&](const Result<Summary>&) { ++calls; }));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(s.device->committed().size(), 1u);
  EXPECT_EQ(s.device->committed()[0].trace, "A");
  EXPECT_EQ(encoder.summary().total.dispatches, 1u);
}

TEST(Completion, AnEmptyCommitCompletes) {
  const GatedWork s;
  CommandEncoder encoder(s.device);
  int calls = 0;
  const Completion done = REQUIRE(encoder.commit([&](const Result<Summary>& result) { calls += bool(result); }));
  EXPECT_EQ(REQUIRE(done.wait()).total.dispatches, 0u);
  EXPECT_EQ(calls, 1);
}

TEST(Completion, CountsInTotalAndPerKind) {
  const GatedWork s;
  Dispatch first = fakeDispatch("A", {s.a, s.b}, {s.c});
  first.kind = "Attend";
  Dispatch second = fakeDispatch("B", {s.a}, {s.d});
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

TEST(Completion, IsDoneOnlyWhenTheDeviceIsDone) {
  const GatedWork s;
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

TEST(Completion, FailuresReachWaitersAndTheCallback) {
  const GatedWork s;
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

TEST(Completion, WaitingInTheCallbackDoesNotHang) {
  const GatedWork s;
  s.device->holdCompletions();
  CommandEncoder encoder(s.device);
  std::optional<Completion> done;
  bool succeeded = false;
  done = REQUIRE(encoder.commit([&](const Result<Summary>&) { succeeded = done->isDone() && bool(done->wait()); }));
  s.device->finishNext({});
  EXPECT(succeeded);
}

TEST(Completion, AThrowingCallbackStopsNothing) {
  const GatedWork s;
  CommandEncoder first(s.device);
  const Completion done =
      REQUIRE(first.commit([](const Result<Summary>&) { throw std::runtime_error("the caller's own"); }));
  EXPECT(bool(done.wait()));
  CommandEncoder second(s.device);
  EXPECT(bool(REQUIRE(second.commit([](const Result<Summary>&) { throw 5; })).wait()));
}

TEST(Completion, SeveralThreadsMayWait) {
  const GatedWork s;
  s.device->holdCompletions();
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
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

TEST(Completion, WorkOutlivesItsEncoderAndItsCompletion) {
  const GatedWork s;
  s.device->holdCompletions();
  int calls = 0;
  {
    CommandEncoder encoder(s.device);
    REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
    REQUIRE(encoder.commit([&](const Result<Summary>& result) { calls += bool(result); }));
  }
  EXPECT_EQ(s.device->droppedSubmissions(), 0u);
  EXPECT(s.device->finishNext({}));
  EXPECT_EQ(calls, 1);
}

TEST(Completion, RefusesAnEmptyCompletion) {
  const Completion none;
  EXPECT_ERROR(none.wait(), {.op = "Completion", .what = "nothing was committed"});
  EXPECT(!none.isDone());
  EXPECT_EQ(none.summary().total.dispatches, 0u);
}

// Participants

TEST(Completion, ParticipantsAdvanceInOrderAndFinishBeforeWaitersWake) {
  const GatedWork s;
  s.device->holdCompletions();
  std::string story;
  CommandEncoder encoder(s.device);
  int first = 0, second = 0;
  const auto one = std::make_shared<Witness>("one", &story);
  REQUIRE(encoder.join(&first, one));
  REQUIRE(encoder.join(&second, std::make_shared<Witness>("two", &story)));
  EXPECT(encoder.participant(&first) == one.get());
  EXPECT(!encoder.participant(&s));
  REQUIRE(encoder.commit([&](const Result<Summary>&) { story += ", callback"; }));
  EXPECT_EQ(story, "one advances, two advances");
  s.device->finishNext({});
  EXPECT_EQ(story, "one advances, two advances, one succeeds, two succeeds, callback");
  EXPECT(!encoder.participant(&first));
}

TEST(Completion, ParticipantsReceiveFailures) {
  const GatedWork s;
  s.device->holdCompletions();
  std::string story;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.join(&s, std::make_shared<Witness>("one", &story)));
  REQUIRE(encoder.commit());
  s.device->finishNext(fakeFailure());
  EXPECT_EQ(story, "one advances, one fails");
}

TEST(Completion, ARefusalAdvancesNoParticipants) {
  const GatedWork s;
  std::string story;
  CommandEncoder encoder(s.device);
  int keys[4];
  const auto reluctant = std::make_shared<Witness>("three", &story, true);
  REQUIRE(encoder.join(&keys[0], std::make_shared<Witness>("one", &story)));
  REQUIRE(encoder.join(&keys[1], std::make_shared<Witness>("two", &story)));
  REQUIRE(encoder.join(&keys[2], reluctant));
  REQUIRE(encoder.join(&keys[3], std::make_shared<Witness>("four", &story)));
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  int calls = 0;
  EXPECT_ERROR(encoder.commit([&](const Result<Summary>&) { ++calls; }), {.op = "Witness", .what = "refused"});
  EXPECT_EQ(story, "three refuses");
  EXPECT_EQ(s.device->committed().size(), 0u);
  EXPECT_EQ(calls, 0);
  // Nothing was submitted, so the same work can be committed once the cause is gone.
  reluctant->refuses = false;
  story.clear();
  REQUIRE(encoder.commit());
  EXPECT_EQ(story,
            "one advances, two advances, three advances, four advances, "
            "one succeeds, two succeeds, three succeeds, four succeeds");
  EXPECT_EQ(s.device->committed()[0].trace, "A");
}

TEST(Completion, UnpreparedWorkAdvancesNothing) {
  const GatedWork s;
  std::string story;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.join(&s, std::make_shared<Witness>("one", &story)));
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  s.device->failAt(FakeDevice::Call::prepare);
  int calls = 0;
  EXPECT_ERROR(encoder.commit([&](const Result<Summary>&) { ++calls; }),
               {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
  EXPECT_EQ(story, "");
  REQUIRE(encoder.commit([&](const Result<Summary>&) { ++calls; }));
  EXPECT_EQ(story, "one advances, one succeeds");
  EXPECT_EQ(calls, 1);
}

// For example, because the app's command buffer accepts no more work.
TEST(Completion, WorkRefusedByTheDeviceFails) {
  const GatedWork s;
  std::string story;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.join(&s, std::make_shared<Witness>("one", &story)));
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  s.device->failAt(FakeDevice::Call::commit);
  const Completion completion = REQUIRE(encoder.commit(
      [&](const Result<Summary>& result) { story += result ? ", callback" : ", callback of a failure"; }));
  EXPECT_ERROR(completion.wait(), {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
  EXPECT_EQ(story, "one advances, one fails, callback of a failure");
}

// A thread that sees a cache advance may submit work that reads the appended tokens.
TEST(Completion, WorkRunsInTheOrderParticipantsAdvance) {
  const GatedWork s;
  CommandEncoder first(s.device), second(s.device);
  REQUIRE(first.dispatch(fakeDispatch("first", {s.a}, {s.b})));
  REQUIRE(second.dispatch(fakeDispatch("second", {s.c}, {s.d})));
  std::thread other;
  s.device->onCommit = [&] {
    other = std::thread([&] { REQUIRE(second.commit()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  REQUIRE(first.commit());
  other.join();
  const auto committed = s.device->committed();
  EXPECT_EQ(committed.size(), 2u);
  EXPECT_EQ(committed.front().trace, "first");
}

TEST(Completion, RefusesAMissingParticipant) {
  const GatedWork s;
  CommandEncoder encoder(s.device);
  EXPECT_ERROR(encoder.join(&s, nullptr), {.op = "CommandEncoder", .what = "participant", .got = "null"});
  REQUIRE(encoder.commit());
}

}  // namespace mnk::test
