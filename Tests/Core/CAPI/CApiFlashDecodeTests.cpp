// FlashDecode and MergePartials through the C API: what is no descriptor is refused. CApiBindingTests.cpp has the rest.
#include <fmt/ranges.h>

#include "CAttentionFixture.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

TEST(CApiFlashDecode, WithoutOptionsThereAreTheDefaults) {
  AttendFixture fixture;
  fixture.op.options = nullptr;
  auto scores = kScores;
  for (double& score : scores) score /= std::sqrt(double{kDim});
  EXPECT(areClose(fixture.weights(), weightsOf(scores)));
}

TEST(CApiFlashDecode, SequencesMayHaveRowsOfTheirOwn) {
  AttendFixture fixture;
  const mnk_attended_sequence both[] = {{.sequence = 0, .length = kSlots, .highest = 0, .rows = 1},
                                        {.sequence = 0, .length = 3, .highest = 0, .rows = 1}};
  fixture.op.sequences = both;
  fixture.op.sequence_count = 2;
  EXPECT(areClose(fixture.weights(0), weightsOf(scoresOf(0, kSlots))));
  EXPECT(areClose(fixture.weights(1), weightsOf(scoresOf(0, 3))));
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
  refuses({.op = "FlashDecode", .what = "too many sequences", .expected = "at most 2"});
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
