// Preparing a device: each choice can be the fastest one and is then taken, kept and found again; what a call
// refuses.
#include <future>

#include "Cache/CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "Host/HostTestSupport.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Prepare/PrepareFixture.hpp"

namespace mnk::test {

namespace {

const FlashDecodeChoice kFastest[] = {
    {.simdgroups = 4, .splits = 8},
    {.simdgroups = 2, .splits = 64, .mergesInKernel = true},
    {.usesMatrices = true, .rowsPerTile = 8, .tileKeys = 16, .simdgroups = 8, .splits = 4, .mergesInKernel = true},
    {.usesMatrices = true, .rowsPerTile = 8, .tileKeys = 32, .simdgroups = 4, .splits = 16},
    {.usesMatrices = true, .rowsPerTile = 16, .tileKeys = 16, .simdgroups = 2, .splits = 32},
    {.usesMatrices = true, .rowsPerTile = 16, .tileKeys = 32, .simdgroups = 8, .splits = 2, .mergesInKernel = true},
};

}  // namespace

TEST(FlashDecodeTuner, FindsTheFastestChoice) {
  for (const bool isCoded : {false, true}) {
    for (const FlashDecodeChoice& fastest : kFastest) {
      const Context context(fmt::format("{}, {}", isCoded ? "codes" : "f16", fastest.text()));
      TimedDevice timed;
      timed.seconds = fastestAt(fastest);
      const AttentionCache cache = preparedCache(timed.device, 4096, isCoded);
      const FlashDecode op = attentionOver(cache, timed.device, 16 * kPreparedHeads, 4096);
      const MeasuredFlashDecode found = REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10));
      EXPECT_EQ(found.fastest.text(), fastest.text());
      EXPECT_EQ(found.planned.text(), choiceFor(op, *timed.device).text());
      EXPECT(std::abs(found.fastestSeconds - 1e-5) < 1e-9);
      EXPECT(found.plannedSeconds >= found.fastestSeconds);
      EXPECT(found.candidates <= 40);
    }
  }
}

TEST(FlashDecodeTuner, KeepsWhatIsPlannedUnlessAnotherIsClearlyFaster) {
  TimedDevice timed;
  const AttentionCache cache = preparedCache(timed.device);
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
  const AttentionCache cache = preparedCache(timed.device);
  const FlashDecode op = attentionOver(cache, timed.device, 32, 4096);
  EXPECT_EQ(REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 5)).candidates, 1u);
}

TEST(FlashDecodeTuner, TriesNoMoreSimdgroupsThanAPipelineAllows) {
  TimedDevice timed({.family = "timed", .cores = 32}, false);
  const AttentionCache cache = preparedCache(timed.device);
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

TEST(FlashDecodeTuner, WhatTheDeviceLacksIsNoCandidate) {
  TimedDevice timed({.family = "timed", .cores = 32}, false);
  timed.device->shippedFunctions = {};
  timed.seconds = [](const FlashDecodeChoice& choice) {
    EXPECT(!choice.usesMatrices && !choice.mergesInKernel);
    return 1e-5;
  };
  const AttentionCache cache = preparedCache(timed.device);
  const FlashDecode op = attentionOver(cache, timed.device, 32, 4096);
  REQUIRE(measureFlashDecode(timed.device, {&op, 1}, 10));
}

TEST(Prepare, PlansFollowWhatWasMeasured) {
  const CacheFolder folder;
  for (const FlashDecodeChoice& fastest : kFastest) {
    const Context context(fastest.text());
    const std::string file = folder.path(fastest.text());
    TimedDevice timed;
    timed.seconds = fastestAt(fastest);
    const AttentionCache cache = preparedCache(timed.device, 16384);
    const FlashDecode op = attentionOver(cache, timed.device, 128, 16384);
    const FlashDecodeChoice planned = choiceFor(op, *timed.device);
    FlashDecode byVectors = op;
    byVectors.options.kernel = AttentionOptions::Kernel::vector;
    const FlashDecodeChoice plannedByVectors = choiceFor(byVectors, *timed.device);
    const Preparation preparation{
        .caches = {cache}, .queryHeads = 128, .dtype = DType::f16, .tuning = Tuning::measure, .tuningFile = file};
    const PreparationSummary first = REQUIRE(prepare(timed.device, preparation));
    EXPECT_EQ(first.measured, 4u);  // 16384, 4096, 1024 and 256 keys
    EXPECT_EQ(first.known, 0u);
    EXPECT_EQ(first.tuningFile, file);
    EXPECT(!first.notKept);
    EXPECT_EQ(choiceFor(op, *timed.device).text(), fastest.text());
    // What the caller asks for counts.
    FlashDecode own = op;
    own.options = {.splits = 3, .kernel = AttentionOptions::Kernel::vector, .merge = AttentionOptions::Merge::separate};
    const FlashDecodeChoice asked = choiceFor(own, *timed.device);
    EXPECT(!asked.usesMatrices && asked.splits == 3 && !asked.mergesInKernel);
    if (fastest.usesMatrices) EXPECT(choiceFor(byVectors, *timed.device) == plannedByVectors);
    // No split of fewer keys is empty.
    FlashDecode shorter = op;
    shorter.sequences = {{0, 8200}};
    EXPECT_EQ(choiceFor(shorter, *timed.device).splits, fastest.splits == 64   ? 57u
                                                        : fastest.splits == 32 ? 31u
                                                                               : fastest.splits);
    // Nothing is measured again, neither here nor in a later process.
    const uint64_t submissions = timed.submissions;
    EXPECT_EQ(REQUIRE(prepare(timed.device, preparation)).known, 4u);
    EXPECT_EQ(timed.submissions, submissions);
    TimedDevice later;
    const AttentionCache laterCache = preparedCache(later.device, 16384);
    const FlashDecode laterOp = attentionOver(laterCache, later.device, 128, 16384);
    EXPECT_EQ(choiceFor(laterOp, *later.device).text(), planned.text());
    Preparation again = preparation;
    again.caches = {laterCache};
    const PreparationSummary second = REQUIRE(prepare(later.device, again));
    EXPECT_EQ(second.measured, 0u);
    EXPECT_EQ(later.submissions, 0u);
    EXPECT_EQ(choiceFor(laterOp, *later.device).text(), fastest.text());
    // Another device measures for itself.
    TimedDevice other({.family = "timed", .cores = 7});
    again.caches = {preparedCache(other.device, 16384)};
    EXPECT_EQ(REQUIRE(prepare(other.device, again)).measured, 4u);
  }
}

TEST(Prepare, LaterCallsNeedNoFile) {
  const CacheFolder folder;
  TimedDevice timed;
  const Preparation preparation{.caches = {preparedCache(timed.device)},
                                .queryHeads = 32,
                                .tuning = Tuning::measure,
                                .tuningFile = folder.path("tuning")};
  EXPECT_EQ(REQUIRE(prepare(timed.device, preparation)).measured, 3u);
  std::filesystem::remove(folder.path("tuning"));
  EXPECT_EQ(REQUIRE(prepare(timed.device, preparation)).known, 3u);
  EXPECT_EQ(folder.fileCount(), 1u);  // which is written again
}

TEST(Prepare, WhatAFileHoldsIsKept) {
  const CacheFolder folder;
  const std::string file = folder.path("tuning");
  TimedDevice timed, other;
  const auto measured = [&](TimedDevice& on, uint32_t queryHeads) {
    return REQUIRE(prepare(on.device, {.caches = {preparedCache(on.device)},
                                       .queryHeads = queryHeads,
                                       .dtype = DType::f16,
                                       .tuning = Tuning::measure,
                                       .tuningFile = file}))
        .measured;
  };
  EXPECT_EQ(measured(timed, 32), 3u);
  EXPECT_EQ(measured(other, 64), 3u);  // as another process would
  EXPECT_EQ(measured(timed, 64), 0u);
  TimedDevice later;
  EXPECT_EQ(measured(later, 32), 0u);
  EXPECT_EQ(measured(later, 64), 0u);
}

TEST(Prepare, AFileThatIsNoTuningFileIsLeftAlone) {
  const CacheFolder folder;
  const std::string file = folder.path("notes");
  TimedDevice timed;
  const Preparation preparation{
      .caches = {preparedCache(timed.device)}, .queryHeads = 32, .tuning = Tuning::measure, .tuningFile = file};
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
  const AttentionCache cache = preparedCache(timed.device, 512);
  const Tensor mask = REQUIRE(Tensor::zeros(timed.device, DType::f16, REQUIRE(Shape::make({4, 512}))));
  REQUIRE(prepare(timed.device,
                  {.caches = {cache}, .queryHeads = 8, .rows = 4, .dtype = DType::f16, .options = {.mask = mask}}));
}

TEST(Prepare, ATableMeasuresNothingAndLeavesWhatWasMeasured) {
  const CacheFolder folder;
  TimedDevice timed;
  timed.seconds = fastestAt(kFastest[1]);
  const AttentionCache cache = preparedCache(timed.device);
  const FlashDecode op = attentionOver(cache, timed.device, 32, 4096);
  const FlashDecodeChoice planned = choiceFor(op, *timed.device);
  Preparation preparation{
      .caches = {cache}, .queryHeads = 32, .dtype = DType::f16, .tuningFile = folder.path("tuning")};
  EXPECT_EQ(REQUIRE(prepare(timed.device, preparation)).tuningFile, "");
  EXPECT_EQ(timed.submissions, 0u);
  EXPECT_EQ(folder.fileCount(), 0u);
  EXPECT(choiceFor(op, *timed.device) == planned);
  preparation.tuning = Tuning::measure;
  REQUIRE(prepare(timed.device, preparation));
  preparation.tuning = Tuning::table;
  REQUIRE(prepare(timed.device, preparation));
  EXPECT_EQ(choiceFor(op, *timed.device).text(), kFastest[1].text());
}

TEST(Prepare, ChoicesThatCannotBeKeptAreUsed) {
  const CacheFolder folder;
  TimedDevice timed;
  timed.seconds = fastestAt(kFastest[0]);
  const AttentionCache cache = preparedCache(timed.device);
  const PreparationSummary summary = REQUIRE(prepare(timed.device, {.caches = {cache},
                                                                    .queryHeads = 32,
                                                                    .dtype = DType::f16,
                                                                    .tuning = Tuning::measure,
                                                                    .tuningFile = folder.path("missing/tuning")}));
  EXPECT(summary.notKept.has_value());
  EXPECT_EQ(summary.tuningFile, "");
  EXPECT_EQ(choiceFor(attentionOver(cache, timed.device, 32, 4096), *timed.device).text(), kFastest[0].text());
}

// On a device that really runs: whatever is the fastest there, results are right.
TEST(Prepare, MeasuredChoicesGiveTheSameResults) {
  const CacheFolder folder;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    const AttentionCache cache = preparedCache(device, 1024, true);
    const FlashDecode op = attentionOver(cache, device, 32, 1024);
    const auto results = [&] {
      REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) { return encoder.encode(op); }));
      return bytesOf(*op.results.output);
    };
    const auto before = results();
    const PreparationSummary summary =
        REQUIRE(prepare(device, {.caches = {cache},
                                 .queryHeads = 32,
                                 .dtype = DType::f16,
                                 .tuning = Tuning::measure,
                                 .tuningFile = folder.path(std::string(device->kind()))}));
    EXPECT_EQ(summary.measured + summary.known, 2u);
    EXPECT(results() == before);  // an empty cache is all zeros
  });
}

TEST(Prepare, RefusesWhatNoStepCanHave) {
  TimedDevice timed, other;
  const AttentionCache cache = preparedCache(timed.device, 64);
  EXPECT_ERROR(prepare(timed.device, {.caches = {cache}, .rows = 0}),
               {.op = "prepare",
                .what = "the rows do not fit a cache",
                .got = "0 rows",
                .expected = "1 to 64",
                .fix = "Pass the most tokens that a step appends to a sequence."});
  EXPECT_ERROR(prepare(timed.device, {.caches = {cache}, .rows = 65}), {.op = "prepare", .got = "65 rows"});
  EXPECT_ERROR(prepare(nullptr, {.caches = {cache}}), {.op = "prepare",
                                                       .what = "there is no device",
                                                       .got = "a null pointer",
                                                       .expected = "a device",
                                                       .fix = "Pass the device that the caches were made on."});
  EXPECT_ERROR(prepare(timed.device, {.caches = {cache}, .dtype = DType::u8}),
               {.op = "prepare",
                .what = "there are no kernels for tokens of this dtype",
                .got = "u8",
                .expected = "f32, f16 or bf16",
                .fix = "Pass the dtype of queries and keys."});
  EXPECT_ERROR(prepare(other.device, {.caches = {cache}}), {.op = "prepare",
                                                            .what = "a cache is of another device",
                                                            .got = "8 heads of 128",
                                                            .expected = "a cache of Fake",
                                                            .fix = "Prepare each device with its own caches."});
  for (const uint32_t heads : {9u, 1032u, 0xffffffffu}) {
    EXPECT_ERROR(prepare(timed.device, {.caches = {cache}, .queryHeads = heads, .tuning = Tuning::measure}),
                 {.op = "prepare",
                  .what = "the heads of queries do not fit a cache",
                  .got = fmt::format("{} heads", heads),
                  .expected = "a multiple of the cache's 8, at most 128 times",
                  .fix = "Pass the heads of queries of the model."});
  }
  EXPECT_ERROR(prepare(timed.device, {.caches = {cache}, .tuning = static_cast<Tuning>(2)}),
               {.op = "prepare",
                .what = "there is no such tuning",
                .got = "2",
                .expected = "table or measure",
                .fix = "Pass one of the cases of Tuning."});
  EXPECT_ERROR(prepare(timed.device, {.caches = {cache}, .options = {.scale = -1}}), {.op = "prepare"});
  EXPECT_EQ(timed.submissions, 0u);
  EXPECT_EQ(REQUIRE(prepare(timed.device, {})).kernels, 0u);
}

TEST(Prepare, FailuresOfTheDeviceAreItsErrors) {
  const CacheFolder folder;
  for (const FakeDevice::Call call :
       {FakeDevice::Call::makePipeline, FakeDevice::Call::makeBuffer, FakeDevice::Call::commit}) {
    TimedDevice timed;
    const AttentionCache cache = preparedCache(timed.device);
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
  const AttentionCache cache = preparedCache(device, 64);
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
