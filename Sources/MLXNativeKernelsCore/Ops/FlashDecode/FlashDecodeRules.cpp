#include <algorithm>
#include <cmath>
#include <functional>

#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

namespace query {

using Op = HeadsView;

std::string text(const Op& op) {
  const HeadsView::Strides queries = op.resolved();
  return fmt::format("{} x {}, {} of {}, {}", queries.sequences, countText(queries.tokens, "row"),
                     countText(queries.heads, "head"), queries.headDim, placesText(op));
}

constexpr Rule<Op> kRules[] = {
    INVALID_IF(!op.tensor, "queries have no memory", "a tensor without memory", "a tensor with memory",
               "Make the queries before attending with them."),

    INVALID_IF(!isLayoutKnown(op), "the layout of queries is not known",
               fmt::format("layout {}", static_cast<uint32_t>(op.layout)), "headMajor or tokenMajor",
               "Pass one of the layouts that KVLayout names."),

    INVALID_IF(!op.isReadable(), "queries have the wrong rank", op.tensor.shape().text(),
               op.layout == KVLayout::headMajor
                   ? "[heads, rows, headDim] or [sequences, heads, rows, headDim]"
                   : "[heads, headDim], [rows, heads, headDim] or [sequences, rows, heads, headDim]",
               "Reshape the queries, state their layout, or give their strides."),

    INVALID_IF(!isFloat(op.tensor.dtype()), "queries are not floats", name(op.tensor.dtype()), "f32, f16 or bf16",
               "Convert the queries."),

    INVALID_IF(!liesInside(op), "queries lie outside of their tensor", text(op), "every vector inside",
               "Correct the offset, the strides or the counts."),
};

}  // namespace query

using Op = AttentionShape;

bool isMultiple(const Op& op, uint64_t heads) {
  const uint64_t kvHeads = op.slots.heads;
  return kvHeads != 0 && heads % kvHeads == 0;
}

bool areGrouped(const Op& op, uint64_t heads) {
  return isMultiple(op, heads) && heads / op.slots.heads <= FlashDecode::kMaxGroup;
}

// Whether a tensor without an explicit layout would match the cache if it were head-major.
bool fitsAsHeadMajor(const Op& op) {
  const bool isPlain = !op.queryView.strides && op.queryView.layout == KVLayout::tokenMajor;
  return isPlain && op.queries.tokens != 0 && op.queryView.tensor.shape().rank() >= 3 &&
         !isMultiple(op, op.queries.heads) && areGrouped(op, op.queries.tokens);
}

std::string groupText(const Op& op) {
  return fmt::format("{} query heads over {} heads", op.queries.heads, op.slots.heads);
}

uint64_t sequencesWithRows(const Op& op) {
  return std::count_if(op.sequences.begin(), op.sequences.end(), [](const auto& each) { return each.rows != 0; });
}

// The total number of rows of all sequences; saturates.
uint64_t sumOfRows(const Op& op) {
  uint64_t sum = 0;
  for (const AttendedSequence& each : op.sequences) sum = checkedAdd(sum, each.rows).value_or(UINT64_MAX);
  return sum;
}

bool haveAllRowsOrNone(const Op& op) {
  return !op.isRagged || sequencesWithRows(op) == op.sequences.size();
}

bool shareOneList(const Op& op) {
  return !op.isRagged || (op.queries.sequences == 1 && op.queries.tokens == sumOfRows(op));
}

constexpr Rule<Op> kGroupRules[] = {
    INVALID_IF(
        fitsAsHeadMajor(op), "queries fit the cache only as head-major",
        fmt::format("{} in token-major {}", groupText(op), op.queryView.tensor.shape().text()),
        "heads on the axis before the last, the same number for each head of the cache",
        "Pass token-major queries, or, if the tensor is head-major, say so: HeadsView with KVLayout::headMajor."),

    INVALID_IF(op.queries.heads != 0 && !isMultiple(op, op.queries.heads),
               "the number of query heads is not a multiple of the cache's heads", groupText(op),
               "the same number of query heads for each head of the cache", "Pass all query heads of the layer."),

    INVALID_IF(op.queries.heads != 0 && !areGrouped(op, op.queries.heads),
               "there are too many query heads for each head of the cache", groupText(op),
               fmt::format("at most {} for each head of the cache", FlashDecode::kMaxGroup),
               "Attend with some of the query heads at a time."),
};

constexpr Rule<Op> kSequenceRowRules[] = {
    INVALID_IF(!op.isRagged && op.sequences.size() != op.queries.sequences, "the sequences do not match the queries",
               countText(op.sequences.size(), "sequence"), fmt::format("{}, as in the queries", op.queries.sequences),
               "Name one sequence of the cache, and its length, for each of the queries."),

    INVALID_IF(!haveAllRowsOrNone(op), "some sequences have a number of rows, and some have none",
               fmt::format("{} of {} with one", sequencesWithRows(op), countText(op.sequences.size(), "sequence")),
               "a number of rows for each sequence, or for none",
               "Leave out sequences without queries, and say how many rows each other one has."),

    INVALID_IF(!shareOneList(op), "the rows of sequences do not match the queries",
               fmt::format("{} x {} of queries", op.queries.sequences, countText(op.queries.tokens, "row")),
               fmt::format("1 x {}, the sum of the sequences' rows", countText(sumOfRows(op), "row")),
               "Pass the rows of all sequences one after another, without an axis of sequences."),
};

namespace dense {

using Op = KVCacheView;

bool hasCacheRank(const Op& op) {
  const uint32_t rank = op.keys.shape().rank();
  return (rank == 3 || rank == 4) && (!op.values || op.values->shape().rank() == rank);
}

bool hasLatentPart(const Op& op) {
  if (!op.values) return op.headDim() > op.latentDim;
  return op.values->shape()[op.values->shape().rank() - 1] == op.latentDim;
}

std::string planesText(const Op& op, const std::function<std::string(const Tensor&)>& text) {
  return op.values ? fmt::format("keys {}, values {}", text(op.keys), text(*op.values))
                   : fmt::format("keys {}", text(op.keys));
}

std::string shapesText(const Op& op) {
  return planesText(op, [](const Tensor& tensor) { return tensor.shape().text(); });
}

constexpr Rule<Op> kRules[] = {
    INVALID_IF(!op.keys || (op.values && !*op.values), "the cache has no memory",
               op.keys ? "a value cache without memory" : "a key cache without memory", "tensors with memory",
               "Make the cache's tensors before using it."),

    INVALID_IF(!op.values && op.latentDim == 0, "the cache has no values", "keys alone", "keys and values",
               "Give the view a tensor for values, or the latent part of keys that are values too."),

    INVALID_IF(!hasCacheRank(op), "the cache has the wrong rank", shapesText(op),
               op.layout == KVLayout::headMajor ? "[heads, capacity, headDim] or [sequences, heads, capacity, headDim]"
                                                : "[capacity, heads, headDim] or [sequences, capacity, heads, headDim]",
               "Reshape the cache; keys and values need the same rank."),

    INVALID_IF(!isFloat(op.keys.dtype()) || (op.values && op.values->dtype() != op.keys.dtype()),
               "the cache does not hold numbers of one type",
               planesText(op, [](const Tensor& tensor) { return fmt::format("of {}", name(tensor.dtype())); }),
               "f32, f16 or bf16, the same for both",
               "Store keys and values as floats of one type, or pass a quantized view."),

    INVALID_IF(op.capacity() == 0, "the cache has no capacity",
               fmt::format("{} {}", layoutText(op.layout), op.keys.shape().text()), "at least one slot",
               "Make a cache with a capacity of at least 1."),

    INVALID_IF(op.values && !areValuesLikeKeys(op), "the value cache differs from the key cache",
               op.values->shape().text(), fmt::format("{}, but for headDim", op.keys.shape().text()),
               "Make both with the same sequences, heads and capacity."),

    INVALID_IF(op.latentDim != 0 && !hasLatentPart(op), "the latent part does not match the cache",
               fmt::format("a latent part of {}, {}", op.latentDim, shapesText(op)),
               "values of that length, or keys that are longer",
               "Pass the length of the part of a key that is its value, too."),
};

}  // namespace dense

namespace quantized {

using Op = QuantizedKVCacheView;

constexpr Rule<Op> kRules[] = {
    INVALID_IF(!op.values, "the cache has no values", "keys alone", "keys and values",
               "Give the view a plane of values."),

    INVALID_IF(op.latentDim != 0 && op.values->headDim() != op.latentDim, "the latent part does not match the cache",
               fmt::format("a latent part of {}, values of {}", op.latentDim, op.values->headDim()),
               "values of that length", "Pass the length of the part of a key that is its value, too."),
};

}  // namespace quantized

using Op = AttentionShape;

uint64_t longestLength(const Op& op) {
  uint64_t longest = 0;
  for (const AttendedSequence& sequence : op.sequences) longest = std::max(longest, sequence.written());
  return longest;
}

const AttendedSequence* firstShrunk(const Op& op) {
  for (const AttendedSequence& sequence : op.sequences) {
    if (sequence.written() < sequence.length) return &sequence;
  }
  return nullptr;
}

uint64_t largestExtent(const Op& op) {
  return std::max({op.queryVectors(), op.slots.capacity, op.slots.heads, op.slots.sequences});
}

const AttendedSequence* firstUnknown(const Op& op) {
  for (const AttendedSequence& sequence : op.sequences) {
    if (!isSequenceOf(sequence.sequence, op.slots.sequences)) return &sequence;
  }
  return nullptr;
}

bool needsPositions(const Op& op) {
  return op.options.isCausal || op.options.window != 0 || op.options.slopes;
}

const AttendedSequence* firstTooShort(const Op& op) {
  if (!needsPositions(op)) return nullptr;
  for (const AttendedSequence& sequence : op.sequences) {
    if (!sequence.position && sequence.length != 0 && sequence.length < op.rowsOf(sequence)) return &sequence;
  }
  return nullptr;
}

// The rows are fewer than 2^31 already.
const AttendedSequence* firstTooFar(const Op& op) {
  constexpr auto kEnd = static_cast<int64_t>(kMaxKVExtent);
  for (const AttendedSequence& sequence : op.sequences) {
    const int64_t first = sequence.position.value_or(0);
    if (first <= -kEnd || first >= kEnd - static_cast<int64_t>(op.rowsOf(sequence))) return &sequence;
  }
  return nullptr;
}

const AttendedSequence* firstWithoutPosition(const Op& op) {
  if (!op.results.partials) return nullptr;
  for (const AttendedSequence& sequence : op.sequences) {
    if (!sequence.position) return &sequence;
  }
  return nullptr;
}

// A position in a row's window that the ring has overwritten.
struct LostPosition {
  AttendedSequence sequence;
  uint64_t row = 0;
  uint64_t end = 0;       // one past its own position
  uint64_t position = 0;  // the oldest that its window reaches
  AttendedKeys keys;

  // Whether the ring lost more than it overwrites as it grows to this length, which a larger ring does not bring back.
  bool hasLostMore() const { return sequence.written() != sequence.length; }
  uint64_t neededCapacity() const { return keys.pinned + sequence.length - position; }
  // The number of positions that the row can see, its own and those before it; 0: not even its own.
  uint64_t seenAtMost() const { return sequence.length > keys.oldest() ? end - std::min(end, keys.oldest()) : 0; }
};

std::optional<LostPosition> firstLost(const Op& op) {
  if (op.options.window == 0) return std::nullopt;
  for (const AttendedSequence& sequence : op.sequences) {
    const uint64_t rows = op.rowsOf(sequence);
    const AttendedKeys keys(op.slots, sequence);
    if (keys.skipped == 0 || sequence.length == 0 || rows == 0) continue;
    // Rows at pinned positions reach no overwritten position. Of the other rows, the first one reaches furthest back.
    const int64_t firstRow = op.firstPosition(sequence), past = firstRow + static_cast<int64_t>(rows);
    const uint64_t first = std::max(op.endOfRow(sequence, 0), keys.pinned + 1) - 1;
    const uint64_t begin = std::max(first + 1 - std::min<uint64_t>(first + 1, op.options.window), keys.pinned);
    const bool hasRow = static_cast<int64_t>(first) < past;
    if (!hasRow || begin >= std::min(keys.oldest(), sequence.length)) continue;
    return LostPosition{sequence, first - static_cast<uint64_t>(firstRow), first + 1, begin, keys};
  }
  return std::nullopt;
}

std::string lostText(const LostPosition& lost, uint64_t window) {
  return fmt::format("row {} of sequence {}, whose window of {} reaches position {}, over a ring that holds {}{}",
                     lost.row, numberOf(lost.sequence.sequence), window, lost.position,
                     heldPositionsText(lost.keys.pinned, lost.keys.oldest(), lost.sequence.length),
                     lost.hasLostMore() ? " after a rollback, growth or copy" : "");
}

// The axes that results may have before their last.
std::vector<std::vector<uint64_t>> rowAxes(const Op& op) {
  const uint64_t rows = op.queries.tokens, heads = op.queries.heads;
  std::vector<std::vector<uint64_t>> axes{{op.queries.sequences, rows, heads}};
  if (op.queries.sequences == 1) axes.insert(axes.begin(), {rows, heads});
  if (op.queries.sequences == 1 && rows == 1) axes.insert(axes.begin(), {heads});
  return axes;
}

uint64_t longestKeys(const Op& op) {
  uint64_t longest = 0;
  for (const AttendedSequence& sequence : op.sequences) {
    longest = std::max(longest, AttendedKeys(op.slots, sequence).keyOf(sequence.length));
  }
  return longest;
}

bool isMask(const Op& op) {
  if (!op.options.mask) return true;
  const Shape& shape = op.options.mask->shape();
  const uint32_t rank = shape.rank();
  if (!*op.options.mask || !isFloat(op.options.mask->dtype()) || rank < 2 || rank > 4) return false;
  const uint64_t all[] = {op.queries.sequences, op.queries.heads, op.queries.tokens};
  for (uint32_t axis = 0; axis + 1 < rank; ++axis) {
    const uint64_t extent = shape[rank - 2 - axis];
    if (extent != 1 && extent != all[2 - axis]) return false;
  }
  return shape[rank - 1] >= longestKeys(op) && shape[rank - 1] < kMaxKVExtent;
}

std::string maskText(const Op& op) {
  return fmt::format("floats [rows {}, keys {}], with axes of heads {} and sequences {} before them or without",
                     op.queries.tokens, longestKeys(op), op.queries.heads, op.queries.sequences);
}

bool isPerHead(const Op& op, const std::optional<Tensor>& tensor) {
  return !tensor || (*tensor && tensor->dtype() == DType::f32 && isShaped(*tensor, {op.queries.heads}));
}

std::string matrixText(const Op& op) {
  return fmt::format("{}{} with head dims {} and {}{}", op.denseType ? name(*op.denseType) : "codes",
                     op.denseType && op.quantized ? " and codes" : "", op.keyDim, op.valueDim,
                     op.options.mask ? ", with a mask" : "");
}

std::vector<NamedRange> sourcesOf(const Op& op) {
  std::vector<NamedRange> sources{{"queries", rangeOf(op.queryView)}};
  if (op.quantized) {
    for (const QuantizedKVPlane* plane : {&op.quantized->keys, &*op.quantized->values}) addPlane(sources, *plane);
  } else {
    sources.push_back({"the key cache", op.keyPlane->range()});
    if (op.valuePlane) sources.push_back({"the value cache", op.valuePlane->range()});
  }
  if (op.options.mask) sources.push_back({"the mask", op.options.mask->range()});
  if (op.options.slopes) sources.push_back({"slopes", op.options.slopes->range()});
  if (op.options.sinks) sources.push_back({"sinks", op.options.sinks->range()});
  return sources;
}

std::optional<Overlap> overlapOf(const Op& op) {
  std::vector<NamedRange> targets;
  addTargets(targets, op.results);
  if (op.scratch) targets.push_back({"scratch memory", op.scratch->range()});
  return firstOverlap(sourcesOf(op), targets);
}

constexpr Rule<Op> kRules[] = {
    INVALID_IF(largestExtent(op) >= kMaxKVExtent, "an extent is too large for the kernel",
               fmt::format("{}", largestExtent(op)), "less than 2^31 on every axis", "Attend to a part at a time."),

    INVALID_IF(!hasRoomForPinned(op.slots), "the cache has no room for its pinned slots", pinnedText(op.slots),
               "fewer pinned slots than the ring's capacity, and none in a linear cache",
               "Pin fewer slots, or make the cache a larger ring."),

    INVALID_IF(op.queries.headDim != op.queryDim(), "queries have another head dim than keys",
               fmt::format("{}", op.queries.headDim),
               !op.isLatent()
                   ? fmt::format("{}", op.queryDim())
                   : fmt::format("{}: a latent part of {} and {} behind it", op.queryDim(), op.latentDim, op.keyDim),
               "Pass queries of the model that filled the cache."),

    INVALID_IF(!hasAttentionKernel(op.keyDim, op.valueDim, op.quantized != nullptr, op.isLatent()),
               "there is no kernel for these head dims",
               fmt::format("{} of keys and {} of values", op.keyDim, op.valueDim),
               attentionDimsText(op.quantized != nullptr, op.isLatent()),
               "Pad shorter vectors with zeros to one of these, and pass the scale of the head dim that they had."),
};

constexpr Rule<Op> kSequenceRules[] = {
    INVALID_IF(firstUnknown(op), "the sequence is not in the cache", sequenceText(firstUnknown(op)->sequence),
               fmt::format("a number less than {}", op.slots.sequences), "Name a sequence that the cache holds."),

    INVALID_IF(firstShrunk(op), "a sequence has had fewer positions than it has",
               fmt::format("a length of {} and a highest of {}", firstShrunk(op)->length, firstShrunk(op)->highest),
               "the largest length that the sequence has had, or 0",
               "Pass the length before tokens were taken back, or 0 if none were."),

    INVALID_IF(op.slots.wrap == KVWrap::linear && longestLength(op) > op.slots.capacity,
               "a sequence is longer than its cache", fmt::format("a length of {}", longestLength(op)),
               fmt::format("at most capacity {}", op.slots.capacity), "Pass how many positions the sequence has."),

    INVALID_IF(longestLength(op) >= kMaxKVExtent, "a sequence has too many positions",
               fmt::format("a length of {}", longestLength(op)), "at most 2^31 - 1 positions",
               "Reset the sequence; positions are limited to 2^31 - 1."),

    INVALID_IF(firstTooShort(op), "a sequence has fewer positions than queries",
               fmt::format("a length of {} and {} rows", firstTooShort(op)->length, op.rowsOf(*firstTooShort(op))),
               "a length that counts the rows of the queries, or 0",
               "Append keys and values of the queries' tokens first, or count them in."),

    INVALID_IF(firstTooFar(op), "the position of a row is out of range",
               fmt::format("position {} and {}", firstTooFar(op)->position.value_or(0),
                           countText(op.rowsOf(*firstTooFar(op)), "row")),
               "positions between -2^31 and 2^31", "Reset the sequence; positions are limited to 2^31 - 1."),

    INVALID_IF(
        firstWithoutPosition(op), "partials do not say where their rows are",
        fmt::format("sequence {} without a position", numberOf(firstWithoutPosition(op)->sequence)),
        "the position of the first row, counted from the first key of the part",
        "Pass length - rows if the rows are the newest tokens of the part. Pass length + n if n tokens, which are "
        "in other parts, come between the end of the part and the first row."),
};

// Times log2(e), the smallest scale is still normal; GPUs flush smaller numbers to 0. With the largest one, scores of
// all finite f16 queries and keys stay above those that count as -inf, and far below infinity.
constexpr float kMinScale = 1e-37f;
float maxScale(const Op& op) {
  return 4e19f / static_cast<float>(op.queryDim());
}
// The kernel divides a score by the softcap and multiplies the result by it. Within these limits, quotients that a
// device flushes to 0 belong to scores below 1e-7.
constexpr float kMinSoftcap = 1e-30f, kMaxSoftcap = 1e30f;

bool isUnsetOrWithin(float number, float least, float most) {
  return number == 0 || (number >= least && number <= most);
}

constexpr Rule<Op> kOptionRules[] = {
    INVALID_IF(firstMisfit(op.results, rowAxes(op), op.valueDim), "a result does not match the queries",
               firstMisfit(op.results, rowAxes(op), op.valueDim)->got,
               firstMisfit(op.results, rowAxes(op), op.valueDim)->expected,
               "Give results the sequences, rows and heads of the queries, in this order, and the head dim of values."),

    INVALID_IF(!isUnsetOrWithin(op.options.scale, kMinScale, maxScale(op)), "the scale cannot be used",
               fmt::format("{}", op.options.scale), fmt::format("a number from {} to {}", kMinScale, maxScale(op)),
               "Pass a positive scale, or none for 1 / sqrt(headDim)."),

    INVALID_IF(op.isLatent() && op.options.scale == 0, "attention over a latent cache has no scale", "none",
               "1 / sqrt of the head dim that the model's keys have before they are absorbed",
               "Pass the model's scale, for DeepSeek-V2 and V3 1 / sqrt(128 + 64)."),

    INVALID_IF(!isUnsetOrWithin(op.options.softcap, kMinSoftcap, kMaxSoftcap), "the softcap cannot be used",
               fmt::format("{}", op.options.softcap), fmt::format("a number from {} to {}", kMinSoftcap, kMaxSoftcap),
               "Pass a positive softcap, or none."),

    INVALID_IF(op.options.window >= kMaxKVExtent, "the window is too large", fmt::format("{}", op.options.window),
               "less than 2^31", "Pass a smaller window, or none."),

};

constexpr Rule<Op> kWindowRules[] = {
    INVALID_IF(firstLost(op) && firstLost(op)->hasLostMore(),
               "a window reaches positions that the ring has overwritten", lostText(*firstLost(op), op.options.window),
               firstLost(op)->seenAtMost() == 0 ? "a row whose position the ring holds"
                                                : fmt::format("a window of at most {}", firstLost(op)->seenAtMost()),
               "Reset the sequence and store its tokens again, or pass a smaller window. A larger ring does not bring "
               "back what this one has overwritten."),

    INVALID_IF(
        firstLost(op), "a window reaches positions that the ring has overwritten",
        lostText(*firstLost(op), op.options.window),
        fmt::format("a capacity of at least {}", firstLost(op)->neededCapacity()),
        "Make the ring that large, store and attend to fewer tokens at a time, or pass a smaller window. For what the "
        "ring has overwritten already, reset the sequence and store its tokens again."),
};

constexpr Rule<Op> kOperandRules[] = {
    INVALID_IF(op.options.mask && op.isRagged, "masks are not supported with row counts",
               fmt::format("a mask, and {} with row counts", countText(op.sequences.size(), "sequence")),
               "a mask for sequences that all have the rows of the queries' shape",
               "Remove the mask, or pass sequences with equal row counts."),

    INVALID_IF(!isMask(op), "the mask does not match the queries", op.options.mask->text(), maskText(op),
               "Give the mask a column for each key, oldest first; other axes may be 1."),

    INVALID_IF(!isPerHead(op, op.options.slopes), "slopes do not match the queries", op.options.slopes->text(),
               fmt::format("f32 [{}]", op.queries.heads), "Pass a slope for each head."),

    INVALID_IF(!isPerHead(op, op.options.sinks), "sinks do not match the queries", op.options.sinks->text(),
               fmt::format("f32 [{}]", op.queries.heads), "Pass a sink for each head."),

    INVALID_IF(op.options.sinks.has_value() && op.results.partials, "partials cannot have sinks",
               "sinks, and partials as the target", "sinks once, where all parts are merged",
               "Pass sinks to MergePartials."),

    INVALID_IF(op.options.splits > FlashDecode::kMaxSplits, "there are too many splits",
               fmt::format("{}", op.options.splits), fmt::format("at most {}", FlashDecode::kMaxSplits),
               "Pass fewer splits, or leave their number to the device."),

    INVALID_IF(op.options.kernel > AttentionOptions::Kernel::matrix, "the choice of a kernel is not known",
               fmt::format("kernel {}", static_cast<uint32_t>(op.options.kernel)), "automatic, vector or matrix",
               "Pass one that AttentionOptions::Kernel names."),

    INVALID_IF(op.options.merge > AttentionOptions::Merge::inKernel, "the choice of a merge is not known",
               fmt::format("merge {}", static_cast<uint32_t>(op.options.merge)), "automatic, separate or inKernel",
               "Pass one that AttentionOptions::Merge names."),

    INVALID_IF(op.options.kernel == AttentionOptions::Kernel::matrix && !op.canUseMatrices(),
               "the matrix kernel cannot attend to this", matrixText(op),
               "codes with head dims of 64 to 256, or f16 without a mask and with head dims of 64, 128 or 256",
               "Use automatic."),

    INVALID_IF(op.scratch && (!*op.scratch || op.scratch->dtype() != DType::u8), "scratch memory is not of bytes",
               op.scratch->text(), "u8", "Make it as long as the plan's scratchBytes, or leave it out."),

    INVALID_IF(overlapOf(op), "operands share memory", overlapOf(op)->text(), "separate memory",
               "Write results to separate memory."),
};

}  // namespace

std::span<const Rule<HeadsView>> queryRules() {
  return query::kRules;
}

std::span<const Rule<KVCacheView>> attendedCacheRules() {
  return dense::kRules;
}

std::span<const Rule<AttentionShape>> attentionRules() {
  static const std::vector<Rule<Op>> all = joined<Op>({kRules, kGroupRules, kSequenceRowRules, kSequenceRules,
                                                       kResultRules<Op>, kOptionRules, kWindowRules, kOperandRules});
  return all;
}

std::span<const Rule<AttentionShape>> attentionPositionRules() {
  static const std::vector<Rule<Op>> all = joined<Op>({kSequenceRowRules, kSequenceRules, kWindowRules});
  return all;
}

Result<void> checkAttendedCache(const FlashDecode& op) {
  MNK_TRY(checkRules(queryRules(), op.queries, FlashDecode::name));
  if (const auto* dense = std::get_if<KVCacheView>(&op.cache)) {
    return checkRules(attendedCacheRules(), *dense, FlashDecode::name);
  }
  const auto& quantized = std::get<QuantizedKVCacheView>(op.cache);
  MNK_TRY(checkRules(quantizedKVCacheRules(), quantized, FlashDecode::name));
  return checkRules(std::span<const Rule<QuantizedKVCacheView>>(quantized::kRules), quantized, FlashDecode::name);
}

}  // namespace mnk
