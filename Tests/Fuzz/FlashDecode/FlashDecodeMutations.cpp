#include <algorithm>
#include <cmath>

#include "Cases/FlashDecodeCase.hpp"
#include "FlashDecodeCall.hpp"
#include "Numbers.hpp"
#include "TensorAttacks.hpp"

namespace mnk::fuzz {

namespace {

using Words = FlashDecodeWords;

TensorWords* anyTensor(Words& words, Seeded& random) {
  std::vector<TensorWords*> present;
  for (auto* tensor : tensorsOf(words)) {
    if (*tensor) present.push_back(&**tensor);
  }
  return present.empty() ? nullptr : present[random.below(present.size())];
}

float wildNumber(Seeded& random) {
  return oneOf(random, {-1.0f, -0.0f, NAN, INFINITY, -INFINITY, 1e-30f, 2.0f});
}

void attackSizes(Words& words, Seeded& random) {
  const auto wild = [&](size_t own) { return edge(random, {own, own, own + 8, 2 * own}); };
  switch (random.below(5)) {
    case 0:
      words.isNull = true;
      return;
    case 1:
      words.size = wild(sizeof(mnk_flash_decode));
      words.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
      return;
    case 2:
      words.resultsSize = wild(sizeof(mnk_attention_results));
      return;
    case 3:
      words.options.size = wild(sizeof(mnk_attention_options));
      return;
    default:
      words.view().size = wild(sizeof(mnk_kv_cache_view));
      words.cache.viewSize = wild(sizeof(mnk_quantized_kv_view));
  }
}

void attackHandles(Words& words, Seeded& random) {
  switch (random.below(6)) {
    case 0:
      words.hasDense = coin(random, 1, 2);
      words.hasQuantized = coin(random, 1, 2);
      return;
    case 1:
      words.hasResults = coin(random, 1, 2);
      return;
    case 2:
      words.hasSequences = coin(random, 1, 2);
      return;
    case 3:
      words.hasOptions = coin(random, 1, 2);
      return;
    default: {
      const auto all = tensorsOf(words);
      all[random.below(all.size())]->reset();
    }
  }
}

void attackNumbers(Words& words, Seeded& random) {
  mnk_attention_options& options = words.options;
  switch (random.below(9)) {
    case 0:
      options.scale = wildNumber(random);
      return;
    case 1:
      options.softcap = wildNumber(random);
      return;
    case 2:
      options.window = static_cast<uint32_t>(edge(random, {1, uint64_t{1} << 31}));
      return;
    case 3:
      options.splits = static_cast<uint32_t>(oneOf<uint64_t>(random, {1, 2, 1025, UINT32_MAX}));
      return;
    case 4:
      options.merge = test::number<mnk_flash_decode_merge>(static_cast<uint32_t>(random.below(4)));
      options.kernel = test::number<mnk_flash_decode_kernel>(static_cast<uint32_t>(2 + random.below(2)));
      return;
    case 5:
      options.is_bidirectional = !options.is_bidirectional;
      return;
    case 6:
      words.view().layout = test::number<mnk_kv_layout>(static_cast<uint32_t>(random.below(3)));
      return;
    case 7:
      words.view().wrap = test::number<mnk_kv_wrap>(static_cast<uint32_t>(random.below(3)));
      return;
    default:
      words.view().pinned = static_cast<uint32_t>(edge(random, {1, 4, 12}));
  }
}

void attackSequences(Words& words, Seeded& random) {
  switch (random.below(5)) {
    case 0:
      words.sequenceCount = edge(random, {words.sequences.size()});
      return;
    case 1:
      words.sequences.push_back({.sequence = 0, .length = 1});
      return;
    case 2:
      if (!words.sequences.empty()) words.sequences.pop_back();
      return;
    default:
      break;
  }
  if (words.sequences.empty()) return;
  mnk_attended_sequence& attended = words.sequences[random.below(words.sequences.size())];
  uint64_t& number = *oneOf(random, {&attended.sequence, &attended.length, &attended.highest});
  number = edge(random, {number, attended.length, 1, 3, 12});
}

void attackCodec(Words& words, Seeded& random) {
  QuantizedPlaneWords& plane = coin(random, 1, 2) ? words.cache.keys : words.cache.values;
  switch (random.below(3)) {
    case 0:
      plane.codec.name = test::number<mnk_kv_codec_name>(static_cast<uint32_t>(random.below(3)));
      return;
    case 1:
      plane.codec.bits = static_cast<uint32_t>(random.below(10));
      return;
    default:
      plane.codec.scale_factor = wildNumber(random);
  }
}

// Shapes and dtypes that are wrong in themselves, or right for another use.
void attackTensor(Words& words, Seeded& random) {
  TensorWords* tensor = anyTensor(words, random);
  if (!tensor) return;
  switch (random.below(7)) {
    case 0:
      return changeTheRank(*tensor, random);
    case 1:
      return changeTheDType(*tensor, random);
    case 2:
    case 3:
      return moveAnExtent(*tensor, random);
    case 4:
      if (!tensor->shape.empty()) tensor->shape.back() = oneOf<uint64_t>(random, {0, 16, 32, 48, 64, 128, 1024});
      return;
    case 5:
      tensor->device = 1;
      return;
    default:
      if (TensorWords* other = anyTensor(words, random)) moveBeside(*tensor, *other, random);
  }
}

// Extents of both planes of the cache.
void setSlots(Words& words, uint64_t heads, uint64_t capacity) {
  for (auto* tensor : {&words.cache.write.keyCache, &words.cache.write.valueCache, &words.cache.keys.scales,
                       &words.cache.values.scales}) {
    if (!*tensor || (*tensor)->shape.size() < 3) continue;
    std::vector<uint64_t>& shape = (*tensor)->shape;
    // Scales have no axis of elements, but those with two.
    const size_t end = shape.size() == words.cache.write.keyCache->shape.size() ? shape.size() - 1 : shape.size();
    const bool isHeadMajor = words.view().layout == MNK_HEAD_MAJOR;
    shape[end - 2] = isHeadMajor ? heads : capacity;
    shape[end - 1] = isHeadMajor ? capacity : heads;
  }
}

// What breaks one rule alone.
void attackCache(Words& words, Seeded& random) {
  std::optional<TensorWords>&keys = words.cache.write.keyCache, &values = words.cache.write.valueCache;
  if (!words.queries || words.queries->shape.empty() || !keys || !values || keys->shape.empty()) return;
  switch (random.below(7)) {
    case 0:
      // Head dims that no kernel has.
      if (values->shape.empty()) return;
      words.queries->shape.back() = keys->shape.back() = oneOf<uint64_t>(random, {20, 44, 260, 320});
      if (words.into && !words.into->shape.empty()) words.into->shape.back() = values->shape.back();
      return;
    case 1:
      // So many that no memory could hold them but for an axis of 0.
      return setSlots(words, 0, uint64_t{1} << 31);
    case 2:
      return setSlots(words, 1 + random.below(2), 0);
    case 3:
      values.reset();
      words.cache.values = {};
      return;
    case 4:
      words.cache.values.channelScales =
          TensorWords{.dtype = MNK_F32, .shape = {1, keys->shape.back()}, .arena = FlashDecodeArena::kChannelScales};
      return;
    default:
      oneOf(random, {&keys, &values, &words.cache.keys.scales, &words.cache.values.scales})->reset();
  }
}

void attackRows(Words& words, Seeded& random) {
  if (!words.queries || words.queries->shape.size() < 2) return;
  std::vector<uint64_t>& shape = words.queries->shape;
  switch (random.below(5)) {
    case 0:
      // As many heads as no group has.
      shape[shape.size() - 2] = 33;
      return;
    case 1:
      if (coin(random, 1, 2)) {
        shape = {shape.back()};
      } else {
        shape.insert(shape.begin(), 5 - std::min<size_t>(shape.size(), 4), 1);
      }
      return;
    case 2:
      words.queries.reset();
      return;
    case 3:
      // More rows than positions.
      for (mnk_attended_sequence& attended : words.sequences) attended.length = std::min<uint64_t>(attended.length, 1);
      return;
    default:
      *oneOf(random, {&words.slopes, &words.sinks, &words.mask}) =
          TensorWords{.dtype = MNK_F32, .shape = {queryDims(words).heads + 1}, .arena = FlashDecodeArena::kSlopes};
  }
}

void attackView(Words& words, Seeded& random) {
  if (!words.queries || !queryPlaces(words)) return;
  mnk_heads_view view = words.queriesView.value_or(*queryPlaces(words));
  if (!words.queriesView) view.size = sizeof view, view.has_strides = true;
  switch (random.below(6)) {
    case 0:
      view.size = edge(random, {sizeof view, sizeof view + 8});
      break;
    case 1:
      view.layout = test::number<mnk_kv_layout>(static_cast<uint32_t>(random.below(3)));
      view.has_strides = false;
      break;
    case 2:
      words.queriesView.reset();
      return;
    default: {
      uint64_t* number = oneOf(random, {&view.sequences, &view.tokens, &view.heads, &view.head_dim, &view.offset,
                                        &view.sequence_stride, &view.token_stride, &view.head_stride});
      *number = edge(random, {*number, 1, 3});
    }
  }
  words.queriesView = view;
}

void attackTargets(Words& words, Seeded& random) {
  switch (random.below(5)) {
    case 0:
      (coin(random, 1, 2) ? words.sums : words.stats).reset();
      return;
    case 1:
      if (words.into) words.sums = words.stats = words.into;
      return;
    case 2:
      words.into.reset();
      return;
    case 3:
      if (words.queries) {
        words.sinks =
            TensorWords{.dtype = MNK_F32, .shape = {queryDims(words).heads}, .arena = FlashDecodeArena::kSinks};
      }
      return;
    default:
      words.scratch = TensorWords{.dtype = oneOf(random, {MNK_U8, MNK_U8, MNK_F32}),
                                  .shape = {random.below(64)},
                                  .arena = FlashDecodeArena::kScratch,
                                  .offset = 4};
      words.options.splits = static_cast<uint32_t>(1 + random.below(3));
  }
}

void attack(Words& words, Seeded& random) {
  switch (random.below(13)) {
    case 0:
      return attackSizes(words, random);
    case 10:
      return attackView(words, random);
    case 1:
      return attackHandles(words, random);
    case 2:
    case 3:
      return attackNumbers(words, random);
    case 4:
      return attackSequences(words, random);
    case 5:
      return attackCodec(words, random);
    case 6:
    case 7:
      return attackCache(words, random);
    case 8:
      return attackRows(words, random);
    case 9:
      return attackTargets(words, random);
    default:
      return attackTensor(words, random);
  }
}

}  // namespace

FlashDecodeWords attacked(FlashDecodeWords words, Seeded& random) {
  for (uint64_t attacks = 1 + random.below(3) / 2; attacks > 0; --attacks) attack(words, random);
  for (auto* tensor : tensorsOf(words)) {
    if (*tensor) makePossible(**tensor, random);
  }
  // A count that the C door believes must be that of the list.
  const auto places = words.queries ? queryPlaces(words) : std::nullopt;
  const uint64_t believed = places ? places->sequences : 1;
  if (words.sequenceCount && *words.sequenceCount <= std::max<uint64_t>(believed, words.sequences.size())) {
    words.sequences.resize(std::min<uint64_t>(*words.sequenceCount, words.sequences.size()));
    words.sequenceCount.reset();
  }
  // How many splits a device chooses is its own affair, and so is what memory they take.
  if (words.usedOptions().splits == 0) words.scratch.reset();
  if (words.options.kernel == MNK_KERNEL_MATRIX && refusalOf(words).empty()) {
    words.options.kernel = MNK_KERNEL_VECTOR;
  }
  return words;
}

}  // namespace mnk::fuzz
