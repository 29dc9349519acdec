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

struct SeededFault {
  const char* function;
  uint32_t threadgroups, threads;
  size_t elements;                      // floats of buffer 0
  std::vector<std::string> expected;    // texts that the report must contain
  std::vector<uint32_t> constant = {};  // buffer 1
  std::vector<ThreadgroupMemory> threadgroupMemory = {};
};

Result<void> run(const std::shared_ptr<Device>& device, const SeededFault& fault) {
  std::vector<float> data(fault.elements);
  std::vector<uint32_t> constant = fault.constant;
  return runOn(device, {.function = fault.function,
                        .grid = {Grid::Unit::threadgroups, {fault.threadgroups, 1, 1}, {fault.threads, 1, 1}},
                        .buffers = {bytesOf(data), bytesOf(constant)},
                        .constants = {},
                        .threadgroupMemory = fault.threadgroupMemory});
}

// Every order must report the same findings.
void expectFound(const SeededFault& fault) {
  const Context context(fault.function);
  std::set<std::string> texts;
  for (const uint64_t order : kOrders) {
    const auto outcome = run(checkedDevice(order), fault);
    if (outcome) {
      fail(__FILE__, __LINE__, fmt::format("order {}: nothing was found", order));
      continue;
    }
    texts.insert(outcome.error().got);
    for (const std::string& part : fault.expected) {
      EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = part});
    }
    EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .what = fault.function, .expected = "ordered by barriers"});
    if (order != 0) {
      EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .fix = fmt::format("Order seed {} replays it", order)});
    }
  }
  EXPECT_EQ(texts.size(), 1u);
}

}  // namespace

TEST(HostChecking, FindsAMissingThreadgroupBarrier) {
  expectFound({"faultMissingBarrier",
               1,
               64,
               64,
               {lineOf("faultMissingBarrier", "scratch[tid] = ") + " writes threadgroup memory 0 + 0, " +
                    lineOf("faultMissingBarrier", "data[tid] = ") + " reads it",
                "no threadgroup_barrier(mem_threadgroup) between threadgroup 0 simdgroup 0 lane 0 and"}});
}

TEST(HostChecking, FindsAMissingSimdgroupBarrier) {
  expectFound({"faultMissingSimdgroupBarrier",
               1,
               32,
               32,
               {lineOf("faultMissingSimdgroupBarrier", "scratch[lane] = ") + " writes threadgroup memory 0 + 0, ",
                "no simdgroup_barrier(mem_threadgroup) between threadgroup 0 simdgroup 0 lane 0 and lane 31"}});
  expectFound({"faultLockStep", 1, 32, 32, {"no simdgroup_barrier(mem_threadgroup) between"}});
}

TEST(HostChecking, FindsABarrierThatOrdersTooLittle) {
  expectFound({"faultNarrowBarrier", 1, 64, 64, {"no threadgroup_barrier(mem_threadgroup) between"}});
  expectFound({"faultNoFlags", 1, 64, 64, {"no threadgroup_barrier(mem_threadgroup) between"}});
  expectFound({"faultWrongFlags",
               1,
               64,
               128,
               {"buffer 0 + 0, ",
                "no threadgroup_barrier(mem_device) between threadgroup 0 simdgroup 0 lane 0 and "
                "threadgroup 0 simdgroup 1 lane 31"}});
}

TEST(HostChecking, FindsABarrierInDivergentCode) {
  for (const char* function : {"faultDifferentBarriers", "faultReturnBeforeBarrier", "faultDivergentSimd"}) {
    for (const uint64_t order : kOrders) {
      const Context context(fmt::format("{}, order {}", function, order));
      const auto outcome = run(checkedDevice(order), {function, 1, 64, 64, {}});
      EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "Faults.metal:"});
    }
  }
}

TEST(HostChecking, FindsAccessesPastABuffer) {
  expectFound({"faultOutOfBounds",
               1,
               32,
               32,
               {lineOf("faultOutOfBounds", "data[") + " writes 4 bytes outside of buffer 0 + 128: ", "lane 31"}});
  expectFound({"faultReadsPastBuffer",
               1,
               64,
               64,
               {lineOf("faultReadsPastBuffer", "data[tid + 1]") + " reads 4 bytes outside of buffer 0 + 256: "}});
  expectFound({"faultFarIndex", 1, 32, 32, {"writes 4 bytes outside of buffer 0 + 17179869180: ", "lane 0"}});
}

TEST(HostChecking, FindsAccessesPastThreadgroupMemory) {
  expectFound(
      {"faultReadsPastArray",
       1,
       32,
       32,
       {lineOf("faultReadsPastArray", "from[lane + 1]") + " reads 4 bytes outside of threadgroup memory 0 + 128"}});
  expectFound({"faultWritesPastArray",
               1,
               32,
               32,
               {lineOf("faultWritesPastArray", "scratch[lane + 1]") +
                " writes 4 bytes outside of threadgroup memory 0 + 128: threadgroup 0 simdgroup 0 lane 31"},
               {},
               {{0, 128}}});
}

TEST(HostChecking, FindsAnOverrunOfAPrivateArray) {
  expectFound({"faultPrivateArray", 1, 32, 32, {"index 4 is outside of 'float[4]'"}, {6}});
}

TEST(HostChecking, FindsUninitializedThreadgroupMemory) {
  expectFound({"faultUnwritten",
               1,
               32,
               32,
               {lineOf("faultUnwritten", "data[lane] = ") +
                " reads threadgroup memory 0 + 20, which is uninitialized: threadgroup 0 simdgroup 0 lane 5"}});
}

TEST(HostChecking, FindsTwoLanesThatWriteDifferentValues) {
  expectFound({"faultTwoWriters", 1, 32, 32, {"buffer 0 + 0, ", " writes it; no simdgroup_barrier(mem_device)"}});
}

TEST(HostChecking, FindsEqualValuesUnlessAllowed) {
  const SeededFault fault{"faultSameValue", 2, 64, 4, {"writes the same value"}};
  expectFound(fault);
  for (const uint64_t order : kOrders) {
    EXPECT(run(checkedDevice(order, true), fault));
    EXPECT(!run(checkedDevice(order, true), {"faultTwoWriters", 1, 32, 32, {}}));
  }
}

TEST(HostChecking, FindsThreadgroupsThatShareALocation) {
  for (const uint64_t order : kOrders) {
    EXPECT_ERROR(run(checkedDevice(order), {"faultTwoThreadgroups", 2, 32, 64, {}}),
                 {.code = ErrorCode::deviceFault, .got = "buffer 0 + 124, "});
    EXPECT_ERROR(run(checkedDevice(order), {"faultReadsOtherThreadgroup", 2, 32, 128, {}}),
                 {.code = ErrorCode::deviceFault, .got = "nothing orders threadgroup "});
  }
}

TEST(HostChecking, FindsAPlainAccessBesideAtomicOnes) {
  for (const uint64_t order : kOrders) {
    const auto outcome = run(checkedDevice(order), {"faultMixedAtomic", 1, 64, 4, {}});
    EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "updates atomically"});
  }
}

TEST(HostChecking, FindsAMisalignedVector) {
  expectFound({"faultMisalignedVector",
               1,
               4,
               32,
               {lineOf("faultMisalignedVector", "rows[tid]") + ": ", "needs an alignment of 16 bytes"}});
}

TEST(HostChecking, FindsAShuffleFromAnInactiveLane) {
  expectFound({"faultShuffleFromReturnedLane",
               1,
               32,
               32,
               {lineOf("faultShuffleFromReturnedLane", "simd_shuffle_xor") +
                ": lane 6 takes the value of lane 7, which does not take part"}});
}

TEST(HostChecking, FindsAnIndexThatOverflows) {
  expectFound({"faultIndexOverflow",
               1,
               3,
               64,
               {lineOf("faultIndexOverflow", "row * rowElements") + ": a multiplication overflows"},
               {1u << 31}});
  expectFound({"faultSignedOverflow",
               1,
               2,
               64,
               {lineOf("faultSignedOverflow", "start + ") + ": an addition overflows 'int'"},
               {0x7fffffffu}});
}

TEST(HostChecking, FindsNothingInOrderedExchanges) {
  for (const uint64_t order : kOrders) {
    std::vector<float> data(64), result(64);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    REQUIRE(runOn(checkedDevice(order), {.function = "orderedExchanges",
                                         .grid = threads({64, 1, 1}, {64, 1, 1}),
                                         .buffers = {bytesOf(data), bytesOf(result)}}));
    for (size_t i = 0; i < result.size(); ++i) {
      const float sign = i % 2 == 0 ? 1.0f : -1.0f;
      EXPECT_EQ(result[i], sign * static_cast<float>(63 - (((i + 32) % 64) ^ 1)));
    }
  }
}
