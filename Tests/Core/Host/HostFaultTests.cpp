// A faulting kernel ends its submission, and only that, with a typed error that names the kernel and the line.
#include <cmath>
#include <set>

#include "HostTestSupport.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Runtime/WorkInFlight.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

struct FaultCase {
  const char* function;
  uint32_t threads;
  const char* text;
};

}  // namespace

TEST(HostFaults, StopTheSubmissionAndNameKernelAndLine) {
  const FaultCase cases[] = {
      {"faultDivergentSimd", 32, "lanes of a simdgroup wait at different places: "},
      {"faultReturnBeforeBarrier", 64, "threadgroup_barrier after a thread of the threadgroup has returned: "},
      {"faultDifferentBarriers", 64, "simdgroups wait at different threadgroup barriers: "},
      {"faultTooMuchMemory", 32, "more than 32 KiB of threadgroup memory: "},
      {"faultUnsetConstant", 32, "function constant faultMissing (index 40, "},
  };
  onEveryHost([&](const auto& device) {
    for (const FaultCase& test : cases) {
      const Context context(test.function);
      std::vector<float> data(64, 5);
      const auto outcome = runOn(
          device, {.function = test.function, .grid = threads(test.threads, test.threads), .buffers = {bytesOf(data)}});
      EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault,
                             .op = "Host device",
                             .what = fmt::format("kernel {} of library conformance stopped in 'test'", test.function),
                             .got = test.text,
                             .expected = "runs to its end",
                             .fix = "Correct the kernel"});
      EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "Faults.metal:"});
      // The next submission is not affected.
      std::vector<uint32_t> from = {1, 2, 3, 4}, to(4);
      REQUIRE(runOn(device, {.function = "copy16", .grid = threads(1), .buffers = {bytesOf(from), bytesOf(to)}}));
      EXPECT(from == to);
    }
  });
}

TEST(HostFaults, DoNotEndOtherSubmissions) {
  const auto device = hostDevice({.workers = 2});
  std::vector<uint32_t> from = {1, 2, 3, 4}, before(4), after(4);
  std::vector<float> data(64);
  const auto copyTo = [&](std::vector<uint32_t>& to) {
    return REQUIRE(
        makeReady(device, {.function = "copy16", .grid = threads(1), .buffers = {bytesOf(from), bytesOf(to)}}));
  };
  const auto fault =
      REQUIRE(makeReady(device, {.function = "faultDivergentSimd", .grid = threads(32), .buffers = {bytesOf(data)}}));
  EXPECT_ERROR(submit(device, {copyTo(before), fault, copyTo(after)}), {.code = ErrorCode::deviceFault});
  EXPECT(before == from);
  EXPECT_EQ(after[0], 0u);  // came after the fault in the same submission
  for (int i = 0; i < 200; ++i) EXPECT_ERROR(submit(device, {fault}), {.code = ErrorCode::deviceFault});
  REQUIRE(submit(device, {copyTo(after)}));
  EXPECT(after == from);
}

TEST(HostFaults, StayUntilMemoryIsWrittenOrReleased) {
  const auto device = hostDevice({});
  std::vector<float> memory(64, 5), read(64);
  const auto wrap = [&] {
    const auto buffer = REQUIRE(device->wrapMemory(memory.data(), 256, {}));
    return REQUIRE(Tensor::over(buffer, DType::f32, REQUIRE(Shape::make({64}))));
  };
  // Without a name, the tensor is released before the work ends.
  const auto fault = [&](const Tensor& data) {
    CommandEncoder encoder(device);
    REQUIRE(encoder.dispatch({.kernel = {conformanceLibrary(), "faultDivergentSimd", {}},
                              .buffers = {Binding::whole(0, data, Access::write)},
                              .grid = threads(32)}));
    return REQUIRE(encoder.commit());
  };
  {
    const Tensor data = wrap();
    fault(data);
    const ExpectedError failed{.code = ErrorCode::deviceFault,
                               .what = "earlier work that was to write this memory failed",
                               .got = "kernel faultDivergentSimd of library conformance stopped"};
    EXPECT_ERROR(data.read(bytesOf(read)), (failed));
    REQUIRE(data.write(bytesOf(memory)));
    REQUIRE(data.read(bytesOf(read)));
    fault(data);
    EXPECT_ERROR(data.read(bytesOf(read)), (failed));
  }
  REQUIRE(wrap().read(bytesOf(read)));
  EXPECT(device->lastFailure().has_value());
  // The device releases memory before it reports.
  const uint64_t before = MemoryTracker::knownWorks();
  const Completion first = fault(wrap());
  EXPECT(!first.wait());
  (void)wrap();  // after the tracker, which wakes the waiter before it forgets the work
  EXPECT_EQ(MemoryTracker::knownWorks(), before);
  const auto half = REQUIRE(device->wrapMemory(memory.data(), 128, {}));
  const Completion second = fault(wrap());
  EXPECT(!second.wait());
  const Tensor all = wrap();
  REQUIRE(all.buffer()->read(128, bytesOf(read).first(128)));
  EXPECT(!all.buffer()->read(124, bytesOf(read).first(4)));
}

TEST(HostFaults, WithoutALabelNameOnlyTheKernel) {
  const auto device = hostDevice({});
  std::vector<float> data(64);
  const auto fault =
      makeReady(device, {.function = "faultDivergentSimd", .grid = threads(32), .buffers = {bytesOf(data)}});
  const auto outcome = submit(device, {REQUIRE(fault)}, true, "");
  EXPECT(!outcome && outcome.error().what == "kernel faultDivergentSimd of library conformance stopped");
}

TEST(HostFaults, PoisonExposesUninitializedMemory) {
  for (const uint64_t seed : {0, 1, 2}) {
    const auto device = hostDevice({.workers = 1, .orderSeed = seed, .checking = HostOptions::Checking::guarded});
    std::vector<float> data(32);
    REQUIRE(runOn(device, {.function = "faultUnwritten", .grid = threads(32), .buffers = {bytesOf(data)}}));
    for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(std::isnan(data[lane]), lane == 5);
  }
}

#if !__has_feature(thread_sanitizer)  // the race is deliberate
TEST(HostFaults, RandomOrderRevealsKernelsThatNeedLockStep) {
  std::set<std::vector<float>> results;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const auto device = hostDevice({.workers = 1, .orderSeed = seed});
    std::vector<float> data(32);
    // With full checking from the environment, the outcome reports the race.
    (void)runOn(device, {.function = "faultLockStep", .grid = threads(32), .buffers = {bytesOf(data)}});
    results.insert(data);
  }
  EXPECT(results.size() > 1);
}
#endif
