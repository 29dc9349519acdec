// Cases drawn at random, which the op's own tests and the fuzzer share, and cases that a draw would rarely hit.
#include <algorithm>
#include <iterator>
#include <limits>

#include "Ops/MultiRoPE/MultiRoPECase.hpp"

namespace mnk::test::rope {

namespace {

using Layout = RotaryEmbedding::Layout;

constexpr int64_t kFirstPosition = std::numeric_limits<int32_t>::min();
constexpr int64_t kLastPosition = std::numeric_limits<int32_t>::max();

double between(Seeded& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random.below(1 << 20)) / (1 << 20);
}

void drawRotaryExtents(MultiRoPECase& rope, Seeded& random) {
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
    if (rope.tokens < 72) rope.heads = 1 + random.below(3), rope.headDim = 8;
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
  // Half of them at addresses that vectors can use.
  const uint64_t unit = coin(random, 1, 2) ? 4 : 1;
  rope.fromGap = unit * random.below(9 / unit), rope.intoGap = unit * random.below(9 / unit);
  if (unit == 1) rope.fromShift = random.below(5), rope.intoShift = random.below(5);
  using enum RopePlacing;
  std::vector<RopePlacing> all{apart, apart, inPlace, inPlace, inPlaceByName};
  const bool isFused = rope.fromMemory == RopeMemory::columns;
  if (isFused) all.insert(all.end(), {beside, beside});
  if (rope.keyHeads != 0 && rope.intoMemory != RopeMemory::columns) all.insert(all.end(), {keysStay, queriesStay});
  rope.placing = all[random.below(all.size())];
  rope.from = real();
  rope.into = rope.placing == apart && coin(random, 3, 4) ? real() : rope.from;
}

void drawSections(RotaryEmbedding& rotary, Seeded& random, uint64_t pairs) {
  if (rotary.layout == Layout::interleavedPairs || rotary.layout == Layout::halfSplit) return;
  for (uint32_t& section : rotary.sections) {
    if (coin(random, 3, 4)) section = static_cast<uint32_t>(random.below(pairs + 2));
    if (coin(random, 1, 16)) section = static_cast<uint32_t>(edge(random, {UINT32_MAX, UINT32_MAX / 3}));
  }
  if (rotary.layout == Layout::vision) {  // the last two are not read
    rotary.sections[0] = static_cast<uint32_t>(random.below(pairs + 1));
    rotary.sections[1] = static_cast<uint32_t>(pairs - rotary.sections[0]);
  }
  if (rotary.sections == decltype(rotary.sections){}) rotary.sections[random.below(3)] = 1;
}

void drawYaRN(RotaryEmbedding& rotary, Seeded& random) {
  rotary.yarn =
      RotaryEmbedding::YaRN{.originalContext = 1 + random.below(1 << 17),
                            .extensionFactor = oneOf<float>(random, {1, 1, 1, 0, 0.5f, 0.25f, 0.9f}),
                            .attentionFactor = coin(random, 1, 2) ? 1 : static_cast<float>(between(random, 0.1, 3)),
                            .betaFast = coin(random, 1, 2) ? 32 : static_cast<float>(between(random, 0.01, 64)),
                            .betaSlow = coin(random, 1, 2) ? 1 : static_cast<float>(between(random, 0.01, 64)),
                            .roundsCorners = coin(random, 3, 4)};
  RotaryEmbedding::YaRN& yarn = *rotary.yarn;
  if (rotary.layout == Layout::vision || rotary.base <= 1) yarn.extensionFactor = 0;
  if (yarn.extensionFactor == 0) return;
  // A blend needs betas in order and a scale of at most 1.
  if (yarn.betaFast < yarn.betaSlow) std::swap(yarn.betaFast, yarn.betaSlow);
  if (yarn.betaFast == yarn.betaSlow) yarn.betaFast *= 2;
  rotary.scale = std::min(rotary.scale, 1 / rotary.scale);
}

void drawRotary(RotaryEmbedding& rotary, Seeded& random, uint64_t headDim) {
  rotary.layout = kLayouts[random.below(std::size(kLayouts))];
  // Vision turns whole heads, and no longer ones can turn.
  if (headDim > MultiRoPE::kMaxRopeDim) rotary.layout = Layout::mrope;
  rotary.pairing = kPairings[random.below(std::size(kPairings))];
  rotary.otherAxis = kOtherAxes[random.below(std::size(kOtherAxes))];
  const bool isVision = rotary.layout == Layout::vision;
  if (coin(random, 2, 5) || headDim > MultiRoPE::kMaxRopeDim) {
    rotary.ropeDim = 2 + 2 * random.below(std::min<uint64_t>(headDim, MultiRoPE::kMaxRopeDim) / 2);
    if (coin(random, 1, 2)) rotary.ropeDim = std::max<uint64_t>(rotary.ropeDim / 8 * 8, 2);
  }
  if (isVision) rotary.ropeDim = headDim;
  const uint64_t pairs = (rotary.ropeDim == 0 ? headDim : rotary.ropeDim) / 2;
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

// Positions that can be counted, with their offsets and without.
void drawNumbers(MultiRoPECase& rope, Seeded& random) {
  using enum RopeNumbers;
  rope.positions = oneOf(random, {first, list, i32, u32});
  if (4 * rope.totalTokens() > MultiRoPE::kMaxListed && rope.positions == list) rope.positions = i32;
  // As many as the sections use, or more; one counts for all.
  const bool usesAxis3 = rope.rotary.sections[3] != 0 || rope.rotary.otherAxis == RotaryEmbedding::OtherAxis::axis3;
  const uint64_t least = !isSectioned(rope.rotary.layout)       ? 1
                         : rope.rotary.layout == Layout::vision ? 2
                                                                : 3 + usesAxis3;
  rope.axes = rope.positions == first || coin(random, 1, 3) ? 1 : least + random.below(5 - least);
  rope.spread = 1 + random.below(300);
  const auto span = static_cast<int64_t>(std::max(rope.spread, rope.tokens));
  rope.firstPosition = std::min(drawPosition(random), kLastPosition - span);
  rope.offsets = oneOf(random, {none, none, list, i32, u32});
  rope.offsetStep = static_cast<int64_t>(random.below(9));
  const int64_t steps = rope.offsetStep * static_cast<int64_t>(rope.sequences);
  const int64_t lowest = std::max(kFirstPosition, kFirstPosition - rope.firstPosition);
  const int64_t most = std::min(kLastPosition, kLastPosition - rope.firstPosition - span) - steps;
  rope.firstOffset = std::clamp(drawPosition(random), std::min(lowest, most), most);
}

// Sections that models use.
void addModels(std::vector<MultiRoPECase>& cases) {
  struct Model {
    const char* name;
    uint64_t headDim;
    RotaryEmbedding rotary;
  };
  const Model models[] = {
      {"Qwen2-VL", 128, {.layout = Layout::mrope, .sections = {16, 24, 24}, .base = 1e6}},
      {"Qwen3-VL", 128, {.layout = Layout::imrope, .sections = {24, 20, 20}, .base = 5e6}},
      {"Qwen3.5", 256, {.layout = Layout::imrope, .sections = {11, 11, 10}, .base = 1e7, .ropeDim = 64}},
      {"GLM-4V", 128, {.layout = Layout::mrope, .sections = {8, 12, 12}, .ropeDim = 64}},
      {"an image", 72, {.layout = Layout::vision, .sections = {18, 18}}},
  };
  for (const Model& model : models) {
    for (RotaryEmbedding::OtherAxis otherAxis : kOtherAxes) {
      for (RotaryEmbedding::Pairing pairing : kPairings) {
        cases.push_back(rotated(model.name, model.headDim, model.rotary));
        cases.back().rotary.otherAxis = otherAxis;
        cases.back().rotary.pairing = pairing;
      }
    }
  }
}

// Positions and offsets in tensors are taken modulo 2^32.
void addFar(std::vector<MultiRoPECase>& cases) {
  constexpr int64_t kTop = int64_t{1} << 31;
  const auto add = [&](const char* name, RopeNumbers numbers, int64_t position, int64_t offset) {
    cases.push_back({.name = name,
                     .positions = numbers,
                     .firstPosition = position,
                     .spread = 1,
                     .offsets = numbers,
                     .firstOffset = offset});
  };
  add("as far backwards as i32 reaches twice: 2^32, which counts as 0", RopeNumbers::i32, -kTop, -kTop);
  add("as far as u32 reaches twice: modulo 2^32", RopeNumbers::u32, 2 * kTop - 1, 2 * kTop - 1);
  add("just below 2^32", RopeNumbers::u32, 2 * kTop - 2, 1);
  add("a u32 offset that i32 does not hold", RopeNumbers::u32, 3, kTop + 5);
  add("from u32 back to where i32 would be negative", RopeNumbers::u32, kTop, 0);
  cases.push_back({.name = "the last positions that can be counted", .tokens = 2, .firstPosition = kTop - 2});
}

}  // namespace

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

MultiRoPECase drawnCase(Seeded& random) {
  MultiRoPECase rope{.name = "drawn"};
  drawRotaryExtents(rope, random);
  drawMemory(rope, random);
  drawRotary(rope.rotary, random, rope.headDim);
  drawNumbers(rope, random);
  return rope;
}

std::vector<MultiRoPECase> drawnCases(uint64_t count) {
  Seeded random(1, 1);  // the same every time: together they reach every kernel
  std::vector<MultiRoPECase> cases;
  for (uint64_t i = 0; i < count; ++i) {
    MultiRoPECase& rope = cases.emplace_back(drawnCase(random));
    rope.name = fmt::format("case {}: mode {}, {} to {}, {} x {} tokens, {} and {} heads of {}", i,
                            static_cast<int>(rope.rotary.layout), name(rope.from), name(rope.into), rope.sequences,
                            rope.tokens, rope.heads, rope.keyHeads, rope.headDim);
  }
  return cases;
}

std::vector<MultiRoPECase> edgeCases() {
  std::vector<MultiRoPECase> cases;
  addModels(cases);
  addFar(cases);
  for (Layout layout : kLayouts) {
    for (uint64_t headDim : {80, 96, 512}) {
      cases.push_back(rotated(fmt::format("mode {}, heads of {}", static_cast<int>(layout), headDim), headDim,
                              rotaryOf(layout, headDim / 2)));
    }
  }
  cases.push_back({.name = "as many positions as a list holds",
                   .tokens = 256,
                   .heads = 1,
                   .keyHeads = 0,
                   .headDim = 8,
                   .rotary = {.layout = Layout::mrope, .sections = {1, 1, 1, 1}},
                   .positions = RopeNumbers::list,
                   .axes = 4});
  const RotaryEmbedding::YaRN late{.originalContext = 1000000, .betaFast = 60000};
  cases.push_back(
      rotated("YaRN whose ramp would end behind the last element", 32, {.base = 50, .scale = 0.25, .yarn = late}));
  const RotaryEmbedding::YaRN alone{.extensionFactor = 0, .attentionFactor = 1.19f, .roundsCorners = false};
  cases.push_back(rotated("a factor alone", 32, {.base = 150000, .scale = 0.5, .yarn = alone}));
  return cases;
}

}  // namespace mnk::test::rope
