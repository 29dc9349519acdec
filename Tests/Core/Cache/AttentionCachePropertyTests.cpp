// Random calls on caches, compared with the tokens that slots must hold and with attention in double over all tokens: a
// row sees the positions its options select, or the call fails. Runs 2,000 programs by default, and 100,000 with
// MNK_TEST_FULL=1.
#include <cstdlib>

#include "AttentionCacheProgram.hpp"
#include "Harness/EveryDevice.hpp"

namespace mnk::test {

namespace {

uint64_t programCount() {
  const char* value = std::getenv("MNK_TEST_FULL");
  return value != nullptr && std::string_view(value) == "1" ? 100'000 : 2'000;
}

AttentionCacheDescriptor descriptor(Seeded& random) {
  const auto pinned = static_cast<uint32_t>(random.below(2) * random.below(4));
  const bool isRing = random.below(5) != 0, isStorageOnly = random.below(6) == 0;
  return {.kvHeads = kProgramKVHeads,
          .headDim = isStorageOnly ? 3u : 8u,
          .valueHeadDim = isStorageOnly ? 5u : 16u,
          .capacity = static_cast<uint32_t>(pinned + 1 + random.below(isRing ? 9 : 30)),
          .sequences = kSequences,
          .dtype = DType::f32,
          .whenFull = isRing ? KVWrap::ring : KVWrap::linear,
          .pinned = isRing ? pinned : 0,
          .isStorageOnly = isStorageOnly};
}

RowOptions rowOptions(Seeded& random) {
  return {.window = random.below(2) * (1 + random.below(12)), .seesPinned = random.below(2) == 0};
}

Rows anyRows(Seeded& random, uint32_t sequence) {
  const bool isOneEach = random.below(4) == 0;
  Rows rows{{sequence}, {isOneEach ? 1 : static_cast<uint32_t>(random.below(9))}};
  while (random.below(3) == 0) {
    rows.sequences.push_back(static_cast<uint32_t>(random.below(kSequences)));
    rows.counts.push_back(isOneEach ? 1 : static_cast<uint32_t>(random.below(5)));
  }
  return rows;
}

void runAnyCalls(const std::shared_ptr<Device>& device, Seeded& random) {
  AttentionCacheProgram program(device, descriptor(random), random);
  for (uint64_t calls = 2 + random.below(6); calls != 0; --calls) {
    const auto sequence = static_cast<uint32_t>(random.below(kSequences));
    switch (random.below(11)) {
      case 0:
        program.truncate(sequence, random.below(program.next(sequence) + 2));
        break;
      case 1:
        program.attendAgain(sequence, rowOptions(random));
        break;
      case 2:
        program.appendAndAttend(sequence, random.below(14), rowOptions(random));
        break;
      case 3:
        program.copy(sequence, static_cast<uint32_t>(random.below(kSequences)));
        break;
      case 4:
        program.abandon(sequence);
        break;
      case 6:
        program.grow(program.capacity() + static_cast<uint32_t>(random.below(6)));
        break;
      case 5:
        program.append({anyRows(random, sequence), anyRows(random, sequence), anyRows(random, 0)});
        break;
      default:
        program.appendAndAttendRows(anyRows(random, sequence), rowOptions(random), false);
    }
  }
}

// A sliding-window cache never refuses steps within its descriptor's limits, or rolling back drafts.
void runSlidingWindow(const std::shared_ptr<Device>& device, Seeded& random) {
  const SlidingWindow sliding{.window = static_cast<uint32_t>(1 + random.below(9)),
                              .maxRows = static_cast<uint32_t>(1 + random.below(6)),
                              .maxDraft = static_cast<uint32_t>(random.below(6))};
  const auto pinned = static_cast<uint32_t>(random.below(3));
  AttentionCacheProgram program(device,
                                {.kvHeads = kProgramKVHeads,
                                 .headDim = 8,
                                 .valueHeadDim = 16,
                                 .sequences = kSequences,
                                 .dtype = DType::f32,
                                 .pinned = pinned,
                                 .slidingWindow = sliding},
                                random);
  for (uint64_t steps = 3 + random.below(8); steps != 0; --steps) {
    const RowOptions options{.seesPinned = random.below(2) == 0};
    const uint64_t before = program.next();
    if (random.below(2) == 0) {
      program.appendAndAttendRows({{0}, {static_cast<uint32_t>(1 + random.below(sliding.maxRows))}}, options, true);
      continue;
    }
    // A draft in steps of at most maxRows; only some of its tokens are accepted.
    const uint64_t draft = random.below(sliding.maxDraft + 1);
    for (uint64_t left = draft; left != 0;) {
      const uint64_t rows = 1 + random.below(std::min<uint64_t>(left, sliding.maxRows));
      program.appendAndAttendRows({{0}, {static_cast<uint32_t>(rows)}}, options, true);
      left -= rows;
    }
    program.truncate(0, before + random.below(draft + 1));
  }
}

template <typename Body>
void runPrograms(uint64_t stream, Body body) {
  const auto& devices = devicesUnderTest();
  for (uint64_t i = 0; i < programCount() / 2; ++i) {
    const DeviceUnderTest& under = devices[i % devices.size()];
    const Context context(fmt::format("{}, program {}", under.name, i));
    Seeded random(stream + 2 * i);
    body(under.device, random);
  }
}

}  // namespace

TEST(AttentionCacheProperty, RowsSeeSelectedPositionsOrFail) {
  runPrograms(0, runAnyCalls);
}

TEST(AttentionCacheProperty, ASlidingWindowCacheServesItsLimits) {
  runPrograms(1, runSlidingWindow);
}

}  // namespace mnk::test
