// The prefill kernel where threadgroup memory holds fewer rows than there are, over dense and latent caches.
#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Ops/Common/EveryRun.hpp"
#include "Runtime/DispatchRules.hpp"

namespace mnk::test {

namespace {

// A prompt of f16 after `before` positions.
FlashDecodeCase promptOf(uint64_t headDim, uint64_t rows, uint64_t before) {
  return {.name = fmt::format("{} rows of {}", rows, headDim),
          .cache = DType::f16,
          .headDim = headDim,
          .valueHeadDim = headDim,
          .kvHeads = 1,
          .queries = DType::f16,
          .group = 2,
          .rows = rows,
          .sequences = {{0, before + rows}},
          .into = DType::f16,
          .options = {}};
}

FlashDecodeCase latentPrompt(uint64_t heads) {
  FlashDecodeCase attend = promptOf(64, 2, 23);
  attend.isLatent = true;
  attend.valueHeadDim = 512;
  attend.group = heads;
  attend.options.scale = 0.07f;
  return attend;
}

FlashDecodeCase coded(FlashDecodeCase attend, uint32_t bits) {
  attend.name += fmt::format(" in {} bits", bits);
  attend.keyCodec = attend.valueCodec = KVCodec{.bits = bits};
  return attend;
}

}  // namespace

// More rows than fit in threadgroup memory at once, before they attend and after; codes; simdgroups that share rows.
TEST(FlashPrefill, UsesThreadgroupMemoryInTurns) {
  FlashDecodeCase quantized = coded(promptOf(256, 50, 3), 3);
  quantized.kvHeads = 3;  // enough for threadgroups with more queries than fit at a time
  runOnEveryDevice({promptOf(128, 25, 0), quantized});
}

// With fewer threads than were planned, as a pipeline may allow. Codes of 8 bits leave room for fewer rows.
TEST(FlashPrefill, AttendsInTurnsWithFewerSimdgroups) {
  Seeded random;
  std::vector<PreparedFlashDecode> all;
  for (const FlashDecodeCase& attend :
       {promptOf(96, 40, 5), promptOf(256, 40, 5), latentPrompt(20), coded(latentPrompt(20), 8)}) {
    all.push_back(prepared(attend, random));
  }
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const PreparedFlashDecode& each : all) {
      for (const uint32_t simdgroups : {2, 3, 4, 6}) {
        // Four simdgroups share rows of a latent cache.
        if (each.attend.isLatent == (simdgroups < 4)) continue;
        const Context context(fmt::format("{} simdgroups", simdgroups));
        const FlashDecodeRun one(device, each, random);
        Plan planned = REQUIRE(plan(one.op().op, *device));
        Grid& grid = planned.dispatches.at(0).grid;
        grid = shrinkToLimit(32 * simdgroups, grid);
        REQUIRE(CommandEncoder::run(
            device, [&](CommandEncoder& encoder) { return encoder.encode(planned); }, "turns"));
        one.expectAttended();
      }
    }
  });
}

}  // namespace mnk::test
