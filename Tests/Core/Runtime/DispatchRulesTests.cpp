#include "Runtime/DispatchRules.hpp"

#include <set>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

using Argument = Pipeline::Argument;

// A dispatch that satisfies every rule, on a device with adjustable limits.
struct Fixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  std::shared_ptr<FakeDevice> stranger = FakeDevice::make();
  std::shared_ptr<Buffer> buffer = REQUIRE(device->makeBuffer(256));
  Dispatch dispatch;

  Fixture() {
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

struct Case {
  std::string_view what;  // the only rule that is broken
  void (*bend)(Fixture&);
  std::string_view got, expected, fix;
};

constexpr Case kCases[] = {
    {"a buffer index is out of range",
     [](Fixture& fixture) { fixture.dispatch.inlines.push_back(InlineBytes::of(31, 1)); }, "index 31", "at most 30",
     "[[buffer(n)]]"},
    {"a buffer index is out of range",
     [](Fixture& fixture) {
       fixture.dispatch.buffers.push_back(fixture.dispatch.buffers[0]);
       fixture.dispatch.buffers.back().index = UINT32_MAX;
     },
     "index 4294967295", "at most 30", "[[buffer(n)]]"},
    {"two arguments are bound at one buffer index",
     [](Fixture& fixture) { fixture.dispatch.buffers.push_back(fixture.dispatch.buffers[0]); }, "index 0 twice",
     "one argument for each index", "Bind each index once."},
    {"two arguments are bound at one buffer index",
     [](Fixture& fixture) { fixture.dispatch.inlines.push_back(InlineBytes::of(1, 1)); }, "index 1 twice",
     "one argument for each index", "Bind each index once."},
    {"a binding has no memory", [](Fixture& fixture) { fixture.dispatch.buffers[0].buffer = nullptr; },
     "no buffer at index 0", "a buffer, or scratch memory", "Bind a tensor that has memory."},
    {"a binding reaches past its buffer", [](Fixture& fixture) { fixture.dispatch.buffers[0].length = 257; },
     "257 bytes at byte 0 for index 0", "a range inside 256 bytes", "Bind a range inside the buffer."},
    {"a binding reaches past its buffer", [](Fixture& fixture) { fixture.dispatch.buffers[0].offset = 136; },
     "128 bytes at byte 136", "a range inside 256 bytes", "Bind a range inside the buffer."},
    {"a binding reaches past its buffer",
     [](Fixture& fixture) { fixture.dispatch.buffers[0].offset = UINT64_MAX - 63; }, "at byte 18446744073709551552",
     "a range inside 256 bytes", "Bind a range inside the buffer."},
    {"a binding reaches past its buffer", [](Fixture& fixture) { fixture.dispatch.buffers[0].reads[0].offset = 17; },
     "with its reads and writes", "inside that range", "Bind a range inside the buffer."},
    {"a binding reaches past its buffer", [](Fixture& fixture) { fixture.dispatch.buffers[0].writes[0].rows = 5; },
     "with its reads and writes", "inside that range", "Bind a range inside the buffer."},
    {"a binding reaches past its buffer",
     [](Fixture& fixture) { fixture.dispatch.buffers[0].writes[0].rowStride = uint64_t{1} << 63; },
     "with its reads and writes", "inside that range", "Bind a range inside the buffer."},
    {"a binding reaches past its buffer",
     [](Fixture& fixture) { fixture.dispatch.buffers[0].reads[0].offset = UINT64_MAX - 8; },
     "with its reads and writes", "inside that range", "Bind a range inside the buffer."},
    {"a tensor belongs to another device",
     [](Fixture& fixture) { fixture.dispatch.buffers[0].buffer = REQUIRE(fixture.stranger->makeBuffer(256)); },
     "memory of another device, Fake, at index 0", "memory of the encoder's device, Fake",
     "Make the tensor on the device that encodes."},
    {"inline bytes have the wrong size",
     [](Fixture& fixture) { fixture.dispatch.inlines.push_back({.index = 2, .bytes = {}}); }, "0 bytes at index 2",
     "1 to 4096 bytes", "Put larger data in a tensor."},
    {"inline bytes have the wrong size", [](Fixture& fixture) { fixture.dispatch.inlines[0].bytes.resize(4097); },
     "4097 bytes at index 1", "1 to 4096 bytes", "Put larger data in a tensor."},
    {"a threadgroup-memory index is out of range",
     [](Fixture& fixture) { fixture.dispatch.threadgroupMemory.push_back({.index = 8, .bytes = 16}); }, "index 8",
     "at most 7", "[[threadgroup_memory(n)]]"},
    {"two threadgroup memories have one index, or one has no size",
     [](Fixture& fixture) { fixture.dispatch.threadgroupMemory.push_back({.index = 0, .bytes = 16}); },
     "16 bytes at index 0", "once for each index", "Bind each index once"},
    {"two threadgroup memories have one index, or one has no size",
     [](Fixture& fixture) { fixture.dispatch.threadgroupMemory.push_back({.index = 1, .bytes = 0}); },
     "0 bytes at index 1", "at least 1 byte", "Bind each index once"},
    {"the dispatch asks for too much threadgroup memory",
     [](Fixture& fixture) { fixture.dispatch.threadgroupMemory.push_back({.index = 1, .bytes = 31 * 1024 + 1}); },
     "32784 bytes", "at most 32768", "Use less threadgroup memory."},
    {"the dispatch asks for too much threadgroup memory",
     [](Fixture& fixture) {
       for (uint32_t i = 1; i < 5; ++i) {
         fixture.dispatch.threadgroupMemory.push_back({.index = i, .bytes = 1u << 30});
       }
     },
     "4294968320 bytes", "at most 32768", "Use less threadgroup memory."},
    {"inline bytes are bound at an argument that the kernel may write",
     [](Fixture& fixture) {
       fixture.device->describe("kernel", {.maxThreads = 64, .arguments = {{.index = 1, .minimumBytes = 4}}});
     },
     "inline bytes at buffer 1", "a tensor", "make the kernel's parameter constant"},
    {"a binding starts where its argument cannot", [](Fixture& fixture) { fixture.dispatch.buffers[0].offset = 12; },
     "byte 12 for buffer 0", "a multiple of 8 bytes", "use a smaller type"},
    {"the dispatch asks for too much threadgroup memory",
     [](Fixture& fixture) {
       fixture.device->describe("kernel", {.maxThreads = 64, .staticThreadgroupBytes = 31 * 1024 + 1});
     },
     "32769 bytes", "at most 32768", "Use less threadgroup memory."},
    {"an argument of the kernel is not bound", [](Fixture& fixture) { fixture.dispatch.inlines.clear(); },
     "nothing at buffer 1", "every argument of kernel", "Bind every argument"},
    {"an argument of the kernel is not bound", [](Fixture& fixture) { fixture.dispatch.buffers.clear(); },
     "nothing at buffer 0", "every argument of kernel", "Bind every argument"},
    {"an argument of the kernel is not bound", [](Fixture& fixture) { fixture.dispatch.threadgroupMemory.clear(); },
     "nothing at threadgroup memory 0", "every argument of kernel", "Bind every argument"},
    {"an argument of the kernel is bound to too few bytes",
     [](Fixture& fixture) {
       fixture.dispatch.buffers[0] = {.index = 0, .buffer = fixture.buffer, .offset = 0, .length = 15};
     },
     "15 bytes for buffer 0", "at least 16 bytes", "what the kernel's parameter points to"},
    {"an argument of the kernel is bound to too few bytes",
     [](Fixture& fixture) { fixture.dispatch.inlines = {{.index = 1, .bytes = std::vector<std::byte>(3)}}; },
     "3 bytes for buffer 1", "at least 4 bytes", "what the kernel's parameter points to"},
    {"an argument of the kernel is bound to too few bytes",
     [](Fixture& fixture) {
       fixture.dispatch.inlines.clear();
       fixture.dispatch.buffers.push_back({.index = 1, .buffer = fixture.buffer, .offset = 0, .length = 0});
     },
     "0 bytes for buffer 1", "at least 4 bytes", "what the kernel's parameter points to"},
    {"an argument of the kernel is bound to too few bytes",
     [](Fixture& fixture) { fixture.dispatch.threadgroupMemory = {{.index = 0, .bytes = 48}}; },
     "48 bytes for threadgroup memory 0", "at least 64 bytes", "what the kernel's parameter points to"},
    {"the threadgroup size is missing",
     [](Fixture& fixture) {
       fixture.dispatch.grid.threadgroup = {32, 0, 1};
     },
     "32 x 0 x 1", "at least 1 x 1 x 1", "Give every axis at least one thread."},
    {"the threadgroup size is missing",
     [](Fixture& fixture) {
       fixture.dispatch.grid.unit = Grid::Unit::threadgroups;
       fixture.dispatch.grid.threadgroup = {0, 0, 0};
     },
     "0 x 0 x 0", "or 0 x 0 x 0 with a grid of threads", "Give every axis at least one thread."},
    {"the threadgroup is larger than the pipeline allows",
     [](Fixture& fixture) {
       fixture.dispatch.grid.threadgroup = {65, 1, 1};
     },
     "65 x 1 x 1 threads", "at most 64", "Use smaller threadgroups."},
    {"the threadgroup is larger than the pipeline allows",
     [](Fixture& fixture) {
       // 2^96 threads: the product must not wrap to something small.
       fixture.dispatch.grid.threadgroup = {1u << 31, 1u << 31, 1u << 31};
     },
     "threads", "at most 64", "Use smaller threadgroups."},
    {"the grid has more threads than can be counted",
     [](Fixture& fixture) {
       fixture.dispatch.grid.extent = {UINT32_MAX, UINT32_MAX, 1};
     },
     "4294967295 x 4294967295 x 1 threads", "2^63 in all", "Split the work"},
    {"the grid has more threads than can be counted",
     [](Fixture& fixture) {
       fixture.dispatch.grid.unit = Grid::Unit::threadgroups;
       fixture.dispatch.grid.extent = {1u << 27, 1, 1};
     },
     "134217728 x 1 x 1 threadgroups", "fewer than 2^32 threads on an axis", "Split the work"},
};

}  // namespace

TEST(DispatchRules, FixtureBreaksNoRule) {
  Fixture fixture;
  CommandEncoder encoder(fixture.device);
  REQUIRE(encoder.dispatch(fixture.dispatch));
}

TEST(DispatchRules, EachBrokenRuleIsReported) {
  for (const Case& one : kCases) {
    Context context(fmt::format("{} ({})", one.what, one.got));
    Fixture fixture;
    one.bend(fixture);
    CommandEncoder encoder(fixture.device);
    EXPECT_ERROR(encoder.dispatch(fixture.dispatch),
                 {.op = "Fake", .what = one.what, .got = one.got, .expected = one.expected, .fix = one.fix});
    EXPECT_EQ(encoder.summary().total.dispatches, 0u);
    REQUIRE(encoder.commit());
    EXPECT_EQ(fixture.device->committed().at(0).trace, "");
  }
}

TEST(DispatchRules, EachCaseBreaksOnlyOneRule) {
  for (const Case& one : kCases) {
    Context context(fmt::format("{} ({})", one.what, one.got));
    Fixture fixture;
    one.bend(fixture);
    const auto pipeline = REQUIRE(fixture.device->registry().pipeline(fixture.dispatch.kernel));
    const DispatchCheck check{.dispatch = fixture.dispatch, .device = *fixture.device, .pipeline = *pipeline};
    std::string broken;
    for (const auto& rule : dispatchRules()) {
      if (!rule.mismatch(check)) continue;
      broken += (broken.empty() ? "" : ", ") + std::string(rule.what);
      if (rule.what == "a binding has no memory") break;  // rules below rely on the memory
    }
    EXPECT_EQ(broken, one.what);
  }
}

TEST(DispatchRules, EveryRuleHasACase) {
  std::set<std::string_view> tested;
  for (const Case& one : kCases) tested.insert(one.what);
  for (const auto& rule : dispatchRules()) {
    if (!tested.contains(rule.what)) fail(__FILE__, __LINE__, fmt::format("no case breaks: {}", rule.what));
  }
  EXPECT_EQ(tested.size(), dispatchRules().size());
}

TEST(DispatchRules, AllowsAnEmptyBinding) {
  Fixture fixture;
  fixture.dispatch.buffers[0] = {.index = 0, .buffer = fixture.buffer, .offset = 256, .length = 0};
  CommandEncoder encoder(fixture.device);
  REQUIRE(encoder.dispatch(fixture.dispatch));
}

TEST(DispatchRules, AGridWithoutThreadsNeedsNoBytes) {
  Fixture fixture;
  fixture.dispatch.buffers[0] = {.index = 0, .buffer = fixture.buffer, .offset = 0, .length = 1};
  fixture.dispatch.grid.extent = {0, 1, 1};
  CommandEncoder encoder(fixture.device);
  REQUIRE(encoder.dispatch(fixture.dispatch));
}

TEST(DispatchRules, ExactLimitsAreAllowed) {
  Fixture fixture;
  fixture.device->describe("kernel", {.maxThreads = 64});
  fixture.dispatch.inlines = {{.index = 30, .bytes = std::vector<std::byte>(4096)}};
  fixture.dispatch.threadgroupMemory = {{.index = 7, .bytes = 32 * 1024}};
  fixture.dispatch.buffers[0].length = 256;
  fixture.dispatch.buffers[0].reads = {{.offset = 0, .rowBytes = 64, .rowStride = 64, .rows = 4},
                                       {.offset = 256, .rowBytes = 0, .rowStride = 0, .rows = 1},
                                       {.offset = UINT64_MAX, .rowBytes = 1, .rowStride = 1, .rows = 0}};
  fixture.dispatch.grid = {
      .unit = Grid::Unit::threadgroups, .extent = {(1u << 26) - 1, 1, 1}, .threadgroup = {64, 1, 1}};
  CommandEncoder encoder(fixture.device);
  REQUIRE(encoder.dispatch(fixture.dispatch));
}

TEST(DispatchRules, DeviceDependentRulesQueryTheDevice) {
  Fixture fixture;
  fixture.device->changeLimits().maxInlineBytes = 3;
  CommandEncoder encoder(fixture.device);
  EXPECT_ERROR(encoder.dispatch(fixture.dispatch), {.what = "inline bytes", .expected = "1 to 3 bytes"});
}

}  // namespace mnk::test
