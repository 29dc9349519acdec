// Steps that rotate, append and attend in one call, compared with MultiRoPE by explicit positions and a step that takes
// rotated tokens: the bytes of the cache and the results are bit-identical.
#include <functional>
#include <map>

#include "Cache/CacheOperands.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"

namespace mnk::test {

namespace {

enum class Numbers { none, first, list, i32, u32 };

struct RotaryCase {
  AttentionCacheDescriptor cache = {.kvHeads = 2, .headDim = 64, .capacity = 40, .sequences = 3, .dtype = DType::f16};
  std::string storage = "dense", rotation = "plain";
  RotaryEmbedding embedding = {};
  uint32_t axes = 1;  // of given positions
  DType queries = DType::f16;
  DType keys = DType::f16;  // and values
  uint64_t queryHeads = 4;
  bool isFused = false;  // columns of one tensor
  uint64_t gap = 0;      // elements before the first column
  Numbers positions = Numbers::none, offsets = Numbers::none;
  uint64_t before = 3;  // tokens of each sequence
  Rows rows = {{1}, {1}};
  bool hasAxis = false;  // of sequences
  AttentionOptions options = {};
  uint64_t dispatches = 0;  // of the step; 0: those of the step with rotated tokens

  std::string text() const {
    return fmt::format(
        "{} heads of {} {}, {}, {} queries, {} keys, sequences {}, rows {}{}, after {} in {}{} slots, "
        "positions {} of {} axes, offsets {}",
        storage, cache.headDim, name(cache.dtype), rotation, name(queries), name(keys), fmt::join(rows.sequences, " "),
        fmt::join(rows.counts, " "), hasAxis ? " on an axis" : "", before, cache.capacity,
        cache.whenFull == KVWrap::ring ? " ring" : "", static_cast<int>(positions), axes, static_cast<int>(offsets));
  }
};

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
DType anyFloat(Seeded& random) {
  return kFloats[random.below(3)];
}

void drawStorage(RotaryCase& c, const std::shared_ptr<Device>& device, Seeded& random) {
  c.cache.dtype = anyFloat(random);
  const bool isDense = coin(random, 1, 3);
  if (isDense && c.cache.headDim == 64) c.cache.valueHeadDim = oneOf(random, {64u, 32u, 128u});
  if (isDense) return;
  c.cache.valueHeadDim = c.cache.headDim == 192 ? 128 : c.cache.headDim;
  c.cache.quantized = anyStorage(device, random, c.cache);
  if (c.cache.quantized->codec == KVCodec::Name::turbo) {
    c.cache.quantized->keyBits = static_cast<uint32_t>(2 + random.below(7));
    c.cache.quantized->valueBits = 10 - c.cache.quantized->keyBits;
  }
  const std::string_view names[] = {"quantized", "quantized keys", "quantized values"};
  c.storage = names[static_cast<int>(c.cache.quantized->planes)];
}

RotaryEmbedding partial(uint64_t ropeDim, RotaryEmbedding::Pairing pairing) {
  return {.ropeDim = ropeDim, .pairing = pairing};
}

struct Rotation {
  std::string name;
  RotaryEmbedding embedding;
  uint32_t axes = 1;
};
const std::vector<Rotation>& rotations() {
  using enum RotaryEmbedding::Pairing;
  using enum RotaryEmbedding::Layout;
  static const std::vector<Rotation> all = {
      {"half-split", {.base = 5e5}},
      {"interleaved", {.layout = interleavedPairs}},
      {"half of the rope dim", partial(48, halfOfRopeDim)},
      {"half of the head dim", partial(48, halfOfHeadDim)},
      {"neighbors", partial(48, neighbors)},
      {"pairs not in fours", partial(22, halfOfRopeDim)},
      {"pairs not in fours, of the head", partial(22, halfOfHeadDim)},
      {"neighbors not in fours", partial(22, neighbors)},
      {"inverse, stretched", {.scale = 0.25, .yarn = RotaryEmbedding::YaRN{.originalContext = 64}, .isInverse = true}},
      {"mrope", {.layout = mrope, .sections = {8, 12, 12, 0}}, 3},
      {"imrope", {.layout = imrope, .sections = {12, 10, 10, 0}}, 4},
      {"vision", {.layout = vision, .sections = {16, 16, 0, 0}}, 2},
  };
  return all;
}

void drawRotation(RotaryCase& c, Seeded& random) {
  const auto& [name, embedding, axes] = rotations()[random.below(c.cache.headDim == 64 ? rotations().size() : 9)];
  c.rotation = name, c.embedding = embedding;
  c.positions = static_cast<Numbers>(random.below(5));
  // Without positions for every axis, those of the cache hold for all.
  if (c.positions != Numbers::none && c.positions != Numbers::first) c.axes = axes;
  if (c.positions == Numbers::first && axes != 1) c.positions = Numbers::none;
  if (name == "vision" && c.positions == Numbers::none) c.positions = Numbers::list, c.axes = axes;
  if (c.rows.areEven()) c.offsets = oneOf(random, {Numbers::none, Numbers::list, Numbers::i32, Numbers::u32});
}

void drawOperands(RotaryCase& c, Seeded& random) {
  c.queries = anyFloat(random);
  c.keys = coin(random, 1, 2) ? c.queries : anyFloat(random);
  c.isFused = c.keys == c.queries && !c.hasAxis && coin(random, 1, 2);
  if (c.isFused) c.gap = oneOf<uint64_t>(random, {0, 0, 1, 3});
  if (coin(random, 1, 8)) c.queryHeads = oneOf<uint64_t>(random, {10, 18});
}

// Rows of one sequence or of a list, before which a ring may have wrapped.
void drawRows(RotaryCase& c, Seeded& random) {
  c.rows = {{static_cast<uint32_t>(random.below(3))}, {static_cast<uint32_t>(1 + random.below(5))}};
  if (coin(random, 1, 16)) c.rows.counts[0] = 36;
  const bool isEven = coin(random, 1, 2);
  while (c.rows.counts[0] < 36 && coin(random, 1, 2)) {
    c.rows.sequences.push_back(static_cast<uint32_t>(random.below(3)));
    c.rows.counts.push_back(isEven ? c.rows.counts[0] : static_cast<uint32_t>(random.below(5)));
  }
  c.hasAxis = c.rows.sequences.size() > 1 && c.rows.areEven() && coin(random, 1, 2);
  c.before = random.below(5);
  const bool isLong = c.rows.total() > 30;
  if (isLong || coin(random, 1, 2)) return;
  c.cache.whenFull = KVWrap::ring;
  c.cache.pinned = static_cast<uint32_t>(random.below(2));
  c.cache.capacity = static_cast<uint32_t>(8 + random.below(3));
  c.before = random.below(12);
}

void drawOptions(RotaryCase& c, Seeded& random) {
  if (coin(random, 1, 3)) c.options.window = 6;
  if (coin(random, 1, 3)) c.options.splits = 3, c.options.merge = AttentionOptions::Merge::separate;
}

class RotaryCall {
 public:
  RotaryCall(std::shared_ptr<Device> device, const RotaryCase& c, Seeded& random)
      : device_(std::move(device)), case_(c), random_(random) {}

  void run() {
    AttentionCache fused = makeCache(device_, case_.cache), apart = makeCache(device_, case_.cache);
    const uint64_t heads = case_.cache.kvHeads, valueDim = fused.descriptor().valueHeadDim;
    for (uint32_t sequence = 0; case_.before != 0 && sequence < 3; ++sequence) {
      const Tensor keys = someTokens(device_, random_, case_.before, heads, case_.cache.headDim);
      const Tensor values = someTokens(device_, random_, case_.before, heads, valueDim);
      REQUIRE(CommandEncoder::run(device_, [&](CommandEncoder& encoder) -> Result<void> {
        REQUIRE(fused.append(encoder, keys, values, sequence));
        return apart.append(encoder, keys, values, sequence);
      }));
    }
    CacheStep step = inputs(valueDim);
    step.results = results(valueDim);
    step.rotary = RotaryStep{.embedding = case_.embedding};
    const std::vector<int32_t> positions = setPositions(*step.rotary);
    CacheStep rotated = step;
    rotated.rotary.reset();
    rotated.rowCounts = case_.rows.counts;
    rotated.results = results(valueDim);
    const auto before = sources(step);
    const Summary summary = REQUIRE(
        CommandEncoder::run(device_, [&](CommandEncoder& encoder) { return fused.appendAndAttend(encoder, step); }));
    EXPECT(sources(step) == before);
    const Summary separate = REQUIRE(CommandEncoder::run(device_, [&](CommandEncoder& encoder) -> Result<void> {
      const MultiRoPE rotation{.queries = flat(step.queries),
                               .keys = flat(step.keys),
                               .rotatedQueries = zerosLike(step.queries),
                               .rotatedKeys = zerosLike(step.keys),
                               .positions = RotaryPositions(tensorOf(positions, Numbers::i32, case_.axes)),
                               .rotary = case_.embedding};
      if (auto done = encoder.encode(rotation); !done) return done;
      rotated.queries = *rotation.rotatedQueries;
      rotated.keys = *rotation.rotatedKeys;
      rotated.values = flat(step.values);
      return apart.appendAndAttend(encoder, rotated);
    }));
    // Keys are rotated in the dispatch that stores them.
    const uint64_t unrotated = separate.total.dispatches - separate.kinds.at("MultiRoPE").dispatches;
    EXPECT_EQ(summary.total.dispatches, case_.dispatches != 0 ? case_.dispatches : unrotated);
    for (uint32_t sequence = 0; sequence < 3; ++sequence) {
      EXPECT_EQ(*fused.nextPosition(sequence), *apart.nextPosition(sequence));
    }
    EXPECT(CacheBytes(fused).planes == CacheBytes(apart).planes);
    EXPECT(bytesOf(*step.results.output) == bytesOf(*rotated.results.output));
    EXPECT(bytesOf(*step.results.logSumExp) == bytesOf(*rotated.results.logSumExp));
  }

 private:
  Tensor zeros(DType dtype, std::vector<uint64_t> shape) const {
    return REQUIRE(Tensor::zeros(device_, dtype, REQUIRE(Shape::make(shape))));
  }
  AttentionResults results(uint64_t valueDim) const {
    const uint64_t rows = case_.rows.total();
    return {.output = zeros(case_.queries, {rows, case_.queryHeads, valueDim}),
            .logSumExp = zeros(DType::f32, {rows, case_.queryHeads})};
  }
  HeadsView zerosLike(const HeadsView& view) const {
    const HeadsView::Strides s = view.resolved();
    return HeadsView(zeros(view.tensor.dtype(), {s.totalTokens(), s.heads, s.headDim}));
  }
  Tensor someNumbers(DType dtype, std::vector<uint64_t> shape) {
    const Tensor tensor = zeros(dtype, std::move(shape));
    std::vector<float> elements(tensor.shape().elementCount());
    for (float& element : elements) {
      element = static_cast<float>(static_cast<int64_t>(random_.below(8001)) - 4000) / 999;
    }
    REQUIRE(writeFloats(tensor, elements));
    return tensor;
  }

  CacheStep inputs(uint64_t valueDim) {
    const uint64_t heads = case_.cache.kvHeads, keyDim = case_.cache.headDim, rows = case_.rows.total();
    CacheStep step{.options = case_.options, .sequences = case_.rows.sequences};
    if (case_.rows.sequences.size() > 1 && !case_.hasAxis) step.rowCounts = case_.rows.counts;
    if (case_.isFused) {
      const uint64_t first = case_.gap, keys = first + case_.queryHeads * keyDim, values = keys + heads * keyDim;
      const Tensor all = someNumbers(case_.queries, {rows, values + heads * valueDim});
      step.queries = REQUIRE(HeadsView::columns(all, first, case_.queryHeads, keyDim));
      step.keys = REQUIRE(HeadsView::columns(all, keys, heads, keyDim));
      step.values = REQUIRE(HeadsView::columns(all, values, heads, valueDim));
      return step;
    }
    const auto vectors = [&](DType dtype, uint64_t of, uint64_t dim) -> HeadsView {
      if (!case_.hasAxis) return someNumbers(dtype, {rows, of, dim});
      return someNumbers(dtype, {case_.rows.sequences.size(), case_.rows.counts[0], of, dim});
    };
    step.queries = vectors(case_.queries, case_.queryHeads, keyDim);
    step.keys = vectors(case_.keys, heads, keyDim);
    step.values = vectors(case_.keys, heads, valueDim);
    return step;
  }
  HeadsView flat(const HeadsView& view) const {
    if (!case_.hasAxis) return view;
    const HeadsView::Strides s = view.resolved();
    return REQUIRE(view.tensor.reshaped(REQUIRE(Shape::make({s.totalTokens(), s.heads, s.headDim}))));
  }
  static std::vector<std::vector<std::byte>> sources(const CacheStep& step) {
    return {bytesOf(step.queries.tensor), bytesOf(step.keys.tensor), bytesOf(step.values.tensor)};
  }

  Tensor tensorOf(const std::vector<int32_t>& numbers, Numbers kind, uint64_t axes) const {
    std::vector<uint64_t> shape{numbers.size() / axes};
    if (axes != 1) shape.insert(shape.begin(), axes);
    const Tensor tensor = zeros(kind == Numbers::u32 ? DType::u32 : DType::i32, std::move(shape));
    REQUIRE(tensor.write(rawBytes(numbers)));
    return tensor;
  }
  // Sets positions and offsets, and returns their sum for each axis and token.
  std::vector<int32_t> setPositions(RotaryStep& rotary) {
    constexpr int32_t kFirst = 70'000;
    std::vector<int32_t> positions, offsets, ofTokens;
    std::map<uint32_t, uint64_t> next;
    for (size_t i = 0; i < case_.rows.sequences.size(); ++i) {
      uint64_t& position = next.try_emplace(case_.rows.sequences[i], case_.before).first->second;
      offsets.push_back(static_cast<int32_t>(random_.below(90)) - (case_.offsets == Numbers::u32 ? 0 : 40));
      for (uint64_t row = 0; row < case_.rows.counts[i]; ++row) {
        positions.push_back(case_.positions == Numbers::first ? kFirst + static_cast<int32_t>(row)
                                                              : static_cast<int32_t>(position));
        ++position;
        ofTokens.push_back(case_.offsets == Numbers::none ? 0 : offsets.back());
      }
    }
    const bool areGiven = case_.positions != Numbers::none && case_.positions != Numbers::first;
    if (areGiven) {
      positions.resize(case_.axes * case_.rows.total());
      for (int32_t& position : positions) position = static_cast<int32_t>(100 + random_.below(100'000));
    }
    if (case_.positions == Numbers::first) rotary.positions = RotaryPositions(kFirst);
    if (case_.positions == Numbers::list) rotary.positions = RotaryPositions(positions, case_.axes);
    if (areGiven && case_.positions != Numbers::list) {
      rotary.positions = RotaryPositions(tensorOf(positions, case_.positions, case_.axes));
    }
    if (case_.offsets == Numbers::list) rotary.offsets = RotaryOffsets(offsets);
    if (case_.offsets == Numbers::i32 || case_.offsets == Numbers::u32) {
      rotary.offsets = RotaryOffsets(tensorOf(offsets, case_.offsets, 1));
    }
    for (size_t i = 0; i < positions.size(); ++i) positions[i] += ofTokens[i % ofTokens.size()];
    return positions;
  }

  std::shared_ptr<Device> device_;
  const RotaryCase& case_;
  Seeded& random_;
};

// Runs cases on every device. `draw` returns what a case reaches.
template <typename Draw>
std::set<std::string> runDrawn(uint64_t stream, uint64_t count, Draw draw) {
  std::set<std::string> reached;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (uint64_t i = 0; i < count; ++i) {
      Seeded random(stream++);
      RotaryCase c;
      reached.insert(draw(c, device, random));
      const Context context(c.text());
      RotaryCall(device, c, random).run();
    }
  });
  return reached;
}

}  // namespace

TEST(AttentionCacheRotary, EveryStorageMatchesSeparateCalls) {
  const auto reached = runDrawn(1000, 100, [](RotaryCase& c, const std::shared_ptr<Device>& device, Seeded& random) {
    c.cache.headDim = oneOf(random, {64u, 80u, 96u, 112u, 128u, 192u, 256u});
    drawStorage(c, device, random);
    drawOperands(c, random);
    c.rows.counts = {oneOf(random, {1u, 5u})};
    if (c.cache.headDim <= 96 && coin(random, 1, 8)) c.rows.counts = {36};
    c.embedding = partial(coin(random, 1, 2) ? 48 : 22, RotaryEmbedding::Pairing::halfOfRopeDim);
    const auto codec = c.cache.quantized ? c.cache.quantized->codec : KVCodec::Name::turbo;
    return fmt::format("{} {}", c.storage, codec == KVCodec::Name::turbo ? name(c.cache.dtype) : "of mlx");
  });
  EXPECT_EQ(reached.size(), 4 * 3u + 3);
}

TEST(AttentionCacheRotary, EveryRotationMatchesMultiRoPE) {
  const auto reached = runDrawn(2000, 120, [](RotaryCase& c, const std::shared_ptr<Device>& device, Seeded& random) {
    c.cache.headDim = oneOf(random, {64u, 64u, 128u, 256u});
    drawStorage(c, device, random);
    c.rows.counts = {oneOf(random, {2u, 5u})};
    drawRotation(c, random);
    const bool isQuantized = c.storage.starts_with("quantized") && !c.storage.starts_with("quantized values");
    return fmt::format("{}, {}", c.rotation, isQuantized ? "codes" : "elements");
  });
  EXPECT_EQ(reached.size(), 2 * rotations().size());
}

TEST(AttentionCacheRotary, ViewsRingsAndListsMatchSeparateCalls) {
  const auto reached = runDrawn(3000, 100, [](RotaryCase& c, const std::shared_ptr<Device>& device, Seeded& random) {
    drawStorage(c, device, random);
    drawRows(c, random);
    drawOperands(c, random);
    drawRotation(c, random);
    drawOptions(c, random);
    const bool isRing = c.cache.whenFull == KVWrap::ring;
    return fmt::format("{}, {} in {}",
                       c.rows.sequences.size() == 1 ? "a sequence"
                       : c.hasAxis                  ? "an axis"
                                                    : "a list",
                       c.isFused ? "columns" : "tensors", isRing ? "a ring" : "linear slots");
  });
  EXPECT_EQ(reached.size(), (3 * 2 - 1) * 2u);  // an axis has no columns
}

// A list with more rows than one dispatch holds takes two dispatches, or one for each sequence.
TEST(AttentionCacheRotary, ListsWithManyRowsAreSplit) {
  const auto device = devicesUnderTest().front().device;
  for (const auto& [positions, dispatches] : {std::pair(Numbers::i32, 2 + 65), std::pair(Numbers::none, 2 * 66)}) {
    for (const bool isQuantized : {false, true}) {
      RotaryCase c{.queries = DType::f32, .keys = DType::f32, .positions = positions};
      c.cache = attendedDescriptor(600);
      if (isQuantized) c.cache.quantized = KVQuantizedStorage{.keyBits = 6, .valueBits = 6};
      c.rows = {{2, 0}, {515, 515}};
      c.hasAxis = true;
      c.options.window = 2;
      c.dispatches = static_cast<uint64_t>(dispatches);
      Seeded random;
      const Context context(c.text());
      RotaryCall(device, c, random).run();
    }
  }
}

TEST(AttentionCacheRotary, RefusesMismatchesBeforeEncoding) {
  const auto device = devicesUnderTest().front().device;
  AttentionCache cache = makeCache(device, {.kvHeads = 2, .headDim = 64, .capacity = 40, .dtype = DType::f32});
  const auto tensor = [&](DType dtype, std::vector<uint64_t> shape) {
    return REQUIRE(Tensor::zeros(device, dtype, REQUIRE(Shape::make(shape))));
  };
  const CacheStep sound{.queries = tensor(DType::f32, {2, 4, 64}),
                        .keys = tensor(DType::f32, {2, 2, 64}),
                        .values = tensor(DType::f32, {2, 2, 64}),
                        .rotary = RotaryStep{},
                        .results = {.output = tensor(DType::f32, {2, 4, 64})},
                        .sequences = {0}};
  CommandEncoder encoder(device);
  RefusedCalls no;
  const auto refused = [&](const std::function<void(CacheStep&)>& change) {
    CacheStep step = sound;
    change(step);
    no(cache.appendAndAttend(encoder, step));
  };
  const auto numbersOver = [&](const Tensor& memory) {
    return REQUIRE(Tensor::over(memory.buffer(), DType::i32, REQUIRE(Shape::make({2})), memory.byteOffset()));
  };
  refused([](CacheStep& step) { step.rotary->embedding.ropeDim = 3; });
  refused([](CacheStep& step) { step.rotary->positions = RotaryPositions(std::vector<int32_t>{1, 2, 3}); });
  refused([](CacheStep& step) { step.rotary->offsets = std::vector<int32_t>{1, 2}; });
  refused([&](CacheStep& step) { step.rotary->positions = RotaryPositions(numbersOver(*step.results.output)); });
  refused([&](CacheStep& step) { step.rotary->positions = RotaryPositions(numbersOver(cache.view().keys)); });
  refused([&](CacheStep& step) {
    step.queries =
        HeadsView(*cache.view().values, {.tokens = 2, .heads = 4, .headDim = 64, .tokenStride = 256, .headStride = 64});
  });
  refused([&](CacheStep& step) { step.keys = tensor(DType::f32, {2, 2, 32}); });
  refused([&](CacheStep& step) { step.values = tensor(DType::f32, {2, 2, 32}); });
  refused([&](CacheStep& step) { step.results.output = tensor(DType::f32, {2, 4, 32}); });
  refused([&](CacheStep& step) { step.queries = tensor(DType::f32, {2, 3, 64}); });
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  EXPECT_EQ(*cache.nextPosition(0), 0u);
  REQUIRE(cache.appendAndAttend(encoder, sound));
  EXPECT_EQ(encoder.summary().total.dispatches, 2u);
  EXPECT_EQ(encoder.summary().kinds.at("RotaryAppend").dispatches, 1u);
}

}  // namespace mnk::test
