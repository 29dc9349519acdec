// Calls that are easily made in the wrong way: without a sequence, in the wrong order, or rotated elsewhere.
#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

using Body = std::function<Result<void>(CommandEncoder&)>;

// Encodes and commits.
Result<Completion> commit(const std::shared_ptr<Device>& device, const Body& body) {
  CommandEncoder encoder(device);
  if (auto encoded = body(encoder); !encoded) return encoded.error();
  return encoder.commit();
}

Result<Completion> commitAll(const std::shared_ptr<Device>& device, std::initializer_list<const Body*> calls) {
  return commit(device, [&](CommandEncoder& encoder) -> Result<void> {
    for (const Body* call : calls) {
      if (auto done = (*call)(encoder); !done) return done;
    }
    return {};
  });
}

AttentionCacheDescriptor attendable(uint32_t sequences) {
  return {.kvHeads = 2, .headDim = 64, .capacity = 16, .sequences = sequences, .dtype = DType::f32};
}

// Tokens of a cache that can attend, which serve as queries, keys and values.
Tensor rows(const std::shared_ptr<Device>& device, uint64_t count) {
  return tokens(device, count, 2, 64);
}

const ExpectedError kUnnamed{.what = "the call does not say which sequence of the cache it is for",
                             .got = "no sequence, and a cache of 2 sequences",
                             .expected = "a sequence from 0 to 1, or a list",
                             .fix = "Name the sequence, or list the sequences of the rows."};

}  // namespace

TEST(AttentionCacheCall, ACacheOfSeveralSequencesWantsOneNamed) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = attendable(2);
  descriptor.quantized.emplace();
  AttentionCache cache = makeCache(device, descriptor), only = makeCache(device, attendable(1));
  const Tensor one = rows(device, 1), out = rows(device, 1);
  for (const uint32_t sequence : {0u, 1u}) {
    REQUIRE(commit(device, [&](CommandEncoder& encoder) { return cache.append(encoder, one, one, sequence); }));
  }
  const std::tuple<std::string_view, Body> calls[] = {
      {"AttentionCache.append", [&](auto& e) { return cache.append(e, one, one); }},
      {"AttentionCache.append",
       [&](auto& e) {
         return cache.append(e, {.keys = one, .values = one, .sequences = {kOnlySequence}, .rowCounts = {{1}}});
       }},
      {"AttentionCache.attend", [&](auto& e) { return cache.attend(e, one, {.output = out}); }},
      {"AttentionCache.appendAndAttend",
       [&](auto& e) {
         return cache.appendAndAttend(e, {.queries = one, .keys = one, .values = one, .results = {.output = out}});
       }},
      {"AttentionCache.dequantize", [&](auto& e) { return cache.dequantize(e, out, {}, 0); }},
      {"AttentionCache", [&](auto&) { return cache.truncate(0); }},
      {"AttentionCache.nextPositions",
       [&](auto& e) { return e.encode(MultiRoPE{.queries = one, .positions = cache.nextPositions()}); }}};
  for (const auto& [name, call] : calls) {
    ExpectedError expected = kUnnamed;
    expected.op = name;
    EXPECT_ERROR(commit(device, call), (expected));
  }
  EXPECT_ERROR(cache.nextPosition(), (kUnnamed));
  EXPECT_ERROR(cache.count(), (kUnnamed));
  EXPECT_ERROR(cache.nextPosition(7), {.what = "the sequence is not in the cache", .got = "sequence 7"});
  EXPECT_ERROR(cache.count(2), {.what = "the sequence is not in the cache", .got = "sequence 2"});
  EXPECT(cache.isSuspect(2) && !cache.isSuspect(1) && !cache.isSuspect());
  for (const uint32_t sequence : {0u, 1u}) EXPECT_EQ(*cache.nextPosition(sequence), 1u);
  REQUIRE(commit(device, [&](CommandEncoder& encoder) { return only.append(encoder, one, one); }));
  EXPECT_EQ(*only.nextPosition(), 1u);
}

TEST(AttentionCacheCall, AttentionNeedsTokens) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, attendable(2));
  const Tensor one = rows(device, 1), two = rows(device, 2), out = rows(device, 1), outs = rows(device, 2);
  const ExpectedError expected{.op = "AttentionCache.attend",
                               .what = "a sequence has fewer positions than queries",
                               .got = "1 row of sequence 1, which has 0 positions",
                               .expected = "rows of tokens that were appended",
                               .fix = "Append keys and values of the queries' tokens first."};
  REQUIRE(commit(device, [&](CommandEncoder& encoder) { return cache.append(encoder, one, one, 0); }));
  const std::vector<uint32_t> both = {0, 1};
  EXPECT_ERROR(commit(device, [&](auto& e) { return cache.attend(e, one, {.output = out}, {}, 1); }), (expected));
  EXPECT_ERROR(commit(device,
                      [&](auto& e) {
                        return cache.attend(e, {.queries = two, .results = {.output = outs}, .sequences = both});
                      }),
               (expected));
  EXPECT_ERROR(commit(device, [&](auto& e) { return cache.attend(e, one, {.output = out}, {.isCausal = false}, 1); }),
               (expected));
}

TEST(AttentionCacheCall, AnAppendComesBeforeItsAttention) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, attendable(2));
  const Tensor one = rows(device, 1), out = rows(device, 1);
  const Body append = [&](auto& e) { return cache.append(e, one, one, 0); };
  const Body listed = [&](auto& e) {
    return cache.append(e, {.keys = one, .values = one, .sequences = {0}, .rowCounts = {{1}}});
  };
  const Body other = [&](auto& e) { return cache.append(e, one, one, 1); };
  const Body attend = [&](auto& e) { return cache.attend(e, one, {.output = out}, {}, 0); };
  const Body nonCausal = [&](auto& e) { return cache.attend(e, one, {.output = out}, {.isCausal = false}, 0); };
  const Body fused = [&](auto& e) {
    return cache.appendAndAttend(
        e, {.queries = one, .keys = one, .values = one, .results = {.output = out}, .sequences = {0}});
  };
  const auto encode = [&](std::initializer_list<const Body*> calls) { return commitAll(device, calls); };
  REQUIRE(encode({&append}));
  const ExpectedError expected{
      .what = "causal attention of this step has already read the sequence, without these tokens",
      .got = "attention, then an append to sequence 0",
      .expected = "the append before the attention of its tokens",
      .fix = "Append first, then attend; or append in another step."};
  for (const Body* late : {&append, &listed, &fused}) EXPECT_ERROR(encode({&attend, late}), (expected));
  EXPECT_EQ(*cache.nextPosition(0), 1u);
  REQUIRE(encode({&attend, &other}));
  REQUIRE(encode({&nonCausal, &append}));
  REQUIRE(encode({&append, &attend, &attend, &append, &attend}));
  REQUIRE(encode({&fused, &attend, &append}));
  const Body copy = [&](auto& e) { return cache.copy(e, 1, 0); };
  REQUIRE(encode({&copy, &attend, &append}));
  REQUIRE(encode({&attend, &copy, &append}));
  EXPECT_ERROR(RecordedStep::record(device,
                                    [&](CommandEncoder& encoder) -> Result<void> {
                                      if (auto done = attend(encoder); !done) return done;
                                      return append(encoder);
                                    }),
               (expected));
}

// Queries that are rotated after the append would get the position of the token after theirs.
TEST(AttentionCacheCall, TokensRotatedByNextPositionsAreAppended) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, attendable(2));
  const Tensor two = rows(device, 2), out = rows(device, 2);
  const Body rotate = [&](auto& e) {
    return e.encode(MultiRoPE{.queries = two, .positions = cache.nextPositions({0})});
  };
  const Body rotateBoth = [&](auto& e) {
    return e.encode(MultiRoPE{.queries = two, .positions = cache.nextPositions({0, 1})});
  };
  const Body project = [&](auto& e) { return e.dispatch(fakeDispatch("project", {out}, {two})); };
  const Body append = [&](auto& e) { return cache.append(e, two, two, 0); };
  const Body appendBoth = [&](auto& e) { return cache.append(e, {.keys = two, .values = two, .sequences = {0, 1}}); };
  const auto encode = [&](std::initializer_list<const Body*> calls) { return commitAll(device, calls); };
  ExpectedError expected{.op = "AttentionCache",
                         .what = "the step rotates tokens by the cache's next positions and does not append them",
                         .got = "rotation up to position 2, and 0 positions of sequence 0",
                         .expected = "an append of the rotated tokens, after their rotation and in the same step",
                         .fix =
                             "Append the rotated keys to the cache whose positions they follow, after their rotation; "
                             "or pass positions as numbers."};
  EXPECT_ERROR(encode({&rotate}), (expected));
  expected.got = "rotation up to position 4, and 2 positions of sequence 0";
  EXPECT_ERROR(encode({&append, &rotate}), (expected));
  EXPECT_ERROR(encode({&rotate, &append, &project, &rotate}), (expected));
  expected.got = "rotation up to position 1, and 0 positions of sequence 1";
  const Body appendFirst = [&](auto& e) {
    return cache.append(e, REQUIRE(two.slice(0, 1)), REQUIRE(two.slice(0, 1)), 0);
  };
  EXPECT_ERROR(encode({&rotateBoth, &appendFirst}), (expected));
  // Before a copy that moves where they go.
  const Body copy = [&](auto& e) { return cache.copy(e, 1, 0); };
  expected.op = "AttentionCache.copy";
  expected.got = "rotation up to position 2, and 0 positions of sequence 0";
  EXPECT_ERROR(encode({&rotate, &copy, &append}), (expected));
  REQUIRE(encode({&rotate, &append, &copy}));
  EXPECT_EQ(*cache.nextPosition(0), 0u);
  REQUIRE(encode({&rotate, &append, &project, &rotate, &append}));
  REQUIRE(encode({&rotateBoth, &appendBoth}));
  EXPECT_EQ(*cache.nextPosition(0), 5u);
  EXPECT_EQ(*cache.nextPosition(1), 1u);
  // A refused op takes no part.
  const Tensor odd = tokens(device, 2, 2, 63);
  CommandEncoder encoder(device);
  EXPECT(!encoder.encode(MultiRoPE{.queries = odd, .positions = cache.nextPositions({0})}));
  REQUIRE(encoder.encode(MultiRoPE{.queries = two, .positions = 3}));
  REQUIRE(encoder.commit());
}

TEST(AttentionCacheCall, NextPositionsAreThoseOfTheAppend) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, attendable(2));
  const Tensor two = rows(device, 2), others = rows(device, 2);
  CommandEncoder late(device);
  REQUIRE(late.encode(MultiRoPE{.queries = two, .positions = cache.nextPositions({1})}));
  REQUIRE(commit(device, [&](CommandEncoder& encoder) { return cache.append(encoder, others, others, 1); }));
  REQUIRE(cache.append(late, two, two, 1));
  const auto refused = late.commit();
  EXPECT_ERROR(refused, {.what = "the cache was changed while this encoder recorded",
                         .got = "sequence 1 at position 2",
                         .expected = "position 0, where the encoder began"});
  EXPECT(!refused && refused.error().retryable);
  // A reset in between makes other positions, whenever the tokens are appended.
  for (const bool appendsFirst : {true, false}) {
    REQUIRE(commit(device, [&](CommandEncoder& encoder) { return cache.append(encoder, two, two, 0); }));
    CommandEncoder again(device);
    REQUIRE(again.encode(MultiRoPE{.queries = two, .positions = cache.nextPositions({0})}));
    if (appendsFirst) REQUIRE(cache.append(again, two, two, 0));
    REQUIRE(cache.reset(0));
    if (!appendsFirst) REQUIRE(cache.append(again, two, two, 0));
    const auto moved = again.commit();
    EXPECT_ERROR(moved, {.what = "the cache was changed while this encoder recorded"});
    EXPECT(!moved && moved.error().retryable);
  }
  // Too many tokens of several sequences for a list; views of other sequences than listed.
  CommandEncoder encoder(device);
  EXPECT_ERROR(
      encoder.encode(MultiRoPE{.queries = rows(device, 1100), .positions = cache.nextPositions({0, 1}, {{1000, 100}})}),
      {.op = "AttentionCache.nextPositions",
       .what = "there are too many tokens of several sequences",
       .got = "1100 tokens",
       .expected = "at most 1024 tokens",
       .fix = "Rotate fewer tokens at a time, or pass `rotary` to appendAndAttend."});
  EXPECT_ERROR(encoder.encode(MultiRoPE{.queries = two, .positions = cache.nextPositions({0, 1, 0})}),
               {.op = "AttentionCache.nextPositions", .what = "the rows do not match the listed sequences"});
  EXPECT_ERROR(encoder.encode(MultiRoPE{.queries = two, .positions = cache.nextPositions({0, 2})}),
               {.op = "AttentionCache.nextPositions", .what = "the sequence is not in the cache"});
  EXPECT_ERROR(encoder.encode(MultiRoPE{.queries = two, .positions = std::shared_ptr<const PositionSource>()}),
               {.op = "MultiRoPE", .what = "a position is out of range"});
  EXPECT_ERROR(plan(MultiRoPE{.queries = two, .positions = cache.nextPositions({0, 1})}),
               {.op = "MultiRoPE", .what = "a plan cannot follow a cache"});
}

}  // namespace mnk::test
