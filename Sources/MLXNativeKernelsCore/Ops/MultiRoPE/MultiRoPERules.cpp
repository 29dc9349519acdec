#include <algorithm>
#include <cmath>

#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/MultiRoPE/MultiRoPE.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// In radians. A double cannot hold the fraction of a turn of a larger frequency precisely enough for large positions.
constexpr double kMaxFrequency = 65536;

bool isKnown(RotaryEmbedding::Layout layout) {
  return layout == RotaryEmbedding::Layout::interleavedPairs || layout == RotaryEmbedding::Layout::halfSplit ||
         hasSections(layout);
}

uint64_t ropeDim(const RotaryCheck& op) {
  return ropeDimOf(op.rotary, op.headDim);
}

bool isVision(const RotaryCheck& op) {
  return op.rotary.layout == RotaryEmbedding::Layout::vision;
}

bool isPositive(double value) {
  return std::isfinite(value) && value > 0;
}

std::string sectionsText(const RotaryEmbedding& rotary) {
  const auto& s = rotary.sections;
  return fmt::format("[{}, {}, {}, {}]", s[0], s[1], s[2], s[3]);
}

const float* firstBadFactor(const RotaryCheck& op) {
  const auto& factors = op.rotary.frequencyFactors;
  const auto found = std::find_if(factors.begin(), factors.end(), [](float factor) { return !(factor > 0); });
  return found == factors.end() ? nullptr : &*found;
}

bool blends(const RotaryCheck& op) {
  return op.rotary.yarn && op.rotary.yarn->extensionFactor != 0;
}

// Context and betas are ignored if the extension factor is 0.
bool isSoundYaRN(const RotaryCheck& op) {
  const RotaryEmbedding::YaRN& yarn = *op.rotary.yarn;
  return yarn.extensionFactor >= 0 && yarn.extensionFactor <= 1 && isPositive(yarn.attentionFactor) &&
         (!blends(op) || (yarn.originalContext > 0 && isPositive(yarn.betaFast) && isPositive(yarn.betaSlow)));
}

std::string yarnText(const RotaryEmbedding::YaRN& yarn) {
  return fmt::format("context {}, extension {}, attention {}, betas {} and {}", yarn.originalContext,
                     yarn.extensionFactor, yarn.attentionFactor, yarn.betaFast, yarn.betaSlow);
}

bool isMagnitude(double magnitude) {
  return isPositive(static_cast<float>(magnitude)) && isPositive(static_cast<float>(1 / magnitude));
}

// The first that is too fast, or is NaN.
std::optional<double> firstTooFast(const RotaryCheck& op) {
  for (double frequency : frequenciesOf(op.rotary, op.headDim)) {
    if (!(std::abs(frequency) <= kMaxFrequency)) return std::abs(frequency);
  }
  return std::nullopt;
}

uint32_t highestAxis(const RotaryCheck& op) {
  uint32_t highest = 0;
  for (uint64_t pair = 0; pair < ropeDim(op) / 2; ++pair) highest = std::max(highest, axisOf(op.rotary, pair));
  return highest;
}

constexpr Rule<RotaryCheck> kRotaryRules[] = {
    INVALID_IF(!isKnown(op.rotary.layout), "the layout is not known",
               fmt::format("mode {}", static_cast<uint32_t>(op.rotary.layout)),
               "0, 2, 8 (mrope), 24 (vision) or 40 (imrope)",
               "Pass one of the layouts that RotaryEmbedding::Layout names."),

    INVALID_IF(op.rotary.pairing > RotaryEmbedding::Pairing::neighbors, "the pairing is not known",
               fmt::format("pairing {}", static_cast<uint32_t>(op.rotary.pairing)),
               "halfOfRopeDim, halfOfHeadDim or neighbors",
               "Pass one of the pairings that RotaryEmbedding::Pairing names."),

    INVALID_IF(op.rotary.otherAxis > RotaryEmbedding::OtherAxis::axis3, "the axis of spare pairs is not known",
               fmt::format("otherAxis {}", static_cast<uint32_t>(op.rotary.otherAxis)), "axis0 or axis3",
               "Pass one of the axes that RotaryEmbedding::OtherAxis names."),

    INVALID_IF(ropeDim(op) == 0 || ropeDim(op) % 2 != 0, "the rope dim is odd or zero", fmt::format("{}", ropeDim(op)),
               "an even number of at least 2",
               "Pass how many elements turn, in pairs, or leave it out for all of them."),

    INVALID_IF(ropeDim(op) > op.headDim, "the rope dim is larger than the head dim", fmt::format("{}", ropeDim(op)),
               fmt::format("at most {}", op.headDim), "Rotate at most the whole head."),

    INVALID_IF(ropeDim(op) > MultiRoPE::kMaxRopeDim, "too many elements turn",
               fmt::format("a rope dim of {}", ropeDim(op)), fmt::format("at most {}", MultiRoPE::kMaxRopeDim),
               "Set a smaller rope dim, or rotate parts of the heads by themselves."),

    INVALID_IF(!isPositive(op.rotary.base), "the base is not a positive number", fmt::format("{}", op.rotary.base),
               "a finite number greater than 0", "Pass the model's base, such as 10000."),

    INVALID_IF(!isPositive(op.rotary.scale), "the scale is not a positive number", fmt::format("{}", op.rotary.scale),
               "a finite number greater than 0",
               "Pass what positions are multiplied by: 1, or less for a longer context."),

    INVALID_IF(!hasSections(op.rotary.layout) && op.rotary.sections != decltype(op.rotary.sections){},
               "sections are given to a layout without sections", sectionsText(op.rotary), "no sections",
               "Leave them out, or choose mrope, imrope or vision."),

    INVALID_IF(hasSections(op.rotary.layout) && pairsOfRound(op.rotary) == 0, "the sections are empty",
               sectionsText(op.rotary), "at least one pair", "Pass the model's sections, counted in pairs."),

    INVALID_IF(isVision(op) && ropeDim(op) != op.headDim, "vision rotates whole heads",
               fmt::format("a rope dim of {}", ropeDim(op)), fmt::format("{}, the head dim", op.headDim),
               "Leave the rope dim out."),

    INVALID_IF(isVision(op) && pairsOfRound(op.rotary) != op.headDim / 2,
               "the sections of vision do not cover the head",
               fmt::format("{} and {}", op.rotary.sections[0], op.rotary.sections[1]),
               fmt::format("a sum of {}, half the head dim", op.headDim / 2),
               "Give each of the two axes its share of the pairs."),

    INVALID_IF(!op.rotary.frequencyFactors.empty() && op.rotary.frequencyFactors.size() != ropeDim(op) / 2,
               "the number of frequency factors is not the number of pairs",
               fmt::format("{}", op.rotary.frequencyFactors.size()), fmt::format("{}, or none", ropeDim(op) / 2),
               "Pass one divisor for each pair."),

    INVALID_IF(firstBadFactor(op), "a frequency factor is not a positive number",
               fmt::format("{}", *firstBadFactor(op)), "numbers greater than 0; with infinity a pair does not turn",
               "Pass the model's divisors."),

    INVALID_IF(blends(op) && isVision(op), "YaRN has no meaning for vision", "YaRN with vision",
               "a layout with one ladder of frequencies", "Leave YaRN out."),

    INVALID_IF(op.rotary.yarn && !isSoundYaRN(op), "a number of YaRN is out of range", yarnText(*op.rotary.yarn),
               "an extension factor from 0 to 1, and all others finite and greater than 0",
               "Pass the numbers that YaRN's definition names; a configuration's attention_factor may mean another."),

    INVALID_IF(blends(op) && op.rotary.base <= 1, "YaRN needs a base above 1", fmt::format("{}", op.rotary.base),
               "a number greater than 1", "Pass the model's base."),

    INVALID_IF(blends(op) && op.rotary.yarn->betaFast <= op.rotary.yarn->betaSlow,
               "YaRN needs a betaFast above its betaSlow",
               fmt::format("betaFast {}, betaSlow {}", op.rotary.yarn->betaFast, op.rotary.yarn->betaSlow),
               "betaFast greater than betaSlow", "Pass the configuration's beta_fast and beta_slow: often 32 and 1."),

    INVALID_IF(blends(op) && op.rotary.scale > 1, "YaRN needs a scale of at most 1", fmt::format("{}", op.rotary.scale),
               "a number greater than 0 and at most 1", "Pass 1 / factor, where factor is the configuration's."),

    INVALID_IF(!isMagnitude(magnitudeOf(op.rotary)), "the magnitude is out of range",
               fmt::format("{} at scale {}", magnitudeOf(op.rotary), op.rotary.scale),
               "a finite f32 greater than 0 with a finite reciprocal", "Pass another attention factor: often 1."),

    INVALID_IF(firstTooFast(op), "a pair turns too fast", fmt::format("{} radians a position", *firstTooFast(op)),
               fmt::format("at most {}", kMaxFrequency),
               "Check base, scale and frequency factors: most models stay below 1."),

    INVALID_IF(op.axesDiffer && !hasSections(op.rotary.layout), "positions have axes that the layout does not use",
               fmt::format("different positions on {} axes, and a layout of one", op.axes),
               "a layout with sections, or positions on one axis",
               "Choose the model's layout, such as mrope, or pass the positions of one axis."),

    INVALID_IF(op.axes != 1 && highestAxis(op) >= op.axes, "positions lack an axis",
               fmt::format("{} axes of positions, and pairs of axis {}", op.axes, highestAxis(op)),
               fmt::format("{} axes, or 1 for all", highestAxis(op) + 1),
               "Pass positions on each axis that the sections use; for imrope, otherAxis says where spare pairs go."),
};

}  // namespace

std::span<const Rule<RotaryCheck>> rotaryRules() {
  return kRotaryRules;
}

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

constexpr Rule<MultiRoPE> kRotatedResultRules[] = {
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
      joined<MultiRoPE>({kOperandRules, kRotatedResultRules, kNumberRules, kRotaryPositionRules, kRotaryOverlapRules});
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
