#include "Ops/FlashDecode/FlashDecodeTuning.hpp"

#include <algorithm>
#include <bit>

#include "FlashDecode/FlashDecodeTypes.h"

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
     .matrixRowsTogether = 16,
     .denseMatrixTile = 1024,
     .codedMatrixTile = 4096,
     .matrixTableBits = 15,
     .leastPrefillRows = UINT32_MAX,  // products of matrices are emulated
     .leastLatentRows = UINT32_MAX,
     .cores = 2,
     .sharesAmongFewLanes = true},
    // An estimate: nothing was measured on an Apple GPU. Its kernels are those that fit into 128 registers, as compiled
    // for another GPU: up to four rows in the vector kernel, eight in the matrix kernel with small tiles, and none of
    // the latter for head dim 256. The matrix kernel is taken where the vector kernel would read the cache twice;
    // below, the exact one is. Products of matrices run at the rate of plain ones before M5, and a KiB of 4-bit codes
    // takes about as many instructions for eight rows there as for four in the vector kernel. Two threadgroups for each
    // core were faster than four on the one GPU that was measured. That the prefill kernel is faster than two passes is
    // an estimate too.
    {.family = "apple",
     .vectorSimdgroups = 8,
     .matrixSimdgroups = 8,
     .reduceSimdgroups = 8,
     .threadgroupsPerCore = 2,
     .leastKeys = 64,
     .denseMatrixRows = 5,
     .codedMatrixRows = 5,
     .vectorRowsTogether = 4,
     .matrixHeadDim = 128,
     .denseMatrixTile = 1024,
     .codedMatrixTile = 1024,
     .cores = 10},
    // Any other device, of which no more is known than its cores: as many threadgroups as are sure to run at the same
    // time. What follows was measured on an H200 with the kernels translated to PTX, for 8 heads of a cache, 1 to 64 Ki
    // keys and head dims 64 to 512. With two threadgroups for each core there are twice as many parts to merge, which
    // takes 2 to 6 us; with fewer, cores are idle. Merging together saves 1 us up to 16 parts, and costs time beyond.
    // For four rows over f16 and 1, 4, 16 and 64 Ki keys the matrix kernel takes 9.6, 12.9, 24.5 and 68.7 us, the
    // vector kernel 9.7, 13.3, 25.9 and 72.1; for one row the latter is faster. For codes the matrix kernel is faster
    // with any number of rows. Tiles of 32 keys instead of 16 take 36 instead of 44 us for 64 Ki keys of 4 bits, and
    // 11.0 instead of 10.6 us for 1 Ki keys, of which a simdgroup has less than one such tile; tables with a copy for
    // each of 32 banks take 44 instead of 47 us for 64 Ki keys.
    {.family = "",
     .denseMatrixRows = 2,
     .codedMatrixRows = 1,
     .matrixRowsTogether = 16,
     .codedMatrixTile = 4096,
     .matrixTableBits = 15,
     .mostSplitsTogether = 16},
};

#define ROW(keyDim, valueDim, rows) {keyDim, valueDim, rows},
constexpr VectorInstance kVectorInstances[] = {MNK_FLASH_VECTOR_INSTANCES(ROW)};
constexpr VectorInstance kFewLanesInstances[] = {MNK_FLASH_FEW_LANES_INSTANCES(ROW)};
constexpr VectorInstance kLatentInstances[] = {MNK_FLASH_LATENT_INSTANCES(ROW)};
constexpr VectorInstance kLatentFewLanesInstances[] = {MNK_FLASH_LATENT_FEW_LANES_INSTANCES(ROW)};
#undef ROW

#define ROW(headDim, rows, keys) {headDim, rows, keys},
constexpr MatrixInstance kMatrixInstances[] = {MNK_FLASH_MATRIX_INSTANCES(ROW)};
#undef ROW

#define ROW(type, dim, rowBlocks, keys) {std::string_view(#type) == "f16", dim, 0, rowBlocks, keys, 1},
constexpr PrefillInstance kPrefillInstances[] = {MNK_FLASH_PREFILL_INSTANCES(ROW)};
#undef ROW
#define ROW(type, dim, extra, rowBlocks, keys) {std::string_view(#type) == "f16", dim, extra, rowBlocks, keys, 4},
constexpr PrefillInstance kLatentPrefillInstances[] = {MNK_FLASH_LATENT_PREFILL_INSTANCES(ROW)};
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

bool hasAttentionKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized, bool isLatent) {
  const KVCodec turbo;  // no codec has other head dims that kernels have
  if (isQuantized && (!turbo.canCode(keyDim) || !turbo.canCode(valueDim))) return false;
  return vectorInstance({}, keyDim, valueDim, 1, isQuantized, isLatent).rows != 0;
}

std::string attentionDimsText(bool isQuantized, bool isLatent) {
  if (isLatent) return "64 of keys beside a latent part of 512";
  return isQuantized ? "32, 64, 80, 96, 112, 128, 192 or 256, or 512 for both"
                     : "multiples of 8 up to 256, 512, or 576 with 512";
}

VectorInstance vectorInstance(const FlashDecodeTuning& tuning, uint64_t keyDim, uint64_t valueDim, uint64_t rows,
                              bool isQuantized, bool isLatent) {
  using Instances = std::span<const VectorInstance>;
  Instances instances = isLatent ? Instances(kLatentInstances) : Instances(kVectorInstances);
  if (tuning.sharesAmongFewLanes) {
    instances = isLatent ? Instances(kLatentFewLanesInstances) : Instances(kFewLanesInstances);
  }
  rows = std::min<uint64_t>(rows, tuning.vectorRowsTogether);
  const bool isPaddable = !isLatent && canBePadded(keyDim) && canBePadded(valueDim);
  VectorInstance best;
  // Instances are listed from short vectors to long ones, and from few rows to many.
  for (const VectorInstance& instance : instances) {
    const bool isExact = instance.keyDim == keyDim && instance.valueDim == valueDim;
    const bool isLongEnough = isPaddable && instance.keyDim >= keyDim && instance.valueDim >= valueDim;
    const bool hasPowerOfTwo = instance.keyDim == instance.valueDim && std::has_single_bit(instance.keyDim);
    if ((!isExact && !isLongEnough) || (isQuantized && !isLatent && !hasPowerOfTwo)) continue;
    if (best.rows != 0 && (instance.keyDim != best.keyDim || instance.valueDim != best.valueDim)) break;
    if (best.rows == 0 || best.rows < rows) best = instance;
  }
  return best;
}

uint32_t matrixRows(const FlashDecodeTuning& tuning, uint64_t headDim, uint64_t rows) {
  uint32_t best = 0;
  for (const MatrixInstance& instance : kMatrixInstances) {
    if (instance.headDim != headDim || instance.rows > tuning.matrixRowsTogether) continue;
    if (best < rows) best = instance.rows;  // instances are listed from few rows to many
  }
  return best;
}

uint32_t matrixTileKeys(uint64_t headDim, uint32_t instanceRows, uint64_t mostKeys) {
  uint32_t best = 0;
  for (const MatrixInstance& instance : kMatrixInstances) {
    if (instance.headDim != headDim || instance.rows != instanceRows) continue;
    if (best == 0 || instance.keys <= mostKeys) best = instance.keys;  // from few keys to many
  }
  return best;
}

std::span<const MatrixInstance> matrixInstances() {
  return kMatrixInstances;
}

PrefillInstance prefillInstance(uint64_t keyDim, uint64_t valueDim, bool isHalf, bool isLatent) {
  for (const PrefillInstance& instance : kLatentPrefillInstances) {
    if (!isLatent || instance.isHalf != isHalf || instance.dim * instance.parts != valueDim) continue;
    if (instance.extra * instance.parts == keyDim) return instance;
  }
  if (isLatent) return {};
  constexpr uint64_t kMaxOfASimdgroup = 128;
  constexpr uint32_t kMaxParts = 2;
  const uint32_t parts = keyDim > kMaxOfASimdgroup ? kMaxParts : 1;
  for (PrefillInstance instance : kPrefillInstances) {
    if (keyDim != valueDim || instance.isHalf != isHalf || uint64_t{instance.dim} * parts != keyDim) continue;
    instance.parts = parts;
    return instance;
  }
  return {};
}

uint32_t automaticSplits(const FlashDecodeTuning& tuning, const DeviceProfile& profile, uint64_t threadgroups,
                         uint64_t longest) {
  const uint64_t cores = profile.cores != 0 ? profile.cores : tuning.cores;
  const uint64_t wanted = cores * tuning.threadgroupsPerCore / std::max<uint64_t>(threadgroups, 1);
  const uint64_t most = std::clamp<uint64_t>(longest / tuning.leastKeys, 1, FlashDecode::kMaxSplits);
  return withoutEmptySplits(std::clamp<uint64_t>(wanted, 1, most), longest);
}

uint32_t withoutEmptySplits(uint64_t splits, uint64_t keys) {
  const uint64_t ofEach = splitKeys(keys, splits);
  return static_cast<uint32_t>(ofEach == 0 ? 1 : (keys + ofEach - 1) / ofEach);
}

uint64_t splitKeys(uint64_t keys, uint64_t splits) {
  constexpr uint64_t kUnit = 16;  // of which no split has a part
  return ((keys + splits - 1) / splits + kUnit - 1) / kUnit * kUnit;
}

}  // namespace mnk
