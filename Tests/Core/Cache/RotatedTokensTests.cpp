// Tokens that a step rotates by the next positions of a cache and then uses at other positions.
#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

using Body = std::function<Result<void>(CommandEncoder&)>;

// Two sequences, with 2 and 1 tokens, and tokens for the next step.
struct Fixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  AttentionCache cache = make(), other = make();
  Tensor queries = rows(2), keys = rows(2), out = rows(2);

  Fixture() { REQUIRE(run({append(rows(2), 0), append(rows(1), 1)})); }
  AttentionCache make() const {
    return makeCache(device, {.kvHeads = 2, .headDim = 64, .capacity = 16, .sequences = 2, .dtype = DType::f32});
  }
  Tensor rows(uint64_t count) const { return tokens(device, count, 2, 64); }
  static Tensor row(const Tensor& of, uint64_t index) { return REQUIRE(of.slice(index, 1)); }

  Body append(const Tensor& tokens, uint32_t sequence) {
    return [=, this](auto& e) { return cache.append(e, tokens, tokens, sequence); };
  }
  Body append(const Tensor& tokens, std::vector<uint32_t> sequences) {
    return [=, this](auto& e) { return cache.append(e, {.keys = tokens, .values = tokens, .sequences = sequences}); };
  }
  Body attend(const Tensor& tokens, uint32_t sequence, const AttentionOptions& options = {}) {
    return [=, this](auto& e) {
      return cache.attend(e, tokens, {.output = REQUIRE(out.slice(0, tokens.shape()[0]))}, options, sequence);
    };
  }
  Body rotate(const Tensor& tokens, std::vector<uint32_t> sequences) {
    return [=, this](auto& e) {
      return e.encode(MultiRoPE{.queries = tokens, .positions = cache.nextPositions(sequences)});
    };
  }
  Body rotateBoth(std::vector<uint32_t> sequences) {
    return [=, this](auto& e) {
      return e.encode(MultiRoPE{.queries = queries, .keys = keys, .positions = cache.nextPositions(sequences)});
    };
  }
  Body step(std::optional<RotaryStep> rotary, std::vector<uint32_t> sequences, std::vector<CachePrefix> after = {}) {
    return [=, this](auto& e) {
      return cache.appendAndAttend(e, {.queries = queries,
                                       .keys = keys,
                                       .values = keys,
                                       .rotary = rotary,
                                       .results = {.output = out},
                                       .sequences = sequences,
                                       .after = after});
    };
  }
  Result<void> run(const std::vector<Body>& calls) {
    CommandEncoder encoder(device);
    for (const Body& call : calls) {
      if (auto done = call(encoder); !done) return done;
    }
    if (auto committed = encoder.commit(); !committed) return committed.error();
    return {};
  }
};

ExpectedError misplaced(std::string_view tokens, std::string_view got) {
  const auto what = tokens == "keys"      ? "keys were rotated for another token"
                    : tokens == "queries" ? "queries were rotated for another token"
                                          : "tokens were rotated for another token";
  return {.what = what,
          .got = got,
          .fix =
              "Rotate, append and attend in one step, with the same rows in the same order and layout, before the next "
              "tokens are rotated. Each layer appends its own keys, and caches of several layers need the same next "
              "position: truncate them together."};
}

const ExpectedError kUnrotated{.op = "AttentionCache.append",
                               .what = "the step rotates tokens by the cache's next positions and uses other keys",
                               .got = "keys that were not rotated, for position 2 of sequence 0",
                               .expected = "the keys that were rotated for position 2 of sequence 0",
                               .fix =
                                   "Pass the keys that the rotation wrote, all heads of them; or rotate queries and "
                                   "keys by positions in a tensor."};
const ExpectedError kUnrotatedQueries{
    .op = "AttentionCache.attend",
    .what = "the step rotates tokens by the cache's next positions and uses other queries"};
const ExpectedError kTwice{.what = "tokens are rotated twice"};

}  // namespace

TEST(RotatedTokens, AnAppendTakesThem) {
  Fixture f;
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(f.queries, 0)}));
  Fixture g;
  EXPECT_ERROR(g.run({g.rotateBoth({0}), g.append(g.rows(2), 0)}), (kUnrotated));
  // Only some of the appended ones were rotated.
  const Tensor three = g.rows(3);
  ExpectedError expected = kUnrotated;
  expected.got = "keys that were not rotated, for position 2 of sequence 0";
  EXPECT_ERROR(g.run({g.rotate(REQUIRE(three.slice(1, 2)), {0}), g.append(three, 0)}), (expected));
  expected.got = "keys that were not rotated, for position 4 of sequence 0";
  expected.expected = "the keys that were rotated for position 4 of sequence 0";
  EXPECT_ERROR(g.run({g.rotate(REQUIRE(three.slice(0, 2)), {0}), g.append(three, 0)}), (expected));
  // Out of place, the source stays as it was.
  const Tensor into = g.rows(2);
  const Body apart = [&](auto& e) {
    return e.encode(MultiRoPE{.queries = g.keys, .rotatedQueries = into, .positions = g.cache.nextPositions({0})});
  };
  EXPECT_ERROR(g.run({apart, g.append(g.keys, 0)}), (kUnrotated));
  REQUIRE(g.run({apart, g.append(into, 0)}));
  EXPECT_ERROR(RecordedStep::record(g.device,
                                    [&](CommandEncoder& encoder) -> Result<void> {
                                      if (auto done = apart(encoder); !done) return done;
                                      return g.cache.append(encoder, g.keys, g.keys, 0);
                                    }),
               {.what = kUnrotated.what, .got = "keys that were not rotated, for position 4 of sequence 0"});
}

// Every head counts, wherever it lies.
TEST(RotatedTokens, AllHeadsAreRotated) {
  Fixture f;
  const auto view = [](const Tensor& of, uint64_t firstHead, uint64_t heads, uint64_t tokens = 2) {
    return HeadsView(of, {.tokens = tokens,
                          .heads = heads,
                          .headDim = 64,
                          .offset = firstHead * 64,
                          .tokenStride = 128,
                          .headStride = 64});
  };
  const auto rotate = [&](const HeadsView& rows) -> Body {
    return [=, &f](auto& e) { return e.encode(MultiRoPE{.queries = rows, .positions = f.cache.nextPositions({0})}); };
  };
  EXPECT_ERROR(f.run({rotate(view(f.keys, 0, 1)), f.append(f.keys, 0)}), (kUnrotated));
  EXPECT_ERROR(f.run({rotate(view(f.keys, 1, 1)), f.append(f.keys, 0)}), (kUnrotated));
  EXPECT_ERROR(f.run({rotate(view(f.keys, 1, 1)), rotate(view(f.keys, 0, 2)), f.append(f.keys, 0)}), (kTwice));
  REQUIRE(f.run({rotate(view(f.keys, 0, 1)), rotate(view(f.keys, 1, 1)), f.append(f.keys, 0)}));
  // As [heads, tokens] of a tensor that is [tokens, heads].
  const HeadsView transposed(f.keys, {.tokens = 2, .heads = 2, .headDim = 64, .tokenStride = 64, .headStride = 128});
  EXPECT_ERROR(f.run({rotate(transposed), f.append(f.keys, 0)}), {.what = "keys were rotated for another token"});
  // Queries and keys of a fused projection as one view.
  const Tensor fused = tokens(f.device, 2, 4, 64);
  const auto columns = [&](uint64_t firstHead) {
    return HeadsView(
        fused,
        {.tokens = 2, .heads = 2, .headDim = 64, .offset = firstHead * 64, .tokenStride = 256, .headStride = 64});
  };
  const auto appendColumns = [&](uint64_t firstHead) -> Body {
    return [=, &f](auto& e) { return f.cache.append(e, columns(firstHead), columns(firstHead), 0); };
  };
  const auto attendColumns = [&](uint64_t firstHead) -> Body {
    return [=, &f](auto& e) { return f.cache.attend(e, columns(firstHead), {.output = f.out}, {}, 0); };
  };
  REQUIRE(f.run({rotate(HeadsView(fused)), appendColumns(2), attendColumns(0)}));
  REQUIRE(f.run({rotate(columns(0)), rotate(columns(2)), appendColumns(2), attendColumns(0)}));
}

TEST(RotatedTokens, TheOrderOfRowsIsThatOfTheRotation) {
  Fixture f;
  const Tensor first = f.row(f.keys, 0), second = f.row(f.keys, 1);
  const auto at = [](int rotated, int sequence, int used, int of) {
    return fmt::format("a rotation for position {} of sequence {}, and a use for position {} of sequence {}", rotated,
                       sequence, used, of);
  };
  // Two tokens are rotated before the first is appended.
  EXPECT_ERROR(f.run({f.rotate(first, {0}), f.rotate(second, {0}), f.append(first, 0), f.append(second, 0)}),
               (misplaced("keys", at(2, 0, 3, 0))));
  // Slices in another order, and twice.
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(second, 0), f.append(first, 0)}),
               (misplaced("keys", at(3, 0, 2, 0))));
  EXPECT_ERROR(f.run({f.rotate(first, {0}), f.append(first, 0), f.append(first, 0)}),
               (misplaced("keys", at(2, 0, 3, 0))));
  // Lists in another order, also where sequences are at the same position.
  EXPECT_ERROR(f.run({f.rotateBoth({0, 1}), f.append(f.keys, {1, 0})}), (misplaced("keys", at(2, 0, 1, 1))));
  EXPECT_ERROR(
      f.run({f.rotateBoth({0, 1}), f.append(f.keys, {0, 1}),
             [&](auto& e) {
               return f.cache.attend(e, {.queries = f.queries, .results = {.output = f.out}, .sequences = {1, 0}});
             }}),
      (misplaced("queries", at(2, 0, 1, 1))));
  EXPECT_ERROR(f.run({f.step(RotaryStep{.positions = f.cache.nextPositions({0, 1})}, {1, 0})}),
               (misplaced("tokens", "a rotation for position 2, and a use for position 1 of sequence 1")));
  EXPECT_ERROR(f.run({f.step(RotaryStep{.positions = f.other.nextPositions({0, 1})}, {0, 1})}),
               (misplaced("tokens", "a rotation for position 0, and a use for position 2 of sequence 0")));
  const Body elsewhere = [&](auto& e) { return f.other.append(e, f.keys, f.keys, 0); };
  // In another cache, which has other positions.
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), elsewhere}),
               (misplaced("keys",
                          "a rotation for position 2 of sequence 0 of another cache, and a use for position 0 "
                          "of sequence 0")));
  EXPECT_EQ(*f.cache.nextPosition(0), 2u);
  REQUIRE(f.run({f.rotateBoth({0}), f.append(first, 0), f.append(second, 0)}));
  REQUIRE(f.run({f.rotateBoth({0, 1}), f.append(f.keys, {0, 1})}));
  REQUIRE(f.run({f.step(RotaryStep{.positions = f.cache.nextPositions({1, 0})}, {1, 0})}));
  // A cache at the same positions, such as that of the next layer, can have them too.
  REQUIRE(f.run({[&](auto& e) { return f.cache.copy(e, 0, f.other, 0); }}));
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), elsewhere}));
  // But not beside other rows that the step rotates for it.
  const Tensor ofOther = f.rows(2);
  const Body rotateOther = [&](auto& e) {
    return e.encode(MultiRoPE{.queries = ofOther, .positions = f.other.nextPositions({0})});
  };
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), rotateOther, elsewhere}),
               {.what = "keys were rotated for another token"});
  // Nor what has replaced them since, unrotated.
  const Tensor projected = f.rows(2);
  const Body project = [&](auto& e) { return e.dispatch(fakeDispatch("project", {projected}, {f.keys})); };
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), project, rotateOther, elsewhere}),
               {.what = kUnrotated.what});
  // Queries can attend over both.
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), rotateOther,
                 [&](auto& e) { return f.other.append(e, ofOther, ofOther, 0); }, f.attend(f.queries, 0),
                 [&](auto& e) { return f.other.attend(e, f.queries, {.output = f.out}, {}, 0); }}));
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), rotateOther,
                 [&](auto& e) { return f.other.append(e, ofOther, ofOther, 0); }}));
  f.cache.reset();
  EXPECT_ERROR(f.run({f.rotateBoth({0, 1}), f.append(f.keys, {1, 0})}), (misplaced("keys", at(0, 0, 0, 1))));
}

TEST(RotatedTokens, QueriesAttendAtTheirPositions) {
  Fixture f;
  const Tensor three = f.rows(3), one = f.row(f.queries, 0);
  // One query beside three keys would be that of the first, and attends as that of the last.
  EXPECT_ERROR(f.run({f.rotate(one, {0}), f.rotate(three, {0}), f.append(three, 0), f.attend(one, 0)}),
               {.what = "queries were rotated for another token"});
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(one, 0)}),
               {.what = "queries were rotated for another token"});
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(f.row(f.queries, 1), 0)}));
  // Queries that were not rotated beside keys that were, unless a dispatch of the step wrote them.
  EXPECT_ERROR(f.run({f.rotate(f.keys, {0}), f.append(f.keys, 0), f.attend(f.queries, 0)}), (kUnrotatedQueries));
  EXPECT_ERROR(f.run({f.rotate(f.keys, {0}), f.step({}, {0})}), {.what = kUnrotatedQueries.what});
  const Body byNumber = [&](auto& e) { return e.encode(MultiRoPE{.queries = f.queries, .positions = 4}); };
  REQUIRE(f.run({byNumber, f.rotate(f.keys, {0}), f.append(f.keys, 0), f.attend(f.queries, 0)}));
  const Body apart = [&](auto& e) {
    return e.encode(MultiRoPE{
        .queries = f.queries, .keys = f.keys, .rotatedQueries = f.out, .positions = f.cache.nextPositions({1})});
  };
  const Body attendSource = [&](auto& e) { return f.cache.attend(e, f.queries, {.output = f.rows(2)}, {}, 1); };
  EXPECT_ERROR(f.run({apart, f.append(f.keys, 1), attendSource}), (kUnrotatedQueries));
  // Rows that all see all tokens have no positions.
  REQUIRE(f.run({f.rotate(f.keys, {1}), f.append(f.keys, 1), f.attend(f.row(f.keys, 0), 1, {.isCausal = false})}));
  // The last part of the queries of a latent cache.
  AttentionCache latent =
      makeCache(f.device, {.kvHeads = 1, .headDim = 64, .capacity = 8, .dtype = DType::f32, .latentDim = 512});
  const Tensor wide = tokens(f.device, 2, 2, 576), results = tokens(f.device, 1, 2, 512);
  const Tensor parts = tokens(f.device, 2, 1, 64), latents = tokens(f.device, 2, 1, 512);
  for (const auto& [heads, offset, row, what] :
       {std::tuple{2, 512, 0, "queries were rotated for another token"},
        std::tuple{1, 512, 1, kUnrotatedQueries.what.data()}, std::tuple{2, 512, 1, ""},
        std::tuple{2, 0, 1, "the latent part of queries was rotated"},
        std::tuple{2, 448, 1, "the latent part of queries was rotated"}}) {
    const HeadsView last(wide, {.tokens = 2,
                                .heads = static_cast<uint64_t>(heads),
                                .headDim = 64,
                                .offset = static_cast<uint64_t>(offset),
                                .tokenStride = 1152,
                                .headStride = 576});
    CommandEncoder encoder(f.device);
    REQUIRE(encoder.encode(MultiRoPE{.queries = last, .keys = parts, .positions = latent.nextPositions()}));
    REQUIRE(latent.append(encoder, parts, latents));
    const auto attended =
        latent.attend(encoder, f.row(wide, static_cast<uint64_t>(row)), {.output = results}, {.scale = 0.1f});
    if (*what == 0) {
      REQUIRE(attended);
    } else {
      EXPECT_ERROR(attended, {.what = what});
    }
  }
}

TEST(RotatedTokens, HaveTheHeadsOfTheirRotation) {
  Fixture f;
  const ExpectedError expected{.op = "AttentionCache.append",
                               .what = "keys were rotated with other heads than they are used with",
                               .got = "a head of keys that was not rotated as one vector",
                               .expected = "a rotation of the same heads, or of a part of each",
                               .fix = "Rotate a view that has the heads and the head dim of the keys."};
  const auto rotated = [&](HeadsView::Strides strides) -> Body {
    return [&, strides](auto& e) {
      return e.encode(MultiRoPE{.queries = HeadsView(f.keys, strides), .positions = f.cache.nextPositions({0})});
    };
  };
  // One head of 128, four of 32, and heads that begin 16 elements too late.
  EXPECT_ERROR(f.run({rotated({.tokens = 2, .heads = 1, .headDim = 128, .tokenStride = 128}), f.append(f.keys, 0)}),
               (expected));
  const HeadsView::Strides four{.tokens = 2, .heads = 4, .headDim = 32, .tokenStride = 128, .headStride = 32};
  EXPECT_ERROR(f.run({rotated(four), f.append(f.keys, 0)}), (expected));
  const HeadsView::Strides late{
      .tokens = 2, .heads = 1, .headDim = 64, .offset = 16, .tokenStride = 128, .headStride = 64};
  EXPECT_ERROR(f.run({rotated(late), f.append(f.keys, 0)}), (expected));
  // A part of each head.
  const HeadsView::Strides part{
      .tokens = 2, .heads = 2, .headDim = 32, .offset = 32, .tokenStride = 128, .headStride = 64};
  REQUIRE(f.run({rotated(part), f.append(f.keys, 0)}));
}

TEST(RotatedTokens, AreNotRotatedTwice) {
  Fixture f;
  ExpectedError expected{
      .op = "AttentionCache.appendAndAttend",
      .what = "tokens are rotated twice",
      .got = "tokens that the step has rotated for position 2 of sequence 0, and has not written since",
      .expected = "tokens that are not rotated",
      .fix = "Rotate queries and keys once, before the append or with it."};
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.step(RotaryStep{}, {0})}), (expected));
  expected.op = "AttentionCache.nextPositions";
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.rotate(f.keys, {0}), f.append(f.keys, 0)}), (expected));
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.rotate(f.row(f.keys, 1), {0}), f.append(f.keys, 0)}), (kTwice));
  EXPECT_ERROR(f.run({f.rotate(f.keys, {0}), f.rotateBoth({0}), f.append(f.keys, 0)}), (expected));
  EXPECT_ERROR(f.run({f.rotate(f.keys, {0}), f.append(f.keys, 0), f.rotate(f.keys, {0}), f.append(f.keys, 0)}),
               (expected));
  REQUIRE(f.run({f.rotateBoth({0}), f.step({}, {0})}));
  REQUIRE(f.run({f.step(RotaryStep{}, {0})}));
  // Back and forth.
  const Body back = [&](auto& e) {
    return e.encode(MultiRoPE{
        .queries = f.queries, .keys = f.keys, .positions = f.cache.nextPositions({1}), .rotary = {.isInverse = true}});
  };
  REQUIRE(f.run({f.rotateBoth({1}), back, f.rotateBoth({1}), f.append(f.keys, 1)}));
  EXPECT_ERROR(f.run({f.rotateBoth({1}), back, f.append(f.keys, 1)}), {.what = kUnrotated.what});
}

// Memory that the step writes again, as the keys of the next layer or conversation, holds other tokens.
TEST(RotatedTokens, OtherTokensInTheSameMemoryAreFree) {
  Fixture f;
  const Tensor raw = f.rows(2);
  // Writes keys, and reads others or the same.
  const Body project = [&](auto& e) { return e.dispatch(fakeDispatch("project", {raw}, {f.keys, f.queries})); };
  const Body normalize = [&](auto& e) { return e.dispatch(fakeDispatch("normalize", {f.keys}, {f.keys})); };
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), project, f.append(f.keys, 1)}));
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.append(f.keys, 1)}), {.what = "keys were rotated"});
  for (const uint32_t sequence : {0u, 1u}) {
    REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(f.queries, 0), project, f.rotateBoth({sequence}),
                   f.append(f.keys, sequence), f.attend(f.queries, sequence)}));
  }
  REQUIRE(f.run({f.rotateBoth({0}), normalize, f.append(f.keys, 0)}));
  // A projection after the rotation leaves nothing of it.
  EXPECT_ERROR(f.run({f.rotateBoth({1}), project, f.append(f.keys, 1)}), {.what = kUnrotated.what});
  // Keys that a kernel puts together from rotated and other parts.
  const Tensor whole = f.rows(2);
  REQUIRE(f.run({f.rotateBoth({1}),
                 [&](auto& e) {
                   return e.dispatch(fakeDispatch("join", {f.keys, raw}, {whole}));
                 },
                 f.append(whole, 1)}));
}

TEST(RotatedTokens, PositionsAfterPrefixesHaveOffsets) {
  Fixture f;
  const std::vector<CachePrefix> after{{f.other, 0}};
  REQUIRE(f.run({[&](auto& e) { return f.other.append(e, f.keys, f.keys, 0); }}));
  const Body attend = [&](auto& e) {
    return f.cache.attend(e, {.queries = f.queries, .results = {.output = f.out}, .sequences = {0}, .after = after});
  };
  const auto rotate = [&](int32_t offset) -> Body {
    return [=, &f](auto& e) {
      return e.encode(MultiRoPE{.queries = f.queries,
                                .keys = f.keys,
                                .positions = f.cache.nextPositions({0}),
                                .offsets = std::vector<int32_t>{offset}});
    };
  };
  ExpectedError expected{
      .op = "AttentionCache.attend",
      .what = "rotary positions that follow a cache do not count prefixes",
      .got = "rotation by the next positions of sequence 0, without offsets",
      .expected = "offsets of 2, or offsets in a tensor",
      .fix = "Rotate with offsets, the number of tokens in all prefixes; or pass `rotary` to appendAndAttend."};
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), attend}), (expected));
  expected.op = "AttentionCache.appendAndAttend";
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.step({}, {0}, after)}), (expected));
  expected.got = "an offset of 3 for sequence 0, and prefixes of 2 tokens";
  EXPECT_ERROR(f.run({rotate(3), f.step({}, {0}, after)}), (expected));
  REQUIRE(f.run({rotate(2), f.append(f.keys, 0), attend}));
  REQUIRE(f.run({rotate(2), f.step({}, {0}, after)}));
  REQUIRE(f.run({f.step(RotaryStep{}, {0}, after)}));

  // Each sequence has its own offset.
  const auto asTwo = [](const Tensor& rows) { return REQUIRE(rows.reshaped(REQUIRE(Shape::make({2, 1, 2, 64})))); };
  const auto rotateTwo = [&](std::vector<int32_t> offsets) -> Body {
    return [=, &f](auto& e) {
      return e.encode(MultiRoPE{.queries = asTwo(f.queries),
                                .keys = HeadsView(asTwo(f.keys)),
                                .positions = f.cache.nextPositions({0, 1}),
                                .offsets = offsets});
    };
  };
  const auto attendTo = [&](std::vector<uint32_t> sequences) -> Body {
    return [=, &f](auto& e) {
      const uint64_t count = sequences.size();
      return f.cache.attend(e, {.queries = REQUIRE(f.queries.slice(0, count)),
                                .results = {.output = REQUIRE(f.out.slice(0, count))},
                                .sequences = sequences,
                                .after = after});
    };
  };
  const Body append = f.append(f.keys, std::vector<uint32_t>{0, 1});
  expected.op = "AttentionCache.attend";
  expected.got = "an offset of 0 for sequence 1, and prefixes of 2 tokens";
  EXPECT_ERROR(f.run({rotateTwo({2, 0}), append, attendTo({0, 1})}), (expected));
  REQUIRE(f.run({rotateTwo({2, 0}), append, attendTo({0})}));
  REQUIRE(f.run({rotateTwo({2, 2}), append, attendTo({0, 1})}));
  // Rotations of the same sequence by different numbers.
  expected.got = "an offset of 3 for sequence 0, and prefixes of 2 tokens";
  EXPECT_ERROR(
      f.run({[&](auto& e) {
               return e.encode(MultiRoPE{
                   .queries = f.keys, .positions = f.cache.nextPositions({0}), .offsets = std::vector<int32_t>{3}});
             },
             [&](auto& e) {
               return e.encode(MultiRoPE{
                   .queries = f.queries, .positions = f.cache.nextPositions({0}), .offsets = std::vector<int32_t>{2}});
             },
             f.append(f.keys, 0), attend}),
      (expected));
}

TEST(RotatedTokens, QueriesAndKeysHaveOneEmbedding) {
  Fixture f;
  const auto rotate = [&](const Tensor& tokens, const RotaryEmbedding& rotary) -> Body {
    return [&f, tokens, rotary](auto& e) {
      return e.encode(MultiRoPE{.queries = tokens, .positions = f.cache.nextPositions({0}), .rotary = rotary});
    };
  };
  const RotaryEmbedding given{.base = 1e6f};
  const RotaryEmbedding::YaRN scaled{.originalContext = 1024, .attentionFactor = 2}, plain{.originalContext = 1024};
  const ExpectedError expected{.op = "AttentionCache.attend",
                               .what = "queries were rotated by another embedding than the step's keys",
                               .got = "queries of sequence 0 that another RotaryEmbedding rotated",
                               .expected = "one embedding for queries and keys",
                               .fix = "all of its options included"};
  for (const RotaryEmbedding& other :
       {RotaryEmbedding{}, RotaryEmbedding{.layout = RotaryEmbedding::Layout::interleavedPairs, .base = 1e6f},
        RotaryEmbedding{.base = 1e6f, .ropeDim = 32}, RotaryEmbedding{.base = 1e6f, .scale = 0.5f}}) {
    EXPECT_ERROR(f.run({rotate(f.queries, given), rotate(f.keys, other), f.append(f.keys, 0), f.attend(f.queries, 0)}),
                 (expected));
  }
  REQUIRE(f.run({rotate(f.queries, given), rotate(f.keys, given), f.append(f.keys, 0), f.attend(f.queries, 0)}));
  // Calls that rotate what they append.
  const Body withGiven = f.step(RotaryStep{.embedding = given}, {0}), withOther = f.step(RotaryStep{}, {0});
  const ExpectedError tokens{.op = "AttentionCache.appendAndAttend",
                             .what = "a step rotates tokens of a sequence by two embeddings"};
  EXPECT_ERROR(f.run({withGiven, withOther}), (tokens));
  EXPECT_ERROR(f.run({rotate(f.keys, given), f.append(f.keys, 0), withOther}), (tokens));
  REQUIRE(f.run({withGiven, withGiven}));
  REQUIRE(f.run({withGiven, f.step(RotaryStep{}, {1})}));
  REQUIRE(f.run({withGiven, [&](auto& e) { return f.cache.copy(e, 1, 0); }, withOther}));
  // A call that is refused appends nothing.
  const Tensor rotated = f.rows(2);
  const Body refused = [&](auto& e) -> Result<void> {
    EXPECT_ERROR(f.cache.appendAndAttend(e, {.queries = rotated,
                                             .keys = rotated,
                                             .values = rotated,
                                             .results = {.output = f.rows(1)},
                                             .sequences = {0}}),
                 {.what = "a result does not match the queries"});
    return {};
  };
  REQUIRE(f.run({rotate(rotated, given), refused, withOther}));
  // The factor of attention scales vectors and does not turn them.
  REQUIRE(f.run({rotate(f.queries, {.yarn = scaled}), rotate(f.keys, {.yarn = plain}), f.append(f.keys, 0),
                 f.attend(f.queries, 0)}));
}

TEST(RotatedTokens, AllTokensOfACacheAreRotatedInAStepOrNone) {
  Fixture f;
  const Tensor more = f.rows(2), three = f.rows(3);
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0)}));
  ExpectedError keys = kUnrotated;
  keys.got = "keys that were not rotated";
  keys.expected = "the keys that were rotated for";
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.append(more, 0)}), (keys));
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.append(more, 1)}), (keys));
  const Body rotatedStep = f.step(RotaryStep{}, {0});
  EXPECT_ERROR(f.run({rotatedStep, f.append(more, 0)}), (keys));
  EXPECT_ERROR(f.run({rotatedStep, f.attend(more, 0)}), {.op = "AttentionCache.attend", .what = "uses other queries"});
  REQUIRE(f.run(
      {rotatedStep, [&](auto& e) { return e.encode(MultiRoPE{.queries = more, .positions = 7}); }, f.attend(more, 0)}));
  REQUIRE(f.run({rotatedStep}));
  REQUIRE(f.run({f.append(more, 0), f.attend(more, 0)}));
}

}  // namespace mnk::test
