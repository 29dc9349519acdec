#include "Ops/Common/CacheAddressing.hpp"

#include <algorithm>
#include <array>

#include "Common/FunctionConstants.h"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/HeadsMemory.hpp"

namespace mnk {

namespace {

using Op = KVCacheWrite;

using Run = SlotRun;

// Splits a run at the end of its storage and continues the rest at `restart`.
void addWrapped(SlotRuns& runs, Run run, uint64_t end, uint64_t restart) {
  const uint64_t before = std::min(run.count, end - run.begin);
  runs.add({run.begin, before});
  runs.add({restart, run.count - before});
}

bool isContinued(const Region& region, const Region& next) {
  return region.rowBytes == next.rowBytes && region.rowStride == next.rowStride &&
         region.offset + region.rows * region.rowStride == next.offset;
}

SlotRuns sourceRuns(const Op& op, const Placement& placement, uint64_t length) {
  SlotRuns runs;
  const uint64_t others = op.sourceOffset % length + placement.pinnedTokens + placement.skippedTokens;
  addWrapped(runs, {op.sourceOffset % length, placement.pinnedTokens}, length, 0);
  addWrapped(runs, {others % length, placement.otherTokens}, length, 0);
  return runs;
}

SlotRuns cacheRuns(const Op& op, const Placement& placement) {
  SlotRuns runs;
  runs.add({placement.pinnedSlot, placement.pinnedTokens});
  addWrapped(runs, {placement.firstSlot, placement.otherTokens}, op.into.capacity(), op.into.pinned);
  return runs;
}

// Joins sequences whose tokens are evenly spaced into one sequence, in which the kernel needs no division.
HeadsView::Strides joined(HeadsView::Strides source) {
  if (source.tokens == 1) source.tokenStride = source.sequenceStride;
  if (source.sequenceStride != source.tokens * source.tokenStride) return source;
  source.tokens = source.totalTokens();
  source.sequences = 1;
  return source;
}

void bindIndices(Dispatch& dispatch, uint32_t index, const RowIndices& indices) {
  if (const auto* tensor = std::get_if<Tensor>(&indices)) {
    dispatch.buffers.push_back(Binding::whole(index, *tensor, Access::read));
    return;
  }
  dispatch.inlines.push_back(InlineBytes::ofAll(index, std::get<std::vector<uint32_t>>(indices)));
}

std::optional<ListedRows> listedRows(const Op& op) {
  const auto* sequences = std::get_if<std::vector<uint32_t>>(&op.rows->sequences);
  const auto* positions = std::get_if<std::vector<uint32_t>>(&op.rows->positions);
  if (!sequences || !positions) return std::nullopt;
  ListedRows rows{*sequences, *positions};
  // Neighbors after sorting, of which the later row comes last.
  std::vector<std::array<uint64_t, 3>> targets;
  targets.reserve(rows.sequences.size());
  for (size_t row = 0; row < rows.sequences.size(); ++row) {
    targets.push_back({rows.sequences[row], op.into.slotOf(rows.positions[row]), row});
  }
  std::sort(targets.begin(), targets.end());
  for (size_t i = 1; i < targets.size(); ++i) {
    const auto& [sequence, slot, row] = targets[i - 1];
    if (targets[i][0] == sequence && targets[i][1] == slot) rows.sequences[row] = ListedRows::kNowhere;
  }
  return rows;
}

void addCacheRegions(const Op& op, const Placement& placement, uint64_t rowBytes, std::vector<Region>& regions) {
  const KVCacheView& cache = op.into;
  if (!op.rows) {
    return addSlotRegions(regions, SlotExtents::of(cache), numberOf(op.sequence), cacheRuns(op, placement), rowBytes);
  }
  if (!placement.rows) {
    const uint64_t bytes = cache.sequences() * cache.heads() * cache.capacity() * rowBytes;
    regions.push_back({.offset = 0, .rowBytes = bytes, .rowStride = bytes, .rows = 1});
    return;
  }
  for (size_t row = 0; row < placement.rows->sequences.size(); ++row) {
    const uint32_t sequence = placement.rows->sequences[row];
    if (sequence == ListedRows::kNowhere) continue;
    SlotRuns slot;
    slot.add({cache.slotOf(placement.rows->positions[row]), 1});
    addSlotRegions(regions, SlotExtents::of(cache), sequence, slot, rowBytes);
  }
}

}  // namespace

Placement placementOf(const KVCacheWrite& op) {
  const uint64_t tokens = tokenCount(op);
  if (op.rows) return {.otherTokens = tokens, .rows = listedRows(op)};
  const KVCacheView& cache = op.into;
  Placement placement;
  if (op.position < cache.pinned) placement.pinnedTokens = std::min(tokens, cache.pinned - op.position);
  placement.pinnedSlot = placement.pinnedTokens == 0 ? 0 : op.position;
  const uint64_t others = tokens - placement.pinnedTokens;
  placement.otherTokens = std::min(others, cache.ringLength());
  placement.skippedTokens = others - placement.otherTokens;
  if (placement.otherTokens == 0) return placement;
  placement.firstSlot = cache.slotOf(op.position + placement.pinnedTokens + placement.skippedTokens);
  return placement;
}

SlotExtents SlotExtents::of(const Tensor& plane, KVLayout layout, KVWrap wrap, uint64_t pinned) {
  const Shape& shape = plane.shape();
  const uint32_t rank = shape.rank();
  const auto extent = [&](uint32_t fromEnd) { return rank >= fromEnd ? shape[rank - fromEnd] : 0; };
  const bool isHeadMajor = layout == KVLayout::headMajor;
  return {.sequences = rank == 4 ? shape[0] : 1,
          .heads = extent(isHeadMajor ? 3 : 2),
          .capacity = extent(isHeadMajor ? 2 : 3),
          .layout = layout,
          .wrap = wrap,
          .pinned = pinned};
}

void addSlotRegions(std::vector<Region>& regions, const SlotExtents& cache, uint64_t sequence, const SlotRuns& slots,
                    uint64_t rowBytes) {
  const uint64_t heads = cache.heads, capacity = cache.capacity, base = sequence * heads * capacity * rowBytes;
  for (const Run& run : slots) {
    if (cache.layout == KVLayout::headMajor) {
      const Region region{.offset = base + run.begin * rowBytes,
                          .rowBytes = run.count * rowBytes,
                          .rowStride = capacity * rowBytes,
                          .rows = heads};
      // The heads of neighboring sequences with the same slots are evenly spaced, too.
      if (!regions.empty() && isContinued(regions.back(), region))
        regions.back().rows += heads;
      else
        regions.push_back(region);
    } else {
      const uint64_t bytes = run.count * heads * rowBytes;
      regions.push_back(
          {.offset = base + run.begin * heads * rowBytes, .rowBytes = bytes, .rowStride = bytes, .rows = 1});
    }
  }
}

CacheAddressing::CacheAddressing(KVCacheWrite of) : op(std::move(of)), placement(placementOf(op)) {}

CacheAddressParams CacheAddressing::params(uint64_t unitElements) const {
  const KVCacheView& cache = op.into;
  HeadsView::Strides keys = sourceShape(op.keys, op.sourceLayout);
  HeadsView::Strides values = op.values ? sourceShape(*op.values, op.sourceLayout) : keys;
  if (joined(keys).tokens == joined(values).tokens) keys = joined(keys), values = joined(values);
  const uint64_t sourceLength = keys.totalTokens();
  const auto narrow = [](uint64_t value) { return static_cast<uint32_t>(value); };  // the rules bound every extent
  const auto source = [&](const HeadsView::Strides& strides) {
    return CacheSource{.sequenceStride = strides.sequenceStride / unitElements,
                       .tokenStride = strides.tokenStride / unitElements,
                       .headStride = strides.headStride / unitElements};
  };
  const bool isHeadMajorCache = cache.layout == KVLayout::headMajor;
  return {.keys = source(keys),
          .values = op.values ? source(values) : CacheSource{},
          .sequenceStride = cache.heads() * cache.capacity(),
          .sequence = narrow(op.rows ? 0 : numberOf(op.sequence)),
          .sequences = narrow(cache.sequences()),
          .tokens = narrow(placement.stored()),
          .sourceStart = narrow(op.sourceOffset % sourceLength),
          .sourceLength = narrow(sourceLength),
          .sourceSequenceLength = narrow(keys.tokens),
          .slotStride = narrow(isHeadMajorCache ? 1 : cache.heads()),
          .cacheHeadStride = narrow(isHeadMajorCache ? cache.capacity() : 1),
          .capacity = narrow(cache.capacity()),
          .pinned = narrow(cache.wrap == KVWrap::ring ? cache.pinned : cache.capacity()),
          .pinnedTokens = narrow(placement.pinnedTokens),
          .pinnedSlot = narrow(placement.pinnedSlot),
          .skippedTokens = narrow(placement.skippedTokens),
          .firstSlot = narrow(placement.firstSlot)};
}

Binding CacheAddressing::sourceBinding(uint32_t index, const HeadsView& source, Access access) const {
  const HeadsView view = sourceOf(source, op.sourceLayout);
  const HeadsView::Strides all = view.resolved();
  const ElementRun vector{0, all.headDim};
  Binding binding = bindingOf(index, view, {&vector, 1}, access);
  binding.reads.clear();
  binding.writes.clear();
  const auto declare = [&](uint64_t sequence, uint64_t sequences, uint64_t token, uint64_t tokens) {
    if (sequences == 0 || tokens == 0) return;
    HeadsView part(view.tensor, all);
    part.strides->sequences = sequences;
    part.strides->tokens = tokens;
    const uint64_t distance = sequence * all.sequenceStride + token * all.tokenStride;
    Binding bound = bindingOf(index, part, {&vector, 1}, access);
    for (const auto& [from, into] : {std::pair{&bound.reads, &binding.reads}, {&bound.writes, &binding.writes}}) {
      for (Region& region : *from) {
        region.offset += distance * byteSize(view.tensor.dtype());
        into->push_back(region);
      }
    }
  };
  // A run may start and end inside a sequence; the sequences in between are covered completely.
  for (const Run& run : sourceRuns(op, placement, all.totalTokens())) {
    const uint64_t first = run.begin / all.tokens, token = run.begin % all.tokens;
    const uint64_t before = std::min(run.count, token == 0 ? 0 : all.tokens - token);
    declare(first, 1, token, before);
    const uint64_t next = first + (token == 0 ? 0 : 1), whole = (run.count - before) / all.tokens;
    declare(next, whole, 0, all.tokens);
    declare(next + whole, 1, 0, (run.count - before) % all.tokens);
  }
  return binding;
}

std::vector<Region> CacheAddressing::cacheRegions(uint64_t rowBytes) const {
  std::vector<Region> all;
  addCacheRegions(op, placement, rowBytes, all);
  return all;
}

void CacheAddressing::countWritten(Dispatch& dispatch, uint64_t rowBytes) const {
  if (!isAnywhere()) return;
  dispatch.bytesWritten = dispatch.bytesWritten.value_or(0) + placement.stored() * op.into.heads() * rowBytes;
}

void CacheAddressing::bindRows(Dispatch& dispatch, uint32_t sequencesIndex, uint32_t positionsIndex) const {
  if (!op.rows) return;
  bindIndices(dispatch, sequencesIndex, placement.rows ? RowIndices(placement.rows->sequences) : op.rows->sequences);
  bindIndices(dispatch, positionsIndex, op.rows->positions);
}

// Adds which tokens are pinned, because that determines which source tokens are read.
void refineAddresses(const KVCacheWrite& op, OpForm& form) {
  if (!op.rows && op.into.pinned != 0) form.add(std::min<uint64_t>(op.position, op.into.pinned));
}

void patchAddresses(const KVCacheWrite& op, const Placement& placement, CacheAddressParams& params) {
  params.sequence = op.rows ? 0 : static_cast<uint32_t>(numberOf(op.sequence));
  params.pinnedSlot = static_cast<uint32_t>(placement.pinnedSlot);
  params.firstSlot = static_cast<uint32_t>(placement.firstSlot);
}

void patchRows(const Placement& placement, uint32_t sequencesIndex, uint32_t positionsIndex, Dispatch& dispatch) {
  if (!placement.rows) return;
  patchList(dispatch, sequencesIndex, placement.rows->sequences);
  patchList(dispatch, positionsIndex, placement.rows->positions);
}

void patchCacheRegions(const KVCacheWrite& op, const Placement& placement, uint64_t rowBytes, Binding& binding) {
  binding.writes.clear();
  addCacheRegions(op, placement, rowBytes, binding.writes);
}

std::vector<FunctionConstant> CacheAddressing::constants() const {
  return {{kKVCacheHasValues, op.values.has_value()},
          {kKVCacheHasRows, op.rows.has_value()},
          {kKVCacheRowsMayRepeat, isAnywhere()}};
}

}  // namespace mnk
