// The outputs of failed work: reading them reports the failure until they are written again.
#include "Runtime/FakeWork.hpp"
#include "Runtime/WorkInFlight.hpp"

namespace mnk::test {

namespace {

Error fault() {
  return {.code = ErrorCode::pageFault,
          .op = "Device",
          .what = "the device stopped the submission",
          .got = "a page fault",
          .expected = "none",
          .fix = "Fix the kernel."};
}

const ExpectedError kRead{.code = ErrorCode::pageFault,
                          .op = "Buffer",
                          .what = "earlier work that was to write this memory failed",
                          .got = "Device: the device stopped the submission (got a page fault, expected none)",
                          .expected = "memory that was written since",
                          .fix = "Write the memory again, or submit work that writes it."};
const ExpectedError kEncode{.code = ErrorCode::pageFault,
                            .op = "CommandEncoder",
                            .what = "a kernel would read memory that failed work was to write",
                            .got = "Device: the device stopped the submission",
                            .expected = "memory that was written since",
                            .fix = "Write the memory again before work that reads it is encoded."};
const ExpectedError kDependent{.code = ErrorCode::pageFault,
                               .op = "CommandEncoder",
                               .what = "the work read memory that failed work was to write",
                               .got = "Device: the device stopped the submission",
                               .expected = "memory that was written since",
                               .fix = "Write the memory again, then submit this work again."};

// Memory of the caller as a buffer of a device, and work on that device that writes it.
Tensor wrap(const std::shared_ptr<Device>& device, std::vector<float>& memory) {
  const auto buffer = REQUIRE(device->wrapMemory(memory.data(), memory.size() * sizeof(float), {}));
  return REQUIRE(Tensor::over(buffer, DType::f32, REQUIRE(Shape::make({memory.size()}))));
}
void commitWriting(const std::shared_ptr<Device>& device, const Tensor& tensor) {
  CommandEncoder encoder(device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {}, {tensor})));
  REQUIRE(encoder.commit());
}

struct FailingWork : FakeWork {
  FailingWork() { device->holdCompletions(); }
  void failWriting(const Tensor& tensor) const {
    commit({a}, {tensor});
    device->finishNext(fault());
  }
  Result<void> encodeReading(const Tensor& tensor) const {
    CommandEncoder encoder(device);
    return encoder.dispatch(fakeDispatch("B", {tensor}, {floats(device, 1)}));
  }
};

Tensor part(const Tensor& tensor, uint64_t begin, uint64_t count) {
  return REQUIRE(tensor.slice(begin, count));
}

}  // namespace

TEST(FailedMemory, ReadingAndEncodingReportTheFailure) {
  const FailingWork s;
  s.failWriting(s.b);  // without keeping its completion
  for (int i = 0; i < 2; ++i) {
    EXPECT_ERROR(valuesOf(s.b), (kRead));
    EXPECT_ERROR(s.encodeReading(s.b), (kEncode));
    EXPECT_ERROR(s.encodeReading(part(s.b, 15, 1)), (kEncode));
  }
  REQUIRE(valuesOf(s.a));
  REQUIRE(valuesOf(s.c));
  REQUIRE(s.encodeReading(s.a));
  // Nothing was encoded, so the encoder still accepts other work.
  CommandEncoder encoder(s.device);
  EXPECT_ERROR(encoder.dispatch(fakeDispatch("B", {s.b}, {s.c})), (kEncode));
  REQUIRE(encoder.dispatch(fakeDispatch("B", {s.a}, {s.c})));
  EXPECT_EQ(encoder.summary().total.dispatches, 1u);
}

TEST(FailedMemory, AWaitingReadReportsTheFailure) {
  const FailingWork s;
  s.commit({s.a}, {s.b});
  EXPECT_ERROR(waitingFor([&] { s.device->finishNext(fault()); }, [&] { return valuesOf(s.b); }), (kRead));
  s.commit({s.a}, {s.c});
  REQUIRE(waitingFor([&] { s.device->finishNext(fault()); }, [&] { return fill(s.c, 5); }));
  EXPECT(REQUIRE(valuesOf(s.c)) == std::vector<float>(16, 5));
}

// Work committed before the failing work neither depends on it nor writes after it.
TEST(FailedMemory, DevicesMayFinishInAnyOrder) {
  const FailingWork s;
  std::vector<float> memory(16);
  const auto other = FakeDevice::make();
  other->holdCompletions();
  const Tensor shared = wrap(s.device, memory), same = wrap(other, memory);
  const Completion reading = s.commit({shared}, {s.c}), writing = s.commit({s.a}, {shared});
  commitWriting(other, same);
  other->finishNext(fault());
  s.device->finishNext({});
  s.device->finishNext({});
  REQUIRE(reading.wait());
  REQUIRE(writing.wait());
  EXPECT_ERROR(valuesOf(shared), (kRead));
}

TEST(FailedMemory, DependentWorkReportsTheFirstFailure) {
  const FailingWork s;
  s.commit({s.a}, {s.b});
  CommandEncoder encoder(s.device);
  std::string heard;
  const auto witness = std::make_shared<Witness>();
  witness->onFinished = [&](const Result<void>& outcome) { heard += outcome ? "success, " : outcome.error().what; };
  REQUIRE(encoder.dispatch(fakeDispatch("B", {s.b}, {s.c})));
  REQUIRE(encoder.join(&s, witness));
  const Completion dependent = REQUIRE(encoder.commit([&](const Result<Summary>& result) {
    heard += result ? "success" : "; " + result.error().what;
    EXPECT_ERROR(valuesOf(s.c), (kRead));
  }));
  const Completion third = s.commit({s.c}, {floats(s.device, 16)});
  s.device->finishNext(fault());
  for (int i = 0; i < 2; ++i) s.device->finishNext({});
  for (const Completion& done : {dependent, third}) EXPECT_ERROR(done.wait(), (kDependent));
  EXPECT_EQ(heard, fmt::format("{0}; {0}", kDependent.what));
}

TEST(FailedMemory, IsForgottenWithItsBuffer) {
  const auto device = FakeDevice::make();
  device->holdCompletions();
  std::vector<float> memory(16);
  {
    const auto first = FakeDevice::make();
    first->holdCompletions();
    const Tensor tensor = wrap(first, memory);
    commitWriting(first, tensor);
    first->finishNext(fault());
    const Tensor again = wrap(device, memory);  // the other buffer still owns this memory, which is still failed
    EXPECT_ERROR(valuesOf(again), (kRead));
    REQUIRE(fill(part(tensor, 0, 8), 1));
    REQUIRE(valuesOf(part(again, 0, 8)));
  }
  REQUIRE(valuesOf(wrap(device, memory)));
  const Tensor kept = wrap(device, memory);
  commitWriting(device, kept);
  device->finishNext(fault());
  { const Tensor other = wrap(device, memory); }
  EXPECT_ERROR(valuesOf(kept), (kRead));
}

TEST(FailedMemory, DroppedWorkHasFailed) {
  std::vector<float> memory(16);
  const auto reader = FakeDevice::make();
  const Tensor tensor = wrap(reader, memory);
  {
    const auto device = FakeDevice::make();
    device->holdCompletions();
    commitWriting(device, wrap(device, memory));
  }
  EXPECT_ERROR(valuesOf(tensor), {.code = ErrorCode::deviceFault, .got = "submitted work was dropped"});
  REQUIRE(fill(tensor, 1));
  REQUIRE(valuesOf(tensor));
}

TEST(FailedMemory, ReleasedBuffersLeaveNoState) {
  const uint64_t before = MemoryTracker::knownWorks();
  {
    const FailingWork s;
    s.failWriting(s.b);
    EXPECT_EQ(MemoryTracker::knownWorks(), before + 1);
  }
  EXPECT_EQ(MemoryTracker::knownWorks(), before);
}

TEST(FailedMemory, DeviceReportsItsNewestFailure) {
  const FailingWork s;
  const auto other = FakeDevice::make();
  EXPECT(!s.device->lastFailure());
  s.commit({s.a}, {s.b});
  s.device->finishNext({});
  EXPECT(!s.device->lastFailure());
  s.failWriting(s.b);
  EXPECT_EQ(s.device->lastFailure().value_or(Error{}).message(), fault().message());
  // Of memory too.
  s.commit({s.a}, {part(s.b, 0, 8)});
  s.device->finishNext(fakeFailure());
  EXPECT_ERROR(valuesOf(part(s.b, 0, 8)), {.code = ErrorCode::deviceFault, .got = fakeFailure().what});
  EXPECT_ERROR(valuesOf(part(s.b, 8, 8)), (kRead));
  REQUIRE(fill(s.b, 0));
  REQUIRE(valuesOf(s.b));
  EXPECT_EQ(s.device->lastFailure().value_or(Error{}).message(), fakeFailure().message());
  EXPECT(!other->lastFailure());
}

// Listing all these rows would take too much memory.
TEST(FailedMemory, ManyRowsCountAsOneRange) {
  const FailingWork s;
  const Region rows{.offset = 0, .rowBytes = 1, .rowStride = 2, .rows = (1 << 20) + 1};
  const Tensor large = REQUIRE(Tensor::zeros(s.device, DType::u8, REQUIRE(Shape::make({rows.end() + 1}))));
  const auto touching = [&](Access access) {
    Dispatch dispatch = fakeDispatch("A", {Binding::whole(0, large, access)});
    for (auto* regions : {&dispatch.buffers[0].reads, &dispatch.buffers[0].writes}) {
      if (!regions->empty()) *regions = {rows};
    }
    return dispatch;
  };
  s.commit(touching(Access::write));
  s.device->finishNext(fault());
  std::byte byte;
  for (const uint64_t at : {uint64_t(0), uint64_t(1), rows.end() - 1}) {
    EXPECT_ERROR(large.buffer()->read(at, {&byte, 1}), (kRead));
  }
  REQUIRE(large.buffer()->read(rows.end(), {&byte, 1}));
  s.commit(touching(Access::write));
  s.device->finishNext({});
  EXPECT_ERROR(large.buffer()->read(0, {&byte, 1}), (kRead));
  CommandEncoder encoder(s.device);
  EXPECT_ERROR(encoder.dispatch(touching(Access::read)), (kEncode));
  REQUIRE(large.write(std::vector<std::byte>(large.byteCount())));
  REQUIRE(encoder.dispatch(touching(Access::read)));
  REQUIRE(large.buffer()->read(0, {&byte, 1}));
}

}  // namespace mnk::test
