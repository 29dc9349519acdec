// What the tests of the prefill kernel and of latent caches share: random options, runs in turns, and which kernels
// cases reach.
#pragma once
#include <map>
#include <set>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Ops/Common/EveryRun.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Runtime/DispatchRules.hpp"

namespace mnk::test {

inline constexpr DType kPrefillTypes[] = {DType::f32, DType::f16, DType::bf16};
inline const DeviceProfile kPrefillGPU{.family = "apple9", .cores = 10, .matrixLayout = MatrixLayout::interleaved};
inline const DeviceProfile kOtherGPU{.family = "", .cores = 132, .matrixLayout = MatrixLayout::rowMajor};

inline std::vector<PreparedFlashDecode> allPrepared(const std::vector<FlashDecodeCase>& cases, Seeded& random) {
  std::vector<PreparedFlashDecode> all;
  for (const FlashDecodeCase& attend : cases) all.push_back(prepared(attend, random));
  return all;
}

inline void expectAllAttended(const std::vector<FlashDecodeCase>& cases) {
  Seeded random;
  runCases(allPrepared(cases, random), &FlashDecodeRun::expectAttended);
}

// With fewer threads than were planned, as a pipeline may allow.
inline void expectAttendedInTurns(const std::vector<FlashDecodeCase>& cases,
                                  std::initializer_list<uint32_t> simdgroupCounts) {
  Seeded random;
  const std::vector<PreparedFlashDecode> all = allPrepared(cases, random);
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const PreparedFlashDecode& each : all) {
      for (const uint32_t simdgroups : simdgroupCounts) {
        const Context context(fmt::format("{} simdgroups", simdgroups));
        const FlashDecodeRun one(device, each, random);
        Plan planned = REQUIRE(mnk::plan(one.op().op, *device));
        Grid& grid = planned.dispatches.at(0).grid;
        grid = shrinkToLimit(32 * simdgroups, grid);
        REQUIRE(CommandEncoder::run(
            device, [&](CommandEncoder& encoder) { return encoder.encode(planned); }, "turns"));
        one.expectAttended();
      }
    }
  });
}

// Codes of any bits, in both planes or in one.
inline void setTurbo(FlashDecodeCase& attend, uint64_t drawn) {
  attend.keyCodec = KVCodec{.bits = static_cast<uint32_t>(2 + drawn % 7)};
  attend.valueCodec = KVCodec{.bits = static_cast<uint32_t>(2 + drawn / 7 % 7)};
  attend.hasKeyMeans = drawn % 3 == 0;
  attend.hasValueMeans = drawn % 5 < 2;
  attend.hasChannelScales = drawn % 4 == 1;
  attend.hasWideScales = drawn % 3 == 1;
  if (drawn % 11 < 3) {
    attend.keyCodec.reset();
    attend.hasKeyMeans = attend.hasChannelScales = false;
  } else if (drawn % 11 < 6) {
    attend.valueCodec.reset();
    attend.hasValueMeans = false;
  }
}

inline std::string prefillStorageText(const FlashDecodeCase& attend) {
  const auto text = [&](const std::optional<KVCodec>& codec) {
    return codec ? codec->text() : std::string(name(attend.cache));
  };
  return fmt::format("{} and {}{}", text(attend.keyCodec), text(attend.valueCodec),
                     attend.isOneTensor ? " in one tensor" : "");
}

// Any options that go together, for a case with storage, rows and heads and one sequence.
inline void drawOptions(FlashDecodeCase& attend, Seeded& random) {
  const auto isDrawn = [&](uint64_t of) { return random.below(of) == 0; };
  const uint64_t length = attend.sequences[0].length;
  attend.queries = kPrefillTypes[random.below(3)];
  attend.into = kPrefillTypes[random.below(3)];
  attend.kvHeads = 1 + random.below(2);
  attend.layout = isDrawn(2) ? KVLayout::headMajor : KVLayout::tokenMajor;
  attend.queryPlaces = static_cast<QueryPlaces>(random.below(4));
  const bool isRing = isDrawn(3);
  if (isRing) {
    attend.wrap = KVWrap::ring;
    attend.pinned = static_cast<uint32_t>(random.below(6));
    attend.capacity = attend.rows + attend.pinned + random.below(30);
    if (isDrawn(4)) attend.sequences[0].highest = length + random.below(6);
  } else if (isDrawn(3)) {
    attend.cacheSequences = 3;
    attend.sequences = {{2, length}, {0, isDrawn(2) ? 0 : attend.rows}, {1, attend.rows + random.below(9)}};
  }
  attend.options.isCausal = !isDrawn(5);
  if (isDrawn(3)) {
    const uint64_t held = isRing ? attend.capacity - attend.pinned : length;
    const uint64_t most = held > attend.rows ? held - attend.rows + 1 : 1;
    const bool isFull = isRing && (length > attend.capacity || attend.sequences[0].highest != 0);
    attend.options.window = static_cast<uint32_t>(1 + random.below(isFull ? std::max<uint64_t>(most, 6) - 5 : length));
    attend.options.windowSeesPinned = isDrawn(2);
  }
  if (isDrawn(4)) setFloats(attend.options);
  if (isDrawn(3)) {
    attend.mask = MaskCase{.dtype = kPrefillTypes[random.below(3)],
                           .rank = static_cast<uint32_t>(attend.sequences.size() > 1 ? 4 : 2 + random.below(3)),
                           .servesAllHeads = isDrawn(2),
                           .servesAllRows = isDrawn(3),
                           .hasEmptyRows = isDrawn(2)};
  }
  const bool isRagged = attend.sequences.size() > 1 && !attend.mask && !isDrawn(3);
  for (size_t s = 0; isRagged && s < attend.sequences.size(); ++s) {
    attend.sequences[s].rows = s == 0 ? attend.rows : 1 + random.below(attend.rows);
  }
  attend.hasSlopes = isDrawn(4);
  attend.givesPartials = isDrawn(5);
  attend.hasSinks = !attend.givesPartials && isDrawn(4);
  attend.givesLogSumExp = isDrawn(3);
  attend.options.splits = static_cast<uint32_t>(random.below(4));
  attend.cacheShift = isDrawn(5) ? (attend.isQuantized() && !attend.isMixed() ? 1 : byteSize(attend.cache)) : 0;
  attend.queryShift = isDrawn(5) ? byteSize(attend.queries) : 0;
  attend.intoShift = isDrawn(5) ? byteSize(attend.givesPartials ? DType::f32 : attend.into) : 0;
  attend.hasScratch = isDrawn(4);
}

// This many cases of those that `draw` gives: the others break a rule.
inline std::vector<FlashDecodeCase> drawnCases(uint64_t count,
                                               FlashDecodeCase (*draw)(uint64_t number, Seeded& random)) {
  Seeded random(7);
  std::vector<FlashDecodeCase> cases;
  for (uint64_t number = 0; cases.size() < count; ++number) {
    FlashDecodeCase attend = draw(number, random);
    if (plan(planOp(attend))) cases.push_back(std::move(attend));
  }
  return cases;
}

// Kernels and constants of first dispatches: random cases would leave one out unseen.
struct ReachedKernels {
  std::set<std::string> functions;
  std::map<uint32_t, std::set<uint32_t>> values;

  void add(const Dispatch& first) {
    EXPECT(first.threadgroupMemory.at(0).bytes <= 32u * 1024);
    functions.insert(first.kernel.function);
    for (const FunctionConstant& constant : first.kernel.constants) values[constant.index].insert(constant.bits);
  }
  void expectEveryConstantBut(const std::set<uint32_t>& fixed) const {
    for (const auto& [index, seen] : values) {
      if (seen.size() < 2 && !fixed.contains(index)) {
        fail(__FILE__, __LINE__, fmt::format("constant {} is always {}", index, *seen.begin()));
      }
    }
  }
};

}  // namespace mnk::test
