#include <algorithm>

#include "KVCacheWriteCall.hpp"
#include "Numbers.hpp"
#include "TensorMutations.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheWriteSpec;

std::vector<TensorSpec*> tensorsOf(Spec& spec) {
  std::vector<TensorSpec*> tensors;
  for (auto* tensor :
       {&spec.keys, &spec.values, &spec.keyCache, &spec.valueCache, &spec.sequences.tensor, &spec.positions.tensor}) {
    if (*tensor) tensors.push_back(&**tensor);
  }
  return tensors;
}

TensorSpec& anyTensor(Spec& spec, Seeded& random) {
  const auto tensors = tensorsOf(spec);
  return *tensors[random.below(tensors.size())];
}

RowSpec& anyRows(Spec& spec, Seeded& random) {
  return coin(random, 1, 2) ? spec.sequences : spec.positions;
}

uint64_t capacityOf(const Spec& spec) {
  return spec.keyCache && spec.keyCache->shape.size() >= 3
             ? cacheDims(*spec.keyCache, spec.numbers.into.layout).capacity
             : 1;
}

void loseAHandle(Spec& spec, Seeded& random) {
  switch (random.below(8)) {
    case 0:
      spec.isNull = true;
      return;
    case 1:
    case 2:
      spec.keys.reset();
      return;
    case 3:
    case 4:
      spec.keyCache.reset();
      return;
    case 5:
      spec.values.reset();
      return;
    default:
      spec.valueCache.reset();
  }
}

void lieAboutSizes(Spec& spec, Seeded& random) {
  constexpr size_t own = sizeof(mnk_kv_cache_write), view = sizeof(mnk_kv_cache_view);
  if (coin(random, 1, 3)) {
    spec.numbers.into.size = edge(random, {view, view, view + 8, 2 * view});
    return;
  }
  spec.numbers.size = edge(random, {own, own, own + 8, 2 * own});
  spec.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
}

void leaveTheEnums(Spec& spec, Seeded& random) {
  const auto number = static_cast<uint32_t>(edge(random, {2, 255, 0x7fff'ffff}));
  switch (random.below(3)) {
    case 0:
      spec.numbers.source_layout = test::number<mnk_kv_layout>(number);
      return;
    case 1:
      spec.numbers.into.layout = test::number<mnk_kv_layout>(number);
      return;
    default:
      spec.numbers.into.wrap = test::number<mnk_kv_wrap>(number);
  }
}

void swapLayoutOrWrap(Spec& spec, Seeded& random) {
  mnk_kv_cache_write& numbers = spec.numbers;
  const auto other = [](auto value) { return static_cast<decltype(value)>(static_cast<uint32_t>(value) ^ 1); };
  if (coin(random, 1, 3)) {
    numbers.into.wrap = other(numbers.into.wrap);
  } else if (coin(random, 1, 2)) {
    numbers.into.layout = other(numbers.into.layout);
  } else {
    numbers.source_layout = other(numbers.source_layout);
  }
}

void moveANumber(Spec& spec, Seeded& random) {
  mnk_kv_cache_write& numbers = spec.numbers;
  const uint64_t capacity = capacityOf(spec);
  const uint64_t length = spec.keys ? dimsOfKeys(spec).tokens : 1;
  const uint64_t drawn = edge(random, {capacity, capacity, length, numbers.position, capacity - numbers.tokens});
  switch (random.below(6)) {
    case 0:
      numbers.source_offset = drawn;
      return;
    case 1:
      numbers.has_tokens = true;
      numbers.tokens = drawn;
      return;
    case 2:
      numbers.sequence = coin(random, 1, 2) ? random.below(5) : drawn;
      return;
    case 3:
      numbers.into.pinned = static_cast<uint32_t>(drawn);
      return;
    default:
      numbers.position = drawn;
  }
}

void moveAnyExtent(Spec& spec, Seeded& random) {
  moveAnExtent(anyTensor(spec, random), random);
}

// The same extent everywhere that it occurs, so that the shapes still agree.
void moveAnExtentEverywhere(Spec& spec, Seeded& random) {
  if (!spec.keyCache || spec.keyCache->shape.empty()) return;
  const uint64_t old = spec.keyCache->shape[random.below(spec.keyCache->shape.size())];
  const uint64_t drawn = coin(random, 3, 4)
                             ? oneOf<uint64_t>(random, {(1ull << 31) - 1, 1ull << 31, (1ull << 31) + 1, 0})
                             : edge(random, {old});
  // With one axis empty everywhere, tensors of such extents need no memory.
  const uint64_t empty = spec.keyCache->shape.back();
  for (TensorSpec* tensor : tensorsOf(spec)) {
    for (uint64_t& extent : tensor->shape) extent = extent == old ? drawn : (extent == empty ? 0 : extent);
  }
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

void changeRows(Spec& spec, Seeded& random) {
  RowSpec& rows = anyRows(spec, random);
  spec.numbers.has_rows = coin(random, 7, 8);
  switch (random.below(7)) {
    case 0:
      rows.list.push_back(static_cast<uint32_t>(random.below(2)));
      return;
    case 1:
      if (!rows.list.empty()) rows.list.pop_back();
      return;
    case 2:
      rows.hasList = false;
      rows.tensor.reset();
      return;
    case 3:  // more than is there: it must be refused before it is read
      rows.tensor.reset();
      rows.listCount = std::max<uint64_t>(1025, edge(random, {1025, 4096}));
      return;
    case 4:
      if (rows.tensor) rows.tensor->dtype = oneOf(random, {MNK_I32, MNK_F32, MNK_U16, MNK_U8});
      return;
    default:
      if (rows.list.empty()) return;
      rows.list[random.below(rows.list.size())] =
          static_cast<uint32_t>(edge(random, {capacityOf(spec), 1, 2, 3, UINT32_MAX}));
  }
}

// As many rows as a write may have, or a few more.
void askForManyRows(Spec& spec, Seeded& random) {
  if (!spec.keys || !spec.keyCache) return;
  const uint64_t tokens = 1024 + random.below(3);
  mnk_kv_cache_write& numbers = spec.numbers;
  spec.values.reset();
  spec.valueCache.reset();
  spec.keysView.reset();
  spec.valuesView.reset();
  spec.keys->dtype = spec.keyCache->dtype = MNK_U8;
  spec.keys->shape = {tokens, 1, 1};
  spec.keyCache->shape = {1, 1 + random.below(4), 1};
  numbers.source_layout = MNK_TOKEN_MAJOR;
  numbers.into.layout = MNK_HEAD_MAJOR;
  numbers.source_offset = 0;
  numbers.has_tokens = false;
  numbers.into.pinned = 0;
  numbers.has_rows = true;
  uint32_t region = 2;
  for (RowSpec* rows : {&spec.sequences, &spec.positions}) {
    rows->list.assign(tokens, 0);
    rows->tensor.reset();
    if (coin(random, 3, 4)) rows->tensor = TensorSpec{.dtype = MNK_U32, .shape = {tokens}, .region = region};
    region += 1;
  }
}

void changeAView(Spec& spec, Seeded& random) {
  std::optional<mnk_heads_view>& changed = coin(random, 1, 2) ? spec.keysView : spec.valuesView;
  const std::optional<TensorSpec>& tensor = &changed == &spec.keysView ? spec.keys : spec.values;
  if (!changed) {
    if (coin(random, 1, 2)) return;
    changed.emplace();  // of a tensor that may be missing
    changed->size = sizeof *changed;
  }
  mnk_heads_view& view = *changed;
  uint64_t* numbers[] = {&view.sequences, &view.tokens,          &view.heads,        &view.head_dim,
                         &view.offset,    &view.sequence_stride, &view.token_stride, &view.head_stride};
  uint64_t& number = *numbers[random.below(std::size(numbers))];
  switch (random.below(6)) {
    case 0:
      view.size = edge(random, {sizeof view, sizeof view + 8});
      return;
    case 1:
      view.layout = test::number<mnk_kv_layout>(static_cast<uint32_t>(random.below(3)));
      view.has_strides = false;
      return;
    case 2:
      view.has_strides = !view.has_strides;
      return;
    case 3:
      number = edge(random, {number, tensor ? tensor->elements() : 1});
      return;
    default:
      number = random.below(4) + (coin(random, 1, 2) ? number : 0);
  }
}

using Mutation = void (*)(Spec&, Seeded&);
constexpr Mutation kMutations[] = {
    loseAHandle,      lieAboutSizes, leaveTheEnums,
    swapLayoutOrWrap, moveANumber,   moveANumber,
    moveANumber,      moveAnyExtent, moveAnExtentEverywhere,
    changeARank,      changeADType,  moveToAnotherDevice,
    meetAnother,      changeRows,    changeAView,
};

}  // namespace

void mutateOnce(KVCacheWriteSpec& spec, Seeded& random) {
  kMutations[random.below(std::size(kMutations))](spec, random);
}

KVCacheWriteSpec mutatedWrite(Seeded& random, Bank bank) {
  Spec spec = validWrite(random, bank);
  if (coin(random, 1, 300)) askForManyRows(spec, random);
  for (uint64_t left = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}); left > 0; --left) {
    if (tensorsOf(spec).empty()) break;
    mutateOnce(spec, random);
  }
  for (TensorSpec* tensor : tensorsOf(spec)) makePossible(*tensor, random);
  return spec;
}

}  // namespace mnk::fuzz
