#include "Ops/FlashDecodeRules.hpp"
#include "Ops/FlashDecodeShape.hpp"
#include "Ops/HeadsMemory.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = FlashDecode;

bool isMultiple(const Op& op, uint64_t heads) {
  const uint64_t kvHeads = slotsOf(op).heads();
  return kvHeads != 0 && heads % kvHeads == 0;
}

bool areGrouped(const Op& op, uint64_t heads) {
  return isMultiple(op, heads) && heads / slotsOf(op).heads() <= Op::kMaxGroup;
}

// Whether the heads of a tensor that nothing is said of would fit if its rows were its heads.
bool fitsAsHeadMajor(const Op& op) {
  const QueryShape queries = queryShape(op.queries);
  const bool isPlain = !op.queries.strides && op.queries.layout == KVLayout::tokenMajor;
  return isPlain && queries.rows != 0 && op.queries.tensor.shape().rank() >= 3 && !isMultiple(op, queries.heads) &&
         areGrouped(op, queries.rows);
}

std::string groupText(const Op& op) {
  return fmt::format("{} query heads over {} heads", queryShape(op.queries).heads, slotsOf(op).heads());
}

constexpr Rule<Op> kQueryRules[] = {
    {"queries have no memory", [](const Op& op) { return bool(op.queries.tensor); },
     [](const Op&) { return std::string("a tensor without memory"); },
     [](const Op&) { return std::string("a tensor with memory"); }, "Make the queries before attending with them."},

    {"queries have the wrong rank", [](const Op& op) { return op.queries.isReadable(); },
     [](const Op& op) { return op.queries.tensor.shape().text(); },
     [](const Op& op) {
       return std::string(op.queries.layout == KVLayout::headMajor
                              ? "[heads, rows, headDim] or [sequences, heads, rows, headDim]"
                              : "[heads, headDim], [rows, heads, headDim] or [sequences, rows, heads, headDim]");
     },
     "Reshape the queries, state their layout, or give their strides."},

    {"queries are not floats", [](const Op& op) { return isFloat(op.queries.tensor.dtype()); },
     [](const Op& op) { return std::string(name(op.queries.tensor.dtype())); },
     [](const Op&) { return std::string("f32, f16 or bf16"); }, "Convert the queries."},

    {"queries lie outside of their tensor", [](const Op& op) { return liesInside(op.queries); },
     [](const Op& op) {
       const QueryShape queries = queryShape(op.queries);
       return fmt::format("{} x {}, {} of {}, {}", queries.sequences, countText(queries.rows, "row"),
                          countText(queries.heads, "head"), queries.headDim, placesText(op.queries));
     },
     [](const Op&) { return std::string("every vector inside"); }, "Correct the offset, the strides or the counts."},
};

constexpr Rule<Op> kGroupRules[] = {
    {"queries fit the cache only as head-major", [](const Op& op) { return !fitsAsHeadMajor(op); },
     [](const Op& op) { return fmt::format("{} in token-major {}", groupText(op), op.queries.tensor.shape().text()); },
     [](const Op&) { return std::string("heads on the axis before the last, as many for each head of the cache"); },
     "Pass token-major queries, or, if the tensor is head-major, say so: HeadsView with KVLayout::headMajor."},

    {"query heads are no multiple of the cache's heads",
     [](const Op& op) { return queryShape(op.queries).heads == 0 || isMultiple(op, queryShape(op.queries).heads); },
     groupText, [](const Op&) { return std::string("as many query heads for each head of the cache"); },
     "Pass all query heads of the layer."},

    {"there are too many query heads for each head of the cache",
     [](const Op& op) { return queryShape(op.queries).heads == 0 || areGrouped(op, queryShape(op.queries).heads); },
     groupText, [](const Op&) { return fmt::format("at most {} for each head of the cache", Op::kMaxGroup); },
     "Attend with some of the query heads at a time."},
};

}  // namespace

std::span<const Rule<FlashDecode>> queryRules() {
  return kQueryRules;
}
std::span<const Rule<FlashDecode>> headGroupRules() {
  return kGroupRules;
}

}  // namespace mnk
