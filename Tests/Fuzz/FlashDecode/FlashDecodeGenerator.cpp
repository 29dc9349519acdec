#include <algorithm>
#include <bit>
#include <numeric>

#include "FlashDecodeCall.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Spec = FlashDecodeSpec;

using Region = FlashDecodeRegion;

mnk_dtype drawFloat(Seeded& random) {
  return oneOf(random, {MNK_F32, MNK_F16, MNK_BF16});
}

struct Dims {
  uint64_t sequences, heads, capacity, keyDim, valueDim, latentDim = 0;
};

std::vector<uint64_t> cacheShape(const Spec& spec, const Dims& dims, bool hasSequences, uint64_t last) {
  std::vector<uint64_t> shape;
  if (hasSequences) shape.push_back(dims.sequences);
  const bool isHeadMajor = spec.view().layout == MNK_HEAD_MAJOR;
  shape.insert(shape.end(), {isHeadMajor ? dims.heads : dims.capacity, isHeadMajor ? dims.capacity : dims.heads, last});
  return shape;
}

void drawDense(Spec& spec, Seeded& random, const Dims& dims, bool hasSequences) {
  const mnk_dtype dtype = drawFloat(random);
  spec.cache.write.keyCache =
      TensorSpec{.dtype = dtype, .shape = cacheShape(spec, dims, hasSequences, dims.keyDim), .region = Region::kKeys};
  spec.cache.write.valueCache = TensorSpec{
      .dtype = dtype, .shape = cacheShape(spec, dims, hasSequences, dims.valueDim), .region = Region::kValues};
}

void drawQuantized(Spec& spec, Seeded& random, const Dims& dims, bool hasSequences) {
  spec.hasDense = false, spec.hasQuantized = true;
  const bool isTurbo = coin(random, 2, 3) || !std::has_single_bit(dims.keyDim) || !std::has_single_bit(dims.valueDim);
  const auto drawPlane = [&](std::optional<TensorSpec>& codes, QuantizedPlaneSpec& plane, uint64_t headDim,
                             uint32_t codeRegion, uint32_t scaleRegion) {
    const bool isWide = headDim == 256 || headDim == 512;
    plane.codec.name = isTurbo ? MNK_TURBO : MNK_MLX1;
    plane.codec.bits =
        isTurbo ? static_cast<uint32_t>(2 + random.below(7)) : (isWide ? oneOf<uint32_t>(random, {4, 5, 6, 8}) : 4);
    if (!isTurbo && headDim == 512) plane.codec.scale_factor = oneOf(random, {0.0f, 1.0f, 0.75f});
    const uint64_t bytes = isTurbo || plane.codec.bits == 4 ? headDim * plane.codec.bits / 8 : headDim;
    codes = TensorSpec{.dtype = MNK_U8, .shape = cacheShape(spec, dims, hasSequences, bytes), .region = codeRegion};
    plane.scales = TensorSpec{.dtype = isTurbo ? MNK_F16 : MNK_F32,
                              .shape = {codes->shape.begin(), codes->shape.end() - 1},
                              .region = scaleRegion};
    if (!isTurbo && headDim == 512) plane.scales->shape.push_back(2);
  };
  drawPlane(spec.cache.write.keyCache, spec.cache.keys, dims.keyDim, Region::kKeys, Region::kKeyScales);
  drawPlane(spec.cache.write.valueCache, spec.cache.values, dims.valueDim, Region::kValues, Region::kValueScales);
  if (!isTurbo) return;
  const auto factors = [&](uint64_t headDim, uint32_t region) {
    return TensorSpec{.dtype = MNK_F32, .shape = {dims.heads, headDim}, .region = region};
  };
  if (coin(random, 1, 3)) spec.cache.keys.means = factors(dims.keyDim, Region::kKeyMeans);
  if (coin(random, 1, 3)) spec.cache.values.means = factors(dims.valueDim, Region::kValueMeans);
  if (coin(random, 1, 3)) spec.cache.keys.channelScales = factors(dims.keyDim, Region::kChannelScales);
}

void drawOptions(Spec& spec, Seeded& random) {
  const QueryDims queries = queryDims(spec);
  mnk_attention_options& options = spec.options;
  spec.hasOptions = coin(random, 7, 8);
  options.size = sizeof options;
  options.scale = oneOf(random, {0.0f, 0.0f, 1.0f, 0.125f});
  options.is_bidirectional = coin(random, 1, 6);
  options.window = coin(random, 1, 3) ? static_cast<uint32_t>(1 + random.below(14)) : 0;
  options.window_sees_pinned = coin(random, 1, 3);
  options.softcap = oneOf(random, {0.0f, 0.0f, 2.0f, 30.0f});
  options.splits = oneOf<uint32_t>(random, {0, 0, 0, 1, 2, 3, 5});
  options.kernel = coin(random, 1, 2) ? MNK_KERNEL_AUTOMATIC : MNK_KERNEL_VECTOR;
  options.merge = oneOf(random, {MNK_MERGE_AUTOMATIC, MNK_MERGE_SEPARATE, MNK_MERGE_TOGETHER});
  const auto perHead = [&](uint32_t region) {
    return TensorSpec{.dtype = MNK_F32, .shape = {queries.heads}, .region = region};
  };
  if (coin(random, 1, 5)) spec.slopes = perHead(Region::kSlopes);
  if (coin(random, 1, 5) && !spec.sums) spec.sinks = perHead(Region::kSinks);
  if (coin(random, 1, 4)) {
    const uint64_t axes[] = {queries.sequences, queries.heads, queries.rows};
    std::vector<uint64_t> shape;
    for (uint64_t axis = random.below(3); axis < 3; ++axis) shape.push_back(coin(random, 1, 3) ? 1 : axes[axis]);
    shape.push_back(mostHeld(spec) + random.below(3));
    spec.mask = TensorSpec{.dtype = drawFloat(random), .shape = shape, .region = Region::kMask};
  }
}

void drawResults(Spec& spec, Seeded& random, uint64_t valueDim) {
  const std::vector<uint64_t> rows(spec.queries->shape.begin(), spec.queries->shape.end() - 1);
  const auto with = [&](uint64_t last) {
    std::vector<uint64_t> shape = rows;
    shape.push_back(last);
    return shape;
  };
  if (coin(random, 1, 4)) {
    spec.sums = TensorSpec{.dtype = MNK_F32, .shape = with(valueDim), .region = Region::kSums};
    spec.stats = TensorSpec{.dtype = MNK_F32, .shape = with(2), .region = Region::kStats};
  } else {
    spec.into = TensorSpec{.dtype = drawFloat(random), .shape = with(valueDim), .region = Region::kInto};
  }
  if (coin(random, 1, 4)) spec.logSumExp = TensorSpec{.dtype = MNK_F32, .shape = rows, .region = Region::kLogSumExp};
}

// Small ones most of the time: what is checked does not depend on the size, and what a case costs does.
Dims drawDims(Seeded& random, bool isQuantized) {
  const uint64_t sequences = coin(random, 1, 24) ? 0 : 1 + random.below(3);
  const uint64_t heads = coin(random, 1, 2) ? 1 : 1 + random.below(3), capacity = 1 + random.below(12);
  const bool isLong = coin(random, 1, 12);
  if (isLong && coin(random, 1, 3)) return {sequences, heads, capacity, 64, 512, 512};
  if (isQuantized) {
    const auto draw = [&] {
      return isLong ? oneOf<uint64_t>(random, {112, 128, 192, 256}) : oneOf<uint64_t>(random, {32, 32, 64, 80, 96});
    };
    const uint64_t keyDim = isLong && coin(random, 1, 4) ? 512 : draw();
    return {sequences, heads, capacity, keyDim, keyDim == 512 || coin(random, 2, 3) ? keyDim : draw()};
  }
  if (isLong && coin(random, 1, 4)) return {sequences, heads, capacity, coin(random, 1, 2) ? 512u : 576u, 512};
  const uint64_t most = isLong ? 32 : 8;
  const uint64_t keyDim = 8 * (1 + random.below(most));
  const uint64_t valueDim = coin(random, 2, 3) ? keyDim : 8 * (1 + random.below(most));
  return {sequences, heads, capacity, keyDim, valueDim};
}

// Lengths that a cache can hold and that rows fit in, or 0.
void drawSequences(Spec& spec, Seeded& random, const Dims& dims, const std::vector<uint64_t>& rowsOfEach,
                   bool haveNumbers) {
  for (const uint64_t rows : rowsOfEach) {
    const bool isRing = spec.view().wrap == MNK_RING;
    uint64_t length = isRing ? random.below(3 * dims.capacity + 1) : random.below(dims.capacity + 1);
    if (isRing && coin(random, 1, 16)) length = (uint64_t{1} << 31) - 1 - random.below(8);
    if (length < rows) length = isRing && coin(random, 3, 4) ? rows : 0;
    mnk_attended_sequence attended{.sequence = random.below(std::max<uint64_t>(dims.sequences, 1)), .length = length};
    // Tokens were taken back: as many as a ring can lose, or a few more, so that it holds pinned positions alone.
    if (coin(random, 1, 4)) {
      const uint64_t most = isRing ? length + dims.capacity + 1 : dims.capacity;
      attended.highest = std::min(length + random.below(most - length + 1), (uint64_t{1} << 31) - 1);
    }
    if (haveNumbers) attended.rows = rows;
    spec.sequences.push_back(attended);
  }
}

// Makes token-major queries head-major, or columns of a wider tensor.
void moveQueries(Spec& spec, Seeded& random) {
  std::vector<uint64_t>& shape = spec.queries->shape;
  const QueryDims dims = queryDims(spec);
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
  spec.queriesView = view;
}

Spec drawSpec(Seeded& random, Bank bank) {
  Spec spec;
  const bool isFirst = bank == Bank::first;
  const bool isQuantized = !isFirst && coin(random, 2, 5);
  Dims dims = drawDims(random, isQuantized);
  // Rows in one dispatch on a GPU, in head dims that have a kernel for it.
  const bool isPrompt = coin(random, 1, 10);
  if (isPrompt && dims.latentDim == 0) {
    dims.keyDim = dims.valueDim = oneOf<uint64_t>(random, {64, 64, 80, 96, 128, 192, 256});
  }
  if (isPrompt) dims.capacity += 9;
  if (isFirst && dims.latentDim != 0) dims = {dims.sequences, dims.heads, dims.capacity, 64, 64};
  spec.size = sizeof(mnk_flash_decode) + (coin(random, 1, 16) ? random.below(sizeof(mnk_flash_decode) + 1) : 0);
  mnk_kv_cache_view& view = spec.view();
  view.size = sizeof view;
  view.layout = coin(random, 1, 2) ? MNK_HEAD_MAJOR : MNK_TOKEN_MAJOR;
  view.wrap = coin(random, 2, 3) ? MNK_RING : MNK_LINEAR;
  view.pinned = view.wrap == MNK_RING && coin(random, 1, 3) ? static_cast<uint32_t>(random.below(dims.capacity)) : 0;
  view.latent_dim = static_cast<uint32_t>(dims.latentDim);
  const bool hasCacheSequences = dims.sequences != 1 || coin(random, 1, 2);
  if (isQuantized) {
    drawQuantized(spec, random, dims, hasCacheSequences);
  } else {
    drawDense(spec, random, dims, hasCacheSequences);
  }

  const uint64_t count = dims.sequences == 0 ? 0 : 1 + random.below(3);
  const uint64_t fewRows = coin(random, 1, 24) ? 0 : (coin(random, 1, 12) ? 9 : 1 + random.below(3));
  const uint64_t rows = isPrompt ? 9 + random.below(9) : fewRows;
  const uint64_t group = coin(random, 1, 16) ? 0 : 1 + random.below(coin(random, 1, 4) ? 4 : 2);
  const uint64_t heads = dims.heads * group;
  spec.queries = TensorSpec{
      .dtype = drawFloat(random), .shape = {heads, dims.latentDim + dims.keyDim}, .region = Region::kQueries};
  // Sequences with numbers of rows, up to these, share one list of them.
  const bool isRagged = count != 0 && rows != 0 && coin(random, 1, 4);
  std::vector<uint64_t> rowsOfEach(count, rows);
  for (uint64_t s = 1; isRagged && s < count; ++s) rowsOfEach[s] = 1 + random.below(rows);
  if (isRagged) std::swap(rowsOfEach.front(), rowsOfEach[random.below(count)]);
  const uint64_t listed = isRagged ? std::accumulate(rowsOfEach.begin(), rowsOfEach.end(), uint64_t{0}) : rows;
  const uint64_t axis = isRagged ? 1 : count;
  const bool hasRows = listed != 1 || axis != 1 || coin(random, 1, 2);
  const bool hasSequences = axis != 1 || coin(random, 1, 4);
  std::vector<uint64_t>& shape = spec.queries->shape;
  if (hasRows || hasSequences) shape.insert(shape.begin(), listed);
  if (hasSequences) shape.insert(shape.begin(), axis);
  drawSequences(spec, random, dims, rowsOfEach, isRagged);
  drawResults(spec, random, dims.valueDim);
  drawOptions(spec, random);
  if (dims.latentDim != 0) {
    spec.hasOptions = true;
    spec.options.scale = oneOf(random, {0.0625f, 0.1f});
  }
  if (spec.hasOptions && spec.options.splits != 0 && coin(random, 1, 3)) {
    const uint64_t floats = queryDims(spec).vectors() * spec.options.splits * (dims.valueDim + 2);
    spec.scratch = TensorSpec{.dtype = MNK_U8, .shape = {floats * 4 + random.below(3)}, .region = Region::kScratch};
  }
  if (!isFirst) {
    if (coin(random, 1, 3)) moveQueries(spec, random);
    return spec;
  }
  spec.queries->region = Region::kFirstQueries;
  spec.cache.write.keyCache->region = Region::kFirstCache;
  // Values are the keys, as where heads share a latent vector.
  spec.cache.write.valueCache = spec.cache.write.keyCache;
  spec.into = TensorSpec{.dtype = drawFloat(random), .shape = shape, .region = Region::kFirstInto};
  spec.sums = spec.stats = spec.logSumExp = spec.mask = spec.slopes = spec.sinks = spec.scratch = std::nullopt;
  return spec;
}

}  // namespace

std::vector<std::optional<TensorSpec>*> tensorsOf(Spec& spec) {
  KVCacheQuantizeSpec& cache = spec.cache;
  return {&spec.queries,
          &cache.write.keyCache,
          &cache.write.valueCache,
          &cache.keys.scales,
          &cache.keys.means,
          &cache.keys.channelScales,
          &cache.values.scales,
          &cache.values.means,
          &cache.values.channelScales,
          &spec.into,
          &spec.sums,
          &spec.stats,
          &spec.logSumExp,
          &spec.mask,
          &spec.slopes,
          &spec.sinks,
          &spec.scratch};
}

FlashDecodeSpec validDecode(Seeded& random, Bank bank) {
  for (;;) {
    Spec spec = drawSpec(random, bank);
    bool isPlaced = true;
    for (auto* tensor : tensorsOf(spec)) {
      if (*tensor) isPlaced = place(**tensor, random) && isPlaced;
    }
    if (!isPlaced) continue;
    if (spec.scratch) spec.scratch->offset = spec.scratch->offset / 16 * 16;
    if (bank == Bank::first) spec.cache.write.valueCache = spec.cache.write.keyCache;
    if (refusalOf(spec).empty()) return spec;
  }
}

}  // namespace mnk::fuzz
