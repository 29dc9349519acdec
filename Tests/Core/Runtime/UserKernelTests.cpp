#include <cstring>
#include <latch>
#include <numeric>
#include <thread>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Support/Errors.hpp"

namespace mnk::test {

namespace {

constexpr std::string_view kText = R"(
#include <metal_stdlib>
using namespace metal;

pipeline_constant(uint, step, 0);

kernel void scale(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                  constant float& factor [[buffer(2)]], uint at [[thread_position_in_grid]]) {
  out[at] = in[at] * factor;
}
export_kernel(scale)

kernel void add(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]],
                device float* out [[buffer(2)]], uint at [[thread_position_in_grid]]) {
  out[at] = a[at] + b[at];
}
export_kernel(add)

// Sums each threadgroup's elements.
kernel void sumGroup(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                     threadgroup float* shared [[threadgroup_memory(0)]], uint lane [[thread_index_in_threadgroup]],
                     uint group [[threadgroup_position_in_grid]], uint lanes [[threads_per_threadgroup]]) {
  shared[lane] = in[group * lanes + lane];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    float sum = 0;
    for (uint i = 0; i < lanes; ++i) {
      sum += shared[i];
    }
    out[group] = sum;
  }
}
export_kernel(sumGroup)

kernel void countBy(device uint* out [[buffer(0)]], uint at [[thread_position_in_grid]]) { out[at] = at * step; }
export_kernel(countBy)
)";

struct Kernels {
  std::shared_ptr<Device> device;
  std::shared_ptr<Library> library;

  explicit Kernels(std::shared_ptr<Device> on)
      : device(std::move(on)),
        library(REQUIRE(device->registry().library(
            {.kind = LibrarySource::Kind::text, .value = std::string(kText), .label = "user kernels"}))) {}

  Dispatch dispatch(std::string function, uint32_t threads) const {
    Dispatch dispatch;
    dispatch.kernel = {.library = library, .function = std::move(function), .constants = {}};
    dispatch.kind = "User";
    dispatch.grid.extent = {threads, 1, 1};
    return dispatch;
  }
  Dispatch scale(const Tensor& in, const Tensor& out, float factor) const {
    Dispatch scaling = dispatch("scale", static_cast<uint32_t>(in.shape().elementCount()));
    scaling.buffers = {Binding::whole(0, in, Access::read), Binding::whole(1, out, Access::write)};
    scaling.inlines = {InlineBytes::of(2, factor)};
    return scaling;
  }
  Tensor tensor(uint64_t count) const { return floats(device, count); }
  Tensor ramp(uint64_t count) const {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.f);
    const Tensor result = tensor(count);
    REQUIRE(result.write(std::as_bytes(std::span(values))));
    return result;
  }
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
    const Tensor in = kernels.ramp(100);
    const Tensor out = kernels.tensor(100);
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

TEST(UserKernel, DeclaredReadsAndWritesPlaceBarriers) {
  onSomeDevices([](const Kernels& kernels) {
    const Tensor in = kernels.ramp(1000), twice = kernels.tensor(1000), thrice = kernels.tensor(1000),
                 sum = kernels.tensor(1000);
    CommandEncoder encoder(kernels.device);
    REQUIRE(encoder.dispatch(kernels.scale(in, twice, 2)));
    REQUIRE(encoder.dispatch(kernels.scale(in, thrice, 3)));
    EXPECT_EQ(encoder.summary().barriers, 0u);
    Dispatch add = kernels.dispatch("add", 1000);
    add.buffers = {Binding::whole(0, twice, Access::read), Binding::whole(1, thrice, Access::read),
                   Binding::whole(2, sum, Access::write)};
    REQUIRE(encoder.dispatch(add));
    EXPECT_EQ(encoder.summary().barriers, 1u);
    REQUIRE(encoder.dispatch(kernels.scale(sum, in, 1)));
    EXPECT_EQ(encoder.summary().barriers, 2u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT_EQ(REQUIRE(valuesOf(in)).at(999), 4995.f);
  });
}

TEST(UserKernel, UsesThreadgroupMemoryAndThreadgroupGrids) {
  onSomeDevices([](const Kernels& kernels) {
    const Tensor in = kernels.ramp(64 * 5);
    const Tensor out = kernels.tensor(5);
    Dispatch sum = kernels.dispatch("sumGroup", 5);
    sum.grid.unit = Grid::Unit::threadgroups;
    sum.grid.threadgroup = {64, 1, 1};
    sum.buffers = {Binding::whole(0, in, Access::read), Binding::whole(1, out, Access::write)};
    sum.threadgroupMemory = {{.index = 0, .bytes = 64 * sizeof(float)}};
    CommandEncoder encoder(kernels.device);
    REQUIRE(encoder.dispatch(sum));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    const auto got = REQUIRE(valuesOf(out));
    for (size_t group = 0; group < 5; ++group) EXPECT_EQ(got[group], static_cast<float>(64 * 64 * group + 2016));
    sum.threadgroupMemory.clear();
    CommandEncoder another(kernels.device);
    EXPECT_ERROR(another.dispatch(sum), {.what = "not bound", .got = "nothing at threadgroup memory 0"});
  });
}

TEST(UserKernel, ConstantsAreFixedPerPipeline) {
  const Kernels kernels(devicesUnderTest().front().device);
  for (const uint32_t step : {3u, 5u}) {
    const Tensor out = REQUIRE(Tensor::zeros(kernels.device, DType::u32, REQUIRE(Shape::make({40}))));
    Dispatch count = kernels.dispatch("countBy", 40);
    count.kernel.constants = {{0, step}};
    count.buffers = {Binding::whole(0, out, Access::write)};
    CommandEncoder encoder(kernels.device);
    REQUIRE(encoder.dispatch(count));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    std::vector<uint32_t> counts(40);
    REQUIRE(out.read(std::as_writable_bytes(std::span(counts))));
    EXPECT_EQ(counts[39], 39 * step);
  }
}

// Metal accepts values for unknown constants, and reports others only when it specializes the function.
TEST(UserKernel, MismatchedConstantsAreTypedErrors) {
  onSomeDevices([](const Kernels& kernels) {
    const bool isHost = kernels.device->kind() == "host";
    const Tensor out = kernels.tensor(4);
    CommandEncoder encoder(kernels.device);
    if (isHost) {
      Dispatch surplus = kernels.scale(out, out, 1);
      surplus.kernel.constants = {{17, true}};
      EXPECT_ERROR(encoder.dispatch(surplus), {.what = "no such function constant", .got = "index 17"});
    }
    Dispatch mistyped = kernels.dispatch("countBy", 4);
    mistyped.kernel.constants = {{0, true}};
    mistyped.buffers = {Binding::whole(0, out, Access::write)};
    const auto refused = encoder.dispatch(mistyped);
    if (isHost) {
      EXPECT_ERROR(refused, {.what = "another type", .got = "bool", .expected = "uint"});
    } else {
      EXPECT_ERROR(refused, {.code = ErrorCode::shaderBuild, .what = "countBy cannot be specialized"});
    }
    EXPECT_EQ(encoder.summary().total.dispatches, 0u);
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

TEST(UserKernel, MissingNamesBindingsAndLibrariesAreTypedErrors) {
  const Kernels kernels(devicesUnderTest().front().device);
  const Tensor out = kernels.tensor(4);
  CommandEncoder encoder(kernels.device);
  EXPECT_ERROR(encoder.dispatch(kernels.dispatch("nosuch", 4)),
               {.code = ErrorCode::shaderBuild, .what = "user kernels", .got = "nosuch", .expected = "scale"});
  Dispatch unbound = kernels.scale(out, out, 1);
  unbound.inlines.clear();
  EXPECT_ERROR(encoder.dispatch(unbound), {.op = "User", .what = "not bound", .got = "nothing at buffer 2"});
  Dispatch foreign = kernels.dispatch("scale", 4);
  foreign.kernel.library = REQUIRE(FakeDevice::make()->registry().shippedLibrary());
  EXPECT_ERROR(encoder.dispatch(foreign), {.what = "the library is not of ", .got = "shipped"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

TEST(UserKernel, SeveralThreadsEncodeOnOneDevice) {
  onSomeDevices([](const Kernels& kernels) {
    constexpr size_t kThreads = 4;
    std::latch start(kThreads);
    std::vector<std::string> failures(kThreads);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        const auto run = [&]() -> Result<void> {
          MNK_TRY(auto a, Tensor::zeros(kernels.device, DType::f32, *Shape::make({256})));
          MNK_TRY(auto b, Tensor::zeros(kernels.device, DType::f32, a.shape()));
          MNK_TRY(fill(a, 1));
          CommandEncoder encoder(kernels.device);
          const float factor = static_cast<float>(t + 2);
          MNK_TRY(encoder.dispatch(kernels.scale(a, b, factor)));
          MNK_TRY(encoder.dispatch(kernels.scale(b, a, factor)));
          MNK_TRY(auto done, encoder.commit());
          MNK_TRY(done.wait());
          MNK_TRY(auto got, valuesOf(a));
          if (got != std::vector<float>(256, factor * factor)) return Error{.what = "wrong elements"};
          return {};
        };
        for (int round = 0; round < 20 && failures[t].empty(); ++round) {
          if (auto ran = run(); !ran) failures[t] = ran.error().message();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  });
}

TEST(UserKernel, ADeviceMayBeReleasedWhileItWorks) {
  Completion done;
  {
    const auto device = REQUIRE(host::makeDevice({.workers = 2}));
    const auto source = REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({64, 2, 8}))));
    const auto cache = REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({2, 64, 8}))));
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(KVCacheWrite{.keys = source, .into = {.keys = cache}}));
    done = REQUIRE(encoder.commit());
  }
  EXPECT_EQ(REQUIRE(done.wait()).total.dispatches, 1u);
}

}  // namespace mnk::test
