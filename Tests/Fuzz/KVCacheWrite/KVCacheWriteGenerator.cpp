#include <algorithm>
#include <utility>

#include "KVCacheWriteCall.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheWriteSpec;

// Regions. Both calls of a case write to the same caches.
constexpr uint32_t kKeys = 0, kValues = 1, kSequences = 2, kPositions = 3, kKeyCache = 4, kValueCache = 5;
uint32_t regionOf(uint32_t operand, Bank bank) {
  const bool isCache = operand == kKeyCache || operand == kValueCache;
  return isCache || bank == Bank::second ? operand : operand + 6;
}

struct Extents {
  uint64_t heads, headDim, valueHeadDim, capacity, sequences, tokens;
  uint64_t sourceSequences = 0;  // that share the tokens; 0: no axis for them
};

Extents drawExtents(Seeded& random) {
  const auto headDim = [&] { return oneOf<uint64_t>(random, {1, 2, 3, 4, 4, 5, 8, 16}); };
  Extents extents{.heads = 1 + random.below(3),
                  .headDim = headDim(),
                  .valueHeadDim = headDim(),
                  .capacity = 1 + random.below(9),
                  .sequences = 1 + random.below(3),
                  .tokens = random.below(13)};
  // A few without elements: valid, and there is nothing to do.
  if (coin(random, 1, 40)) {
    uint64_t* axes[] = {&extents.heads, &extents.headDim, &extents.valueHeadDim, &extents.tokens};
    *axes[random.below(std::size(axes))] = 0;
  }
  if (coin(random, 1, 150)) extents = {1, 1, 1, extents.capacity, extents.sequences, 1018 + random.below(7)};
  if (coin(random, 1, 3)) {
    extents.sourceSequences = 1 + random.below(4);
    extents.tokens -= extents.tokens % extents.sourceSequences;
  }
  return extents;
}

TensorSpec source(const Extents& extents, uint64_t headDim, mnk_kv_layout layout, mnk_dtype dtype, bool isRank2,
                  uint32_t region) {
  const uint64_t tokens = extents.sourceSequences ? extents.tokens / extents.sourceSequences : extents.tokens;
  TensorSpec spec{.dtype = dtype, .shape = {tokens, extents.heads, headDim}, .region = region};
  if (layout == MNK_HEAD_MAJOR) std::swap(spec.shape[0], spec.shape[1]);
  if (extents.sourceSequences) spec.shape.insert(spec.shape.begin(), extents.sourceSequences);
  if (isRank2) spec.shape = {extents.heads, headDim};
  return spec;
}

TensorSpec cache(const Extents& extents, uint64_t headDim, mnk_kv_layout layout, mnk_dtype dtype, bool hasSequences,
                 uint32_t region) {
  TensorSpec spec{.dtype = dtype, .shape = {extents.heads, extents.capacity, headDim}, .region = region};
  if (layout == MNK_TOKEN_MAJOR) std::swap(spec.shape[0], spec.shape[1]);
  if (hasSequences) spec.shape.insert(spec.shape.begin(), extents.sequences);
  return spec;
}

uint64_t drawPosition(Seeded& random, bool isRing, uint64_t capacity, uint64_t tokens) {
  if (!isRing) return random.below(capacity - tokens + 1);
  if (coin(random, 3, 4)) return random.below(3 * capacity);
  const uint64_t far = edge(random, {capacity, uint64_t{1} << 33, UINT64_MAX - tokens});
  return std::min(far, UINT64_MAX - tokens);
}

void drawRows(Spec& spec, Seeded& random, const Extents& extents, uint64_t sequences, Bank bank) {
  const uint64_t tokens = tokensOf(spec);
  const bool isRing = spec.numbers.into.wrap == MNK_RING;
  spec.numbers.has_rows = true;
  for (uint64_t token = 0; token < tokens; ++token) {
    spec.sequences.list.push_back(static_cast<uint32_t>(random.below(sequences)));
    const uint64_t end = isRing && coin(random, 1, 2) ? 3 * extents.capacity : extents.capacity;
    const bool isFar = isRing && coin(random, 1, 16);
    spec.positions.list.push_back(static_cast<uint32_t>(isFar ? edge(random, {UINT32_MAX}) : random.below(end)));
  }
  const auto intoTensor = [&](RowSpec& rows, uint32_t operand) {
    if (coin(random, 1, 2)) return;
    rows.tensor = TensorSpec{.dtype = MNK_U32, .shape = {tokens}, .region = regionOf(operand, bank)};
    place(*rows.tensor, random);
    // The kernel skips rows of a tensor that name no place.
    for (uint32_t& row : rows.list) {
      if (coin(random, 1, 12)) row = static_cast<uint32_t>(edge(random, {extents.capacity, sequences}));
    }
    rows.hasList = coin(random, 1, 8);
  };
  intoTensor(spec.sequences, kSequences);
  intoTensor(spec.positions, kPositions);
}

// Tokens that exist, and no more of them than a linear cache holds.
void drawTokens(mnk_kv_cache_write& numbers, Seeded& random, const Extents& extents, bool isBounded) {
  numbers.source_is_ring = coin(random, 1, 4);
  numbers.source_offset =
      numbers.source_is_ring ? edge(random, {extents.tokens, random.next()}) : random.below(extents.tokens + 1);
  const uint64_t left = numbers.source_is_ring ? extents.tokens : extents.tokens - numbers.source_offset;
  numbers.has_tokens = coin(random, 1, 2) || (isBounded && left > extents.capacity);
  numbers.tokens = random.below((isBounded ? std::min(left, extents.capacity) : left) + 1);
  if (coin(random, 1, 3)) numbers.tokens = isBounded ? std::min(left, extents.capacity) : left;
  if (!numbers.has_tokens) numbers.tokens = edge(random, {});  // not read
}

}  // namespace

bool viewSources(Spec& spec, Seeded& random) {
  if (coin(random, 1, 2)) return true;
  const mnk_kv_layout layout = spec.numbers.source_layout;
  // Both in one tensor, or each in its own.
  const bool isFused = spec.values && coin(random, 1, 2);
  uint64_t end = 0;
  for (const bool isKeys : {true, false}) {
    std::optional<TensorSpec>& tensor = isKeys ? spec.keys : spec.values;
    if (!tensor) continue;
    mnk_heads_view view = *placesOfSource(*tensor, std::nullopt, layout);
    view.size = sizeof view;
    if (!isFused && coin(random, 1, 3)) {
      // The same shape in a spec of its own; others may be of another layout.
      view = {};
      view.size = sizeof view;
      view.layout = layout;
      if (isKeys && !spec.values) spec.numbers.source_layout = coin(random, 1, 2) ? MNK_HEAD_MAJOR : MNK_TOKEN_MAJOR;
    } else {
      view.has_strides = true;
      const auto gap = [&] { return coin(random, 1, 2) ? 0 : random.below(4) * (coin(random, 1, 2) ? 4 : 1); };
      std::pair<uint64_t, uint64_t*> axes[] = {
          {view.heads, &view.head_stride}, {view.tokens, &view.token_stride}, {view.sequences, &view.sequence_stride}};
      for (size_t i = 2; i > 0; --i) std::swap(axes[i], axes[random.below(i + 1)]);
      uint64_t reach = view.head_dim;
      for (const auto& [count, stride] : axes) {
        *stride = coin(random, 1, 8) ? random.below(view.head_dim + 1) : reach + gap();
        if (count > 1) reach += (count - 1) * *stride;
        if (count <= 1 && coin(random, 1, 4)) *stride = edge(random, {view.head_dim});  // leads nowhere
      }
      view.offset = (isFused && coin(random, 1, 2) ? end : 0) + gap();
      end = std::max(end, view.offset + reach + gap());
      if (!isFused) tensor->shape = {std::exchange(end, 0)};
    }
    (isKeys ? spec.keysView : spec.valuesView) = view;
  }
  if (!isFused) return place(*spec.keys, random) && (!spec.values || place(*spec.values, random));
  spec.keys->shape = {end};
  if (!place(*spec.keys, random)) return false;
  spec.values = spec.keys;
  return true;
}

KVCacheWriteSpec validWrite(Seeded& random, Bank bank, bool mayHaveViews) {
  for (;;) {
    Spec spec;
    const Extents extents = drawExtents(random);
    const auto layout = [&] { return coin(random, 1, 2) ? MNK_HEAD_MAJOR : MNK_TOKEN_MAJOR; };
    const auto real = [&] { return oneOf(random, {MNK_F32, MNK_F16, MNK_BF16}); };
    const mnk_dtype from = coin(random, 3, 4) ? real() : oneOf(random, {MNK_U8, MNK_U16, MNK_U32, MNK_I32});
    const mnk_dtype to = from <= MNK_BF16 ? real() : from;
    mnk_kv_cache_write& numbers = spec.numbers;
    numbers.size = sizeof numbers + (coin(random, 1, 16) ? random.below(sizeof numbers + 1) : 0);
    numbers.source_layout = layout();
    numbers.into.size = sizeof numbers.into;
    numbers.into.layout = layout();
    numbers.into.wrap = coin(random, 2, 3) ? MNK_RING : MNK_LINEAR;
    const bool isRing = numbers.into.wrap == MNK_RING;
    const bool hasRows = coin(random, 1, 3);
    const bool hasSequences = coin(random, 1, 2);
    const uint64_t sequences = hasSequences ? extents.sequences : 1;
    if (isRing && coin(random, 1, 2)) numbers.into.pinned = static_cast<uint32_t>(random.below(extents.capacity));

    const bool isRank2 = extents.tokens == 1 && extents.sourceSequences == 0 &&
                         numbers.source_layout == MNK_TOKEN_MAJOR && coin(random, 1, 2);
    const bool hasValues = coin(random, 2, 3);
    spec.keys = source(extents, extents.headDim, numbers.source_layout, from, isRank2, regionOf(kKeys, bank));
    spec.keyCache = cache(extents, extents.headDim, numbers.into.layout, to, hasSequences, regionOf(kKeyCache, bank));
    if (hasValues) {
      spec.values =
          source(extents, extents.valueHeadDim, numbers.source_layout, from, isRank2, regionOf(kValues, bank));
    }
    // A cache with values may take keys alone.
    if (hasValues || coin(random, 1, 4)) {
      spec.valueCache =
          cache(extents, extents.valueHeadDim, numbers.into.layout, to, hasSequences, regionOf(kValueCache, bank));
    }
    bool isPlaced = true;
    for (auto* tensor : {&spec.keys, &spec.values, &spec.keyCache, &spec.valueCache}) {
      if (*tensor) isPlaced = place(**tensor, random) && isPlaced;
    }
    if (!isPlaced) continue;

    if (mayHaveViews && !viewSources(spec, random)) continue;
    drawTokens(numbers, random, extents, !isRing && !hasRows);
    if (hasRows) {
      drawRows(spec, random, extents, sequences, bank);
      numbers.sequence = edge(random, {});  // neither is read
      numbers.position = edge(random, {});
    } else {
      numbers.sequence = random.below(sequences);
      numbers.position = drawPosition(random, isRing, extents.capacity, tokensOf(spec));
    }
    return spec;
  }
}

}  // namespace mnk::fuzz
