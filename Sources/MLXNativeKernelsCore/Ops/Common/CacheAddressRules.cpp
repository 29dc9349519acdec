#include "Ops/Common/CacheAddressRules.hpp"

#include <algorithm>

#include "Ops/Common/HeadsMemory.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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
