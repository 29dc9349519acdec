#include "Ops/MultiRoPE/MultiRoPERules.hpp"

#include <algorithm>

#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/MultiRoPE/MultiRoPEOperands.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

using Strides = HeadsView::Strides;
using List = std::vector<int32_t>;

constexpr int64_t kEndOfPositions = int64_t{1} << 31;

template <typename Test>
std::optional<NamedView> firstView(const MultiRoPE& op, Test test) {
  for (const NamedView& named : viewsOf(op)) {
    if (test(named.view)) return named;
  }
  return std::nullopt;
}

std::string extentsText(const Strides& s) {
  return fmt::format("{} x {}, {} of {}", s.sequences, countText(s.tokens, "token"), countText(s.heads, "head"),
                     s.headDim);
}

std::string viewText(const NamedView& named) {
  return fmt::format("{} of {}", named.name, extentsText(named.view.resolved()));
}

std::string stridesText(const NamedView& named) {
  return fmt::format("{} {}", viewText(named), placesText(named.view));
}

Strides queriesOf(const MultiRoPE& op) {
  return op.queries.resolved();
}
bool isWithoutMemory(const HeadsView& view) {
  return !view.tensor;
}
bool isOfUnknownLayout(const HeadsView& view) {
  return !isLayoutKnown(view);
}
bool isUnreadable(const HeadsView& view) {
  return !view.isReadable();
}
bool isNotFloat(const HeadsView& view) {
  return !isFloat(view.tensor.dtype());
}
bool isWithoutVectors(const HeadsView& view) {
  const Strides s = view.resolved();
  return s.heads == 0 || s.headDim == 0;
}
bool isTooLarge(const HeadsView& view) {
  const Strides s = view.resolved();
  const uint64_t most = std::max({s.sequences, s.tokens, s.heads, s.headDim});
  return most >= kMaxKVExtent || s.totalTokens() >= kMaxKVExtent;
}

bool isOutside(const HeadsView& view) {
  return !liesInside(view);
}

bool isSameBut(bool forHeads, const Strides& a, const Strides& b) {
  return a.sequences == b.sequences && a.tokens == b.tokens && a.headDim == b.headDim &&
         (forHeads || a.heads == b.heads);
}

const RotaryOperand* firstMismatch(const std::vector<RotaryOperand>& operands) {
  const auto found = std::find_if(operands.begin(), operands.end(), [](const RotaryOperand& operand) {
    return !isSameBut(false, operand.into.resolved(), operand.from.resolved());
  });
  return found == operands.end() ? nullptr : &*found;
}

std::string mismatchText(const RotaryOperand& operand) {
  return viewText({operand.rotatedName, operand.into});
}

const RotaryOperand* firstSelfOverlap(const std::vector<RotaryOperand>& operands) {
  const auto found = std::find_if(operands.begin(), operands.end(),
                                  [](const RotaryOperand& operand) { return overlapsItself(operand.into.resolved()); });
  return found == operands.end() ? nullptr : &*found;
}

std::string selfOverlapText(const RotaryOperand& operand) {
  return stridesText({operand.isInPlace() ? operand.name : operand.rotatedName, operand.into});
}

uint64_t offsetCount(const MultiRoPE& op) {
  const List* list = offsetList(op);
  return list ? list->size() : offsetTensor(op)->shape().elementCount();
}

bool isNumbers(const Tensor* tensor) {
  return !tensor || (*tensor && (tensor->dtype() == DType::i32 || tensor->dtype() == DType::u32));
}

bool isAxisCount(uint64_t count) {
  return count >= 1 && count <= 4;
}

bool isPositionShape(const MultiRoPE& op) {
  const Strides queries = queriesOf(op);
  const uint64_t tokens = queries.totalTokens();
  if (const auto* list = positionList(op))
    return isAxisCount(list->axes) && list->numbers.size() == list->axes * tokens;
  const Tensor* tensor = positionTensor(op);
  if (!tensor) return true;
  const Shape& shape = tensor->shape();
  if (shape.rank() == 1) return shape[0] == tokens;
  if (!isAxisCount(shape[0])) return false;
  if (shape.rank() == 2) return shape[1] == tokens;
  return shape.rank() == 3 && shape[1] == queries.sequences && shape[2] == queries.tokens;
}

std::string positionShapesText(const Strides& queries) {
  return fmt::format("[{0}], [axes, {0}] or [axes, {1}, {2}] with 1 to 4 axes", queries.totalTokens(),
                     queries.sequences, queries.tokens);
}

std::string positionsText(const MultiRoPE& op) {
  const auto* list = positionList(op);
  if (!list) return positionTensor(op)->text();
  return fmt::format("a list of {} on {}", list->numbers.size(),
                     list->axes == 1 ? "1 axis" : fmt::format("{} axes", list->axes));
}

bool isCountable(int64_t position) {
  return position >= -kEndOfPositions && position < kEndOfPositions;
}

// The first position that is known at planning time and out of the kernel's range, with or without its offset.
std::optional<int64_t> firstUncountable(const MultiRoPE& op) {
  const Strides s = queriesOf(op);
  const List* offsets = offsetList(op);
  const auto check = [&](int64_t position, uint64_t sequence) -> std::optional<int64_t> {
    if (!isCountable(position)) return position;
    if (offsets && !isCountable(position + (*offsets)[sequence])) return position + (*offsets)[sequence];
    return std::nullopt;
  };
  if (const auto* list = positionList(op)) {
    for (uint64_t i = 0; i < list->numbers.size(); ++i) {
      if (const auto bad = check(list->numbers[i], i % s.totalTokens() / s.tokens)) return bad;
    }
    return std::nullopt;
  }
  const auto* first = std::get_if<int64_t>(&op.positions.source);
  if (!first || s.totalTokens() == 0) return std::nullopt;
  if (!isCountable(*first)) return *first;
  for (uint64_t sequence = 0; sequence < (offsets ? s.sequences : 1); ++sequence) {
    for (const int64_t position : {*first, *first + static_cast<int64_t>(s.tokens) - 1}) {
      if (const auto bad = check(position, sequence)) return bad;
    }
  }
  return std::nullopt;
}

constexpr Rule<MultiRoPE> kOperandRules[] = {
    INVALID_IF(firstView(op, isWithoutMemory), "an operand has no memory",
               fmt::format("{} without memory", firstView(op, isWithoutMemory)->name), "tensors with memory",
               "Make the tensors before rotating them."),

    INVALID_IF(!op.keys && op.rotatedKeys, "rotated keys are given without keys",
               "a place for rotated keys, and no keys", "keys for it", "Pass the keys, or leave their place out."),

    INVALID_IF(firstView(op, isOfUnknownLayout), "the layout of an operand is not known",
               fmt::format("{} of layout {}", firstView(op, isOfUnknownLayout)->name,
                           static_cast<uint32_t>(firstView(op, isOfUnknownLayout)->view.layout)),
               "headMajor or tokenMajor", "Pass one of the layouts that KVLayout names."),

    INVALID_IF(firstView(op, isUnreadable), "an operand has the wrong rank",
               fmt::format("{} {}", firstView(op, isUnreadable)->name,
                           firstView(op, isUnreadable)->view.tensor.shape().text()),
               firstView(op, isUnreadable)->view.layout == KVLayout::headMajor
                   ? "[heads, tokens, headDim] or [sequences, heads, tokens, headDim]"
                   : "[heads, headDim], [tokens, heads, headDim] or [sequences, tokens, heads, headDim]",
               "Reshape the tensor, set its layout, or give its strides."),

    INVALID_IF(firstView(op, isNotFloat), "an operand is not of a float dtype",
               fmt::format("{} {}", firstView(op, isNotFloat)->name, firstView(op, isNotFloat)->view.tensor.text()),
               "f32, f16 or bf16", "Convert the tensor first."),

    INVALID_IF(firstView(op, isWithoutVectors), "an operand has no heads, or heads of no elements",
               viewText(*firstView(op, isWithoutVectors)), "at least one head and two elements",
               "Pass vectors to rotate; zero tokens are allowed."),

    INVALID_IF(queriesOf(op).headDim % 2 != 0, "the head dim is odd", fmt::format("{}", queriesOf(op).headDim),
               "an even number, because elements turn in pairs", "Pass vectors of an even number of elements."),

    INVALID_IF(firstView(op, isTooLarge), "an extent is too large for the kernel", viewText(*firstView(op, isTooLarge)),
               "less than 2^31 on every axis, and less than 2^31 tokens in total",
               "Split the tokens over several calls."),

    INVALID_IF(op.keys && !isSameBut(true, op.keys->resolved(), queriesOf(op)), "keys do not match queries",
               viewText({"keys", *op.keys}),
               fmt::format("{}, except for the number of heads", extentsText(queriesOf(op))),
               "Pass keys of the same tokens and head dim, or rotate them separately."),

    INVALID_IF(firstMismatch(operandsOf(op)), "a result does not match what is rotated",
               mismatchText(*firstMismatch(operandsOf(op))),
               extentsText(firstMismatch(operandsOf(op))->from.resolved()),
               "Give the result the extents of its source."),

    INVALID_IF(firstView(op, isOutside), "vectors lie outside of their tensor", stridesText(*firstView(op, isOutside)),
               "every vector inside", "Correct the offset, the strides or the counts."),
};

constexpr Rule<MultiRoPE> kResultRules[] = {
    INVALID_IF(firstSelfOverlap(operandsOf(op)), "the vectors of a result overlap each other",
               selfOverlapText(*firstSelfOverlap(operandsOf(op))), "each stride past all that the smaller ones reach",
               "Give the result strides that keep its vectors apart."),
};

constexpr Rule<MultiRoPE> kNumberRules[] = {
    INVALID_IF(!isNumbers(positionTensor(op)), "positions are not i32 or u32", positionsText(op),
               "an i32 or u32 tensor with memory, a list, or a first position", "Pass positions as 32-bit integers."),

    INVALID_IF(!isPositionShape(op), "positions do not match the tokens", positionsText(op),
               positionShapesText(queriesOf(op)), "Give every token a position on each axis, axis after axis."),

    INVALID_IF(positionList(op) && positionList(op)->numbers.size() > MultiRoPE::kMaxListed,
               "the list of positions is too long", positionsText(op),
               fmt::format("at most {} numbers", MultiRoPE::kMaxListed),
               "Pass them in a tensor, or split the tokens over several calls."),

    INVALID_IF(!isNumbers(offsetTensor(op)), "offsets are not i32 or u32", offsetTensor(op)->text(),
               "an i32 or u32 tensor with memory, or a list", "Pass offsets as 32-bit integers."),

    INVALID_IF(op.offsets.has_value() && offsetCount(op) != queriesOf(op).sequences,
               "offsets do not match the sequences", countText(offsetCount(op), "offset"),
               fmt::format("{}, one for a sequence", queriesOf(op).sequences),
               "Give every sequence one offset; queries [sequences, tokens, heads, headDim] say how many there are."),

    INVALID_IF(offsetList(op) && offsetList(op)->size() > MultiRoPE::kMaxListed, "the list of offsets is too long",
               fmt::format("a list of {}", offsetList(op)->size()),
               fmt::format("at most {} numbers", MultiRoPE::kMaxListed),
               "Pass them in a tensor, or split the sequences over several calls."),
};

constexpr Rule<MultiRoPE> kRotaryPositionRules[] = {
    INVALID_IF(firstUncountable(op), "a position is out of range", fmt::format("position {}", *firstUncountable(op)),
               "-2^31 to 2^31 - 1, with its offset and without", "Pass positions in that range."),
};

constexpr Rule<MultiRoPE> kRotaryOverlapRules[] = {
    INVALID_IF(firstOverlap(op), "results share memory with other operands",
               fmt::format("{} overlapping {}", firstOverlap(op)->first, firstOverlap(op)->second),
               "separate memory, or exactly the vectors that are rotated",
               "Rotate in place, or into memory that nothing else uses."),
};

}  // namespace

std::span<const Rule<MultiRoPE>> multiRoPERules() {
  static const auto all =
      joined<MultiRoPE>({kOperandRules, kResultRules, kNumberRules, kRotaryPositionRules, kRotaryOverlapRules});
  return all;
}
std::span<const Rule<MultiRoPE>> multiRoPEPositionRules() {
  return kRotaryPositionRules;
}

std::span<const Rule<MultiRoPE>> rotarySourceRules() {
  static const auto all = joined<MultiRoPE>({kOperandRules, kNumberRules, kRotaryPositionRules});
  return all;
}

}  // namespace mnk
