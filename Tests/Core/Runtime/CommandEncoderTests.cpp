#include "MLXNativeKernels/CommandEncoder.hpp"

#include <algorithm>

#include "Harness/Golden.hpp"
#include "Runtime/FakeWork.hpp"

namespace mnk::test {

namespace {

using Call = FakeDevice::Call;

}  // namespace

TEST(CommandEncoder, PlacesBarriersBetweenDependentDispatches) {
  const FakeWork s;
  std::vector<std::byte> memory(64);
  const auto wrap = [&] {
    return REQUIRE(Tensor::over(REQUIRE(s.device->wrapMemory(memory.data(), memory.size(), {})), DType::u8,
                                REQUIRE(Shape::make({64}))));
  };
  const auto part = [&](uint64_t begin, uint64_t count) { return REQUIRE(s.a.slice(begin, count)); };
  using Tensors = std::vector<Tensor>;
  struct Case {
    std::string name, trace;
    std::vector<std::pair<Tensors, Tensors>> dispatches;  // what A, B and so on read and write
  };
  const Case cases[] = {
      {"independent work", "A B C", {{{s.a}, {s.b}}, {{s.a}, {s.c}}, {{s.a}, {s.d}}}},
      {"a chain", "A | B | C", {{{}, {s.a}}, {{s.a}, {s.b}}, {{s.b}, {s.c}}}},
      // D reads the results of A and B; the barrier before C already orders both.
      {"one barrier for two", "A B | C D", {{{}, {s.a}}, {{}, {s.b}}, {{s.a}, {s.c}}, {{s.b}, {s.d}}}},
      {"a diamond", "A | B C | D", {{{}, {s.a}}, {{s.a}, {s.b}}, {{s.a}, {s.c}}, {{s.b, s.c}, {s.d}}}},
      {"overwritten input", "A | B", {{{s.a}, {s.b}}, {{s.c}, {s.a}}}},
      {"overwritten output", "A | B", {{{}, {s.a}}, {{}, {s.a}}}},
      {"disjoint slices", "A B | C", {{{}, {part(0, 8)}}, {{}, {part(8, 8)}}, {{part(7, 2)}, {s.b}}}},
      {"memory wrapped twice", "A | B", {{{}, {wrap()}}, {{wrap()}, {s.b}}}},
      {"its own output", "A B", {{{s.a}, {s.a}}, {{s.b}, {s.b}}}},
  };
  for (const Case& one : cases) {
    const Context context(one.name);
    CommandEncoder encoder(s.device);
    std::string name = "A";
    for (const auto& [reads, writes] : one.dispatches) {
      REQUIRE(encoder.dispatch(fakeDispatch(name, reads, writes)));
      ++name[0];
    }
    REQUIRE(encoder.commit());
    EXPECT_EQ(s.device->committed().back().trace, one.trace);
    EXPECT_EQ(encoder.summary().barriers, static_cast<uint64_t>(std::count(one.trace.begin(), one.trace.end(), '|')));
    EXPECT_EQ(encoder.summary().total.dispatches, one.dispatches.size());
  }
}

TEST(CommandEncoder, TheDeviceGetsLabelPipelineAndThreadgroupShape) {
  const FakeWork s;
  s.device->describe("A", {.maxThreads = 48});
  CommandEncoder encoder(s.device, "a step");
  Dispatch dispatch = fakeDispatch("A", {s.a}, {s.b});
  dispatch.grid.extent = {100, 7, 3};
  REQUIRE(encoder.dispatch(dispatch));
  dispatch.grid.threadgroup = {4, 3, 2};
  dispatch.buffers.clear();
  REQUIRE(encoder.dispatch(dispatch));
  REQUIRE(encoder.commit());
  const auto recorded = s.device->committed().at(0);
  EXPECT_EQ(recorded.label, "a step");
  const auto& [chosen, requested] = std::tie(recorded.dispatches.at(0), recorded.dispatches.at(1));
  EXPECT(chosen.threadgroup == (Size3{48, 1, 1}));
  EXPECT(requested.threadgroup == (Size3{4, 3, 2}));
  EXPECT(chosen.pipeline == requested.pipeline);
  EXPECT(chosen.dispatch.buffers.at(0).buffer == s.a.buffer());
  EXPECT_EQ(chosen.dispatch.buffers.at(1).length, 64u);
}

TEST(CommandEncoder, FlexibleThreadgroupsUseThePipelineLimit) {
  const FakeWork s;
  s.device->describe("A", {.maxThreads = 100});
  s.device->describe("B", {.maxThreads = 31});
  CommandEncoder encoder(s.device);
  Dispatch dispatch = fakeDispatch("A", {s.a}, {s.b});
  dispatch.grid = {.unit = Grid::Unit::threadgroups, .extent = {2, 1, 1}, .threadgroup = {256, 1, 1}};
  const ExpectedError tooLarge{.what = "the threadgroup is larger than the pipeline allows"};
  EXPECT_ERROR(encoder.dispatch(dispatch), (tooLarge));
  dispatch.grid.minThreads = 96;
  REQUIRE(encoder.dispatch(dispatch));
  dispatch.grid.isShared = true;
  REQUIRE(encoder.dispatch(dispatch));
  dispatch.grid.minThreads = 128;
  EXPECT_ERROR(encoder.dispatch(dispatch), (tooLarge));
  dispatch.grid.minThreads = 32;
  dispatch.kernel.function = "B";  // less than a simdgroup
  EXPECT_ERROR(encoder.dispatch(dispatch), (tooLarge));
  REQUIRE(encoder.commit());
  const auto recorded = s.device->committed().at(0);
  for (const auto& [index, groups] : {std::pair(0, 1u), {1, 2u}}) {
    EXPECT(recorded.dispatches.at(index).threadgroup == (Size3{96, 1, 1}));
    EXPECT(recorded.dispatches.at(index).dispatch.grid.extent == (Size3{2, 1, groups}));
  }
}

TEST(CommandEncoder, APlanIsRecordedEntirelyOrNotAtAll) {
  const FakeWork s;
  Dispatch bad = fakeDispatch("B", {s.a}, {s.b});
  bad.buffers[0].length = 65;
  const Plan plan{.op = "Pair", .dispatches = {fakeDispatch("A", {}, {s.a}), fakeDispatch("C", {s.a}, {s.c}), bad}};
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("before", {}, {s.a})));
  EXPECT_ERROR(encoder.encode(plan), {.what = "a binding reaches past its buffer"});
  EXPECT_EQ(encoder.summary().total.dispatches, 1u);
  EXPECT_EQ(encoder.summary().barriers, 0u);
  s.device->failAt(Call::makePipeline, 1);
  EXPECT_ERROR(encoder.encode(Plan{.op = "Pair",
                                   .dispatches = {fakeDispatch("new", {}, {s.a}), fakeDispatch("newer", {}, {s.b})}}),
               {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
  REQUIRE(encoder.dispatch(fakeDispatch("after", {}, {s.b})));
  REQUIRE(encoder.commit());
  EXPECT_EQ(s.device->committed()[0].trace, "before after");
}

TEST(CommandEncoder, APartlyEncodedPlanIsNeverSubmitted) {
  const FakeWork s;
  const ExpectedError expected{.code = ErrorCode::deviceFault, .op = "FakeDevice", .what = "told to fail"};
  for (uint32_t taken : {1, 2}) {
    Context context(fmt::format("the device takes {}", taken));
    CommandEncoder encoder(s.device);
    const Plan plan{
        .op = "Three",
        .dispatches = {fakeDispatch("A", {}, {s.a}), fakeDispatch("B", {s.a}, {s.b}), fakeDispatch("C", {}, {s.c})}};
    s.device->failAt(Call::dispatch, taken);
    EXPECT_ERROR(encoder.encode(plan), (expected));
    // Later calls report the same error.
    EXPECT_ERROR(encoder.dispatch(fakeDispatch("D", {}, {s.d})), (expected));
    EXPECT_ERROR(encoder.barrier(), (expected));
    EXPECT_ERROR(encoder.commit(), (expected));
  }
  EXPECT_EQ(s.device->committed().size(), 0u);
}

TEST(CommandEncoder, ARefusedDispatchLeavesTheRestAlone) {
  const FakeWork s;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {}, {s.a})));
  s.device->failAt(Call::dispatch);
  EXPECT_ERROR(encoder.dispatch(fakeDispatch("B", {}, {s.b})), {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
  REQUIRE(encoder.dispatch(fakeDispatch("C", {}, {s.c})));
  EXPECT_EQ(encoder.summary().total.dispatches, 2u);
  s.device->holdCompletions();
  REQUIRE(encoder.commit());
  EXPECT_EQ(s.device->committed()[0].trace, "A C");
  // The failure of the submission does not affect the output of the refused dispatch.
  EXPECT(s.device->finishNext(fakeFailure()));
  std::vector<std::byte> bytes(s.b.byteCount());
  REQUIRE(s.b.read(bytes));
  EXPECT_ERROR(s.c.read(bytes), {.code = ErrorCode::deviceFault});
}

TEST(CommandEncoder, ARefusalAfterABarrierInvalidatesTheEncoder) {
  const FakeWork s;
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.dispatch(fakeDispatch("A", {}, {s.a})));
  s.device->failAt(Call::dispatch);
  EXPECT_ERROR(encoder.dispatch(fakeDispatch("B", {s.a}, {s.b})), {.code = ErrorCode::deviceFault});
  EXPECT_ERROR(encoder.commit(), {.code = ErrorCode::deviceFault});  // a barrier was encoded that no dispatch needed
  EXPECT_EQ(s.device->committed().size(), 0u);
}

TEST(CommandEncoder, ScratchMemoryReplacesMissingBuffers) {
  const FakeWork s;
  const Region all{.offset = 0, .rowBytes = 32, .rowStride = 32, .rows = 1};
  const auto scratch = [&](uint64_t offset, std::vector<Region> reads, std::vector<Region> writes) {
    return Binding{.index = 9, .buffer = nullptr, .offset = offset, .length = 32, .reads = reads, .writes = writes};
  };
  Dispatch low = fakeDispatch("low", {s.a}, {}), high = fakeDispatch("high", {s.a}, {}),
           join = fakeDispatch("join", {}, {s.b});
  low.buffers.push_back(scratch(0, {}, {all}));
  high.buffers.push_back(scratch(32, {}, {all}));
  join.buffers.push_back(scratch(0, {all}, {}));
  const Plan plan{.op = "Split", .dispatches = {low, high, join}, .scratchBytes = 64};
  CommandEncoder encoder(s.device);
  REQUIRE(encoder.encode(plan));
  Plan again = plan;
  again.dispatches[2] = fakeDispatch("other", {}, {s.c});
  REQUIRE(encoder.encode(again));
  again.scratchBytes = 1 << 20;
  REQUIRE(encoder.encode(again));
  REQUIRE(encoder.commit());
  const auto recorded = s.device->committed()[0];
  // The first two plans use the same scratch memory, so the second waits for the first. The third needs more.
  EXPECT_EQ(recorded.trace, "low high | join | low high other low high | other");
  const auto bufferOf = [&](size_t i) { return recorded.dispatches.at(i).dispatch.buffers.back().buffer; };
  EXPECT(bufferOf(0) && bufferOf(0) == bufferOf(1) && bufferOf(0) == bufferOf(2));
  EXPECT(bufferOf(0)->length() >= 64u);
  EXPECT(bufferOf(3) == bufferOf(0));
  EXPECT(bufferOf(6)->length() >= 1u << 20);
}

TEST(CommandEncoder, PlansHaveTheirOwnZeroedMemory) {
  const FakeWork s;
  Dispatch dispatch = fakeDispatch("count", {}, {});
  const Region all{.offset = 0, .rowBytes = 24, .rowStride = 24, .rows = 1};
  dispatch.buffers.push_back(
      {.index = 0, .buffer = nullptr, .offset = 8, .length = 24, .reads = {all}, .writes = {all}});
  dispatch.buffers[0].isZeroed = true;
  const Plan plan{.op = "Count", .dispatches = {dispatch}, .zeroedBytes = 32};
  for (int round = 0; round < 2; ++round) {  // the second round reuses memory that the first has modified
    CommandEncoder encoder(s.device);
    REQUIRE(encoder.encode(plan));
    REQUIRE(encoder.encode(plan));
    EXPECT_ERROR(encoder.dispatch(dispatch), {.what = "a binding has no memory"});
    REQUIRE(encoder.commit());
    const auto recorded = s.device->committed().back();
    EXPECT_EQ(recorded.trace, "count count");
    for (size_t i = 0; i < 2; ++i) {
      const Binding& binding = recorded.dispatches.at(i).dispatch.buffers.at(0);
      EXPECT_EQ(binding.offset, i * 32 + 8);
      std::vector<std::byte> bytes(24);
      REQUIRE(binding.buffer->read(binding.offset, bytes));
      EXPECT(bytes == std::vector<std::byte>(24));
      std::fill(bytes.begin(), bytes.end(), std::byte{7});
      REQUIRE(binding.buffer->write(binding.offset, bytes));
    }
  }
}

TEST(CommandEncoder, RefusesMissingOrSmallScratchMemory) {
  const FakeWork s;
  Dispatch dispatch = fakeDispatch("A", {}, {});
  dispatch.buffers.push_back({.index = 0, .buffer = nullptr, .offset = 0, .length = 32, .reads = {}, .writes = {}});
  CommandEncoder encoder(s.device);
  RefusedCalls no;
  no(encoder.encode(Plan{.op = "P", .dispatches = {dispatch}}));
  no(encoder.dispatch(dispatch));
  s.device->failAt(Call::makeBuffer);
  no(encoder.encode(Plan{.op = "P", .dispatches = {dispatch}, .scratchBytes = 32}));
  no(encoder.encode(Plan{.op = "P", .dispatches = {dispatch}, .scratchBytes = 31}));
  // Scratch memory of another plan is not available to dispatches without scratch memory.
  no(encoder.dispatch(dispatch));
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

TEST(CommandEncoder, WithoutADeviceEveryCallFails) {
  CommandEncoder encoder(nullptr);
  RefusedCalls no;
  no(encoder.dispatch(fakeDispatch("A")));
  no(encoder.encode(Plan{}));
  no(encoder.barrier());
  no(encoder.join(&encoder, nullptr));
  no(encoder.commit());
  EXPECT(!encoder.device());
  EXPECT(!encoder.participant(&encoder));
}

TEST(CommandEncoder, ReportsADeviceThatCannotStart) {
  const FakeWork s;
  CommandEncoder encoder(s.device);
  s.device->failAt(Call::makeSubmission, 0, 2);
  EXPECT_ERROR(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})), {.code = ErrorCode::deviceFault});
  EXPECT_ERROR(encoder.commit(), {.code = ErrorCode::deviceFault});
  REQUIRE(encoder.dispatch(fakeDispatch("A", {s.a}, {s.b})));
  REQUIRE(encoder.commit());
  EXPECT_EQ(s.device->committed()[0].trace, "A");
}

}  // namespace mnk::test
