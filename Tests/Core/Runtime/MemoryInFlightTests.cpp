// Reading and writing memory that submitted work may still access.
#include <barrier>

#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"

namespace mnk::test {

namespace {

// A device that delays its work, and tensors on it.
struct WorkInFlight {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  Tensor a = floats(device, 16, 1), b = floats(device, 16, 2);

  WorkInFlight() { device->holdCompletions(); }
  Completion commit(const std::vector<Tensor>& reads, const std::vector<Tensor>& writes,
                    CommandEncoder::Finished finished = {}) const {
    CommandEncoder encoder(device);
    REQUIRE(encoder.dispatch(fakeDispatch("A", reads, writes)));
    return REQUIRE(encoder.commit(std::move(finished)));
  }
};

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

TEST(MemoryInFlight, AWriteRightAfterCommitWaitsForReaders) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    constexpr uint64_t kCount = 1 << 12;
    const Tensor in = floats(device, kCount, 7), out = floats(device, kCount);
    Gate gate(device);
    commitCopy(device, in, out);
    REQUIRE(waitingFor([&] { gate.open(); }, [&] { return fill(in, 8); }));
    EXPECT(REQUIRE(valuesOf(out)) == std::vector<float>(kCount, 7));
    EXPECT(REQUIRE(valuesOf(in)) == std::vector<float>(kCount, 8));
  });
}

TEST(MemoryInFlight, ReadsWaitOnlyForWriters) {
  const WorkInFlight s;
  s.commit({s.a}, {s.b});
  EXPECT(REQUIRE(valuesOf(s.a)) == std::vector<float>(16, 1));
  const auto read = waitingFor(
      [&] {
        fillUnchecked(s.b, 3);
        s.device->finishNext({});
      },
      [&] { return valuesOf(s.b); });
  EXPECT(REQUIRE(read) == std::vector<float>(16, 3));
}

TEST(MemoryInFlight, WritesWaitForReadersAndWriters) {
  const WorkInFlight s;
  for (const bool isInput : {true, false}) {
    s.commit({s.a}, {s.b});
    const Tensor& written = isInput ? s.a : s.b;
    REQUIRE(waitingFor([&] { s.device->finishNext({}); }, [&] { return fill(written, 4); }));
    EXPECT(REQUIRE(valuesOf(written)) == std::vector<float>(16, 4));
  }
}

TEST(MemoryInFlight, DisjointBytesOfOneBufferAreIndependent) {
  const WorkInFlight s;
  const Tensor front = REQUIRE(s.b.slice(0, 8)), back = REQUIRE(s.b.slice(8, 8));
  s.commit({s.a}, {front});
  EXPECT(REQUIRE(valuesOf(back)) == std::vector<float>(8, 2));
  REQUIRE(fill(back, 9));
  REQUIRE(waitingFor([&] { s.device->finishNext({}); }, [&] { return valuesOf(s.b); }));
}

TEST(MemoryInFlight, BytesBetweenDeclaredRowsAreIndependent) {
  const WorkInFlight s;
  Dispatch dispatch = fakeDispatch("A", {Binding::whole(0, s.b, Access::write)});
  dispatch.buffers[0].writes = {{.offset = 0, .rowBytes = 8, .rowStride = 16, .rows = 4}};
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(dispatch));
  REQUIRE(encoder.commit());
  for (uint64_t row = 0; row < 4; ++row) {
    EXPECT(REQUIRE(valuesOf(REQUIRE(s.b.slice(row * 4 + 2, 2)))) == std::vector<float>(2, 2));
  }
  REQUIRE(waitingFor([&] { s.device->finishNext({}); }, [&] { return valuesOf(REQUIRE(s.b.slice(13, 1))); }));
}

TEST(MemoryInFlight, BuffersOfTwoDevicesOverOneMemoryConflict) {
  const WorkInFlight s;
  const auto other = FakeDevice::make();
  const auto wrapped = REQUIRE(other->wrapMemory(s.b.buffer()->contents(), s.b.byteCount(), {}));
  const Tensor same = REQUIRE(Tensor::over(wrapped, DType::f32, s.b.shape()));
  s.commit({s.a}, {s.b});
  REQUIRE(waitingFor([&] { s.device->finishNext({}); }, [&] { return valuesOf(same); }));
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

TEST(MemoryInFlight, AHandlerDoesNotWaitForOtherWork) {
  const WorkInFlight s;
  const Tensor c = floats(s.device, 16);
  std::optional<Completion> later;
  int calls = 0;
  s.commit({s.a}, {s.b}, [&](const Result<Summary>&) {
    ++calls;
    EXPECT_ERROR(valuesOf(c), (kInHandler));
    EXPECT_ERROR(fill(c, 1), (kInHandler));
    EXPECT_ERROR(fill(s.b, 1), (kInHandler));
    EXPECT_ERROR(later->wait(), (kInHandler));
    int ran = 0;
    EXPECT_ERROR(CommandEncoder::run(s.device, [&](CommandEncoder&) { return ++ran, Result<void>(); }), (kInHandler));
    EXPECT_EQ(ran, 0);
    REQUIRE(valuesOf(s.b));
    REQUIRE(fill(s.a, 1));
  });
  later = s.commit({s.b}, {c});
  s.device->finishNext({});
  EXPECT_EQ(calls, 1);
  s.device->finishNext({});
  REQUIRE(valuesOf(c));
}

TEST(MemoryInFlight, DoesNotWaitForUnsubmittedWork) {
  struct Reluctant : EncodingParticipant {
    Result<void> check() override { return Error{.op = "Reluctant", .what = "refused"}; }
    void advance() noexcept override {}
    void finished(const Result<void>&) noexcept override {}
  };
  const WorkInFlight s;
  {
    CommandEncoder encoder(s.device);
    REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
    REQUIRE(encoder.join(&s, std::make_shared<Reluctant>()));
    EXPECT_ERROR(encoder.commit(), {.op = "Reluctant"});
    REQUIRE(valuesOf(s.b));
    REQUIRE(fill(s.a, 1));
  }
  REQUIRE(valuesOf(s.b));
}

TEST(MemoryInFlight, WaitsForARetriedCommit) {
  struct Once : EncodingParticipant {
    int calls = 0;
    Result<void> check() override {
      return calls++ ? Result<void>() : Result<void>(Error{.op = "Once", .what = "refused"});
    }
    void advance() noexcept override {}
    void finished(const Result<void>&) noexcept override {}
  };
  const WorkInFlight s;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  REQUIRE(encoder.join(&s, std::make_shared<Once>()));
  EXPECT_ERROR(encoder.commit(), {.op = "Once"});
  REQUIRE(encoder.commit());
  REQUIRE(waitingFor([&] { s.device->finishNext({}); }, [&] { return valuesOf(s.b); }));
}

TEST(MemoryInFlight, WorkIsTrackedWhenAParticipantAdvances) {
  struct Observer : EncodingParticipant {
    std::function<void()> onAdvance;
    Result<void> check() override { return {}; }
    void advance() noexcept override { onAdvance(); }
    void finished(const Result<void>&) noexcept override {}
  };
  const WorkInFlight s;
  std::thread reader;
  std::atomic<bool> hasRead = false;
  const auto observer = std::make_shared<Observer>();
  observer->onAdvance = [&] {
    reader = std::thread([&] {
      if (valuesOf(s.b)) hasRead = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT(!hasRead);
  };
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  REQUIRE(encoder.join(&s, observer));
  REQUIRE(encoder.commit());
  s.device->finishNext({});
  reader.join();
  EXPECT(hasRead);
}

TEST(MemoryInFlight, RunReturnsTheSummaryOrTheFirstError) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const Tensor in = floats(device, 8, 3), out = floats(device, 8);
    const Summary summary = REQUIRE(CommandEncoder::run(
        device, [&](CommandEncoder& encoder) { return encoder.encode(copyOf(in, out)); }, "copy"));
    EXPECT_EQ(summary.total.dispatches, 1u);
    EXPECT(REQUIRE(valuesOf(out)) == std::vector<float>(8, 3));
    EXPECT_ERROR(CommandEncoder::run(device,
                                     [&](CommandEncoder& encoder) -> Result<void> {
                                       REQUIRE(encoder.encode(copyOf(out, in)));
                                       return Error{.op = "Body", .what = "it failed"};
                                     }),
                 {.op = "Body", .what = "it failed"});
  });
  const auto fake = FakeDevice::make();
  EXPECT(!CommandEncoder::run(fake, [&](CommandEncoder& encoder) -> Result<void> {
    REQUIRE(encoder.dispatch(fakeDispatch("A")));
    return fakeFailure();
  }));
  EXPECT_EQ(fake->committed().size(), 0u);
  EXPECT_ERROR(CommandEncoder::run(fake, {}), {.op = "CommandEncoder",
                                               .what = "there is nothing to run",
                                               .got = "an empty function",
                                               .expected = "a function that encodes",
                                               .fix = "Pass a function that records work into the encoder."});
  EXPECT_ERROR(CommandEncoder::run(nullptr, [](CommandEncoder&) { return Result<void>(); }),
               {.what = "the encoder has no device"});
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

}  // namespace mnk::test
