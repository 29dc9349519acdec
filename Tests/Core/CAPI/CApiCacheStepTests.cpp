// Steps of caches through the C API: each call must leave what its C++ counterpart leaves.
#include "CAPI/Handles.hpp"
#include "CApiHarness.hpp"
#include "Harness/Seeded.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

constexpr uint64_t kTokens = 5, kQueryHeads = 4, kHeads = 2, kDim = 32;
constexpr uint64_t kRow = kQueryHeads * kDim, kToken = kHeads * kDim;

std::vector<std::byte> tensorBytes(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.byteCount());
  REQUIRE(tensor.read(bytes));
  return bytes;
}

// A step whose queries, keys and values lie side by side, as one projection leaves them, and two caches for it: one is
// used through C, and one in C++.
struct StepFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> fused = makeTensor(device.get(), MNK_F32, {kTokens, kRow + 2 * kToken});
  Owned<mnk_tensor> output = makeTensor(device.get(), MNK_F32, {kTokens, kQueryHeads, kDim});
  Owned<mnk_tensor> expected = makeTensor(device.get(), MNK_F32, {kTokens, kQueryHeads, kDim});
  mnk_attention_cache_descriptor descriptor{.kv_heads = kHeads,
                                            .head_dim = kDim,
                                            .capacity = 8,
                                            .sequences = 2,
                                            .dtype = MNK_F32,
                                            .when_full = MNK_KV_WRAP_RING};
  static constexpr uint32_t kFirstSequence = 0;
  mnk_cache_step step{.results = {.output = output.get()}, .options = {.scale = 0.5f}};
  CacheStep twinStep;
  Owned<mnk_cache> cache{nullptr, mnk_cache_release}, twin{nullptr, mnk_cache_release};

  StepFixture() {
    Seeded random(7);
    std::vector<float> numbers(kTokens * (kRow + 2 * kToken));
    for (float& number : numbers) number = static_cast<float>(random.below(2001)) / 1000 - 1;
    write(fused, numbers.data());
    const std::tuple<mnk_heads_view*, HeadsView*, uint64_t, uint64_t> views[] = {
        {&step.queries, &twinStep.queries, 0, kQueryHeads},
        {&step.keys, &twinStep.keys, kRow, kHeads},
        {&step.values, &twinStep.values, kRow + kToken, kHeads}};
    for (const auto& [view, twinView, column, heads] : views) {
      EXPECT(mnk_heads_view_set_columns(view, fused.get(), column, heads, kDim, nullptr));
      *twinView = REQUIRE(HeadsView::columns(fused->tensor, column, heads, kDim));
    }
    step.sequences = &kFirstSequence;
    step.sequence_count = 1;
    twinStep.sequences = {kFirstSequence};
    twinStep.results.output = expected->tensor;
    twinStep.options.scale = 0.5f;
    makeCaches();
  }
  void makeCaches() {
    for (auto* each : {&cache, &twin}) each->reset(mnk_cache_make(device.get(), &descriptor, nullptr));
  }

  // Encodes both, and compares results, caches and positions.
  template <typename InC, typename InCxx>
  void expectSame(const InC& inC, const InCxx& inCxx) const {
    const auto encoder = makeEncoder(device.get());
    EXPECT(inC(encoder.get(), cache.get()));
    commit(encoder);
    const auto twinEncoder = makeEncoder(device.get());
    REQUIRE(inCxx(twinEncoder->encoder, twin->cache));
    commit(twinEncoder);
    EXPECT(tensorBytes(output->tensor) == tensorBytes(expected->tensor));
    EXPECT(tensorBytes(output->tensor) != std::vector<std::byte>(output->tensor.byteCount()));
    EXPECT(tensorBytes(cache->cache.view().keys) == tensorBytes(twin->cache.view().keys));
    for (uint32_t sequence : {0, 1}) {
      EXPECT_EQ(nextPosition(cache.get(), sequence), *twin->cache.nextPosition(sequence));
      EXPECT_EQ(sequenceOf(cache.get(), sequence).count, *twin->cache.count(sequence));
    }
  }
  // The parts of the step that an append uses, or attention alone.
  mnk_cache_step appendStep() const {
    mnk_cache_step part = step;
    part.queries = {};
    part.results = {};
    part.options = {};
    return part;
  }
  mnk_cache_step attendStep() const {
    mnk_cache_step part = step;
    part.keys = part.values = {};
    return part;
  }
  void expectSameStep() const {
    expectSame([&](auto* encoder, auto* into) { return mnk_encoder_append_and_attend(encoder, into, &step, nullptr); },
               [&](CommandEncoder& encoder, AttentionCache& into) { return into.appendAndAttend(encoder, twinStep); });
  }
};

mnk_rotary_step textRotation() {
  mnk_rotary_step step{};
  step.embedding = {.layout = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, .base = 100, .scale = 1};
  return step;
}

}  // namespace

TEST(CApiCacheStep, ListsAndRowCountsReachTheCache) {
  StepFixture fixture;
  const std::vector<uint32_t> sequences = {1, 0, 1}, rowCounts = {2, 1, 2};
  fixture.step.sequences = sequences.data();
  fixture.step.row_counts = rowCounts.data();
  fixture.step.sequence_count = 3;
  CacheStep& twin = fixture.twinStep;
  twin.sequences = sequences;
  twin.rowCounts = rowCounts;
  fixture.expectSameStep();
  EXPECT_EQ(nextPosition(fixture.cache.get(), 1), 4u);
  fixture.expectSame(
      [&](auto* encoder, auto* cache) {
        const mnk_cache_step append = fixture.appendStep(), attend = fixture.attendStep();
        return mnk_encoder_append(encoder, cache, &append, nullptr) &&
               mnk_encoder_attend(encoder, cache, &attend, nullptr);
      },
      [&](CommandEncoder& encoder, AttentionCache& cache) -> Result<void> {
        REQUIRE(cache.append(
            encoder, {.keys = twin.keys, .values = twin.values, .sequences = sequences, .rowCounts = rowCounts}));
        return cache.attend(encoder, {.queries = twin.queries,
                                      .results = twin.results,
                                      .options = twin.options,
                                      .sequences = sequences,
                                      .rowCounts = rowCounts});
      });
}

TEST(CApiCacheStep, PrefixesReachTheCache) {
  StepFixture fixture;
  const Owned<mnk_cache> prompt(mnk_cache_make(fixture.device.get(), &fixture.descriptor, nullptr), mnk_cache_release);
  const CacheStep& twin = fixture.twinStep;
  const auto filling = makeEncoder(fixture.device.get());
  REQUIRE(prompt->cache.append(filling->encoder, twin.keys, twin.values, 1));
  commit(filling);
  const mnk_cache_prefix prefixes[] = {{prompt.get(), 1}};
  fixture.step.prefixes = prefixes;
  fixture.step.prefix_count = 1;
  fixture.twinStep.after = {{prompt->cache, 1}};
  fixture.expectSameStep();
  const std::vector<std::byte> after = tensorBytes(fixture.output->tensor);
  const uint32_t first = 0, count = kTokens;
  fixture.step.row_counts = &count;
  fixture.step = fixture.attendStep();
  fixture.expectSame(
      [&](auto* encoder, auto* cache) { return mnk_encoder_attend(encoder, cache, &fixture.step, nullptr); },
      [&](CommandEncoder& encoder, AttentionCache& cache) {
        return cache.attend(encoder, {.queries = twin.queries,
                                      .results = twin.results,
                                      .options = twin.options,
                                      .sequences = {first},
                                      .rowCounts = {{count}},
                                      .after = twin.after});
      });
  EXPECT(tensorBytes(fixture.output->tensor) == after);

  Refusals no;
  const auto encoder = makeEncoder(fixture.device.get());
  const mnk_cache_prefix nothing[] = {{nullptr, 0}};
  fixture.step.prefixes = nothing;
  no(mnk_encoder_attend(encoder.get(), fixture.cache.get(), &fixture.step, no.out()));
  fixture.step.prefixes = nullptr;
  no(mnk_encoder_attend(encoder.get(), fixture.cache.get(), &fixture.step, no.out()));
  fixture.step.prefixes = prefixes;
  fixture.step.prefix_count = 0;
  no(mnk_encoder_attend(encoder.get(), fixture.cache.get(), &fixture.step, no.out()));
  fixture.step.prefix_count = SIZE_MAX;
  no(mnk_encoder_attend(encoder.get(), fixture.cache.get(), &fixture.step, no.out()));
}

// With positions of the cache, from a number on, listed ones, and offsets.
TEST(CApiCacheStep, AStepRotates) {
  const int32_t listed[] = {4, 9, 2, 30, 7}, offsets[] = {-3};
  for (const int kind : {0, 1, 2, 3}) {
    const Context context(fmt::format("positions {}", kind));
    StepFixture fixture;
    mnk_rotary_step rotary = textRotation();
    RotaryStep twin{.embedding = {.layout = RotaryEmbedding::Layout::halfSplit, .base = 100}};
    if (kind == 1) rotary.positions = {.has_first = true, .first = 70}, twin.positions = RotaryPositions(70);
    if (kind >= 2) rotary.positions = {.list = listed, .list_count = 5};
    if (kind >= 2) twin.positions = std::vector<int32_t>(listed, listed + 5);
    if (kind == 3) rotary.offsets = {.list = offsets, .list_count = 1};
    if (kind == 3) twin.offsets = std::vector<int32_t>{-3};
    fixture.step.has_rotary = true;
    fixture.step.rotary = rotary;
    fixture.twinStep.rotary = twin;
    fixture.expectSameStep();
  }
}

TEST(CApiCacheStep, ASlidingWindowIsServedInChunksAndCopied) {
  StepFixture fixture;
  fixture.descriptor.capacity = 0;
  fixture.descriptor.when_full = MNK_KV_WRAP_LINEAR;
  fixture.descriptor.has_sliding_window = true;
  fixture.descriptor.sliding_window = {.window = 3, .max_rows = 2, .max_draft = 1};
  fixture.makeCaches();
  mnk_cache* const cache = fixture.cache.get();
  const mnk_attention_cache_descriptor made = mnk_cache_get_descriptor(cache);
  EXPECT(made.capacity == 4 && made.when_full == MNK_KV_WRAP_RING && !made.is_storage_only);
  EXPECT(made.sliding_window.window == 3 && made.sliding_window.max_rows == 2 && made.sliding_window.max_draft == 1);
  for (int round = 0; round < 3; ++round) fixture.expectSameStep();
  mnk_attention_cache_descriptor prompts = fixture.descriptor;
  prompts.has_sliding_window = true;
  prompts.sliding_window = {.window = 3};
  const Owned<mnk_cache> served(mnk_cache_make(fixture.device.get(), &prompts, nullptr), mnk_cache_release);
  EXPECT_EQ(mnk_cache_get_descriptor(served.get()).sliding_window.max_rows, 64u);
  EXPECT_EQ(mnk_cache_get_descriptor(served.get()).capacity, 66u);
  const auto encoder = makeEncoder(fixture.device.get());
  EXPECT(mnk_encoder_copy_sequence(encoder.get(), cache, 0, 1, nullptr));
  commit(encoder);
  EXPECT_EQ(nextPosition(cache, 1), 15u);
  const Owned<char> text(mnk_cache_copy_text(cache), mnk_text_release);
  EXPECT_EQ(std::string(text.get()), fixture.cache->cache.text());
  EXPECT(mnk_cache_copy_text(nullptr) == nullptr);
}

TEST(CApiCacheStep, PartsThatACallDoesNotUseAreRefused) {
  const StepFixture fixture;
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  const auto refuse = [&](auto call, mnk_cache_step step, auto change) {
    change(step);
    no(call(encoder.get(), fixture.cache.get(), &step, no.out()));
  };
  const mnk_rotary_step rotary = textRotation();
  const mnk_cache_prefix prefix{fixture.cache.get(), 1};
  const mnk_cache_step& whole = fixture.step;
  const mnk_cache_step append = fixture.appendStep(), attend = fixture.attendStep();
  refuse(mnk_encoder_append, append, [&](auto& step) { step.queries = whole.queries; });
  refuse(mnk_encoder_append, append, [&](auto& step) { step.results = whole.results; });
  refuse(mnk_encoder_append, append, [&](auto& step) { step.options = whole.options; });
  refuse(mnk_encoder_append, append, [&](auto& step) { step.prefixes = &prefix, step.prefix_count = 1; });
  refuse(mnk_encoder_append, append, [&](auto& step) { step.has_rotary = true, step.rotary = rotary; });
  refuse(mnk_encoder_attend, attend, [&](auto& step) { step.keys = whole.keys; });
  refuse(mnk_encoder_attend, attend, [&](auto& step) { step.values = whole.values; });
  refuse(mnk_encoder_attend, attend, [&](auto& step) { step.has_rotary = true, step.rotary = rotary; });
  EXPECT(mnk_encoder_append(encoder.get(), fixture.cache.get(), &append, nullptr));
  EXPECT(mnk_encoder_attend(encoder.get(), fixture.cache.get(), &attend, nullptr));
}

TEST(CApiCacheStep, StepsThatDoNotFitAreRefused) {
  StepFixture fixture;
  mnk_cache* const cache = fixture.cache.get();
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  const auto refuseIn = [&](auto call, mnk_cache_step step, auto change) {
    change(step);
    no(call(encoder.get(), cache, &step, no.out()));
  };
  const mnk_cache_step append = fixture.appendStep(), attend = fixture.attendStep();
  const auto refuse = [&](auto change) { refuseIn(mnk_encoder_append_and_attend, fixture.step, change); };
  const auto refusedByAll = [&](auto change) {
    refuseIn(mnk_encoder_append, append, change);
    refuse(change);
    refuseIn(mnk_encoder_attend, attend, change);
  };
  const std::vector<uint32_t> many = {0, 1, 0, 1, 0, 1};
  refusedByAll([](auto& step) { step.sequences = nullptr; });
  refuseIn(mnk_encoder_append, append, [](auto& step) { step.keys.tensor = nullptr; });
  refuse([](auto& step) { step.values.tensor = nullptr; });
  refuseIn(mnk_encoder_attend, attend, [](auto& step) { step.queries.tensor = nullptr; });
  refuseIn(mnk_encoder_append, append, [&](auto& step) { step.sequences = many.data(), step.sequence_count = 6; });
  refuse([&](auto& step) { step.sequences = many.data(), step.sequence_count = 2; });
  refuse([&](auto& step) { step.sequence_count = 0; });
  mnk_rotary_step rotary = textRotation();
  const auto rotate = [&](auto& step) { step.has_rotary = true, step.rotary = rotary; };
  refuse([&](auto& step) { step.rotary = rotary; });
  rotary.embedding.base = -1;
  refuse(rotate);
  const int32_t listed[] = {4, 9, 2, 30, 7};
  rotary = textRotation();
  rotary.positions.first = 3;
  refuse(rotate);
  rotary.positions = {.has_first = true, .first = 3, .list = listed, .list_count = 5};
  refuse(rotate);
  no(mnk_encoder_append(encoder.get(), cache, nullptr, no.out()));
  no(mnk_encoder_copy_sequence(encoder.get(), cache, 0, 2, no.out()));

  no(mnk_encoder_attend(encoder.get(), nullptr, &attend, no.out()));
  refuseIn(mnk_encoder_attend, attend, [](auto& step) { step.results = {}; });
  refuseIn(mnk_encoder_attend, attend,
           [&](auto& step) { step.sequences = many.data(), step.sequence_count = SIZE_MAX; });
  fixture.descriptor.head_dim = 12;
  no(mnk_cache_make(fixture.device.get(), &fixture.descriptor, no.out()));
  fixture.descriptor.is_storage_only = true;
  fixture.makeCaches();
  EXPECT(fixture.cache != nullptr);
}

}  // namespace mnk::test
