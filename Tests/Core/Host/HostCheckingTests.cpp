// Full checking finds each seeded fault of Tests/Shaders/Faults.metal in every order of lanes, reports its lines, and
// finds nothing in correct kernels.
#include <filesystem>
#include <fstream>
#include <set>

#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

constexpr uint64_t kOrders[] = {0, 1, 2, 3, 4, 5, 6, 7};

std::shared_ptr<Device> checkedDevice(uint64_t order, bool allowsSameValue = false) {
  return hostDevice(
      {.workers = 2, .orderSeed = order, .checking = HostOptions::Checking::full, .allowsSameValue = allowsSameValue});
}

// "Faults.metal:12", the line of a kernel that contains the snippet.
std::string lineOf(std::string_view kernel, std::string_view snippet) {
  const auto path = std::filesystem::path(__FILE__).parent_path() / "../../Shaders/Faults.metal";
  std::ifstream file(path);
  bool inside = false;
  int number = 1;
  for (std::string line; std::getline(file, line); ++number) {
    inside |= line.starts_with("kernel") && line.find(kernel) != std::string::npos;
    if (inside && line.find(snippet) != std::string::npos) return fmt::format("Faults.metal:{}", number);
  }
  fail(__FILE__, __LINE__, fmt::format("{} has no line with {}", kernel, snippet));
  return {};
}

struct Extent {
  uint32_t threadgroups, threads;
  size_t elements;  // floats of buffer 0
};

struct SeededFault {
  const char* function;
  Extent extent;
  std::vector<std::string> expected;    // parts of the report; "<snippet>" stands for the kernel's line with it
  std::vector<uint32_t> constant = {};  // buffer 1
  std::vector<ThreadgroupMemory> threadgroupMemory = {};
  bool dependsOnOrder = false;  // which of several findings come first
};

const SeededFault kSeededFaults[] = {
    {"faultMissingBarrier",
     {1, 64, 64},
     {"<scratch[tid] = > writes threadgroup memory 0 + 0, <data[tid] = > reads it",
      "no threadgroup_barrier(mem_threadgroup) between threadgroup 0 simdgroup 0 lane 0 and"}},
    {"faultMissingSimdgroupBarrier",
     {1, 32, 32},
     {"<scratch[lane] = > writes threadgroup memory 0 + 0, ",
      "no simdgroup_barrier(mem_threadgroup) between threadgroup 0 simdgroup 0 lane 0 and lane 31"}},
    {"faultLockStep", {1, 32, 32}, {"no simdgroup_barrier(mem_threadgroup) between"}},
    {"faultNarrowBarrier", {1, 64, 64}, {"no threadgroup_barrier(mem_threadgroup) between"}},
    {"faultNoFlags", {1, 64, 64}, {"no threadgroup_barrier(mem_threadgroup) between"}},
    {"faultWrongFlags",
     {1, 64, 128},
     {"buffer 0 + 0, ",
      "no threadgroup_barrier(mem_device) between threadgroup 0 simdgroup 0 lane 0 and "
      "threadgroup 0 simdgroup 1 lane 31"}},
    {"faultOutOfBounds", {1, 32, 32}, {"<data[> writes 4 bytes outside of buffer 0 + 128: ", "lane 31"}},
    {"faultReadsPastBuffer", {1, 64, 64}, {"<data[tid + 1]> reads 4 bytes outside of buffer 0 + 256: "}},
    {"faultFarIndex", {1, 32, 32}, {"writes 4 bytes outside of buffer 0 + 17179869180: ", "lane 0"}},
    {"faultReadsPastArray", {1, 32, 32}, {"<from[lane + 1]> reads 4 bytes outside of threadgroup memory 0 + 128"}},
    {"faultWritesPastArray",
     {1, 32, 32},
     {"<scratch[lane + 1]> writes 4 bytes outside of threadgroup memory 0 + 128: threadgroup 0 simdgroup 0 lane 31"},
     {},
     {{0, 128}}},
    {"faultPrivateArray", {1, 32, 32}, {"index 4 is outside of 'float[4]'"}, {6}},
    {"faultUnwritten",
     {1, 32, 32},
     {"<data[lane] = > reads threadgroup memory 0 + 20, which is uninitialized: threadgroup 0 simdgroup 0 lane 5"}},
    {"faultTwoWriters", {1, 32, 32}, {"buffer 0 + 0, ", " writes it; no simdgroup_barrier(mem_device)"}},
    {"faultSameValue", {2, 64, 4}, {"writes the same value"}},
    {"faultMisalignedVector", {1, 4, 32}, {"<rows[tid]>: ", "needs an alignment of 16 bytes"}},
    {"faultShuffleFromReturnedLane",
     {1, 32, 32},
     {"<simd_shuffle_xor>: lane 6 takes the value of lane 7, which does not take part"}},
    {"faultIndexOverflow", {1, 3, 64}, {"<row * rowElements>: a multiplication overflows"}, {1u << 31}},
    {"faultSignedOverflow", {1, 2, 64}, {"<start + >: an addition overflows 'int'"}, {0x7fffffffu}},
    {"faultTwoThreadgroups", {2, 32, 64}, {"buffer 0 + 124, "}, {}, {}, true},
    {"faultReadsOtherThreadgroup", {2, 32, 128}, {"nothing orders threadgroup "}, {}, {}, true},
    {"faultMixedAtomic", {1, 64, 4}, {"updates atomically"}, {}, {}, true},
};

Result<void> run(const std::shared_ptr<Device>& device, const SeededFault& fault) {
  std::vector<float> data(fault.extent.elements);
  std::vector<uint32_t> constant = fault.constant;
  return runOn(device,
               {.function = fault.function,
                .grid = {Grid::Unit::threadgroups, {fault.extent.threadgroups, 1, 1}, {fault.extent.threads, 1, 1}},
                .buffers = {bytesOf(data), bytesOf(constant)},
                .constants = {},
                .threadgroupMemory = fault.threadgroupMemory});
}

std::string withLines(const SeededFault& fault, std::string text) {
  for (size_t begin; (begin = text.find('<')) != std::string::npos;) {
    const size_t length = text.find('>', begin) - begin;
    text.replace(begin, length + 1, lineOf(fault.function, text.substr(begin + 1, length - 1)));
  }
  return text;
}

}  // namespace

TEST(HostChecking, FindsSeededFaultsInEveryOrder) {
  for (const SeededFault& fault : kSeededFaults) {
    std::set<std::string> texts;
    for (const uint64_t order : kOrders) {
      const Context context(fmt::format("{}, order {}", fault.function, order));
      const auto outcome = run(checkedDevice(order), fault);
      for (const std::string& part : fault.expected) {
        EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = withLines(fault, part)});
      }
      EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault,
                             .what = fault.function,
                             .expected = "ordered by barriers",
                             .fix = order == 0 ? "" : fmt::format("Order seed {} replays it", order)});
      if (!outcome) texts.insert(outcome.error().got);
    }
    if (!fault.dependsOnOrder) EXPECT_EQ(texts.size(), 1u);
  }
}

TEST(HostChecking, FindsABarrierInDivergentCode) {
  for (const char* function : {"faultDifferentBarriers", "faultReturnBeforeBarrier", "faultDivergentSimd"}) {
    for (const uint64_t order : kOrders) {
      const Context context(fmt::format("{}, order {}", function, order));
      EXPECT_ERROR(run(checkedDevice(order), {function, {1, 64, 64}, {}}),
                   {.code = ErrorCode::deviceFault, .got = "Faults.metal:"});
    }
  }
}

TEST(HostChecking, AllowsEqualValuesIfAsked) {
  for (const uint64_t order : kOrders) {
    EXPECT(run(checkedDevice(order, true), {"faultSameValue", {2, 64, 4}, {}}));
    EXPECT(!run(checkedDevice(order, true), {"faultTwoWriters", {1, 32, 32}, {}}));
  }
}

TEST(HostChecking, FindsNothingInOrderedExchanges) {
  for (const uint64_t order : kOrders) {
    std::vector<float> data(64), result(64);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    REQUIRE(runOn(checkedDevice(order),
                  {.function = "orderedExchanges", .grid = threads(64), .buffers = {bytesOf(data), bytesOf(result)}}));
    for (size_t i = 0; i < result.size(); ++i) {
      const float sign = i % 2 == 0 ? 1.0f : -1.0f;
      EXPECT_EQ(result[i], sign * static_cast<float>(63 - (((i + 32) % 64) ^ 1)));
    }
  }
}
