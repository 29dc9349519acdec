#include <algorithm>
#include <limits>

#include "MultiRoPECall.hpp"
#include "MultiRoPENumbers.hpp"
#include "Numbers.hpp"
#include "TensorMutations.hpp"

namespace mnk::fuzz {

namespace {

using Spec = MultiRoPESpec;

std::vector<HeadsSpec*> headsOf(Spec& spec) {
  std::vector<HeadsSpec*> given;
  for (HeadsSpec* heads : spec.views()) {
    if (heads->tensor) given.push_back(heads);
  }
  return given;
}

HeadsSpec& anyHeads(Spec& spec, Seeded& random) {
  const auto given = headsOf(spec);
  return *given[random.below(given.size())];
}

std::vector<TensorSpec*> tensorsOf(Spec& spec) {
  std::vector<TensorSpec*> tensors;
  for (HeadsSpec* heads : headsOf(spec)) tensors.push_back(&*heads->tensor);
  for (NumberSpec* numbers : {&spec.positions, &spec.offsets}) {
    if (numbers->tensor) tensors.push_back(&*numbers->tensor);
  }
  return tensors;
}

TensorSpec& anyTensor(Spec& spec, Seeded& random) {
  const auto tensors = tensorsOf(spec);
  return *tensors[random.below(tensors.size())];
}

// The same vectors by strides.
bool giveStrides(HeadsSpec& heads) {
  const auto places = placesOf(heads);
  if (!places) return false;
  heads.view = *places;
  heads.view.size = sizeof heads.view;
  heads.view.has_strides = true;
  return true;
}

void loseAHandle(Spec& spec, Seeded& random) {
  switch (random.below(6)) {
    case 0:
      spec.isNull = true;
      return;
    case 1:
      spec.queries.tensor.reset();
      return;
    case 2:
      spec.rotatedQueries.tensor.reset();
      return;
    case 3:
      spec.rotatedKeys.tensor.reset();
      return;
    default:
      spec.keys.tensor.reset();
  }
}

void lieAboutSizes(Spec& spec, Seeded& random) {
  constexpr size_t own = sizeof(mnk_multi_rope), view = sizeof(mnk_heads_view), rotary = sizeof(mnk_rotary_embedding);
  switch (random.below(3)) {
    case 0:
      spec.views()[random.below(4)]->view.size = edge(random, {view, view, view + 8, 2 * view});
      return;
    case 1:
      spec.numbers.rotary.size = edge(random, {rotary, rotary, rotary + 8, 2 * rotary});
      return;
    default:
      spec.numbers.size = edge(random, {own, own, own + 8, 2 * own});
      spec.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
  }
}

void leaveTheEnums(Spec& spec, Seeded& random) {
  const auto number = static_cast<uint32_t>(edge(random, {2, 8, 24, 40, 255, 0x7fff'ffff}));
  switch (random.below(4)) {
    case 0:
      anyHeads(spec, random).view.layout = test::number<mnk_kv_layout>(number);
      return;
    case 1:
      spec.numbers.rotary.pairing = test::number<mnk_rotary_pairing>(number);
      return;
    case 2:
      spec.numbers.rotary.other_axis = test::number<mnk_rotary_other_axis>(number);
      return;
    default:
      spec.numbers.rotary.layout = test::number<mnk_rotary_layout>(number);
  }
}

void swapALayout(Spec& spec, Seeded& random) {
  HeadsSpec& heads = anyHeads(spec, random);
  if (coin(random, 1, 2)) {
    heads.view.layout = heads.view.layout == MNK_HEAD_MAJOR ? MNK_TOKEN_MAJOR : MNK_HEAD_MAJOR;
  } else {
    spec.numbers.rotary.layout =
        oneOf(random, {MNK_INTERLEAVED_PAIRS, MNK_HALF_SPLIT, MNK_MROPE, MNK_VISION, MNK_IMROPE});
  }
}

uint64_t* anyCount(mnk_heads_view& view, Seeded& random) {
  return oneOf(random, {&view.sequences, &view.tokens, &view.heads, &view.head_dim});
}

void moveACount(Spec& spec, Seeded& random) {
  HeadsSpec& heads = anyHeads(spec, random);
  if (!giveStrides(heads)) return;
  uint64_t& count = *anyCount(heads.view, random);
  count = coin(random, 1, 2) ? count + random.below(3) - 1 : edge(random, {count, uint64_t{1} << 31});
}

// The same in all views, so that they still match. Without tokens, or with all in one place, none needs memory.
void moveACountEverywhere(Spec& spec, Seeded& random) {
  const uint64_t which = random.below(4);
  const uint64_t large = oneOf<uint64_t>(random, {1026, 4096, (1ull << 31) - 2, 1ull << 31, edge(random, {1024})});
  const uint64_t drawn = coin(random, 1, 2) ? random.below(6) : large;
  const uint64_t treatment = random.below(3);
  for (HeadsSpec* heads : headsOf(spec)) {
    if (!giveStrides(*heads)) continue;
    mnk_heads_view& view = heads->view;
    *std::array{&view.sequences, &view.tokens, &view.heads, &view.head_dim}[which] = drawn;
    if (treatment == 0 && which != 1) view.tokens = 0;
    if (treatment == 1) view.sequence_stride = view.token_stride = view.head_stride = 0;
    if (treatment == 2 && which < 2) view.sequences = 1 << 16, view.tokens = (1 << 15) - drawn % 2;  // 2^31 in all
  }
  if (treatment == 0) spec.positions = {};
}

// Past the end of the tensor, past 64 bits, or onto other vectors.
void moveAStride(Spec& spec, Seeded& random) {
  HeadsSpec& heads = anyHeads(spec, random);
  if (!giveStrides(heads)) return;
  mnk_heads_view& view = heads.view;
  uint64_t& moved = *oneOf(random, {&view.offset, &view.sequence_stride, &view.token_stride, &view.head_stride});
  const uint64_t left = heads.tensor->elements() - view.head_dim;
  moved = oneOf<uint64_t>(random, {0, moved + random.below(3) - 1, moved + random.below(9) - 4,
                                   edge(random, {left, left, view.head_dim, moved, view.token_stride})});
}

void moveAnyExtent(Spec& spec, Seeded& random) {
  moveAnExtent(anyTensor(spec, random), random);
}

void changeARank(Spec& spec, Seeded& random) {
  changeTheRank(anyTensor(spec, random), random);
}

void changeADType(Spec& spec, Seeded& random) {
  changeTheDType(anyTensor(spec, random), random);
}

void moveToAnotherDevice(Spec& spec, Seeded& random) {
  anyTensor(spec, random).device = 1;
}

void meetAnother(Spec& spec, Seeded& random) {
  TensorSpec& moved = anyTensor(spec, random);
  moveBeside(moved, anyTensor(spec, random), random);
}

// Results in the tensor of what is rotated, a few elements from it or with another stride, or of the other operand.
void nearlyInPlace(Spec& spec, Seeded& random) {
  const bool areKeys = spec.keys.tensor && coin(random, 1, 2);
  HeadsSpec& into = areKeys ? spec.rotatedKeys : spec.rotatedQueries;
  const HeadsSpec& from = areKeys == coin(random, 3, 4) && spec.keys.tensor ? spec.keys : spec.queries;
  if (!from.tensor) return;
  into = from;
  if (!giveStrides(into)) return;
  const uint64_t far = into.view.heads * into.view.head_dim;
  const uint64_t step = oneOf<uint64_t>(random, {1, 2, into.view.head_dim, far});
  uint64_t& moved = *oneOf(random, {&into.view.offset, &into.view.offset, &into.view.token_stride});
  moved = coin(random, 1, 2) || moved < step ? moved + step : moved - step;
}

// Positions on an axis less, which some pair may need.
void dropAnAxis(NumberSpec& positions) {
  if (positions.tensor) {
    if (positions.tensor->shape.size() > 1 && positions.tensor->shape[0] > 1) positions.tensor->shape[0] -= 1;
  } else if (positions.listAxes > 1) {
    positions.list.resize(positions.list.size() / positions.listAxes * (positions.listAxes - 1));
    positions.listAxes -= 1;
  }
}

void changeNumbers(Spec& spec, Seeded& random) {
  const bool areOffsets = coin(random, 1, 2);
  NumberSpec& numbers = areOffsets ? spec.offsets : spec.positions;
  switch (random.below(10)) {
    case 0:
      numbers.list.push_back(static_cast<int32_t>(random.below(9)));
      numbers.hasList = true;
      numbers.listCount.reset();
      return;
    case 1:
      if (!numbers.list.empty()) numbers.list.pop_back();
      return;
    case 2:  // nothing where something is promised
      numbers = {.listCount = edge(random, {1, 1024})};
      return;
    case 3:  // more than is there: it must be refused before it is read
      numbers.tensor.reset();
      numbers.hasList = true;
      numbers.listCount = std::max<uint64_t>(1025, edge(random, {1025, 4096}));
      return;
    case 4:
      if (numbers.tensor) numbers.tensor->dtype = oneOf(random, {MNK_F32, MNK_U16, MNK_U8, MNK_I32});
      return;
    case 5:  // as many as a list may have, or a few more
      numbers = {
          .list = std::vector<int32_t>(1022 + random.below(5), 1), .hasList = true, .listAxes = numbers.listAxes};
      return;
    case 6:
      numbers.listAxes = static_cast<uint32_t>(coin(random, 1, 2) ? random.below(6) : edge(random, {4}));
      return;
    case 7:
      return dropAnAxis(spec.positions);
    default:
      if (numbers.list.empty()) return;
      numbers.list[random.below(numbers.list.size())] =
          oneOf(random, {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(),
                         static_cast<int32_t>(edge(random, {})), areOffsets ? -1 : 1});
  }
}

// To where positions end, or where adding to them does.
void moveTheFirstPosition(Spec& spec, Seeded& random) {
  constexpr auto kEnd = int64_t{1} << 31;
  const auto places = spec.queries.tensor ? placesOf(spec.queries) : std::nullopt;
  const auto tokens = static_cast<int64_t>(places ? std::min<uint64_t>(places->tokens, 1 << 20) : 1);
  if (coin(random, 3, 4)) spec.positions = {};
  const auto near = static_cast<int64_t>(random.below(5)) - 2;
  spec.numbers.first_position = oneOf<int64_t>(random, {kEnd + near, kEnd - tokens + near, -kEnd + near,
                                                        static_cast<int64_t>(edge(random, {})), 2 * kEnd + near});
}

using Mutation = void (*)(Spec&, Seeded&);
constexpr Mutation kMutations[] = {
    loseAHandle,          lieAboutSizes,        leaveTheEnums,       swapALayout,  moveACount,
    moveACountEverywhere, moveACountEverywhere, moveAStride,         moveAStride,  moveAnyExtent,
    changeARank,          changeADType,         moveToAnotherDevice, meetAnother,  nearlyInPlace,
    changeNumbers,        moveTheFirstPosition, mutateRotary,        mutateRotary, mutateRotary,
};

}  // namespace

MultiRoPESpec mutatedRope(Seeded& random, Bank bank) {
  for (;;) {
    Spec spec = validRope(random, bank);
    for (uint64_t left = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}); left > 0; --left) {
      if (headsOf(spec).empty()) break;
      kMutations[random.below(std::size(kMutations))](spec, random);
    }
    for (TensorSpec* tensor : tensorsOf(spec)) makePossible(*tensor, random);
    if (!isOpen(spec)) return spec;
  }
}

}  // namespace mnk::fuzz
