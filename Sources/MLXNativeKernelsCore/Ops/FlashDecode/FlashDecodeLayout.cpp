#include "Ops/FlashDecode/FlashDecode.hpp"

#include <algorithm>
#include <bit>

#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr uint64_t kThreadgroupBytes = 32 * 1024;
constexpr uint32_t kMinPrefillKeys = 512;  // of a split
constexpr uint32_t kMinLatentKeys = 32;    // of a split; latent rows are few and long
// Inline data of a dispatch is limited to 4 KiB.
constexpr uint64_t kSequencesPerPass = 4096 / sizeof(FlashDecodeSequence);

uint64_t ceilDivide(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

Error noMatrices() {
  return Error{.code = ErrorCode::unsupported,
               .op = std::string(FlashDecode::name),
               .what = "the device cannot run the matrix kernel",
               .got = "no device, the Host device, or a GPU whose layout of simdgroup matrices is not known",
               .expected = "a GPU on which a lane holds two neighbors of a row of an 8 x 8 matrix",
               .fix = "Use automatic."};
}

Error noOrder() {
  return Error{.code = ErrorCode::unsupported,
               .op = std::string(FlashDecode::name),
               .what = "in-kernel merging needs device-scope memory fences",
               .got = "a library of kernels that was compiled without fences for the device, or an unknown device",
               .expected = "kernels that were compiled in language version 3.2 or newer",
               .fix = "Use automatic."};
}

MeasuredChoice measuredFor(const AttentionShape& shape, const DeviceProfile& profile) {
  if (!profile.measuredTuning) return std::nullopt;
  return profile.measuredTuning->find(workloadOf(shape, profile));
}

std::vector<FlashDecodePass> passesOf(const AttentionShape& shape, uint64_t rowsPerPass) {
  const uint64_t sequences = shape.sequences.size();
  std::vector<uint64_t> firstRows;  // the first row of each sequence among all rows
  if (shape.isRagged) {
    firstRows.push_back(0);
    for (const AttendedSequence& attended : shape.sequences) firstRows.push_back(firstRows.back() + attended.rows);
  }
  std::vector<FlashDecodePass> passes;
  for (uint64_t sequence = 0; sequence < sequences; sequence += kSequencesPerPass) {
    for (uint64_t row = 0; row < shape.longestRows; row += rowsPerPass) {
      FlashDecodePass pass{.firstRow = row, .firstSequence = sequence, .sequences = {}};
      const uint64_t end = std::min(sequences, sequence + kSequencesPerPass);
      for (uint64_t index = sequence; index < end; ++index) {
        const AttendedSequence& attended = shape.sequences[index];
        const uint64_t left = shape.rowsOf(attended) - std::min(shape.rowsOf(attended), row);
        if (left == 0) continue;
        const uint64_t rows = std::min(left, rowsPerPass);
        pass.rows = std::max(pass.rows, rows);
        if (!firstRows.empty()) {
          pass.indices.push_back(static_cast<uint32_t>(index));
          pass.runs.push_back({.firstGroup = 0,
                               .rowGroups = 0,
                               .firstRow = static_cast<uint32_t>(firstRows[index] + row),
                               .rows = static_cast<uint32_t>(rows),
                               .rowsLeft = static_cast<uint32_t>(left)});
        }
        const AttendedKeys keys = shape.keysOf(attended, row);
        const KeyRange seen = shape.keysSeen(keys, attended, row, rows);
        pass.sequences.push_back({.sequence = static_cast<uint32_t>(numberOf(attended.sequence)),
                                  .hidden = static_cast<uint32_t>(keys.hidden),
                                  .rowsEnd = static_cast<int32_t>(shape.firstPosition(attended) +
                                                                  static_cast<int64_t>(shape.rowsOf(attended))),
                                  .skipped = static_cast<uint32_t>(keys.skipped),
                                  .start = static_cast<uint32_t>(keys.start),
                                  .firstKey = static_cast<uint32_t>(seen.first),
                                  .endKey = static_cast<uint32_t>(seen.end),
                                  .splitKeys = 0});
      }
      if (pass.rows != 0) passes.push_back(std::move(pass));
    }
  }
  return passes;
}

// f16 tiles serve f16 and quantized caches, with f16 or bf16 queries.
PrefillInstance prefillOf(const AttentionShape& shape, uint32_t maxBlocks = UINT32_MAX) {
  const bool isHalf =
      shape.queryView.tensor.dtype() != DType::f32 && shape.denseType.value_or(DType::f16) == DType::f16;
  return prefillInstance(shape.keyDim, shape.valueDim, isHalf, shape.isLatent(), maxBlocks);
}

bool wantsPrefill(const AttentionShape& shape, const FlashDecodeTuning& tuning, const MeasuredChoice& measured) {
  const AttentionOptions& options = shape.options;
  if (options.kernel != AttentionOptions::Kernel::automatic || options.merge == AttentionOptions::Merge::inKernel)
    return false;
  const uint64_t group = shape.isLatent() ? shape.group() : 1;
  const uint32_t least = shape.isLatent() ? tuning.minLatentRows : tuning.minPrefillRows;
  const bool isLong = shape.longestRows * group >= least;
  return (measured ? measured->usesPrefill : isLong) && prefillOf(shape).parts != 0;
}

bool wantsMatrices(const AttentionShape& shape, const FlashDecodeTuning& tuning, const MeasuredChoice& measured) {
  if (!shape.canUseMatrices()) return false;
  if (shape.options.kernel != AttentionOptions::Kernel::automatic)
    return shape.options.kernel == AttentionOptions::Kernel::matrix;
  if (shape.queryView.tensor.dtype() == DType::f32) return false;  // halves do not have its precision
  if (measured) return measured->usesMatrices;
  if (shape.keyDim > tuning.matrixHeadDim) return false;
  const uint64_t rows = shape.group() * std::min(shape.longestRows, FlashDecode::kRowsPerPass);
  return rows >= (shape.quantized ? tuning.quantizedMatrixRows : tuning.denseMatrixRows);
}

AttentionKernel kernelOf(const FlashDecodeChoice& choice) {
  if (choice.usesPrefill) return AttentionKernel::prefill;
  return choice.usesMatrices ? AttentionKernel::matrix : AttentionKernel::vector;
}

AttentionKernel kernelOn(const AttentionShape& shape, const DeviceProfile& profile, const MeasuredChoice& measured) {
  if (profile.matrixLayout == MatrixLayout::unknown) return AttentionKernel::vector;
  return wantedKernel(shape, profile, measured);
}

bool mayMergeInKernel(const AttentionShape& shape, const DeviceProfile& profile, const MeasuredChoice& measured) {
  if (shape.options.merge != AttentionOptions::Merge::automatic)
    return shape.options.merge == AttentionOptions::Merge::inKernel;
  if (measured) return measured->mergesInKernel;
  return tuningFor(profile).maxInKernelSplits > 1;
}

// Whether the matrix kernel needs a table for the plane.
bool looksUpLevels(const QuantizedKVPlane& plane) {
  return plane.codec.name != KVCodec::Name::turbo || !kTurboHasCurve(plane.codec.bits);
}

}  // namespace

std::vector<ElementRun> FlashDecodePass::joinedRuns() const {
  std::vector<ElementRun> joined;
  for (const FlashDecodeRun& run : runs) {
    const bool follows = !joined.empty() && joined.back().begin + joined.back().count == run.firstRow;
    if (!follows) joined.push_back({run.firstRow, 0});
    joined.back().count += run.rows;
  }
  return joined;
}

void FlashDecodePass::addReads(const AttentionShape& shape, uint64_t vectorBytes, std::vector<Region>& regions) const {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const AttendedSequence& attended = this->attended(shape, i);
    const SlotRuns slots = shape.keysOf(attended, firstRow).slots(sequences[i].firstKey, sequences[i].endKey);
    addSlotRegions(regions, shape.slots, numberOf(attended.sequence), slots, vectorBytes);
  }
}

void FlashDecodePass::addDenseReads(const AttentionShape& shape, bool areKeys, std::vector<Region>& regions) const {
  const uint64_t bytes = (areKeys ? shape.keyVector : shape.valueVector).codeBytes;
  if (!shape.isOneTensor()) return addReads(shape, bytes, regions);
  const uint64_t vectorBytes = shape.keyVector.codeBytes + shape.valueVector.codeBytes;
  std::vector<Region> whole;
  addReads(shape, vectorBytes, whole);
  for (const Region& region : whole) {
    for (uint64_t row = 0; row < region.rows; ++row) {
      regions.push_back({.offset = region.offset + row * region.rowStride + (areKeys ? vectorBytes - bytes : 0),
                         .rowBytes = bytes,
                         .rowStride = vectorBytes,
                         .rows = region.rowBytes / vectorBytes});
    }
  }
}

AttentionKernel wantedKernel(const AttentionShape& shape, const DeviceProfile& profile,
                             const MeasuredChoice& measured) {
  const FlashDecodeTuning& tuning = tuningFor(profile);
  if (wantsPrefill(shape, tuning, measured)) return AttentionKernel::prefill;
  return wantsMatrices(shape, tuning, measured) ? AttentionKernel::matrix : AttentionKernel::vector;
}

FlashDecodeWorkload workloadOf(const AttentionShape& shape, const DeviceProfile& profile) {
  const bool isPrompt =
      shape.longestRows > FlashDecode::kRowsPerPass && kernelOn(shape, profile, {}) == AttentionKernel::prefill;
  return FlashDecodeWorkload::of(shape, isPrompt);
}

Result<FlashDecodeLayout> layoutFor(const AttentionShape& shape, const DeviceProfile& profile, MeasuredChoice choice) {
  const bool hasMatrices = profile.matrixLayout != MatrixLayout::unknown;
  if (!hasMatrices && shape.options.kernel == AttentionOptions::Kernel::matrix) return noMatrices();
  if (!profile.ordersThreadgroups && shape.options.merge == AttentionOptions::Merge::inKernel) return noOrder();
  if (!choice) choice = measuredFor(shape, profile);
  // A measured choice applies only to the kernel that it was measured with.
  if (choice && kernelOn(shape, profile, choice) != kernelOf(*choice)) choice.reset();
  return FlashDecodeLayout::of(shape, profile, choice);
}

Result<FlashDecodeLayout> layoutFor(const AttentionShape& shape, Device& device) {
  auto profile = device.sharedProfile();
  if (profile->matrixLayout == MatrixLayout::unknown) {
    // Prompts have measured choices of their own once the layout is known.
    const bool needsLayout = wantedKernel(shape, *profile) == AttentionKernel::prefill ||
                             wantedKernel(shape, *profile, measuredFor(shape, *profile)) != AttentionKernel::vector;
    if (needsLayout) profile = device.sharedProbe();
  }
  return layoutFor(shape, *profile);
}

FlashDecodeLayout FlashDecodeLayout::of(const AttentionShape& shape, const DeviceProfile& profile,
                                        const MeasuredChoice& measured) {
  FlashDecodeLayout layout{.shape = &shape,
                           .tuning = tuningFor(profile),
                           .kernel = kernelOn(shape, profile, measured),
                           .hasRowMajorMatrices = profile.matrixLayout == MatrixLayout::rowMajor,
                           .passes = {}};
  layout.rows = layout.usesPrefill() ? shape.longestRows : std::min(shape.longestRows, FlashDecode::kRowsPerPass);
  layout.passes = passesOf(shape, layout.rows);
  const uint64_t rows = shape.group() * layout.rows;
  if (layout.usesPrefill()) {
    layout.prefill = prefillOf(shape, measured ? measured->rowsPerTile / 8 : layout.tuning.maxPrefillBlocks);
  }
  if (layout.usesMatrices()) {
    const uint32_t dim = matrixDim(shape.keyDim, shape.quantized != nullptr);
    layout.instance = {dim, dim, measured ? measured->rowsPerTile : matrixRows(layout.tuning, dim, rows)};
  } else {
    layout.instance =
        vectorInstance(layout.tuning, shape.keyDim, shape.valueDim, rows, shape.quantized != nullptr, shape.isLatent());
  }
  layout.rowsPerTile = layout.instance.rows;
  if (layout.usesPrefill() && measured) {
    layout.setPrefillRows(rows, measured->simdgroups);
  } else if (layout.usesPrefill()) {
    layout.choosePrefillRows(rows, coresOf(layout.tuning, profile));
  }
  uint64_t longest = 0;
  for (const FlashDecodePass& pass : layout.passes) {
    for (const FlashDecodeSequence& keys : pass.sequences) {
      longest = std::max<uint64_t>(longest, keys.endKey - keys.firstKey);
    }
  }
  if (shape.options.splits != 0) {
    layout.splits = shape.options.splits;
  } else if (measured) {
    // The choice may come from a damaged file: limits the memory of all parts.
    constexpr uint64_t kMaxPartBytes = uint64_t{1} << 28;
    const uint64_t bytes = shape.queryVectors() * (shape.valueDim + 2) * sizeof(float);  // of a split
    const uint64_t most = std::max<uint64_t>(kMaxPartBytes / bytes, 1);
    layout.splits = withoutEmptySplits(std::min<uint64_t>(measured->splits, most), longest);
  } else {
    FlashDecodeTuning tuning = layout.tuning;
    if (layout.usesPrefill()) {  // parts of many rows are expensive to store and to merge
      tuning.threadgroupsPerCore = 1;
      tuning.fillsCores = shape.isLatent();
      tuning.minSplitKeys = shape.isLatent() ? kMinLatentKeys : kMinPrefillKeys;
    }
    if (layout.usesVectors() && layout.isLong()) tuning.threadgroupsPerCore *= tuning.longVectorFactor;
    layout.splits = automaticSplits(tuning, profile, layout.threadgroups(), longest);
  }
  const bool areFew = shape.options.merge == AttentionOptions::Merge::inKernel || measured ||
                      layout.splits <= layout.tuning.maxInKernelSplits;
  layout.mergesInKernel = !layout.usesPrefill() && profile.ordersThreadgroups &&
                          mayMergeInKernel(shape, profile, measured) && layout.splits > 1 && areFew;
  if (!layout.usesPrefill()) {
    layout.simdgroups = measured ? measured->simdgroups : layout.automaticSimdgroups(longest);
  }
  while (layout.simdgroups > 1 && !layout.usesPrefill() &&
         layout.threadgroupBytes(layout.simdgroups) > kThreadgroupBytes) {
    --layout.simdgroups;
  }
  if (layout.usesMatrices() && measured) {
    layout.tileKeys = measured->tileKeys;
  } else if (layout.usesMatrices()) {
    // Large tiles pay off only if each simdgroup has at least two of them.
    constexpr uint64_t kUsual = 16;
    const uint32_t elements = shape.quantized ? layout.tuning.quantizedMatrixTile : layout.tuning.denseMatrixTile;
    const uint64_t most = std::max(splitKeys(longest, layout.splits) / layout.simdgroups / 2, kUsual);
    const uint64_t tile = std::max<uint64_t>(elements / layout.instance.keyDim, layout.tuning.minMatrixKeys);
    layout.tileKeys = matrixTileKeys(layout.instance.keyDim, layout.rowsPerTile, std::min(tile, most));
  }
  for (FlashDecodePass& pass : layout.passes) {
    for (FlashDecodeSequence& sequence : pass.sequences) {
      sequence.splitKeys = static_cast<uint32_t>(splitKeys(sequence.endKey - sequence.firstKey, layout.splits));
    }
    uint32_t groups = 0;
    for (FlashDecodeRun& run : pass.runs) {
      run.firstGroup = groups;
      run.rowGroups = static_cast<uint32_t>(layout.rowGroups(run.rows));
      groups += run.rowGroups;
    }
  }
  return layout;
}

bool FlashDecodeLayout::isLong() const {
  const bool isPaddedToPower = isPadded() && std::has_single_bit(instance.keyDim) && instance.keyDim >= 128;
  return isPaddedToPower || (shape->keyDim == 512 && shape->valueDim == 512);
}

uint64_t FlashDecodeLayout::rowGroups(uint64_t ofSequence) const {
  return ceilDivide(shape->group() * ofSequence, rowsPerTile);
}

uint64_t FlashDecodeLayout::rowGroups(const FlashDecodePass& pass) const {
  if (pass.runs.empty()) return rowGroups(pass.rows) * pass.sequences.size();
  uint64_t all = 0;
  for (const FlashDecodeRun& run : pass.runs) all += rowGroups(run.rows);
  return all;
}

void FlashDecodeLayout::setPrefillRows(uint64_t headRows, uint32_t maxSimdgroups) {
  const uint64_t rowsPerSimdgroup = uint64_t{8} * prefill.rowBlocks;
  uint32_t together = std::max(maxSimdgroups / prefill.parts, 1u);
  while (together > 1 && threadgroupBytes(together * prefill.parts) > kThreadgroupBytes) --together;
  const uint64_t most = together * rowsPerSimdgroup;
  rowsPerTile = static_cast<uint32_t>(kFlashPrefillTileRows(headRows, ceilDivide(headRows, most), rowsPerSimdgroup));
  simdgroups = static_cast<uint32_t>(rowsPerTile / rowsPerSimdgroup * prefill.parts);
}

void FlashDecodeLayout::choosePrefillRows(uint64_t headRows, uint64_t cores) {
  // Loads and barriers of a tile take as long as the arithmetic of this many simdgroups.
  constexpr uint64_t kTileOverhead = 16;
  constexpr uint32_t kFewest = 4;
  setPrefillRows(headRows, tuning.prefillSimdgroups);
  if (shape->isLatent()) return;  // splits keep all cores busy
  uint64_t least = UINT64_MAX;
  uint32_t best = tuning.prefillSimdgroups;
  for (uint32_t most = tuning.prefillSimdgroups; most >= kFewest; --most) {
    setPrefillRows(headRows, most);
    const uint64_t time = ceilDivide(threadgroups(), cores) * (kTileOverhead + simdgroups);
    if (time < least) best = most;
    least = std::min(least, time);
  }
  setPrefillRows(headRows, best);
}

void FlashDecodeLayout::addRepeatedReads(const FlashDecodePass& pass, Dispatch& dispatch) const {
  if (!usesPrefill()) return;
  uint64_t again = 0;
  for (size_t i = 0; i < pass.sequences.size(); ++i) {
    const AttendedSequence& attended = pass.attended(*shape, i);
    const AttendedKeys keys = shape->keysOf(attended, pass.firstRow);
    const uint64_t group = shape->group(), headRows = group * pass.rowsOf(i), unit = uint64_t{8} * prefill.rowBlocks;
    const uint64_t tileRows = kFlashPrefillTileRows(headRows, rowGroups(pass.rowsOf(i)), unit);
    for (uint64_t row = 0; row < headRows; row += tileRows) {
      const uint64_t end = std::min(row + tileRows, headRows);
      const uint64_t first = row / group, last = (end - 1) / group;
      again += shape->keysSeen(keys, attended, pass.firstRow + first, last - first + 1).count();
    }
    again -= pass.sequences[i].endKey - pass.sequences[i].firstKey;
  }
  const uint64_t bytes = shape->keyVector.byteCount() + shape->valueVector.byteCount();
  dispatch.bytesRead.reset();
  dispatch.bytesRead = dispatch.countedBytesRead() + again * shape->slots.heads * bytes;
}

FlashDecodeFinish FlashDecodeLayout::finish() const {
  constexpr uint32_t kPrefillChunks = 2;
  const uint32_t chunks = usesPrefill() && !shape->isLatent() ? kPrefillChunks : finishChunks(instance.valueDim);
  return finishOf(shape->queries.heads, shape->slots.heads, shape->valueDim, chunks);
}

uint64_t FlashDecodeLayout::threadgroups() const {
  uint64_t groups = 0;
  for (const FlashDecodePass& pass : passes) {
    if (pass.firstRow == 0) groups += rowGroups(pass);
  }
  return shape->slots.heads * groups;
}

FlashDecodeChoice FlashDecodeLayout::choice() const {
  return {.usesMatrices = usesMatrices(),
          .usesPrefill = usesPrefill(),
          .rowsPerTile = usesMatrices() ? rowsPerTile : 8 * prefill.rowBlocks,
          .tileKeys = usesMatrices() ? tileKeys : prefill.keys,
          .simdgroups = simdgroups,
          .splits = splits,
          .mergesInKernel = mergesInKernel};
}

uint32_t FlashDecodeLayout::automaticSimdgroups(uint64_t longest) const {
  const uint32_t wanted = usesMatrices() ? tuning.matrixSimdgroups : tuning.vectorSimdgroups;
  // All simdgroups of the matrix kernel rotate queries and fill codebook tables, even those without a tile.
  if (usesMatrices() && shape->quantized) {
    // More of them than usual hide more latency in long splits, where instances need few registers.
    constexpr uint64_t kLong = 2048;
    const QuantizedKVCacheView& cache = *shape->quantized;
    const bool areFew = shape->keyDim <= 128 && !isPadded() && rowsPerTile == 8 && cache.keys.codec.bits == 4 &&
                        cache.values->codec.bits == 4;
    return areFew && splitKeys(longest, splits) >= kLong ? std::max(wanted, tuning.longMatrixSimdgroups) : wanted;
  }
  // In other kernels, a simdgroup is useful only if it has its own tile, or for the merge.
  constexpr uint64_t kTile = 16, kLeast = 4;
  const uint64_t tiles = ceilDivide(splitKeys(longest, splits), kTile);
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, std::max(tiles, kLeast)));
}

std::string FlashDecodeLayout::function() const {
  if (usesPrefill()) {
    const std::string dim = shape->isLatent() ? "" : fmt::format("{}_", prefill.dim);
    return fmt::format("flashPrefill_{}{}_{}{}_{}", shape->isLatent() ? "latent_" : "", prefill.isHalf ? "f16" : "f32",
                       dim, prefill.rowBlocks, prefill.keys);
  }
  if (usesMatrices()) return fmt::format("flashDecodeMatrix_{}_{}_{}", instance.keyDim, rowsPerTile, tileKeys);
  return fmt::format("flashDecodeVector_{}{}_{}_{}{}", shape->isLatent() ? "latent_" : "", instance.keyDim,
                     instance.valueDim, instance.rows, tuning.sharesAmongFewLanes ? "_fewLanes" : "");
}

uint32_t FlashDecodeLayout::threadgroupBytes(uint32_t count) const {
  const QuantizedKVCacheView* quantized = shape->quantized;
  uint64_t merging = 0;
  uint64_t levels = 0;
  if (quantized) {
    for (const QuantizedKVPlane* plane : {&quantized->keys, &*quantized->values}) {
      if (!plane->isDense()) levels += (uint64_t{1} << plane->codec.bits) * sizeof(float);
    }
  }
  if (usesPrefill()) {
    const uint64_t parts = prefill.parts > 1 ? count * kFlashPrefillPartBytes(prefill.rowBlocks, prefill.keys) : 0;
    const uint64_t tile = kFlashPrefillTileBytes(prefill.isHalf ? 2 : 4, shape->keyDim + shape->valueDim, prefill.keys);
    return static_cast<uint32_t>(tile + levels + parts);
  }
  if (usesMatrices()) {
    const uint64_t parts = count * kFlashDecodeMatrixPartRows(instance.keyDim);
    merging = mergingBytes(parts, instance.valueDim + kFlashDecodeMatrixPadding);
    const bool hasTables = quantized && (looksUpLevels(quantized->keys) || looksUpLevels(*quantized->values));
    levels =
        hasTables ? uint64_t{1} << tuning.matrixTableBits : kFlashDecodeMatrixQueryBytes(instance.keyDim, rowsPerTile);
  } else {
    merging = mergingBytes(uint64_t{count} * rowsPerTile, instance.valueDim);
  }
  return static_cast<uint32_t>(std::max(merging, levels));
}

uint64_t FlashDecodeLayout::countBytes(const FlashDecodePass& pass) const {
  const uint64_t counts = shape->slots.heads * rowGroups(pass);
  constexpr uint64_t kUnit = 16;  // so that the next pass starts where any device can bind memory
  return mergesInKernel ? ceilDivide(counts * sizeof(uint32_t), kUnit) * kUnit : 0;
}

uint64_t mergingBytes(uint64_t parts, uint64_t headDim) {
  return (ceilDivide(2 * parts, 4) * 4 + parts * headDim) * sizeof(float);
}

uint32_t finishChunks(uint64_t headDim) {
  return headDim <= 128 ? 1 : headDim <= 256 ? 2 : 4;
}

FlashDecodeFinish finishOf(uint64_t heads, uint64_t kvHeads, uint64_t headDim, uint32_t chunks) {
  return {.heads = static_cast<uint32_t>(heads),
          .kvHeads = static_cast<uint32_t>(kvHeads),
          .headDim = static_cast<uint32_t>(headDim),
          .lanes = static_cast<uint32_t>(headDim / (4 * chunks)),
          .inverseRoot = inverseRootOf(headDim)};
}

}  // namespace mnk
