// Reading and writing memory that submitted work may still access.
#include <barrier>

#include "Harness/EveryDevice.hpp"
#include "Harness/Golden.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Runtime/FakeWork.hpp"
#include "Runtime/WorkInFlight.hpp"
#include "Support/Errors.hpp"

namespace mnk::test {

namespace {

// out = in, with a shipped kernel.
KVCacheWrite copyOf(const Tensor& in, const Tensor& out) {
  const Shape shape = REQUIRE(Shape::make({1, in.shape().elementCount(), 1}));
  return {.keys = REQUIRE(in.reshaped(shape)),
          .sourceLayout = KVLayout::headMajor,
          .into = {.keys = REQUIRE(out.reshaped(shape))}};
}

Completion commitCopy(const std::shared_ptr<Device>& device, const Tensor& in, const Tensor& out) {
  CommandEncoder encoder(device);
  REQUIRE(encoder.encode(copyOf(in, out)));
  return REQUIRE(encoder.commit());
}

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

MemoryRange rangeAt(uint64_t begin) {
  return {nullptr, begin, begin + 64};
}
Touched touchedAt(uint64_t begin, bool isWrite) {
  return {.region = {.offset = begin, .rowBytes = 64, .rowStride = 64}, .isWrite = isWrite, .isWhole = isWrite};
}

}  // namespace

TEST(MemoryInFlight, AReadRightAfterCommitHasTheNewBytes) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    constexpr uint64_t kCount = 1 << 16;
    const Tensor in = floats(device, kCount), out = floats(device, kCount), other = floats(device, 4, 5);
    const std::vector<float> values = ramp(kCount);
    REQUIRE(in.write(std::as_bytes(std::span(values))));
    Gate gate(device);
    commitCopy(device, in, out);
    // The work cannot continue before these calls have returned.
    EXPECT(REQUIRE(valuesOf(other)) == std::vector<float>(4, 5));
    EXPECT(REQUIRE(valuesOf(in)) == ramp(kCount));
    REQUIRE(fill(other, 6));
    const auto read = waitingFor([&] { gate.open(); }, [&] { return valuesOf(out); });
    EXPECT(REQUIRE(read) == ramp(kCount));
  });
}

TEST(MemoryInFlight, AWriteRightAfterCommitWaitsForReadersAndWriters) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const bool isInput : {true, false}) {
      constexpr uint64_t kCount = 1 << 12;
      const Tensor in = floats(device, kCount, 7), out = floats(device, kCount);
      Gate gate(device);
      commitCopy(device, in, out);
      REQUIRE(waitingFor([&] { gate.open(); }, [&] { return fill(isInput ? in : out, 8); }));
      EXPECT(REQUIRE(valuesOf(in)) == std::vector<float>(kCount, isInput ? 8 : 7));
      EXPECT(REQUIRE(valuesOf(out)) == std::vector<float>(kCount, isInput ? 7 : 8));
    }
  });
}

TEST(MemoryInFlight, AHandlerReadsItsOwnResults) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const Tensor in = floats(device, 64, 3), out = floats(device, 64);
    std::optional<std::vector<float>> read;
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(copyOf(in, out)));
    std::latch done(1);
    REQUIRE(encoder.commit([&](const Result<Summary>&) {
      if (auto values = valuesOf(out)) read = std::move(*values);
      done.count_down();
    }));
    done.wait();
    EXPECT(read == std::vector<float>(64, 3));
  });
}

TEST(MemoryInFlight, WaitsOnlyForSubmittedWork) {
  const FakeWork s;
  s.device->holdCompletions();
  const auto witness = std::make_shared<Witness>();
  int refusals = 1;
  witness->onCheck = [&] { return refusals-- > 0 ? Result<void>(fakeFailure()) : Result<void>(); };
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  REQUIRE(encoder.join(&s, witness));
  EXPECT_ERROR(encoder.commit(), {.code = ErrorCode::deviceFault});
  REQUIRE(valuesOf(s.b));
  REQUIRE(fill(s.a, 1));
  REQUIRE(encoder.commit());
  REQUIRE(waitingFor([&] { s.device->finishNext({}); }, [&] { return valuesOf(s.b); }));
}

TEST(MemoryInFlight, WorkIsTrackedWhenAParticipantAdvances) {
  const FakeWork s;
  s.device->holdCompletions();
  std::thread reader;
  std::atomic<bool> hasRead = false;
  const auto witness = std::make_shared<Witness>();
  witness->onAdvance = [&] {
    reader = std::thread([&] {
      if (valuesOf(s.b)) hasRead = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT(!hasRead);
  };
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  REQUIRE(encoder.join(&s, witness));
  REQUIRE(encoder.commit());
  s.device->finishNext({});
  reader.join();
  EXPECT(hasRead);
}

TEST(MemoryInFlight, RunReturnsTheSummaryOrTheFirstError) {
  const auto fake = FakeDevice::make();
  const auto encode = [](CommandEncoder& encoder) { return encoder.dispatch(fakeDispatch("A")); };
  EXPECT_EQ(REQUIRE(CommandEncoder::run(fake, encode, "copy")).total.dispatches, 1u);
  EXPECT_EQ(fake->takeCommitted().at(0).label, "copy");
  RefusedCalls no;
  no(CommandEncoder::run(fake, [&](CommandEncoder& encoder) -> Result<void> {
    MNK_TRY(encode(encoder));
    return fakeFailure();
  }));
  EXPECT_EQ(fake->committed().size(), 0u);
  no(CommandEncoder::run(fake, {}));
  no(CommandEncoder::run(nullptr, encode));
}

TEST(MemoryInFlight, ThreadsReadWhileADeviceWrites) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    constexpr int kReaders = 4, kSteps = 12;
    constexpr uint64_t kCount = 1 << 10;
    const Tensor in = floats(device, kCount), out = floats(device, kCount), beside = floats(device, kCount, 1);
    const Tensor fixed = floats(device, 16, 5);
    std::atomic<int> wrong = 0;
    std::barrier step(kReaders + 1);
    std::vector<std::thread> readers;
    for (int i = 0; i < kReaders; ++i) {
      readers.emplace_back([&] {
        for (int now = 1; now <= kSteps; ++now) {
          step.arrive_and_wait();
          const auto values = valuesOf(out);
          const auto same = valuesOf(fixed);
          wrong += !values || *values != std::vector<float>(kCount, static_cast<float>(now));
          wrong += !same || *same != std::vector<float>(16, 5);
          step.arrive_and_wait();
        }
      });
    }
    for (int now = 1; now <= kSteps; ++now) {
      if (!fill(in, static_cast<float>(now))) ++wrong;
      commitCopy(device, in, out);
      step.arrive_and_wait();
      // Other threads meanwhile use other memory.
      commitCopy(device, fixed, REQUIRE(beside.slice(0, 16)));
      step.arrive_and_wait();
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(wrong.load(), 0);
  });
}

// Races that tests reach only through the tracker: between the end of work on a device and its report.

// A device releases memory before it reports a failure, so another buffer may already use that memory.
TEST(MemoryTracker, AFailureDoesNotAffectNewerMemory) {
  LiveMemory before;
  before.begin(rangeAt(4096));
  SubmittedWork work({});
  std::vector<Touched> touched{touchedAt(4096, true)};
  OpenStep none;
  work.submit(touched, none);
  before.end();
  LiveMemory after;
  after.begin(rangeAt(4096));
  EXPECT(!work.settle(fakeFailure()));
  work.retire();
  REQUIRE(MemoryTracker::shared().waitToRead(rangeAt(4096)));
}

// The app's handler may run before the library's and read the results of work whose inputs failed.
TEST(MemoryTracker, FinishedWorkWithFailedInputsHasFailed) {
  LiveMemory input, output;
  input.begin(rangeAt(8192));
  output.begin(rangeAt(12288));
  SubmittedWork failing({}), dependent([] { return WorkProgress::done; });
  std::vector<Touched> written{touchedAt(8192, true)}, both{touchedAt(8192, false), touchedAt(12288, true)};
  OpenStep none;
  failing.submit(written, none);
  dependent.submit(both, none);
  EXPECT(!failing.settle(fakeFailure()));
  failing.retire();
  EXPECT_ERROR(MemoryTracker::shared().waitToRead(rangeAt(12288)), {.code = ErrorCode::deviceFault});
  EXPECT(!dependent.settle({}));
  dependent.retire();
}

}  // namespace mnk::test
