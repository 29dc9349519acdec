// Compares runs of a recorded step with freshly encoded steps: results and caches are bit-identical.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "Harness/EveryDevice.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Runtime/RepeatedOp.hpp"
#include "Support/Errors.hpp"

namespace mnk::test {

namespace {

struct Case {
  std::string name;
  AttentionCacheDescriptor cache;
  bool isFused = false;       // rotates, appends and attends in one call
  bool hasPositions = false;  // the step has positions, which are those that it would have without them
  std::vector<uint32_t> sequences{1};
  std::optional<std::vector<uint32_t>> rowCounts{};  // if missing, one token for each sequence
};

constexpr uint32_t kLayers = 2, kHeads = 4, kKVHeads = 2, kHeadDim = 32;

AttentionCacheDescriptor ring(uint32_t capacity, uint32_t pinned = 0, std::optional<KVQuantizedPlanes> quantized = {}) {
  AttentionCacheDescriptor descriptor{.kvHeads = kKVHeads,
                                      .headDim = kHeadDim,
                                      .capacity = capacity,
                                      .sequences = 2,
                                      .whenFull = KVWrap::ring,
                                      .pinned = pinned};
  if (quantized) descriptor.quantized = KVQuantizedStorage{.planes = *quantized};
  return descriptor;
}

std::vector<Case> cases() {
  using enum KVQuantizedPlanes;
  return {{"codes of keys", ring(24, 4, keys)},
          {"codes of values", ring(1024, 0, values)},
          {"codes of keys in one call", ring(1024, 0, keys), true},
          {"codes of values in one call", ring(24, 0, values), true},
          {"dense", ring(1024)},
          {"quantized", ring(1024, 0, both)},
          {"a ring that wraps, with pinned tokens", ring(24, 4)},
          {"in one call", ring(1024), true},
          {"in one call, quantized, a ring that wraps", ring(24, 0, both), true},
          {"in one call, from a number on", ring(24), true, true},
          {"two sequences", ring(24), false, false, {0, 1}},
          {"two sequences in one call", ring(24), true, true, {1, 0}},
          {"uneven sequences in one call", ring(24), true, true, {1, 0}, {{2, 1}}}};
}

struct Layers {
  struct Layer {
    AttentionCache cache;
    Tensor queries, keys, values, results;
  };
  std::shared_ptr<Device> device;
  const Case& of;
  std::vector<uint32_t> rows;  // of each sequence
  std::vector<Layer> all;

  Layers(std::shared_ptr<Device> on, const Case& given)
      : device(std::move(on)), of(given), rows(of.rowCounts.value_or(std::vector(of.sequences.size(), 1u))) {
    const uint64_t tokens = std::accumulate(rows.begin(), rows.end(), 0u);
    for (uint32_t i = 0; i < kLayers; ++i) {
      all.push_back({REQUIRE(AttentionCache::make(device, of.cache)), zeros(tokens, kHeads), zeros(tokens, kKVHeads),
                     zeros(tokens, kKVHeads), zeros(tokens, kHeads)});
    }
  }
  Tensor zeros(uint64_t tokens, uint64_t heads) const {
    return REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({tokens, heads, kHeadDim}))));
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
      for (const uint32_t sequence : of.sequences) {
        const uint64_t next = *layer.cache.nextPosition(sequence);
        if (next >= position) continue;
        const Tensor skipped = zeros(position - next, kKVHeads);
        fill(skipped, random);
        REQUIRE(CommandEncoder::run(
            device, [&](CommandEncoder& encoder) { return layer.cache.append(encoder, skipped, skipped, sequence); }));
      }
    }
  }

  // A recording follows the cache; a fresh step lists the same positions.
  RotaryPositions positions(const Layer& layer, bool isRecorded) const {
    if (isRecorded) return layer.cache.nextPositions(of.sequences, of.rowCounts);
    std::vector<int32_t> numbers;
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint64_t next = *layer.cache.nextPosition(of.sequences[i]);
      for (uint32_t row = 0; row < rows[i]; ++row) numbers.push_back(static_cast<int32_t>(next + row));
    }
    return numbers;
  }

  Result<void> encode(CommandEncoder& encoder, bool isRecorded) {
    for (Layer& layer : all) {
      CacheStep step{.queries = layer.queries,
                     .results = {.output = layer.results},
                     .options = {.scale = of.sequences.size() == 1 ? 0.5f : 0},
                     .sequences = of.sequences,
                     .rowCounts = of.rowCounts};
      if (of.isFused) {
        step.keys = layer.keys, step.values = layer.values, step.rotary = RotaryStep{};
        if (of.hasPositions) step.rotary->positions = positions(layer, isRecorded);
        MNK_TRY(layer.cache.appendAndAttend(encoder, step));
      } else {
        MNK_TRY(encoder.encode(MultiRoPE{
            .queries = layer.queries, .keys = HeadsView(layer.keys), .positions = positions(layer, isRecorded)}));
        MNK_TRY(layer.cache.append(encoder, {.keys = layer.keys, .values = layer.values, .sequences = of.sequences}));
        MNK_TRY(layer.cache.attend(encoder, step));
      }
    }
    return {};
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
  uint64_t dispatches = 0, barriers = 0;
  std::vector<std::byte> results = {};  // of all layers

  StepOutcome(const Completion& done, const Layers& layers)
      : dispatches(done.summary().total.dispatches), barriers(done.summary().barriers) {
    for (const Layers::Layer& layer : layers.all) {
      const auto bytes = tensorBytes(layer.results);
      results.insert(results.end(), bytes.begin(), bytes.end());
    }
  }
  bool operator==(const StepOutcome&) const = default;
};

// Runs all steps first, then encodes each again on a device without known plans. Each step is a token at one of these
// positions, or at the next position if a sequence is already past it.
void expectReplay(const std::shared_ptr<Device>& device, const Case& one, const std::vector<uint64_t>& positions) {
  Layers replayed(device, one), fresh(device, one);
  const RecordedStep step =
      REQUIRE(RecordedStep::record(device, [&](CommandEncoder& encoder) { return replayed.encode(encoder, true); }));
  std::vector<StepOutcome> outcomes;
  for (uint64_t token = 0; token < positions.size(); ++token) {
    replayed.fill(token, positions[token]);
    outcomes.emplace_back(REQUIRE(step.run()), replayed);
  }
  for (uint64_t token = 0; token < positions.size(); ++token) {
    const Context context(fmt::format("token {}", token));
    fresh.fill(token, positions[token]);
    device->planCache().clear();
    CommandEncoder encoder(device);
    REQUIRE(fresh.encode(encoder, false));
    if (token == 0) EXPECT_EQ(step.summary().text(), encoder.summary().text());
    EXPECT(outcomes[token] == StepOutcome(REQUIRE(encoder.commit()), fresh));
  }
  expectSameCaches(replayed, fresh);
}

}  // namespace

// Crosses the end of a ring of 24 and of a block of keys; larger rings also reach the length at which GPUs split the
// keys. On the first device, it crosses the ends of both rings repeatedly. MNK_TEST_FULL=1 runs 10,000 tokens of each,
// the length of a long answer.
TEST(RecordedStepReplay, EqualsFreshEncodingBitForBit) {
  std::vector<uint64_t> many;
  for (const uint64_t border : {0, 32, 64, 128, 256, 1024, 2048}) {
    for (const uint64_t position : {border - std::min<uint64_t>(border, 1), border, border + 1}) {
      many.push_back(position);
    }
  }
  if (std::getenv("MNK_TEST_FULL")) many.assign(10000, 0);
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const Case& one : cases()) {
      const Context context(one.name);
      const bool isSmall = one.cache.capacity == 24;
      using Positions = std::vector<uint64_t>;
      expectReplay(device, one, isSmall ? Positions{0, 1, 23, 24, 25, 32} : Positions{0, 1, 31, 32, 127, 128});
      if (device == devicesUnderTest().front().device) expectReplay(device, one, many);
    }
  });
}

}  // namespace mnk::test
