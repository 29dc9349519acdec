// Steps that rotate, append and attend in one call, compared with separate calls of MultiRoPE, append and attend: the
// bytes of the cache and the results are bit-identical.
#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Runtime/FloatElements.hpp"

namespace mnk::test {

namespace {

enum class Numbers { none, first, list, i32, u32 };

struct Case {
  std::string name;
  AttentionCacheDescriptor cache;
  RotaryEmbedding rotary = {};
  DType queries = DType::f16;
  DType keys = DType::f16;  // and values
  uint64_t queryHeads = 4;
  bool isFused = false;  // columns of one tensor
  uint64_t gap = 0;      // elements before the first column
  Numbers positions = Numbers::none;
  uint32_t axes = 1;
  Numbers offsets = Numbers::none;
  uint64_t before = 3;  // tokens already in the cache
  uint64_t tokens = 1;
  AttentionOptions options = {};
  uint64_t dispatches = 2;  // in the step
  bool isPrefill = false;   // GPUs attend with all rows in one dispatch
};

AttentionCacheDescriptor dense(DType dtype, uint32_t headDim, uint32_t valueHeadDim = 0) {
  return {
      .kvHeads = 2, .headDim = headDim, .valueHeadDim = valueHeadDim, .capacity = 40, .sequences = 2, .dtype = dtype};
}

AttentionCacheDescriptor quantized(KVCodec::Name codec, uint32_t keyBits, uint32_t valueBits, uint32_t headDim) {
  AttentionCacheDescriptor descriptor = dense(DType::f16, headDim);
  descriptor.quantized = KVQuantizedStorage{.codec = codec, .keyBits = keyBits, .valueBits = valueBits};
  return descriptor;
}

AttentionCacheDescriptor ring(AttentionCacheDescriptor descriptor, uint32_t capacity, uint32_t pinned = 0) {
  descriptor.capacity = capacity;
  descriptor.whenFull = KVWrap::ring;
  descriptor.pinned = pinned;
  return descriptor;
}

RotaryEmbedding partial(uint64_t ropeDim, RotaryEmbedding::Pairing pairing) {
  return {.ropeDim = ropeDim, .pairing = pairing};
}

// Each kind of storage with its name.
std::vector<std::pair<std::string, AttentionCacheDescriptor>> storages(DType dtype, uint32_t keyBits,
                                                                       uint32_t valueBits, uint32_t headDim) {
  const AttentionCacheDescriptor both = quantized(KVCodec::Name::turbo, keyBits, valueBits, headDim);
  return {{"dense", dense(dtype, headDim)},
          {"quantized", both},
          {"quantized keys", mixed(both, KVQuantizedPlanes::keys, dtype)},
          {"quantized values", mixed(both, KVQuantizedPlanes::values, dtype)}};
}

std::vector<Case> storageCases() {
  std::vector<Case> cases;
  for (const DType cache : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto planes : {KVQuantizedPlanes::keys, KVQuantizedPlanes::values}) {
      for (const DType keys : {DType::f32, DType::f16, DType::bf16}) {
        const bool areKeys = planes == KVQuantizedPlanes::keys;
        cases.push_back({.name = fmt::format("{} codes, {} tokens, {} {}", areKeys ? "key" : "value", name(keys),
                                             name(cache), areKeys ? "values" : "keys"),
                         .cache = mixed(quantized(KVCodec::Name::turbo, 4, 3, 64), planes, cache),
                         .rotary = partial(areKeys ? 48 : 22, RotaryEmbedding::Pairing::halfOfRopeDim),
                         .queries = keys,
                         .keys = keys,
                         .tokens = keys == cache ? 5u : 1u});
      }
    }
  }
  for (const DType cache : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType keys : {DType::f32, DType::f16, DType::bf16}) {
      for (const DType queries : {keys, keys == DType::f32 ? DType::bf16 : DType::f32}) {
        cases.push_back({.name = fmt::format("{} queries, {} keys, {} cache", name(queries), name(keys), name(cache)),
                         .cache = dense(cache, 64),
                         .rotary = partial(48, RotaryEmbedding::Pairing::halfOfRopeDim),
                         .queries = queries,
                         .keys = keys,
                         .tokens = queries == keys ? 5u : 1u});
      }
    }
  }
  for (uint32_t bits = 2; bits <= 8; ++bits) {
    cases.push_back({.name = fmt::format("turbo of {} bits", bits),
                     .cache = quantized(KVCodec::Name::turbo, bits, 10 - bits, bits % 2 == 0 ? 128 : 64),
                     .keys = bits % 3 == 0   ? DType::f32
                             : bits % 3 == 1 ? DType::f16
                                             : DType::bf16,
                     .tokens = bits % 2 == 0 ? 1u : 5u});
  }
  for (const uint32_t headDim : {80, 96, 112, 192}) {
    for (const uint32_t tokens : {1, 5, 40}) {
      if (tokens == 40 && headDim > 96) continue;  // GPUs have no kernel for this many rows
      AttentionCacheDescriptor cache = quantized(KVCodec::Name::turbo, 3 + headDim / 16 % 3, 4, headDim);
      if (headDim == 192) cache.valueHeadDim = 128;
      cases.push_back({.name = fmt::format("turbo, {} tokens, heads of {}", tokens, headDim),
                       .cache = cache,
                       .keys = tokens == 5 ? DType::f32 : DType::f16,
                       .before = tokens == 40 ? 0u : 6u,
                       .tokens = tokens,
                       .dispatches = tokens == 40 ? 6u : 2u,
                       .isPrefill = tokens == 40});
    }
  }
  for (const uint32_t bits : {4, 5, 6, 8}) {
    cases.push_back({.name = fmt::format("mlx1 of {} bits", bits),
                     .cache = quantized(KVCodec::Name::mlx1, bits, bits, bits == 4 ? 128 : 256),
                     .rotary = {.layout = RotaryEmbedding::Layout::interleavedPairs},
                     .queries = DType::bf16,
                     .keys = DType::bf16,
                     .tokens = bits == 8 ? 5u : 1u});
  }
  return cases;
}

std::vector<Case> rotaryCases() {
  const std::pair<std::string, RotaryEmbedding> rotaries[] = {
      {"half-split", {.base = 5e5}},
      {"interleaved", {.layout = RotaryEmbedding::Layout::interleavedPairs}},
      {"half of the rope dim", partial(48, RotaryEmbedding::Pairing::halfOfRopeDim)},
      {"half of the head dim", partial(48, RotaryEmbedding::Pairing::halfOfHeadDim)},
      {"neighbors", partial(48, RotaryEmbedding::Pairing::neighbors)},
      {"pairs not in fours", partial(22, RotaryEmbedding::Pairing::halfOfRopeDim)},
      {"pairs not in fours, of the head", partial(22, RotaryEmbedding::Pairing::halfOfHeadDim)},
      {"neighbors not in fours", partial(22, RotaryEmbedding::Pairing::neighbors)},
      {"inverse, stretched", {.scale = 0.25, .yarn = RotaryEmbedding::YaRN{.originalContext = 64}, .isInverse = true}},
  };
  std::vector<Case> cases;
  for (const uint32_t headDim : {64, 128, 256}) {
    for (const auto& [storage, cache] : storages(DType::f16, 4, 3, headDim)) {
      for (const auto& [called, rotary] : rotaries) {
        cases.push_back({.name = fmt::format("{}, {} heads of {}", called, storage, headDim),
                         .cache = cache,
                         .rotary = rotary,
                         .isFused = headDim == 128,
                         .tokens = headDim == 64 ? 5u : 2u});
      }
    }
  }
  const RotaryEmbedding mrope{.layout = RotaryEmbedding::Layout::mrope, .sections = {8, 12, 12, 0}};
  const RotaryEmbedding imrope{.layout = RotaryEmbedding::Layout::imrope, .sections = {12, 10, 10, 0}};
  const RotaryEmbedding vision{.layout = RotaryEmbedding::Layout::vision, .sections = {16, 16, 0, 0}};
  for (const auto& [storage, cache] : storages(DType::bf16, 5, 4, 64)) {
    const auto add = [&, &storage = storage, &cache = cache](std::string called, const RotaryEmbedding& rotary,
                                                             Numbers positions, uint32_t axes,
                                                             Numbers offsets = Numbers::none) {
      cases.push_back({.name = fmt::format("{}, {}", called, storage),
                       .cache = cache,
                       .rotary = rotary,
                       .isFused = axes == 3,
                       .positions = positions,
                       .axes = axes,
                       .offsets = offsets,
                       .tokens = 5});
    };
    add("mrope by a list", mrope, Numbers::list, 3);
    add("mrope by a tensor", mrope, Numbers::i32, 3, Numbers::i32);
    add("imrope by a tensor", imrope, Numbers::u32, 4, Numbers::list);
    add("vision by a list", vision, Numbers::list, 2);
    add("mrope of text", mrope, Numbers::none, 1, Numbers::list);
    add("text from a position on", {}, Numbers::first, 1, Numbers::u32);
    add("text by a tensor", {}, Numbers::i32, 1);
  }
  return cases;
}

std::vector<Case> memoryCases() {
  const AttentionOptions split{.splits = 3, .merge = AttentionOptions::Merge::separate};
  const AttentionOptions window{.window = 6};
  const RotaryEmbedding mrope{.layout = RotaryEmbedding::Layout::mrope, .sections = {8, 12, 12, 0}};
  std::vector<Case> cases;
  for (const auto& [storage, cache] : storages(DType::f16, 4, 4, 64)) {
    const auto called = [&, &storage = storage](std::string_view what) { return fmt::format("{}, {}", what, storage); };
    cases.push_back({.name = called("a fused projection"), .cache = cache, .isFused = true, .tokens = 5});
    cases.push_back(
        {.name = called("a fused projection, not aligned"), .cache = cache, .isFused = true, .gap = 3, .tokens = 5});
    cases.push_back({.name = called("a separate merge"),
                     .cache = cache,
                     .before = 30,
                     .tokens = 2,
                     .options = split,
                     .dispatches = 3});
    cases.push_back({.name = called("a fused projection, not aligned, in splits"),
                     .cache = cache,
                     .rotary = partial(30, RotaryEmbedding::Pairing::halfOfRopeDim),
                     .isFused = true,
                     .gap = 1,
                     .before = 30,
                     .tokens = 2,
                     .options = split,
                     .dispatches = 3});
    cases.push_back({.name = called("many query heads"), .cache = cache, .queryHeads = 18, .tokens = 3});
    cases.push_back(
        {.name = called("many tokens"), .cache = cache, .before = 0, .tokens = 36, .dispatches = 6, .isPrefill = true});
    // Four tokens at first, then one at a time.
    cases.push_back({.name = called("a ring that wraps"),
                     .cache = ring(cache, 8, 1),
                     .rotary = mrope,
                     .isFused = true,
                     .positions = Numbers::i32,
                     .axes = 3,
                     .before = 4,
                     .tokens = 7,
                     .dispatches = 8});
    cases.push_back({.name = called("a ring that wraps, with listed positions"),
                     .cache = ring(cache, 8),
                     .rotary = mrope,
                     .positions = Numbers::list,
                     .axes = 3,
                     .offsets = Numbers::list,
                     .before = 6,
                     .tokens = 5,
                     .dispatches = 8});
    cases.push_back({.name = called("a ring and a window"),
                     .cache = ring(cache, 9),
                     .before = 11,
                     .tokens = 9,
                     .options = window,
                     .dispatches = 6});
    cases.push_back({.name = called("a first position in a ring"),
                     .cache = ring(cache, 8),
                     .positions = Numbers::first,
                     .before = 7,
                     .tokens = 3,
                     .dispatches = 6});
  }
  cases.push_back({.name = "values shorter than keys", .cache = dense(DType::f16, 64, 32), .tokens = 2});
  cases.push_back({.name = "values longer than keys", .cache = dense(DType::f32, 64, 128), .tokens = 2});
  cases.push_back({.name = "many heads and tokens",
                   .cache = dense(DType::bf16, 64),
                   .queryHeads = 10,
                   .before = 0,
                   .tokens = 40,
                   .dispatches = 6,
                   .isPrefill = true});
  return cases;
}

class RotaryCall {
 public:
  RotaryCall(std::shared_ptr<Device> device, const Case& c) : device_(std::move(device)), case_(c) {}

  void run() {
    AttentionCache fused = makeCache(device_, case_.cache), apart = makeCache(device_, case_.cache);
    const uint64_t heads = case_.cache.kvHeads, keyDim = case_.cache.headDim;
    const uint64_t valueDim = fused.descriptor().valueHeadDim;
    if (case_.before != 0) {
      const Tensor keys = numbersOf(DType::f32, {case_.before, heads, keyDim});
      const Tensor values = numbersOf(DType::f32, {case_.before, heads, valueDim});
      for (AttentionCache* cache : {&fused, &apart}) {
        REQUIRE(CommandEncoder::run(device_, [&](CommandEncoder& e) { return cache->append(e, keys, values, 1); }));
      }
    }
    CacheStep step = inputs(valueDim);
    step.rotary = RotaryStep{.embedding = case_.rotary, .positions = positions(), .offsets = offsets()};
    const auto before = sources(step);
    step.results.output = results(valueDim);
    const Summary summary = REQUIRE(
        CommandEncoder::run(device_, [&](CommandEncoder& encoder) { return fused.appendAndAttend(encoder, step); }));
    const bool isPrefill = case_.isPrefill && device_->profile().family != "host";
    EXPECT_EQ(summary.total.dispatches, isPrefill ? 2 : case_.dispatches);
    EXPECT(sources(step) == before);
    EXPECT_EQ(*fused.nextPosition(1), case_.before + case_.tokens);

    const Tensor expected = results(valueDim);
    separately(apart, step, expected);
    EXPECT(slotBytesOf(fused) == slotBytesOf(apart));
    EXPECT(bytesOf(*step.results.output) == bytesOf(expected));
  }

 private:
  Tensor zeros(DType dtype, std::vector<uint64_t> shape) const {
    return REQUIRE(Tensor::zeros(device_, dtype, REQUIRE(Shape::make(shape))));
  }
  Tensor results(uint64_t valueDim) const { return zeros(case_.queries, {case_.tokens, case_.queryHeads, valueDim}); }
  Tensor numbersOf(DType dtype, std::vector<uint64_t> shape) {
    const Tensor tensor = zeros(dtype, std::move(shape));
    std::vector<float> elements(tensor.shape().elementCount());
    for (float& element : elements)
      element = static_cast<float>(static_cast<int64_t>(random_.below(8001)) - 4000) / 999;
    REQUIRE(writeFloats(tensor, elements));
    return tensor;
  }

  CacheStep inputs(uint64_t valueDim) {
    const uint64_t heads = case_.cache.kvHeads, keyDim = case_.cache.headDim;
    CacheStep step{.options = case_.options, .sequences = {1}};
    if (!case_.isFused) {
      step.queries = numbersOf(case_.queries, {case_.tokens, case_.queryHeads, keyDim});
      step.keys = numbersOf(case_.keys, {case_.tokens, heads, keyDim});
      step.values = numbersOf(case_.keys, {case_.tokens, heads, valueDim});
      return step;
    }
    const uint64_t first = case_.gap, keys = first + case_.queryHeads * keyDim, values = keys + heads * keyDim;
    const Tensor all = numbersOf(case_.queries, {case_.tokens, values + heads * valueDim});
    step.queries = REQUIRE(HeadsView::columns(all, first, case_.queryHeads, keyDim));
    step.keys = REQUIRE(HeadsView::columns(all, keys, heads, keyDim));
    step.values = REQUIRE(HeadsView::columns(all, values, heads, valueDim));
    return step;
  }
  static std::vector<std::vector<std::byte>> sources(const CacheStep& step) {
    return {bytesOf(step.queries.tensor), bytesOf(step.keys.tensor), bytesOf(step.values.tensor)};
  }

  std::vector<int32_t> someNumbers(uint64_t count) {
    std::vector<int32_t> numbers(count);
    for (int32_t& number : numbers) number = static_cast<int32_t>(random_.below(100'000));
    return numbers;
  }
  Tensor tensorOf(const std::vector<int32_t>& numbers, Numbers kind, std::vector<uint64_t> shape) const {
    const Tensor tensor = zeros(kind == Numbers::i32 ? DType::i32 : DType::u32, std::move(shape));
    REQUIRE(tensor.write(rawBytes(numbers)));
    return tensor;
  }
  std::optional<RotaryPositions> positions() {
    const std::vector<int32_t> numbers = someNumbers(case_.axes * case_.tokens);
    switch (case_.positions) {
      case Numbers::none:
        return std::nullopt;
      case Numbers::first:
        return RotaryPositions(70'000);
      case Numbers::list:
        return RotaryPositions(numbers, case_.axes);
      default:
        return RotaryPositions(case_.axes == 1 ? tensorOf(numbers, case_.positions, {case_.tokens})
                                               : tensorOf(numbers, case_.positions, {case_.axes, case_.tokens}));
    }
  }
  std::optional<RotaryOffsets> offsets() const {
    if (case_.offsets == Numbers::none) return std::nullopt;
    if (case_.offsets == Numbers::list) return std::vector<int32_t>{-17};
    return tensorOf({23}, case_.offsets, {1});
  }

  // Rotates into tensors of the same dtypes, then appends and attends.
  void separately(AttentionCache& cache, const CacheStep& step, const Tensor& into) const {
    const auto like = [&](const HeadsView& view) {
      const HeadsView::Strides s = view.resolved();
      return HeadsView(zeros(view.tensor.dtype(), {s.tokens, s.heads, s.headDim}));
    };
    MultiRoPE rotation{.queries = step.queries,
                       .keys = step.keys,
                       .rotatedQueries = like(step.queries),
                       .rotatedKeys = like(step.keys),
                       .positions = step.rotary->positions.value_or(RotaryPositions(case_.before)),
                       .offsets = step.rotary->offsets,
                       .rotary = step.rotary->embedding};
    CacheStep rotated = step;
    rotated.rotary.reset();
    rotated.queries = *rotation.rotatedQueries;
    rotated.keys = *rotation.rotatedKeys;
    rotated.results.output = into;
    REQUIRE(CommandEncoder::run(device_, [&](CommandEncoder& encoder) -> Result<void> {
      if (auto done = encoder.encode(rotation); !done) return done;
      return cache.appendAndAttend(encoder, rotated);
    }));
  }

  std::shared_ptr<Device> device_;
  const Case& case_;
  Seeded random_{7};
};

void runAll(const std::vector<Case>& cases) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const Case& c : cases) {
      const Context context(c.name);
      RotaryCall(device, c).run();
    }
  });
}

}  // namespace

TEST(AttentionCacheRotary, EveryStorageMatchesSeparateCalls) {
  runAll(storageCases());
}

TEST(AttentionCacheRotary, EveryRotationMatchesMultiRoPE) {
  runAll(rotaryCases());
}

TEST(AttentionCacheRotary, ViewsRingsAndSplitsMatchSeparateCalls) {
  runAll(memoryCases());
}

}  // namespace mnk::test
