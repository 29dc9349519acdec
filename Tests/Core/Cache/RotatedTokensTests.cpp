// Tokens that a step rotates by the next positions of a cache and then uses at other positions.
#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/RecordedStep.hpp"

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
    return [=, this](auto& e) { return cache.append(e, tokens, tokens, sequences); };
  }
  Body attend(const Tensor& tokens, uint32_t sequence, const AttentionOptions& options = {}) {
    return [=, this](auto& e) {
      return cache.attend(e, tokens, {.into = REQUIRE(out.slice(0, tokens.shape()[0]))}, options, sequence);
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
                                       .results = {.into = out},
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
  const auto what = tokens == "keys"      ? "keys were rotated for another position"
                    : tokens == "queries" ? "queries were rotated for another position"
                                          : "tokens were rotated for another position";
  return {.what = what,
          .got = got,
          .fix =
              "Rotate, append and attend with the same rows in the same order, and append before the next tokens are "
              "rotated."};
}

const ExpectedError kUnrotated{.op = "AttentionCache.append",
                               .what = "the step rotates tokens by the cache's next positions and appends others",
                               .got = "keys that were not rotated, at position 2 of sequence 0",
                               .expected = "the keys that were rotated for position 2",
                               .fix = "Append the tensor that the rotation wrote, all of its rows and no others."};

}  // namespace

TEST(RotatedTokens, AnAppendTakesThem) {
  Fixture f;
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(f.queries, 0)}));
  Fixture g;
  EXPECT_ERROR(g.run({g.rotateBoth({0}), g.append(g.rows(2), 0)}), (kUnrotated));
  // Only some of the appended ones were rotated.
  const Tensor three = g.rows(3);
  ExpectedError expected = kUnrotated;
  expected.got = "keys that were not rotated, at position 4 of sequence 0";
  expected.expected = "the keys that were rotated for position 4";
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
               {.what = kUnrotated.what, .got = "keys that were not rotated, at position 4 of sequence 0"});
}

TEST(RotatedTokens, TheOrderOfRowsIsThatOfTheRotation) {
  Fixture f;
  const Tensor first = f.row(f.keys, 0), second = f.row(f.keys, 1);
  const auto at = [](int rotated, int used, int sequence) {
    return fmt::format("a rotation for position {}, and position {} of sequence {}", rotated, used, sequence);
  };
  // Two tokens are rotated before the first is appended.
  EXPECT_ERROR(f.run({f.rotate(first, {0}), f.rotate(second, {0}), f.append(first, 0), f.append(second, 0)}),
               (misplaced("keys", at(2, 3, 0))));
  // Slices in another order, and twice.
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(second, 0), f.append(first, 0)}), (misplaced("keys", at(3, 2, 0))));
  EXPECT_ERROR(f.run({f.rotate(first, {0}), f.append(first, 0), f.append(first, 0)}), (misplaced("keys", at(2, 3, 0))));
  // A slice that is rotated again, with the position of the row before it.
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.rotate(second, {0}), f.append(f.keys, 0)}),
               (misplaced("keys", at(2, 3, 0))));
  // Lists in another order.
  EXPECT_ERROR(f.run({f.rotateBoth({0, 1}), f.append(f.keys, {1, 0})}), (misplaced("keys", at(2, 1, 1))));
  EXPECT_ERROR(f.run({f.step(RotaryStep{.positions = f.cache.nextPositions({0, 1})}, {1, 0})}),
               (misplaced("tokens", at(2, 1, 1))));
  EXPECT_ERROR(f.run({f.step(RotaryStep{.positions = f.other.nextPositions({0, 1})}, {0, 1})}),
               (misplaced("tokens", at(0, 2, 0))));
  // In another cache, which has other positions.
  const Body elsewhere = [&](auto& e) { return f.other.append(e, f.keys, f.keys, 0); };
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), elsewhere}), (misplaced("keys", at(2, 0, 0))));
  EXPECT_EQ(*f.cache.nextPosition(0), 2u);
  REQUIRE(f.run({f.rotateBoth({0}), f.append(first, 0), f.append(second, 0)}));
  REQUIRE(f.run({f.rotateBoth({0, 1}), f.append(f.keys, {0, 1}), f.rotateBoth({1, 0}), f.append(f.keys, {1, 0})}));
  REQUIRE(f.run({f.step(RotaryStep{.positions = f.cache.nextPositions({1, 0})}, {1, 0})}));
  // A cache at the same positions, such as that of the next layer, can have them too.
  REQUIRE(f.run({[&](auto& e) { return f.cache.copy(e, 0, f.other, 0); }}));
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), elsewhere}));
}

TEST(RotatedTokens, QueriesAttendAtTheirPositions) {
  Fixture f;
  const Tensor three = f.rows(3), one = f.row(f.queries, 0);
  // One query beside three keys would be that of the first, and attends as that of the last.
  EXPECT_ERROR(f.run({f.rotate(one, {0}), f.rotate(three, {0}), f.append(three, 0), f.attend(one, 0)}),
               (misplaced("queries", "a rotation for position 2, and position 4 of sequence 0")));
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(one, 0)}),
               (misplaced("queries", "a rotation for position 2, and position 3 of sequence 0")));
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(f.row(f.queries, 1), 0)}));
  // Rows that all see all tokens have no positions.
  REQUIRE(f.run({f.rotate(one, {1}), f.append(one, 1), f.append(f.rows(1), 1), f.attend(one, 1, {.isCausal = false})}));
  // The last part of the queries of a latent cache.
  AttentionCache latent =
      makeCache(f.device, {.kvHeads = 1, .headDim = 64, .capacity = 8, .dtype = DType::f32, .latentDim = 512});
  const Tensor wide = tokens(f.device, 2, 2, 576), results = tokens(f.device, 1, 2, 512);
  const Tensor parts = tokens(f.device, 2, 1, 64), latents = tokens(f.device, 2, 1, 512);
  const HeadsView last(wide,
                       {.tokens = 2, .heads = 2, .headDim = 64, .offset = 512, .tokenStride = 1152, .headStride = 576});
  for (const uint64_t row : {0, 1}) {
    CommandEncoder encoder(f.device);
    REQUIRE(encoder.encode(MultiRoPE{.queries = last, .keys = parts, .positions = latent.nextPositions()}));
    REQUIRE(latent.append(encoder, parts, latents));
    const auto attended = latent.attend(encoder, f.row(wide, row), {.into = results}, {.scale = 0.1f});
    if (row == 0) {
      EXPECT_ERROR(attended, (misplaced("queries", "a rotation for position 0, and position 1 of sequence 0")));
    } else {
      REQUIRE(attended);
    }
  }
}

TEST(RotatedTokens, AreNotRotatedTwice) {
  Fixture f;
  ExpectedError expected{.op = "AttentionCache.appendAndAttend",
                         .what = "tokens are rotated twice",
                         .got = "tokens that the step has rotated for position 2 before",
                         .expected = "tokens that are not rotated",
                         .fix = "Rotate queries and keys once, before the append or with it."};
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.step(RotaryStep{}, {0})}), (expected));
  expected.op = "AttentionCache.nextPositions";
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.rotate(f.keys, {0}), f.append(f.keys, 0)}), (expected));
  EXPECT_ERROR(f.run({f.rotate(f.keys, {0}), f.rotateBoth({0}), f.append(f.keys, 0)}), (expected));
  REQUIRE(f.run({f.rotateBoth({0}), f.step({}, {0})}));
  REQUIRE(f.run({f.step(RotaryStep{}, {0})}));
  // Back, and in the next layer, which projects its keys into the same memory.
  const Body back = [&](auto& e) {
    return e.encode(MultiRoPE{
        .queries = f.queries, .keys = f.keys, .positions = f.cache.nextPositions({0}), .rotary = {.isInverse = true}});
  };
  REQUIRE(f.run({f.rotateBoth({0}), back, f.append(f.keys, 0)}));
  REQUIRE(f.run({[&](auto& e) { return f.cache.copy(e, 0, f.other, 0); }}));
  const Body other = [&](auto& e) {
    return e.encode(MultiRoPE{.queries = f.queries, .keys = f.keys, .positions = f.other.nextPositions({0})});
  };
  REQUIRE(f.run(
      {f.rotateBoth({0}), f.append(f.keys, 0), other, [&](auto& e) { return f.other.append(e, f.keys, f.keys, 0); }}));
}

// Memory that the step writes again, as the keys of the next layer or conversation, holds other tokens.
TEST(RotatedTokens, OtherTokensInTheSameMemoryAreFree) {
  Fixture f;
  const Body rewrite = [&](auto& e) { return e.encode(MultiRoPE{.queries = f.keys, .positions = 40}); };
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), rewrite, f.append(f.keys, 1)}));
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.append(f.keys, 1)}), {.what = "keys were rotated"});
}

TEST(RotatedTokens, PositionsAfterPrefixesHaveOffsets) {
  Fixture f;
  const std::vector<CachePrefix> after{{f.other, 0}};
  REQUIRE(f.run({[&](auto& e) { return f.other.append(e, f.keys, f.keys, 0); }}));
  const Body attend = [&](auto& e) { return f.cache.attend(e, f.queries, {.into = f.out}, {}, {{0}}, {}, after); };
  const Body withOffsets = [&](auto& e) {
    return e.encode(MultiRoPE{.queries = f.queries,
                              .keys = f.keys,
                              .positions = f.cache.nextPositions({0}),
                              .offsets = std::vector<int32_t>{2}});
  };
  ExpectedError expected{
      .op = "AttentionCache.attend",
      .what = "rotary positions that follow a cache do not count prefixes",
      .got = "queries that were rotated by the next positions of the cache, without offsets",
      .expected = "positions that count the tokens of prefixes",
      .fix = "Rotate with offsets, the number of tokens in all prefixes; or pass `rotary` to appendAndAttend."};
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.append(f.keys, 0), attend}), (expected));
  expected.op = "AttentionCache.appendAndAttend";
  EXPECT_ERROR(f.run({f.rotateBoth({0}), f.step({}, {0}, after)}), (expected));
  REQUIRE(f.run({withOffsets, f.append(f.keys, 0), attend}));
  REQUIRE(f.run({withOffsets, f.step({}, {0}, after)}));
  REQUIRE(f.run({f.step(RotaryStep{}, {0}, after)}));
}

}  // namespace mnk::test
