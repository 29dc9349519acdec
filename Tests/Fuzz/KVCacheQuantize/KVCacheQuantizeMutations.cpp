#include <cmath>

#include "KVCacheQuantizeCall.hpp"
#include "Numbers.hpp"
#include "TensorAttacks.hpp"

namespace mnk::fuzz {

namespace {

using Words = KVCacheQuantizeWords;

// Which of the axes of a source or of a cache the heads are.
uint64_t& headAxis(TensorWords& source, mnk_kv_layout layout) {
  const size_t rank = source.shape.size();
  return source.shape[rank == 2 ? 0 : rank - (layout == MNK_TOKEN_MAJOR ? 2 : 3)];
}
uint64_t& cacheAxis(TensorWords& tensor, mnk_kv_layout layout, bool isHeads, size_t cacheRank) {
  const bool isFirst = (layout == MNK_HEAD_MAJOR) == isHeads;
  return tensor.shape[cacheRank - (isFirst ? 3 : 2)];
}

std::optional<TensorWords>* anyTensor(Words& words, Seeded& random) {
  std::vector<std::optional<TensorWords>*> there;
  for (auto* tensor : tensorsOf(words)) {
    if (*tensor) there.push_back(tensor);
  }
  return there.empty() ? nullptr : there[random.below(there.size())];
}

void attackATensor(Words& words, Seeded& random) {
  std::optional<TensorWords>* tensor = anyTensor(words, random);
  std::optional<TensorWords>* other = anyTensor(words, random);
  if (!tensor) return;
  switch (random.below(7)) {
    case 0:
      return changeTheRank(**tensor, random);
    case 1:
      return changeTheDType(**tensor, random);
    case 2:
    case 3:
      return moveAnExtent(**tensor, random);
    case 4:
      return moveBeside(**tensor, **other, random);
    case 5:
      (*tensor)->device = 1;
      return;
    default:
      tensor->reset();
  }
}

void attackTheCodec(Words& words, Seeded& random) {
  QuantizedPlaneWords& plane = coin(random, 1, 2) ? words.keys : words.values;
  switch (random.below(4)) {
    case 0:
      plane.codec.name = test::number<mnk_kv_codec_name>(static_cast<uint32_t>(random.below(3)));
      return;
    case 1:
      plane.codec.bits = static_cast<uint32_t>(edge(random, {2, 8}));
      return;
    case 2:
      plane.codec.scale_factor = oneOf(random, {0.0f, -1.0f, 2.0f, 9e-7f, 1e-6f, 1.1e6f, HUGE_VALF, NAN, 1.0f});
      return;
    default:
      std::swap(words.keys.codec, words.values.codec);
  }
}

void attackTheOptions(Words& words, Seeded& random) {
  const auto number = static_cast<uint32_t>(edge(random, {2, 5, 17}));
  switch (random.below(6)) {
    case 0:
      words.options.candidates = number;
      return;
    case 1:
      words.options.key_scale = test::number<mnk_kv_scale_rule>(number);
      return;
    case 2:
      words.options.value_scale = test::number<mnk_kv_scale_rule>(number);
      return;
    case 3:
      words.options.non_finite = test::number<mnk_kv_non_finite>(number);
      return;
    case 4:
      words.domain = test::number<mnk_kv_domain>(number);
      return;
    default:
      words.isNull = true;
  }
}

void lieAboutSizes(Words& words, Seeded& random) {
  const size_t own = words.ownSize(), view = sizeof(mnk_quantized_kv_view);
  if (coin(random, 1, 3)) {
    words.viewSize = edge(random, {view, view, view + 8, 2 * view});
    return;
  }
  words.size = edge(random, {own, own, own + 8, 2 * own});
  words.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
}

// Something that goes with other codecs, other numbers of tokens or keys alone.
void addAnExtra(Words& words, Seeded& random) {
  const auto tensor = [](mnk_dtype dtype, std::vector<uint64_t> shape, uint32_t arena) {
    return TensorWords{.dtype = dtype, .shape = std::move(shape), .arena = arena};
  };
  const uint64_t headDim = words.write.keys && !words.write.keys->shape.empty() ? words.write.keys->shape.back() : 32;
  switch (random.below(5)) {
    case 0:
      words.counts = tensor(MNK_U32, coin(random, 1, 2) ? std::vector<uint64_t>{1, 2} : std::vector<uint64_t>{3},
                            QuantizedArenas::kCounts);
      return;
    case 1:
      words.probe = tensor(MNK_F32, {1 + random.below(3), headDim}, QuantizedArenas::kProbe);
      return;
    case 2:
      words.values.channelScales = tensor(MNK_F32, {1, headDim}, QuantizedArenas::kChannelScales);
      return;
    case 3:
      words.keys.means = tensor(MNK_F32, {1 + random.below(3), headDim}, QuantizedArenas::kKeyMeans);
      return;
    default:
      words.values.scales = tensor(MNK_F16, {1}, QuantizedArenas::kValueScales);
  }
}

// Without heads there is no memory, so that other extents may be as large as they like.
void stretchWithoutHeads(Words& words, Seeded& random) {
  KVCacheWriteWords& write = words.write;
  if (!write.keys || !write.keyCache || write.keyCache->shape.size() < 3 || write.keys->shape.size() < 2) return;
  if (write.keysView || write.valuesView) return;
  const mnk_kv_cache_write& n = write.numbers;
  const size_t rank = write.keyCache->shape.size();
  const uint64_t far = oneOf<uint64_t>(random, {(1ull << 31) - 1, 1ull << 31, (1ull << 31) + 1});
  const bool hasLongSource = coin(random, 1, 3);
  for (auto* tensor : {&write.keyCache, &write.valueCache, &words.keys.scales, &words.values.scales}) {
    if (!*tensor || (*tensor)->shape.size() + 1 < rank) continue;
    cacheAxis(**tensor, n.into.layout, true, rank) = 0;
    if (!hasLongSource) cacheAxis(**tensor, n.into.layout, false, rank) = far;
  }
  const uint64_t manyRows = oneOf<uint64_t>(random, {1024, 1025});
  for (auto* tensor : {&write.keys, &write.values}) {
    if (!*tensor || (*tensor)->shape.size() < 2) continue;
    headAxis(**tensor, n.source_layout) = 0;
    if (hasLongSource && (*tensor)->shape.size() == 3) {
      (*tensor)->shape[n.source_layout == MNK_TOKEN_MAJOR ? 0 : 1] = n.has_rows ? manyRows : far;
    }
  }
  for (auto* tensor : {&words.keys.means, &words.keys.channelScales, &words.values.means, &words.probe}) {
    if (*tensor && !(*tensor)->shape.empty()) (*tensor)->shape[0] = 0;
  }
  if (!hasLongSource || !n.has_rows) return;
  write.numbers.has_tokens = write.numbers.source_is_ring = false;
  write.numbers.source_offset = 0;
  for (RowWords* rows : {&write.sequences, &write.positions}) {
    rows->list.assign(manyRows, 0);
    rows->tensor = TensorWords{.dtype = MNK_U32, .shape = {manyRows}, .arena = rows == &write.sequences ? 2u : 3u};
  }
}

void loseTheValues(Words& words, Seeded&) {
  words.write.valueCache.reset();
  words.values = {};
}

// Short keys beside long values, or the reverse: of codes that both have, but too different for one op.
void growApart(Words& words, Seeded& random) {
  KVCacheWriteWords& write = words.write;
  if (!write.keys || !write.keyCache || !write.values || !write.valueCache) return;
  if (write.keysView || write.valuesView) return;
  const bool hasShortKeys = coin(random, 1, 2);
  for (const bool isKeys : {true, false}) {
    TensorWords& vectors = isKeys ? *write.keys : *write.values;
    TensorWords& codes = isKeys ? *write.keyCache : *write.valueCache;
    QuantizedPlaneWords& plane = isKeys ? words.keys : words.values;
    if (vectors.shape.empty() || codes.shape.empty() || !plane.scales) return;
    vectors.shape.back() = isKeys == hasShortKeys ? 4 : oneOf<uint64_t>(random, {128, 256});
    codes.shape.back() = vectors.shape.back() / 2;
    plane.codec = {MNK_MLX1, 4, 1};
    plane.means.reset(), plane.channelScales.reset();
    plane.scales->dtype = MNK_F32;
    plane.scales->shape.assign(codes.shape.begin(), codes.shape.end() - 1);
  }
  words.probe.reset();
}

void moveARow(Words& words, Seeded& random) {
  RowWords& rows = coin(random, 3, 4) ? words.write.sequences : words.write.positions;
  if (!rows.list.empty()) rows.list[random.below(rows.list.size())] = static_cast<uint32_t>(3 + random.below(8));
}

using Attack = void (*)(Words&, Seeded&);
constexpr Attack kAttacks[] = {attackATensor, attackATensor,       attackTheCodec, attackTheOptions, lieAboutSizes,
                               addAnExtra,    stretchWithoutHeads, loseTheValues,  growApart,        moveARow};

}  // namespace

KVCacheQuantizeWords attacked(KVCacheQuantizeWords words, Seeded& random) {
  for (uint64_t left = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}); left > 0; --left) {
    if (coin(random, 2, 5) && words.write.keys && words.write.keyCache) {
      attackOnce(words.write, random);
    } else {
      kAttacks[random.below(std::size(kAttacks))](words, random);
    }
  }
  words.isNull = words.isNull || words.write.isNull;
  if (words.isRead) words.write.keysView.reset(), words.write.valuesView.reset();  // it has tensors alone
  for (auto* tensor : tensorsOf(words)) {
    if (*tensor) makePossible(**tensor, random);
  }
  return words;
}

}  // namespace mnk::fuzz
