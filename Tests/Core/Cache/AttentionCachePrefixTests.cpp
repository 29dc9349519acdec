// Conversations that share prompts in other caches: the results are those of double attention over all tokens.
#include <cmath>
#include <limits>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kWidth = kAttendedHeads * kAttendedDim;

struct Tokens {
  std::vector<float> keys, values;

  uint64_t count() const { return keys.size() / kWidth; }
  void add(const Tokens& next) {
    keys.insert(keys.end(), next.keys.begin(), next.keys.end());
    values.insert(values.end(), next.values.begin(), next.values.end());
  }
};

Tokens someTokens(Seeded& random, uint64_t count) {
  return {smallNumbers(random, count * kWidth), smallNumbers(random, count * kWidth)};
}

Tensor tokenTensor(const std::shared_ptr<Device>& device, const std::vector<float>& elements) {
  return numbers(device, elements, REQUIRE(Shape::make({elements.size() / kWidth, kAttendedHeads, kAttendedDim})));
}

void appendNow(AttentionCache& cache, const std::shared_ptr<Device>& device, const Tokens& tokens, uint32_t sequence) {
  if (tokens.count() == 0) return;
  REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) {
    return cache.append(encoder, tokenTensor(device, tokens.keys), tokenTensor(device, tokens.values), sequence);
  }));
}

// What a cache holds of the tokens of a sequence: the same numbers, or those that codes represent.
Tokens held(const AttentionCache& cache, const std::shared_ptr<Device>& device, const Tokens& tokens,
            uint32_t sequence) {
  if (!cache.descriptor().quantized || tokens.count() == 0) return tokens;
  const Shape shape = REQUIRE(Shape::make({tokens.count(), kAttendedHeads, kAttendedDim}));
  const Tensor keys = REQUIRE(Tensor::zeros(device, DType::f32, shape));
  const Tensor values = REQUIRE(Tensor::zeros(device, DType::f32, shape));
  REQUIRE(CommandEncoder::run(
      device, [&](CommandEncoder& encoder) { return cache.dequantize(encoder, keys, values, 0, sequence); }));
  return {floatsOf(keys), floatsOf(values)};
}

struct Options {
  bool isCausal = true;
  uint64_t window = 0;
  std::vector<float> slopes = {};
  std::vector<float> sinks = {};
};

struct Attended {
  std::vector<double> rows, logs;
};

// The newest rows of one sequence of all tokens.
Attended reference(const Tokens& tokens, const std::vector<float>& queries, const Options& options) {
  const auto length = static_cast<int64_t>(tokens.count());
  const auto rows = static_cast<int64_t>(queries.size() / (kQueryHeads * kAttendedDim));
  Attended result;
  for (int64_t row = 0; row < rows; ++row) {
    for (uint64_t head = 0; head < kQueryHeads; ++head) {
      const int64_t position = length - rows + row;
      const float* query = &queries[(static_cast<uint64_t>(row) * kQueryHeads + head) * kAttendedDim];
      const uint64_t kvHead = head / (kQueryHeads / kAttendedHeads);
      std::vector<double> output(kAttendedDim);
      double sum = options.sinks.empty() ? 0 : std::exp(double{options.sinks[head]});
      for (int64_t key = 0; key < length; ++key) {
        if (options.isCausal && key > position) continue;
        if (options.window != 0 && key <= position - static_cast<int64_t>(options.window)) continue;
        const uint64_t at = static_cast<uint64_t>(key) * kWidth + kvHead * kAttendedDim;
        double score = 0;
        for (uint64_t j = 0; j < kAttendedDim; ++j) score += double{query[j]} * tokens.keys[at + j];
        score /= std::sqrt(double{kAttendedDim});
        if (!options.slopes.empty()) score += options.slopes[head] * static_cast<double>(key - position);
        sum += std::exp(score);
        for (uint64_t j = 0; j < kAttendedDim; ++j) output[j] += std::exp(score) * tokens.values[at + j];
      }
      for (const double each : output) result.rows.push_back(each / sum);
      result.logs.push_back(std::log(sum));
    }
  }
  return result;
}

struct PrefixCase {
  std::string name;
  std::vector<uint64_t> prefixes = {13};
  std::vector<uint64_t> before = {0, 5, 11};  // tokens of conversations before the step
  std::vector<uint32_t> rows = {1, 1, 1};
  bool hasAxis = false;  // of conversations
  Options options = {};
  uint32_t keyBits = 0;  // of prefixes; 0: dense
  DType dtype = DType::f32;
  bool isOneCache = false;  // which holds conversations and prefixes
};

void expectPrefixed(const std::shared_ptr<Device>& device, const PrefixCase& c, bool appendsItself) {
  Seeded random{7};
  AttentionCacheDescriptor descriptor = attendedDescriptor(64);
  descriptor.whenFull = KVWrap::linear;
  descriptor.dtype = c.dtype;
  descriptor.sequences = 6;
  AttentionCacheDescriptor prompt = descriptor;
  if (c.keyBits != 0) prompt.quantized = KVQuantizedStorage{.keyBits = c.keyBits, .valueBits = c.keyBits};
  AttentionCache cache = makeCache(device, c.isOneCache ? prompt : descriptor);
  AttentionCache prompts = c.isOneCache ? cache : makeCache(device, prompt);
  Tokens shared;
  std::vector<CachePrefix> after;
  for (const uint64_t length : c.prefixes) {
    const auto sequence = static_cast<uint32_t>(5 - after.size());
    const Tokens tokens = someTokens(random, length);
    appendNow(prompts, device, tokens, sequence);
    shared.add(held(prompts, device, tokens, sequence));
    after.push_back({prompts, sequence});
  }
  const std::vector<uint32_t> sequences = {2, 0, 1};
  std::vector<Tokens> conversations;
  Tokens step;
  for (size_t i = 0; i < 3; ++i) {
    conversations.push_back(someTokens(random, c.before[i]));
    appendNow(cache, device, conversations[i], sequences[i]);
    const Tokens next = someTokens(random, c.rows[i]);
    conversations[i].add(next);
    step.add(next);
  }
  const uint64_t total = step.count();
  const std::vector<float> queries = smallNumbers(random, total * kQueryHeads * kAttendedDim);
  const auto axes = [&](uint64_t heads) -> std::vector<uint64_t> {
    if (!c.hasAxis) return {total, heads};
    return {3, c.rows[0], heads};
  };
  const auto shaped = [&](uint64_t heads, bool hasDim) {
    std::vector<uint64_t> extents = axes(heads);
    if (hasDim) extents.push_back(kAttendedDim);
    return REQUIRE(Shape::make(extents));
  };
  const Tensor q = numbers(device, queries, shaped(kQueryHeads, true));
  const Tensor k = numbers(device, step.keys, shaped(kAttendedHeads, true));
  const Tensor v = numbers(device, step.values, shaped(kAttendedHeads, true));
  const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, q.shape()));
  const Tensor logs = REQUIRE(Tensor::zeros(device, DType::f32, shaped(kQueryHeads, false)));
  AttentionOptions options{.isCausal = c.options.isCausal, .window = static_cast<uint32_t>(c.options.window)};
  const Shape perHead = REQUIRE(Shape::make({kQueryHeads}));
  if (!c.options.slopes.empty()) options.slopes = numbers(device, c.options.slopes, perHead);
  if (!c.options.sinks.empty()) options.sinks = numbers(device, c.options.sinks, perHead);
  const auto counts = c.hasAxis ? std::nullopt : std::optional(c.rows);
  const AttentionResults results{.output = out, .logSumExp = logs};
  REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
    if (appendsItself) {
      return cache.appendAndAttend(encoder, {.queries = q,
                                             .keys = k,
                                             .values = v,
                                             .results = results,
                                             .options = options,
                                             .sequences = sequences,
                                             .rowCounts = counts,
                                             .after = after});
    }
    if (auto ok = cache.append(encoder, {.keys = k, .values = v, .sequences = sequences, .rowCounts = counts}); !ok)
      return ok;
    return cache.attend(encoder, {.queries = q,
                                  .results = results,
                                  .options = options,
                                  .sequences = sequences,
                                  .rowCounts = counts,
                                  .after = after});
  }));
  Attended expected;
  uint64_t first = 0;
  for (size_t i = 0; i < 3; ++i) {
    Tokens all = shared;
    all.add(held(cache, device, conversations[i], sequences[i]));
    const auto begin = queries.begin() + static_cast<int64_t>(first * kQueryHeads * kAttendedDim);
    const Attended one =
        reference(all, {begin, begin + static_cast<int64_t>(c.rows[i] * kQueryHeads * kAttendedDim)}, c.options);
    expected.rows.insert(expected.rows.end(), one.rows.begin(), one.rows.end());
    expected.logs.insert(expected.logs.end(), one.logs.begin(), one.logs.end());
    first += c.rows[i];
  }
  EXPECT(largestDifference(floatsOf(out), expected.rows) < kF32Sums);
  EXPECT(largestDifference(floatsOf(logs), expected.logs) < kF32Sums);
}

const std::vector<float> kSlopes = {0.5f, 0.25f, 0.125f, 0.0625f}, kSinks = {1, -2, 0.5f, 3};

}  // namespace

TEST(AttentionCachePrefix, ConversationsSeeWhatOneSequenceWouldHold) {
  const PrefixCase cases[] = {
      {.name = "a token of each"},
      {.name = "no conversation has a token yet", .before = {0, 0, 0}},
      {.name = "ragged rows", .rows = {4, 1, 9}},
      {.name = "a conversation left out", .rows = {4, 0, 2}},
      {.name = "an axis of conversations", .rows = {3, 3, 3}, .hasAxis = true},
      {.name = "a window that all rows see the prompt with", .options = {.window = 40}},
      {.name = "a window that rows would leave if all were of one conversation",
       .prefixes = {9},
       .before = {0, 0, 0},
       .rows = {2, 2, 2},
       .options = {.window = 11}},
      {.name = "a window that ends in the prompt", .rows = {4, 1, 3}, .options = {.window = 15}},
      {.name = "a window that ends in some conversations", .rows = {4, 1, 3}, .options = {.window = 6}},
      {.name = "a window of one token", .options = {.window = 1}},
      {.name = "slopes", .rows = {2, 1, 5}, .options = {.slopes = kSlopes, .sinks = kSinks}},
      {.name = "slopes and a window", .rows = {2, 2, 2}, .hasAxis = true, .options = {.window = 9, .slopes = kSlopes}},
      {.name = "rows that see newer ones", .rows = {3, 1, 2}, .options = {.isCausal = false, .sinks = kSinks}},
      {.name = "rows that see newer ones, with a window",
       .rows = {3, 1, 2},
       .options = {.isCausal = false, .window = 8}},
      {.name = "codes", .rows = {1, 4, 2}, .options = {.window = 15}, .keyBits = 8},
      {.name = "codes beside f16", .options = {.slopes = kSlopes}, .keyBits = 4, .dtype = DType::f16},
      {.name = "codes in one cache", .rows = {1, 4, 2}, .options = {.window = 12}, .keyBits = 5, .isOneCache = true},
      {.name = "one cache", .rows = {2, 3, 1}, .isOneCache = true},
      {.name = "two prefixes", .prefixes = {9, 4}, .rows = {3, 1, 2}},
      {.name = "three prefixes, a window and slopes",
       .prefixes = {7, 3, 5},
       .rows = {3, 1, 2},
       .options = {.window = 14, .slopes = kSlopes, .sinks = kSinks}},
  };
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const PrefixCase& c : cases) {
      for (const bool appendsItself : {false, true}) {
        const Context context(fmt::format("{}{}", c.name, appendsItself ? ", in one call" : ""));
        expectPrefixed(device, c, appendsItself);
      }
    }
  });
}

// Rotary positions of conversations follow those of the prompt, in plain and in recorded steps.
TEST(AttentionCachePrefix, RotatesByPositionsAfterThePrefix) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random{3};
    const RotaryStep rotary{.embedding = {.base = 100}};
    AttentionCacheDescriptor descriptor = attendedDescriptor(1400);
    descriptor.whenFull = KVWrap::linear;
    AttentionCache prompts = makeCache(device, descriptor), cache = makeCache(device, descriptor);
    AttentionCache whole = makeCache(device, descriptor);
    const auto run = [&](AttentionCache& target, const Tokens& tokens, const Tensor& queries,
                         std::vector<uint32_t> sequences, std::vector<uint32_t> counts,
                         std::vector<CachePrefix> after) {
      const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.shape()));
      const CacheStep step{.queries = queries,
                           .keys = tokenTensor(device, tokens.keys),
                           .values = tokenTensor(device, tokens.values),
                           .rotary = rotary,
                           .results = {.output = out},
                           .options = {.window = 32},
                           .sequences = sequences,
                           .rowCounts = counts.empty() ? std::nullopt : std::optional(counts),
                           .after = std::move(after)};
      REQUIRE(
          CommandEncoder::run(device, [&](CommandEncoder& encoder) { return target.appendAndAttend(encoder, step); }));
      return floatsOf(out);
    };
    const auto someQueries = [&](uint64_t rows) {
      return numbers(device, smallNumbers(random, rows * kQueryHeads * kAttendedDim),
                     REQUIRE(Shape::make({rows, kQueryHeads, kAttendedDim})));
    };
    const Tokens prompt = someTokens(random, 17);
    const Tensor promptQueries = someQueries(17);
    run(prompts, prompt, promptQueries, {1}, {}, {});
    for (const uint32_t sequence : {0u, 1u, 2u}) run(whole, prompt, promptQueries, {sequence}, {}, {});
    // Few tokens at once; one conversation; and more than positions can be listed for.
    const std::vector<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>> steps = {
        {{0, 1, 2}, {3, 1, 2}}, {{1}, {2}}, {{2, 0}, {1, 1}}, {{0, 2, 1}, {1030, 2, 1}}};
    for (const auto& [sequences, counts] : steps) {
      const Context context(fmt::format("{} sequences, {} rows in the first", sequences.size(), counts[0]));
      uint64_t total = 0;
      for (const uint32_t count : counts) total += count;
      const Tokens tokens = someTokens(random, total);
      const Tensor queries = someQueries(total);
      const std::vector<float> expected = run(whole, tokens, queries, sequences, counts, {});
      const std::vector<float> got = run(cache, tokens, queries, sequences, counts, {{prompts, 1}});
      EXPECT(largestDifference(got, {expected.begin(), expected.end()}) < kF32Sums);
    }
    EXPECT_EQ(REQUIRE(cache.nextPosition(1)), 4u);
    EXPECT_EQ(REQUIRE(whole.nextPosition(1)), 21u);
    EXPECT_EQ(REQUIRE(prompts.nextPosition(1)), 17u);

    const Tokens token = someTokens(random, 1);
    const Tensor k = tokenTensor(device, token.keys), v = tokenTensor(device, token.values), query = someQueries(1);
    const Tensor got = REQUIRE(Tensor::zeros(device, DType::f32, query.shape()));
    const Tensor expected = REQUIRE(Tensor::zeros(device, DType::f32, query.shape()));
    CacheStep step{
        .queries = query, .keys = k, .values = v, .rotary = rotary, .results = {.output = expected}, .sequences = {0}};
    CacheStep after = step;
    after.results = {.output = got};
    after.after = {{prompts, 1}};
    RecordedStep recorded = REQUIRE(RecordedStep::record(device, [&](CommandEncoder& encoder) -> Result<void> {
      if (auto ok = whole.appendAndAttend(encoder, step); !ok) return ok;
      return cache.appendAndAttend(encoder, after);
    }));
    for (int run = 0; run < 3; ++run) {
      REQUIRE(REQUIRE(recorded.run()).wait());
      const std::vector<float> floats = floatsOf(expected);
      EXPECT(largestDifference(floatsOf(got), {floats.begin(), floats.end()}) < kF32Sums);
    }
  });
}

// Rows of all conversations read a prompt once, unless a window or slopes tell them apart.
TEST(AttentionCachePrefix, ReadsASharedPromptOnce) {
  const auto device = FakeDevice::make();
  AttentionCache prompt = makeCache(device, attendedDescriptor(64)), cache = makeCache(device, attendedDescriptor(8));
  CommandEncoder first(device);
  REQUIRE(prompt.append(first, tokens(device, 40, kAttendedHeads, kAttendedDim),
                        tokens(device, 40, kAttendedHeads, kAttendedDim), uint32_t{0}));
  REQUIRE(first.commit());
  const auto bytesRead = [&](const AttentionOptions& options) {
    CommandEncoder encoder(device);
    const Tensor source = tokens(device, 3, kAttendedHeads, kAttendedDim);
    const Tensor queries = tokens(device, 3, kQueryHeads, kAttendedDim);
    const std::vector<uint32_t> all = {0, 1, 2};
    REQUIRE(cache.append(encoder, {.keys = source, .values = source, .sequences = all}));
    const uint64_t before = encoder.summary().total.bytesRead;
    REQUIRE(cache.attend(encoder, {.queries = queries,
                                   .results = {.output = tokens(device, 3, kQueryHeads, kAttendedDim)},
                                   .options = options,
                                   .sequences = all,
                                   .after = {{prompt, 0}}}));
    return encoder.summary().total.bytesRead - before;
  };
  const uint64_t promptBytes = 2 * 40 * kWidth * sizeof(float);
  const uint64_t once = bytesRead({.splits = 1}), each = bytesRead({.window = 40, .splits = 1});
  EXPECT(once > promptBytes && once < 2 * promptBytes);
  EXPECT(each > 2 * promptBytes);
}

TEST(AttentionCachePrefix, TakesTokensAfterItWasRead) {
  const auto device = FakeDevice::make();
  AttentionCache prompt = makeCache(device, attendedDescriptor(8)), cache = makeCache(device, attendedDescriptor(8));
  const Tensor token = tokens(device, 1, kAttendedHeads, kAttendedDim);
  const Tensor queries = tokens(device, 1, kQueryHeads, kAttendedDim);
  const AttentionResults results{.output = tokens(device, 1, kQueryHeads, kAttendedDim)};
  CommandEncoder first(device), second(device), third(device);
  REQUIRE(prompt.append(first, token, token, uint32_t{0}));
  REQUIRE(first.commit());
  REQUIRE(cache.append(second, token, token, uint32_t{0}));
  REQUIRE(cache.attend(second, {.queries = queries, .results = results, .sequences = {0}, .after = {{prompt, 0}}}));
  REQUIRE(prompt.append(second, token, token, uint32_t{0}));
  REQUIRE(second.commit());
  REQUIRE(prompt.attend(third, queries, results, {}, uint32_t{0}));
  EXPECT_ERROR(prompt.append(third, token, token, uint32_t{0}), {.what = "has already read the sequence"});
}

TEST(AttentionCachePrefix, RefusesWhatItCannotServe) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = attendedDescriptor(8);
  AttentionCache cache = makeCache(device, descriptor), prompt = makeCache(device, descriptor);
  descriptor.kvHeads = 1;
  AttentionCache other = makeCache(device, descriptor);
  descriptor = attendedDescriptor(8);
  descriptor.slidingWindow = SlidingWindow{.window = 4, .maxRows = 1};
  AttentionCache sliding = makeCache(device, descriptor);
  CommandEncoder first(device);
  const Tensor token = tokens(device, 1, kAttendedHeads, kAttendedDim);
  for (AttentionCache* each : {&cache, &prompt, &sliding}) REQUIRE(each->append(first, token, token, uint32_t{0}));
  REQUIRE(other.append(first, tokens(device, 1, 1, kAttendedDim), tokens(device, 1, 1, kAttendedDim), uint32_t{0}));
  REQUIRE(first.commit());
  const Tensor queries = tokens(device, 1, kQueryHeads, kAttendedDim),
               out = tokens(device, 1, kQueryHeads, kAttendedDim);
  struct Refused {
    std::vector<CachePrefix> after;
    std::string_view what;
    AttentionResults results;
    AttentionOptions options = {};
  };
  const Tensor sums = tokens(device, 1, kQueryHeads, kAttendedDim), stats = tokens(device, 1, kQueryHeads, 2);
  const Refused refused[] = {
      {{{prompt, 0}}, "attention over a cache does not give partials", {.partials = AttentionPartials{sums, stats}}},
      {{}, "attention over a cache does not give partials", {.partials = AttentionPartials{sums, stats}}},
      {{{prompt, 1}}, "a prefix holds no tokens", {.output = out}},
      {{{prompt, 3}}, "the sequence is not in the cache", {.output = out}},
      {{{cache, 0}}, "a sequence comes twice", {.output = out}},
      {{{prompt, 0}, {prompt, 0}}, "a sequence comes twice", {.output = out}},
      {{{other, 0}}, "a prefix is of another model", {.output = out}},
      {{{sliding, 0}}, "caches have different windows", {.output = out}},
      {{{prompt, 0}}, "a mask cannot be divided among caches", {.output = out}, {.mask = tokens(device, 1, 1, 9)}},
      {{{prompt, 0}},
       "pinned positions of one cache are not those of the whole sequence",
       {.output = out},
       {.window = 2, .windowSeesPinned = true}},
      {{{prompt, 0}}, "operands share memory", {.output = queries}},
      {{{prompt, 0}}, "a result does not match the queries", {.output = stats}},
      {std::vector<CachePrefix>(1024, CachePrefix{prompt, 0}), "there are too many prefixes", {.output = out}},
  };
  for (const auto& [after, what, results, options] : refused) {
    const Context context{std::string(what)};
    CommandEncoder encoder(device);
    const std::vector<uint32_t> all = {0};
    const auto attended = cache.attend(
        encoder, {.queries = queries, .results = results, .options = options, .sequences = all, .after = after});
    EXPECT(!attended && attended.error().what == what);
    EXPECT(!attended && attended.error().op == "AttentionCache.attend");
    const auto appended = cache.appendAndAttend(encoder, {.queries = queries,
                                                          .keys = token,
                                                          .values = token,
                                                          .results = results,
                                                          .options = options,
                                                          .sequences = {0},
                                                          .after = after});
    EXPECT(!appended && appended.error().what == what);
    EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  }
}

// Rows without tokens of their own would stand inside the prefix.
TEST(AttentionCachePrefix, RowsAreTokensOfTheConversation) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, attendedDescriptor(8)), prompt = makeCache(device, attendedDescriptor(8));
  const Tensor token = tokens(device, 1, kAttendedHeads, kAttendedDim);
  CommandEncoder first(device);
  for (AttentionCache* each : {&cache, &prompt}) REQUIRE(each->append(first, token, token, uint32_t{0}));
  REQUIRE(first.commit());
  const Tensor queries = tokens(device, 3, kQueryHeads, kAttendedDim),
               out = tokens(device, 3, kQueryHeads, kAttendedDim);
  CommandEncoder encoder(device);
  const std::vector<uint32_t> all = {0}, rows = {3};
  EXPECT_ERROR(cache.attend(encoder, {.queries = queries,
                                      .results = {.output = out},
                                      .sequences = all,
                                      .rowCounts = rows,
                                      .after = {{prompt, 0}}}),
               {.op = "AttentionCache.attend",
                .what = "a sequence has fewer positions than queries",
                .got = "3 rows of sequence 0, which has 1 position"});
}

}  // namespace mnk::test
