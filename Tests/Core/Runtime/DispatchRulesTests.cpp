#include "Runtime/DispatchRules.hpp"

#include <set>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/Golden.hpp"
#include "Harness/PlanBuffer.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

using Argument = Pipeline::Argument;

// A dispatch that satisfies every rule, on a device with adjustable limits.
struct DispatchFixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  std::shared_ptr<FakeDevice> stranger = FakeDevice::make();
  std::shared_ptr<Buffer> buffer = REQUIRE(device->makeBuffer(256));
  Dispatch dispatch;

  DispatchFixture() {
    device->describe("kernel",
                     {.maxThreads = 64,
                      .arguments = {{.index = 0, .minimumBytes = 16, .alignment = 8, .mayBeEmpty = true},
                                    {.index = 1, .minimumBytes = 4, .isReadOnly = true},
                                    {.kind = Argument::Kind::threadgroupMemory, .index = 0, .minimumBytes = 64}}});
    const Region row{.offset = 0, .rowBytes = 16, .rowStride = 32, .rows = 4};
    dispatch = fakeDispatch(
        "kernel", {{.index = 0, .buffer = buffer, .offset = 0, .length = 128, .reads = {row}, .writes = {row}}});
    dispatch.inlines = {InlineBytes::of(1, uint32_t{5})};
    dispatch.threadgroupMemory = {{.index = 0, .bytes = 1024}};
    dispatch.grid = {.unit = Grid::Unit::threads, .extent = {100, 1, 1}, .threadgroup = {32, 2, 1}};
  }
};

Binding bind(const DispatchFixture& f, uint32_t index, uint64_t length) {
  return {.index = index, .buffer = f.buffer, .offset = 0, .length = length};
}
InlineBytes zeros(uint32_t index, size_t count) {
  return {.index = index, .bytes = std::vector<std::byte>(count)};
}
void add(DispatchFixture& f, uint32_t index, uint32_t threadgroupBytes) {
  f.dispatch.threadgroupMemory.push_back({.index = index, .bytes = threadgroupBytes});
}
void setThreadgroup(DispatchFixture& f, uint32_t x, uint32_t y, uint32_t z) {
  f.dispatch.grid.threadgroup = {x, y, z};
}
void setGrid(DispatchFixture& f, uint32_t x, uint32_t y) {
  f.dispatch.grid.extent = {x, y, 1};
}
void useThreadgroups(DispatchFixture& f) {
  f.dispatch.grid.unit = Grid::Unit::threadgroups;
}
void describe(DispatchFixture& f, FakeDevice::Function described) {
  described.maxThreads = 64;
  f.device->describe("kernel", described);
}

// Each breaks one rule and no other.
void (*const kCases[])(DispatchFixture&) = {
    [](DispatchFixture& f) { f.dispatch.inlines.push_back(zeros(31, 4)); },
    [](DispatchFixture& f) { f.dispatch.buffers.push_back(bind(f, UINT32_MAX, 128)); },
    [](DispatchFixture& f) { f.dispatch.buffers.push_back(f.dispatch.buffers[0]); },
    [](DispatchFixture& f) { f.dispatch.inlines.push_back(zeros(1, 4)); },
    [](DispatchFixture& f) { f.dispatch.buffers[0].buffer = nullptr; },
    [](DispatchFixture& f) { f.dispatch.buffers[0].length = 257; },
    [](DispatchFixture& f) { f.dispatch.buffers[0].offset = 136; },
    [](DispatchFixture& f) { f.dispatch.buffers[0].offset = UINT64_MAX - 63; },
    [](DispatchFixture& f) { f.dispatch.buffers[0].reads[0].offset = 17; },
    [](DispatchFixture& f) { f.dispatch.buffers[0].writes[0].rows = 5; },
    [](DispatchFixture& f) { f.dispatch.buffers[0].writes[0].rowStride = uint64_t{1} << 63; },
    [](DispatchFixture& f) { f.dispatch.buffers[0].reads[0].offset = UINT64_MAX - 8; },
    [](DispatchFixture& f) { f.dispatch.buffers[0].buffer = REQUIRE(f.stranger->makeBuffer(256)); },
    [](DispatchFixture& f) { f.dispatch.buffers[0].buffer = std::make_shared<PlanBuffer>(256); },
    [](DispatchFixture& f) { f.dispatch.inlines.push_back(zeros(2, 0)); },
    [](DispatchFixture& f) { f.dispatch.inlines[0] = zeros(1, 4097); },
    [](DispatchFixture& f) { add(f, 8, 16); },
    [](DispatchFixture& f) { add(f, 0, 16); },
    [](DispatchFixture& f) { add(f, 1, 0); },
    [](DispatchFixture& f) { add(f, 1, 31 * 1024 + 1); },
    [](DispatchFixture& f) { add(f, 1, 1u << 30), add(f, 2, 1u << 30), add(f, 3, 1u << 30), add(f, 4, 1u << 30); },
    [](DispatchFixture& f) { describe(f, {.staticThreadgroupBytes = 31 * 1024 + 1}); },
    [](DispatchFixture& f) { describe(f, {.arguments = {{.index = 1, .minimumBytes = 4}}}); },
    [](DispatchFixture& f) { f.dispatch.buffers[0].offset = 12; },
    [](DispatchFixture& f) { f.dispatch.inlines.clear(); },
    [](DispatchFixture& f) { f.dispatch.buffers.clear(); },
    [](DispatchFixture& f) { f.dispatch.threadgroupMemory.clear(); },
    [](DispatchFixture& f) { f.dispatch.buffers[0] = bind(f, 0, 15); },
    [](DispatchFixture& f) { f.dispatch.inlines[0] = zeros(1, 3); },
    [](DispatchFixture& f) { f.dispatch.inlines.clear(), f.dispatch.buffers.push_back(bind(f, 1, 0)); },
    [](DispatchFixture& f) { f.dispatch.threadgroupMemory[0].bytes = 48; },
    [](DispatchFixture& f) { f.dispatch.inlines[0] = InlineBytes::of(1, 0.5); },  // a double for a float
    [](DispatchFixture& f) { setThreadgroup(f, 32, 0, 1); },
    [](DispatchFixture& f) { useThreadgroups(f), setThreadgroup(f, 0, 0, 0); },
    [](DispatchFixture& f) { setThreadgroup(f, 65, 1, 1); },
    [](DispatchFixture& f) {
      setThreadgroup(f, 1u << 31, 1u << 31, 1u << 31);
    },  // 2^96 must not wrap to something small
    [](DispatchFixture& f) { setGrid(f, 4, 0); },
    [](DispatchFixture& f) { f.dispatch.grid.extent[2] = 0; },
    [](DispatchFixture& f) { useThreadgroups(f), setGrid(f, 0, 1); },
    [](DispatchFixture& f) { setGrid(f, UINT32_MAX, UINT32_MAX); },
    [](DispatchFixture& f) { useThreadgroups(f), setGrid(f, 1u << 27, 1); },
};

constexpr GoldenText kGolden{
    "Runtime/DispatchRules.inc",
#include "DispatchRules.inc"
};

}  // namespace

TEST(DispatchRules, EachHasItsErrorAndNothingIsRecorded) {
  ErrorLines errors;
  std::set<std::string, std::less<>> tested;
  for (const auto& breakIn : kCases) {
    const Context context(fmt::format("case {}", &breakIn - kCases));
    DispatchFixture fixture;
    breakIn(fixture);
    const auto pipeline = REQUIRE(fixture.device->registry().pipeline(fixture.dispatch.kernel));
    const DispatchCheck check{.dispatch = fixture.dispatch, .device = *fixture.device, .pipeline = *pipeline};
    std::string broken;
    for (const auto& rule : dispatchRules()) {
      if (!rule.mismatch(check)) continue;
      broken += (broken.empty() ? "" : ", ") + std::string(rule.what);
      if (rule.what == "a binding has no memory") break;  // rules below rely on the memory
    }
    CommandEncoder encoder(fixture.device);
    const auto refused = encoder.dispatch(fixture.dispatch);
    EXPECT_ERROR(refused, {.op = "Fake"});
    if (refused) continue;
    EXPECT_EQ(refused.error().what, broken);  // alone
    errors.add(refused.error());
    tested.insert(refused.error().what);
    EXPECT_EQ(encoder.summary().total.dispatches, 0u);
    REQUIRE(encoder.commit());
    EXPECT_EQ(fixture.device->committed().at(0).trace, "");
  }
  expectGolden(kGolden, errors.lines());
  for (const auto& rule : dispatchRules()) {
    if (!tested.contains(rule.what)) fail(__FILE__, __LINE__, fmt::format("no case breaks: {}", rule.what));
  }
}

// As it is, with an empty binding, and at every limit.
TEST(DispatchRules, ExactLimitsAreAllowed) {
  void (*const allowed[])(DispatchFixture&) = {
      [](DispatchFixture&) {},
      [](DispatchFixture& f) { f.dispatch.buffers[0] = {.index = 0, .buffer = f.buffer, .offset = 256, .length = 0}; },
      [](DispatchFixture& f) {
        f.device->describe("kernel", {.maxThreads = 64});
        f.dispatch.inlines = {{.index = 30, .bytes = std::vector<std::byte>(4096)}};
        f.dispatch.threadgroupMemory = {{.index = 7, .bytes = 32 * 1024}};
        f.dispatch.buffers[0].length = 256;
        f.dispatch.buffers[0].reads = {{.offset = 0, .rowBytes = 64, .rowStride = 64, .rows = 4},
                                       {.offset = 256, .rowBytes = 0, .rowStride = 0, .rows = 1},
                                       {.offset = UINT64_MAX, .rowBytes = 1, .rowStride = 1, .rows = 0}};
        f.dispatch.grid = {
            .unit = Grid::Unit::threadgroups, .extent = {(1u << 26) - 1, 1, 1}, .threadgroup = {64, 1, 1}};
      }};
  for (const auto& change : allowed) {
    const Context context(fmt::format("case {}", &change - allowed));
    DispatchFixture fixture;
    change(fixture);
    CommandEncoder encoder(fixture.device);
    REQUIRE(encoder.dispatch(fixture.dispatch));
  }
}

TEST(DispatchRules, DeviceDependentRulesQueryTheDevice) {
  DispatchFixture fixture;
  fixture.device->changeLimits().maxInlineBytes = 3;
  CommandEncoder encoder(fixture.device);
  EXPECT_ERROR(encoder.dispatch(fixture.dispatch), {.what = "inline bytes", .expected = "1 to 3 bytes"});
}

}  // namespace mnk::test
