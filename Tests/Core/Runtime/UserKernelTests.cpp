#include <atomic>
#include <latch>
#include <numeric>
#include <thread>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Support/Errors.hpp"

namespace mnk::test {

namespace {

constexpr std::string_view kText = R"(
#include <metal_stdlib>
using namespace metal;

kernel void scale(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                  constant float& factor [[buffer(2)]], uint at [[thread_position_in_grid]]) {
  out[at] = in[at] * factor;
}
export_kernel(scale)

)";

struct Kernels {
  std::shared_ptr<Device> device;
  std::shared_ptr<Library> library;

  explicit Kernels(std::shared_ptr<Device> on)
      : device(std::move(on)),
        library(REQUIRE(device->registry().library(
            {.kind = LibrarySource::Kind::text, .value = std::string(kText), .label = "user kernels"}))) {}

  Dispatch scale(const Tensor& in, const Tensor& out, float factor) const {
    Dispatch dispatch;
    dispatch.kernel = {.library = library, .function = "scale", .constants = {}};
    dispatch.kind = "User";
    dispatch.grid.extent = {static_cast<uint32_t>(in.shape().elementCount()), 1, 1};
    dispatch.buffers = {Binding::whole(0, in, Access::read), Binding::whole(1, out, Access::write)};
    dispatch.inlines = {InlineBytes::of(2, factor)};
    return dispatch;
  }
  Tensor tensor(uint64_t count) const { return floats(device, count); }
};

// As users get it, and in a seeded random order. Each device compiles the text, so the test does not use all devices.
template <typename Body>
void onSomeDevices(Body body) {
  for (const DeviceUnderTest& under : devicesUnderTest()) {
    if (under.name != under.device->kind() && !under.name.starts_with("host in random order 1,")) continue;
    Context context(under.name);
    body(Kernels(under.device));
  }
}

}  // namespace

TEST(UserKernel, FromTextRunsWithInlineBytesAndOffsets) {
  onSomeDevices([](const Kernels& kernels) {
    std::vector<float> ramp(100);
    std::iota(ramp.begin(), ramp.end(), 0.f);
    const Tensor in = kernels.tensor(100), out = kernels.tensor(100);
    REQUIRE(in.write(std::as_bytes(std::span(ramp))));
    CommandEncoder encoder(kernels.device);
    REQUIRE(encoder.dispatch(kernels.scale(REQUIRE(in.slice(10, 50)), REQUIRE(out.slice(30, 50)), 2)));
    const Summary summary = REQUIRE(REQUIRE(encoder.commit()).wait());
    std::vector<float> expected(100);
    for (size_t i = 30; i < 80; ++i) expected[i] = static_cast<float>(i - 20) * 2;
    EXPECT_EQ(REQUIRE(valuesOf(out)), expected);
    EXPECT_EQ(summary.kinds.at("User").dispatches, 1u);
    EXPECT_EQ(summary.kinds.at("User").bytesRead, 200u);
    EXPECT_EQ(summary.kinds.at("User").bytesWritten, 200u);
  });
}

TEST(UserKernel, ReportsTheCompilersMessage) {
  auto& registry = devicesUnderTest().front().device->registry();
  const auto broken = registry.library(
      {.kind = LibrarySource::Kind::text, .value = "kernel void f() { undeclaredName = 1; }", .label = "broken"});
  EXPECT_ERROR(broken, {.code = ErrorCode::shaderBuild, .what = "broken", .got = "undeclaredName", .fix = "lines"});
  EXPECT_ERROR(registry.library({.kind = LibrarySource::Kind::path, .value = "/nowhere/at/all.metal", .label = "x"}),
               {.code = ErrorCode::libraryNotFound, .got = "/nowhere/at/all.metal"});
}

TEST(UserKernel, SeveralThreadsEncodeOnOneDevice) {
  onSomeDevices([](const Kernels& kernels) {
    constexpr size_t kThreads = 4;
    std::latch start(kThreads);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      const Tensor a = kernels.tensor(256), b = kernels.tensor(256);
      threads.emplace_back([&, a, b, factor = static_cast<float>(t + 2)] {
        start.arrive_and_wait();
        const auto scaleTwice = [&](CommandEncoder& encoder) -> Result<void> {
          MNK_TRY(encoder.dispatch(kernels.scale(a, b, factor)));
          return encoder.dispatch(kernels.scale(b, a, factor));
        };
        for (int round = 0; round < 20; ++round) {
          const bool ran = fill(a, 1) && CommandEncoder::run(kernels.device, scaleTwice);
          const auto got = valuesOf(a);
          wrong += !ran || !got || *got != std::vector<float>(256, factor * factor);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
  });
}

}  // namespace mnk::test
