// Steps of caches through the C API: each call must leave what its C++ counterpart leaves.
#include "CAPI/Handles.hpp"
#include "CApiHarness.hpp"
#include "Harness/Seeded.hpp"

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
                                            .capacity = 16,
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

  // The parts of the step that an append uses, or attention alone.
  mnk_cache_step appendStep() const {
    mnk_cache_step part = step;
    part.queries = {};
    part.results = {};
    part.options = {};
    part.prefixes = nullptr, part.prefix_count = 0;
    return part;
  }
  mnk_cache_step attendStep() const {
    mnk_cache_step part = step;
    part.keys = part.values = {};
    return part;
  }
  // Encodes both, in one call or as an append and attention, and compares results, caches and positions.
  void expectSameStep(bool isOneCall = true) const {
    const auto encoder = makeEncoder(device.get()), twinEncoder = makeEncoder(device.get());
    if (isOneCall) {
      EXPECT(mnk_encoder_append_and_attend(encoder.get(), cache.get(), &step, nullptr));
      REQUIRE(twin->cache.appendAndAttend(twinEncoder->encoder, twinStep));
    } else {
      const mnk_cache_step append = appendStep(), attend = attendStep();
      EXPECT(mnk_encoder_append(encoder.get(), cache.get(), &append, nullptr));
      EXPECT(mnk_encoder_attend(encoder.get(), cache.get(), &attend, nullptr));
      CacheStep twinAttend = twinStep;
      twinAttend.keys = twinAttend.values = {};
      REQUIRE(twin->cache.append(twinEncoder->encoder, {.keys = twinStep.keys,
                                                        .values = twinStep.values,
                                                        .sequences = twinStep.sequences,
                                                        .rowCounts = twinStep.rowCounts}));
      REQUIRE(twin->cache.attend(twinEncoder->encoder, twinAttend));
    }
    commit(encoder);
    commit(twinEncoder);
    EXPECT(tensorBytes(output->tensor) == tensorBytes(expected->tensor));
    EXPECT(tensorBytes(output->tensor) != std::vector<std::byte>(output->tensor.byteCount()));
    EXPECT(tensorBytes(cache->cache.view().keys) == tensorBytes(twin->cache.view().keys));
    for (uint32_t sequence : {0, 1}) {
      EXPECT_EQ(nextPosition(cache.get(), sequence), *twin->cache.nextPosition(sequence));
      EXPECT_EQ(sequenceOf(cache.get(), sequence).count, *twin->cache.count(sequence));
    }
  }
};

mnk_rotary_step textRotation() {
  mnk_rotary_step step{};
  step.embedding = {.layout = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, .base = 100, .scale = 1};
  return step;
}

}  // namespace

// Its lists and prefixes, and a rotation.
TEST(CApiCacheStep, EachPartReachesTheCache) {
  StepFixture fixture;
  const std::vector<uint32_t> sequences = {1, 0, 1}, rowCounts = {2, 1, 2};
  const Owned<mnk_cache> prompt(mnk_cache_make(fixture.device.get(), &fixture.descriptor, nullptr), mnk_cache_release);
  const auto filling = makeEncoder(fixture.device.get());
  REQUIRE(prompt->cache.append(filling->encoder, fixture.twinStep.keys, fixture.twinStep.values, 1));
  commit(filling);
  const mnk_cache_prefix prefixes[] = {{prompt.get(), 1}};
  fixture.step.prefixes = prefixes;
  fixture.step.prefix_count = 1;
  fixture.twinStep.after = {{prompt->cache, 1}};
  for (const bool isOneCall : {true, false}) fixture.expectSameStep(isOneCall);

  Refusals no;
  const auto encoder = makeEncoder(fixture.device.get());
  mnk_cache_step attend = fixture.attendStep();
  const mnk_cache_prefix nothing[] = {{nullptr, 0}};
  const std::pair<const mnk_cache_prefix*, size_t> wrong[] = {
      {nothing, 1}, {nullptr, 1}, {prefixes, 0}, {prefixes, SIZE_MAX}};
  for (const auto& [list, count] : wrong) {
    attend.prefixes = list, attend.prefix_count = count;
    no(mnk_encoder_attend(encoder.get(), fixture.cache.get(), &attend, no.out()));
  }

  fixture.step.prefixes = nullptr, fixture.step.prefix_count = 0;
  fixture.twinStep.after.clear();
  fixture.step.sequences = sequences.data();
  fixture.step.row_counts = rowCounts.data();
  fixture.step.sequence_count = 3;
  fixture.twinStep.sequences = sequences;
  fixture.twinStep.rowCounts = rowCounts;
  for (const bool isOneCall : {true, false}) fixture.expectSameStep(isOneCall);
  EXPECT_EQ(nextPosition(fixture.cache.get(), 1), 8u);
  fixture.step.has_rotary = true;
  fixture.step.rotary = textRotation();
  fixture.twinStep.rotary = RotaryStep{.embedding = {.layout = RotaryEmbedding::Layout::halfSplit, .base = 100}};
  fixture.expectSameStep();
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
  mnk_cache* const cache = fixture.cache.get();
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  const mnk_cache_step &both = fixture.step, append = fixture.appendStep(), attend = fixture.attendStep();
  const auto refuse = [&](auto call, mnk_cache_step step, auto change) {
    change(step);
    no(call(encoder.get(), cache, &step, no.out()));
  };
  const auto refuseAppend = [&](auto change) { refuse(mnk_encoder_append, append, change); };
  const auto refuseAttend = [&](auto change) { refuse(mnk_encoder_attend, attend, change); };
  const auto refuseBoth = [&](auto change) { refuse(mnk_encoder_append_and_attend, both, change); };
  const mnk_rotary_step rotary = textRotation();
  const mnk_cache_prefix prefix{cache, 1};
  refuseAppend([&](auto& step) { step.queries = both.queries; });
  refuseAppend([&](auto& step) { step.results = both.results; });
  refuseAppend([&](auto& step) { step.options = both.options; });
  refuseAppend([&](auto& step) { step.prefixes = &prefix, step.prefix_count = 1; });
  refuseAppend([&](auto& step) { step.has_rotary = true, step.rotary = rotary; });
  refuseAttend([&](auto& step) { step.keys = both.keys; });
  refuseAttend([&](auto& step) { step.values = both.values; });
  refuseAttend([&](auto& step) { step.has_rotary = true, step.rotary = rotary; });
  refuseBoth([&](auto& step) { step.rotary = rotary; });
  // Parts that are missing, and lists that are too long to be read.
  const std::vector<uint32_t> many = {0, 1, 0, 1, 0, 1};
  const auto withoutSequences = [](auto& step) { step.sequences = nullptr; };
  refuseAppend(withoutSequences);
  refuseBoth(withoutSequences);
  refuseAttend(withoutSequences);
  refuseAppend([](auto& step) { step.keys.tensor = nullptr; });
  refuseBoth([](auto& step) { step.values.tensor = nullptr; });
  refuseAttend([](auto& step) { step.queries.tensor = nullptr; });
  refuseBoth([](auto& step) { step.sequence_count = 0; });
  refuseAppend([&](auto& step) { step.sequences = many.data(), step.sequence_count = 6; });
  refuseAttend([&](auto& step) { step.sequences = many.data(), step.sequence_count = SIZE_MAX; });
  no(mnk_encoder_append(encoder.get(), cache, nullptr, no.out()));
  no(mnk_encoder_attend(encoder.get(), nullptr, &attend, no.out()));
  no(mnk_encoder_copy_sequence(encoder.get(), cache, 0, 2, no.out()));
  EXPECT(mnk_encoder_append(encoder.get(), cache, &append, nullptr));
  EXPECT(mnk_encoder_attend(encoder.get(), cache, &attend, nullptr));
}

}  // namespace mnk::test
