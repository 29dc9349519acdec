// The outputs of failed work: reading them reports the failure until they are written again.
#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "Harness/Seeded.hpp"
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

struct FailingWork {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  Tensor a = floats(device, 16, 1), b = floats(device, 16, 2), c = floats(device, 16, 3);

  FailingWork() { device->holdCompletions(); }
  Completion commit(const std::vector<Dispatch>& dispatches) const {
    CommandEncoder encoder(device);
    for (const Dispatch& dispatch : dispatches) REQUIRE(encoder.dispatch(dispatch));
    return REQUIRE(encoder.commit());
  }
  Completion commit(const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) const {
    return commit({fakeDispatch("A", reads, writes)});
  }
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

TEST(FailedMemory, AWriteClearsExactlyItsBytes) {
  const FailingWork s;
  s.failWriting(s.b);
  REQUIRE(fill(part(s.b, 4, 4), 7));
  REQUIRE(valuesOf(part(s.b, 4, 4)));
  REQUIRE(s.encodeReading(part(s.b, 4, 4)));
  EXPECT_ERROR(valuesOf(part(s.b, 3, 1)), (kRead));
  EXPECT_ERROR(valuesOf(part(s.b, 8, 1)), (kRead));
  EXPECT_ERROR(valuesOf(s.b), (kRead));
  REQUIRE(fill(part(s.b, 0, 4), 7));
  REQUIRE(fill(part(s.b, 8, 8), 7));
  EXPECT(REQUIRE(valuesOf(s.b)) == std::vector<float>(16, 7));
}

TEST(FailedMemory, SuccessfulWorkClearsItsOutputs) {
  const FailingWork s;
  s.failWriting(s.b);
  s.commit({s.a}, {part(s.b, 0, 8)});
  s.device->finishNext({});
  REQUIRE(valuesOf(part(s.b, 0, 8)));
  EXPECT_ERROR(valuesOf(part(s.b, 8, 1)), (kRead));
  // A kernel that writes only some of its declared bytes may have left any of them unwritten.
  Dispatch some = fakeDispatch("A", {s.a}, {s.b});
  some.bytesWritten = 4;
  s.commit({some});
  s.device->finishNext({});
  EXPECT_ERROR(valuesOf(part(s.b, 8, 1)), (kRead));
  s.commit({s.a}, {s.b});
  s.device->finishNext({});
  REQUIRE(valuesOf(s.b));
}

TEST(FailedMemory, WorkMayReadItsOwnOutputs) {
  const FailingWork s;
  s.failWriting(s.b);
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {part(s.b, 0, 8)})));
  REQUIRE(encoder.dispatch(fakeDispatch("B", {part(s.b, 0, 8)}, {s.c})));
  EXPECT_ERROR(encoder.dispatch(fakeDispatch("B", {s.b}, {s.c})), (kEncode));
  // The same holds within one plan, where a dispatch that reads and writes reads first.
  Plan plan{.op = "Two", .dispatches = {fakeDispatch("A", {s.a}, {part(s.b, 8, 8)}), fakeDispatch("B", {s.b}, {s.c})}};
  REQUIRE(encoder.encode(plan));
  REQUIRE(encoder.commit());
  s.device->finishNext({});
  REQUIRE(valuesOf(s.c));
  REQUIRE(valuesOf(s.b));
  s.failWriting(s.b);
  EXPECT_ERROR(s.encodeReading(s.b), (kEncode));
  CommandEncoder both(s.device);
  EXPECT_ERROR(both.dispatch(fakeDispatch("A", {Binding::whole(0, s.b, Access::readWrite)})), (kEncode));
  EXPECT_ERROR(both.dispatch(fakeDispatch("A", {s.b}, {s.b})), (kEncode));
}

TEST(FailedMemory, WorkCommittedEarlierFailsToo) {
  const FailingWork s;
  s.commit({s.a}, {s.b});
  const Completion dependent = s.commit({part(s.b, 0, 1)}, {s.c});
  const Tensor d = floats(s.device, 16);
  const Completion third = s.commit({s.c}, {d});
  const Completion independent = s.commit({s.a}, {floats(s.device, 16)});
  s.device->finishNext(fault());
  for (int i = 0; i < 3; ++i) s.device->finishNext({});
  EXPECT_ERROR(dependent.wait(), (kDependent));
  EXPECT_ERROR(third.wait(), (kDependent));
  REQUIRE(independent.wait());
  EXPECT_ERROR(valuesOf(s.c), (kRead));
  EXPECT_ERROR(valuesOf(d), (kRead));
}

TEST(FailedMemory, LaterWorkThatOverwritesDoesNotFail) {
  const FailingWork s;
  s.commit({s.a}, {s.b});
  const Completion fresh = s.commit({fakeDispatch("A", {s.a}, {s.b}), fakeDispatch("B", {s.b}, {s.c})});
  const Completion partly = s.commit({s.b}, {s.c});
  s.device->finishNext(fault());
  s.device->finishNext({});
  s.device->finishNext({});
  REQUIRE(fresh.wait());
  REQUIRE(partly.wait());
  REQUIRE(valuesOf(s.b));
  REQUIRE(valuesOf(s.c));
}

TEST(FailedMemory, OverwritingPartOfTheInputIsNotEnough) {
  const FailingWork s;
  s.commit({s.a}, {s.b});
  const Completion partly = s.commit({fakeDispatch("A", {s.a}, {part(s.b, 0, 15)}), fakeDispatch("B", {s.b}, {s.c})});
  s.device->finishNext(fault());
  s.device->finishNext({});
  EXPECT_ERROR(partly.wait(), (kDependent));
}

TEST(FailedMemory, LaterFailuresDoNotAffectEarlierWork) {
  const FailingWork s;
  const Completion first = s.commit({s.b}, {s.c});
  s.commit({s.a}, {s.b});
  s.device->finishNext({});
  s.device->finishNext(fault());
  REQUIRE(first.wait());
  REQUIRE(valuesOf(s.c));
  EXPECT_ERROR(valuesOf(s.b), (kRead));
}

TEST(FailedMemory, DevicesMayFinishInAnyOrder) {
  const FailingWork s, other;
  const auto wrapped = REQUIRE(other.device->wrapMemory(s.b.buffer()->contents(), s.b.byteCount(), {}));
  const Tensor same = REQUIRE(Tensor::over(wrapped, DType::f32, s.b.shape()));
  // Work committed before the failing work neither depends on it nor writes after it.
  const Completion reading = s.commit({s.b}, {s.c}), writing = s.commit({s.a}, {s.b});
  other.commit({other.a}, {same});
  other.device->finishNext(fault());
  s.device->finishNext({});
  s.device->finishNext({});
  REQUIRE(reading.wait());
  REQUIRE(writing.wait());
  EXPECT_ERROR(valuesOf(s.b), (kRead));
}

TEST(FailedMemory, ParticipantsAndHandlersReceiveDependentFailures) {
  struct Witness : EncodingParticipant {
    std::string heard;
    Result<void> check() override { return {}; }
    void advance() noexcept override {}
    void finished(const Result<void>& outcome) noexcept override { heard = outcome ? "success" : outcome.error().what; }
  };
  const FailingWork s;
  s.commit({s.a}, {s.b});
  CommandEncoder encoder(s.device);
  const auto witness = std::make_shared<Witness>();
  REQUIRE(encoder.dispatch(fakeDispatch("B", {s.b}, {s.c})));
  REQUIRE(encoder.join(&s, witness));
  std::string heard;
  REQUIRE(encoder.commit([&](const Result<Summary>& result) {
    heard = result ? "success" : result.error().what;
    EXPECT_ERROR(valuesOf(s.c), (kRead));
  }));
  s.device->finishNext(fault());
  s.device->finishNext({});
  EXPECT_EQ(heard, kDependent.what);
  EXPECT_EQ(witness->heard, kDependent.what);
}

TEST(FailedMemory, IsForgottenWithItsBuffer) {
  const auto device = FakeDevice::make();
  device->holdCompletions();
  std::vector<float> memory(16);
  const auto wrap = [&] {
    const auto buffer = REQUIRE(device->wrapMemory(memory.data(), 64, {}));
    return REQUIRE(Tensor::over(buffer, DType::f32, REQUIRE(Shape::make({16}))));
  };
  const auto failWriting = [&](const Tensor& tensor) {
    CommandEncoder encoder(device);
    REQUIRE(encoder.dispatch(fakeDispatch("A", {Binding::whole(0, tensor, Access::write)})));
    REQUIRE(encoder.commit());
    device->finishNext(fault());
  };
  {
    const auto first = FakeDevice::make();
    first->holdCompletions();
    const auto buffer = REQUIRE(first->wrapMemory(memory.data(), 64, {}));
    const Tensor tensor = REQUIRE(Tensor::over(buffer, DType::f32, REQUIRE(Shape::make({16}))));
    CommandEncoder encoder(first);
    REQUIRE(encoder.dispatch(fakeDispatch("A", {Binding::whole(0, tensor, Access::write)})));
    REQUIRE(encoder.commit());
    first->finishNext(fault());
    const Tensor again = wrap();  // the other buffer still owns this memory, which is still failed
    EXPECT_ERROR(valuesOf(again), (kRead));
    REQUIRE(fill(part(tensor, 0, 8), 1));
    REQUIRE(valuesOf(part(again, 0, 8)));
  }
  REQUIRE(valuesOf(wrap()));
  const Tensor kept = wrap();
  failWriting(kept);
  { const Tensor other = wrap(); }
  EXPECT_ERROR(valuesOf(kept), (kRead));
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

TEST(FailedMemory, DroppedWorkHasFailed) {
  std::vector<float> memory(16);
  const auto reader = FakeDevice::make();
  const auto buffer = REQUIRE(reader->wrapMemory(memory.data(), 64, {}));
  const Tensor tensor = REQUIRE(Tensor::over(buffer, DType::f32, REQUIRE(Shape::make({16}))));
  {
    const auto device = FakeDevice::make();
    device->holdCompletions();
    const auto same = REQUIRE(device->wrapMemory(memory.data(), 64, {}));
    CommandEncoder encoder(device);
    REQUIRE(encoder.dispatch(fakeDispatch(
        "A", {Binding::whole(0, REQUIRE(Tensor::over(same, DType::f32, tensor.shape())), Access::write)})));
    REQUIRE(encoder.commit());
  }
  EXPECT_ERROR(valuesOf(tensor), {.code = ErrorCode::deviceFault, .got = "submitted work was dropped"});
  REQUIRE(fill(tensor, 1));
  REQUIRE(valuesOf(tensor));
}

TEST(FailedMemory, TheNewestFailureIsReported) {
  const FailingWork s;
  s.failWriting(s.b);
  s.commit({s.a}, {part(s.b, 0, 8)});
  s.device->finishNext(fakeFailure());
  EXPECT_ERROR(valuesOf(part(s.b, 0, 8)), {.code = ErrorCode::deviceFault, .got = fakeFailure().what});
  EXPECT_ERROR(valuesOf(part(s.b, 8, 8)), (kRead));
  REQUIRE(fill(s.b, 0));
  REQUIRE(valuesOf(s.b));
}

TEST(FailedMemory, DeviceReportsItsNewestFailure) {
  const FailingWork s;
  const auto other = FakeDevice::make();
  EXPECT(!s.device->lastFailure());
  s.commit({s.a}, {s.b});
  s.device->finishNext({});
  EXPECT(!s.device->lastFailure());
  s.failWriting(s.b);
  REQUIRE(fill(s.b, 1));
  EXPECT_EQ(s.device->lastFailure().value_or(Error{}).message(), fault().message());
  s.commit({s.a}, {s.c});
  s.device->finishNext(fakeFailure());
  EXPECT_EQ(s.device->lastFailure().value_or(Error{}).message(), fakeFailure().message());
  EXPECT(!other->lastFailure());
}

// Rows that fail and are written again in random order, against one flag per byte.
TEST(FailedMemory, IsExactForRows) {
  Seeded random(7);
  const auto device = FakeDevice::make();
  device->holdCompletions();
  constexpr uint64_t kBytes = 96;
  const Tensor tensor = REQUIRE(Tensor::zeros(device, DType::u8, REQUIRE(Shape::make({kBytes}))));
  std::vector<bool> hasFailed(kBytes);
  const auto rows = [&] {
    Region region{
        .offset = random.below(20), .rowBytes = 1 + random.below(6), .rowStride = 0, .rows = 1 + random.below(5)};
    region.rowStride = random.below(14);
    return region;
  };
  const auto forEach = [](const Region& region, const auto& body) {
    for (uint64_t row = 0; row < region.rows; ++row) {
      for (uint64_t byte = 0; byte < region.rowBytes; ++byte) body(region.offset + row * region.rowStride + byte);
    }
  };
  for (int step = 0; step < 300; ++step) {
    const Region region = rows();
    const bool fails = random.below(2) == 0;
    Dispatch dispatch = fakeDispatch("A", {Binding::whole(0, tensor, Access::write)});
    dispatch.buffers[0].writes = {region};
    CommandEncoder encoder(device);
    REQUIRE(encoder.dispatch(dispatch));
    REQUIRE(encoder.commit());
    device->finishNext(fails ? Result<void>(fault()) : Result<void>());
    forEach(region, [&](uint64_t byte) { hasFailed[byte] = fails; });
    const Region asked = rows();
    bool isFailed = false;
    forEach(asked, [&](uint64_t byte) { isFailed = isFailed || hasFailed[byte]; });
    Dispatch reading = fakeDispatch("B", {Binding::whole(0, tensor, Access::read)});
    reading.buffers[0].reads = {asked};
    CommandEncoder reader(device);
    EXPECT_EQ(!reader.dispatch(reading), isFailed);
    for (uint64_t byte = 0; byte < kBytes; ++byte) {
      std::byte value;
      EXPECT_EQ(!tensor.buffer()->read(byte, {&value, 1}), bool(hasFailed[byte]));
    }
  }
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
  s.commit({touching(Access::write)});
  s.device->finishNext(fault());
  std::byte byte;
  for (const uint64_t at : {uint64_t(0), uint64_t(1), rows.end() - 1}) {
    EXPECT_ERROR(large.buffer()->read(at, {&byte, 1}), (kRead));
  }
  REQUIRE(large.buffer()->read(rows.end(), {&byte, 1}));
  s.commit({touching(Access::write)});
  s.device->finishNext({});
  EXPECT_ERROR(large.buffer()->read(0, {&byte, 1}), (kRead));
  CommandEncoder encoder(s.device);
  EXPECT_ERROR(encoder.dispatch(touching(Access::read)), (kEncode));
  REQUIRE(large.write(std::vector<std::byte>(large.byteCount())));
  REQUIRE(encoder.dispatch(touching(Access::read)));
  REQUIRE(large.buffer()->read(0, {&byte, 1}));
}

}  // namespace mnk::test
