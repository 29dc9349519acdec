#include "Ops/FlashDecodeLayout.hpp"

#include <algorithm>
#include <cmath>

#include "Ops/FlashDecodeRules.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

constexpr uint64_t kThreadgroupBytes = 32 * 1024;
constexpr uint64_t kSequencesPerPass = 4096 / sizeof(FlashDecodeSequence);  // what travels with a dispatch
constexpr uint64_t kSplitUnit = 16;  // keys of the matrix kernel's tiles, of which no split has a part

uint64_t ceilDivide(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

std::vector<FlashDecodePass> passesOf(const FlashDecode& op, const QueryShape& queries) {
  std::vector<FlashDecodePass> passes;
  for (uint64_t sequence = 0; sequence < queries.sequences; sequence += kSequencesPerPass) {
    for (uint64_t row = 0; row < queries.rows; row += FlashDecode::kRowsPerPass) {
      FlashDecodePass pass{.firstRow = row,
                           .rows = std::min(queries.rows - row, FlashDecode::kRowsPerPass),
                           .firstSequence = sequence,
                           .sequences = {},
                           .keys = {}};
      const uint64_t end = std::min(queries.sequences, sequence + kSequencesPerPass);
      for (uint64_t index = sequence; index < end; ++index) {
        const AttendedSequence& attended = op.sequences[index];
        const AttendedKeys keys = keysOf(op, attended, pass.firstRow);
        const KeyRange seen = keysSeen(op, keys, attended.length, pass.firstRow, pass.rows);
        pass.keys.push_back(seen);
        pass.sequences.push_back({.sequence = static_cast<uint32_t>(attended.sequence),
                                  .hidden = static_cast<uint32_t>(keys.hidden),
                                  .length = static_cast<uint32_t>(attended.length),
                                  .skipped = static_cast<uint32_t>(keys.skipped),
                                  .start = static_cast<uint32_t>(keys.start),
                                  .firstKey = static_cast<uint32_t>(seen.first),
                                  .endKey = static_cast<uint32_t>(seen.end),
                                  .splitKeys = 0});
      }
      passes.push_back(std::move(pass));
    }
  }
  return passes;
}

}  // namespace

bool wantsMatrices(const FlashDecode& op, const DeviceProfile& profile) {
  if (!canUseMatrices(op) || op.options.kernel == FlashDecodeKernel::vector) return false;
  if (op.options.kernel == FlashDecodeKernel::matrix) return true;
  // Halves have neither their range nor their precision.
  if (op.queries.tensor.dtype() == DType::f32) return false;
  const QueryShape queries = queryShape(op.queries);
  const uint64_t rows = queries.heads / slotsOf(op).heads() * std::min(queries.rows, FlashDecode::kRowsPerPass);
  const FlashDecodeTuning tuning = tuningFor(profile);
  return rows >= (quantizedOf(op) ? tuning.codedMatrixRows : tuning.denseMatrixRows);
}

bool mayMergeTogether(const FlashDecode& op, const DeviceProfile& profile) {
  if (op.options.merge != FlashDecodeMerge::automatic) return op.options.merge == FlashDecodeMerge::together;
  return tuningFor(profile).mostSplitsTogether > 1;
}

FlashDecodeLayout FlashDecodeLayout::of(const FlashDecode& op, const FlashDecodeTarget& target) {
  FlashDecodeLayout layout{.tuning = tuningFor(target.profile),
                           .queries = queryShape(op.queries),
                           .keyDim = keyDimOf(op),
                           .valueDim = valueDimOf(op),
                           .hasRowMajorMatrices = target.hasRowMajorMatrices,
                           .passes = {}};
  const uint64_t kvHeads = slotsOf(op).heads();
  layout.group = layout.queries.heads / kvHeads;
  layout.passes = passesOf(op, layout.queries);
  const uint64_t rows = layout.group * layout.passes.front().rows;
  layout.usesMatrices = target.hasMatrices && wantsMatrices(op, target.profile);
  layout.instance = vectorInstance(layout.keyDim, layout.valueDim, rows);
  layout.rowsTogether = layout.usesMatrices ? uint32_t{kFlashDecodeMatrixRows} : layout.instance.rows;
  uint64_t longest = 0;
  for (const FlashDecodePass& pass : layout.passes) {
    for (const KeyRange& keys : pass.keys) longest = std::max(longest, keys.count());
  }
  const uint64_t threadgroups = kvHeads * layout.queries.sequences * layout.rowGroups(layout.passes.front());
  layout.splits = op.options.splits != 0 ? op.options.splits
                                         : automaticSplits(layout.tuning, target.profile, threadgroups, longest);
  const bool areFew =
      op.options.merge == FlashDecodeMerge::together || layout.splits <= layout.tuning.mostSplitsTogether;
  layout.mergesTogether =
      target.ordersThreadgroups && mayMergeTogether(op, target.profile) && layout.splits > 1 && areFew;
  layout.simdgroups = layout.usesMatrices ? layout.tuning.matrixSimdgroups : layout.tuning.vectorSimdgroups;
  while (layout.simdgroups > 1 && layout.threadgroupBytes(op, layout.simdgroups) > kThreadgroupBytes) {
    --layout.simdgroups;
  }
  for (FlashDecodePass& pass : layout.passes) {
    for (FlashDecodeSequence& sequence : pass.sequences) {
      const uint64_t share = ceilDivide(sequence.endKey - sequence.firstKey, layout.splits);
      sequence.splitKeys = static_cast<uint32_t>(ceilDivide(share, kSplitUnit) * kSplitUnit);
    }
  }
  return layout;
}

uint64_t FlashDecodeLayout::rowGroups(const FlashDecodePass& pass) const {
  return ceilDivide(group * pass.rows, rowsTogether);
}

std::string FlashDecodeLayout::function() const {
  if (usesMatrices) return fmt::format("flashDecodeMatrix_{}", keyDim);
  return fmt::format("flashDecodeVector_{}_{}_{}", instance.keyDim, instance.valueDim, instance.rows);
}

uint32_t FlashDecodeLayout::threadgroupBytes(const FlashDecode& op, uint32_t count) const {
  // The first pass has the most rows. The vector kernel merges those that pad others, too.
  const uint64_t rows = std::min<uint64_t>(rowsTogether, group * passes.front().rows);
  const uint64_t parts = count * (usesMatrices ? rows : rowsTogether);
  const uint64_t counting = mergesTogether ? kFlashDecodeCountBytes : 0;
  const uint64_t merging = counting + mergingBytes(parts, usesMatrices ? valueDim : instance.valueDim);
  uint64_t levels = 0;
  if (usesMatrices) {
    levels = kFlashDecodeMatrixTableBytes + kFlashDecodeMatrixRows * (keyDim + 1) * sizeof(float);
  } else if (const QuantizedKVCacheView* quantized = quantizedOf(op)) {
    levels =
        ((uint64_t{1} << quantized->keys.codec.bits) + (uint64_t{1} << quantized->values->codec.bits)) * sizeof(float);
  }
  return static_cast<uint32_t>(std::max(merging, levels));
}

uint64_t FlashDecodeLayout::countBytes(const FlashDecode& op, const FlashDecodePass& pass) const {
  const uint64_t counts = slotsOf(op).heads() * rowGroups(pass) * pass.sequences.size();
  constexpr uint64_t kUnit = 16;  // so that the next pass starts where any device can bind memory
  return mergesTogether ? ceilDivide(counts * sizeof(uint32_t), kUnit) * kUnit : 0;
}

uint64_t mergingBytes(uint64_t parts, uint64_t headDim) {
  return (ceilDivide(2 * parts, 4) * 4 + parts * headDim) * sizeof(float);
}

uint32_t finishChunks(uint64_t headDim) {
  return headDim <= 128 ? 1 : headDim <= 256 ? 2 : 4;
}

FlashDecodeFinish finishOf(uint64_t heads, uint64_t kvHeads, uint64_t headDim) {
  return {.heads = static_cast<uint32_t>(heads),
          .kvHeads = static_cast<uint32_t>(kvHeads),
          .headDim = static_cast<uint32_t>(headDim),
          .lanes = static_cast<uint32_t>(headDim / (4 * finishChunks(headDim))),
          .inverseRoot = static_cast<float>(1 / std::sqrt(static_cast<double>(headDim)))};
}

}  // namespace mnk
