#include <algorithm>
#include <cmath>

#include "FlashDecodeCall.hpp"
#include "Numbers.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"
#include "TensorMutations.hpp"

namespace mnk::fuzz {

namespace {

using Spec = FlashDecodeSpec;

TensorSpec* anyTensor(Spec& spec, Seeded& random) {
  std::vector<TensorSpec*> present;
  for (auto* tensor : tensorsOf(spec)) {
    if (*tensor) present.push_back(&**tensor);
  }
  return present.empty() ? nullptr : present[random.below(present.size())];
}

float wildNumber(Seeded& random) {
  return oneOf(random, {-1.0f, -0.0f, NAN, INFINITY, -INFINITY, 1e-30f, 2.0f});
}

void mutateSizes(Spec& spec, Seeded& random) {
  const auto wild = [&](size_t own) { return edge(random, {own, own, own + 8, 2 * own}); };
  switch (random.below(5)) {
    case 0:
      spec.isNull = true;
      return;
    case 1:
      spec.size = wild(sizeof(mnk_flash_decode));
      spec.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
      return;
    case 2:
      spec.resultsSize = wild(sizeof(mnk_attention_results));
      return;
    case 3:
      spec.options.size = wild(sizeof(mnk_attention_options));
      return;
    default:
      spec.view().size = wild(sizeof(mnk_kv_cache_view));
      spec.cache.viewSize = wild(sizeof(mnk_quantized_kv_view));
  }
}

void mutateHandles(Spec& spec, Seeded& random) {
  switch (random.below(6)) {
    case 0:
      spec.hasDense = coin(random, 1, 2);
      spec.hasQuantized = coin(random, 1, 2);
      return;
    case 1:
      spec.hasResults = coin(random, 1, 2);
      return;
    case 2:
      spec.hasSequences = coin(random, 1, 2);
      return;
    case 3:
      spec.hasOptions = coin(random, 1, 2);
      return;
    default: {
      const auto all = tensorsOf(spec);
      all[random.below(all.size())]->reset();
    }
  }
}

void mutateNumbers(Spec& spec, Seeded& random) {
  mnk_attention_options& options = spec.options;
  switch (random.below(10)) {
    case 0:
      options.scale = coin(random, 1, 2) ? 0 : wildNumber(random);
      return;
    case 9:
      spec.view().latent_dim = oneOf<uint32_t>(random, {0, 64, 512, UINT32_MAX});
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
      spec.view().layout = test::number<mnk_kv_layout>(static_cast<uint32_t>(random.below(3)));
      return;
    case 7:
      spec.view().wrap = test::number<mnk_kv_wrap>(static_cast<uint32_t>(random.below(3)));
      return;
    default:
      spec.view().pinned = static_cast<uint32_t>(edge(random, {1, 4, 12}));
  }
}

void mutateSequences(Spec& spec, Seeded& random) {
  switch (random.below(5)) {
    case 0:
      spec.sequenceCount = edge(random, {spec.sequences.size()});
      return;
    case 1:
      spec.sequences.push_back({.sequence = 0, .length = 1});
      return;
    case 2:
      if (!spec.sequences.empty()) spec.sequences.pop_back();
      return;
    default:
      break;
  }
  if (spec.sequences.empty()) return;
  mnk_attended_sequence& attended = spec.sequences[random.below(spec.sequences.size())];
  uint64_t& number = *oneOf(random, {&attended.sequence, &attended.length, &attended.highest, &attended.rows});
  number = edge(random, {number, attended.length, 1, 3, 12});
}

void mutateCodec(Spec& spec, Seeded& random) {
  QuantizedPlaneSpec& plane = coin(random, 1, 2) ? spec.cache.keys : spec.cache.values;
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
void mutateTensor(Spec& spec, Seeded& random) {
  TensorSpec* tensor = anyTensor(spec, random);
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
      if (TensorSpec* other = anyTensor(spec, random)) moveBeside(*tensor, *other, random);
  }
}

// Extents of both planes of the cache.
void setSlots(Spec& spec, uint64_t heads, uint64_t capacity) {
  for (auto* tensor :
       {&spec.cache.write.keyCache, &spec.cache.write.valueCache, &spec.cache.keys.scales, &spec.cache.values.scales}) {
    if (!*tensor || (*tensor)->shape.size() < 3) continue;
    std::vector<uint64_t>& shape = (*tensor)->shape;
    // Scales have no axis of elements, but those with two.
    const size_t end = shape.size() == spec.cache.write.keyCache->shape.size() ? shape.size() - 1 : shape.size();
    const bool isHeadMajor = spec.view().layout == MNK_HEAD_MAJOR;
    shape[end - 2] = isHeadMajor ? heads : capacity;
    shape[end - 1] = isHeadMajor ? capacity : heads;
  }
}

// What breaks one rule alone.
void mutateCache(Spec& spec, Seeded& random) {
  std::optional<TensorSpec>&keys = spec.cache.write.keyCache, &values = spec.cache.write.valueCache;
  if (!spec.queries || spec.queries->shape.empty() || !keys || !values || keys->shape.empty()) return;
  switch (random.below(7)) {
    case 0:
      // Head dims that no kernel has.
      if (values->shape.empty()) return;
      spec.queries->shape.back() = keys->shape.back() = oneOf<uint64_t>(random, {20, 44, 260, 320});
      if (spec.into && !spec.into->shape.empty()) spec.into->shape.back() = values->shape.back();
      return;
    case 1:
      // So many that no memory could hold them but for an axis of 0.
      return setSlots(spec, 0, uint64_t{1} << 31);
    case 2:
      return setSlots(spec, 1 + random.below(2), 0);
    case 3:
      values.reset();
      spec.cache.values = {};
      return;
    case 4:
      spec.cache.values.channelScales =
          TensorSpec{.dtype = MNK_F32, .shape = {1, keys->shape.back()}, .region = FlashDecodeRegion::kChannelScales};
      return;
    default:
      oneOf(random, {&keys, &values, &spec.cache.keys.scales, &spec.cache.values.scales})->reset();
  }
}

void mutateRows(Spec& spec, Seeded& random) {
  if (!spec.queries || spec.queries->shape.size() < 2) return;
  std::vector<uint64_t>& shape = spec.queries->shape;
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
      spec.queries.reset();
      return;
    case 3:
      // More rows than positions.
      for (mnk_attended_sequence& attended : spec.sequences) attended.length = std::min<uint64_t>(attended.length, 1);
      return;
    default:
      *oneOf(random, {&spec.slopes, &spec.sinks, &spec.mask}) =
          TensorSpec{.dtype = MNK_F32, .shape = {queryDims(spec).heads + 1}, .region = FlashDecodeRegion::kSlopes};
  }
}

void mutateView(Spec& spec, Seeded& random) {
  if (!spec.queries || !queryPlaces(spec)) return;
  mnk_heads_view view = spec.queriesView.value_or(*queryPlaces(spec));
  if (!spec.queriesView) view.size = sizeof view, view.has_strides = true;
  switch (random.below(6)) {
    case 0:
      view.size = edge(random, {sizeof view, sizeof view + 8});
      break;
    case 1:
      view.layout = test::number<mnk_kv_layout>(static_cast<uint32_t>(random.below(3)));
      view.has_strides = false;
      break;
    case 2:
      spec.queriesView.reset();
      return;
    default: {
      uint64_t* number = oneOf(random, {&view.sequences, &view.tokens, &view.heads, &view.head_dim, &view.offset,
                                        &view.sequence_stride, &view.token_stride, &view.head_stride});
      *number = edge(random, {*number, 1, 3});
    }
  }
  spec.queriesView = view;
}

void mutateTargets(Spec& spec, Seeded& random) {
  switch (random.below(5)) {
    case 0:
      (coin(random, 1, 2) ? spec.sums : spec.stats).reset();
      return;
    case 1:
      if (spec.into) spec.sums = spec.stats = spec.into;
      return;
    case 2:
      spec.into.reset();
      return;
    case 3:
      if (spec.queries) {
        spec.sinks =
            TensorSpec{.dtype = MNK_F32, .shape = {queryDims(spec).heads}, .region = FlashDecodeRegion::kSinks};
      }
      return;
    default:
      spec.scratch = TensorSpec{.dtype = oneOf(random, {MNK_U8, MNK_U8, MNK_F32}),
                                .shape = {random.below(64)},
                                .region = FlashDecodeRegion::kScratch,
                                .offset = 4};
      spec.options.splits = static_cast<uint32_t>(1 + random.below(3));
  }
}

void mutate(Spec& spec, Seeded& random) {
  switch (random.below(13)) {
    case 0:
      return mutateSizes(spec, random);
    case 10:
      return mutateView(spec, random);
    case 1:
      return mutateHandles(spec, random);
    case 2:
    case 3:
      return mutateNumbers(spec, random);
    case 4:
      return mutateSequences(spec, random);
    case 5:
      return mutateCodec(spec, random);
    case 6:
    case 7:
      return mutateCache(spec, random);
    case 8:
      return mutateRows(spec, random);
    case 9:
      return mutateTargets(spec, random);
    default:
      return mutateTensor(spec, random);
  }
}

}  // namespace

FlashDecodeSpec mutated(FlashDecodeSpec spec, Seeded& random) {
  for (uint64_t mutations = 1 + random.below(3) / 2; mutations > 0; --mutations) mutate(spec, random);
  for (auto* tensor : tensorsOf(spec)) {
    if (*tensor) makePossible(**tensor, random);
  }
  if (spec.hasQuantized) avoidMixed(spec.cache);
  if (!spec.cache.write.valueCache) spec.view().latent_dim = 0;  // values in the keys' tensor are left to other tests
  // A count that the C API believes must be that of the list.
  const auto places = spec.queries ? queryPlaces(spec) : std::nullopt;
  const uint64_t believed = mostSequences(places);
  if (spec.sequenceCount && *spec.sequenceCount <= std::max<uint64_t>(believed, spec.sequences.size())) {
    spec.sequences.resize(std::min<uint64_t>(*spec.sequenceCount, spec.sequences.size()));
    spec.sequenceCount.reset();
  }
  // How many splits a device chooses is its own affair, and so is what memory they take.
  if (spec.usedOptions().splits == 0) spec.scratch.reset();
  if (spec.options.kernel == MNK_KERNEL_MATRIX && refusalOf(spec).empty()) {
    spec.options.kernel = MNK_KERNEL_VECTOR;
  }
  return spec;
}

}  // namespace mnk::fuzz
