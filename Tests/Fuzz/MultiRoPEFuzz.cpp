// Cases of MultiRoPE, drawn at random.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "HeadsViews.hpp"
#include "OpFuzz.hpp"
#include "OpTargets.hpp"
#include "Ops/MultiRoPE/MultiRoPERules.hpp"
#include "Ops/MultiRoPE/MultiRoPERun.hpp"
#include "Ops/MultiRoPE/RotaryRules.hpp"

namespace mnk::fuzz {

namespace {

using test::MultiRoPECase;
using test::RopeMemory;
using test::RopeNumbers;
using test::RopePlacing;

constexpr int64_t kFirstPosition = std::numeric_limits<int32_t>::min();
constexpr int64_t kLastPosition = std::numeric_limits<int32_t>::max();

double between(Seeded& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random.below(1 << 20)) / (1 << 20);
}

void drawExtents(MultiRoPECase& rope, Seeded& random) {
  rope.sequences = oneOf<uint64_t>(random, {0, 0, 1, 2, 3});
  rope.tokens = coin(random, 1, 4) ? 1 : 1 + random.below(6);
  rope.heads = 1 + random.below(4);
  rope.keyHeads = coin(random, 2, 3) ? 1 + random.below(3) : 0;
  rope.headDim = oneOf<uint64_t>(random, {2, 4, 6, 8, 8, 10, 16, 16, 24, 32});
  // A few without tokens: valid, and there is nothing to do.
  if (coin(random, 1, 40)) rope.tokens = 0;
  // Many tokens share heads among threads in another way, and long heads have many pairs.
  if (coin(random, 1, 30)) {
    rope.tokens = oneOf<uint64_t>(random, {30, 60, 125, 250}) + random.below(12);
    rope.heads = 1 + random.below(10), rope.headDim = 2, rope.sequences = random.below(3);
  }
  if (coin(random, 1, 30)) {
    rope.sequences = 0, rope.tokens = rope.heads = rope.keyHeads = 1;
    rope.headDim = oneOf<uint64_t>(random, {64, 128, 256, 512, 1024, 1030, 1030, 1030});
  }
  // Many vectors at distances that do not fit together are not declared one by one.
  if (coin(random, 1, 60)) rope.sequences = rope.heads = 9, rope.tokens = 9 + random.below(3), rope.headDim = 2;
}

void drawMemory(MultiRoPECase& rope, Seeded& random) {
  const auto real = [&] { return oneOf(random, {DType::f32, DType::f16, DType::bf16}); };
  const auto memory = [&] {
    using enum RopeMemory;
    std::vector<RopeMemory> all{tokenMajor, headMajor, tokenMajorGaps, headMajorGaps, sequencesInside};
    if (rope.tokens == 1 && rope.sequences == 0) all.push_back(oneToken);
    if (rope.sequences == 0) all.insert(all.end(), {columns, columns});
    return all[random.below(all.size())];
  };
  rope.fromMemory = memory(), rope.intoMemory = memory();
  rope.fromGap = random.below(9), rope.intoGap = random.below(9);
  using enum RopePlacing;
  std::vector<RopePlacing> all{apart, apart, inPlace, inPlace, inPlaceByName};
  const bool isFused = rope.fromMemory == RopeMemory::columns;
  if (isFused) all.insert(all.end(), {beside, beside});
  if (rope.keyHeads != 0 && rope.intoMemory != RopeMemory::columns) all.insert(all.end(), {keysStay, queriesStay});
  rope.placing = all[random.below(all.size())];
  rope.from = real();
  rope.into = rope.placing == apart && coin(random, 1, 2) ? real() : rope.from;
}

void drawSections(RotaryEmbedding& rotary, Seeded& random, uint64_t pairs) {
  if (rotary.layout == RotaryLayout::interleavedPairs || rotary.layout == RotaryLayout::halfSplit) return;
  for (uint32_t& section : rotary.sections) {
    if (coin(random, 3, 4)) section = static_cast<uint32_t>(random.below(pairs + 2));
    if (coin(random, 1, 16)) section = static_cast<uint32_t>(edge(random, {UINT32_MAX, UINT32_MAX / 3}));
  }
  if (rotary.layout == RotaryLayout::vision) {  // the last two are not read
    rotary.sections[0] = static_cast<uint32_t>(random.below(pairs + 1));
    rotary.sections[1] = static_cast<uint32_t>(pairs - rotary.sections[0]);
  }
  if (rotary.sections == decltype(rotary.sections){}) rotary.sections[random.below(3)] = 1;
}

void drawYaRN(RotaryEmbedding& rotary, Seeded& random) {
  rotary.yarn = YaRN{.originalContext = 1 + random.below(1 << 17),
                     .extensionFactor = oneOf<float>(random, {1, 1, 1, 0, 0.5f, 1.5f, -0.25f}),
                     .attentionFactor = coin(random, 1, 2) ? 1 : static_cast<float>(between(random, 0.1, 3)),
                     .betaFast = coin(random, 1, 2) ? 32 : static_cast<float>(between(random, 0.01, 64)),
                     .betaSlow = coin(random, 1, 2) ? 1 : static_cast<float>(between(random, 0.01, 64)),
                     .roundsCorners = coin(random, 3, 4)};
  if (rotary.layout == RotaryLayout::vision || rotary.base <= 1) rotary.yarn->extensionFactor = 0;
}

void drawRotary(RotaryEmbedding& rotary, Seeded& random, uint64_t headDim) {
  using test::rope::kLayouts, test::rope::kPairings, test::rope::kOtherAxes;
  rotary.layout = kLayouts[random.below(std::size(kLayouts))];
  // Vision turns whole heads, and no longer ones can turn.
  if (headDim > MultiRoPE::kMaxRopeDim) rotary.layout = RotaryLayout::mrope;
  rotary.pairing = kPairings[random.below(std::size(kPairings))];
  rotary.otherAxis = kOtherAxes[random.below(std::size(kOtherAxes))];
  const bool isVision = rotary.layout == RotaryLayout::vision;
  if (coin(random, 2, 5) || headDim > MultiRoPE::kMaxRopeDim) {
    rotary.ropeDim = 2 + 2 * random.below(std::min<uint64_t>(headDim, MultiRoPE::kMaxRopeDim) / 2);
    if (coin(random, 1, 2)) rotary.ropeDim = std::max<uint64_t>(*rotary.ropeDim / 8 * 8, 2);
  }
  if (isVision) rotary.ropeDim = headDim;
  const uint64_t pairs = rotary.ropeDim.value_or(headDim) / 2;
  drawSections(rotary, random, pairs);
  rotary.base = oneOf<double>(random, {10'000, 10'000, 500'000, 1e6, 2, 1, 0.25, between(random, 0.1, 100)});
  rotary.scale = oneOf<double>(random, {1, 1, 1, 0.25, 0.125, 4, between(random, 1e-4, 8)});
  if (coin(random, 1, 3)) {
    for (uint64_t pair = 0; pair < pairs; ++pair) {
      rotary.frequencyFactors.push_back(static_cast<float>(between(random, 0.25, 64)));
      if (coin(random, 1, 10)) rotary.frequencyFactors.back() = std::numeric_limits<float>::infinity();
    }
  }
  if (coin(random, 1, 3)) drawYaRN(rotary, random);
  rotary.isInverse = coin(random, 1, 4);
}

int64_t drawPosition(Seeded& random) {
  switch (random.below(8)) {
    case 0:
      return static_cast<int32_t>(random.next());
    case 1:
      return oneOf<int64_t>(random, {kFirstPosition, kFirstPosition + 1, kLastPosition, kLastPosition - 1, -1, 0});
    case 2:
      return static_cast<int64_t>(random.below(1 << 20));
    case 3:
      return -static_cast<int64_t>(random.below(1 << 12));
    default:
      return static_cast<int64_t>(random.below(300));
  }
}

// Positions that can be counted, with their offsets and without.
void drawNumbers(MultiRoPECase& rope, Seeded& random) {
  const bool hasAxes = rope.rotary.layout == RotaryLayout::mrope || rope.rotary.layout == RotaryLayout::vision ||
                       rope.rotary.layout == RotaryLayout::imrope;
  using enum RopeNumbers;
  rope.positions = oneOf(random, {first, list, i32, u32});
  rope.axes = rope.positions == first || coin(random, 1, 3) ? 1 : (hasAxes ? 4 : 1 + random.below(4));
  rope.spread = 1 + random.below(300);
  const auto span = static_cast<int64_t>(std::max(rope.spread, rope.tokens));
  rope.firstPosition = std::min(drawPosition(random), kLastPosition - span);
  rope.offsets = oneOf(random, {none, none, list, i32, u32});
  rope.offsetStep = static_cast<int64_t>(random.below(9));
  const int64_t steps = rope.offsetStep * static_cast<int64_t>(rope.sequences);
  const int64_t least = std::max(kFirstPosition, kFirstPosition - rope.firstPosition);
  const int64_t most = std::min(kLastPosition, kLastPosition - rope.firstPosition - span) - steps;
  rope.firstOffset = std::clamp(drawPosition(random), std::min(least, most), most);
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

struct MultiRoPEFuzz {
  using Op = MultiRoPE;
  static constexpr bool kTakesAnyBits = true;

  static Op make(Arena& arena, Seeded& random) {
    MultiRoPECase rope{.name = "fuzz"};
    drawExtents(rope, random);
    drawMemory(rope, random);
    drawRotary(rope.rotary, random, rope.headDim);
    drawNumbers(rope, random);
    Op op = test::makeOp(rope, [&](std::string_view, DType dtype, const Shape& shape, uint64_t) {
      return arena.place(dtype, shape, random);
    });
    // Views of what is only read may meet themselves; those of results may not.
    if (rope.placing != RopePlacing::apart) return op;
    for (HeadsView* view : {&op.queries, op.keys ? &*op.keys : nullptr}) {
      if (view && coin(random, 1, 3)) *view = scattered(*view, arena, random, true);
    }
    for (auto* view : {&op.rotatedQueries, &op.rotatedKeys}) {
      if (*view && coin(random, 1, 3)) *view = scattered(**view, arena, random, false);
    }
    return op;
  }

  static const Tensor* numbersOf(const Op& op, bool arePositions) {
    if (arePositions) return std::get_if<Tensor>(&op.positions.source);
    return op.offsets ? std::get_if<Tensor>(&*op.offsets) : nullptr;
  }

  static void fill(const Op& op, Arena& arena, Seeded& random, bool) {
    for (const HeadsView* view : {&op.queries, op.keys ? &*op.keys : &op.queries}) {
      const Tensor& tensor = view->tensor;
      arena.write(tensor, test::ropeElements(random, tensor.dtype(), tensor.shape().elementCount()));
    }
    for (const bool arePositions : {true, false}) {
      const Tensor* tensor = numbersOf(op, arePositions);
      if (!tensor) continue;
      std::vector<uint32_t> numbers(tensor->shape().elementCount());
      for (uint32_t& number : numbers) number = static_cast<uint32_t>(drawPosition(random));
      arena.write(*tensor, std::as_bytes(std::span(numbers)));
    }
  }

  // What is rotated, and where it goes.
  static std::vector<std::pair<const HeadsView*, const HeadsView*>> rotatedOf(const Op& op) {
    std::vector<std::pair<const HeadsView*, const HeadsView*>> all;
    all.emplace_back(&op.queries, op.rotatedQueries ? &*op.rotatedQueries : &op.queries);
    if (op.keys) all.emplace_back(&*op.keys, op.rotatedKeys ? &*op.rotatedKeys : &*op.keys);
    return all;
  }

  // Vectors of results, each as a tensor: other vectors may lie between them.
  static std::vector<Tensor> outputs(const Op& op) {
    std::vector<Tensor> all;
    for (const auto& [from, into] : rotatedOf(op)) {
      const HeadsView::Strides s = into->resolved();
      const uint64_t bytes = byteSize(into->tensor.dtype());
      for (uint64_t vector = 0; vector < s.totalTokens() * s.heads; ++vector) {
        const uint64_t token = vector / s.heads;
        const uint64_t element = s.offset + token / s.tokens * s.sequenceStride + token % s.tokens * s.tokenStride +
                                 vector % s.heads * s.headStride;
        all.push_back(*Tensor::over(into->tensor.buffer(), into->tensor.dtype(), *Shape::make({s.headDim}),
                                    into->tensor.byteOffset() + element * bytes));
      }
    }
    return all;
  }

  static uint64_t expect(const Op& op, const Arena& arena) {
    const HeadsView::Strides queries = op.queries.resolved();
    if (queries.totalTokens() == 0) return 0;
    test::MultiRoPEContents before{.queries = arena.before(op.queries.tensor)};
    if (op.keys) before.keys = arena.before(op.keys->tensor);
    for (const bool arePositions : {true, false}) {
      const Tensor* tensor = numbersOf(op, arePositions);
      if (!tensor) continue;
      const auto bytes = arena.before(*tensor);
      auto& numbers = arePositions ? before.positions : before.offsets;
      numbers.resize(bytes.size() / sizeof(uint32_t));
      std::memcpy(numbers.data(), bytes.data(), bytes.size());
    }
    test::MultiRoPEOutcome outcome = test::reference(op, before);
    const auto conditions = conditionOf(op.rotary, queries.headDim);
    const auto rotated = rotatedOf(op);
    for (const auto& [from, into] : rotated) {
      const DType dtype = into->tensor.dtype();
      const auto got = arena.now(into->tensor);
      for (test::TurnedElement& element : from == &op.queries ? outcome.queries : outcome.keys) {
        if (element.isTurned) element.radians *= conditions[element.pair];
        uint64_t bits = 0;
        std::memcpy(&bits, &got[element.into * byteSize(dtype)], byteSize(dtype));
        if (test::isAllowed(element, from->tensor.dtype(), dtype, bits)) continue;
        test::fail(__FILE__, __LINE__,
                   fmt::format("{} (sequence {}, token {}, head {}, element {}): got bits {:#x}, expected {}",
                               from == &op.queries ? "queries" : "keys", element.sequence, element.token, element.head,
                               element.element, bits, element.value));
        return FuzzedCall::kUnknown;
      }
    }
    return FuzzedCall::kUnknown;
  }
};

}  // namespace

Target multiRoPETarget() {
  auto refusals =
      refusalsOf({"mnk_multi_rope is missing", "mnk_multi_rope has the wrong size", "queries.tensor is missing",
                  "mnk_heads_view has the wrong size", "the number is not a layout", "positions is missing",
                  "there are too many positions", "offsets is missing", "there are too many offsets",
                  "mnk_rotary_embedding has the wrong size", "the number is not a rotary layout",
                  "the number is not a rotary pairing", "the number is not a rotary axis",
                  "frequency_factors is missing", "there are too many frequency factors"},
                 multiRoPERules(), rotaryRules());
  // The C API refuses these before an op exists.
  for (const auto what :
       {"the list of positions is too long", "the list of offsets is too long", "the layout is not known"}) {
    std::erase(refusals, what);
  }
  return {.name = "MultiRoPE", .share = 180, .refusals = std::move(refusals), .make = makeOpCase<MultiRoPEFuzz>};
}

}  // namespace mnk::fuzz
