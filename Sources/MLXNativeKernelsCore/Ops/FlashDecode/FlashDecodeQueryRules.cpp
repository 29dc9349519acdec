#include <algorithm>

#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
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

}  // namespace

std::span<const Rule<HeadsView>> queryRules() {
  return query::kRules;
}
std::span<const Rule<AttentionShape>> headGroupRules() {
  return kGroupRules;
}
std::span<const Rule<AttentionShape>> sequenceRowRules() {
  return kSequenceRowRules;
}

}  // namespace mnk
