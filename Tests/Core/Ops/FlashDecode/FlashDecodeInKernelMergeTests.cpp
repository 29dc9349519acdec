// FlashDecode whose splits are merged in the dispatch that makes them: the same results as with a second dispatch, for
// any number of splits, rows and simdgroups.
#include <cmath>
#include <cstring>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "HostLevels.h"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

Case splitCase(std::string name, uint32_t splits, uint64_t length) {
  Case attend{.name = std::move(name), .sequences = {{0, length}}};
  attend.options.splits = splits;
  return attend;
}

std::vector<Case> inKernelMergeCases() {
  std::vector<Case> cases;
  for (uint32_t splits : {2u, 3u, 7u, 33u}) {
    Case attend = splitCase(fmt::format("one row, {} splits", splits), splits, 150);
    attend.group = 1;
    cases.push_back(attend);
    attend.name = fmt::format("{} splits of f16", splits);
    attend.cache = DType::f16;
    attend.group = 3;
    attend.givesLogSumExp = true;
    cases.push_back(attend);
  }
  for (uint64_t rows : {1, 2, 5, 8, 9}) {
    Case attend = splitCase(fmt::format("{} rows", rows), 3, 70);
    attend.cache = DType::f16;
    attend.headDim = attend.valueHeadDim = 128;
    attend.rows = rows;
    attend.hasSinks = rows % 2 == 1;
    cases.push_back(attend);
  }
  Case attend = splitCase("sequences of their own lengths, and empty ones", 7, 0);
  attend.cacheSequences = 4;
  attend.sequences = {{2, 90}, {1, 0}, {0, 5}, {3, 2}};
  attend.rows = 2;
  cases.push_back(attend);
  attend.name = "partials of sequences";
  attend.givesPartials = true;
  attend.givesLogSumExp = true;
  cases.push_back(attend);
  attend = splitCase("sequences with rows of their own", 3, 0);
  attend.cache = DType::f16;
  attend.cacheSequences = 4;
  attend.sequences = {{3, 60, 0, 9}, {1, 0, 0, 1}, {0, 5, 0, 5}, {2, 90, 0, 1}};
  attend.rows = 9;
  attend.hasSinks = true;
  cases.push_back(attend);
  for (uint64_t headDim : {80, 256, 512}) {
    attend = splitCase(fmt::format("head dim {}", headDim), 5, 40);
    attend.headDim = attend.valueHeadDim = headDim;
    attend.rows = 2;
    cases.push_back(attend);
  }
  for (bool givesPartials : {false, true}) {
    attend = splitCase(fmt::format("codes with means{}", givesPartials ? ", as partials" : ""), 4, 100);
    attend.keyCodec = KVCodec{.bits = 4};
    attend.valueCodec = KVCodec{.bits = 3};
    attend.hasKeyMeans = attend.hasValueMeans = attend.hasChannelScales = true;
    attend.rows = 3;
    attend.hasSinks = !givesPartials;
    attend.givesPartials = givesPartials;
    attend.givesLogSumExp = true;
    cases.push_back(attend);
  }
  attend = splitCase("memory of the caller's", 6, 50);
  attend.hasScratch = true;
  cases.push_back(attend);
  return cases;
}

bool fitsTheMatrixKernel(const Case& attend) {
  return (attend.headDim == 64 || attend.headDim == 128 || attend.headDim == 256) &&
         (attend.isQuantized() ? !attend.isMixed() : attend.cache == DType::f16);
}

bool isAttending(const Dispatch& dispatch) {
  return !dispatch.kernel.function.starts_with("flashDecodeReduce");
}

// Overrides the planned number of simdgroups per threadgroup; 0 keeps the plan.
Plan withSimdgroups(Plan plan, uint32_t simdgroups) {
  for (Dispatch& dispatch : plan.dispatches) {
    if (simdgroups == 0 || !isAttending(dispatch)) continue;
    dispatch.grid.threadgroup = {32 * simdgroups, 1, 1};
    dispatch.threadgroupMemory.at(0).bytes = 32 * 1024;
  }
  return plan;
}

// Whether both ways add up the same parts of a row in the same order: the kernel merges a row with one simdgroup.
bool mergesInOneOrder(const Plan& together, const Plan& separate) {
  const auto simdgroupsOf = [](const Dispatch& dispatch) { return dispatch.grid.threadgroup[0] / 32; };
  return simdgroupsOf(separate.dispatches.at(0)) == simdgroupsOf(together.dispatches.at(0)) &&
         simdgroupsOf(separate.dispatches.back()) == 1;
}

// Whether one instruction set runs both kernels: on the processor those that only GPUs choose run on its baseline.
bool computesAlike(Device& device, const Case& attend) {
#if defined(__APPLE__)
  const bool isOnProcessor = device.kind() == "host";
#else
  const bool isOnProcessor = true;
#endif
  const bool isOfGPUs = device.profile().family != "host" || attend.options.kernel == AttentionOptions::Kernel::matrix;
  return !isOnProcessor || !isOfGPUs || !MNK_HOST_HAS_AVX2 || device.name().find("baseline") != std::string::npos;
}

void expectSameResults(std::span<const std::byte> got, std::span<const std::byte> expected, bool isExact) {
  if (std::memcmp(got.data(), expected.data(), expected.size()) == 0) return;
  if (isExact) return fail(__FILE__, __LINE__, "bits differ from those of the separate way");
  double wrong = 0, size = 0;
  for (size_t at = 0; at < expected.size(); at += sizeof(float)) {
    float x = 0, due = 0;
    std::memcpy(&x, &got[at], sizeof x);
    std::memcpy(&due, &expected[at], sizeof due);
    if (x == due) continue;
    wrong += (double{x} - due) * (double{x} - due);
    size += double{due} * due;
  }
  if (!(wrong <= 1e-10 * size)) fail(__FILE__, __LINE__, fmt::format("squares of errors {} of {}", wrong, size));
}

struct TwoWays {
  FlashDecodeRun together;
  FlashDecodeRun separate;
  bool isExact;
};

void expectBothWaysAgree(const std::shared_ptr<Device>& device, const std::vector<PreparedFlashDecode>& prepared,
                         uint32_t simdgroups) {
  Seeded random;
  CommandEncoder encoder(device, "two ways");
  std::vector<TwoWays> all;
  for (const PreparedFlashDecode& one : prepared) {
    const Context context(one.name);
    PreparedFlashDecode other = one;
    other.attend.options.merge = AttentionOptions::Merge::separate;
    const FlashDecodeRun separate(device, other, random);
    other.attend.options.merge = AttentionOptions::Merge::inKernel;
    const FlashDecodeRun together(device, other, random);
    const Plan ofSeparate = withSimdgroups(REQUIRE(plan(separate.op(), *device)), simdgroups);
    const Plan ofTogether = withSimdgroups(REQUIRE(plan(together.op(), *device)), simdgroups);
    REQUIRE(encoder.encode(ofSeparate));
    REQUIRE(encoder.encode(ofTogether));
    const bool isExact = computesAlike(*device, one.attend) && mergesInOneOrder(ofTogether, ofSeparate);
    all.push_back({together, separate, isExact});
  }
  REQUIRE(REQUIRE(encoder.commit()).wait());
  for (size_t i = 0; i < all.size(); ++i) {
    const Context context(prepared[i].name);
    expectSameResults(all[i].together.results(), all[i].separate.results(), all[i].isExact);
  }
}

void expectOnEveryDevice(AttentionOptions::Kernel kernel, uint32_t simdgroups) {
  Seeded random;
  std::vector<PreparedFlashDecode> prepared;
  for (const Case& attend : inKernelMergeCases()) {
    if (kernel == AttentionOptions::Kernel::matrix && !fitsTheMatrixKernel(attend)) continue;
    prepared.push_back({.name = attend.name, .attend = attend, .inputs = inputsOf(attend, random), .expected = {}});
    prepared.back().attend.options.kernel = kernel;
  }
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    if (!device->profile().ordersThreadgroups) return;
    expectBothWaysAgree(device, prepared, simdgroups);
  });
}

}  // namespace

TEST(FlashDecodeInKernelMerge, GivesWhatTheSeparateWayGives) {
  expectOnEveryDevice(AttentionOptions::Kernel::vector, 0);
}

TEST(FlashDecodeInKernelMerge, GivesItWithSimdgroupsThatShareRows) {
  for (uint32_t simdgroups : {3u, 4u}) expectOnEveryDevice(AttentionOptions::Kernel::vector, simdgroups);
}

TEST(FlashDecodeInKernelMerge, GivesItWithMatrices) {
  for (uint32_t simdgroups : {0u, 3u}) expectOnEveryDevice(AttentionOptions::Kernel::matrix, simdgroups);
}

TEST(FlashDecodeInKernelMerge, AgreesWithTheReference) {
  std::vector<PreparedFlashDecode> prepared;
  Seeded random;
  for (Case attend : inKernelMergeCases()) {
    attend.options.merge = AttentionOptions::Merge::inKernel;
    prepared.push_back(test::prepared(attend, random));
  }
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    if (!device->profile().ordersThreadgroups) return;
    std::vector<FlashDecodeRun> runs;
    CommandEncoder encoder(device, "together");
    for (const PreparedFlashDecode& one : prepared) {
      const Context context(one.name);
      runs.emplace_back(device, one, random);
      REQUIRE(encoder.encode(runs.back().op()));
    }
    REQUIRE(REQUIRE(encoder.commit()).wait());
    for (const FlashDecodeRun& opRun : runs) opRun.expectAttended();
  });
}

TEST(FlashDecodeInKernelMerge, CanBeRepeatedWithTheSameMemory) {
  Seeded random;
  Case attend = splitCase("again and again", 7, 100);
  attend.options.merge = AttentionOptions::Merge::inKernel;
  const PreparedFlashDecode prepared = test::prepared(attend, random);
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    if (!device->profile().ordersThreadgroups) return;
    for (int round = 0; round < 3; ++round) {
      const FlashDecodeRun first(device, prepared, random), second(device, prepared, random);
      CommandEncoder encoder(device, "again");
      for (const FlashDecodeRun* opRun : {&first, &second, &first}) REQUIRE(encoder.encode(opRun->op()));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      first.expectAttended();
      EXPECT(first.results() == second.results());
    }
  });
}

TEST(FlashDecodeInKernelMerge, HasOneDispatchForEachPass) {
  const auto device = REQUIRE(Device::makeDefault());
  if (!device->profile().ordersThreadgroups) return;
  for (uint64_t rows : {1, 9}) {
    Case attend = splitCase("passes", 4, 100);
    attend.rows = rows;
    attend.options.merge = AttentionOptions::Merge::inKernel;
    const Plan together = REQUIRE(plan(planOp(attend), *device));
    attend.options.merge = AttentionOptions::Merge::separate;
    const Plan separate = REQUIRE(plan(planOp(attend), *device));
    EXPECT_EQ(together.dispatches.size(), rows == 1 ? 1u : 2u);
    EXPECT_EQ(separate.dispatches.size(), together.dispatches.size() + 1);
    EXPECT_EQ(together.scratchBytes, separate.scratchBytes);
    EXPECT_EQ(separate.zeroedBytes, 0u);
    uint64_t end = 0;
    for (const Dispatch& dispatch : together.dispatches) {
      const Binding& counts = *std::find_if(dispatch.buffers.begin(), dispatch.buffers.end(),
                                            [](const Binding& binding) { return binding.isZeroed; });
      EXPECT_EQ(counts.offset, end);
      EXPECT(counts.length >= 2 * sizeof(uint32_t));
      end = counts.offset + counts.length;
    }
    EXPECT_EQ(together.zeroedBytes, end);
  }
}

TEST(FlashDecodeInKernelMerge, OneSplitIsNotMerged) {
  const auto device = REQUIRE(Device::makeDefault());
  if (!device->profile().ordersThreadgroups) return;
  Case attend = splitCase("one split", 1, 100);
  attend.options.merge = AttentionOptions::Merge::inKernel;
  const Plan planned = REQUIRE(plan(planOp(attend), *device));
  EXPECT_EQ(planned.dispatches.size(), 1u);
  EXPECT_EQ(planned.scratchBytes + planned.zeroedBytes, 0u);
}

TEST(FlashDecodeInKernelMerge, NeedsADeviceThatOrdersThreadgroups) {
  Case attend = splitCase("refused", 4, 100);
  attend.options.merge = AttentionOptions::Merge::inKernel;
  const auto fake = FakeDevice::make();
  for (const Result<Plan>& planned : {plan(planOp(attend)), plan(planOp(attend), *fake)}) {
    EXPECT_ERROR(planned, {.code = ErrorCode::unsupported,
                           .op = "FlashDecode",
                           .what = "in-kernel merging needs device-scope memory fences",
                           .got = "without fences",
                           .expected = "language version 3.2",
                           .fix = "Use automatic."});
  }
  // Where nothing is asked for it is done the other way.
  attend.options.merge = AttentionOptions::Merge::automatic;
  EXPECT_EQ(REQUIRE(plan(planOp(attend), *fake)).dispatches.size(), 2u);
  // A plan compiles and runs nothing.
  EXPECT_EQ(fake->registry().pipelineCount(), 0u);
  EXPECT(fake->committed().empty());
}

}  // namespace mnk::test
