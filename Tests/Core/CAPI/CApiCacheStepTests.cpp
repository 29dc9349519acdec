// Steps of caches through the C API: views, lists, chunks, copies and sliding windows.
#include "CApiHarness.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Ops/FlashDecode/AttentionHistory.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

constexpr uint64_t kStepTokens = 5;
constexpr uint64_t kRow = kQueryHeads * kAttendedDim;
constexpr uint64_t kToken = kAttendedHeads * kAttendedDim;
constexpr uint64_t kWidth = kRow + 2 * kToken;

// A cache, and queries, keys and values of a few tokens side by side, as one projection leaves them.
struct StepFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> fused = makeTensor(device.get(), MNK_F32, {kStepTokens, kWidth});
  Owned<mnk_tensor> output = makeTensor(device.get(), MNK_F32, {kStepTokens, kQueryHeads, kAttendedDim});
  mnk_cache_descriptor descriptor{.size = sizeof descriptor,
                                  .kv_heads = kAttendedHeads,
                                  .head_dim = kAttendedDim,
                                  .capacity = 8,
                                  .sequences = 2,
                                  .dtype = MNK_F32,
                                  .when_full = MNK_RING};
  mnk_attention_results results{.size = sizeof results, .into = output.get()};
  mnk_attention_options options{.size = sizeof options};
  mnk_cache_step step{.size = sizeof step, .results = &results, .options = &options};
  std::vector<float> queries, keys, values;
  AttentionHistory history{kQueryHeads, kAttendedHeads, kAttendedDim};
  Seeded random{7};

  StepFixture() {
    EXPECT(mnk_heads_view_set_columns(&step.queries, fused.get(), 0, kQueryHeads, kAttendedDim, nullptr));
    EXPECT(mnk_heads_view_set_columns(&step.keys, fused.get(), kRow, kAttendedHeads, kAttendedDim, nullptr));
    EXPECT(mnk_heads_view_set_columns(&step.values, fused.get(), kRow + kToken, kAttendedHeads, kAttendedDim, nullptr));
    fill();
  }

  void fill() {
    queries = smallNumbers(random, kStepTokens * kRow);
    keys = smallNumbers(random, kStepTokens * kToken);
    values = smallNumbers(random, kStepTokens * kToken);
    std::vector<float> all;
    for (uint64_t token = 0; token < kStepTokens; ++token) {
      for (const auto& [part, width] :
           {std::pair(&queries, kRow), std::pair(&keys, kToken), std::pair(&values, kToken)}) {
        all.insert(all.end(), part->begin() + token * width, part->begin() + (token + 1) * width);
      }
    }
    EXPECT(mnk_tensor_write(fused.get(), all.data(), all.size() * sizeof(float), nullptr));
  }

  Owned<mnk_cache> make(mnk_error_out error = nullptr) const {
    return {mnk_cache_make(device.get(), &descriptor, error), mnk_cache_release};
  }
  void commit(const Owned<mnk_encoder>& encoder) const {
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                     mnk_completion_release);
    EXPECT(mnk_completion_wait(done.get(), nullptr));
  }
  std::vector<float> got() const {
    std::vector<float> floats(kStepTokens * kRow);
    EXPECT(mnk_tensor_read(output.get(), floats.data(), floats.size() * sizeof(float), nullptr));
    return floats;
  }
};

mnk_rotary_step textRotation() {
  mnk_rotary_step step{.size = sizeof step};
  step.embedding = {.size = sizeof step.embedding, .layout = MNK_HALF_SPLIT, .base = 100, .scale = 1};
  return step;
}

std::vector<float> token(const std::vector<float>& all, uint64_t index, uint64_t width) {
  return {all.begin() + index * width, all.begin() + (index + 1) * width};
}

}  // namespace

TEST(CApiCacheStep, ListsAndRowCountsReachTheCache) {
  for (const bool isAtOnce : {false, true}) {
    StepFixture fixture;
    const auto cache = fixture.make();
    const uint32_t sequences[] = {1, 0, 1}, rowCounts[] = {2, 1, 2};
    fixture.step.sequences = sequences;
    fixture.step.row_counts = rowCounts;
    fixture.step.sequence_count = 3;
    const auto encoder = makeEncoder(fixture.device.get());
    if (isAtOnce) {
      EXPECT(mnk_encoder_append_and_attend(encoder.get(), cache.get(), &fixture.step, nullptr));
    } else {
      EXPECT(mnk_encoder_append_step(encoder.get(), cache.get(), &fixture.step, nullptr));
      EXPECT(mnk_encoder_attend_step(encoder.get(), cache.get(), &fixture.step, nullptr));
    }
    fixture.commit(encoder);
    EXPECT_EQ(mnk_cache_next_position(cache.get(), 0), 1u);
    EXPECT_EQ(mnk_cache_next_position(cache.get(), 1), 4u);
    const uint32_t rowSequences[] = {1, 1, 0, 1, 1};
    for (uint64_t row = 0; row < kStepTokens; ++row) {
      fixture.history.append(token(fixture.keys, row, kToken), token(fixture.values, row, kToken), rowSequences[row]);
      const auto seen = positions(0, fixture.history.size(rowSequences[row]));
      EXPECT(largestDifference(token(fixture.got(), row, kRow),
                               fixture.history.attended(token(fixture.queries, row, kRow), {seen}, rowSequences[row])) <
             kF32Sums);
    }
  }
}

// With positions of the cache, from a number on, listed ones, and offsets.
TEST(CApiCacheStep, AStepRotatesAsMultiRoPEDoes) {
  const int32_t listed[] = {4, 9, 2, 30, 7}, offsets[] = {-3};
  for (const int kind : {0, 1, 2, 3}) {
    const Context context(fmt::format("positions {}", kind));
    StepFixture fixture;
    const auto cache = fixture.make(), apart = fixture.make();
    mnk_rotary_step rotary = textRotation();
    mnk_multi_rope rope{.size = sizeof rope, .queries = fixture.step.queries, .keys = fixture.step.keys};
    rope.rotary = rotary.embedding;
    rotary.has_first_position = kind == 1;
    if (kind == 1) rotary.first_position = rope.first_position = 70;
    if (kind >= 2) rotary.positions = rope.positions = {.list = listed, .list_count = 5};
    if (kind == 3) rotary.offsets = rope.offsets = {.list = offsets, .list_count = 1};
    std::vector<float> results[2];
    for (const bool isFused : {true, false}) {
      fixture.step.rotary = isFused ? &rotary : nullptr;
      const auto encoder = makeEncoder(fixture.device.get());
      if (!isFused) EXPECT(mnk_encoder_multi_rope(encoder.get(), &rope, nullptr));
      EXPECT(mnk_encoder_append_and_attend(encoder.get(), (isFused ? cache : apart).get(), &fixture.step, nullptr));
      fixture.commit(encoder);
      results[isFused] = fixture.got();
    }
    EXPECT(results[0] == results[1]);
    EXPECT(results[0] != std::vector<float>(results[0].size()));
  }
}

TEST(CApiCacheStep, ASlidingWindowIsServedInChunksAndCopied) {
  StepFixture fixture;
  fixture.descriptor.capacity = 0;
  fixture.descriptor.when_full = MNK_LINEAR;
  fixture.descriptor.sliding_window = {.window = 3, .max_rows = 2, .max_draft = 1};
  const auto cache = fixture.make();
  const mnk_cache_descriptor made = mnk_cache_get_descriptor(cache.get());
  EXPECT_EQ(made.capacity, 4u);
  EXPECT(made.when_full == MNK_RING && !made.is_storage_only);
  EXPECT_EQ(made.sliding_window.window, 3u);
  EXPECT_EQ(made.sliding_window.max_rows, 2u);
  for (int round = 0; round < 3; ++round) {
    fixture.fill();
    const auto encoder = makeEncoder(fixture.device.get());
    EXPECT(mnk_encoder_append_and_attend(encoder.get(), cache.get(), &fixture.step, nullptr));
    fixture.commit(encoder);
    std::vector<std::vector<uint64_t>> seen;
    for (uint64_t row = 0; row < kStepTokens; ++row) {
      const uint64_t end = fixture.history.size() + row + 1;
      seen.push_back(positions(end - std::min<uint64_t>(end, 3), end));
    }
    fixture.history.append(fixture.keys, fixture.values);
    EXPECT(largestDifference(fixture.got(), fixture.history.attended(fixture.queries, seen)) < kF32Sums);
  }
  const auto encoder = makeEncoder(fixture.device.get());
  EXPECT(mnk_encoder_copy_sequence(encoder.get(), cache.get(), 0, 1, nullptr));
  fixture.commit(encoder);
  EXPECT_EQ(mnk_cache_next_position(cache.get(), 1), 15u);
  char* text = mnk_cache_copy_text(cache.get());
  EXPECT_EQ(std::string(text),
            "2 heads of 32 as f32, 2 sequences, 4 slots that overwrite the oldest when full, a window of "
            "3, 4.1 KB");
  mnk_text_release(text);
  EXPECT(mnk_cache_copy_text(nullptr) == nullptr);
}

TEST(CApiCacheStep, StepsThatDoNotFitAreRefused) {
  StepFixture fixture;
  const auto cache = fixture.make();
  const auto encoder = makeEncoder(fixture.device.get());
  Caught caught;
  const mnk_cache_step sound = fixture.step;
  const auto refuses = [&](auto call, const ExpectedError& expected) {
    EXPECT(!call(encoder.get(), cache.get(), &fixture.step, caught.out()));
    caught.expect(expected);
    fixture.step = sound;
  };
  const auto refusedByAll = [&](auto change, const ExpectedError& expected) {
    for (const auto call : {mnk_encoder_append_step, mnk_encoder_append_and_attend}) {
      change();
      refuses(call, expected);
    }
    change();
    refuses(mnk_encoder_attend_step, expected);
  };
  refusedByAll([&] { fixture.step.size = 8; }, {.what = "mnk_cache_step has the wrong size"});
  refusedByAll([&] { fixture.step.keys.size = 8; }, {.what = "mnk_heads_view has the wrong size"});
  refusedByAll([&] { fixture.step.sequence_count = 1; }, {.what = "sequences is missing"});
  fixture.step.keys.tensor = nullptr;
  refuses(mnk_encoder_append_step, {.what = "keys.tensor is missing"});
  fixture.step.values.tensor = nullptr;
  refuses(mnk_encoder_append_and_attend, {.what = "values.tensor is missing"});
  fixture.step.queries.tensor = nullptr;
  refuses(mnk_encoder_attend_step, {.what = "queries.tensor is missing"});
  const uint32_t many[] = {0, 1, 0, 1, 0, 1};
  fixture.step.sequences = many;
  fixture.step.sequence_count = 6;
  refuses(mnk_encoder_append_step, {.op = "AttentionCache", .what = "there are too many sequences", .got = "6"});
  fixture.step.sequences = many;
  fixture.step.sequence_count = 2;
  refuses(
      mnk_encoder_append_and_attend,
      {.op = "AttentionCache.appendAndAttend", .what = "the rows do not match the listed sequences", .got = "5 rows"});
  fixture.step.sequences = many;
  refuses(mnk_encoder_append_and_attend, {.op = "AttentionCache.appendAndAttend", .what = "the step has no sequence"});
  mnk_rotary_step rotary = textRotation();
  for (const auto call : {mnk_encoder_append_step, mnk_encoder_append_and_attend}) {
    const bool canRotate = call == mnk_encoder_append_and_attend;
    rotary.size = canRotate ? 8 : sizeof rotary;
    fixture.step.rotary = &rotary;
    refuses(call, {.what = canRotate ? "mnk_rotary_step has the wrong size" : "a step rotates only where it appends"});
  }
  rotary.size = sizeof rotary;
  rotary.embedding.base = -1;
  fixture.step.rotary = &rotary;
  refuses(mnk_encoder_append_and_attend,
          {.op = "AttentionCache.appendAndAttend", .what = "the base is not a positive number"});
  const int32_t listed[] = {4, 9, 2, 30, 7};
  for (const bool hasPositions : {false, true}) {
    rotary = textRotation();
    rotary.first_position = 3;
    rotary.has_first_position = hasPositions;
    if (hasPositions) rotary.positions = {.list = listed, .list_count = 5};
    fixture.step.rotary = &rotary;
    refuses(mnk_encoder_append_and_attend, {.op = "mnk_rotary_step", .what = "the first position would be ignored"});
  }
  EXPECT(!mnk_encoder_append_step(encoder.get(), cache.get(), nullptr, caught.out()));
  caught.expect({.what = "mnk_cache_step is missing"});
  EXPECT(!mnk_encoder_copy_sequence(encoder.get(), cache.get(), 0, 2, caught.out()));
  caught.expect({.op = "AttentionCache.copy", .got = "sequence 2"});
  fixture.descriptor.head_dim = 12;
  EXPECT(!fixture.make(caught.out()));
  caught.expect({.what = "there is no attention kernel for these head dims", .got = "12 of keys and 12 of values"});
  fixture.descriptor.is_storage_only = true;
  EXPECT(fixture.make() != nullptr);
}

}  // namespace mnk::test
