#include "MultiRoPENumbers.hpp"

#include <algorithm>
#include <limits>

#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Spec = MultiRoPESpec;

constexpr int64_t kFirstPosition = std::numeric_limits<int32_t>::min();
constexpr int64_t kLastPosition = std::numeric_limits<int32_t>::max();

double between(Seeded& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random.below(1 << 20)) / (1 << 20);
}

void drawSections(mnk_rotary_embedding& rotary, Seeded& random, uint64_t pairs) {
  if (rotary.layout == MNK_INTERLEAVED_PAIRS || rotary.layout == MNK_HALF_SPLIT) return;
  for (uint32_t& section : rotary.sections) {
    if (coin(random, 3, 4)) section = static_cast<uint32_t>(random.below(pairs + 2));
    if (coin(random, 1, 16)) section = static_cast<uint32_t>(edge(random, {UINT32_MAX, UINT32_MAX / 3}));
  }
  if (rotary.layout == MNK_VISION) {  // the last two are not read
    rotary.sections[0] = static_cast<uint32_t>(random.below(pairs + 1));
    rotary.sections[1] = static_cast<uint32_t>(pairs - rotary.sections[0]);
  }
  const uint32_t* all = rotary.sections;
  if (std::all_of(all, all + 4, [](uint32_t section) { return section == 0; })) rotary.sections[random.below(4)] = 1;
}

void drawYaRN(mnk_rotary_embedding& rotary, Seeded& random) {
  rotary.has_yarn = true;
  rotary.yarn.keeps_fractions = coin(random, 1, 4);
  rotary.yarn.original_context = coin(random, 3, 4) ? 1 + random.below(1 << 17) : edge(random, {1});
  rotary.yarn.extension_factor = oneOf<float>(random, {1, 1, 1, 0, 0.5f, 1.5f, -0.25f});
  rotary.yarn.attention_factor = coin(random, 1, 2) ? 1 : static_cast<float>(between(random, 0.1, 3));
  rotary.yarn.beta_fast = coin(random, 1, 2) ? 32 : static_cast<float>(between(random, 0.01, 64));
  rotary.yarn.beta_slow = coin(random, 1, 2) ? 1 : static_cast<float>(between(random, 0.01, 64));
  if (rotary.layout == MNK_VISION || rotary.base <= 1) rotary.yarn.extension_factor = 0;
  if (rotary.yarn.extension_factor != 0 || coin(random, 1, 2)) return;
  // Neither is read.
  rotary.yarn.original_context = 0;
  rotary.yarn.beta_fast = -1;
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

// Puts the list into a tensor, where somebody else's list may lie beside it: it is not read.
void moveToTensor(NumberSpec& numbers, Seeded& random, std::vector<uint64_t> shape, uint32_t region) {
  numbers.tensor = TensorSpec{.dtype = coin(random, 1, 2) ? MNK_I32 : MNK_U32, .shape = std::move(shape)};
  numbers.tensor->region = region;
  numbers.hasList = coin(random, 1, 8);
  if (coin(random, 1, 8)) numbers.listCount = edge(random, {1024});
  if (coin(random, 1, 8)) numbers.listAxes = static_cast<uint32_t>(edge(random, {4}));
}

// Where positions are known now, so must be the sums.
void drawOffsets(Spec& spec, Seeded& random, const mnk_heads_view& queries) {
  const NumberSpec& positions = spec.positions;
  const bool isNumber = !positions.tensor && !positions.hasList;
  const bool isList = !positions.tensor && positions.hasList;
  const uint64_t tokens = queries.sequences * queries.tokens;
  for (uint64_t sequence = 0; sequence < queries.sequences; ++sequence) {
    int64_t least = 0, most = 0;
    if (isNumber && tokens != 0) {
      least = spec.numbers.first_position;
      most = least + static_cast<int64_t>(queries.tokens) - 1;
    }
    for (uint64_t index = 0; isList && index < positions.list.size(); ++index) {
      if (index % tokens / queries.tokens != sequence) continue;
      least = std::min<int64_t>(least, positions.list[index]);
      most = std::max<int64_t>(most, positions.list[index]);
    }
    const int64_t offset = std::clamp(drawPosition(random), kFirstPosition - least, kLastPosition - most);
    spec.offsets.list.push_back(static_cast<int32_t>(std::clamp(offset, kFirstPosition, kLastPosition)));
  }
}

}  // namespace

void drawRotary(Spec& spec, Seeded& random, uint64_t headDim) {
  mnk_rotary_embedding& rotary = spec.numbers.rotary;
  rotary.size = sizeof rotary;
  rotary.layout = oneOf(random, {MNK_INTERLEAVED_PAIRS, MNK_HALF_SPLIT, MNK_MROPE, MNK_VISION, MNK_IMROPE});
  rotary.pairing = oneOf(random, {MNK_HALF_OF_ROPE_DIM, MNK_HALF_OF_HEAD_DIM, MNK_NEIGHBORS});
  rotary.other_axis = coin(random, 1, 2) ? MNK_OTHER_AXIS_0 : MNK_OTHER_AXIS_3;
  const bool isVision = rotary.layout == MNK_VISION;
  rotary.has_rope_dim = coin(random, 2, 5) || headDim > 1024;
  rotary.rope_dim = isVision ? headDim : 2 + 2 * random.below(std::min<uint64_t>(headDim, 1024) / 2);
  if (coin(random, 1, 2) && rotary.rope_dim % 8 != 0) rotary.rope_dim = std::max<uint64_t>(rotary.rope_dim / 8 * 8, 2);
  if (isVision) rotary.rope_dim = headDim;
  const uint64_t pairs = (rotary.has_rope_dim ? rotary.rope_dim : headDim) / 2;
  if (!rotary.has_rope_dim) rotary.rope_dim = edge(random, {});  // not read
  drawSections(rotary, random, pairs);

  rotary.base = oneOf<double>(random, {10'000, 10'000, 500'000, 1e6, 2, 1, 0.25, between(random, 0.001, 100)});
  rotary.scale = oneOf<double>(random, {1, 1, 1, 0.25, 0.125, 4, between(random, 1e-4, 8)});
  if (coin(random, 1, 30)) rotary.scale = oneOf<double>(random, {1e-300, 65536, 60000, 1000});
  if (coin(random, 1, 3)) {
    spec.hasFactors = true;
    for (uint64_t pair = 0; pair < pairs; ++pair) {
      spec.factors.push_back(static_cast<float>(between(random, 0.25, 64)));
      if (coin(random, 1, 10)) spec.factors.back() = std::numeric_limits<float>::infinity();
    }
    if (coin(random, 1, 12)) spec.factors.clear();  // a list of none
  }
  if (!spec.isStill && coin(random, 1, 3)) drawYaRN(rotary, random);
  rotary.is_inverse = coin(random, 1, 4);
}

void drawNumbers(Spec& spec, Seeded& random, uint32_t positionRegion, uint32_t offsetRegion) {
  const mnk_heads_view queries = *placesOf(spec.queries);
  const mnk_rotary_embedding& rotary = spec.numbers.rotary;
  const uint64_t tokens = queries.sequences * queries.tokens;
  const uint64_t highest = highestAxisOf(rotary, rotary.has_rope_dim ? rotary.rope_dim : queries.head_dim);
  const uint64_t axes = coin(random, 1, 3) ? 1 : highest + 1 + random.below(4 - highest);
  NumberSpec& positions = spec.positions;

  spec.numbers.first_position = drawPosition(random);
  const uint64_t form = spec.isStill ? 1 + random.below(2) : random.below(3);
  if (form == 0) {
    const int64_t latest = kLastPosition + 1 - static_cast<int64_t>(queries.tokens);
    spec.numbers.first_position = std::min(spec.numbers.first_position, latest);
  } else {
    positions.list.resize(axes * tokens);
    for (int32_t& position : positions.list) position = static_cast<int32_t>(drawPosition(random));
    positions.hasList = true;
    positions.listAxes = static_cast<uint32_t>(axes == 1 ? random.below(2) : axes);
    spec.numbers.first_position *= int64_t{1} << random.below(33);  // not read
  }
  if (form == 2) {
    std::vector<uint64_t> shape{axes, tokens};
    if (coin(random, 1, 3)) shape = {axes, queries.sequences, queries.tokens};
    if (axes == 1 && coin(random, 1, 2)) shape = {tokens};
    moveToTensor(positions, random, std::move(shape), positionRegion);
  }
  if (spec.isStill) {
    // One position for all, to which its opposite is added.
    const auto all = static_cast<int32_t>(std::max(drawPosition(random), -kLastPosition));
    std::fill(positions.list.begin(), positions.list.end(), all);
    spec.offsets.list.assign(queries.sequences, -all);
  } else if (coin(random, 1, 2)) {
    drawOffsets(spec, random, queries);
  } else {
    return;
  }
  spec.offsets.hasList = coin(random, 1, 2);
  if (spec.offsets.hasList) return;
  std::vector<uint64_t> shape{queries.sequences};
  if (coin(random, 1, 3)) shape.insert(shape.begin() + static_cast<ptrdiff_t>(random.below(2)), 1);
  moveToTensor(spec.offsets, random, std::move(shape), offsetRegion);
}

}  // namespace mnk::fuzz
