// Results of kernels in Tests/Shaders/Conformance.metal, compared with values computed by hand or by the C library.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

std::vector<float> simdgroupRow(uint32_t lane) {
  const float x = static_cast<float>(lane + 1);
  const float quad = static_cast<float>(lane / 4 * 4);
  const auto value = [](uint32_t of) { return static_cast<float>(of + 1); };
  const float swapped = value(lane ^ 1);
  return {528,
          32,
          1,
          6,
          value(31 - lane),
          value(lane ^ 5),
          lane < 31 ? x + 1 : 0,
          lane > 0 ? x - 1 : 0,
          value((lane + 3) % 32),
          value((lane + 29) % 32),
          8,
          1,
          x * (x + 1) / 2,
          x * (x - 1) / 2,
          1,
          1,
          1,
          1,
          32,
          12,
          4 * quad + 10,
          quad + 4,
          quad + 1,
          quad + static_cast<float>(4 - lane % 4),
          swapped,
          quad + 3,
          32,
          15,
          5 * swapped,
          496,
          lane == 0 ? 1.0f : 0.0f,
          static_cast<float>(2 * lane)};
}

}  // namespace

TEST(HostConformance, SimdgroupAndQuadFunctions) {
  onEveryHost([](const auto& device) {
    // Two simdgroups in each of two threadgroups do not mix.
    std::vector<float> out(64 * 32, -1);
    REQUIRE(
        runOn(device,
              {.function = "simdgroupFunctions", .grid = threads({64, 1, 1}, {64, 1, 1}), .buffers = {bytesOf(out)}}));
    for (uint32_t thread = 0; thread < 64; ++thread) {
      const std::vector<float> row(out.begin() + thread * 32, out.begin() + thread * 32 + 32);
      expectAll(row, simdgroupRow(thread % 32), fmt::format("thread {} value", thread));
    }
  });
}

TEST(HostConformance, ReturnedLanesAreInactive) {
  onEveryHost([](const auto& device) {
    for (const uint32_t limit : {1u, 7u, 31u, 32u}) {
      std::vector<float> out(32, -1), expected(32, -1);
      std::fill_n(expected.begin(), limit, static_cast<float>(limit));
      REQUIRE(runOn(device, {.function = "returnedLanes",
                             .grid = threads({32, 1, 1}, {32, 1, 1}),
                             .buffers = {bytesOf(out)},
                             .constants = {{2, limit}}}));
      expectAll(out, expected, "lane");

      std::fill(out.begin(), out.end(), -1.0f);
      std::fill(expected.begin(), expected.end(), -1.0f);
      for (uint32_t lane = limit; lane < 32; ++lane) expected[lane] = static_cast<float>(32 - limit + 100 * limit);
      REQUIRE(runOn(device, {.function = "returnedFirstLanes",
                             .grid = threads({32, 1, 1}, {32, 1, 1}),
                             .buffers = {bytesOf(out)},
                             .constants = {{2, limit}}}));
      expectAll(out, expected, "lane");
    }
  });
}

TEST(HostConformance, Atomics) {
  onEveryHost([](const auto& device) {
    constexpr uint32_t kThreads = 500;  // the last threadgroup is smaller
    std::vector<uint32_t> unsigneds = {0, 1000, 0, 9999, 0, 0xff, 0, 0, 1, 42}, seen(kThreads, 0);
    std::vector<int32_t> signeds = {0, -5000};
    std::vector<float> floats = {1};
    REQUIRE(runOn(device, {.function = "atomics",
                           .grid = threads({kThreads, 1, 1}, {64, 1, 1}),
                           .buffers = {bytesOf(unsigneds), bytesOf(signeds), bytesOf(floats), bytesOf(seen)}}));
    uint32_t exclusiveOr = 0;
    for (uint32_t i = 0; i < kThreads; ++i) exclusiveOr ^= i;
    expectAll(unsigneds, {kThreads, 1000 - kThreads, kThreads - 1, 0, ~0u, 0xf0, exclusiveOr, kThreads, 1u << 16, 77},
              "unsigned");
    expectAll(signeds, {-499, -501}, "signed");
    EXPECT_EQ(floats[0], 1 + 0.5f * kThreads);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1u), std::ptrdiff_t(kThreads));
  });
}

TEST(HostConformance, ThreadgroupAndDeviceMemoryBehindBarriers) {
  onEveryHost([](const auto& device) {
    constexpr uint32_t kGroups = 5;
    std::vector<uint8_t> bytes(kGroups * 64);
    std::vector<uint32_t> count(1), tables((kGroups + 1) * 12);
    std::vector<float> scratch(kGroups * 64);
    std::iota(tables.begin(), tables.begin() + 12, 100u);
    REQUIRE(runOn(device, {.function = "exchanges",
                           .grid = {Grid::Unit::threadgroups, {kGroups, 1, 1}, {64, 1, 1}},
                           .buffers = {bytesOf(bytes), bytesOf(count), bytesOf(tables), bytesOf(scratch)},
                           .threadgroupMemory = {{0, 64}, {2, 256}}}));
    EXPECT_EQ(count[0], kGroups * 64);
    const uint32_t weights[] = {1, 2, 4, 8};
    for (uint32_t i = 0; i < bytes.size(); ++i) {
      const uint32_t tid = i % 64, mirror = 63 - tid;
      const uint32_t raised = mirror + (mirror % 4 == 0);
      EXPECT_EQ(bytes[i], uint8_t(raised + (tid ^ 1) + weights[mirror % 4] + mirror + mirror * 2));
    }
    for (uint32_t i = 0; i < tables.size(); ++i) EXPECT_EQ(tables[i], 100 + i % 12);
  });
}

TEST(HostConformance, LargestThreadgroupAndItsEdge) {
  onEveryHost([](const auto& device) {
    std::vector<uint32_t> in(2500), out(3);
    std::iota(in.begin(), in.end(), 0u);
    REQUIRE(runOn(device, {.function = "threadgroupTree",
                           .grid = threads({2500, 1, 1}, {1024, 1, 1}),
                           .buffers = {bytesOf(in), bytesOf(out)},
                           .threadgroupMemory = {{0, 4096}}}));
    expectAll(out, {1023u * 1024 / 2, (1024u + 2047) * 1024 / 2, (2048u + 2499) * 452 / 2}, "threadgroup");
  });
}

TEST(HostConformance, FunctionConstantsOfEveryType) {
  onEveryHost([](const auto& device) {
    // Pipelines of one kernel with different constants.
    for (const bool flag : {false, true}) {
      std::vector<float> out(4, -1);
      REQUIRE(runOn(device, {.function = "functionConstants",
                             .grid = threads({1, 1, 1}, {1, 1, 1}),
                             .buffers = {bytesOf(out)},
                             .constants = {{0, flag}, {1, -7}, {2, 9u}, {3, 0.125f}}}));
      expectAll(out, {flag ? 1.0f : 0.0f, -7, 9, 0.125f}, "constant");
    }
  });
}

TEST(HostConformance, IndirectReadsThroughConstant) {
  onEveryHost([](const auto& device) {
    std::vector<uint32_t> params = {1, 2}, table = {50, 3, 51, 5, 52, 0, 53, 7}, out(4), wide(8);
    std::iota(wide.begin(), wide.end(), 0u);
    REQUIRE(runOn(device, {.function = "constantReads",
                           .grid = threads({4, 1, 1}, {4, 1, 1}),
                           .buffers = {bytesOf(params), bytesOf(table), bytesOf(wide), bytesOf(out)}}));
    expectAll(out, {5 + 3, 0 + 7, 50 + 3, 7 + 7}, "thread");
  });
}

TEST(HostConformance, OptionalArguments) {
  onEveryHost([](const auto& device) {
    std::vector<float> out(70, 0), values(70), scale = {2};
    std::iota(values.begin(), values.end(), 0.0f);
    REQUIRE(runOn(device, {.function = "optionalArguments",
                           .grid = threads({70, 1, 1}, {32, 1, 1}),
                           .buffers = {bytesOf(out), {}, bytesOf(values), {}, {}, bytesOf(scale)},
                           .constants = {{0, true}},
                           .threadgroupMemory = {{1, 128}}}));
    for (int i = 0; i < 70; ++i) EXPECT_EQ(out[i], static_cast<float>(2 * i));
    REQUIRE(runOn(device, {.function = "optionalArguments",
                           .grid = threads({70, 1, 1}, {32, 1, 1}),
                           .buffers = {bytesOf(out)},
                           .constants = {{0, false}},
                           .threadgroupMemory = {{1, 128}}}));
    for (int i = 0; i < 70; ++i) EXPECT_EQ(out[i], -1.0f);
  });
}

TEST(HostConformance, TemplateInstances) {
  onEveryHost([](const auto& device) {
    std::vector<float> in = {1, 2.5f}, out(2);
    REQUIRE(runOn(
        device,
        {.function = "scaled_float_3", .grid = threads({2, 1, 1}, {2, 1, 1}), .buffers = {bytesOf(in), bytesOf(out)}}));
    expectAll(out, {3, 7.5f}, "thread");
    std::vector<int32_t> whole = {-4, 6}, scaled(2);
    REQUIRE(runOn(device, {.function = "scaled_int_5",
                           .grid = threads({2, 1, 1}, {2, 1, 1}),
                           .buffers = {bytesOf(whole), bytesOf(scaled)}}));
    expectAll(scaled, {-20, 30}, "thread");
  });
}

namespace {

struct GridCase {
  Grid grid;
  Size3 threadsOfGrid, groups;
};

std::vector<uint32_t> positionRow(const GridCase& test, Size3 at, bool counted) {
  const Size3 full = test.grid.threadgroup;
  Size3 group, inGroup, size;
  for (int axis = 0; axis < 3; ++axis) {
    group[axis] = at[axis] / full[axis];
    inGroup[axis] = at[axis] % full[axis];
    size[axis] = std::min(full[axis], test.threadsOfGrid[axis] - group[axis] * full[axis]);
  }
  const uint32_t linear = (inGroup[2] * size[1] + inGroup[1]) * size[0] + inGroup[0];
  const uint32_t total = size[0] * size[1] * size[2];
  const uint32_t lanes = std::min(32u, total - linear / 32 * 32);
  const auto joined = [](Size3 s) { return s[0] * 10000 + s[1] * 100 + s[2]; };
  return {at[0],
          at[1],
          at[2],
          inGroup[0],
          inGroup[1],
          inGroup[2],
          linear,
          linear % 32,
          linear / 32,
          (total + 31) / 32,
          32,
          group[0],
          group[1],
          group[2],
          size[0],
          size[1],
          size[2],
          full[0],
          full[1],
          full[2],
          joined(test.groups),
          joined(test.threadsOfGrid),
          counted ? lanes : 0,
          1};
}

}  // namespace

TEST(HostConformance, EdgeGroupsInOneToThreeDimensions) {
  const GridCase cases[] = {
      {threads({1, 1, 1}, {32, 1, 1}), {1, 1, 1}, {1, 1, 1}},
      {threads({70, 1, 1}, {32, 1, 1}), {70, 1, 1}, {3, 1, 1}},
      {threads({64, 1, 1}, {32, 1, 1}), {64, 1, 1}, {2, 1, 1}},
      {threads({13, 7, 1}, {8, 4, 1}), {13, 7, 1}, {2, 2, 1}},
      {threads({9, 5, 3}, {4, 3, 2}), {9, 5, 3}, {3, 2, 2}},
      {threads({5, 2, 7}, {1, 1, 64}), {5, 2, 7}, {5, 2, 1}},
      {{Grid::Unit::threadgroups, {2, 3, 2}, {5, 2, 3}}, {10, 6, 6}, {2, 3, 2}},
  };
  onEveryHost([&](const auto& device) {
    for (const GridCase& test : cases) {
      for (const bool counted : {false, true}) {  // without and with a collective
        const Size3 n = test.threadsOfGrid;
        std::vector<uint32_t> out(size_t(n[0]) * n[1] * n[2] * 24);
        REQUIRE(runOn(
            device,
            {.function = "positions", .grid = test.grid, .buffers = {bytesOf(out)}, .constants = {{0, counted}}}));
        for (uint32_t i = 0; i < n[0] * n[1] * n[2]; ++i) {
          const Size3 at = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
          const std::vector<uint32_t> row(out.begin() + i * 24, out.begin() + i * 24 + 24);
          expectAll(row, positionRow(test, at, counted),
                    fmt::format("grid {} x {} x {}, thread {}, value", n[0], n[1], n[2], i));
        }
      }
    }
  });
}

TEST(HostConformance, EmptyGridRunsNothing) {
  std::vector<uint32_t> from(4, 1), to(4, 2);
  const auto device = hostDevice({});
  REQUIRE(runOn(
      device, {.function = "copy16", .grid = threads({0, 1, 1}, {32, 1, 1}), .buffers = {bytesOf(from), bytesOf(to)}}));
  expectAll(to, {2, 2, 2, 2}, "element");
}
