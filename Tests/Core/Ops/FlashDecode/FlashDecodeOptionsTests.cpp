// FlashDecode on every device against attention in double: what scores are made of, and what results may be.
#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

TEST(FlashDecodeOptions, AddsMasksOfEveryShape) {
  runOnEveryDevice(maskCases());
}

TEST(FlashDecodeOptions, CapsSlopesSinksAndSums) {
  runOnEveryDevice(scoreCases());
}

// The same call gives the same bytes, whatever order lanes and threadgroups run in.
TEST(FlashDecodeOptions, GivesTheSameBytesEveryTime) {
  Seeded random(4);
  std::vector<PreparedFlashDecode> all;
  for (uint32_t splits : {1u, 5u}) {
    FlashDecodeCase attend{.name = fmt::format("{} splits", splits),
                           .headDim = 64,
                           .rows = 3,
                           .sequences = {{0, 150}},
                           .givesLogSumExp = true};
    attend.options.splits = splits;
    all.push_back(prepared(attend, random));
    all.back().isForAnyDevice = splits == 5;
  }
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const PreparedFlashDecode& each : all) {
      const Context context(each.name);
      const FlashDecodeRun first(device, each, random), second(device, each, random);
      CommandEncoder encoder(device, "twice");
      REQUIRE(encoder.encode(first.op()));
      REQUIRE(encoder.encode(second.op()));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      EXPECT(first.results() == second.results());
      CommandEncoder again(device, "again");
      REQUIRE(again.encode(second.op()));
      REQUIRE(REQUIRE(again.commit()).wait());
      EXPECT(first.results() == second.results());
    }
  });
}

}  // namespace mnk::test
