// Compares runs of a recorded step with freshly encoded steps: results and caches are bit-identical.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Runtime/RepeatedOp.hpp"

namespace mnk::test {

namespace {

struct Case {
  std::string name;
  AttentionCacheDescriptor cache;
  bool isFused = false;               // rotates, appends and attends in one call
  bool hasPositions = false;          // the step has positions, which are those that it would have without them
  std::vector<uint32_t> sequences{};  // if listed, one token for each
  std::optional<std::vector<uint32_t>> rowCounts{};
};

constexpr uint32_t kLayers = 2, kHeads = 4, kKVHeads = 2, kHeadDim = 32;

AttentionCacheDescriptor ring(uint32_t capacity, uint32_t pinned = 0) {
  return {.kvHeads = kKVHeads,
          .headDim = kHeadDim,
          .capacity = capacity,
          .sequences = 2,
          .whenFull = KVWrap::ring,
          .pinned = pinned};
}
AttentionCacheDescriptor quantized(AttentionCacheDescriptor descriptor) {
  descriptor.quantized.emplace();
  return descriptor;
}

AttentionCacheDescriptor coding(KVQuantizedPlanes planes, AttentionCacheDescriptor descriptor) {
  descriptor = quantized(descriptor);
  descriptor.quantized->planes = planes;
  return descriptor;
}

std::vector<Case> cases() {
  return {
      {.name = "codes of keys", .cache = coding(KVQuantizedPlanes::keys, ring(24, 4))},
      {.name = "codes of values", .cache = coding(KVQuantizedPlanes::values, ring(1024))},
      {.name = "codes of keys in one call", .cache = coding(KVQuantizedPlanes::keys, ring(1024)), .isFused = true},
      {.name = "codes of values in one call", .cache = coding(KVQuantizedPlanes::values, ring(24)), .isFused = true},
      {.name = "dense", .cache = ring(1024)},
      {.name = "quantized", .cache = quantized(ring(1024))},
      {.name = "a ring that wraps, with pinned tokens", .cache = ring(24, 4)},
      {.name = "in one call", .cache = ring(1024), .isFused = true},
      {.name = "in one call, quantized, a ring that wraps", .cache = quantized(ring(24)), .isFused = true},
      {.name = "in one call, from a number on", .cache = ring(24), .isFused = true, .hasPositions = true},
      {.name = "two sequences", .cache = ring(24), .sequences = {0, 1}},
      {.name = "two sequences in one call",
       .cache = ring(24),
       .isFused = true,
       .hasPositions = true,
       .sequences = {1, 0}},
      {.name = "uneven sequences in one call",
       .cache = ring(24),
       .isFused = true,
       .hasPositions = true,
       .sequences = {1, 0},
       .rowCounts = {{2, 1}}}};
}

struct Layers {
  struct Layer {
    AttentionCache cache;
    Tensor queries, keys, values, results;
  };
  std::shared_ptr<Device> device;
  const Case& of;
  uint64_t tokens = 1;
  std::vector<Layer> all;

  Layers(std::shared_ptr<Device> on, const Case& given) : device(std::move(on)), of(given) {
    if (!of.sequences.empty()) tokens = of.sequences.size();
    if (of.rowCounts) tokens = std::accumulate(of.rowCounts->begin(), of.rowCounts->end(), 0u);
    const auto zeros = [&](uint64_t heads) {
      return REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({tokens, heads, kHeadDim}))));
    };
    for (uint32_t i = 0; i < kLayers; ++i) {
      all.push_back({REQUIRE(AttentionCache::make(device, of.cache)), zeros(kHeads), zeros(kKVHeads), zeros(kKVHeads),
                     zeros(kHeads)});
    }
  }

  // Small numbers that differ from token to token.
  static void fill(const Tensor& tensor, Seeded& random) {
    std::vector<uint16_t> halves(tensor.shape().elementCount());
    for (uint16_t& half : halves) half = static_cast<uint16_t>(0x3000 | (random.next() & 0x8fff));
    REQUIRE(tensor.write(std::as_bytes(std::span(halves))));
  }

  // Fills in the next token's inputs. Unrelated tokens first advance the sequences to this position.
  void fill(uint64_t token, uint64_t position) {
    Seeded random(token);
    for (Layer& layer : all) {
      for (const Tensor* tensor : {&layer.queries, &layer.keys, &layer.values}) fill(*tensor, random);
      for (const uint32_t sequence : of.sequences.empty() ? std::vector{1u} : of.sequences) {
        const uint64_t next = *layer.cache.nextPosition(sequence);
        if (next >= position) continue;
        const Tensor skipped =
            REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({position - next, kKVHeads, kHeadDim}))));
        fill(skipped, random);
        REQUIRE(CommandEncoder::run(
            device, [&](CommandEncoder& encoder) { return layer.cache.append(encoder, skipped, skipped, sequence); }));
      }
    }
  }

  Result<void> encode(CommandEncoder& encoder, bool isRecorded) {
    for (Layer& layer : all) {
      if (auto done = of.isFused ? encodeFused(layer, encoder, isRecorded) : encodeCalls(layer, encoder, isRecorded);
          !done) {
        return done;
      }
    }
    return {};
  }

  // A recording follows the cache; a fresh step lists the same positions.
  RotaryPositions positions(const Layer& layer, bool isRecorded) const {
    const std::vector<uint32_t> listed = of.sequences.empty() ? std::vector{1u} : of.sequences;
    if (isRecorded) return layer.cache.nextPositions(listed, of.rowCounts);
    std::vector<int32_t> numbers;
    for (size_t i = 0; i < listed.size(); ++i) {
      const uint64_t next = *layer.cache.nextPosition(listed[i]);
      const uint32_t rows = of.rowCounts ? (*of.rowCounts)[i] : 1;
      for (uint32_t row = 0; row < rows; ++row) numbers.push_back(static_cast<int32_t>(next + row));
    }
    return numbers;
  }

  Result<void> encodeCalls(Layer& layer, CommandEncoder& encoder, bool isRecorded) {
    MultiRoPE rotation{
        .queries = layer.queries, .keys = HeadsView(layer.keys), .positions = positions(layer, isRecorded)};
    if (auto done = encoder.encode(rotation); !done) return done;
    if (of.sequences.empty()) {
      if (auto done = layer.cache.append(encoder, layer.keys, layer.values, 1); !done) return done;
      return layer.cache.attend(encoder, layer.queries, {.output = layer.results}, {.scale = 0.5f}, 1);
    }
    if (auto done =
            layer.cache.append(encoder, {.keys = layer.keys, .values = layer.values, .sequences = of.sequences});
        !done)
      return done;
    return layer.cache.attend(
        encoder, {.queries = layer.queries, .results = {.output = layer.results}, .sequences = of.sequences});
  }

  Result<void> encodeFused(Layer& layer, CommandEncoder& encoder, bool isRecorded) {
    CacheStep step{.queries = layer.queries,
                   .keys = layer.keys,
                   .values = layer.values,
                   .rotary = RotaryStep{},
                   .results = {.output = layer.results},
                   .sequences = of.sequences.empty() ? std::vector<uint32_t>{1} : of.sequences,
                   .rowCounts = of.rowCounts};
    if (of.hasPositions) step.rotary->positions = positions(layer, isRecorded);
    return layer.cache.appendAndAttend(encoder, step);
  }
};

std::vector<std::byte> tensorBytes(const Tensor& tensor) {
  if (!tensor) return {};  // dense storage has no scales
  std::vector<std::byte> bytes(tensor.byteCount());
  REQUIRE(tensor.read(bytes));
  return bytes;
}

void expectSameCaches(const Layers& got, const Layers& expected) {
  for (uint32_t i = 0; i < kLayers; ++i) {
    const AttentionCache &one = got.all[i].cache, &other = expected.all[i].cache;
    for (const uint32_t sequence : {0u, 1u}) EXPECT_EQ(*one.nextPosition(sequence), *other.nextPosition(sequence));
    EXPECT(tensorBytes(one.view().keys) == tensorBytes(other.view().keys));
    EXPECT(tensorBytes(*one.view().values) == tensorBytes(*other.view().values));
    const auto quantized = one.quantizedView(), fresh = other.quantizedView();
    if (!quantized || !fresh) continue;
    EXPECT(tensorBytes(quantized->keys.scales) == tensorBytes(fresh->keys.scales));
    EXPECT(tensorBytes(quantized->values->scales) == tensorBytes(fresh->values->scales));
  }
}

struct StepOutcome {
  Summary::Counts total;
  uint64_t barriers = 0;
  std::vector<std::byte> results;  // of all layers

  bool operator==(const StepOutcome& other) const {
    return total.dispatches == other.total.dispatches && barriers == other.barriers && results == other.results;
  }
};

StepOutcome outcomeOf(const Completion& done, const Layers& layers) {
  StepOutcome outcome{.total = done.summary().total, .barriers = done.summary().barriers, .results = {}};
  for (const Layers::Layer& layer : layers.all) {
    const auto bytes = tensorBytes(layer.results);
    outcome.results.insert(outcome.results.end(), bytes.begin(), bytes.end());
  }
  return outcome;
}

// Runs all steps first, then encodes each again on a device without known plans. Each step is a token at one of these
// positions, or at the next position if a sequence is already past it.
void expectReplay(const std::shared_ptr<Device>& device, const Case& one, const std::vector<uint64_t>& positions) {
  Layers replayed(device, one), fresh(device, one);
  RecordedStep step =
      REQUIRE(RecordedStep::record(device, [&](CommandEncoder& encoder) { return replayed.encode(encoder, true); }));
  std::vector<StepOutcome> outcomes;
  for (uint64_t token = 0; token < positions.size(); ++token) {
    replayed.fill(token, positions[token]);
    outcomes.push_back(outcomeOf(REQUIRE(step.run()), replayed));
  }
  for (uint64_t token = 0; token < positions.size(); ++token) {
    const Context context(fmt::format("token {}", token));
    fresh.fill(token, positions[token]);
    device->planCache().clear();
    CommandEncoder encoder(device);
    REQUIRE(fresh.encode(encoder, false));
    if (token == 0) EXPECT_EQ(step.summary().text(), encoder.summary().text());
    EXPECT(outcomes[token] == outcomeOf(REQUIRE(encoder.commit()), fresh));
  }
  expectSameCaches(replayed, fresh);
}

}  // namespace

// Crosses the end of a ring of 24 and of a block of keys; larger rings also reach the length at which GPUs split the
// keys.
TEST(RecordedStepReplay, EqualsFreshEncodingBitForBit) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const Case& one : cases()) {
      const Context context(one.name);
      std::vector<uint64_t> positions{0, 1, 23, 24, 25, 32};
      if (one.cache.capacity > 24) positions = {0, 1, 31, 32, 127, 128};
      expectReplay(device, one, positions);
    }
  });
}

// Crosses the ends of both rings repeatedly. MNK_TEST_FULL=1 runs 10,000 tokens of each, the length of a long answer.
TEST(RecordedStepReplay, ManyTokensEqualFreshEncoding) {
  std::vector<uint64_t> positions;
  if (std::getenv("MNK_TEST_FULL")) {
    positions.resize(10000);
  } else {
    for (const uint64_t border : {0, 32, 64, 128, 256, 1024, 2048}) {
      for (const uint64_t position : {border - std::min<uint64_t>(border, 1), border, border + 1}) {
        positions.push_back(position);
      }
    }
  }
  const auto device = devicesUnderTest().front().device;
  for (const Case& one : cases()) {
    const Context context(one.name);
    expectReplay(device, one, positions);
  }
}

}  // namespace mnk::test
