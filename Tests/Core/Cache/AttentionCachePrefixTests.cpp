// Conversations that share prompts in other caches: their rotary positions, what is read, and what is refused.
// AttentionCacheProperty checks what rows see of prefixes.
#include <numeric>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

// Rotary positions of conversations follow those of the prompt, in plain and in recorded steps.
TEST(AttentionCachePrefix, RotatesByPositionsAfterThePrefix) {
  const auto device = devicesUnderTest().front().device;
  AttentionCacheDescriptor descriptor = attendedDescriptor(1400);
  descriptor.whenFull = KVWrap::linear;
  AttentionFixture fixture(device, descriptor);
  AttentionCache prompts = makeCache(device, descriptor), cache = makeCache(device, descriptor), whole = fixture.cache;
  const auto someStep = [&](std::vector<uint32_t> sequences, std::vector<uint32_t> counts) {
    const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
    const auto tokens = [&] {
      return fixture.tensor(smallNumbers(fixture.random, total * kAttendedHeads * kAttendedDim),
                            {total, kAttendedHeads, kAttendedDim});
    };
    return CacheStep{.queries = fixture.someQueries(total),
                     .keys = tokens(),
                     .values = tokens(),
                     .rotary = RotaryStep{.embedding = {.base = 100}},
                     .results = {.output = fixture.zeros({total, kQueryHeads, kAttendedDim})},
                     .options = {.window = 32},
                     .sequences = std::move(sequences),
                     .rowCounts = std::move(counts)};
  };
  const auto afterPrompt = [&](CacheStep step) {
    step.results = {.output = fixture.zeros({step.queries.resolved().tokens, kQueryHeads, kAttendedDim})};
    step.after = {{prompts, 1}};
    return step;
  };
  const auto expectAlike = [](const CacheStep& got, const CacheStep& expected) {
    const std::vector<float> floats = floatsOf(*expected.results.output);
    EXPECT(largestDifference(floatsOf(*got.results.output), {floats.begin(), floats.end()}) < kF32Sums);
  };
  CacheStep prompt = someStep({1}, {17});
  REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
    REQUIRE(prompts.appendAndAttend(encoder, prompt));
    for (const uint32_t sequence : {0u, 1u, 2u}) {
      prompt.sequences = {sequence};
      REQUIRE(whole.appendAndAttend(encoder, prompt));
    }
    return {};
  }));
  // Few tokens at once; one conversation; and more than positions can be listed for.
  for (const CacheStep& expected : {someStep({0, 1, 2}, {3, 1, 2}), someStep({1}, {2}), someStep({2, 0}, {1, 1}),
                                    someStep({0, 2, 1}, {1030, 2, 1})}) {
    const CacheStep got = afterPrompt(expected);
    REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
      REQUIRE(whole.appendAndAttend(encoder, expected));
      return cache.appendAndAttend(encoder, got);
    }));
    expectAlike(got, expected);
  }
  EXPECT_EQ(REQUIRE(cache.nextPosition(1)), 4u);
  EXPECT_EQ(REQUIRE(whole.nextPosition(1)), 21u);
  EXPECT_EQ(REQUIRE(prompts.nextPosition(1)), 17u);
  const CacheStep expected = someStep({0}, {1}), got = afterPrompt(expected);
  RecordedStep recorded = REQUIRE(RecordedStep::record(device, [&](CommandEncoder& encoder) -> Result<void> {
    if (auto ok = whole.appendAndAttend(encoder, expected); !ok) return ok;
    return cache.appendAndAttend(encoder, got);
  }));
  for (int run = 0; run < 3; ++run) {
    REQUIRE(REQUIRE(recorded.run()).wait());
    expectAlike(got, expected);
  }
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
  const uint64_t promptBytes = 2 * 40 * kAttendedHeads * kAttendedDim * sizeof(float);
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
  RefusedCalls no;
  no(prompt.append(third, token, token, uint32_t{0}));
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
    AttentionResults results;
    AttentionOptions options = {};
  };
  const Tensor sums = tokens(device, 1, kQueryHeads, kAttendedDim), stats = tokens(device, 1, kQueryHeads, 2);
  const AttentionResults partials{.partials = AttentionPartials{sums, stats}};
  const Refused refused[] = {{{{prompt, 0}}, partials},
                             {{}, partials},
                             {{{prompt, 1}}, {.output = out}},
                             {{{prompt, 3}}, {.output = out}},
                             {{{cache, 0}}, {.output = out}},
                             {{{prompt, 0}, {prompt, 0}}, {.output = out}},
                             {{{other, 0}}, {.output = out}},
                             {{{sliding, 0}}, {.output = out}},
                             {{{prompt, 0}}, {.output = out}, {.mask = tokens(device, 1, 1, 9)}},
                             {{{prompt, 0}}, {.output = out}, {.window = 2, .windowSeesPinned = true}},
                             {{{prompt, 0}}, {.output = queries}},
                             {{{prompt, 0}}, {.output = stats}},
                             {std::vector<CachePrefix>(1024, CachePrefix{prompt, 0}), {.output = out}}};
  RefusedCalls no;
  for (const auto& [after, results, options] : refused) {
    CommandEncoder encoder(device);
    CacheStep step{.queries = queries, .results = results, .options = options, .sequences = {0}, .after = after};
    const auto attended = cache.attend(encoder, step);
    no(attended);
    step.keys = step.values = token;
    const auto appended = cache.appendAndAttend(encoder, step);
    EXPECT(!attended && !appended && appended.error().what == attended.error().what);
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
  RefusedCalls no;
  no(cache.attend(
      encoder,
      {.queries = queries, .results = {.output = out}, .sequences = {0}, .rowCounts = {{3}}, .after = {{prompt, 0}}}));
}

}  // namespace mnk::test
