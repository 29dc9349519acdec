// FlashDecode and MergePartials through the C API: every field of a descriptor arrives.
#include "CAttentionFixture.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

TEST(CApiFlashDecode, QueriesCachesAndLengthsArrive) {
  AttendFixture fixture;
  EXPECT(areClose(fixture.weights(1, 3), weightsOf(scoresOf(0, 8))));
  EXPECT(areClose(fixture.weights(0, 3), weightsOf(scoresOf(0, 7))));
  fixture.sequence.length = 5;
  EXPECT(areClose(fixture.weights(), weightsOf(scoresOf(0, 5))));
  fixture.sequence.length = 0;
  EXPECT_EQ(fixture.weights(), std::vector<float>(kSlots));
  // As a ring of the same slots, the oldest of which are overwritten: all are seen by the last row, and the one
  // before the newest by the other.
  fixture.view.wrap = MNK_RING;
  fixture.sequence.length = 11;
  EXPECT(areClose(fixture.weights(1), weightsOf(scoresOf(0, 8))));
  auto earlier = scoresOf(0, 8);
  earlier[2] = -INFINITY;
  EXPECT(areClose(fixture.weights(0), weightsOf(earlier)));
  // Two positions stay, and six slots turn: slots 2 to 4 have positions 8 to 10.
  fixture.view.pinned = 2;
  earlier = scoresOf(0, 8);
  earlier[4] = -INFINITY;
  EXPECT(areClose(fixture.weights(0), weightsOf(earlier)));
  fixture.options.window = 2;
  EXPECT(areClose(fixture.weights(1), weightsOf(scoresOf(3, 5))));
  fixture.options.window_sees_pinned = true;
  auto both = scoresOf(0, 5);
  both[2] = -INFINITY;
  EXPECT(areClose(fixture.weights(1), weightsOf(both)));
}

TEST(CApiFlashDecode, TokenMajorCachesAndSequencesArrive) {
  AttendFixture fixture;
  // [sequences, capacity, heads, headDim]: the second sequence has the keys, in reverse.
  std::vector<float> keys(2 * kSlots * 2 * kDim), values(keys.size());
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    for (uint64_t head = 0; head < 2; ++head) {
      const uint64_t at = ((kSlots + slot) * 2 + head) * kDim;
      keys[at] = static_cast<float>(kScores[kSlots - 1 - slot]);
      values[at + kSlots - 1 - slot] = 1;
    }
  }
  const auto cacheKeys = tensorOf(fixture.device.get(), keys, {2, kSlots, 2, kDim});
  const auto cacheValues = tensorOf(fixture.device.get(), values, {2, kSlots, 2, kDim});
  fixture.view.keys = cacheKeys.get(), fixture.view.values = cacheValues.get(), fixture.view.layout = MNK_TOKEN_MAJOR;
  fixture.sequence = {.sequence = 1, .length = 6};
  EXPECT(areClose(fixture.weights(1, 2), weightsOf(scoresOf(2, 8))));

  // Two sequences of one row: [sequences, rows, heads, headDim].
  const uint64_t shape[] = {2, 1, kAttending, kDim};
  const Owned<mnk_tensor> queries(mnk_tensor_make_reshaped(fixture.queries.get(), shape, 4, nullptr),
                                  mnk_tensor_release);
  const Owned<mnk_tensor> out(mnk_tensor_make_reshaped(fixture.out.get(), shape, 4, nullptr), mnk_tensor_release);
  const mnk_attended_sequence both[] = {{.sequence = 0, .length = 8}, {.sequence = 1, .length = 3}};
  fixture.op.queries = queries.get(), fixture.results.into = out.get();
  fixture.op.sequences = both, fixture.op.sequence_count = 2;
  EXPECT(areClose(fixture.weights(1, 3), weightsOf(scoresOf(5, 8))));
  EXPECT_EQ(AttendFixture::weightsIn(fixture.out, 0, 0), std::vector<float>(kSlots));  // its values are zero
}

TEST(CApiFlashDecode, ViewsOfQueriesArrive) {
  AttendFixture fixture;
  // Each query has scores of its own.
  const auto factorOf = [](uint64_t row, uint64_t head) { return 1 + static_cast<float>(2 * head + row) / 4; };
  constexpr uint64_t kBefore = 8, kWidth = kBefore + kAttending * kDim + 4;
  std::vector<float> headMajor(2 * kAttending * kDim), fused(2 * kWidth);
  for (uint64_t row = 0; row < 2; ++row) {
    for (uint64_t head = 0; head < kAttending; ++head) {
      headMajor[(head * 2 + row) * kDim] = fused[row * kWidth + kBefore + head * kDim] = factorOf(row, head);
    }
  }
  const auto expectScores = [&](const mnk_heads_view& view) {
    fixture.op = fixture.sound();
    fixture.op.queries = nullptr, fixture.op.queries_view = &view;
    for (uint64_t head = 0; head < kAttending; ++head) {
      for (uint64_t row = 0; row < 2; ++row) {
        auto scores = scoresOf(0, 7 + row);
        for (double& score : scores) score *= factorOf(row, head);
        EXPECT(areClose(fixture.weights(row, head), weightsOf(scores)));
      }
    }
  };
  const auto separate = tensorOf(fixture.device.get(), headMajor, {kAttending, 2, kDim});
  expectScores({.size = sizeof(mnk_heads_view), .tensor = separate.get(), .layout = MNK_HEAD_MAJOR});
  const auto together = tensorOf(fixture.device.get(), fused, {2, kWidth});
  mnk_heads_view columns{};
  EXPECT(mnk_heads_view_set_columns(&columns, together.get(), kBefore, kAttending, kDim, nullptr));
  expectScores(columns);
}

TEST(CApiFlashDecode, OptionsArrive) {
  AttendFixture fixture;
  fixture.options.scale = 0.5f;
  auto halves = kScores;
  for (double& score : halves) score /= 2;
  EXPECT(areClose(fixture.weights(), weightsOf(halves)));
  fixture.op.options = nullptr;
  auto usual = kScores;
  for (double& score : usual) score /= std::sqrt(double{kDim});
  EXPECT(areClose(fixture.weights(), weightsOf(usual)));
  fixture.op.options = &fixture.options;
  fixture.options.scale = 1;

  fixture.options.window = 3;
  EXPECT(areClose(fixture.weights(1), weightsOf(scoresOf(5, 8))));
  EXPECT(areClose(fixture.weights(0), weightsOf(scoresOf(4, 7))));
  fixture.options.is_bidirectional = true;
  EXPECT(areClose(fixture.weights(0), weightsOf(scoresOf(4, 8))));
  fixture.options.window = 0;
  EXPECT(areClose(fixture.weights(0), weightsOf(scoresOf(0, 8))));
  fixture.options.is_bidirectional = false;

  fixture.options.softcap = 1.25f;
  auto capped = kScores;
  for (double& score : capped) score = 1.25 * std::tanh(score / 1.25);
  EXPECT(areClose(fixture.weights(), weightsOf(capped)));
  fixture.options.softcap = 0;

  for (const uint32_t splits : {1u, 3u}) {
    fixture.options.splits = splits;
    EXPECT(areClose(fixture.weights(), weightsOf(scoresOf(0, 8))));
  }
  for (const auto merge : {MNK_MERGE_TOGETHER, MNK_MERGE_SEPARATE}) {
    if (merge == MNK_MERGE_TOGETHER && !ordersThreadgroups()) continue;
    fixture.options.merge = merge;
    EXPECT(areClose(fixture.weights(), weightsOf(scoresOf(0, 8))));
    EXPECT_EQ(mnk_plan_dispatch_count(fixture.plan(nullptr).get()), merge == MNK_MERGE_SEPARATE ? 2u : 1u);
  }
  for (const auto kernel : {MNK_KERNEL_VECTOR, MNK_KERNEL_AUTOMATIC}) {
    fixture.options.kernel = kernel;
    EXPECT(areClose(fixture.weights(), weightsOf(scoresOf(0, 8))));
  }
}

TEST(CApiFlashDecode, TensorsOfOptionsArrive) {
  AttendFixture fixture;
  std::vector<float> numbers(2 * kSlots);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 5) / 4;
  const auto mask = tensorOf(fixture.device.get(), numbers, {2, kSlots});
  fixture.options.mask = mask.get();
  auto masked = kScores;
  for (uint64_t key = 0; key < kSlots; ++key) masked[key] += numbers[kSlots + key];
  EXPECT(areClose(fixture.weights(), weightsOf(masked)));
  fixture.options.mask = nullptr;

  const auto slopes = tensorOf(fixture.device.get(), {0, 0, 0.5f, 0}, {kAttending});
  fixture.options.slopes = slopes.get();
  auto sloped = kScores;
  for (uint64_t key = 0; key < kSlots; ++key) sloped[key] -= 0.5 * static_cast<double>(7 - key);
  EXPECT(areClose(fixture.weights(1, 2), weightsOf(sloped)));
  EXPECT(areClose(fixture.weights(1, 1), weightsOf(kScores)));
  fixture.options.slopes = nullptr;

  const auto sinks = tensorOf(fixture.device.get(), {0, 3, 0, 0}, {kAttending});
  fixture.options.sinks = sinks.get();
  EXPECT(areClose(fixture.weights(1, 1), weightsOf(kScores, 3)));
  EXPECT(areClose(fixture.weights(1, 0), weightsOf(kScores, 0)));
}

TEST(CApiFlashDecode, PartialsAndLogarithmsArriveAndMerge) {
  AttendFixture fixture;
  const auto sums = makeTensor(fixture.device.get(), MNK_F32, {2, 2, kAttending, kDim});
  const auto stats = makeTensor(fixture.device.get(), MNK_F32, {2, 2, kAttending, 2});
  const auto logs = makeTensor(fixture.device.get(), MNK_F32, {2, kAttending});
  const auto partOf = [](const Owned<mnk_tensor>& all, uint64_t index, uint64_t last) {
    const Owned<mnk_tensor> slice(mnk_tensor_make_slice(all.get(), index, 1, nullptr), mnk_tensor_release);
    const uint64_t shape[] = {2, kAttending, last};
    return Owned<mnk_tensor>(mnk_tensor_make_reshaped(slice.get(), shape, 3, nullptr), mnk_tensor_release);
  };
  // The first part has all keys, the second the last three.
  for (uint64_t part = 0; part < 2; ++part) {
    const auto partSums = partOf(sums, part, kDim), partStats = partOf(stats, part, 2);
    fixture.results = {.size = sizeof fixture.results,
                       .partial_sums = partSums.get(),
                       .partial_stats = partStats.get(),
                       .log_sum_exp = logs.get()};
    fixture.options.window = part == 0 ? 0 : 3;
    runOp(fixture.device.get(), fixture.op, mnk_encoder_flash_decode);
    double sum = 0;
    for (uint64_t key = part == 0 ? 0 : 5; key < kSlots; ++key) sum += std::exp(kScores[key]);
    const auto gotStats = contents<float>(partStats);
    const size_t row = kAttending + 2;  // the newest row, head 2
    EXPECT(std::abs(gotStats[2 * row] - (part == 0 ? 2 : 1.5) / std::log(2)) < 1e-5);
    EXPECT(std::abs(gotStats[2 * row + 1] * std::exp2(gotStats[2 * row]) - sum) < 1e-4);
    EXPECT(std::abs(contents<float>(logs)[row] - std::log(sum)) < 1e-5);
    EXPECT(std::abs(contents<float>(partSums)[row * kDim + 6] / gotStats[2 * row + 1] - std::exp(1.5) / sum) < 1e-5);
  }

  const auto sinks = tensorOf(fixture.device.get(), {0, 0, 2, 0}, {kAttending});
  fixture.results = {.size = sizeof fixture.results, .into = fixture.out.get(), .log_sum_exp = logs.get()};
  mnk_merge_partials merge{};
  merge.size = sizeof merge;
  merge.partial_sums = sums.get(), merge.partial_stats = stats.get(), merge.sinks = sinks.get();
  merge.results = &fixture.results;
  runOp(fixture.device.get(), merge, mnk_encoder_merge_partials);
  // The last three keys count twice, and the sink once.
  double all = std::exp(2.0);
  std::vector<double> expected;
  for (uint64_t key = 0; key < kSlots; ++key) all += expected.emplace_back((key < 5 ? 1 : 2) * std::exp(kScores[key]));
  for (double& weight : expected) weight /= all;
  EXPECT(areClose(AttendFixture::weightsIn(fixture.out, 1, 2), expected));
  Caught caught;
  const Owned<mnk_plan> plan(mnk_merge_partials_make_plan(&merge, caught.out()), mnk_plan_release);
  EXPECT(plan && mnk_plan_dispatch_count(plan.get()) == 1);
}

TEST(CApiFlashDecode, PlansAreForADeviceOrForNone) {
  AttendFixture fixture;
  fixture.options.splits = 4, fixture.options.merge = MNK_MERGE_SEPARATE;
  Caught caught;
  const Owned<mnk_plan> plan(mnk_flash_decode_make_plan(&fixture.op, nullptr, caught.out()), mnk_plan_release);
  const Owned<mnk_plan> here = fixture.plan(caught.out());
  if (!plan || !here) return fail(__FILE__, __LINE__, mnk_error_message(caught.get()));
  EXPECT_EQ(mnk_plan_dispatch_count(plan.get()), 2u);
  EXPECT_EQ(mnk_plan_dispatch_count(here.get()), 2u);
  const uint64_t bytes = mnk_plan_scratch_bytes(here.get());
  EXPECT(bytes > 0);
  const auto scratch = makeTensor(fixture.device.get(), MNK_U8, {bytes});
  fixture.op.scratch = scratch.get();
  EXPECT(areClose(fixture.weights(), weightsOf(kScores)));
  EXPECT(contents<uint8_t>(scratch) != std::vector<uint8_t>(bytes));
  const auto less = makeTensor(fixture.device.get(), MNK_U8, {bytes - 1});
  fixture.op.scratch = less.get();
  EXPECT(!mnk_encoder_flash_decode(makeEncoder(fixture.device.get()).get(), &fixture.op, caught.out()));
  caught.expect({.op = "FlashDecode"});
}

TEST(CApiFlashDecode, QuantizedCachesArrive) {
  AttendFixture fixture;
  QuantizeFixture stored;  // two heads of 32 and 64 elements; keys of 4 bits
  const auto codes = makeTensor(stored.device.get(), MNK_U8, {2, kHeads, kCapacity, kHeadDim});
  const auto scales = makeTensor(stored.device.get(), MNK_F16, {2, kHeads, kCapacity});
  stored.op.values = stored.keys.get();
  stored.op.into.values = QuantizeFixture::plane(8, codes, scales);
  stored.op.sequence = 1;
  stored.run();
  fixture.op.dense = nullptr;
  fixture.op.quantized = &stored.op.into;
  fixture.sequence = {.sequence = 1, .length = 2};
  fixture.options.window = 1;
  runOp(fixture.device.get(), fixture.op, mnk_encoder_flash_decode);
  // A row that sees its own key alone gives it all the weight: what comes out is its value, of 8 bits.
  const auto got = contents<float>(fixture.out);
  for (uint64_t head = 0; head < kAttending; ++head) {
    for (uint64_t e = 0; e < kHeadDim; ++e) {
      const float expected = sizedVectors(kHeadDim)[(kHeads + head / 2) * kHeadDim + e];
      EXPECT(std::abs(got[(kAttending + head) * kDim + e] - expected) < 0.02 * 31 * 4);
    }
  }
}

TEST(CApiFlashDecode, DescriptorsAreChecked) {
  AttendFixture fixture;
  const auto encoder = makeEncoder(fixture.device.get());
  Caught caught;
  const auto refuses = [&](const ExpectedError& expected) {
    EXPECT(!mnk_encoder_flash_decode(encoder.get(), &fixture.op, caught.out()));
    caught.expect(expected);
    EXPECT(!mnk_flash_decode_make_plan(&fixture.op, fixture.device.get(), caught.out()));
    caught.expect(expected);
    fixture.op = fixture.sound();
    fixture.results = {.size = sizeof fixture.results, .into = fixture.out.get()};
    fixture.options = {.size = sizeof fixture.options, .scale = 1};
  };
  EXPECT(!mnk_encoder_flash_decode(nullptr, &fixture.op, caught.out()));
  caught.expect({.op = "C API", .what = "encoder is missing"});
  EXPECT(!mnk_encoder_flash_decode(encoder.get(), nullptr, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_flash_decode is missing"});
  fixture.op.size -= 1;
  refuses({.op = "C API", .what = "mnk_flash_decode has the wrong size"});
  fixture.op.queries = nullptr;
  refuses({.op = "C API", .what = "queries is missing"});
  mnk_heads_view queries{.size = sizeof queries};
  fixture.op.queries_view = &queries;
  refuses({.op = "C API", .what = "queries_view.tensor is missing"});
  queries = {.size = 1, .tensor = fixture.queries.get()};
  fixture.op.queries_view = &queries;
  refuses({.op = "C API", .what = "mnk_heads_view has the wrong size"});
  fixture.op.dense = nullptr;
  refuses({.op = "C API", .what = "attention needs one cache", .got = "neither"});
  mnk_quantized_kv_view quantized{};
  fixture.op.quantized = &quantized;
  refuses({.op = "C API", .what = "attention needs one cache", .got = "a dense and a quantized"});
  fixture.op.dense = nullptr, fixture.op.quantized = &quantized;
  refuses({.op = "C API", .what = "mnk_quantized_kv_view has the wrong size"});
  fixture.view.keys = nullptr;
  refuses({.op = "C API", .what = "dense.keys is missing"});
  fixture.view.keys = fixture.keys.get();
  fixture.op.sequences = nullptr;
  refuses({.op = "C API", .what = "sequences is missing"});
  fixture.op.sequence_count = SIZE_MAX;  // nothing of such a list is read
  refuses({.op = "FlashDecode", .what = "too many sequences", .expected = "at most 1"});
  fixture.op.results = nullptr;
  refuses({.op = "C API", .what = "mnk_attention_results is missing"});
  fixture.results.size = 0;
  refuses({.op = "C API", .what = "mnk_attention_results has the wrong size"});
  fixture.results.partial_sums = fixture.out.get();
  refuses({.op = "C API", .what = "partial_stats is missing"});
  fixture.results.partial_stats = fixture.out.get();
  refuses({.op = "C API", .what = "partial_sums is missing"});
  fixture.options.size = 3;
  refuses({.op = "C API", .what = "mnk_attention_options has the wrong size"});
  fixture.options.kernel = number<mnk_flash_decode_kernel>(3);
  refuses({.op = "C API", .what = "not a kernel of FlashDecode", .got = "3"});
  fixture.options.merge = number<mnk_flash_decode_merge>(3);
  refuses({.op = "C API", .what = "not a way of merging", .got = "3"});
  fixture.sequence.sequence = 1;
  refuses({.op = "FlashDecode"});
  fixture.sequence.sequence = 0;

  mnk_merge_partials merge{};
  EXPECT(!mnk_encoder_merge_partials(encoder.get(), &merge, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_merge_partials has the wrong size"});
  merge.size = sizeof merge;
  EXPECT(!mnk_encoder_merge_partials(encoder.get(), &merge, caught.out()));
  caught.expect({.op = "C API", .what = "partial_sums is missing"});
  merge.partial_sums = fixture.out.get();
  EXPECT(!mnk_merge_partials_make_plan(&merge, caught.out()));
  caught.expect({.op = "C API", .what = "partial_stats is missing"});
  merge.partial_stats = fixture.out.get();
  EXPECT(!mnk_merge_partials_make_plan(&merge, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_attention_results is missing"});
  merge.results = &fixture.results;
  EXPECT(!mnk_merge_partials_make_plan(&merge, caught.out()));
  caught.expect({.op = "MergePartials"});
}

TEST(CApiFlashDecode, CachesAreAttendedTo) {
  AttendFixture fixture;
  const mnk_tensor* const queries = fixture.queries.get();
  const mnk_cache_descriptor descriptor{.size = sizeof descriptor,
                                        .kv_heads = 2,
                                        .head_dim = kDim,
                                        .capacity = kSlots,
                                        .sequences = 2,
                                        .dtype = MNK_F32,
                                        .when_full = MNK_RING};
  const Owned<mnk_cache> cache(mnk_cache_make(fixture.device.get(), &descriptor, nullptr), mnk_cache_release);
  // Tokens [slots, heads, headDim] of the same numbers: both heads are alike.
  std::vector<float> keys(kSlots * 2 * kDim), values(keys.size());
  for (uint64_t vector = 0; vector < 2 * kSlots; ++vector) {
    keys[vector * kDim] = static_cast<float>(kScores[vector / 2]);
    values[vector * kDim + vector / 2] = 1;
  }
  const auto newKeys = tensorOf(fixture.device.get(), keys, {kSlots, 2, kDim});
  const auto newValues = tensorOf(fixture.device.get(), values, {kSlots, 2, kDim});
  Caught caught;
  const auto run = [&](const auto& record) {
    const auto encoder = makeEncoder(fixture.device.get());
    record(encoder.get());
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                     mnk_completion_release);
    EXPECT(mnk_completion_wait(done.get(), nullptr));
  };
  run([&](mnk_encoder* encoder) {
    EXPECT(mnk_encoder_append(encoder, cache.get(), newKeys.get(), newValues.get(), 1, nullptr));
    EXPECT(mnk_encoder_attend(encoder, cache.get(), queries, &fixture.results, &fixture.options, 1, caught.out()));
  });
  EXPECT(areClose(AttendFixture::weightsIn(fixture.out, 0, 1), weightsOf(scoresOf(0, 7))));
  EXPECT(areClose(AttendFixture::weightsIn(fixture.out, 1, 1), weightsOf(scoresOf(0, 8))));
  // One row of each sequence, the first of which is empty.
  const uint32_t both[] = {0, 1};
  fixture.options.window = 2;
  run([&](mnk_encoder* encoder) {
    EXPECT(mnk_encoder_attend_sequences(encoder, cache.get(), queries, &fixture.results, &fixture.options, both, 2,
                                        caught.out()));
  });
  EXPECT_EQ(AttendFixture::weightsIn(fixture.out, 0, 1), std::vector<float>(kSlots));
  EXPECT(areClose(AttendFixture::weightsIn(fixture.out, 1, 1), weightsOf(scoresOf(6, 8))));

  const auto encoder = makeEncoder(fixture.device.get());
  EXPECT(!mnk_encoder_attend(encoder.get(), cache.get(), queries, &fixture.results, nullptr, 2, caught.out()));
  caught.expect({.op = "AttentionCache", .what = "the sequence is not in the cache"});
  EXPECT(!mnk_encoder_attend(encoder.get(), nullptr, queries, &fixture.results, nullptr, 0, caught.out()));
  caught.expect({.op = "C API", .what = "cache is missing"});
  EXPECT(!mnk_encoder_attend(encoder.get(), cache.get(), nullptr, &fixture.results, nullptr, 0, caught.out()));
  caught.expect({.op = "C API", .what = "queries is missing"});
  EXPECT(!mnk_encoder_attend(encoder.get(), cache.get(), queries, nullptr, nullptr, 0, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_attention_results is missing"});
  EXPECT(!mnk_encoder_attend_sequences(encoder.get(), cache.get(), queries, &fixture.results, nullptr, nullptr, 2,
                                       caught.out()));
  caught.expect({.op = "C API", .what = "sequences is missing"});
  EXPECT(!mnk_encoder_attend_sequences(encoder.get(), cache.get(), queries, &fixture.results, nullptr, both, SIZE_MAX,
                                       caught.out()));
  caught.expect({.op = "AttentionCache", .what = "too many sequences", .expected = "at most 2"});
  fixture.options.size = 1;
  EXPECT(!mnk_encoder_attend_sequences(encoder.get(), cache.get(), queries, &fixture.results, &fixture.options, both, 2,
                                       caught.out()));
  caught.expect({.op = "C API", .what = "mnk_attention_options has the wrong size"});
}

}  // namespace mnk::test
