#include <atomic>
#include <chrono>
#include <latch>
#include <optional>
#include <stdexcept>
#include <thread>

#include "Harness/Golden.hpp"
#include "Runtime/FakeWork.hpp"

namespace mnk::test {

namespace {

// Appends its events to a text that participants share, so that tests see their order.
struct Storyteller : Witness {
  Storyteller(const std::string& name, std::string* story) {
    const auto tell = [=](const char* what) {
      *story += fmt::format("{}{} {}", story->empty() ? "" : ", ", name, what);
    };
    onAdvance = [=] { tell("advances"); };
    onFinished = [=](const Result<void>& outcome) { tell(outcome ? "succeeds" : "fails"); };
  }
};

// An encoder with a participant and a dispatch.
struct ToldWork : FakeWork {
  std::string story;
  CommandEncoder encoder{device};

  ToldWork() {
    REQUIRE(encoder.join(this, std::make_shared<Storyteller>("one", &story)));
    REQUIRE(encoder.dispatch(fakeDispatch("A", {a}, {b})));
  }
};

}  // namespace

TEST(Completion, ADroppedEncoderSubmitsNothing) {
  std::string story;
  const auto device = FakeDevice::make();
  {
    CommandEncoder encoder(device);
    REQUIRE(encoder.join(&story, std::make_shared<Storyteller>("one", &story)));
    REQUIRE(encoder.dispatch(fakeDispatch("A")));
  }
  EXPECT_EQ(device->committed().size(), 0u);
  EXPECT_EQ(device->droppedSubmissions(), 1u);
  EXPECT_EQ(story, "");
}

TEST(Completion, UseAfterCommitIsAnError) {
  const FakeWork s;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  REQUIRE(encoder.commit());
  std::string story;
  int calls = 0;
  RefusedCalls no;
  no(encoder.dispatch(fakeDispatch("B", {s.a}, {s.b})));
  no(encoder.encode(Plan{}));
  no(encoder.barrier());
  no(encoder.measureOps());
  no(encoder.join(&s, std::make_shared<Storyteller>("late", &story)));
  no(encoder.commit([&](const Result<Summary>&) { ++calls; }));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(s.device->committed().size(), 1u);
  EXPECT_EQ(s.device->committed()[0].trace, "A");
  EXPECT_EQ(encoder.summary().total.dispatches, 1u);
}

TEST(Completion, CountsInTotalAndPerKind) {
  const FakeWork s;
  Dispatch first = fakeDispatch("A", {s.a, s.b}, {s.c});
  first.kind = "Attend";
  Dispatch second = fakeDispatch("B", {s.a}, {s.d});
  second.kind = "Write";
  second.bytesRead = 5;
  second.bytesWritten = 6;
  CommandEncoder encoder(s.device);
  for (const Dispatch& dispatch : {first, second, second}) REQUIRE(encoder.dispatch(dispatch));
  s.device->holdCompletions();
  const Completion done = REQUIRE(encoder.commit());
  EXPECT_EQ(done.summary().deviceSeconds, 0.0);
  s.device->finishNext({}, 0.25);
  const Summary summary = REQUIRE(done.wait());
  const auto text = [](const Summary::Counts& counts) {
    return fmt::format("{} {} {}", counts.dispatches, counts.bytesRead, counts.bytesWritten);
  };
  EXPECT_EQ(text(summary.total), "3 138 76");
  EXPECT_EQ(summary.kinds.size(), 2u);
  EXPECT_EQ(text(summary.kinds.at("Attend")), "1 128 64");
  EXPECT_EQ(text(summary.kinds.at("Write")), "2 10 12");
  EXPECT_EQ(summary.barriers, 1u);
  EXPECT_EQ(summary.deviceSeconds, 0.25);
}

// Work outlives its encoder, and its callback may wait for it.
TEST(Completion, IsDoneOnlyWhenTheDeviceIsDone) {
  const FakeWork s;
  s.device->holdCompletions();
  for (const bool fails : {false, true}) {
    std::string told;
    Completion done;
    {
      CommandEncoder encoder(s.device);
      REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
      done = REQUIRE(encoder.commit([&](const Result<Summary>& result) {
        EXPECT(done.isDone());
        EXPECT_EQ(bool(done.wait()), bool(result));
        told += result ? "success" : result.error().what;
      }));
    }
    EXPECT(!done.isDone());
    EXPECT_EQ(told, "");
    EXPECT_EQ(s.device->droppedSubmissions(), 0u);
    EXPECT(s.device->finishNext(fails ? Result<void>(fakeFailure()) : Result<void>()));
    EXPECT(done.isDone());
    EXPECT_EQ(told, fails ? fakeFailure().what : "success");
    for (int i = 0; i < 2; ++i) {
      if (fails) EXPECT_ERROR(done.wait(), {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
      if (!fails) REQUIRE(done.wait());
    }
    EXPECT(!s.device->finishNext({}));
  }
}

TEST(Completion, AThrowingCallbackStopsNothing) {
  const FakeWork s;
  CommandEncoder first(s.device);
  const Completion done =
      REQUIRE(first.commit([](const Result<Summary>&) { throw std::runtime_error("the caller's own"); }));
  EXPECT(bool(done.wait()));
  CommandEncoder second(s.device);
  EXPECT(bool(REQUIRE(second.commit([](const Result<Summary>&) { throw 5; })).wait()));
}

TEST(Completion, SeveralThreadsMayWait) {
  const FakeWork s;
  s.device->holdCompletions();
  const Completion done = s.commit({s.a}, {s.b});
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

TEST(Completion, MayBeEmpty) {
  const Completion none;
  RefusedCalls no;
  no(none.wait());
  EXPECT(!none.isDone());
  EXPECT_EQ(none.summary().total.dispatches, 0u);
  // Of an encoder without work.
  const FakeWork s;
  CommandEncoder encoder(s.device);
  no(encoder.join(&s, nullptr));
  int calls = 0;
  const Completion done = REQUIRE(encoder.commit([&](const Result<Summary>& result) { calls += bool(result); }));
  EXPECT_EQ(REQUIRE(done.wait()).total.dispatches, 0u);
  EXPECT_EQ(calls, 1);
}

// Participants

TEST(Completion, ParticipantsAdvanceInOrderAndFinishBeforeWaitersWake) {
  const FakeWork s;
  s.device->holdCompletions();
  std::string story;
  CommandEncoder encoder(s.device);
  int first = 0, second = 0;
  const auto one = std::make_shared<Storyteller>("one", &story);
  REQUIRE(encoder.join(&first, one));
  REQUIRE(encoder.join(&second, std::make_shared<Storyteller>("two", &story)));
  EXPECT(encoder.participant(&first) == one.get());
  EXPECT(!encoder.participant(&s));
  REQUIRE(encoder.commit([&](const Result<Summary>&) { story += ", callback"; }));
  EXPECT_EQ(story, "one advances, two advances");
  s.device->finishNext({});
  EXPECT_EQ(story, "one advances, two advances, one succeeds, two succeeds, callback");
  EXPECT(!encoder.participant(&first));
}

// The work itself fails, or the device refuses to prepare or to run it, for example because the app's command buffer
// accepts no more work.
TEST(Completion, ParticipantsReceiveFailures) {
  using Call = FakeDevice::Call;
  const std::pair<std::optional<Call>, std::string_view> cases[] = {
      {std::nullopt, "one advances, one fails, callback of a failure"},
      {Call::prepare, "one advances, one succeeds, callback"},  // of the second attempt
      {Call::commit, "one advances, one fails, callback of a failure"}};
  for (const auto& [call, story] : cases) {
    const Context context(std::string{story});
    ToldWork s;
    const auto commit = [&] {
      return s.encoder.commit(
          [&](const Result<Summary>& result) { s.story += result ? ", callback" : ", callback of a failure"; });
    };
    if (call) s.device->failAt(*call);
    if (call == Call::prepare) EXPECT_ERROR(commit(), {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
    EXPECT_EQ(s.story, "");
    if (!call) s.device->holdCompletions();
    const Completion done = REQUIRE(commit());
    s.device->finishNext(fakeFailure());
    EXPECT_EQ(bool(done.wait()), call == Call::prepare);
    EXPECT_EQ(s.story, story);
  }
}

TEST(Completion, ARefusalAdvancesNoParticipants) {
  const FakeWork s;
  std::string story;
  CommandEncoder encoder(s.device);
  int keys[4];
  bool refuses = true;
  for (int i = 0; i < 4; ++i) {
    const auto one = std::make_shared<Storyteller>(std::string(1, static_cast<char>('A' + i)), &story);
    if (i == 2) one->onCheck = [&] { return refuses ? Result<void>(fakeFailure()) : Result<void>(); };
    REQUIRE(encoder.join(&keys[i], one));
  }
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  int calls = 0;
  EXPECT_ERROR(encoder.commit([&](const Result<Summary>&) { ++calls; }), {.code = ErrorCode::deviceFault});
  EXPECT_EQ(story, "");
  EXPECT_EQ(s.device->committed().size(), 0u);
  EXPECT_EQ(calls, 0);
  // Nothing was submitted, so the same work can be committed once the cause is gone.
  refuses = false;
  REQUIRE(encoder.commit());
  EXPECT_EQ(story, "A advances, B advances, C advances, D advances, A succeeds, B succeeds, C succeeds, D succeeds");
  EXPECT_EQ(s.device->committed()[0].trace, "A");
}

// A thread that sees a cache advance may submit work that reads the appended tokens.
TEST(Completion, WorkRunsInTheOrderParticipantsAdvance) {
  const FakeWork s;
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

}  // namespace mnk::test
