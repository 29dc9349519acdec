// FlashDecode whose splits are merged in the dispatch that makes them: the same results as with a second dispatch, for
// any number of splits, rows and simdgroups.
#include <algorithm>

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

// Drawn cases whose keys are split, with scores of a usual size.
std::vector<Case> splitCases(bool areForMatrices) {
  std::vector<Case> cases;
  for (const AttentionKind kind : {AttentionKind::dense, AttentionKind::quantized}) {
    size_t left = 10;
    for (const Case& attend : drawnAttentions(kind)) {
      if (attend.options.splits < 2 || attend.longest() <= 16 || attend.longest() > 150 || attend.size > 16 ||
          !attend.sizes.empty())
        continue;
      if (!attend.specials.empty() || (areForMatrices && !attend.fitsMatrices()) || left-- == 0) continue;
      cases.push_back(attend);
    }
  }
  return cases;
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
    const FlashDecodeRun together(device, one, random), separate(device, one, random);
    const auto planned = [&](const FlashDecodeRun& opRun, AttentionOptions::Merge merge) {
      FlashDecode op = opRun.op().op;
      op.options.merge = merge;
      return withSimdgroups(REQUIRE(mnk::plan(op, *device)), simdgroups);
    };
    const Plan ofTogether = planned(together, AttentionOptions::Merge::inKernel);
    const Plan ofSeparate = planned(separate, AttentionOptions::Merge::separate);
    REQUIRE(encoder.encode(ofSeparate));
    REQUIRE(encoder.encode(ofTogether));
    all.push_back({together, separate, computesAlike(*device, one.attend) && mergesInOneOrder(ofTogether, ofSeparate)});
  }
  REQUIRE(REQUIRE(encoder.commit()).wait());
  for (const auto& [together, separate, isExact] : all) {
    together.expectAttended();
    separate.expectAttended();
    if (isExact) EXPECT(together.results() == separate.results());
  }
}

void expectOnEveryDevice(AttentionOptions::Kernel kernel, uint32_t simdgroups) {
  Seeded random;
  std::vector<PreparedFlashDecode> all;
  for (Case attend : splitCases(kernel == AttentionOptions::Kernel::matrix)) {
    attend.options.kernel = kernel;
    all.push_back(prepared(attend, random));
  }
  EXPECT(all.size() > 8);
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    if (device->profile().ordersThreadgroups) expectBothWaysAgree(device, all, simdgroups);
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

TEST(FlashDecodeInKernelMerge, HasOneDispatchForEachPass) {
  const DeviceProfile profile{.ordersThreadgroups = true};
  for (uint64_t rows : {1, 9}) {
    Case attend = splitCase("passes", 4, 100);
    attend.rows = rows;
    attend.options.merge = AttentionOptions::Merge::inKernel;
    const Plan together = REQUIRE(plan(planOp(attend), profile));
    attend.options.merge = AttentionOptions::Merge::separate;
    const Plan separate = REQUIRE(plan(planOp(attend), profile));
    EXPECT_EQ(together.dispatches.size(), rows == 1 ? 1u : 2u);
    EXPECT_EQ(separate.dispatches.size(), together.dispatches.size() + 1);
    EXPECT_EQ(together.scratchBytes, separate.scratchBytes);
    EXPECT_EQ(separate.zeroedBytes, 0u);
    uint64_t end = 0;
    for (const Dispatch& dispatch : together.dispatches) {
      const Binding& counts = *std::ranges::find_if(dispatch.buffers, &Binding::isZeroed);
      EXPECT_EQ(counts.offset, end);
      EXPECT(counts.length >= 2 * sizeof(uint32_t));
      end = counts.offset + counts.length;
    }
    EXPECT_EQ(together.zeroedBytes, end);
  }
  // One split is not merged.
  Case attend = splitCase("one split", 1, 100);
  attend.options.merge = AttentionOptions::Merge::inKernel;
  const Plan planned = REQUIRE(plan(planOp(attend), profile));
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
