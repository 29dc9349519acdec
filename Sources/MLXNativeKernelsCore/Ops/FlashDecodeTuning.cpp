#include "Ops/FlashDecodeTuning.hpp"

#include <algorithm>
#include <bit>

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

#define ROW(keyDim, valueDim, rows) {keyDim, valueDim, rows},
constexpr VectorInstance kVectorInstances[] = {MNK_FLASH_VECTOR_INSTANCES(ROW)};
#undef ROW

// Vectors up to this length are served by longer instances, if a lane's loads end where they end.
constexpr uint64_t kMaxPaddedDim = 256;
constexpr uint64_t kPaddedUnit = 8;

bool canBePadded(uint64_t headDim) {
  return headDim != 0 && headDim <= kMaxPaddedDim && headDim % kPaddedUnit == 0;
}

}  // namespace

FlashDecodeTuning tuningFor(const DeviceProfile& profile) {
  for (const FlashDecodeTuning& row : kTable) {
    if (std::string_view(profile.family).starts_with(row.family)) return row;
  }
  return {};
}

bool hasAttentionKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized) {
  if (isQuantized) return keyDim == valueDim && std::has_single_bit(keyDim) && keyDim >= 32 && keyDim <= 512;
  return vectorInstance(keyDim, valueDim, 1).rows != 0;
}

std::string attentionDimsText(bool isQuantized) {
  return isQuantized ? "32, 64, 128, 256 or 512, the same for both" : "multiples of 8 up to 256, 512, or 576 with 512";
}

VectorInstance vectorInstance(uint64_t keyDim, uint64_t valueDim, uint64_t rows) {
  const bool isPaddable = canBePadded(keyDim) && canBePadded(valueDim);
  VectorInstance best;
  // Instances are listed from short vectors to long ones, and from few rows to many.
  for (const VectorInstance& instance : kVectorInstances) {
    const bool isExact = instance.keyDim == keyDim && instance.valueDim == valueDim;
    const bool isLongEnough = isPaddable && instance.keyDim >= keyDim && instance.valueDim >= valueDim;
    if (!isExact && !isLongEnough) continue;
    if (best.rows != 0 && (instance.keyDim != best.keyDim || instance.valueDim != best.valueDim)) break;
    if (best.rows == 0 || best.rows < rows) best = instance;
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
