// Memory of a step that is encoded and not committed.
#include <atomic>
#include <thread>

#include "Cache/CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Runtime/FakeWork.hpp"

namespace mnk::test {

namespace {

const ExpectedError kWrite{.op = "Buffer",
                           .what = "an open step uses this memory when it runs, so it would see the new contents",
                           .got = "a write before the step was submitted",
                           .expected = "memory that no open step reads or writes",
                           .fix = "Write before the step is encoded, or give each call of the step its own tensor."};
const ExpectedError kReadOfOpenStep{
    .op = "Buffer",
    .what = "an open step writes this memory when it runs, so it does not hold the result yet",
    .got = "a read before the step was submitted",
    .expected = "memory that no open step writes",
    .fix = "Read after the step: after the closure of encode, or after the encoder is committed."};

// a is read, b is written, c is not used.
struct OpenSteps : FakeWork {
  void encode(CommandEncoder& encoder) const { REQUIRE(encoder.dispatch(fakeDispatch("A", {a}, {b}))); }
  void expectFree() const {
    for (const Tensor& tensor : {a, b, c}) expectFree(tensor);
  }
  void expectRefused() const {
    EXPECT_ERROR(fill(a, 4), (kWrite));
    EXPECT_ERROR(fill(b, 4), (kWrite));
    EXPECT_ERROR(valuesOf(b), (kReadOfOpenStep));
    EXPECT(REQUIRE(valuesOf(a)) == std::vector<float>(16, 1));
    expectFree(c);
  }
  static void expectFree(const Tensor& tensor) {
    REQUIRE(fill(tensor, 5));
    EXPECT(REQUIRE(valuesOf(tensor)) == std::vector<float>(16, 5));
  }
};

}  // namespace

TEST(OpenStep, RefusesWritesOfItsInputsAndReadsOfItsOutputs) {
  const OpenSteps s;
  CommandEncoder encoder(s.device);
  s.expectFree();
  REQUIRE(fill(s.a, 1));
  s.encode(encoder);
  s.expectRefused();
  REQUIRE(encoder.commit());
  s.expectFree();
}

TEST(OpenStep, EndsIfItIsDiscarded) {
  const OpenSteps s;
  CommandEncoder encoder(s.device);
  s.encode(encoder);
  encoder.discard();
  s.expectFree();
  constexpr std::string_view kWhat = "the encoder is used after what it had recorded was dropped";
  EXPECT_EQ(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})).error().what, kWhat);
  EXPECT_EQ(encoder.commit().error().what, kWhat);
  CommandEncoder committed(s.device);
  s.encode(committed);
  const Completion done = REQUIRE(committed.commit());
  committed.discard();
  EXPECT(done.wait());
  EXPECT_EQ(s.device->committed().size(), 1u);
}

// An encoder that holds part of a plan never runs.
TEST(OpenStep, EndsIfTheEncoderFailsMidway) {
  const OpenSteps s;
  CommandEncoder encoder(s.device);
  s.encode(encoder);
  s.device->failAt(FakeDevice::Call::dispatch, 1);
  EXPECT(!encoder.encode(
      Plan{.op = "both", .dispatches = {fakeDispatch("A", {s.a}, {s.b}), fakeDispatch("B", {s.b}, {s.c})}}));
  s.expectFree();
  EXPECT(!encoder.commit());
}

// Other work of the same thread that is submitted meanwhile runs before the open step, whatever the order of calls
// says.
TEST(OpenStep, RefusesStepsThatRunBeforeIt) {
  const OpenSteps s;
  const ExpectedError expected{
      .op = "CommandEncoder",
      .what = "this step runs before one that is still open, and shares memory with it that one of them writes",
      .got = "a step that is submitted while another one is open",
      .expected = "steps one after another",
      .fix = "Submit it before the open step is encoded, or after that one was submitted."};
  CommandEncoder open(s.device);
  s.encode(open);
  const auto commit = [&](const Tensor& reads, const Tensor& writes) -> Result<Completion> {
    CommandEncoder inner(s.device);
    REQUIRE(inner.dispatch(fakeDispatch("B", {reads}, {writes})));
    return inner.commit();
  };
  EXPECT_ERROR(commit(s.b, s.c), (expected));
  EXPECT_ERROR(commit(s.c, s.a), (expected));
  EXPECT_ERROR(commit(s.c, s.b), (expected));
  REQUIRE(commit(s.a, s.c));
  std::thread([&] { REQUIRE(commit(s.c, s.b)); }).join();  // threads order their work themselves
  REQUIRE(open.commit());
  REQUIRE(commit(s.b, s.a));
}

TEST(OpenStep, IncludesRecordings) {
  const OpenSteps s;
  const RecordedStep step = REQUIRE(RecordedStep::record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
    s.encode(encoder);
    s.expectRefused();
    return {};
  }));
  s.expectFree();
  REQUIRE(step.run());
}

TEST(OpenStep, SavesACacheAsItWasBefore) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCache cache = REQUIRE(AttentionCache::make(device, {.kvHeads = 1,
                                                                 .headDim = 16,
                                                                 .capacity = 2,
                                                                 .dtype = DType::f32,
                                                                 .whenFull = KVWrap::ring,
                                                                 .isStorageOnly = true}));
    const auto token = [&](float value) {
      return REQUIRE(floats(device, 16, value).reshaped(REQUIRE(Shape::make({1, 1, 16}))));
    };
    for (const float value : {1.0f, 2.0f}) {
      REQUIRE(CommandEncoder::run(
          device, [&](CommandEncoder& encoder) { return cache.append(encoder, token(value), token(value)); }));
    }
    CommandEncoder encoder(device);
    REQUIRE(cache.append(encoder, token(3), token(3)));  // overwrites the first slot when it runs
    const CacheFolder folder;
    REQUIRE(cache.save(folder.path()));
    const AttentionCache loaded = REQUIRE(AttentionCache::load(device, folder.path(), 1 << 20));
    const std::vector<float> keys = REQUIRE(valuesOf(loaded.view().keys));
    EXPECT(keys[0] == 1 && keys[16] == 2);
  });
}

// Other threads ask while the encoder records more than it has reserved memory for.
TEST(OpenStep, CanBeAskedWhileItRecords) {
  const OpenSteps s;
  std::atomic<bool> isDone = false;
  std::atomic<int> refused = 0;
  CommandEncoder encoder(s.device);
  s.encode(encoder);
  std::thread asking([&] {
    do {
      if (!fill(s.a, 4)) ++refused;
      EXPECT(fill(s.c, 5));
    } while (!isDone);
  });
  for (int i = 0; i < 2000; ++i) s.encode(encoder);
  isDone = true;
  asking.join();
  EXPECT(refused > 0);
  EXPECT(REQUIRE(valuesOf(s.a)) == std::vector<float>(16, 1));
  REQUIRE(encoder.commit());
}

}  // namespace mnk::test
