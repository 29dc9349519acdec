// Preparing a device for caches of every storage: each choice can be the fastest one and is then taken, kept and found
// again; later steps compile nothing; what a call refuses.
#include <future>

#include "Cache/CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/Golden.hpp"
#include "Harness/HeldWork.hpp"
#include "Harness/TimedDevice.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"

namespace mnk::test {

namespace {

constexpr uint32_t kPreparedHeads = 8, kPreparedDim = 128;  // of a cache that is not latent
constexpr uint32_t kLatent = 512, kRest = 64;

struct Stored {
  std::string name;
  bool isLatent = false;
  std::optional<KVQuantizedPlanes> planes = {};  // that hold codes

  AttentionCache on(const std::shared_ptr<Device>& device, uint32_t capacity = 4096, uint32_t heads = kPreparedHeads,
                    uint32_t sequences = 1) const {
    AttentionCacheDescriptor descriptor{
        .kvHeads = heads, .headDim = kPreparedDim, .capacity = capacity, .sequences = sequences, .dtype = DType::f16};
    if (planes) descriptor.quantized = KVQuantizedStorage{.planes = *planes};
    if (isLatent) descriptor.kvHeads = 1, descriptor.headDim = kRest, descriptor.latentDim = kLatent;
    return REQUIRE(AttentionCache::make(device, descriptor));
  }
  std::string text() const { return name + (isLatent ? ", latent" : ""); }
};
const Stored kStored[] = {{"f16"},
                          {"turbo4:4", false, KVQuantizedPlanes::both},
                          {"f16:turbo4", false, KVQuantizedPlanes::values},
                          {"turbo4:f16", false, KVQuantizedPlanes::keys},
                          {"f16", true},
                          {"turbo4:4", true, KVQuantizedPlanes::both},
                          {"f16:turbo4", true, KVQuantizedPlanes::values},
                          {"turbo4:f16", true, KVQuantizedPlanes::keys}};

AttentionCache denseCache(const std::shared_ptr<Device>& device, uint32_t capacity = 4096) {
  return kStored[0].on(device, capacity);
}

AttentionOptions optionsFor(const AttentionCache& cache) {
  return {.scale = cache.descriptor().latentDim != 0 ? 0.125f : 0};
}

FlashDecode attentionOver(const AttentionCache& cache, const std::shared_ptr<Device>& device, uint64_t queryHeads,
                          uint64_t length, uint64_t rows = 1) {
  const AttentionCacheDescriptor& d = cache.descriptor();
  const auto tensor = [&](uint64_t dim) {
    return REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({1, rows, queryHeads, dim}))));
  };
  FlashDecode op{.queries = tensor(d.latentDim + d.headDim),
                 .cache = cache.view(),
                 .sequences = {{0, length}},
                 .results = {.output = tensor(d.valueHeadDim)},
                 .options = optionsFor(cache)};
  if (const auto quantized = cache.quantizedView()) op.cache = *quantized;
  return op;
}

FlashDecodeChoice choiceFor(const FlashDecode& op, Device& device) {
  return TimedDevice::choiceOf(REQUIRE(plan(op, device)).dispatches.front());
}

// The search doubles and halves splits: three tiles of rows of a latent cache start from another power of two.
DeviceProfile coresFor(const Stored& stored) {
  return {.family = "timed", .cores = stored.isLatent ? 48u : 32u};
}

// Each kernel that such a cache has, with more and with fewer splits and simdgroups than the table.
std::vector<FlashDecodeChoice> fastestOf(const Stored& stored) {
  std::vector<FlashDecodeChoice> choices = {{.simdgroups = 4, .splits = 8},
                                            {.simdgroups = 2, .splits = 32, .mergesInKernel = true}};
  if (stored.isLatent) {
    for (const auto& [simdgroups, splits] : {std::pair(4u, 32u), std::pair(8u, 4u), std::pair(12u, 8u)}) {
      choices.push_back(
          {.usesPrefill = true, .rowsPerTile = 8, .tileKeys = 16, .simdgroups = simdgroups, .splits = splits});
    }
  } else if (!stored.planes || stored.planes == KVQuantizedPlanes::both) {
    const FlashDecodeChoice more[] = {
        {.simdgroups = 2, .splits = 64, .mergesInKernel = true},
        {.usesMatrices = true, .rowsPerTile = 8, .tileKeys = 16, .simdgroups = 8, .splits = 4, .mergesInKernel = true},
        {.usesMatrices = true, .rowsPerTile = 8, .tileKeys = 32, .simdgroups = 4, .splits = 16},
        {.usesMatrices = true, .rowsPerTile = 16, .tileKeys = 16, .simdgroups = 2, .splits = 32},
        {.usesMatrices = true, .rowsPerTile = 16, .tileKeys = 32, .simdgroups = 8, .splits = 2, .mergesInKernel = true},
    };
    choices.insert(choices.end(), std::begin(more), std::end(more));
  }
  return choices;
}

template <typename Body>
void forEachFastest(Body body) {
  for (const Stored& stored : kStored) {
    for (const FlashDecodeChoice& fastest : fastestOf(stored)) {
      const Context context(fmt::format("{}, {}", stored.text(), fastest.text()));
      TimedDevice timed(coresFor(stored));
      timed.seconds = fastestAt(fastest);
      body(stored, fastest, timed);
    }
  }
}

Preparation measuring(const AttentionCache& cache, const std::string& file, uint32_t queryHeads = 32,
                      uint32_t rows = 1) {
  return {.caches = {cache},
          .queryHeads = queryHeads,
          .rows = rows,
          .dtype = DType::f16,
          .options = optionsFor(cache),
          .tuning = Tuning::measure,
          .tuningFile = file};
}

}  // namespace

TEST(FlashDecodeTuner, FindsTheFastestChoice) {
  forEachFastest([](const Stored& stored, const FlashDecodeChoice& fastest, const TimedDevice& timed) {
    const AttentionCache cache = stored.on(timed.device);
    const FlashDecode op = attentionOver(cache, timed.device, 16 * kPreparedHeads, 4096);
    const MeasuredFlashDecode found = REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10));
    EXPECT_EQ(found.fastest.text(), fastest.text());
    EXPECT_EQ(found.planned.text(), choiceFor(op, *timed.device).text());
    EXPECT_EQ(found.workload.storage, stored.name);
    EXPECT(std::abs(found.fastestSeconds - 1e-5) < 1e-9);
    EXPECT(found.plannedSeconds >= found.fastestSeconds);
    EXPECT(found.candidates <= 40);
  });
}

TEST(FlashDecodeTuner, KeepsWhatIsPlannedUnlessAnotherIsClearlyFaster) {
  TimedDevice timed;
  const AttentionCache cache = denseCache(timed.device);
  const FlashDecode op = attentionOver(cache, timed.device, 32, 4096);
  const FlashDecodeChoice planned = choiceFor(op, *timed.device);
  timed.seconds = [&](const FlashDecodeChoice& choice) { return choice == planned ? 1e-5 : 0.99e-5; };
  EXPECT(REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10)).fastest == planned);
  timed.seconds = [&](const FlashDecodeChoice& choice) { return choice == planned ? 1e-5 : 0.9e-5; };
  EXPECT(REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10)).fastest != planned);
}

TEST(FlashDecodeTuner, StopsWhenItsTimeIsSpent) {
  TimedDevice timed;
  timed.seconds = [](const FlashDecodeChoice&) { return 1.0; };
  const AttentionCache cache = denseCache(timed.device);
  const FlashDecode op = attentionOver(cache, timed.device, 32, 4096);
  EXPECT_EQ(REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 5)).candidates, 1u);
}

TEST(FlashDecodeTuner, TriesNoMoreSimdgroupsThanAPipelineAllows) {
  TimedDevice timed({.family = "timed", .cores = 32}, false);
  const AttentionCache cache = denseCache(timed.device);
  const FlashDecode op = attentionOver(cache, timed.device, 32, 4096);
  EXPECT_EQ(choiceFor(op, *timed.device).simdgroups, 8u);
  timed.device->describe(REQUIRE(plan(op)).dispatches.front().kernel.function, {.maxThreads = 100});
  timed.seconds = [](const FlashDecodeChoice& choice) {
    EXPECT(choice.simdgroups <= 3);
    return 1e-5 / choice.simdgroups;
  };
  const MeasuredFlashDecode found = REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10));
  EXPECT(found.planned.simdgroups == 3 && found.fastest.simdgroups == 3);
}

// Simdgroups that share rows stay together, however few threads a pipeline allows.
TEST(FlashDecodeTuner, KeepsSimdgroupsThatShareRows) {
  for (const auto& [maxThreads, most] : {std::pair(320u, 8u), std::pair(250u, 4u)}) {
    TimedDevice timed;
    (void)timed.device->probe();
    const AttentionCache cache = kStored[4].on(timed.device);
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

TEST(FlashDecodeTuner, WhatTheDeviceLacksIsNoCandidate) {
  TimedDevice timed({.family = "timed", .cores = 32}, false);
  timed.device->shippedFunctions = {};
  timed.seconds = [](const FlashDecodeChoice& choice) {
    EXPECT(!choice.usesMatrices && !choice.mergesInKernel);
    return 1e-5;
  };
  const AttentionCache cache = denseCache(timed.device);
  const FlashDecode op = attentionOver(cache, timed.device, 32, 4096);
  REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10));
}

TEST(Prepare, PlansFollowWhatWasMeasured) {
  const CacheFolder folder;
  forEachFastest([&](const Stored& stored, const FlashDecodeChoice& fastest, TimedDevice& timed) {
    const std::string file = folder.path(stored.text() + fastest.text());
    const AttentionCache cache = stored.on(timed.device);
    const FlashDecode op = attentionOver(cache, timed.device, 128, 4096);
    const FlashDecodeChoice planned = choiceFor(op, *timed.device);
    FlashDecode byVectors = op;
    byVectors.options.kernel = AttentionOptions::Kernel::vector;
    const FlashDecodeChoice plannedByVectors = choiceFor(byVectors, *timed.device);
    Preparation preparation = measuring(cache, file, 128, 9);
    const PreparationSummary first = REQUIRE(prepare(timed.device, preparation));
    EXPECT_EQ(first.measured, 9u);  // 3 numbers of keys for 1, 8 and 9 rows
    EXPECT_EQ(first.known, 0u);
    EXPECT_EQ(first.tuningFile, file);
    EXPECT(!first.notKept);
    EXPECT_EQ(choiceFor(op, *timed.device).text(), fastest.text());
    EXPECT(choiceFor(attentionOver(cache, timed.device, 128, 4096, 9), *timed.device).usesPrefill);
    // What the caller asks for counts.
    FlashDecode own = op;
    own.options.splits = 3;
    own.options.kernel = AttentionOptions::Kernel::vector;
    own.options.merge = AttentionOptions::Merge::separate;
    const FlashDecodeChoice asked = choiceFor(own, *timed.device);
    EXPECT(!asked.usesMatrices && !asked.usesPrefill && asked.splits == 3 && !asked.mergesInKernel);
    if (fastest.usesMatrices || fastest.usesPrefill) {
      EXPECT(choiceFor(byVectors, *timed.device) == plannedByVectors);
    }
    // No split of fewer keys is empty: each has a multiple of 16 of them.
    FlashDecode shorter = op;
    shorter.sequences = {{0, 2050}};
    const uint32_t keys = (2050 / fastest.splits / 16 + 1) * 16;
    EXPECT_EQ(choiceFor(shorter, *timed.device).splits, (2050 + keys - 1) / keys);
    // Nothing is measured again, neither here nor in a later process.
    const uint64_t submissions = timed.submissions;
    EXPECT_EQ(REQUIRE(prepare(timed.device, preparation)).known, 9u);
    EXPECT_EQ(timed.submissions, submissions);
    TimedDevice later(coresFor(stored)), other({.family = "timed", .cores = 7});
    preparation.caches = {stored.on(later.device)};
    const FlashDecode laterOp = attentionOver(preparation.caches[0], later.device, 128, 4096);
    EXPECT_EQ(choiceFor(laterOp, *later.device).text(), planned.text());
    EXPECT_EQ(REQUIRE(prepare(later.device, preparation)).measured, 0u);
    EXPECT_EQ(later.submissions, 0u);
    EXPECT_EQ(choiceFor(laterOp, *later.device).text(), fastest.text());
    // Another device measures for itself.
    preparation.caches = {stored.on(other.device)};
    EXPECT_EQ(REQUIRE(prepare(other.device, preparation)).measured, 9u);
  });
}

// A measured choice serves prompts of up to the next power of two.
TEST(Prepare, PromptsAreMeasured) {
  TimedDevice timed;
  const FlashDecodeChoice fastest{.usesPrefill = true, .rowsPerTile = 8, .tileKeys = 32, .simdgroups = 4, .splits = 1};
  timed.seconds = fastestAt(fastest);
  const AttentionCache cache = denseCache(timed.device);
  const auto choiceOf = [&](uint64_t rows) {
    return choiceFor(attentionOver(cache, timed.device, 128, 4096, rows), *timed.device).text();
  };
  const std::string planned = choiceOf(60);
  EXPECT(planned != fastest.text());
  REQUIRE(prepare(timed.device, measuring(cache, "", 128, 50)));
  for (const uint64_t rows : {33, 50, 64}) EXPECT_EQ(choiceOf(rows), fastest.text());
  EXPECT(choiceOf(65) != fastest.text());
}

TEST(Prepare, WhatAFileHoldsIsKept) {
  const CacheFolder folder;
  TimedDevice timed, other, later;
  const auto preparing = [&](TimedDevice& on, uint32_t queryHeads) {
    return REQUIRE(prepare(on.device, measuring(denseCache(on.device), folder.path("tuning"), queryHeads)));
  };
  EXPECT_EQ(preparing(timed, 32).measured, 3u);
  EXPECT_EQ(preparing(other, 64).measured, 3u);  // as another process would
  for (const uint32_t queryHeads : {64, 32}) {
    EXPECT_EQ(preparing(timed, queryHeads).measured, 0u);
    EXPECT_EQ(preparing(later, queryHeads).measured, 0u);
  }
  std::filesystem::remove(folder.path("tuning"));
  EXPECT_EQ(preparing(timed, 32).known, 3u);
  EXPECT_EQ(folder.fileCount(), 1u);  // which is written again
}

TEST(Prepare, AFileThatIsNoTuningFileIsLeftAlone) {
  const CacheFolder folder;
  const std::string file = folder.path("notes");
  TimedDevice timed;
  const Preparation preparation = measuring(denseCache(timed.device), file);
  for (const std::string_view text : {"a letter, not a tuning file", "MLX", "\n"}) {
    const auto bytes = std::as_bytes(std::span(text));
    writeFile(file, bytes);
    EXPECT_ERROR(prepare(timed.device, preparation), {.op = "prepare",
                                                      .what = "the file is not a tuning file",
                                                      .got = file,
                                                      .expected = "no file, or one that prepare wrote",
                                                      .fix = "Pass another path, or delete the file."});
    EXPECT(std::ranges::equal(readFile(file), bytes));
  }
  // An empty file holds nothing to lose, and a damaged or older tuning file is measured again.
  for (const std::string_view text : {"", "MLXNativeKernels tuning 0\n"}) {
    writeFile(file, std::as_bytes(std::span(text)));
    EXPECT_EQ(REQUIRE(prepare(timed.device, preparation)).tuningFile, file);
  }
  // What cannot be opened may be anything, such as a link to itself.
  std::filesystem::remove(file);
  std::filesystem::create_symlink(file, file);
  EXPECT_ERROR(prepare(timed.device, preparation), {.op = "prepare"});
  EXPECT(std::filesystem::is_symlink(file));
}

TEST(Prepare, ServesStorageAloneAndMasks) {
  TimedDevice timed;
  const AttentionCache storage =
      REQUIRE(AttentionCache::make(timed.device, {.kvHeads = 1, .headDim = 5, .capacity = 512, .isStorageOnly = true}));
  EXPECT(REQUIRE(prepare(timed.device, {.caches = {storage}, .rotary = RotaryEmbedding{}})).kernels >= 1);
  const AttentionCache cache = denseCache(timed.device, 512);
  const Tensor mask = REQUIRE(Tensor::zeros(timed.device, DType::f16, REQUIRE(Shape::make({4, 512}))));
  REQUIRE(prepare(timed.device,
                  {.caches = {cache}, .queryHeads = 8, .rows = 4, .dtype = DType::f16, .options = {.mask = mask}}));
}

TEST(Prepare, ATableMeasuresNothingAndLeavesWhatWasMeasured) {
  const CacheFolder folder;
  TimedDevice timed;
  const FlashDecodeChoice fastest = fastestOf(kStored[0])[1];
  timed.seconds = fastestAt(fastest);
  const AttentionCache cache = denseCache(timed.device);
  const FlashDecode op = attentionOver(cache, timed.device, 32, 4096);
  const FlashDecodeChoice planned = choiceFor(op, *timed.device);
  Preparation preparation = measuring(cache, folder.path("tuning"));
  preparation.tuning = Tuning::table;
  EXPECT_EQ(REQUIRE(prepare(timed.device, preparation)).tuningFile, "");
  EXPECT_EQ(timed.submissions, 0u);
  EXPECT_EQ(folder.fileCount(), 0u);
  EXPECT(choiceFor(op, *timed.device) == planned);
  preparation.tuning = Tuning::measure;
  REQUIRE(prepare(timed.device, preparation));
  preparation.tuning = Tuning::table;
  REQUIRE(prepare(timed.device, preparation));
  EXPECT_EQ(choiceFor(op, *timed.device).text(), fastest.text());
}

TEST(Prepare, ChoicesThatCannotBeKeptAreUsed) {
  const CacheFolder folder;
  TimedDevice timed;
  const FlashDecodeChoice fastest = fastestOf(kStored[0])[0];
  timed.seconds = fastestAt(fastest);
  const AttentionCache cache = denseCache(timed.device);
  const PreparationSummary summary = REQUIRE(prepare(timed.device, measuring(cache, folder.path("missing/tuning"))));
  EXPECT(summary.notKept.has_value());
  EXPECT_EQ(summary.tuningFile, "");
  EXPECT_EQ(choiceFor(attentionOver(cache, timed.device, 32, 4096), *timed.device).text(), fastest.text());
}

TEST(Prepare, CompilesForEveryLength) {
  for (const Stored& stored : kStored) {
    const Context context(stored.text());
    TimedDevice timed({.family = "timed", .cores = 64});
    const AttentionCache cache = stored.on(timed.device);
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

TEST(Prepare, StepsThatWerePreparedCompileNothing) {
  constexpr uint64_t kFewHeads = 2, kQueryHeads = 8;  // kernels run, and each head takes its time
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const Stored& stored : kStored) {
      const Context context(stored.text());
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
      for (int i = 0; i < 10; ++i) step(3, {0});  // CompilesForEveryLength plans the others
      step(2, {0, 1}), step(4, {0, 1}, Numbers{3, 1});
      EXPECT_EQ(device->registry().pipelineCount(), made);
    }
  });
}

// On a device that really runs: whatever is the fastest there, results are right.
TEST(Prepare, MeasuredChoicesGiveTheSameResults) {
  const CacheFolder folder;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const Stored& stored : {kStored[1], kStored[2], kStored[4], kStored[6]}) {
      const Context context(stored.text());
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
          REQUIRE(prepare(device, measuring(cache, folder.path(std::string(device->kind())), 4)));
      EXPECT_EQ(summary.measured + summary.known, 1u);
      const auto after = results();
      for (size_t i = 0; i < before.size(); ++i) EXPECT(std::abs(float{after[i]} - float{before[i]}) <= 2e-3f);
    }
  });
}

// Kernels for many rows do not depend on how many sequences have them.
TEST(Prepare, TakesMemoryForOneLongPromptAndServesSeveral) {
  constexpr uint32_t kSequences = 32, kRows = 520, kQueryHeads = 4, kDim = 128;
  TimedDevice timed({.family = "timed", .cores = 64});  // splits what one prompt reads
  const AttentionCache cache = REQUIRE(
      AttentionCache::make(timed.device, {.kvHeads = 1, .headDim = kDim, .capacity = 1024, .sequences = kSequences}));
  const uint64_t before = timed.device->bytesMade();
  REQUIRE(prepare(timed.device, {.caches = {cache}, .queryHeads = kQueryHeads, .rows = kRows, .dtype = DType::f16}));
  const uint64_t ofPrompt = uint64_t{kRows} * kQueryHeads * kDim * byteSize(DType::f16);
  EXPECT(timed.device->bytesMade() - before < 12 * ofPrompt);
  const size_t made = timed.device->registry().pipelineCount();
  const Shape shape = REQUIRE(Shape::make({kSequences, kRows, kQueryHeads, kDim}));
  FlashDecode op{.queries = REQUIRE(Tensor::zeros(timed.device, DType::f16, shape)),
                 .cache = cache.view(),
                 .results = {.output = REQUIRE(Tensor::zeros(timed.device, DType::f16, shape))}};
  for (const uint64_t length : {520, 700, 1024}) {
    op.sequences.clear();
    for (uint64_t sequence = 0; sequence < kSequences; ++sequence) op.sequences.push_back({sequence, length});
    const Plan planned = REQUIRE(plan(op, *timed.device));
    EXPECT(planned.dispatches.at(0).kernel.function.starts_with("flashPrefill_"));
    for (const Dispatch& dispatch : planned.dispatches) REQUIRE(timed.device->registry().pipeline(dispatch.kernel));
  }
  EXPECT_EQ(timed.device->registry().pipelineCount(), made);
}

TEST(Prepare, RefusesWhatNoStepCanHave) {
  TimedDevice timed, other;
  const AttentionCache cache = denseCache(timed.device, 64);
  RefusedCalls no;
  no(prepare(timed.device, {.caches = {cache}, .rows = 0}));
  no(prepare(timed.device, {.caches = {cache}, .rows = 65}));
  no(prepare(nullptr, {.caches = {cache}}));
  no(prepare(timed.device, {.caches = {cache}, .dtype = DType::u8}));
  no(prepare(other.device, {.caches = {cache}}));
  for (const uint32_t heads : {9u, 1032u, 0xffffffffu}) {
    no(prepare(timed.device, {.caches = {cache}, .queryHeads = heads, .tuning = Tuning::measure}));
  }
  no(prepare(timed.device, {.caches = {cache}, .tuning = static_cast<Tuning>(2)}));
  no(prepare(timed.device, {.caches = {cache}, .options = {.scale = -1}}));
  EXPECT_EQ(timed.submissions, 0u);
  EXPECT_EQ(REQUIRE(prepare(timed.device, {})).kernels, 0u);
}

TEST(Prepare, FailuresOfTheDeviceAreItsErrors) {
  const CacheFolder folder;
  for (const FakeDevice::Call call :
       {FakeDevice::Call::makePipeline, FakeDevice::Call::makeBuffer, FakeDevice::Call::commit}) {
    TimedDevice timed;
    const AttentionCache cache = denseCache(timed.device);
    (void)timed.device->probe();
    timed.device->failAt(call);
    const Preparation preparation{.caches = {cache}, .tuning = Tuning::measure, .tuningFile = folder.path("tuning")};
    EXPECT_ERROR(prepare(timed.device, preparation), {.code = ErrorCode::deviceFault, .op = "prepare"});
    EXPECT_EQ(folder.fileCount(), 0u);
    EXPECT(!timed.device->profile().measuredTuning);
  }
}

TEST(Prepare, AHandlerOfFinishedWorkCannotWaitForIt) {
  const auto device = hostDevice({});
  const AttentionCache cache = denseCache(device, 64);
  std::promise<Result<PreparationSummary>> answered;
  CommandEncoder encoder(device);
  const auto done = REQUIRE(
      encoder.commit([&](const Result<Summary>&) { answered.set_value(prepare(device, {.caches = {cache}})); }));
  ExpectedError expected = kInHandler;
  expected.fix = "Call prepare on another thread.";
  EXPECT_ERROR(answered.get_future().get(), (expected));
  REQUIRE(done.wait());
}

}  // namespace mnk::test
