#include <algorithm>

#include "FlashDecodeCall.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Words = FlashDecodeWords;

using Arena = FlashDecodeArena;

mnk_dtype drawFloat(Seeded& random) {
  return oneOf(random, {MNK_F32, MNK_F16, MNK_BF16});
}

struct Dims {
  uint64_t sequences, heads, capacity, keyDim, valueDim;
};

std::vector<uint64_t> cacheShape(const Words& words, const Dims& dims, bool hasSequences, uint64_t last) {
  std::vector<uint64_t> shape;
  if (hasSequences) shape.push_back(dims.sequences);
  const bool isHeadMajor = words.view().layout == MNK_HEAD_MAJOR;
  shape.insert(shape.end(), {isHeadMajor ? dims.heads : dims.capacity, isHeadMajor ? dims.capacity : dims.heads, last});
  return shape;
}

void drawDense(Words& words, Seeded& random, const Dims& dims, bool hasSequences) {
  const mnk_dtype dtype = drawFloat(random);
  words.cache.write.keyCache =
      TensorWords{.dtype = dtype, .shape = cacheShape(words, dims, hasSequences, dims.keyDim), .arena = Arena::kKeys};
  words.cache.write.valueCache = TensorWords{
      .dtype = dtype, .shape = cacheShape(words, dims, hasSequences, dims.valueDim), .arena = Arena::kValues};
}

void drawQuantized(Words& words, Seeded& random, const Dims& dims, bool hasSequences) {
  words.hasDense = false, words.hasQuantized = true;
  const bool isTurbo = coin(random, 2, 3);
  const auto drawPlane = [&](std::optional<TensorWords>& codes, QuantizedPlaneWords& plane, uint64_t headDim,
                             uint32_t codeArena, uint32_t scaleArena) {
    const bool isWide = headDim == 256 || headDim == 512;
    plane.codec.name = isTurbo ? MNK_TURBO : MNK_MLX1;
    plane.codec.bits =
        isTurbo ? static_cast<uint32_t>(2 + random.below(7)) : (isWide ? oneOf<uint32_t>(random, {4, 5, 6, 8}) : 4);
    if (!isTurbo && headDim == 512) plane.codec.scale_factor = oneOf(random, {0.0f, 1.0f, 0.75f});
    const uint64_t bytes = isTurbo || plane.codec.bits == 4 ? headDim * plane.codec.bits / 8 : headDim;
    codes = TensorWords{.dtype = MNK_U8, .shape = cacheShape(words, dims, hasSequences, bytes), .arena = codeArena};
    plane.scales = TensorWords{.dtype = isTurbo ? MNK_F16 : MNK_F32,
                               .shape = {codes->shape.begin(), codes->shape.end() - 1},
                               .arena = scaleArena};
    if (!isTurbo && headDim == 512) plane.scales->shape.push_back(2);
  };
  drawPlane(words.cache.write.keyCache, words.cache.keys, dims.keyDim, Arena::kKeys, Arena::kKeyScales);
  drawPlane(words.cache.write.valueCache, words.cache.values, dims.valueDim, Arena::kValues, Arena::kValueScales);
  if (!isTurbo) return;
  const auto factors = [&](uint64_t headDim, uint32_t arena) {
    return TensorWords{.dtype = MNK_F32, .shape = {dims.heads, headDim}, .arena = arena};
  };
  if (coin(random, 1, 3)) words.cache.keys.means = factors(dims.keyDim, Arena::kKeyMeans);
  if (coin(random, 1, 3)) words.cache.values.means = factors(dims.valueDim, Arena::kValueMeans);
  if (coin(random, 1, 3)) words.cache.keys.channelScales = factors(dims.keyDim, Arena::kChannelScales);
}

void drawOptions(Words& words, Seeded& random) {
  const QueryDims queries = queryDims(words);
  mnk_attention_options& options = words.options;
  words.hasOptions = coin(random, 7, 8);
  options.size = sizeof options;
  options.scale = oneOf(random, {0.0f, 0.0f, 1.0f, 0.125f});
  options.is_bidirectional = coin(random, 1, 6);
  options.window = coin(random, 1, 3) ? static_cast<uint32_t>(1 + random.below(14)) : 0;
  options.window_sees_pinned = coin(random, 1, 3);
  options.softcap = oneOf(random, {0.0f, 0.0f, 2.0f, 30.0f});
  options.splits = oneOf<uint32_t>(random, {0, 0, 0, 1, 2, 3, 5});
  options.kernel = coin(random, 1, 2) ? MNK_KERNEL_AUTOMATIC : MNK_KERNEL_VECTOR;
  options.merge = oneOf(random, {MNK_MERGE_AUTOMATIC, MNK_MERGE_SEPARATE, MNK_MERGE_TOGETHER});
  const auto perHead = [&](uint32_t arena) {
    return TensorWords{.dtype = MNK_F32, .shape = {queries.heads}, .arena = arena};
  };
  if (coin(random, 1, 5)) words.slopes = perHead(Arena::kSlopes);
  if (coin(random, 1, 5) && !words.sums) words.sinks = perHead(Arena::kSinks);
  if (coin(random, 1, 4)) {
    const uint64_t axes[] = {queries.sequences, queries.heads, queries.rows};
    std::vector<uint64_t> shape;
    for (uint64_t axis = random.below(3); axis < 3; ++axis) shape.push_back(coin(random, 1, 3) ? 1 : axes[axis]);
    shape.push_back(mostHeld(words) + random.below(3));
    words.mask = TensorWords{.dtype = drawFloat(random), .shape = shape, .arena = Arena::kMask};
  }
}

void drawResults(Words& words, Seeded& random, uint64_t valueDim) {
  const std::vector<uint64_t> rows(words.queries->shape.begin(), words.queries->shape.end() - 1);
  const auto with = [&](uint64_t last) {
    std::vector<uint64_t> shape = rows;
    shape.push_back(last);
    return shape;
  };
  if (coin(random, 1, 4)) {
    words.sums = TensorWords{.dtype = MNK_F32, .shape = with(valueDim), .arena = Arena::kSums};
    words.stats = TensorWords{.dtype = MNK_F32, .shape = with(2), .arena = Arena::kStats};
  } else {
    words.into = TensorWords{.dtype = drawFloat(random), .shape = with(valueDim), .arena = Arena::kInto};
  }
  if (coin(random, 1, 4)) words.logSumExp = TensorWords{.dtype = MNK_F32, .shape = rows, .arena = Arena::kLogSumExp};
}

// Small ones most of the time: what is checked does not depend on the size, and what a case costs does.
Dims drawDims(Seeded& random, bool isQuantized) {
  const uint64_t sequences = coin(random, 1, 24) ? 0 : 1 + random.below(3);
  const uint64_t heads = coin(random, 1, 2) ? 1 : 1 + random.below(3), capacity = 1 + random.below(12);
  const bool isLong = coin(random, 1, 12);
  if (isQuantized) {
    const uint64_t headDim = isLong ? oneOf<uint64_t>(random, {128, 256, 512}) : oneOf<uint64_t>(random, {32, 32, 64});
    return {sequences, heads, capacity, headDim, headDim};
  }
  if (isLong && coin(random, 1, 4)) return {sequences, heads, capacity, coin(random, 1, 2) ? 512u : 576u, 512};
  const uint64_t most = isLong ? 32 : 8;
  const uint64_t keyDim = 8 * (1 + random.below(most));
  const uint64_t valueDim = coin(random, 2, 3) ? keyDim : 8 * (1 + random.below(most));
  return {sequences, heads, capacity, keyDim, valueDim};
}

// Lengths that a cache can hold and that rows fit in, or 0.
void drawSequences(Words& words, Seeded& random, const Dims& dims, uint64_t count, uint64_t rows) {
  for (uint64_t s = 0; s < count; ++s) {
    const bool isRing = words.view().wrap == MNK_RING;
    uint64_t length = isRing ? random.below(3 * dims.capacity + 1) : random.below(dims.capacity + 1);
    if (isRing && coin(random, 1, 16)) length = (uint64_t{1} << 31) - 1 - random.below(8);
    if (length < rows) length = isRing && coin(random, 3, 4) ? rows : 0;
    mnk_attended_sequence attended{.sequence = random.below(std::max<uint64_t>(dims.sequences, 1)), .length = length};
    // Tokens were taken back: as many as a ring can lose, or a few more, so that it holds pinned positions alone.
    if (coin(random, 1, 4)) {
      const uint64_t most = isRing ? length + dims.capacity + 1 : dims.capacity;
      attended.highest = std::min(length + random.below(most - length + 1), (uint64_t{1} << 31) - 1);
    }
    words.sequences.push_back(attended);
  }
}

// Makes token-major queries head-major, or columns of a wider tensor.
void moveQueries(Words& words, Seeded& random) {
  std::vector<uint64_t>& shape = words.queries->shape;
  const QueryDims dims = queryDims(words);
  mnk_heads_view view{.size = sizeof view, .layout = MNK_TOKEN_MAJOR};
  if (shape.size() >= 3 && coin(random, 1, 2)) {
    view.layout = MNK_HEAD_MAJOR;
    std::swap(shape[shape.size() - 3], shape[shape.size() - 2]);
  } else {
    view.has_strides = true;
    view.sequences = dims.sequences, view.tokens = dims.rows, view.heads = dims.heads, view.head_dim = dims.headDim;
    view.offset = random.below(5);
    const uint64_t width = view.offset + dims.heads * dims.headDim + random.below(5);
    view.head_stride = dims.headDim, view.token_stride = width, view.sequence_stride = dims.rows * width;
    shape = {dims.sequences, dims.rows, width};
  }
  words.queriesView = view;
}

Words drawWords(Seeded& random, Bank bank) {
  Words words;
  const bool isFirst = bank == Bank::first;
  const bool isQuantized = !isFirst && coin(random, 2, 5);
  Dims dims = drawDims(random, isQuantized);
  words.size = sizeof(mnk_flash_decode) + (coin(random, 1, 16) ? random.below(sizeof(mnk_flash_decode) + 1) : 0);
  mnk_kv_cache_view& view = words.view();
  view.size = sizeof view;
  view.layout = coin(random, 1, 2) ? MNK_HEAD_MAJOR : MNK_TOKEN_MAJOR;
  view.wrap = coin(random, 2, 3) ? MNK_RING : MNK_LINEAR;
  view.pinned = view.wrap == MNK_RING && coin(random, 1, 3) ? static_cast<uint32_t>(random.below(dims.capacity)) : 0;
  const bool hasCacheSequences = dims.sequences != 1 || coin(random, 1, 2);
  if (isQuantized) {
    drawQuantized(words, random, dims, hasCacheSequences);
  } else {
    drawDense(words, random, dims, hasCacheSequences);
  }

  const uint64_t count = dims.sequences == 0 ? 0 : 1 + random.below(3);
  const uint64_t rows = coin(random, 1, 24) ? 0 : (coin(random, 1, 12) ? 9 : 1 + random.below(3));
  const uint64_t group = coin(random, 1, 16) ? 0 : 1 + random.below(coin(random, 1, 4) ? 4 : 2);
  const uint64_t heads = dims.heads * group;
  words.queries = TensorWords{.dtype = drawFloat(random), .shape = {heads, dims.keyDim}, .arena = Arena::kQueries};
  const bool hasRows = rows != 1 || count != 1 || coin(random, 1, 2);
  const bool hasSequences = count != 1 || coin(random, 1, 4);
  std::vector<uint64_t>& shape = words.queries->shape;
  if (hasRows || hasSequences) shape.insert(shape.begin(), rows);
  if (hasSequences) shape.insert(shape.begin(), count);
  drawSequences(words, random, dims, count, rows);
  drawResults(words, random, dims.valueDim);
  drawOptions(words, random);
  if (words.hasOptions && words.options.splits != 0 && coin(random, 1, 3)) {
    const uint64_t floats = queryDims(words).vectors() * words.options.splits * (dims.valueDim + 2);
    words.scratch = TensorWords{.dtype = MNK_U8, .shape = {floats * 4 + random.below(3)}, .arena = Arena::kScratch};
  }
  if (!isFirst) {
    if (coin(random, 1, 3)) moveQueries(words, random);
    return words;
  }
  words.queries->arena = Arena::kFirstQueries;
  words.cache.write.keyCache->arena = Arena::kFirstCache;
  // Values are the keys, as where heads share a latent vector.
  words.cache.write.valueCache = words.cache.write.keyCache;
  words.into = TensorWords{.dtype = drawFloat(random), .shape = shape, .arena = Arena::kFirstInto};
  words.sums = words.stats = words.logSumExp = words.mask = words.slopes = words.sinks = words.scratch = std::nullopt;
  return words;
}

}  // namespace

std::vector<std::optional<TensorWords>*> tensorsOf(Words& words) {
  KVCacheQuantizeWords& cache = words.cache;
  return {&words.queries,       &cache.write.keyCache, &cache.write.valueCache,
          &cache.keys.scales,   &cache.keys.means,     &cache.keys.channelScales,
          &cache.values.scales, &cache.values.means,   &cache.values.channelScales,
          &words.into,          &words.sums,           &words.stats,
          &words.logSumExp,     &words.mask,           &words.slopes,
          &words.sinks,         &words.scratch};
}

FlashDecodeWords validDecode(Seeded& random, Bank bank) {
  for (;;) {
    Words words = drawWords(random, bank);
    bool isPlaced = true;
    for (auto* tensor : tensorsOf(words)) {
      if (*tensor) isPlaced = place(**tensor, random) && isPlaced;
    }
    if (!isPlaced) continue;
    if (words.scratch) words.scratch->offset = words.scratch->offset / 16 * 16;
    if (bank == Bank::first) words.cache.write.valueCache = words.cache.write.keyCache;
    if (refusalOf(words).empty()) return words;
  }
}

}  // namespace mnk::fuzz
