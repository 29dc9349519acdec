#include <cmath>

#include "KVCacheQuantizeCall.hpp"
#include "Numbers.hpp"
#include "TensorMutations.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheQuantizeSpec;

// Which of the axes of a source or of a cache the heads are.
uint64_t& headAxis(TensorSpec& source, mnk_kv_layout layout) {
  const size_t rank = source.shape.size();
  return source.shape[rank == 2 ? 0 : rank - (layout == MNK_TOKEN_MAJOR ? 2 : 3)];
}
uint64_t& cacheAxis(TensorSpec& tensor, mnk_kv_layout layout, bool isHeads, size_t cacheRank) {
  const bool isFirst = (layout == MNK_HEAD_MAJOR) == isHeads;
  return tensor.shape[cacheRank - (isFirst ? 3 : 2)];
}

std::optional<TensorSpec>* anyTensor(Spec& spec, Seeded& random) {
  std::vector<std::optional<TensorSpec>*> there;
  for (auto* tensor : tensorsOf(spec)) {
    if (*tensor) there.push_back(tensor);
  }
  return there.empty() ? nullptr : there[random.below(there.size())];
}

void mutateTensor(Spec& spec, Seeded& random) {
  std::optional<TensorSpec>* tensor = anyTensor(spec, random);
  std::optional<TensorSpec>* other = anyTensor(spec, random);
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

void mutateCodec(Spec& spec, Seeded& random) {
  QuantizedPlaneSpec& plane = coin(random, 1, 2) ? spec.keys : spec.values;
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
      std::swap(spec.keys.codec, spec.values.codec);
  }
}

void mutateOptions(Spec& spec, Seeded& random) {
  const auto number = static_cast<uint32_t>(edge(random, {2, 5, 17}));
  switch (random.below(6)) {
    case 0:
      spec.options.candidates = number;
      return;
    case 1:
      spec.options.key_scale = test::number<mnk_kv_scale_rule>(number);
      return;
    case 2:
      spec.options.value_scale = test::number<mnk_kv_scale_rule>(number);
      return;
    case 3:
      spec.options.non_finite = test::number<mnk_kv_non_finite>(number);
      return;
    case 4:
      spec.domain = test::number<mnk_kv_domain>(number);
      return;
    default:
      spec.isNull = true;
  }
}

void lieAboutSizes(Spec& spec, Seeded& random) {
  const size_t own = spec.ownSize(), view = sizeof(mnk_quantized_kv_view);
  if (coin(random, 1, 3)) {
    spec.viewSize = edge(random, {view, view, view + 8, 2 * view});
    return;
  }
  spec.size = edge(random, {own, own, own + 8, 2 * own});
  spec.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
}

// Something that goes with other codecs, other numbers of tokens or keys alone.
void addAnExtra(Spec& spec, Seeded& random) {
  const auto tensor = [](mnk_dtype dtype, std::vector<uint64_t> shape, uint32_t region) {
    return TensorSpec{.dtype = dtype, .shape = std::move(shape), .region = region};
  };
  const uint64_t headDim = spec.write.keys && !spec.write.keys->shape.empty() ? spec.write.keys->shape.back() : 32;
  switch (random.below(5)) {
    case 0:
      spec.counts = tensor(MNK_U32, coin(random, 1, 2) ? std::vector<uint64_t>{1, 2} : std::vector<uint64_t>{3},
                           QuantizedRegions::kCounts);
      return;
    case 1:
      spec.probe = tensor(MNK_F32, {1 + random.below(3), headDim}, QuantizedRegions::kProbe);
      return;
    case 2:
      spec.values.channelScales = tensor(MNK_F32, {1, headDim}, QuantizedRegions::kChannelScales);
      return;
    case 3:
      spec.keys.means = tensor(MNK_F32, {1 + random.below(3), headDim}, QuantizedRegions::kKeyMeans);
      return;
    default:
      spec.values.scales = tensor(MNK_F16, {1}, QuantizedRegions::kValueScales);
  }
}

// Without heads there is no memory, so that other extents may be as large as they like.
void stretchWithoutHeads(Spec& spec, Seeded& random) {
  KVCacheWriteSpec& write = spec.write;
  if (!write.keys || !write.keyCache || write.keyCache->shape.size() < 3 || write.keys->shape.size() < 2) return;
  if (write.keysView || write.valuesView) return;
  const mnk_kv_cache_write& n = write.numbers;
  const size_t rank = write.keyCache->shape.size();
  const uint64_t far = oneOf<uint64_t>(random, {(1ull << 31) - 1, 1ull << 31, (1ull << 31) + 1});
  const bool hasLongSource = coin(random, 1, 3);
  for (auto* tensor : {&write.keyCache, &write.valueCache, &spec.keys.scales, &spec.values.scales}) {
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
  for (auto* tensor : {&spec.keys.means, &spec.keys.channelScales, &spec.values.means, &spec.probe}) {
    if (*tensor && !(*tensor)->shape.empty()) (*tensor)->shape[0] = 0;
  }
  if (!hasLongSource || !n.has_rows) return;
  write.numbers.has_tokens = write.numbers.source_is_ring = false;
  write.numbers.source_offset = 0;
  for (RowSpec* rows : {&write.sequences, &write.positions}) {
    rows->list.assign(manyRows, 0);
    rows->tensor = TensorSpec{.dtype = MNK_U32, .shape = {manyRows}, .region = rows == &write.sequences ? 2u : 3u};
  }
}

void loseTheValues(Spec& spec, Seeded&) {
  spec.write.valueCache.reset();
  spec.values = {};
}

// Short keys beside long values, or the reverse: of codes that both have, but too different for one op.
void growApart(Spec& spec, Seeded& random) {
  KVCacheWriteSpec& write = spec.write;
  if (!write.keys || !write.keyCache || !write.values || !write.valueCache) return;
  if (write.keysView || write.valuesView) return;
  const bool hasShortKeys = coin(random, 1, 2);
  for (const bool isKeys : {true, false}) {
    TensorSpec& vectors = isKeys ? *write.keys : *write.values;
    TensorSpec& codes = isKeys ? *write.keyCache : *write.valueCache;
    QuantizedPlaneSpec& plane = isKeys ? spec.keys : spec.values;
    if (vectors.shape.empty() || codes.shape.empty() || !plane.scales) return;
    vectors.shape.back() = isKeys == hasShortKeys ? 4 : oneOf<uint64_t>(random, {128, 256});
    codes.shape.back() = vectors.shape.back() / 2;
    plane.codec = {MNK_MLX1, 4, 1};
    plane.means.reset(), plane.channelScales.reset();
    plane.scales->dtype = MNK_F32;
    plane.scales->shape.assign(codes.shape.begin(), codes.shape.end() - 1);
  }
  spec.probe.reset();
}

void moveARow(Spec& spec, Seeded& random) {
  RowSpec& rows = coin(random, 3, 4) ? spec.write.sequences : spec.write.positions;
  if (!rows.list.empty()) rows.list[random.below(rows.list.size())] = static_cast<uint32_t>(3 + random.below(8));
}

using Mutation = void (*)(Spec&, Seeded&);
constexpr Mutation kMutations[] = {mutateTensor, mutateTensor,        mutateCodec,   mutateOptions, lieAboutSizes,
                                   addAnExtra,   stretchWithoutHeads, loseTheValues, growApart,     moveARow};

}  // namespace

KVCacheQuantizeSpec mutated(KVCacheQuantizeSpec spec, Seeded& random) {
  for (uint64_t left = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}); left > 0; --left) {
    if (coin(random, 2, 5) && spec.write.keys && spec.write.keyCache) {
      mutateOnce(spec.write, random);
    } else {
      kMutations[random.below(std::size(kMutations))](spec, random);
    }
  }
  spec.isNull = spec.isNull || spec.write.isNull;
  if (spec.isRead) spec.write.keysView.reset(), spec.write.valuesView.reset();  // it has tensors alone
  for (auto* tensor : tensorsOf(spec)) {
    if (*tensor) makePossible(**tensor, random);
  }
  avoidMixed(spec);
  return spec;
}

}  // namespace mnk::fuzz
