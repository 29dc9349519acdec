// Undeclared accesses, unordered dispatches, and guarded devices.
#include <future>

#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

std::shared_ptr<Device> deviceWith(HostOptions::Checking checking, uint64_t order = 0) {
  return hostDevice({.workers = 2, .orderSeed = order, .checking = checking});
}

struct Part {
  std::shared_ptr<Buffer> buffer;
  uint64_t offset, length;
  std::vector<Region> reads, writes;
};

// Kernel copy16 copies 16 bytes per thread from buffer 0 to buffer 1.
ReadyDispatch copyDispatch(const std::shared_ptr<Device>& device, const Part& from, const Part& to, uint32_t threads) {
  ReadyDispatch ready;
  ready.dispatch.kernel = {conformanceLibrary(), "copy16", {}};
  ready.dispatch.kind = "Copy";
  ready.pipeline = REQUIRE(device->registry().pipeline(ready.dispatch.kernel));
  ready.dispatch.grid = {Grid::Unit::threads, {threads, 1, 1}, {threads, 1, 1}};
  ready.threadgroup = ready.dispatch.grid.threadgroup;
  uint32_t index = 0;
  for (const Part& part : {from, to}) {
    ready.dispatch.buffers.push_back({index++, part.buffer, part.offset, part.length, part.reads, part.writes});
  }
  return ready;
}

Result<void> submitTogether(const std::shared_ptr<Device>& device, std::vector<ReadyDispatch> dispatches,
                            bool withBarriers) {
  auto submission = REQUIRE(device->makeSubmission("step"));
  for (ReadyDispatch& ready : dispatches) {
    if (auto accepted = submission->dispatch(std::move(ready)); !accepted) return accepted;
    if (withBarriers) submission->barrier();
  }
  std::promise<Result<void>> outcome;
  commit(*submission, [&](SubmissionReport report) { outcome.set_value(std::move(report.outcome)); });
  return outcome.get_future().get();
}

std::shared_ptr<Buffer> filled(const std::shared_ptr<Device>& device, uint64_t bytes, unsigned char value) {
  auto buffer = REQUIRE(device->makeBuffer(bytes));
  std::memset(buffer->contents(), value, bytes);
  return buffer;
}

}  // namespace

TEST(HostDispatchChecking, FindsAnUndeclaredWrite) {
  for (const auto checking : {HostOptions::Checking::guarded, HostOptions::Checking::full}) {
    const auto device = deviceWith(checking);
    const auto from = filled(device, 64, 3), to = filled(device, 64, 5);
    const Part source{from, 0, 64, {{0, 64}}, {}};
    REQUIRE(submitTogether(device, {copyDispatch(device, source, {to, 0, 64, {}, {{0, 64}}}, 4)}, false));
    std::memset(to->contents(), 5, 64);
    const auto outcome = submitTogether(device, {copyDispatch(device, source, {to, 0, 64, {}, {{0, 48}}}, 4)}, false);
    EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .op = "Copy", .what = "copy16", .got = "buffer 1 + 48"});
  }
}

TEST(HostDispatchChecking, FindsReadsOfUndefinedMemory) {
  const auto device = deviceWith(HostOptions::Checking::full);
  const auto from = REQUIRE(device->makeUndefinedBuffer(64)), to = filled(device, 64, 5);
  const auto copied = [&](const std::shared_ptr<Buffer>& source, const std::shared_ptr<Buffer>& target) {
    const Part read{source, 0, 64, {{0, 64}}, {}}, written{target, 0, 64, {}, {{0, 64}}};
    return submitTogether(device, {copyDispatch(device, read, written, 4)}, false);
  };
  EXPECT_ERROR(copied(from, to), {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 0 + 0"});
  // What the processor writes is defined.
  const std::vector<std::byte> bytes(48, std::byte{7});
  REQUIRE(from->write(0, bytes));
  EXPECT_ERROR(copied(from, to), {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 0 + 48"});
  REQUIRE(from->write(48, std::span(bytes).first(16)));
  REQUIRE(copied(from, to));
  // And so is what a kernel writes.
  const auto other = REQUIRE(device->makeUndefinedBuffer(64));
  REQUIRE(copied(to, other));
  REQUIRE(copied(other, to));
  EXPECT_EQ(to->contents()[63], std::byte{7});
}

TEST(HostDispatchChecking, FindsAnUndeclaredRead) {
  const auto device = deviceWith(HostOptions::Checking::full);
  const auto from = filled(device, 64, 3), to = filled(device, 64, 5);
  const Part partly{from, 0, 64, {{0, 16, 32, 2}}, {}};
  const auto outcome = submitTogether(device, {copyDispatch(device, partly, {to, 0, 64, {}, {{0, 64}}}, 4)}, false);
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault,
                         .op = "Copy",
                         .what = "copy16",
                         .got = "reads buffer 0 + 16, which the dispatch does not declare: threadgroup 0 simdgroup 0 "
                                "lane 1"});
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "Conformance.metal:"});
}

TEST(HostDispatchChecking, FindsUnorderedDispatches) {
  for (const uint64_t order : {0, 1, 2, 3}) {
    const auto device = deviceWith(HostOptions::Checking::full, order);
    const auto a = filled(device, 64, 1), b = filled(device, 64, 2), c = filled(device, 64, 3);
    const auto copy = [&](const auto& from, const auto& to) {
      return copyDispatch(device, {from, 0, 64, {{0, 64}}, {}}, {to, 0, 64, {}, {{0, 64}}}, 4);
    };
    EXPECT_ERROR(submitTogether(device, {copy(a, b), copy(b, c)}, false),
                 {.code = ErrorCode::deviceFault, .op = "Copy", .got = "no barrier lies between the dispatches"});
    EXPECT_ERROR(submitTogether(device, {copy(a, c), copy(b, c)}, false),
                 {.code = ErrorCode::deviceFault, .got = "writes buffer 1 + 0"});
    EXPECT(submitTogether(device, {copy(a, b), copy(b, c)}, true));
    EXPECT(submitTogether(device, {copy(a, b), copy(a, c)}, false));  // two readers need no order
  }
}

TEST(HostDispatchChecking, FindsAccessesOutsideABoundSlice) {
  const auto device = deviceWith(HostOptions::Checking::full);
  const auto from = filled(device, 64, 3), to = filled(device, 128, 5);
  const auto outcome = submitTogether(
      device, {copyDispatch(device, {from, 0, 64, {{0, 64}}, {}}, {to, 16, 48, {}, {{0, 48}}}, 4)}, false);
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "writes 16 bytes outside of buffer 1 + 48"});
  EXPECT_EQ(static_cast<int>(to->contents()[15]), 5);
  EXPECT_EQ(static_cast<int>(to->contents()[16]), 3);
  EXPECT_EQ(static_cast<int>(to->contents()[64]), 5);
}

TEST(HostDispatchChecking, FindsAVectorAcrossTheEnd) {
  const auto device = deviceWith(HostOptions::Checking::full);
  const auto from = filled(device, 64, 3), to = filled(device, 64, 5);
  const auto outcome = submitTogether(
      device, {copyDispatch(device, {from, 0, 56, {{0, 56}}, {}}, {to, 0, 64, {}, {{0, 64}}}, 4)}, false);
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "reads 16 bytes outside of buffer 0 + 48"});
}

TEST(HostDispatchChecking, FindsRacesBetweenOverlappingBindings) {
  const auto device = deviceWith(HostOptions::Checking::full);
  const auto both = filled(device, 128, 3);
  const auto copy = [&](uint64_t from, uint64_t to) {
    return submitTogether(
        device, {copyDispatch(device, {both, from, 64, {{0, 64}}, {}}, {both, to, 64, {}, {{0, 64}}}, 4)}, false);
  };
  EXPECT(copy(0, 0));  // in place: every thread accesses only its own bytes
  EXPECT(copy(0, 64));
  EXPECT_ERROR(copy(0, 16), {.code = ErrorCode::deviceFault, .got = "no simdgroup_barrier(mem_device) between"});
}

TEST(HostDispatchChecking, NamesTheOverrunBinding) {
  const auto device = deviceWith(HostOptions::Checking::full);
  const auto both = filled(device, 128, 3);
  // The source ends where the destination starts.
  const auto outcome = submitTogether(
      device, {copyDispatch(device, {both, 0, 48, {{0, 48}}, {}}, {both, 48, 64, {}, {{0, 64}}}, 4)}, false);
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "reads 16 bytes outside of buffer 0 + 48"});
}

TEST(HostDispatchChecking, GuardsTheNeighborsOfASlice) {
  const auto device = deviceWith(HostOptions::Checking::guarded);
  const auto from = filled(device, 64, 3), to = filled(device, 128, 5);
  const auto outcome = submitTogether(
      device, {copyDispatch(device, {from, 0, 64, {{0, 64}}, {}}, {to, 16, 48, {}, {{0, 48}}}, 4)}, false);
  EXPECT_ERROR(outcome,
               {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 1 + 48 changed", .fix = "the regions"});
}

#if !__has_feature(address_sanitizer)  // AddressSanitizer reports the write itself
TEST(HostDispatchChecking, GuardsTheEndsOfABuffer) {
  const auto device = deviceWith(HostOptions::Checking::guarded);
  const auto from = filled(device, 64, 3), to = filled(device, 48, 5);
  const auto copied = [&](uint64_t declared, uint32_t threads) {
    const Part written{to, 0, 48, {}, {{0, declared}}};
    return submitTogether(device, {copyDispatch(device, {from, 0, 64, {{0, 64}}, {}}, written, threads)}, false);
  };
  EXPECT_ERROR(copied(48, 4), {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 1 + 48 changed"});
  REQUIRE(copied(48, 3));  // a dispatch after it is not blamed
  std::memset(to->contents(), 5, 48);
  EXPECT_ERROR(copied(32, 4), {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 1 + 32 changed"});
  REQUIRE(copied(48, 3));
}
#endif

#if !__has_feature(address_sanitizer)
TEST(HostDispatchChecking, GuardsMemoryBeforeABinding) {
  const auto device = deviceWith(HostOptions::Checking::guarded);
  const auto library = REQUIRE(device->registry().library(
      {.kind = LibrarySource::Kind::text,
       .value = "kernel void before(device uint* data [[buffer(0)]]) { (data - 1)[0] = 7; }\nexport_kernel(before)\n",
       .label = "before"}));
  for (const uint64_t offset : {0, 16}) {  // the buffer's canary, a slice's neighbor
    ReadyDispatch ready;
    ready.dispatch.kernel = {library, "before", {}};
    ready.pipeline = REQUIRE(device->registry().pipeline(ready.dispatch.kernel));
    ready.dispatch.buffers = {{0, filled(device, 64, 5), offset, 16, {}, {{0, 16}}}};
    ready.dispatch.bytesWritten = 0;
    EXPECT_ERROR(submitTogether(device, {std::move(ready)}, false),
                 {.code = ErrorCode::deviceFault, .got = "buffer 0 - 4 changed"});
  }
}
#endif

TEST(HostDispatchChecking, PoisonsUnwrittenOutputs) {
  for (const auto checking : {HostOptions::Checking::guarded, HostOptions::Checking::full}) {
    const auto device = deviceWith(checking);
    const auto from = filled(device, 64, 3), to = filled(device, 64, 5);
    const Part source{from, 0, 64, {{0, 64}}, {}};
    // Three of four threads run: the last 16 bytes are declared but not written.
    REQUIRE(submitTogether(device, {copyDispatch(device, source, {to, 0, 64, {}, {{0, 64}}}, 3)}, false));
    EXPECT_EQ(static_cast<int>(to->contents()[47]), 3);
    EXPECT_EQ(static_cast<int>(to->contents()[48]), 255);
    // A dispatch that reports fewer written bytes than it declares keeps the rest.
    std::memset(to->contents(), 5, 64);
    auto some = copyDispatch(device, source, {to, 0, 64, {}, {{0, 64}}}, 3);
    some.dispatch.bytesWritten = 48;
    REQUIRE(submitTogether(device, {std::move(some)}, false));
    EXPECT_EQ(static_cast<int>(to->contents()[48]), 5);
  }
}

TEST(HostDispatchChecking, ReportsLinesOfTextCompiledAtRunTime) {
  const auto device = deviceWith(HostOptions::Checking::full);
  const auto library = REQUIRE(device->registry().library(
      {.kind = LibrarySource::Kind::text,
       .value = "kernel void shift(device float* data [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
                "  const float next = data[(i + 1) % 32];\n"
                "  data[i] = next;\n"
                "}\n"
                "export_kernel(shift)\n",
       .label = "mine"}));
  std::vector<float> data(32);
  const auto outcome = runOn(
      device, {.function = "shift", .grid = threads({32, 1, 1}, {32, 1, 1}), .buffers = {bytesOf(data)}}, library);
  EXPECT_ERROR(outcome,
               {.code = ErrorCode::deviceFault, .what = "kernel shift of library mine", .got = "mine:2 reads"});
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "mine:3 writes"});
}

TEST(HostDispatchChecking, SumsUseRandomTreesIfPerturbed) {
  // 2^24 + 31 ones in float: each tree rounds differently.
  const std::string text =
      "kernel void total(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {\n"
      "  data[lane] = simd_sum(lane == 0 ? 16777216.0f : 1.0f);\n"
      "}\n"
      "export_kernel(total)\n";
  std::vector<float> results;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto device = hostDevice({.orderSeed = seed, .perturbsResults = true});
    const auto library =
        REQUIRE(device->registry().library({.kind = LibrarySource::Kind::text, .value = text, .label = "total"}));
    std::vector<float> data(32);
    REQUIRE(runOn(device, {.function = "total", .grid = threads({32, 1, 1}, {32, 1, 1}), .buffers = {bytesOf(data)}},
                  library));
    EXPECT(data[0] >= 16777216.0f && data[0] <= 16777248.0f);
    results.push_back(data[0]);
  }
  EXPECT(std::any_of(results.begin(), results.end(), [&](float value) { return value != results[0]; }));
}
