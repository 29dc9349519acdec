#include <algorithm>

#include "MultiRoPECall.hpp"
#include "MultiRoPENumbers.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Words = MultiRoPEWords;

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

// Which arenas the operands of a call lie in.
struct Arenas {
  uint32_t queries, keys, rotatedQueries, rotatedKeys, positions, offsets;
};

// The first of two calls reads or writes what the second uses, so that their order counts. Only where every position
// is 0 are the bits known that it writes, so that the second may go on with them.
Arenas drawArenas(Seeded& random, Bank bank, bool isStill) {
  if (bank == Bank::second) return {0, 1, 2, 3, 4, 5};
  const auto first = static_cast<uint32_t>(random.below(6));
  const auto second = (first + 1 + static_cast<uint32_t>(random.below(5))) % 6;
  if (isStill) return {6, 7, first, second, 8, 9};
  return {first % 4, second % 4, 6, 7, 4, 5};
}

// A view by a tensor's shape.
HeadsWords shaped(Seeded& random, const Extents& extents, uint64_t heads, mnk_dtype dtype, uint32_t arena) {
  HeadsWords drawn;
  const bool isHeadMajor = coin(random, 1, 2);
  std::vector<uint64_t> shape{extents.sequences, extents.tokens, heads, extents.headDim};
  if (isHeadMajor) std::swap(shape[1], shape[2]);
  if (extents.sequences == 1 && coin(random, 3, 4)) shape.erase(shape.begin());
  const bool isOneToken = extents.tokens == 1 && shape.size() == 3 && !isHeadMajor;
  if (isOneToken && coin(random, 1, 2)) shape.erase(shape.begin());
  drawn.tensor = TensorWords{.dtype = dtype, .shape = shape, .arena = arena};
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
HeadsWords strided(Seeded& random, const Extents& extents, uint64_t heads, mnk_dtype dtype, uint32_t arena,
                   bool mayRepeat) {
  HeadsWords drawn;
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
  drawn.tensor = TensorWords{.dtype = dtype, .shape = {elements}, .arena = arena};
  if (coin(random, 1, 3)) drawn.tensor->shape = {1, elements, 1};
  if (extents.tokens == 0 && coin(random, 1, 2)) view.offset = edge(random, {elements});
  return drawn;
}

HeadsWords drawView(Seeded& random, const Extents& extents, uint64_t heads, mnk_dtype dtype, uint32_t arena,
                    bool mayRepeat) {
  return coin(random, 1, 2) ? shaped(random, extents, heads, dtype, arena)
                            : strided(random, extents, heads, dtype, arena, mayRepeat);
}

// Columns of one tensor, as a fused projection leaves them: for each token a block of each operand and of somebody
// else, or for each head a vector of each.
struct Column {
  HeadsWords* operand;
  uint64_t heads;
};
void fuse(Seeded& random, const Extents& extents, std::vector<Column> columns, mnk_dtype dtype, uint32_t arena) {
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
        TensorWords{.dtype = dtype, .shape = {extents.sequences * extents.tokens, tokenStride}, .arena = arena};
  }
}

// The same vectors in other words, such as by strides in a tensor that begins earlier.
HeadsWords renamed(Seeded& random, const HeadsWords& heads) {
  const auto places = placesOf(heads);
  if (coin(random, 1, 4)) return heads;
  HeadsWords other{.tensor = heads.tensor, .view = *places};
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

bool placeAll(Words& words, Seeded& random) {
  const std::optional<TensorWords>& first = words.queries.tensor;
  for (HeadsWords* heads : words.views()) {
    if (!heads->tensor) continue;
    // Columns of one tensor stay together.
    const bool isFused = heads != &words.queries && heads->tensor->arena == first->arena &&
                         heads->tensor->shape == first->shape && heads->tensor->dtype == first->dtype;
    if (isFused) {
      heads->tensor->offset = first->offset;
    } else if (!place(*heads->tensor, random)) {
      return false;
    }
  }
  for (NumberWords* numbers : {&words.positions, &words.offsets}) {
    if (numbers->tensor && !place(*numbers->tensor, random)) return false;
  }
  return true;
}

enum class Placing { apart, inPlace, inPlaceByName, keysStay, queriesStay };

// Views of all operands, not yet placed. Some are columns of one tensor, where `mayFuse` allows it.
void drawOperands(Words& words, Seeded& random, const Extents& extents, const Arenas& arenas, Placing placing,
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
    std::vector<Column> columns{{&words.queries, extents.heads}, {&words.keys, extents.keyHeads}};
    if (isBeside && areQueriesApart) columns.push_back({&words.rotatedQueries, extents.heads});
    if (isBeside && areKeysApart) columns.push_back({&words.rotatedKeys, extents.keyHeads});
    fuse(random, extents, columns, from, arenas.queries);
  } else {
    words.queries = drawView(random, extents, extents.heads, from, arenas.queries, areQueriesApart);
    if (hasKeys) words.keys = drawView(random, extents, extents.keyHeads, keysFrom, arenas.keys, areKeysApart);
  }
  if (isBeside) return;
  if (areQueriesApart) {
    words.rotatedQueries = drawView(random, extents, extents.heads, into, arenas.rotatedQueries, false);
  }
  if (areKeysApart && hasKeys) {
    words.rotatedKeys = drawView(random, extents, extents.keyHeads, keysInto, arenas.rotatedKeys, false);
  }
}

}  // namespace

MultiRoPEWords validRope(Seeded& random, Bank bank) {
  for (;;) {
    Words words;
    words.isStill = bank == Bank::first && coin(random, 1, 2);
    const Arenas arenas = drawArenas(random, bank, words.isStill);
    const Extents extents = drawExtents(random);
    const Placing placing = bank == Bank::first
                                ? Placing::apart
                                : oneOf(random, {Placing::apart, Placing::apart, Placing::inPlace, Placing::inPlace,
                                                 Placing::inPlaceByName, Placing::keysStay, Placing::queriesStay});
    words.numbers.size = sizeof words.numbers;
    if (coin(random, 1, 16)) words.numbers.size += random.below(sizeof words.numbers + 1);
    drawOperands(words, random, extents, arenas, placing, bank == Bank::second);
    drawRotary(words, random, extents.headDim);
    drawNumbers(words, random, arenas.positions, arenas.offsets);
    if (!placeAll(words, random)) continue;
    if (placing == Placing::inPlaceByName) {
      words.rotatedQueries = renamed(random, words.queries);
      if (words.keys.tensor) words.rotatedKeys = renamed(random, words.keys);
    }
    if (refusalOf(words).empty() && !isOpen(words)) return words;
  }
}

}  // namespace mnk::fuzz
