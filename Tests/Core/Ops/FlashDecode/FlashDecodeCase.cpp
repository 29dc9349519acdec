#include "Ops/FlashDecode/FlashDecodeCase.hpp"

#include <algorithm>
#include <cmath>

namespace mnk::test {

namespace {

// The cache as one that KVCacheQuantize fills: what keys have and values may not is that of one of them.
KVCacheQuantizeCase cacheOf(const FlashDecodeCase& attend, bool isKeys) {
  return {.write = {.cache = attend.cache,
                    .cacheLayout = attend.layout,
                    .heads = attend.kvHeads,
                    .headDim = attend.headDim,
                    .valueHeadDim = attend.valueHeadDim,
                    .capacity = attend.slots(),
                    .sequences = attend.cacheSequences,
                    .cacheShift = attend.cacheShift},
          .keyCodec = attend.keyCodec.value_or(KVCodec()),
          .valueCodec = attend.valueCodec.value_or(KVCodec()),
          .hasMeans = isKeys ? attend.hasKeyMeans : attend.hasValueMeans,
          .hasChannelScales = attend.hasChannelScales};
}

Tensor makeDense(const FlashDecodeCase& attend, bool isKeys, const MakeNamedTensor& makeTensor) {
  const uint64_t headDim = !isKeys ? attend.valueHeadDim : attend.isOneTensor ? attend.queryDim() : attend.headDim;
  return makeTensor(isKeys ? "keys" : "values", attend.cache, cacheShape(cacheOf(attend, isKeys).write, headDim),
                    attend.cacheShift);
}

QuantizedKVPlane makePlane(const FlashDecodeCase& attend, bool isKeys, const MakeNamedTensor& makeTensor) {
  const bool isCoded = (isKeys ? attend.keyCodec : attend.valueCodec).has_value();
  if (isCoded) return makeCachePlane(cacheOf(attend, isKeys), isKeys, makeTensor);
  return {.codes = makeDense(attend, isKeys, makeTensor)};
}

uint32_t queryRank(const FlashDecodeCase& attend) {
  return attend.rank ? attend.rank : attend.querySequences() > 1 ? 4 : 3;
}

// The axes of token-major queries before the last, and one more where `each` is not 0.
Shape rowsShape(const FlashDecodeCase& attend, uint64_t each, uint32_t rank = 0) {
  if (rank == 0) rank = queryRank(attend);
  std::vector<uint64_t> extents;
  if (rank == 4) extents.push_back(attend.querySequences());
  if (rank >= 3) extents.push_back(attend.queryRows());
  extents.push_back(attend.heads());
  if (each) extents.push_back(each);
  return REQUIRE(Shape::make(extents));
}

HeadsView makeQueries(const FlashDecodeCase& attend, const MakeNamedTensor& makeTensor) {
  const auto make = [&](const std::vector<uint64_t>& extents) {
    return makeTensor("queries", attend.queries, REQUIRE(Shape::make(extents)), attend.queryShift);
  };
  const bool hasSequences = queryRank(attend) == 4;
  const uint64_t sequences = attend.querySequences(), rows = attend.queryRows(), gap = attend.queryGap;
  std::vector<uint64_t> extents;
  if (hasSequences) extents.push_back(sequences);
  switch (attend.queryPlaces) {
    case QueryPlaces::tokenMajor:
      break;
    case QueryPlaces::headMajor:
      extents.insert(extents.end(), {attend.heads(), rows, attend.queryDim()});
      return HeadsView(make(extents), KVLayout::headMajor);
    case QueryPlaces::columns:
      extents.insert(extents.end(), {rows, gap + attend.heads() * attend.queryDim() + 2 * gap});
      return REQUIRE(HeadsView::columns(make(extents), gap, attend.heads(), attend.queryDim()));
    case QueryPlaces::gaps: {
      // Rows lie closest, then sequences, then heads.
      HeadsView::Strides strides{.sequences = sequences,
                                 .tokens = rows,
                                 .heads = attend.heads(),
                                 .headDim = attend.queryDim(),
                                 .offset = 2 * gap};
      strides.tokenStride = attend.queryDim() + gap;
      strides.sequenceStride = rows * strides.tokenStride + gap;
      strides.headStride = sequences * strides.sequenceStride + gap;
      return HeadsView(make({strides.offset + attend.heads() * strides.headStride}), strides);
    }
  }
  return makeTensor("queries", attend.queries, rowsShape(attend, attend.queryDim()), attend.queryShift);
}

Shape maskShape(const FlashDecodeCase& attend) {
  const MaskCase& mask = *attend.mask;
  std::vector<uint64_t> extents;
  if (mask.rank == 4) extents.push_back(mask.servesAllSequences ? 1 : attend.sequences.size());
  if (mask.rank >= 3) extents.push_back(mask.servesAllHeads ? 1 : attend.heads());
  extents.push_back(mask.servesAllRows ? 1 : attend.rows);
  extents.push_back(std::min(attend.longest(), attend.slots()) + mask.extraKeys);
  return REQUIRE(Shape::make(extents));
}

template <auto field>
NumberOption numberOption(const char* name, std::vector<double> valid, std::vector<double> invalid) {
  static constexpr auto set = []<typename Number>(Number& number, double to) { number = static_cast<Number>(to); };
  return {name,
          std::is_same_v<decltype(field), float AttentionOptions::*>,
          [](const AttentionOptions& options) { return static_cast<double>(options.*field); },
          [](AttentionOptions& options, double number) { set(options.*field, number); },
          std::move(valid),
          std::move(invalid)};
}

}  // namespace

uint64_t FlashDecodeCase::longest() const {
  return sequences.empty() ? 0 : std::ranges::max(sequences, {}, &AttendedSequence::length).length;
}

uint64_t FlashDecodeCase::slots() const {
  return capacity ? capacity : longest() + 3;
}

uint64_t FlashDecodeCase::rowsBefore(uint64_t sequence) const {
  uint64_t before = 0;
  for (uint64_t s = 0; s < sequence; ++s) before += rowsOf(s);
  return before;
}

uint64_t FlashDecodeCase::scratchBytes(uint64_t splits) const {
  const uint64_t vectors = rowsBefore(sequences.size()) * heads();
  return splits > 1 ? vectors * splits * (valueHeadDim + 2) * sizeof(float) : 0;
}

bool FlashDecodeCase::fitsMatrices() const {
  if (headDim != valueHeadDim || headDim < 64 || headDim > 256) return false;
  return isQuantized() ? !isMixed()
                       : cache == DType::f16 && !mask && (headDim == 64 || headDim == 128 || headDim == 256);
}

bool FlashDecodeCase::mayBePrefilled() const {
  if (options.kernel != AttentionOptions::Kernel::automatic || options.merge == AttentionOptions::Merge::inKernel) {
    return false;
  }
  if (isLatent) return rows * group > 1;
  const bool hasKernel =
      headDim == 64 || headDim == 80 || headDim == 96 || headDim == 128 || headDim == 192 || headDim == 256;
  return hasKernel && headDim == valueHeadDim && rows > FlashDecode::kRowsPerPass;
}

std::span<const NumberOption> numberOptions() {
  static const NumberOption all[] = {
#include "Ops/FlashDecode/Generated/NumberOptions.inc"
  };
  static_assert(std::size(all) == std::tuple_size_v<decltype(numbersOf(AttentionOptions()))>,
                "an option has no valid numbers");
  return all;
}

void setFloats(AttentionOptions& options, Seeded* random) {
  // Numbers of their own, so that a new option does not change what is drawn after these.
  Seeded own(random ? random->next() : 0);
  for (const auto& [name, isFloat, get, set, valid, invalid] : numberOptions()) {
    if (!isFloat || get(options) != 0 || (random && own.below(3) != 0)) continue;
    set(options, valid[random ? own.below(valid.size()) : 0]);
  }
}

FlashDecode makeOp(const FlashDecodeCase& attend, const MakeNamedTensor& makeTensor) {
  FlashDecode op;
  op.queries = makeQueries(attend, makeTensor);
  const auto latentDim = static_cast<uint32_t>(attend.isLatent ? attend.valueHeadDim : 0);
  if (attend.isQuantized()) {
    op.cache = QuantizedKVCacheView{.keys = makePlane(attend, true, makeTensor),
                                    .values = makePlane(attend, false, makeTensor),
                                    .layout = attend.layout,
                                    .wrap = attend.wrap,
                                    .pinned = attend.pinned,
                                    .latentDim = latentDim};
  } else {
    KVCacheView view{.keys = makeDense(attend, true, makeTensor),
                     .layout = attend.layout,
                     .wrap = attend.wrap,
                     .pinned = attend.pinned,
                     .latentDim = latentDim};
    if (!attend.isOneTensor) view.values = makeDense(attend, false, makeTensor);
    op.cache = view;
  }
  op.sequences = attend.sequences;
  for (AttendedSequence& each : op.sequences) {
    const uint64_t rows = each.rows != 0 ? each.rows : attend.rows;
    if (attend.givesPartials && !each.position) each.position = static_cast<int64_t>(each.length - rows);
  }
  op.options = attend.options;
  const Shape perHead = REQUIRE(Shape::make({attend.heads()}));
  if (attend.mask) op.options.mask = makeTensor("mask", attend.mask->dtype, maskShape(attend), 0);
  if (attend.hasSlopes) op.options.slopes = makeTensor("slopes", DType::f32, perHead, 0);
  if (attend.hasSinks) op.options.sinks = makeTensor("sinks", DType::f32, perHead, 0);
  if (attend.givesPartials) {
    op.results.partials = {
        .sums = makeTensor("sums", DType::f32, rowsShape(attend, attend.valueHeadDim), attend.intoShift),
        .stats = makeTensor("stats", DType::f32, rowsShape(attend, 2), 0)};
  } else {
    op.results.output =
        makeTensor("into", attend.into, rowsShape(attend, attend.valueHeadDim, attend.resultRank), attend.intoShift);
  }
  if (attend.givesLogSumExp) {
    op.results.logSumExp = makeTensor("log sum exp", DType::f32, rowsShape(attend, 0), 0);
  }
  if (attend.hasScratch) {
    const uint64_t bytes = attend.scratchBytes(attend.options.splits);
    op.scratch = makeTensor("scratch", DType::u8, REQUIRE(Shape::make({bytes})), 0);
  }
  return op;
}

}  // namespace mnk::test
