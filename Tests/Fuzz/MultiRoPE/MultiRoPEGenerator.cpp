#include <algorithm>

#include "MultiRoPECall.hpp"
#include "MultiRoPENumbers.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Spec = MultiRoPESpec;

struct Extents {
  uint64_t sequences, tokens, heads, keyHeads, headDim;
};

Extents drawExtents(Seeded& random) {
  Extents extents{.sequences = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}),
                  .tokens = 1 + random.below(6),
                  .heads = 1 + random.below(4),
                  .keyHeads = 1 + random.below(3),
                  .headDim = oneOf<uint64_t>(random, {2, 4, 6, 8, 8, 10, 16, 16, 24, 32})};
  if (coin(random, 1, 4)) extents.tokens = 1;
  // A few without tokens: valid, and there is nothing to do.
  if (coin(random, 1, 40)) (coin(random, 1, 2) ? extents.tokens : extents.sequences) = 0;
  // Many tokens share heads among threads in another way, and long heads have many pairs.
  if (coin(random, 1, 30)) {
    const uint64_t tokens = oneOf<uint64_t>(random, {30, 60, 125, 250}) + random.below(12);
    extents = {1 + random.below(2), tokens, 1 + random.below(10), 1 + random.below(3), 2};
  }
  if (coin(random, 1, 60)) extents = {1, 1, 1, 1, oneOf<uint64_t>(random, {64, 128, 256, 512, 1024, 1030})};
  // Many vectors at distances that do not fit together are not declared one by one.
  if (coin(random, 1, 60)) extents = {9, 9 + random.below(3), 9, 1, 2};
  return extents;
}

// Which regions the operands of a call lie in.
struct Regions {
  uint32_t queries, keys, rotatedQueries, rotatedKeys, positions, offsets;
};

// The first of two calls reads or writes what the second uses, so that their order counts. Only where every position
// is 0 are the bits known that it writes, so that the second may go on with them.
Regions drawRegions(Seeded& random, Bank bank, bool isStill) {
  if (bank == Bank::second) return {0, 1, 2, 3, 4, 5};
  const auto first = static_cast<uint32_t>(random.below(6));
  const auto second = (first + 1 + static_cast<uint32_t>(random.below(5))) % 6;
  if (isStill) return {6, 7, first, second, 8, 9};
  return {first % 4, second % 4, 6, 7, 4, 5};
}

// A view by a tensor's shape.
HeadsSpec shaped(Seeded& random, const Extents& extents, uint64_t heads, mnk_dtype dtype, uint32_t region) {
  HeadsSpec drawn;
  const bool isHeadMajor = coin(random, 1, 2);
  std::vector<uint64_t> shape{extents.sequences, extents.tokens, heads, extents.headDim};
  if (isHeadMajor) std::swap(shape[1], shape[2]);
  if (extents.sequences == 1 && coin(random, 3, 4)) shape.erase(shape.begin());
  const bool isOneToken = extents.tokens == 1 && shape.size() == 3 && !isHeadMajor;
  if (isOneToken && coin(random, 1, 2)) shape.erase(shape.begin());
  drawn.tensor = TensorSpec{.dtype = dtype, .shape = shape, .region = region};
  drawn.view.size = sizeof drawn.view;
  drawn.view.layout = isHeadMajor ? MNK_HEAD_MAJOR : MNK_TOKEN_MAJOR;
  // None of these is read.
  for (uint64_t* number : {&drawn.view.tokens, &drawn.view.head_dim, &drawn.view.offset, &drawn.view.token_stride}) {
    *number = edge(random, {});
  }
  return drawn;
}

mnk_heads_view viewOf(Seeded& random, const Extents& extents, uint64_t heads) {
  mnk_heads_view view{};
  view.size = sizeof view;
  view.layout = test::number<mnk_kv_layout>(static_cast<uint32_t>(edge(random, {})));  // not read
  view.has_strides = true;
  view.sequences = extents.sequences;
  view.tokens = extents.tokens;
  view.heads = heads;
  view.head_dim = extents.headDim;
  return view;
}

// A view by strides: axes nested in any order, with gaps between their entries. Inputs may hold a vector more than
// once.
HeadsSpec strided(Seeded& random, const Extents& extents, uint64_t heads, mnk_dtype dtype, uint32_t region,
                  bool mayRepeat) {
  HeadsSpec drawn;
  mnk_heads_view& view = drawn.view;
  view = viewOf(random, extents, heads);
  struct Axis {
    uint64_t count;
    uint64_t* stride;
  };
  Axis axes[] = {
      {view.heads, &view.head_stride}, {view.tokens, &view.token_stride}, {view.sequences, &view.sequence_stride}};
  for (size_t i = 2; i > 0 && coin(random, 1, 2); --i) std::swap(axes[i], axes[random.below(i + 1)]);
  const uint64_t unit = coin(random, 1, 2) ? 4 : 1;  // elements that go together where addresses allow it
  const auto gap = [&] { return coin(random, 1, 2) ? 0 : unit * random.below(4); };
  uint64_t reach = view.head_dim;
  for (const Axis& axis : axes) {
    const bool isRepeated = mayRepeat && coin(random, 1, 6);
    *axis.stride = isRepeated ? random.below(2) * random.below(view.head_dim) : reach + gap();
    if (axis.count > 1) reach += (axis.count - 1) * *axis.stride;
    if (axis.count <= 1 && coin(random, 1, 4)) *axis.stride = edge(random, {view.head_dim});  // leads nowhere
  }
  view.offset = gap();
  const uint64_t elements = view.offset + reach + gap();
  drawn.tensor = TensorSpec{.dtype = dtype, .shape = {elements}, .region = region};
  if (coin(random, 1, 3)) drawn.tensor->shape = {1, elements, 1};
  if (extents.tokens == 0 && coin(random, 1, 2)) view.offset = edge(random, {elements});
  return drawn;
}

HeadsSpec drawView(Seeded& random, const Extents& extents, uint64_t heads, mnk_dtype dtype, uint32_t region,
                   bool mayRepeat) {
  return coin(random, 1, 2) ? shaped(random, extents, heads, dtype, region)
                            : strided(random, extents, heads, dtype, region, mayRepeat);
}

// Columns of one tensor, as a fused projection leaves them: for each token a block of each operand and of somebody
// else, or for each head a vector of each.
struct Column {
  HeadsSpec* operand;
  uint64_t heads;
};
void fuse(Seeded& random, const Extents& extents, std::vector<Column> columns, mnk_dtype dtype, uint32_t region) {
  for (size_t i = columns.size() - 1; i > 0; --i) std::swap(columns[i], columns[random.below(i + 1)]);
  const bool isSameHeads =
      std::all_of(columns.begin(), columns.end(), [&](const Column& one) { return one.heads == columns[0].heads; });
  const bool isByHead = isSameHeads && coin(random, 1, 3);
  uint64_t width = random.below(5);
  for (const Column& column : columns) {
    column.operand->view = viewOf(random, extents, column.heads);
    column.operand->view.offset = width;
    width += extents.headDim * (isByHead ? 1 : column.heads) + (coin(random, 1, 2) ? random.below(9) : 0);
  }
  const uint64_t tokenStride = isByHead ? width * columns[0].heads : width;
  for (const Column& column : columns) {
    mnk_heads_view& view = column.operand->view;
    view.head_stride = isByHead ? width : extents.headDim;
    view.token_stride = tokenStride;
    view.sequence_stride = tokenStride * extents.tokens;
    column.operand->tensor =
        TensorSpec{.dtype = dtype, .shape = {extents.sequences * extents.tokens, tokenStride}, .region = region};
  }
}

// The same vectors in other words, such as by strides in a tensor that begins earlier.
HeadsSpec renamed(Seeded& random, const HeadsSpec& heads) {
  const auto places = placesOf(heads);
  if (coin(random, 1, 4)) return heads;
  HeadsSpec other{.tensor = heads.tensor, .view = *places};
  other.view.size = sizeof other.view;
  other.view.has_strides = true;
  const uint64_t earlier = random.below(std::min<uint64_t>(heads.tensor->offset / heads.tensor->elementBytes(), 8) + 1);
  other.tensor->shape = {earlier + heads.tensor->elements()};
  other.tensor->offset -= earlier * heads.tensor->elementBytes();
  other.view.offset += earlier;
  if (places->sequences == 1) other.view.sequence_stride = edge(random, {});
  if (places->heads == 1) other.view.head_stride = edge(random, {});
  return other;
}

bool placeAll(Spec& spec, Seeded& random) {
  const std::optional<TensorSpec>& first = spec.queries.tensor;
  for (HeadsSpec* heads : spec.views()) {
    if (!heads->tensor) continue;
    // Columns of one tensor stay together.
    const bool isFused = heads != &spec.queries && heads->tensor->region == first->region &&
                         heads->tensor->shape == first->shape && heads->tensor->dtype == first->dtype;
    if (isFused) {
      heads->tensor->offset = first->offset;
    } else if (!place(*heads->tensor, random)) {
      return false;
    }
  }
  for (NumberSpec* numbers : {&spec.positions, &spec.offsets}) {
    if (numbers->tensor && !place(*numbers->tensor, random)) return false;
  }
  return true;
}

enum class Placing { apart, inPlace, inPlaceByName, keysStay, queriesStay };

// Views of all operands, not yet placed. Some are columns of one tensor, where `mayFuse` allows it.
void drawOperands(Spec& spec, Seeded& random, const Extents& extents, const Regions& regions, Placing placing,
                  bool mayFuse) {
  const auto real = [&] { return oneOf(random, {MNK_F32, MNK_F16, MNK_BF16}); };
  const bool areQueriesApart = placing == Placing::apart || placing == Placing::keysStay;
  const bool areKeysApart = placing == Placing::apart || placing == Placing::queriesStay;
  const mnk_dtype from = real(), keysFrom = coin(random, 3, 4) ? from : real();
  const mnk_dtype into = areQueriesApart && coin(random, 1, 2) ? real() : from;
  const mnk_dtype keysInto = coin(random, 3, 4) && keysFrom == from ? into : real();
  const bool hasKeys = coin(random, 2, 3);
  const bool isFused = mayFuse && hasKeys && from == keysFrom && coin(random, 1, 3);
  const bool isBeside = isFused && coin(random, 1, 3);
  if (isFused) {
    std::vector<Column> columns{{&spec.queries, extents.heads}, {&spec.keys, extents.keyHeads}};
    if (isBeside && areQueriesApart) columns.push_back({&spec.rotatedQueries, extents.heads});
    if (isBeside && areKeysApart) columns.push_back({&spec.rotatedKeys, extents.keyHeads});
    fuse(random, extents, columns, from, regions.queries);
  } else {
    spec.queries = drawView(random, extents, extents.heads, from, regions.queries, areQueriesApart);
    if (hasKeys) spec.keys = drawView(random, extents, extents.keyHeads, keysFrom, regions.keys, areKeysApart);
  }
  if (isBeside) return;
  if (areQueriesApart) {
    spec.rotatedQueries = drawView(random, extents, extents.heads, into, regions.rotatedQueries, false);
  }
  if (areKeysApart && hasKeys) {
    spec.rotatedKeys = drawView(random, extents, extents.keyHeads, keysInto, regions.rotatedKeys, false);
  }
}

}  // namespace

MultiRoPESpec validRope(Seeded& random, Bank bank) {
  for (;;) {
    Spec spec;
    spec.isStill = bank == Bank::first && coin(random, 1, 2);
    const Regions regions = drawRegions(random, bank, spec.isStill);
    const Extents extents = drawExtents(random);
    const Placing placing = bank == Bank::first
                                ? Placing::apart
                                : oneOf(random, {Placing::apart, Placing::apart, Placing::inPlace, Placing::inPlace,
                                                 Placing::inPlaceByName, Placing::keysStay, Placing::queriesStay});
    spec.numbers.size = sizeof spec.numbers;
    if (coin(random, 1, 16)) spec.numbers.size += random.below(sizeof spec.numbers + 1);
    drawOperands(spec, random, extents, regions, placing, bank == Bank::second);
    drawRotary(spec, random, extents.headDim);
    drawNumbers(spec, random, regions.positions, regions.offsets);
    if (!placeAll(spec, random)) continue;
    if (placing == Placing::inPlaceByName) {
      spec.rotatedQueries = renamed(random, spec.queries);
      if (spec.keys.tensor) spec.rotatedKeys = renamed(random, spec.keys);
    }
    if (refusalOf(spec).empty() && !isOpen(spec)) return spec;
  }
}

}  // namespace mnk::fuzz
