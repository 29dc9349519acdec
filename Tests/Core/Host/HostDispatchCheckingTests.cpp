// Undeclared accesses, unordered dispatches, and guarded devices.
#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

using Checking = HostOptions::Checking;

std::shared_ptr<Device> deviceWith(Checking checking, uint64_t order = 0) {
  return hostDevice({.workers = 2, .orderSeed = order, .checking = checking});
}

// A part of a buffer that a dispatch binds, and what it declares to access there: by default all.
struct Slice {
  std::shared_ptr<Buffer> buffer;
  uint64_t offset = 0, length = 64;
  std::vector<Region> declared = {};

  std::vector<Region> regions() const { return declared.empty() ? std::vector<Region>{{0, length}} : declared; }
};

// Kernel copy16 copies 16 bytes per thread from buffer 0 to buffer 1.
ReadyDispatch copyDispatch(const std::shared_ptr<Device>& device, const Slice& from, const Slice& to,
                           uint32_t count = 4) {
  ReadyDispatch ready;
  ready.dispatch.kernel = {conformanceLibrary(), "copy16", {}};
  ready.dispatch.kind = "Copy";
  ready.pipeline = REQUIRE(device->registry().pipeline(ready.dispatch.kernel));
  ready.dispatch.grid = threads(count);
  ready.threadgroup = ready.dispatch.grid.threadgroup;
  ready.dispatch.buffers = {{0, from.buffer, from.offset, from.length, from.regions(), {}},
                            {1, to.buffer, to.offset, to.length, {}, to.regions()}};
  return ready;
}

Result<void> copy(const std::shared_ptr<Device>& device, const Slice& from, const Slice& to, uint32_t count = 4) {
  return submit(device, {copyDispatch(device, from, to, count)});
}

std::shared_ptr<Buffer> filled(const std::shared_ptr<Device>& device, uint64_t bytes, unsigned char value) {
  auto buffer = REQUIRE(device->makeBuffer(bytes));
  std::memset(buffer->contents(), value, bytes);
  return buffer;
}

int byteAt(const std::shared_ptr<Buffer>& buffer, size_t at) {
  return static_cast<int>(buffer->contents()[at]);
}

}  // namespace

TEST(HostDispatchChecking, FindsAnUndeclaredWrite) {
  for (const auto checking : {Checking::guarded, Checking::full}) {
    const auto device = deviceWith(checking);
    const auto from = filled(device, 64, 3), to = filled(device, 64, 5);
    REQUIRE(copy(device, {from}, {to}));
    std::memset(to->contents(), 5, 64);
    EXPECT_ERROR(copy(device, {from}, {to, 0, 64, {{0, 48}}}),
                 {.code = ErrorCode::deviceFault, .op = "Copy", .what = "copy16", .got = "buffer 1 + 48"});
  }
}

TEST(HostDispatchChecking, FindsReadsOfUndefinedMemory) {
  const auto device = deviceWith(Checking::full);
  const auto from = REQUIRE(device->makeUndefinedBuffer(64)), to = filled(device, 64, 5);
  EXPECT_ERROR(copy(device, {from}, {to}), {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 0 + 0"});
  // What the processor writes is defined.
  const std::vector<std::byte> bytes(48, std::byte{7});
  REQUIRE(from->write(0, bytes));
  EXPECT_ERROR(copy(device, {from}, {to}), {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 0 + 48"});
  REQUIRE(from->write(48, std::span(bytes).first(16)));
  REQUIRE(copy(device, {from}, {to}));
  // And so is what a kernel writes.
  const auto other = REQUIRE(device->makeUndefinedBuffer(64));
  REQUIRE(copy(device, {to}, {other}));
  REQUIRE(copy(device, {other}, {to}));
  EXPECT_EQ(byteAt(to, 63), 7);
}

TEST(HostDispatchChecking, FindsAnUndeclaredRead) {
  const auto device = deviceWith(Checking::full);
  const auto outcome = copy(device, {filled(device, 64, 3), 0, 64, {{0, 16, 32, 2}}}, {filled(device, 64, 5)});
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault,
                         .op = "Copy",
                         .what = "copy16",
                         .got = "reads buffer 0 + 16, which the dispatch does not declare: threadgroup 0 simdgroup 0 "
                                "lane 1"});
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "Conformance.metal:"});
}

TEST(HostDispatchChecking, FindsUnorderedDispatches) {
  for (const uint64_t order : {0, 1, 2, 3}) {
    const auto device = deviceWith(Checking::full, order);
    const auto a = filled(device, 64, 1), b = filled(device, 64, 2), c = filled(device, 64, 3);
    const auto both = [&](const Slice& from, const Slice& to, const Slice& nextFrom, const Slice& nextTo,
                          bool ordered) {
      return submit(device, {copyDispatch(device, from, to), copyDispatch(device, nextFrom, nextTo)}, ordered);
    };
    EXPECT_ERROR(both({a}, {b}, {b}, {c}, false),
                 {.code = ErrorCode::deviceFault, .op = "Copy", .got = "no barrier lies between the dispatches"});
    EXPECT_ERROR(both({a}, {c}, {b}, {c}, false), {.code = ErrorCode::deviceFault, .got = "writes buffer 1 + 0"});
    EXPECT(both({a}, {b}, {b}, {c}, true));
    EXPECT(both({a}, {b}, {a}, {c}, false));  // two readers need no order
  }
}

TEST(HostDispatchChecking, FindsAccessesOutsideABoundSlice) {
  const auto device = deviceWith(Checking::full);
  const auto from = filled(device, 64, 3), to = filled(device, 128, 5);
  EXPECT_ERROR(copy(device, {from}, {to, 16, 48}),
               {.code = ErrorCode::deviceFault, .got = "writes 16 bytes outside of buffer 1 + 48"});
  EXPECT(byteAt(to, 15) == 5 && byteAt(to, 16) == 3 && byteAt(to, 64) == 5);
  // A vector across the end; and a source that ends where the destination starts.
  const ExpectedError read{.code = ErrorCode::deviceFault, .got = "reads 16 bytes outside of buffer 0 + 48"};
  EXPECT_ERROR(copy(device, {from, 0, 56}, {to}), (read));
  EXPECT_ERROR(copy(device, {to, 0, 48}, {to, 48, 64}), (read));
}

TEST(HostDispatchChecking, FindsRacesBetweenOverlappingBindings) {
  const auto device = deviceWith(Checking::full);
  const auto both = filled(device, 128, 3);
  EXPECT(copy(device, {both}, {both}));  // in place: every thread accesses only its own bytes
  EXPECT(copy(device, {both}, {both, 64}));
  EXPECT_ERROR(copy(device, {both}, {both, 16}),
               {.code = ErrorCode::deviceFault, .got = "no simdgroup_barrier(mem_device) between"});
}

TEST(HostDispatchChecking, GuardsTheNeighborsOfASlice) {
  const auto device = deviceWith(Checking::guarded);
  EXPECT_ERROR(copy(device, {filled(device, 64, 3)}, {filled(device, 128, 5), 16, 48}),
               {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 1 + 48 changed", .fix = "the regions"});
}

#if !__has_feature(address_sanitizer)  // AddressSanitizer reports the write itself
TEST(HostDispatchChecking, GuardsTheEndsOfABuffer) {
  const auto device = deviceWith(Checking::guarded);
  const auto from = filled(device, 64, 3), to = filled(device, 48, 5);
  const auto copied = [&](uint64_t declared, uint32_t count) {
    return copy(device, {from}, {to, 0, 48, {{0, declared}}}, count);
  };
  EXPECT_ERROR(copied(48, 4), {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 1 + 48 changed"});
  REQUIRE(copied(48, 3));  // a dispatch after it is not blamed
  std::memset(to->contents(), 5, 48);
  EXPECT_ERROR(copied(32, 4), {.code = ErrorCode::deviceFault, .op = "Copy", .got = "buffer 1 + 32 changed"});
  REQUIRE(copied(48, 3));
}

TEST(HostDispatchChecking, GuardsMemoryBeforeABinding) {
  const auto device = deviceWith(Checking::guarded);
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
    EXPECT_ERROR(submit(device, {std::move(ready)}), {.code = ErrorCode::deviceFault, .got = "buffer 0 - 4 changed"});
  }
}
#endif

TEST(HostDispatchChecking, PoisonsUnwrittenOutputs) {
  for (const auto checking : {Checking::guarded, Checking::full}) {
    const auto device = deviceWith(checking);
    const auto from = filled(device, 64, 3), to = filled(device, 64, 5);
    // Three of four threads run: the last 16 bytes are declared but not written.
    REQUIRE(copy(device, {from}, {to}, 3));
    EXPECT(byteAt(to, 47) == 3 && byteAt(to, 48) == 255);
    // A dispatch that reports fewer written bytes than it declares keeps the rest.
    std::memset(to->contents(), 5, 64);
    auto some = copyDispatch(device, {from}, {to}, 3);
    some.dispatch.bytesWritten = 48;
    REQUIRE(submit(device, {std::move(some)}));
    EXPECT_EQ(byteAt(to, 48), 5);
  }
}

TEST(HostDispatchChecking, SumsUseRandomTreesIfPerturbed) {
  // 2^24 + 31 ones in float: each tree rounds differently.
  const auto library = REQUIRE(
      hostDevice({.perturbsResults = true})
          ->registry()
          .library(
              {.kind = LibrarySource::Kind::text,
               .value =
                   "kernel void total(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {\n"
                   "  data[lane] = simd_sum(lane == 0 ? 16777216.0f : 1.0f);\n}\nexport_kernel(total)\n",
               .label = "total"}));
  std::vector<float> results;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto device = hostDevice({.orderSeed = seed, .perturbsResults = true});
    std::vector<float> data(32);
    REQUIRE(runOn(device, {.function = "total", .grid = threads(32), .buffers = {bytesOf(data)}}, library));
    EXPECT(data[0] >= 16777216.0f && data[0] <= 16777248.0f);
    results.push_back(data[0]);
  }
  EXPECT(std::any_of(results.begin(), results.end(), [&](float value) { return value != results[0]; }));
}
