// Results of kernels in Conformance.metal and ConformanceTypes.metal of Tests/Shaders, compared with values computed by
// hand or by the C library.
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
    REQUIRE(runOn(device, {.function = "simdgroupFunctions", .grid = threads(64), .buffers = {bytesOf(out)}}));
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
      REQUIRE(runOn(
          device,
          {.function = "returnedLanes", .grid = threads(32), .buffers = {bytesOf(out)}, .constants = {{2, limit}}}));
      expectAll(out, expected, "lane");

      std::fill(out.begin(), out.end(), -1.0f);
      std::fill(expected.begin(), expected.end(), -1.0f);
      for (uint32_t lane = limit; lane < 32; ++lane) expected[lane] = static_cast<float>(32 - limit + 100 * limit);
      REQUIRE(runOn(device, {.function = "returnedFirstLanes",
                             .grid = threads(32),
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
                           .grid = threads(kThreads, 64),
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

TEST(HostConformance, OptionalArguments) {
  onEveryHost([](const auto& device) {
    std::vector<float> out(70, 0), values(70), scale = {2};
    std::iota(values.begin(), values.end(), 0.0f);
    REQUIRE(runOn(device, {.function = "optionalArguments",
                           .grid = threads(70, 32),
                           .buffers = {bytesOf(out), {}, bytesOf(values), {}, {}, bytesOf(scale)},
                           .constants = {{0, true}},
                           .threadgroupMemory = {{1, 128}}}));
    for (int i = 0; i < 70; ++i) EXPECT_EQ(out[i], static_cast<float>(2 * i));
    REQUIRE(runOn(device, {.function = "optionalArguments",
                           .grid = threads(70, 32),
                           .buffers = {bytesOf(out)},
                           .constants = {{0, false}},
                           .threadgroupMemory = {{1, 128}}}));
    for (int i = 0; i < 70; ++i) EXPECT_EQ(out[i], -1.0f);
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
  std::vector<uint32_t> row;
  for (const Size3& each : {at, inGroup, group, size, full, test.groups, test.threadsOfGrid}) {
    row.insert(row.end(), each.begin(), each.end());
  }
  for (const uint32_t each : {linear, linear % 32, linear / 32, (total + 31) / 32, 32u, counted ? lanes : 0}) {
    row.push_back(each);
  }
  return row;
}

}  // namespace

TEST(HostConformance, EdgeGroupsInOneToThreeDimensions) {
  const GridCase cases[] = {
      {threads(1, 32), {1, 1, 1}, {1, 1, 1}},
      {threads(70, 32), {70, 1, 1}, {3, 1, 1}},
      {threads(64, 32), {64, 1, 1}, {2, 1, 1}},
      {threads({13, 7, 1}, {8, 4, 1}), {13, 7, 1}, {2, 2, 1}},
      {threads({9, 5, 3}, {4, 3, 2}), {9, 5, 3}, {3, 2, 2}},
      {threads({5, 2, 7}, {1, 1, 64}), {5, 2, 7}, {5, 2, 1}},
      {{Grid::Unit::threadgroups, {2, 3, 2}, {5, 2, 3}}, {10, 6, 6}, {2, 3, 2}},
  };
  onEveryHost([&](const auto& device) {
    for (const GridCase& test : cases) {
      for (const bool counted : {false, true}) {  // without and with a collective
        const Size3 n = test.threadsOfGrid;
        std::vector<uint32_t> out(size_t(n[0]) * n[1] * n[2] * 27);
        REQUIRE(runOn(
            device,
            {.function = "positions", .grid = test.grid, .buffers = {bytesOf(out)}, .constants = {{0, counted}}}));
        for (uint32_t i = 0; i < n[0] * n[1] * n[2]; ++i) {
          const Size3 at = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
          const std::vector<uint32_t> row(out.begin() + i * 27, out.begin() + i * 27 + 27);
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
  REQUIRE(runOn(device, {.function = "copy16", .grid = threads(0, 32), .buffers = {bytesOf(from), bytesOf(to)}}));
  expectAll(to, {2, 2, 2, 2}, "element");
}

// ---- Types and functions ----

namespace {

// A kernel, what it reads from buffers 0, 1, … and what it writes to the next one.
template <typename T>
struct Values {
  const char* function;
  std::vector<std::vector<T>> in;
  std::vector<T> expected;
  Grid grid = threads(1);
  std::vector<FunctionConstant> constants = {};
  std::vector<ThreadgroupMemory> threadgroupMemory = {};
};
std::vector<uint32_t> upTo(uint32_t end) {
  std::vector<uint32_t> numbers(end);
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}
const Values<float> kFloatRows[] = {
    {"smallFloats",
     {{2048, 256, 1, 1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 65520, 0x1p-24f}},
     {2048,     256,        2048,        4096,       256,         1,           0x1.008p+0f,  1,     0x1.04p+0f,
      INFINITY, 0x1p-24f,   0x1.554p-2f, 0x1.56p-2f, 0x1.478p-7f, 2047,        2048.25f,     15360, 16256,
      1,        0x1.6ap+0f, 1,           2049,       1,           0x1.004p+0f, -0x1.004p+0f, 1}},
    {"vectors", {{1, 2, 3, 4}}, {14,  321,     2332, 3,  9,          753, -27, 64, 1, -4,
                                 204, 6081216, 1,    18, 1073741824, 12,  5,   1,  9, 6}},
    {"exactFunctions",
     {{0.75f, -2.5f}},
     {-3, -2,    -2,    -3,      -2, 0.5f,           2.5f, -0.25f, -0.75f, -2.5f, 0.75f, 3.25f, 6,  -0.875f,
      -1, 0,     0.75f, -0.875f, 0,  0.84375f,       -1,   -2.5f,  9,      0.75f, 2,     1,     24, 0,
      1,  0.75f, 2,     3,       9,  0x1.1e377ap+1f, -2,   1,      0.8f,   -2,    1}},
    {"scaled_float_3", {{1, 2.5f}}, {3, 7.5f}, threads(2)},
    // Pipelines of one kernel with different constants, of every type.
    {"functionConstants", {}, {0, -7, 9, 0.125f}, threads(1), {{0, false}, {1, -7}, {2, 9u}, {3, 0.125f}}},
    {"functionConstants", {}, {1, -7, 9, 0.125f}, threads(1), {{0, true}, {1, -7}, {2, 9u}, {3, 0.125f}}},
};
const Values<uint32_t> kWordRows[] = {
    {"integerFunctions",
     {{0x00f0a001, static_cast<uint32_t>(-5)}},
     {7,          8,   4, 0x80050f00, 0xf0a00100, 0x0a, 0x00f0aff1, 0xf0, ~0u, 5, 12,
      0xff0f5ffe, 255, 0, 0xffff8000, 7,          8,    0xfffffffb, 79,   3,   17}},
    {"scaled_int_5", {{static_cast<uint32_t>(-4), 6}}, {static_cast<uint32_t>(-20), 30}, threads(2)},
    // Indices that are read through `constant`.
    {"constantReads", {{1, 2}, {50, 3, 51, 5, 52, 0, 53, 7}, upTo(8)}, {5 + 3, 0 + 7, 50 + 3, 7 + 7}, threads(4)},
    // The largest threadgroup, and a smaller one at the edge.
    {"threadgroupTree",
     {upTo(2500)},
     {1023u * 1024 / 2, (1024u + 2047) * 1024 / 2, (2048u + 2499) * 452 / 2},
     threads(2500, 1024),
     {},
     {{0, 4096}}},
};

template <typename T>
void expectValues(const std::shared_ptr<Device>& device, const Values<T>& row) {
  std::vector<std::vector<T>> buffers = row.in;
  buffers.emplace_back(row.expected.size(), T(-1));
  HostRun run{.function = row.function,
              .grid = row.grid,
              .constants = row.constants,
              .threadgroupMemory = row.threadgroupMemory};
  for (std::vector<T>& buffer : buffers) run.buffers.push_back(bytesOf(buffer));
  REQUIRE(runOn(device, run));
  expectAll(buffers.back(), row.expected, fmt::format("{} value", row.function));
}

}  // namespace

TEST(HostConformance, KernelsGiveExactValues) {
  onEveryHost([](const auto& device) {
    for (const auto& row : kFloatRows) expectValues(device, row);
    for (const auto& row : kWordRows) expectValues(device, row);
  });
}

TEST(HostConformance, PackedVectorsHaveNoPadding) {
  struct Record {
    float position[3];
    float weight;
    _Float16 pair[2];
    uint32_t indices[2];
  };
  static_assert(sizeof(Record) == 28);
  onEveryHost([](const auto& device) {
    std::vector<Record> records;
    for (int i = 0; i < 5; ++i) {
      const float x = static_cast<float>(i);
      records.push_back({{x, x + 1, x + 2}, 2, {_Float16(x), _Float16(0.5f)}, {uint32_t(i), 3}});
    }
    std::vector<float> out(15, -1), sums(5, -1);
    REQUIRE(runOn(device, {.function = "packedVectors",
                           .grid = threads(5, 4),
                           .buffers = {bytesOf(records), bytesOf(out), bytesOf(sums)}}));
    for (int i = 0; i < 5; ++i) {
      const float x = static_cast<float>(i);
      EXPECT_EQ(out[i * 3], 2 * x);
      EXPECT_EQ(out[i * 3 + 2], 2 * x + 4);
      EXPECT_EQ(sums[i], x + 0.5f + 10 * x + 3 + (x + 1) + (x + 3));
    }
  });
}

TEST(HostConformance, MathFunctions) {
  onEveryHost([](const auto& device) {
    const double x = 0.75, y = -2.5, pi = 3.14159265358979323846;
    std::vector<float> in = {0.75f, -2.5f}, out(30, -1);
    REQUIRE(runOn(device, {.function = "mathFunctions", .grid = threads(1), .buffers = {bytesOf(in), bytesOf(out)}}));
    const std::vector<double> expected = {
        std::exp(x),      std::exp2(x), std::pow(10, x), std::log(x),   std::log2(x),     std::log10(x),
        std::sin(x),      std::cos(x),  std::tan(x),     std::asin(x),  std::acos(x),     std::atan(x),
        std::atan2(x, y), std::sinh(x), std::cosh(x),    std::tanh(x),  std::pow(x, y),   std::sqrt(x),
        1 / std::sqrt(x), std::exp(y),  std::exp2(y),    std::sin(y),   std::sin(pi * x), std::cos(pi * x),
        std::sin(x),      std::cos(x),  std::exp(y),     std::asinh(x), std::acosh(-y),   std::atanh(x)};
    for (size_t i = 0; i < expected.size(); ++i) {
      const Context context(fmt::format("value {}: got {}, expected {}", i, out[i], expected[i]));
      EXPECT(std::abs(out[i] - expected[i]) <= 1e-6 * std::abs(expected[i]));
    }
  });
}
