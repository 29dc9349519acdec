// The op of a case; cases drawn at random, which the op's own tests and the fuzzer share; and cases that a draw would
// rarely hit.
#include "Ops/MultiRoPE/MultiRoPECase.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace mnk::test {

namespace {

uint64_t sequencesOf(const MultiRoPECase& rope) {
  return std::max<uint64_t>(rope.sequences, 1);
}

// Half of a case: what is rotated, or where it goes.
struct Side {
  RopeMemory memory;
  DType dtype;
  uint64_t gap;
  uint64_t shift;
  std::string_view queriesName;
  std::string_view keysName;

  Tensor make(std::string_view name, const std::vector<uint64_t>& extents, const MakeNamedTensor& makeTensor) const {
    return makeTensor(name, dtype, REQUIRE(Shape::make(extents)), shift * byteSize(dtype));
  }
};

struct Operands {
  HeadsView queries;
  std::optional<HeadsView> keys;
};

// Read by shape, or with strides: axes from the outermost to the innermost, each followed by a gap.
HeadsView viewOn(const MultiRoPECase& rope, const Side& side, std::string_view name, uint64_t heads,
                 const MakeNamedTensor& makeTensor) {
  using enum RopeMemory;
  if (side.memory == oneToken) return side.make(name, {heads, rope.headDim}, makeTensor);
  const bool isHeadMajor = side.memory == headMajor || side.memory == headMajorGaps;
  if (side.memory == tokenMajor || side.memory == headMajor) {
    std::vector<uint64_t> extents{rope.tokens, heads, rope.headDim};
    if (isHeadMajor) std::swap(extents[0], extents[1]);
    if (rope.sequences != 0) extents.insert(extents.begin(), rope.sequences);
    return {side.make(name, extents, makeTensor), isHeadMajor ? KVLayout::headMajor : KVLayout::tokenMajor};
  }
  HeadsView::Strides strides{.sequences = sequencesOf(rope),
                             .tokens = rope.tokens,
                             .heads = heads,
                             .headDim = rope.headDim,
                             .offset = side.gap};
  std::pair<uint64_t, uint64_t*> outward[] = {{strides.heads, &strides.headStride},
                                              {strides.tokens, &strides.tokenStride},
                                              {strides.sequences, &strides.sequenceStride}};
  if (isHeadMajor) std::swap(outward[0], outward[1]);
  if (side.memory == sequencesInside) std::swap(outward[1], outward[2]);
  uint64_t length = rope.headDim;
  for (const auto& [count, stride] : outward) {
    *stride = length + side.gap;
    length = count * *stride;
  }
  return {side.make(name, {side.gap + length}, makeTensor), strides};
}

// gap | queries | gap | keys | gap, as often as there are copies.
uint64_t copyWidth(const MultiRoPECase& rope, uint64_t gap) {
  return 3 * gap + (rope.heads + rope.keyHeads) * rope.headDim;
}
Operands columnsOf(const MultiRoPECase& rope, const Tensor& tensor, uint64_t gap, uint64_t copy) {
  const uint64_t first = copy * copyWidth(rope, gap) + gap;
  Operands operands{.queries = REQUIRE(HeadsView::columns(tensor, first, rope.heads, rope.headDim)), .keys = {}};
  const uint64_t second = first + rope.heads * rope.headDim + gap;
  if (rope.keyHeads) operands.keys = REQUIRE(HeadsView::columns(tensor, second, rope.keyHeads, rope.headDim));
  return operands;
}

Operands operandsOn(const MultiRoPECase& rope, const Side& side, const MakeNamedTensor& makeTensor) {
  if (side.memory == RopeMemory::columns) {
    const uint64_t copies = rope.placing == RopePlacing::beside ? 2 : 1;
    const std::vector<uint64_t> extents{rope.tokens, copies * copyWidth(rope, side.gap)};
    return columnsOf(rope, side.make(side.queriesName, extents, makeTensor), side.gap, 0);
  }
  Operands operands{.queries = viewOn(rope, side, side.queriesName, rope.heads, makeTensor), .keys = {}};
  if (rope.keyHeads) operands.keys = viewOn(rope, side, side.keysName, rope.keyHeads, makeTensor);
  return operands;
}

// The results of a case, in the tensors of its sources or in others.
Operands resultsOf(const MultiRoPECase& rope, const Operands& from, const MakeNamedTensor& makeTensor) {
  const Side side{rope.intoMemory, rope.into, rope.intoGap, rope.intoShift, "rotated queries", "rotated keys"};
  switch (rope.placing) {
    case RopePlacing::inPlace:
    case RopePlacing::inPlaceByName:
      return from;
    case RopePlacing::apart:
      return operandsOn(rope, side, makeTensor);
    case RopePlacing::beside:
      return columnsOf(rope, from.queries.tensor, rope.fromGap, 1);
    case RopePlacing::keysStay:
      return {viewOn(rope, side, side.queriesName, rope.heads, makeTensor), from.keys};
    case RopePlacing::queriesStay:
      return {from.queries, viewOn(rope, side, side.keysName, rope.keyHeads, makeTensor)};
  }
  return from;
}

std::vector<int32_t> narrowed(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

DType dtypeOf(RopeNumbers numbers) {
  return numbers == RopeNumbers::u32 ? DType::u32 : DType::i32;
}

}  // namespace

std::vector<int64_t> positionsOf(const MultiRoPECase& rope) {
  std::vector<int64_t> numbers;
  // A list for a layout of one axis must be the same on all.
  const bool isText = rope.positions == RopeNumbers::list && !rope::isSectioned(rope.rotary.layout);
  for (uint64_t axis = 0; axis < rope.axes; ++axis) {
    for (uint64_t token = 0; token < rope.totalTokens(); ++token) {
      const uint64_t step = (37 * token + (isText ? 0 : 101 * axis + 11 * token * axis)) % rope.spread;
      numbers.push_back(rope.firstPosition + static_cast<int64_t>(step));
    }
  }
  return numbers;
}

std::vector<int64_t> offsetsOf(const MultiRoPECase& rope) {
  std::vector<int64_t> numbers;
  for (uint64_t sequence = 0; sequence < sequencesOf(rope); ++sequence) {
    numbers.push_back(rope.firstOffset + static_cast<int64_t>(sequence) * rope.offsetStep);
  }
  return numbers;
}

MultiRoPE makeOp(const MultiRoPECase& rope, const MakeNamedTensor& makeTensor) {
  MultiRoPE op;
  op.rotary = rope.rotary;
  const Operands from =
      operandsOn(rope, {rope.fromMemory, rope.from, rope.fromGap, rope.fromShift, "queries", "keys"}, makeTensor);
  op.queries = from.queries;
  op.keys = from.keys;
  if (rope.placing != RopePlacing::inPlace) {
    const Operands into = resultsOf(rope, from, makeTensor);
    if (rope.placing != RopePlacing::queriesStay) op.rotatedQueries = into.queries;
    if (rope.placing != RopePlacing::keysStay) op.rotatedKeys = into.keys;
  }

  if (rope.positions == RopeNumbers::first) {
    op.positions = rope.firstPosition;
  } else if (rope.positions == RopeNumbers::list) {
    op.positions = RotaryPositions(narrowed(positionsOf(rope)), static_cast<uint32_t>(rope.axes));
  } else {
    // One axis may be left out of the shape, and sequences may have one of their own.
    const bool isFlat = rope.axes == 1 && rope.positions == RopeNumbers::u32;
    const bool isDeep = rope.sequences != 0 && rope.positions == RopeNumbers::i32;
    const Shape shape = REQUIRE(isFlat   ? Shape::make({rope.totalTokens()})
                                : isDeep ? Shape::make({rope.axes, rope.sequences, rope.tokens})
                                         : Shape::make({rope.axes, rope.totalTokens()}));
    op.positions = makeTensor("positions", dtypeOf(rope.positions), shape, 0);
  }
  if (rope.offsets == RopeNumbers::list) {
    op.offsets = narrowed(offsetsOf(rope));
  } else if (rope.offsets != RopeNumbers::none) {
    op.offsets = makeTensor("offsets", dtypeOf(rope.offsets), REQUIRE(Shape::make({sequencesOf(rope)})), 0);
  }
  return op;
}

namespace rope {

bool isSectioned(RotaryEmbedding::Layout layout) {
  return layout == RotaryEmbedding::Layout::mrope || layout == RotaryEmbedding::Layout::imrope ||
         layout == RotaryEmbedding::Layout::vision;
}

RotaryEmbedding rotaryOf(RotaryEmbedding::Layout layout, uint64_t pairs) {
  RotaryEmbedding rotary{.layout = layout};
  const auto half = static_cast<uint32_t>(pairs / 2), rest = static_cast<uint32_t>(pairs) - half;
  if (layout == RotaryEmbedding::Layout::vision) rotary.sections = {rest + half / 2, half - half / 2};
  if (layout == RotaryEmbedding::Layout::mrope)
    rotary.sections = {rest - rest / 3, rest / 3, half - half / 4, half / 4};
  if (layout == RotaryEmbedding::Layout::imrope) rotary.sections = {half, rest - rest / 3, rest / 3};
  return rotary;
}

MultiRoPECase rotated(std::string name, uint64_t headDim, RotaryEmbedding rotary) {
  MultiRoPECase rope{.name = std::move(name), .headDim = headDim, .rotary = std::move(rotary)};
  if (isSectioned(rope.rotary.layout)) {
    rope.positions = RopeNumbers::list;
    rope.axes = 4;
  }
  return rope;
}

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

}  // namespace rope

}  // namespace mnk::test
