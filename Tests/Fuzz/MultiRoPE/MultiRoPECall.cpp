#include "MultiRoPECall.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>

#include "Cases/MultiRoPETrial.hpp"
#include "Ops/MultiRoPERules.hpp"
#include "Ops/RotaryRules.hpp"
#include "Reference/MultiRoPEReference.hpp"
#include "Reference/SoftFloat.hpp"
#include "Support/PlanBuffer.hpp"

namespace mnk::fuzz {

namespace {

using Words = MultiRoPEWords;

DType dtypeOf(const HeadsWords& heads) {
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
  MultiRoPECall(World& world, Seeded& random, Words words) : words_(std::move(words)) {
    mnk_multi_rope& rope = storage_.rope;
    rope = words_.numbers;
    std::memset(storage_.tail, words_.tail, sizeof storage_.tail);
    rope.queries = made(words_.queries, world, random);
    rope.keys = made(words_.keys, world, random);
    rope.rotated_queries = made(words_.rotatedQueries, world, random);
    rope.rotated_keys = made(words_.rotatedKeys, world, random);
    rope.positions = made(words_.positions, world, random);
    rope.offsets = made(words_.offsets, world, random);
    words_.factors.reserve(1);  // not NULL if empty
    rope.rotary.frequency_factors = words_.hasFactors ? words_.factors.data() : nullptr;
    rope.rotary.frequency_factor_count = words_.factorCount.value_or(words_.factors.size());
    for (const HeadsWords* from : {&words_.queries, &words_.keys}) {
      if (from->tensor) fill(world, random, *from->tensor);
    }
    refusal_ = refusalOf(words_);
  }

  std::string text() const override { return words_.text(); }
  std::string refusal() const override { return refusal_; }

  bool isEmpty() const override {
    const mnk_heads_view queries = *placesOf(words_.queries);
    return queries.sequences == 0 || queries.tokens == 0;
  }

  bool isForeign() const override {
    std::vector<const std::optional<TensorWords>*> used{&words_.positions.tensor, &words_.offsets.tensor};
    for (const RotatedWords& rotated : rotatedOf(words_)) {
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

  uint64_t apply(World& world) const override {
    if (isEmpty()) return 0;
    const auto bytes = [&](const HeadsWords& heads) {
      const auto image = heads.tensor ? world.image(*heads.tensor) : std::span<std::byte>();
      return std::vector<std::byte>(image.begin(), image.end());
    };
    test::MultiRoPEOutcome outcome = test::reference(referenceOp(), {.queries = bytes(words_.queries),
                                                                     .keys = bytes(words_.keys),
                                                                     .positions = contents(words_.positions, world),
                                                                     .offsets = contents(words_.offsets, world)});
    const auto conditions = conditionOf(embeddingOf(words_), placesOf(words_.queries)->head_dim);
    for (auto* elements : {&outcome.queries, &outcome.keys}) {
      for (test::TurnedElement& element : *elements) element.radians *= conditions[element.pair];
    }
    const auto rotated = rotatedOf(words_);
    return store(world, rotated.front(), std::move(outcome.queries)) +
           (rotated.size() == 1 ? 0 : store(world, rotated.back(), std::move(outcome.keys)));
  }

 private:
  const mnk_multi_rope* descriptor() const { return words_.isNull ? nullptr : &storage_.rope; }

  static mnk_heads_view made(const HeadsWords& heads, World& world, Seeded& random) {
    mnk_heads_view view = heads.view;
    view.tensor = heads.tensor ? world.make(*heads.tensor, random) : nullptr;
    return view;
  }

  static mnk_rotary_numbers made(NumberWords& numbers, World& world, Seeded& random) {
    numbers.list.reserve(1);  // not NULL if empty
    if (numbers.tensor) world.fill(*numbers.tensor, std::as_bytes(std::span(numbers.list)));
    return {numbers.hasList ? numbers.list.data() : nullptr, numbers.count(), numbers.listAxes,
            numbers.tensor ? world.make(*numbers.tensor, random) : nullptr};
  }

  void fill(World& world, Seeded& random, const TensorWords& tensor) const {
    const auto dtype = static_cast<DType>(tensor.dtype);
    if (!isFloat(dtype)) return;
    std::vector<std::byte> bytes = test::ropeElements(random, dtype, tensor.elements());
    // All exponents of f16 and of the upper half of f32 and bf16 lose a bit, and with it NaN and infinity: a pair with
    // one of them does not stay as it is, even where it does not turn.
    for (size_t byte = 1; words_.isStill && byte < bytes.size(); byte += 2) bytes[byte] &= std::byte{0xbf};
    world.fill(tensor, bytes);
  }

  static std::vector<uint32_t> contents(const NumberWords& numbers, World& world) {
    if (!numbers.tensor) return {};
    std::vector<uint32_t> contents(numbers.tensor->elements());
    if (!contents.empty()) std::memcpy(contents.data(), world.image(*numbers.tensor).data(), contents.size() * 4);
    return contents;
  }

  // Puts results into the image and returns how many bytes the kernel writes: in place there is nothing to do for
  // elements that do not turn.
  static uint64_t store(World& world, const RotatedWords& rotated, std::vector<test::TurnedElement> elements) {
    const TensorWords& tensor = *rotated.into->tensor;
    const DType from = dtypeOf(*rotated.from), into = dtypeOf(*rotated.into);
    uint64_t written = 0;
    for (test::TurnedElement& element : elements) {
      if (element.isTurned) element.bits = test::nearestBits(into, element.value);
      std::memcpy(&world.image(tensor)[element.into * tensor.elementBytes()], &element.bits, tensor.elementBytes());
      if (element.isTurned || !isInPlace(rotated)) written += tensor.elementBytes();
    }
    const auto isBefore = [](const auto& element, uint64_t place) { return element.into < place; };
    std::sort(elements.begin(), elements.end(), [](const auto& a, const auto& b) { return a.into < b.into; });
    world.allow(tensor, [=, elements = std::move(elements)](uint64_t place, uint64_t expected, uint64_t got) {
      const auto element = std::lower_bound(elements.begin(), elements.end(), place, isBefore);
      return element != elements.end() && element->into == place && element->bits == expected &&
             test::isAllowed(*element, from, into, got);
    });
    return written;
  }

  MultiRoPE referenceOp() const {
    const auto tensor = [](const TensorWords& words) {
      return test::planTensor(static_cast<DType>(words.dtype), *Shape::make(words.shape));
    };
    const auto view = [&](const HeadsWords& heads) {
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
    MultiRoPE op{.queries = view(words_.queries), .rotary = embeddingOf(words_)};
    if (words_.keys.tensor) op.keys = view(words_.keys);
    if (words_.rotatedQueries.tensor) op.rotatedQueries = view(words_.rotatedQueries);
    if (words_.rotatedKeys.tensor) op.rotatedKeys = view(words_.rotatedKeys);
    op.positions = RotaryPositions(words_.numbers.first_position);
    if (words_.positions.hasList) {
      op.positions = RotaryPositions(words_.positions.list, std::max(words_.positions.listAxes, 1u));
    }
    if (words_.positions.tensor) op.positions = RotaryPositions(tensor(*words_.positions.tensor));
    if (words_.offsets.hasList) op.offsets = words_.offsets.list;
    if (words_.offsets.tensor) op.offsets = tensor(*words_.offsets.tensor);
    // Sections that reach beyond the last pair say no more than those that end there, and take the reference longer.
    const uint64_t pairs = op.rotary.ropeDim.value_or(placesOf(words_.queries)->head_dim) / 2;
    for (uint32_t& section : op.rotary.sections) section = static_cast<uint32_t>(std::min<uint64_t>(section, pairs));
    return op;
  }

  Words words_;
  std::string refusal_;
  struct {
    mnk_multi_rope rope;
    unsigned char tail[sizeof(mnk_multi_rope)];
  } storage_;
};

std::unique_ptr<Case> makeCase(World& world, Seeded& random) {
  return makeOpCase(world, random, makeMultiRoPECall);
}

std::string textOf(const HeadsWords& heads) {
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

std::string textOf(const NumberWords& numbers) {
  const std::string list =
      fmt::format("{} on {} axes", listText(numbers.list, numbers.hasList, numbers.count()), numbers.listAxes);
  return numbers.tensor ? fmt::format("tensor {} with {}", numbers.tensor->text(), list) : list;
}

}  // namespace

std::string Words::text() const {
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

std::unique_ptr<OpCall> makeMultiRoPECall(World& world, Seeded& random, Wish wish, Bank bank) {
  Words words = wish == Wish::valid ? validRope(random, bank) : attackedRope(random, bank);
  return std::make_unique<MultiRoPECall>(world, random, std::move(words));
}

Target multiRoPETarget() {
  // The C door refuses these before an op exists, and its handles always have memory.
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
