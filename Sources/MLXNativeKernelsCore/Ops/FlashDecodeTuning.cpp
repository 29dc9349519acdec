#include "Ops/FlashDecodeTuning.hpp"

#include <algorithm>

#include "Types/FlashDecodeTypes.h"

namespace mnk {

namespace {

// The first row whose family begins the device's; the last serves all others.
constexpr FlashDecodeTuning kTable[] = {
    // Threads of a processor: more threadgroups than cores only cost, and exchanges between lanes are dear.
    {.family = "host",
     .vectorSimdgroups = 1,
     .matrixSimdgroups = 1,
     .reduceSimdgroups = 1,
     .threadgroupsPerCore = 2,
     .leastKeys = 256,
     .cores = 2},
    // Nothing was measured on an Apple GPU. What follows are counts of instructions of the kernels at head dim 128, as
    // compiled for another GPU, with 16 for each product of matrices, which run at the rate of plain ones before M5. A
    // KiB of 4-bit codes takes 690 in the vector kernel for four rows, 1170 for eight, and 710 in the matrix kernel for
    // any up to eight; an M4 Max issues some 500 while it loads a KiB. A KiB of f16 takes 120, 240 and 150 instead, so
    // that both kernels wait for memory. Where neither is faster the exact one is chosen.
    {.family = "apple",
     .vectorSimdgroups = 8,
     .matrixSimdgroups = 8,
     .reduceSimdgroups = 8,
     .threadgroupsPerCore = 4,
     .leastKeys = 64,
     .denseMatrixRows = 9,
     .codedMatrixRows = 5,
     .cores = 10},
    {.family = ""},
};

struct VectorInstance {
  uint32_t keyDim;
  uint32_t valueDim;
  uint32_t rows;
};
#define ROW(keyDim, valueDim, rows) {keyDim, valueDim, rows},
constexpr VectorInstance kVectorInstances[] = {MNK_FLASH_VECTOR_INSTANCES(ROW)};
#undef ROW

}  // namespace

FlashDecodeTuning tuningFor(const DeviceProfile& profile) {
  for (const FlashDecodeTuning& row : kTable) {
    if (std::string_view(profile.family).starts_with(row.family)) return row;
  }
  return {};
}

uint32_t vectorRows(uint64_t keyDim, uint64_t valueDim, uint64_t rows) {
  uint32_t best = 0;
  for (const VectorInstance& instance : kVectorInstances) {
    if (instance.keyDim != keyDim || instance.valueDim != valueDim) continue;
    if (best == 0 || best < rows) best = instance.rows;  // instances are listed from few rows to many
  }
  return best;
}

uint32_t automaticSplits(const FlashDecodeTuning& tuning, const DeviceProfile& profile, uint64_t threadgroups,
                         uint64_t longest) {
  const uint64_t cores = profile.cores != 0 ? profile.cores : tuning.cores;
  const uint64_t wanted = cores * tuning.threadgroupsPerCore / std::max<uint64_t>(threadgroups, 1);
  const uint64_t most = longest / tuning.leastKeys;
  return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, std::clamp<uint64_t>(most, 1, FlashDecode::kMaxSplits)));
}

}  // namespace mnk
