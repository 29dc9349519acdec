#include "Ops/Common/CacheAddressing.hpp"

#include <algorithm>

#include "Common/FunctionConstants.h"
#include "Ops/Common/HeadsMemory.hpp"
#include "Support/Bytes.hpp"

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

namespace {

using Op = KVCacheWrite;

struct NamedSource {
  std::string_view name;
  HeadsView view;
};

// The first of keys and values that fails a test.
template <typename Test>
std::optional<NamedSource> firstSource(const Op& op, Test test) {
  const HeadsView keys = sourceOf(op.keys, op.sourceLayout);
  if (test(keys)) return NamedSource{"keys", keys};
  if (!op.values) return std::nullopt;
  const HeadsView values = sourceOf(*op.values, op.sourceLayout);
  return test(values) ? std::optional(NamedSource{"values", values}) : std::nullopt;
}

bool hasRank(const HeadsView& view, KVLayout layout) {
  return sourceOf(view, layout).isReadable();
}

std::string shapesText(const HeadsView& view, KVLayout layout) {
  return sourceOf(view, layout).layout == KVLayout::headMajor
             ? "[heads, tokens, headDim] or [sequences, heads, tokens, headDim]"
             : "[tokens, heads, headDim], [heads, headDim] or [sequences, tokens, heads, headDim]";
}

std::optional<NamedSource> firstOutside(const Op& op) {
  return firstSource(op, [](const HeadsView& view) { return !liesInside(view); });
}

std::string outsideText(const Op& op) {
  const NamedSource source = *firstOutside(op);
  const HeadsView::Strides s = source.view.resolved();
  return fmt::format("{} of {} x {} tokens, {} heads of {} at {}, strides {}, {} and {}, in {} elements", source.name,
                     s.sequences, s.tokens, s.heads, s.headDim, s.offset, s.sequenceStride, s.tokenStride, s.headStride,
                     source.view.tensor.shape().elementCount());
}

std::optional<NamedSource> firstOfUnknownLayout(const Op& op) {
  return firstSource(op, [](const HeadsView& view) { return !isLayoutKnown(view); });
}

// The first source whose shape matches the cache's heads only in the other layout.
std::optional<NamedSource> firstSwapped(const Op& op, KVLayout layout) {
  return firstSource(op, [&](const HeadsView& view) {
    if (view.strides || view.layout != layout || view.resolved().heads == op.into.heads()) return false;
    const bool isHeadMajor = layout == KVLayout::headMajor;
    const HeadsView other(view.tensor, isHeadMajor ? KVLayout::tokenMajor : KVLayout::headMajor);
    return other.isReadable() && other.resolved().heads == op.into.heads();
  });
}

std::string swappedText(const Op& op, KVLayout layout) {
  const NamedSource source = *firstSwapped(op, layout);
  return fmt::format("{} of {}", source.name, sourceText(source.view, layout));
}

uint64_t largestExtent(const Op& op) {
  const HeadsView::Strides keys = sourceShape(op.keys, op.sourceLayout);
  // If the product overflows, one of its factors is already too large.
  uint64_t largest = std::max({op.into.heads(), op.into.capacity(), op.into.sequences(), op.into.headDim(),
                               keys.sequences, keys.tokens, keys.totalTokens()});
  if (op.into.values) largest = std::max(largest, valuesOf(op.into).headDim());
  return largest;
}

bool isInSource(const Op& op) {
  const uint64_t length = sourceShape(op.keys, op.sourceLayout).totalTokens();
  if (op.sourceIsRing) return tokenCount(op) <= length;
  return fits(op.sourceOffset, op.tokens.value_or(0), length);
}

uint64_t indexCount(const RowIndices& indices) {
  if (const auto* list = std::get_if<std::vector<uint32_t>>(&indices)) return list->size();
  const Tensor& tensor = std::get<Tensor>(indices);
  return tensor ? tensor.shape().elementCount() : 0;
}

const std::vector<uint32_t>* listOf(const RowIndices& indices) {
  return std::get_if<std::vector<uint32_t>>(&indices);
}

// Whether all listed indices are below `end`. Tensors are not checked here; the kernel skips rows that are out of
// range.
bool areListedBelow(const RowIndices& indices, uint64_t end) {
  const auto* list = listOf(indices);
  return !list || std::all_of(list->begin(), list->end(), [&](uint32_t index) { return index < end; });
}

std::string largestText(const RowIndices& indices) {
  const auto* list = listOf(indices);
  return fmt::format("{}", *std::max_element(list->begin(), list->end()));
}

bool isIndexTensor(const RowIndices& indices) {
  const auto* tensor = std::get_if<Tensor>(&indices);
  return !tensor || (*tensor && tensor->dtype() == DType::u32);
}

std::string indicesText(const RowIndices& indices) {
  if (const auto* list = listOf(indices)) return fmt::format("a list of {}", list->size());
  return std::get<Tensor>(indices).text();
}

constexpr Rule<Op> kSourceRules[] = {
    INVALID_IF(!op.keys.tensor || (op.values && !op.values->tensor), "a source has no memory",
               op.keys.tensor ? "values without memory" : "keys without memory", "tensors with memory",
               "Make the tensors before writing them."),

    INVALID_IF(firstOfUnknownLayout(op), "the layout of a source is not known",
               fmt::format("{} of layout {}", firstOfUnknownLayout(op)->name,
                           static_cast<uint32_t>(firstOfUnknownLayout(op)->view.layout)),
               "headMajor or tokenMajor", "Pass one of the layouts that KVLayout names."),

    INVALID_IF(!hasRank(op.keys, op.sourceLayout), "keys have the wrong rank", op.keys.tensor.shape().text(),
               shapesText(op.keys, op.sourceLayout), "Reshape the keys, or state where they lie with a HeadsView."),

    INVALID_IF(op.values && !hasRank(*op.values, op.sourceLayout), "values have the wrong rank",
               op.values->tensor.shape().text(), shapesText(*op.values, op.sourceLayout),
               "Reshape the values, or state where they lie with a HeadsView."),

    INVALID_IF(firstOutside(op), "vectors lie outside of their tensor", outsideText(op), "every vector inside",
               "Correct the offset, the strides or the counts."),
};

constexpr Rule<Op> kLayoutRules[] = {
    INVALID_IF(firstSwapped(op, KVLayout::tokenMajor),
               "a source has another number of heads than the cache, or is head-major and read as token-major",
               swappedText(op, KVLayout::tokenMajor),
               fmt::format("{} heads on the second-to-last axis", op.into.heads()),
               "Pass as [tokens, heads, headDim] the heads that the cache has; only if the source is [heads, tokens, "
               "headDim], state with a HeadsView that it is head-major."),

    INVALID_IF(firstSwapped(op, KVLayout::headMajor),
               "a source has another number of heads than the cache, or is token-major and read as head-major",
               swappedText(op, KVLayout::headMajor), fmt::format("{} heads on the third-to-last axis", op.into.heads()),
               "Pass as [heads, tokens, headDim] the heads that the cache has; only if the source is [tokens, heads, "
               "headDim], state with a HeadsView that it is token-major."),
};

constexpr Rule<Op> kAddressRules[] = {
    INVALID_IF(op.values && !isOfSameTokens(*op.values, op.keys, op.sourceLayout),
               "values hold another number of tokens than keys", tokensText(*op.values, op.sourceLayout),
               tokensText(op.keys, op.sourceLayout), "Pass keys and values of the same tokens."),

    INVALID_IF(largestExtent(op) >= kMaxKVExtent, "an extent is too large for the kernel",
               fmt::format("{}", largestExtent(op)), "less than 2^31 on every axis", "Split the cache or the write."),

    INVALID_IF(!isInSource(op), "the write reads past the end of the source",
               fmt::format("offset {} and {} tokens", op.sourceOffset, tokenCount(op)),
               fmt::format("at most {} tokens {}", sourceShape(op.keys, op.sourceLayout).totalTokens(),
                           op.sourceIsRing ? "of a ring" : "with the offset"),
               "Pass a smaller offset or fewer tokens, or a longer source."),

    INVALID_IF(!hasRoomForPinned(SlotExtents::of(op.into)), "the cache has no room for its pinned slots",
               pinnedText(SlotExtents::of(op.into)),
               "fewer pinned slots than the ring's capacity, and none in a linear cache",
               "Pin fewer slots, or make the cache a larger ring."),
};

constexpr Rule<Op> kPositionRules[] = {
    INVALID_IF(!op.rows && !isSequenceOf(op.sequence, op.into.sequences()), "the sequence is not in the cache",
               sequenceText(op.sequence), fmt::format("a number less than {}", op.into.sequences()),
               "Name a sequence that the cache holds."),

    INVALID_IF(!op.rows && !checkedAdd(op.position, tokenCount(op)), "the position is too large to count",
               fmt::format("position {} + {} tokens", op.position, tokenCount(op)), "less than 2^64",
               "Pass a smaller position."),

    INVALID_IF(!op.rows && op.into.wrap != KVWrap::ring && !fits(op.position, tokenCount(op), op.into.capacity()),
               "the write runs past the end of a linear cache",
               fmt::format("position {} + {} tokens", op.position, tokenCount(op)),
               fmt::format("at most capacity {}", op.into.capacity()), "Grow the cache, or make it a ring."),
};

constexpr Rule<Op> kRowRules[] = {
    INVALID_IF(op.rows && (!isIndexTensor(op.rows->sequences) || !isIndexTensor(op.rows->positions)),
               "row indices are not u32",
               indicesText(isIndexTensor(op.rows->sequences) ? op.rows->positions : op.rows->sequences),
               "a u32 tensor with memory, or a list", "Pass sequences and positions as u32."),

    INVALID_IF(
        op.rows &&
            (indexCount(op.rows->sequences) != tokenCount(op) || indexCount(op.rows->positions) != tokenCount(op)),
        "the rows do not match the tokens",
        fmt::format("{} sequences and {} positions", indexCount(op.rows->sequences), indexCount(op.rows->positions)),
        fmt::format("{} of each, one for a token", tokenCount(op)), "Give every token one sequence and one position."),

    INVALID_IF(op.rows.has_value() && tokenCount(op) > Op::kMaxRows, "the write has too many rows",
               fmt::format("{} rows", tokenCount(op)), fmt::format("at most {}", Op::kMaxRows),
               "Split the rows over several writes."),

    INVALID_IF(op.rows && !areListedBelow(op.rows->sequences, op.into.sequences()),
               "a row names a sequence that is not in the cache",
               fmt::format("sequence {}", largestText(op.rows->sequences)),
               fmt::format("less than {}", op.into.sequences()), "Pass sequences that the cache holds."),

    INVALID_IF(
        op.rows.has_value() && op.into.wrap != KVWrap::ring && !areListedBelow(op.rows->positions, op.into.capacity()),
        "a row runs past the end of a linear cache", fmt::format("position {}", largestText(op.rows->positions)),
        fmt::format("less than capacity {}", op.into.capacity()), "Grow the cache, or make it a ring."),
};

}  // namespace

std::span<const Rule<KVCacheWrite>> cacheSourceRules() {
  return kSourceRules;
}
std::span<const Rule<KVCacheWrite>> cacheLayoutRules() {
  return kLayoutRules;
}
std::span<const Rule<KVCacheWrite>> cacheAddressRules() {
  static const std::vector<Rule<Op>> all = joined<Op>({kAddressRules, kPositionRules, kRowRules});
  return all;
}
std::span<const Rule<KVCacheWrite>> cachePositionRules() {
  static const std::vector<Rule<Op>> all = joined<Op>({kPositionRules, kRowRules});
  return all;
}

KVCacheView valuesOf(const KVCacheView& cache) {
  KVCacheView view = cache;
  view.keys = *cache.values;
  return view;
}

bool areValuesLikeKeys(const KVCacheView& cache) {
  const KVCacheView values = valuesOf(cache);
  return values.heads() == cache.heads() && values.capacity() == cache.capacity() &&
         values.sequences() == cache.sequences();
}

bool hasRoomForPinned(const SlotExtents& cache) {
  return cache.pinned == 0 || (cache.wrap == KVWrap::ring && cache.pinned < cache.capacity);
}

std::string pinnedText(const SlotExtents& cache) {
  return fmt::format("{} pinned slots in a {} of {}", cache.pinned,
                     cache.wrap == KVWrap::ring ? "ring" : "linear cache", cache.capacity);
}

HeadsView sourceOf(const HeadsView& view, KVLayout layout) {
  HeadsView source = view;
  if (layout != KVLayout::tokenMajor) source.layout = layout;
  return source;
}

HeadsView::Strides sourceShape(const HeadsView& view, KVLayout layout) {
  return view.resolvedAs(layout != KVLayout::tokenMajor ? layout : view.layout);
}

std::string_view layoutText(KVLayout layout) {
  return layout == KVLayout::headMajor ? "head-major" : "token-major";
}

std::string sourceText(const HeadsView& view, KVLayout layout) {
  const HeadsView source = sourceOf(view, layout);
  const HeadsView::Strides shape = source.resolved();
  return fmt::format("{} heads of {} in {} {}", shape.heads, shape.headDim,
                     view.strides ? "a strided view of" : layoutText(source.layout), view.tensor.shape().text());
}

bool isOf(const HeadsView& view, KVLayout layout, uint64_t heads, uint64_t headDim) {
  const HeadsView::Strides shape = sourceShape(view, layout);
  return shape.heads == heads && shape.headDim == headDim;
}

bool isOfSameTokens(const HeadsView& a, const HeadsView& b, KVLayout layout) {
  const HeadsView::Strides first = sourceShape(a, layout), second = sourceShape(b, layout);
  return first.sequences == second.sequences && first.tokens == second.tokens;
}

std::string tokensText(const HeadsView& view, KVLayout layout) {
  const HeadsView::Strides shape = sourceShape(view, layout);
  return shape.sequences == 1 ? fmt::format("{} tokens", shape.tokens)
                              : fmt::format("{} x {} tokens", shape.sequences, shape.tokens);
}

bool isSequenceOf(uint64_t sequence, uint64_t sequences) {
  return sequence == kOnlySequence ? sequences == 1 : sequence < sequences;
}

std::string sequenceText(uint64_t sequence) {
  return sequence == kOnlySequence ? "no sequence" : fmt::format("sequence {}", sequence);
}

uint64_t tokenCount(const KVCacheWrite& op) {
  const uint64_t length = sourceShape(op.keys, op.sourceLayout).totalTokens();
  if (op.tokens) return *op.tokens;
  if (op.sourceIsRing) return length;
  return op.sourceOffset < length ? length - op.sourceOffset : 0;
}

bool storesNothing(const KVCacheWrite& op) {
  return tokenCount(op) == 0 || op.into.heads() == 0 || op.into.sequences() == 0;
}

}  // namespace mnk
