#include "MultiRoPECall.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>

#include "Harness/PlanBuffer.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/MultiRoPE/MultiRoPEReference.hpp"
#include "Ops/MultiRoPE/MultiRoPERules.hpp"
#include "Ops/MultiRoPE/MultiRoPERun.hpp"
#include "Ops/MultiRoPE/RotaryRules.hpp"

namespace mnk::fuzz {

namespace {

using Spec = MultiRoPESpec;

DType dtypeOf(const HeadsSpec& heads) {
  return static_cast<DType>(heads.tensor->dtype);
}

// By how many roundings of itself each pair's frequency may be wrong beside those that every frequency has. YaRN
// subtracts one part of it from another where its extension factor is not between 0 and 1. Where the corners of its
// blend are not rounded to whole pairs, what is wrong with them counts as often as the blend is steep.
std::vector<double> conditionOf(const RotaryEmbedding& rotary, uint64_t headDim) {
  std::vector<double> conditions(rotary.ropeDim.value_or(headDim) / 2, 1);
  if (!rotary.yarn || rotary.yarn->extensionFactor == 0) return conditions;
  const YaRN& yarn = *rotary.yarn;
  RotaryEmbedding plain = rotary;
  plain.yarn.reset();
  const long double dims = 2 * conditions.size(), share = std::abs(yarn.extensionFactor);
  const auto corner = [&](long double turns) {
    const long double all = yarn.originalContext / (2 * std::numbers::pi_v<long double> * turns);
    return dims * std::log(all) / (2 * std::log(static_cast<long double>(rotary.base)));
  };
  const long double fast = corner(yarn.betaFast), slow = corner(yarn.betaSlow);
  const long double width = std::max(0.001L, std::min(slow, dims - 1) - std::max(fast, 0.0L));
  for (uint64_t pair = 0; pair < conditions.size(); ++pair) {
    const long double scaled = test::referenceFrequency(plain, headDim, pair);
    const long double kept = scaled / rotary.scale;
    const bool isSum = yarn.extensionFactor > 0 && share <= 1;
    long double parts = isSum ? 0 : scaled * (1 + share) + kept * share;
    const long double far = std::abs(fast) + std::abs(slow) + pair;
    if (!yarn.roundsCorners) parts += (scaled + kept) * share * far / width;
    const long double sum = std::abs(test::referenceFrequency(rotary, headDim, pair));
    if (sum > 0) conditions[pair] = static_cast<double>(std::clamp(parts / sum, 1.0L, 0x1p60L));
  }
  return conditions;
}

class MultiRoPECall final : public OpCall {
 public:
  MultiRoPECall(Arena& arena, Seeded& random, Spec spec) : spec_(std::move(spec)) {
    mnk_multi_rope& rope = storage_.rope;
    rope = spec_.numbers;
    std::memset(storage_.tail, spec_.tail, sizeof storage_.tail);
    rope.queries = made(spec_.queries, arena, random);
    rope.keys = made(spec_.keys, arena, random);
    rope.rotated_queries = made(spec_.rotatedQueries, arena, random);
    rope.rotated_keys = made(spec_.rotatedKeys, arena, random);
    rope.positions = made(spec_.positions, arena, random);
    rope.offsets = made(spec_.offsets, arena, random);
    spec_.factors.reserve(1);  // not NULL if empty
    rope.rotary.frequency_factors = spec_.hasFactors ? spec_.factors.data() : nullptr;
    rope.rotary.frequency_factor_count = spec_.factorCount.value_or(spec_.factors.size());
    for (const HeadsSpec* from : {&spec_.queries, &spec_.keys}) {
      if (from->tensor) fill(arena, random, *from->tensor);
    }
    refusal_ = refusalOf(spec_);
  }

  std::string text() const override { return spec_.text(); }
  std::string refusal() const override { return refusal_; }

  bool isEmpty() const override {
    const mnk_heads_view queries = *placesOf(spec_.queries);
    return queries.sequences == 0 || queries.tokens == 0;
  }

  bool isForeign() const override {
    std::vector<const std::optional<TensorSpec>*> used{&spec_.positions.tensor, &spec_.offsets.tensor};
    for (const RotatedSpec& rotated : rotatedOf(spec_)) {
      used.push_back(&rotated.into->tensor);
      // What stays in place is read where it is written.
      if (!isInPlace(rotated)) used.push_back(&rotated.from->tensor);
    }
    return std::any_of(used.begin(), used.end(), [](const auto* tensor) { return *tensor && (*tensor)->device != 0; });
  }

  mnk_plan* makePlan(mnk_error_out error) const override { return mnk_multi_rope_make_plan(descriptor(), error); }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_multi_rope(encoder, descriptor(), error);
  }

  uint64_t apply(Arena& arena) const override {
    if (isEmpty()) return 0;
    const auto bytes = [&](const HeadsSpec& heads) {
      const auto image = heads.tensor ? arena.image(*heads.tensor) : std::span<std::byte>();
      return std::vector<std::byte>(image.begin(), image.end());
    };
    test::MultiRoPEOutcome outcome = test::reference(referenceOp(), {.queries = bytes(spec_.queries),
                                                                     .keys = bytes(spec_.keys),
                                                                     .positions = contents(spec_.positions, arena),
                                                                     .offsets = contents(spec_.offsets, arena)});
    const auto conditions = conditionOf(embeddingOf(spec_), placesOf(spec_.queries)->head_dim);
    for (auto* elements : {&outcome.queries, &outcome.keys}) {
      for (test::TurnedElement& element : *elements) element.radians *= conditions[element.pair];
    }
    const auto rotated = rotatedOf(spec_);
    return store(arena, rotated.front(), std::move(outcome.queries)) +
           (rotated.size() == 1 ? 0 : store(arena, rotated.back(), std::move(outcome.keys)));
  }

 private:
  const mnk_multi_rope* descriptor() const { return spec_.isNull ? nullptr : &storage_.rope; }

  static mnk_heads_view made(const HeadsSpec& heads, Arena& arena, Seeded& random) {
    mnk_heads_view view = heads.view;
    view.tensor = heads.tensor ? arena.make(*heads.tensor, random) : nullptr;
    return view;
  }

  static mnk_rotary_numbers made(NumberSpec& numbers, Arena& arena, Seeded& random) {
    numbers.list.reserve(1);  // not NULL if empty
    if (numbers.tensor) arena.fill(*numbers.tensor, std::as_bytes(std::span(numbers.list)));
    return {numbers.hasList ? numbers.list.data() : nullptr, numbers.count(), numbers.listAxes,
            numbers.tensor ? arena.make(*numbers.tensor, random) : nullptr};
  }

  void fill(Arena& arena, Seeded& random, const TensorSpec& tensor) const {
    const auto dtype = static_cast<DType>(tensor.dtype);
    if (!isFloat(dtype)) return;
    std::vector<std::byte> bytes = test::ropeElements(random, dtype, tensor.elements());
    // All exponents of f16 and of the upper half of f32 and bf16 lose a bit, and with it NaN and infinity: a pair with
    // one of them does not stay as it is, even where it does not turn.
    for (size_t byte = 1; spec_.isStill && byte < bytes.size(); byte += 2) bytes[byte] &= std::byte{0xbf};
    arena.fill(tensor, bytes);
  }

  static std::vector<uint32_t> contents(const NumberSpec& numbers, Arena& arena) {
    if (!numbers.tensor) return {};
    std::vector<uint32_t> contents(numbers.tensor->elements());
    if (!contents.empty()) std::memcpy(contents.data(), arena.image(*numbers.tensor).data(), contents.size() * 4);
    return contents;
  }

  // Puts results into the image and returns how many bytes the kernel writes: in place there is nothing to do for
  // elements that do not turn.
  static uint64_t store(Arena& arena, const RotatedSpec& rotated, std::vector<test::TurnedElement> elements) {
    const TensorSpec& tensor = *rotated.into->tensor;
    const DType from = dtypeOf(*rotated.from), into = dtypeOf(*rotated.into);
    uint64_t written = 0;
    for (test::TurnedElement& element : elements) {
      if (element.isTurned) element.bits = test::nearestBits(into, element.value);
      std::memcpy(&arena.image(tensor)[element.into * tensor.elementBytes()], &element.bits, tensor.elementBytes());
      if (element.isTurned || !isInPlace(rotated)) written += tensor.elementBytes();
    }
    const auto isBefore = [](const auto& element, uint64_t place) { return element.into < place; };
    std::sort(elements.begin(), elements.end(), [](const auto& a, const auto& b) { return a.into < b.into; });
    arena.allow(tensor, [=, elements = std::move(elements)](uint64_t place, uint64_t expected, uint64_t got) {
      const auto element = std::lower_bound(elements.begin(), elements.end(), place, isBefore);
      return element != elements.end() && element->into == place && element->bits == expected &&
             test::isAllowed(*element, from, into, got);
    });
    return written;
  }

  MultiRoPE referenceOp() const {
    const auto tensor = [](const TensorSpec& spec) {
      return test::planTensor(static_cast<DType>(spec.dtype), *Shape::make(spec.shape));
    };
    const auto view = [&](const HeadsSpec& heads) {
      const mnk_heads_view places = *placesOf(heads);
      return HeadsView(tensor(*heads.tensor), HeadsView::Strides{.sequences = places.sequences,
                                                                 .tokens = places.tokens,
                                                                 .heads = places.heads,
                                                                 .headDim = places.head_dim,
                                                                 .offset = places.offset,
                                                                 .sequenceStride = places.sequence_stride,
                                                                 .tokenStride = places.token_stride,
                                                                 .headStride = places.head_stride});
    };
    MultiRoPE op{.queries = view(spec_.queries), .rotary = embeddingOf(spec_)};
    if (spec_.keys.tensor) op.keys = view(spec_.keys);
    if (spec_.rotatedQueries.tensor) op.rotatedQueries = view(spec_.rotatedQueries);
    if (spec_.rotatedKeys.tensor) op.rotatedKeys = view(spec_.rotatedKeys);
    op.positions = RotaryPositions(spec_.numbers.first_position);
    if (spec_.positions.hasList) {
      op.positions = RotaryPositions(spec_.positions.list, std::max(spec_.positions.listAxes, 1u));
    }
    if (spec_.positions.tensor) op.positions = RotaryPositions(tensor(*spec_.positions.tensor));
    if (spec_.offsets.hasList) op.offsets = spec_.offsets.list;
    if (spec_.offsets.tensor) op.offsets = tensor(*spec_.offsets.tensor);
    // Sections that reach beyond the last pair say no more than those that end there, and take the reference longer.
    const uint64_t pairs = op.rotary.ropeDim.value_or(placesOf(spec_.queries)->head_dim) / 2;
    for (uint32_t& section : op.rotary.sections) section = static_cast<uint32_t>(std::min<uint64_t>(section, pairs));
    return op;
  }

  Spec spec_;
  std::string refusal_;
  struct {
    mnk_multi_rope rope;
    unsigned char tail[sizeof(mnk_multi_rope)];
  } storage_;
};

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  return makeOpCase(arena, random, makeMultiRoPECall);
}

std::string textOf(const HeadsSpec& heads) {
  if (!heads.tensor) return "none";
  const mnk_heads_view& view = heads.view;
  const std::string tensor = fmt::format("{} (view size {})", heads.tensor->text(), view.size);
  if (!view.has_strides) return fmt::format("{}, layout {}", tensor, static_cast<uint32_t>(view.layout));
  return fmt::format("{}: {} x {} tokens, {} heads of {} at {}, strides {}, {} and {}", tensor, view.sequences,
                     view.tokens, view.heads, view.head_dim, view.offset, view.sequence_stride, view.token_stride,
                     view.head_stride);
}

template <typename Number>
std::string listText(const std::vector<Number>& list, bool hasList, uint64_t count) {
  return fmt::format("{} of {} {{{}}}", hasList ? "a list" : "no list", count,
                     fmt::join(list.begin(), list.begin() + std::min<ptrdiff_t>(std::ssize(list), 24), ", "));
}

std::string textOf(const NumberSpec& numbers) {
  const std::string list =
      fmt::format("{} on {} axes", listText(numbers.list, numbers.hasList, numbers.count()), numbers.listAxes);
  return numbers.tensor ? fmt::format("tensor {} with {}", numbers.tensor->text(), list) : list;
}

}  // namespace

std::string Spec::text() const {
  if (isNull) return "MultiRoPE: a NULL descriptor";
  const mnk_rotary_embedding& rotary = numbers.rotary;
  const mnk_yarn& yarn = rotary.yarn;
  std::string text = fmt::format(
      "MultiRoPE (size {}, tail {}, rotary size {}):\n  queries {}\n  rotated queries {}\n  keys {}\n  rotated keys "
      "{}\n"
      "  positions {}, first {}\n  offsets {}\n  layout {}, sections {}, base {}, rope dim {}, pairing {}, other axis "
      "{}, "
      "scale {}{}",
      numbers.size, tail, rotary.size, textOf(queries), textOf(rotatedQueries), textOf(keys), textOf(rotatedKeys),
      textOf(positions), numbers.first_position, textOf(offsets), static_cast<uint32_t>(rotary.layout),
      fmt::join(rotary.sections, " "), rotary.base, rotary.has_rope_dim ? fmt::format("{}", rotary.rope_dim) : "all",
      static_cast<uint32_t>(rotary.pairing), static_cast<uint32_t>(rotary.other_axis), rotary.scale,
      rotary.is_inverse ? ", inverse" : "");
  text += fmt::format("\n  factors {}", listText(factors, hasFactors, factorCount.value_or(factors.size())));
  if (!rotary.has_yarn) return text;
  return text + fmt::format("\n  YaRN: context {}, extension {}, attention {}, betas {} and {}{}",
                            yarn.original_context, yarn.extension_factor, yarn.attention_factor, yarn.beta_fast,
                            yarn.beta_slow, yarn.keeps_fractions ? ", with fractions" : "");
}

std::unique_ptr<OpCall> makeMultiRoPECall(Arena& arena, Seeded& random, Wish wish, Bank bank) {
  Spec spec = wish == Wish::valid ? validRope(random, bank) : mutatedRope(random, bank);
  return std::make_unique<MultiRoPECall>(arena, random, std::move(spec));
}

Target multiRoPETarget() {
  // The C API refuses these before an op exists, and its handles always have memory.
  const std::set<std::string_view> unreachable{"an operand has no memory", "the list of positions is too long",
                                               "the list of offsets is too long", "the layout is not known"};
  std::vector<std::string_view> refusals = encoderRefusals();
  const auto add = [&](const auto& rules) {
    for (const auto& rule : rules) {
      if (!unreachable.contains(rule.what)) refusals.push_back(rule.what);
    }
  };
  add(multiRoPERules());
  add(rotaryRules());
  refusals.insert(refusals.end(),
                  {"mnk_multi_rope is missing", "mnk_multi_rope has the wrong size", "queries.tensor is missing",
                   "mnk_heads_view has the wrong size", "the number is not a layout", "positions is missing",
                   "there are too many positions", "offsets is missing", "there are too many offsets",
                   "mnk_rotary_embedding has the wrong size", "the number is not a rotary layout",
                   "the number is not a rotary pairing", "the number is not a rotary axis",
                   "frequency_factors is missing", "there are too many frequency factors"});
  return {.name = "MultiRoPE", .share = 180, .refusals = std::move(refusals), .make = makeCase};
}

}  // namespace mnk::fuzz
