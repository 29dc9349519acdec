// Preparing a device for caches of every storage: later steps compile nothing, and latent and mixed caches are measured
// as others are.
#include <tuple>

#include "Cache/CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Prepare/PrepareFixture.hpp"

namespace mnk::test {

namespace {

constexpr uint32_t kLatent = 512, kRest = 64;

struct Stored {
  std::string name;
  bool isLatent = false;
  std::optional<KVQuantizedPlanes> planes = {};  // that hold codes

  AttentionCache on(const std::shared_ptr<Device>& device, uint32_t capacity, uint32_t heads = kPreparedHeads,
                    uint32_t sequences = 1) const {
    AttentionCacheDescriptor descriptor{
        .kvHeads = heads, .headDim = kPreparedDim, .capacity = capacity, .sequences = sequences, .dtype = DType::f16};
    if (planes) descriptor.quantized = KVQuantizedStorage{.planes = *planes};
    if (isLatent) descriptor.kvHeads = 1, descriptor.headDim = kRest, descriptor.latentDim = kLatent;
    return REQUIRE(AttentionCache::make(device, descriptor));
  }
};
const Stored kStored[] = {{"f16"},
                          {"turbo4:4", false, KVQuantizedPlanes::both},
                          {"f16:turbo4", false, KVQuantizedPlanes::values},
                          {"turbo4:f16", false, KVQuantizedPlanes::keys},
                          {"f16", true},
                          {"turbo4:4", true, KVQuantizedPlanes::both},
                          {"f16:turbo4", true, KVQuantizedPlanes::values},
                          {"turbo4:f16", true, KVQuantizedPlanes::keys}};

std::string storedName(const Stored& stored) {
  return stored.name + (stored.isLatent ? ", latent" : "");
}

AttentionOptions optionsFor(const AttentionCache& cache) {
  return {.scale = cache.descriptor().latentDim != 0 ? 0.125f : 0};
}

// The search doubles and halves splits: three tiles of rows of a latent cache start from another power of two.
DeviceProfile coresFor(const Stored& stored) {
  return {.family = "timed", .cores = stored.isLatent ? 48u : 32u};
}

// Each kernel that such a cache has, with more and with fewer splits and simdgroups than the table.
std::vector<FlashDecodeChoice> fastestOf(const Stored& stored) {
  std::vector<FlashDecodeChoice> choices = {{.simdgroups = 4, .splits = 8},
                                            {.simdgroups = 2, .splits = 32, .mergesInKernel = true}};
  for (const auto& [simdgroups, splits] : {std::pair(4u, 32u), std::pair(8u, 4u), std::pair(12u, 8u)}) {
    if (stored.isLatent) {
      choices.push_back(
          {.usesPrefill = true, .rowsPerTile = 8, .tileKeys = 16, .simdgroups = simdgroups, .splits = splits});
    }
  }
  return choices;
}

}  // namespace

TEST(PrepareStorage, FindsTheFastestChoice) {
  for (const Stored& stored : kStored) {
    for (const FlashDecodeChoice& fastest : fastestOf(stored)) {
      const Context context(fmt::format("{}, {}", storedName(stored), fastest.text()));
      TimedDevice timed(coresFor(stored));
      timed.seconds = fastestAt(fastest);
      const AttentionCache cache = stored.on(timed.device, 4096);
      const FlashDecode op = attentionOver(cache, timed.device, 16 * kPreparedHeads, 4096);
      const MeasuredFlashDecode found = REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10));
      EXPECT_EQ(found.fastest.text(), fastest.text());
      EXPECT_EQ(found.planned.text(), choiceFor(op, *timed.device).text());
      EXPECT_EQ(found.workload.storage, stored.name);
      EXPECT(found.candidates <= 40);
    }
  }
}

// A measured choice serves prompts of up to the next power of two.
TEST(PrepareStorage, PromptsAreMeasured) {
  TimedDevice timed;
  const FlashDecodeChoice fastest{.usesPrefill = true, .rowsPerTile = 8, .tileKeys = 32, .simdgroups = 4, .splits = 1};
  timed.seconds = fastestAt(fastest);
  const AttentionCache cache = kStored[0].on(timed.device, 4096);
  const auto choiceOf = [&](uint64_t rows) {
    return choiceFor(attentionOver(cache, timed.device, 128, 4096, rows), *timed.device).text();
  };
  const std::string planned = choiceOf(60);
  EXPECT(planned != fastest.text());
  (void)REQUIRE(prepare(timed.device, {.caches = {cache},
                                       .queryHeads = 128,
                                       .rows = 50,
                                       .dtype = DType::f16,
                                       .options = optionsFor(cache),
                                       .tuning = Tuning::measure}));
  for (const uint64_t rows : {33, 50, 64}) EXPECT_EQ(choiceOf(rows), fastest.text());
  EXPECT(choiceOf(65) != fastest.text());
}

// Simdgroups that share rows stay together, however few threads a pipeline allows.
TEST(PrepareStorage, TriesNoMoreSimdgroupsThanAPipelineAllows) {
  for (const auto& [maxThreads, most] : {std::pair(320u, 8u), std::pair(250u, 4u)}) {
    TimedDevice timed;
    (void)timed.device->probe();
    const AttentionCache cache = kStored[4].on(timed.device, 4096);
    const FlashDecode op = attentionOver(cache, timed.device, 128, 4096);
    const FlashDecodeChoice planned = choiceFor(op, *timed.device);
    EXPECT(planned.usesPrefill && planned.simdgroups == 12);
    timed.device->describe("flashPrefill_latent_f16_2_16", {.maxThreads = maxThreads});
    timed.seconds = [most = most](const FlashDecodeChoice& choice) {
      EXPECT(!choice.usesPrefill || (choice.simdgroups <= most && choice.simdgroups % 4 == 0));
      return choice.usesPrefill ? 1e-5 / choice.simdgroups : 1e-5;
    };
    const MeasuredFlashDecode found = REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10));
    EXPECT(found.fastest.usesPrefill);
    EXPECT_EQ(found.fastest.simdgroups, most);
  }
}

TEST(PrepareStorage, PlansFollowWhatWasMeasured) {
  const CacheFolder folder;
  for (const Stored& stored : kStored) {
    for (const FlashDecodeChoice& fastest : fastestOf(stored)) {
      const Context context(fmt::format("{}, {}", storedName(stored), fastest.text()));
      const std::string file = folder.path(storedName(stored) + fastest.text());
      TimedDevice timed(coresFor(stored));
      timed.seconds = fastestAt(fastest);
      const AttentionCache cache = stored.on(timed.device, 4096);
      const FlashDecode op = attentionOver(cache, timed.device, 128, 4096),
                        prompt = attentionOver(cache, timed.device, 128, 4096, 9);
      FlashDecode byVectors = op;
      byVectors.options.kernel = AttentionOptions::Kernel::vector;
      const FlashDecodeChoice ofVectors = choiceFor(byVectors, *timed.device);
      Preparation preparation{.caches = {cache},
                              .queryHeads = 128,
                              .rows = 9,
                              .dtype = DType::f16,
                              .options = optionsFor(cache),
                              .tuning = Tuning::measure,
                              .tuningFile = file};
      EXPECT_EQ(REQUIRE(prepare(timed.device, preparation)).measured, 9u);  // 3 numbers of keys for 1, 8 and 9 rows
      EXPECT_EQ(choiceFor(op, *timed.device).text(), fastest.text());
      if (fastest.usesPrefill) EXPECT(choiceFor(byVectors, *timed.device) == ofVectors);
      EXPECT(choiceFor(prompt, *timed.device).usesPrefill);
      // A later process reads the file.
      TimedDevice later(coresFor(stored));
      preparation.caches = {stored.on(later.device, 4096)};
      EXPECT_EQ(REQUIRE(prepare(later.device, preparation)).measured, 0u);
      EXPECT_EQ(choiceFor(attentionOver(preparation.caches[0], later.device, 128, 4096), *later.device).text(),
                fastest.text());
    }
  }
}

TEST(PrepareStorage, CompilesForEveryLength) {
  for (const Stored& stored : kStored) {
    const Context context(storedName(stored));
    TimedDevice timed({.family = "timed", .cores = 64});
    const AttentionCache cache = stored.on(timed.device, 4096);
    REQUIRE(
        prepare(timed.device,
                {.caches = {cache}, .queryHeads = 32, .rows = 3, .dtype = DType::f16, .options = optionsFor(cache)}));
    const size_t made = timed.device->registry().pipelineCount();
    for (const uint64_t rows : {1, 3}) {
      FlashDecode op = attentionOver(cache, timed.device, 32, 0, rows);
      for (uint64_t length = 3; length <= 4096; length += 3) {
        op.sequences[0].length = length;
        for (const Dispatch& dispatch : REQUIRE(plan(op, *timed.device)).dispatches) {
          REQUIRE(timed.device->registry().pipeline(dispatch.kernel));
        }
      }
    }
    EXPECT_EQ(timed.device->registry().pipelineCount(), made);
  }
}

TEST(PrepareStorage, StepsThatWerePreparedCompileNothing) {
  constexpr uint64_t kFewHeads = 2, kQueryHeads = 8;  // kernels run, and each head takes its time
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const Stored& stored : kStored) {
      const Context context(storedName(stored));
      device->registry().clear();
      AttentionCache cache = stored.on(device, 512, kFewHeads, 2);
      const AttentionCacheDescriptor d = cache.descriptor();
      const RotaryEmbedding rotary{.base = 5e5};
      const AttentionOptions options = optionsFor(cache);
      const PreparationSummary summary = REQUIRE(prepare(device, {.caches = {cache},
                                                                  .queryHeads = kQueryHeads,
                                                                  .rows = 3,
                                                                  .dtype = DType::f16,
                                                                  .options = options,
                                                                  .rotary = rotary}));
      EXPECT(summary.kernels >= 3);
      EXPECT_EQ(summary.measured, 0u);
      const size_t made = device->registry().pipelineCount();
      EXPECT(made >= summary.kernels);
      const auto tensor = [&](std::vector<uint64_t> shape) {
        return REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make(shape))));
      };
      using Numbers = std::vector<uint32_t>;
      const auto step = [&](uint64_t tokens, const Numbers& sequences, const std::optional<Numbers>& counts = {}) {
        const Tensor queries = tensor({tokens, kQueryHeads, d.latentDim + d.headDim});
        const Tensor keys = tensor({tokens, d.kvHeads, d.headDim}),
                     values = tensor({tokens, d.kvHeads, d.valueHeadDim});
        const Tensor into = tensor({tokens, kQueryHeads, d.valueHeadDim});
        HeadsView rotated(queries);  // what is behind the latent part
        if (d.latentDim != 0) {
          HeadsView::Strides strides = rotated.resolved();
          strides.offset = d.latentDim, strides.headDim = d.headDim;
          rotated = HeadsView(queries, strides);
        }
        CommandEncoder encoder(device);
        REQUIRE(encoder.encode(MultiRoPE{.queries = rotated, .keys = HeadsView(keys), .rotary = rotary}));
        REQUIRE(cache.append(encoder, {.keys = keys, .values = values, .sequences = sequences, .rowCounts = counts}));
        REQUIRE(cache.attend(encoder, {.queries = queries,
                                       .results = {.output = into},
                                       .options = options,
                                       .sequences = sequences,
                                       .rowCounts = counts}));
        CacheStep all{.queries = queries, .keys = keys, .values = values, .options = options};
        if (d.latentDim == 0) all.rotary = RotaryStep{rotary};
        all.results.output = into, all.sequences = sequences, all.rowCounts = counts;
        REQUIRE(cache.appendAndAttend(encoder, all));
        REQUIRE(REQUIRE(encoder.commit()).wait());
      };
      for (int i = 0; i < 3; ++i) step(1, {0});
      for (int i = 0; i < (stored.isLatent ? 10 : 40); ++i) step(3, {0});  // rows of 512 take their time
      step(2, {0, 1}), step(4, {0, 1}, Numbers{3, 1});
      EXPECT_EQ(device->registry().pipelineCount(), made);
    }
  });
}

// On a device that really runs: whatever is the fastest there, results are right.
TEST(PrepareStorage, MeasuredChoicesGiveTheSameResults) {
  const CacheFolder folder;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const Stored& stored : {kStored[2], kStored[4], kStored[6]}) {
      const Context context(storedName(stored));
      AttentionCache cache = stored.on(device, 256, 2);
      const AttentionCacheDescriptor& d = cache.descriptor();
      Seeded random(7);
      const auto halves = [&](std::vector<uint64_t> shape) {
        const Shape of = REQUIRE(Shape::make(shape));
        std::vector<_Float16> numbers;
        for (const float x : smallNumbers(random, of.elementCount())) numbers.push_back(static_cast<_Float16>(x / 4));
        const Tensor tensor = REQUIRE(Tensor::zeros(device, DType::f16, of));
        REQUIRE(tensor.write(std::as_bytes(std::span(numbers))));
        return tensor;
      };
      FlashDecode op = attentionOver(cache, device, 4, 256);
      op.queries = halves({1, 1, 4, d.latentDim + d.headDim});
      const Tensor keys = halves({256, d.kvHeads, d.headDim}), values = halves({256, d.kvHeads, d.valueHeadDim});
      REQUIRE(CommandEncoder::run(
          device, [&](CommandEncoder& encoder) { return cache.append(encoder, keys, values, 0); }, "fill"));
      const auto results = [&] {
        REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) { return encoder.encode(op); }));
        std::vector<_Float16> halves(op.results.output->shape().elementCount());
        REQUIRE(op.results.output->read(std::as_writable_bytes(std::span(halves))));
        return halves;
      };
      const auto before = results();
      const PreparationSummary summary =
          REQUIRE(prepare(device, {.caches = {cache},
                                   .queryHeads = 4,
                                   .dtype = DType::f16,
                                   .options = optionsFor(cache),
                                   .tuning = Tuning::measure,
                                   .tuningFile = folder.path(std::string(device->kind()))}));
      EXPECT_EQ(summary.measured + summary.known, 1u);
      const auto after = results();
      for (size_t i = 0; i < before.size(); ++i) EXPECT(std::abs(float{after[i]} - float{before[i]}) <= 2e-3f);
    }
  });
}

}  // namespace mnk::test
