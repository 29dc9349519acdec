#include <algorithm>

#include "KVCacheWriteCall.hpp"
#include "Numbers.hpp"
#include "TensorAttacks.hpp"

namespace mnk::fuzz {

namespace {

using Words = KVCacheWriteWords;

std::vector<TensorWords*> tensorsOf(Words& words) {
  std::vector<TensorWords*> tensors;
  for (auto* tensor : {&words.keys, &words.values, &words.keyCache, &words.valueCache, &words.sequences.tensor,
                       &words.positions.tensor}) {
    if (*tensor) tensors.push_back(&**tensor);
  }
  return tensors;
}

TensorWords& anyTensor(Words& words, Seeded& random) {
  const auto tensors = tensorsOf(words);
  return *tensors[random.below(tensors.size())];
}

RowWords& anyRows(Words& words, Seeded& random) {
  return coin(random, 1, 2) ? words.sequences : words.positions;
}

uint64_t capacityOf(const Words& words) {
  return words.keyCache && words.keyCache->shape.size() >= 3
             ? cacheDims(*words.keyCache, words.numbers.into.layout).capacity
             : 1;
}

void loseAHandle(Words& words, Seeded& random) {
  switch (random.below(8)) {
    case 0:
      words.isNull = true;
      return;
    case 1:
    case 2:
      words.keys.reset();
      return;
    case 3:
    case 4:
      words.keyCache.reset();
      return;
    case 5:
      words.values.reset();
      return;
    default:
      words.valueCache.reset();
  }
}

void lieAboutSizes(Words& words, Seeded& random) {
  constexpr size_t own = sizeof(mnk_kv_cache_write), view = sizeof(mnk_kv_cache_view);
  if (coin(random, 1, 3)) {
    words.numbers.into.size = edge(random, {view, view, view + 8, 2 * view});
    return;
  }
  words.numbers.size = edge(random, {own, own, own + 8, 2 * own});
  words.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
}

void leaveTheEnums(Words& words, Seeded& random) {
  const auto number = static_cast<uint32_t>(edge(random, {2, 255, 0x7fff'ffff}));
  switch (random.below(3)) {
    case 0:
      words.numbers.source_layout = test::number<mnk_kv_layout>(number);
      return;
    case 1:
      words.numbers.into.layout = test::number<mnk_kv_layout>(number);
      return;
    default:
      words.numbers.into.wrap = test::number<mnk_kv_wrap>(number);
  }
}

void swapLayoutOrWrap(Words& words, Seeded& random) {
  mnk_kv_cache_write& numbers = words.numbers;
  const auto other = [](auto value) { return static_cast<decltype(value)>(static_cast<uint32_t>(value) ^ 1); };
  if (coin(random, 1, 3)) {
    numbers.into.wrap = other(numbers.into.wrap);
  } else if (coin(random, 1, 2)) {
    numbers.into.layout = other(numbers.into.layout);
  } else {
    numbers.source_layout = other(numbers.source_layout);
  }
}

void moveANumber(Words& words, Seeded& random) {
  mnk_kv_cache_write& numbers = words.numbers;
  const uint64_t capacity = capacityOf(words);
  const uint64_t length = words.keys ? dimsOfKeys(words).tokens : 1;
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

void moveAnyExtent(Words& words, Seeded& random) {
  moveAnExtent(anyTensor(words, random), random);
}

// The same extent everywhere that it occurs, so that the shapes still agree.
void moveAnExtentEverywhere(Words& words, Seeded& random) {
  if (!words.keyCache || words.keyCache->shape.empty()) return;
  const uint64_t old = words.keyCache->shape[random.below(words.keyCache->shape.size())];
  const uint64_t drawn = coin(random, 3, 4)
                             ? oneOf<uint64_t>(random, {(1ull << 31) - 1, 1ull << 31, (1ull << 31) + 1, 0})
                             : edge(random, {old});
  // With one axis empty everywhere, tensors of such extents need no memory.
  const uint64_t empty = words.keyCache->shape.back();
  for (TensorWords* tensor : tensorsOf(words)) {
    for (uint64_t& extent : tensor->shape) extent = extent == old ? drawn : (extent == empty ? 0 : extent);
  }
}

void changeARank(Words& words, Seeded& random) {
  changeTheRank(anyTensor(words, random), random);
}

void changeADType(Words& words, Seeded& random) {
  changeTheDType(anyTensor(words, random), random);
}

void moveToAnotherDevice(Words& words, Seeded& random) {
  anyTensor(words, random).device = 1;
}

void meetAnother(Words& words, Seeded& random) {
  TensorWords& moved = anyTensor(words, random);
  moveBeside(moved, anyTensor(words, random), random);
}

void changeRows(Words& words, Seeded& random) {
  RowWords& rows = anyRows(words, random);
  words.numbers.has_rows = coin(random, 7, 8);
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
          static_cast<uint32_t>(edge(random, {capacityOf(words), 1, 2, 3, UINT32_MAX}));
  }
}

// As many rows as a write may have, or a few more.
void askForManyRows(Words& words, Seeded& random) {
  if (!words.keys || !words.keyCache) return;
  const uint64_t tokens = 1024 + random.below(3);
  mnk_kv_cache_write& numbers = words.numbers;
  words.values.reset();
  words.valueCache.reset();
  words.keysView.reset();
  words.valuesView.reset();
  words.keys->dtype = words.keyCache->dtype = MNK_U8;
  words.keys->shape = {tokens, 1, 1};
  words.keyCache->shape = {1, 1 + random.below(4), 1};
  numbers.source_layout = MNK_TOKEN_MAJOR;
  numbers.into.layout = MNK_HEAD_MAJOR;
  numbers.source_offset = 0;
  numbers.has_tokens = false;
  numbers.into.pinned = 0;
  numbers.has_rows = true;
  uint32_t arena = 2;
  for (RowWords* rows : {&words.sequences, &words.positions}) {
    rows->list.assign(tokens, 0);
    rows->tensor.reset();
    if (coin(random, 3, 4)) rows->tensor = TensorWords{.dtype = MNK_U32, .shape = {tokens}, .arena = arena};
    arena += 1;
  }
}

void changeAView(Words& words, Seeded& random) {
  std::optional<mnk_heads_view>& changed = coin(random, 1, 2) ? words.keysView : words.valuesView;
  const std::optional<TensorWords>& tensor = &changed == &words.keysView ? words.keys : words.values;
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

using Attack = void (*)(Words&, Seeded&);
constexpr Attack kAttacks[] = {
    loseAHandle,      lieAboutSizes, leaveTheEnums,
    swapLayoutOrWrap, moveANumber,   moveANumber,
    moveANumber,      moveAnyExtent, moveAnExtentEverywhere,
    changeARank,      changeADType,  moveToAnotherDevice,
    meetAnother,      changeRows,    changeAView,
};

}  // namespace

void attackOnce(KVCacheWriteWords& words, Seeded& random) {
  kAttacks[random.below(std::size(kAttacks))](words, random);
}

KVCacheWriteWords attackedWrite(Seeded& random, Bank bank) {
  Words words = validWrite(random, bank);
  if (coin(random, 1, 300)) askForManyRows(words, random);
  for (uint64_t left = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}); left > 0; --left) {
    if (tensorsOf(words).empty()) break;
    attackOnce(words, random);
  }
  for (TensorWords* tensor : tensorsOf(words)) makePossible(*tensor, random);
  return words;
}

}  // namespace mnk::fuzz
