// Calls that are easily made in the wrong way: without a sequence, in the wrong order, or with tokens that were rotated
// for other positions.
#include <functional>

#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

using Body = std::function<Result<void>(CommandEncoder&)>;
using Sequences = std::vector<uint32_t>;

// Caches of two sequences, and tokens for the next step.
struct CallFixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  AttentionCache cache = make(), other = make();
  Tensor queries = rows(2), keys = rows(2), out = rows(2);
  RefusedCalls no;

  // The sequences begin with these tokens.
  explicit CallFixture(uint64_t first = 2, uint64_t second = 1,
                       std::source_location where = std::source_location::current())
      : no(where) {
    REQUIRE(run({append(rows(first), 0), append(rows(second), 1)}));
  }
  AttentionCache make() const {
    return makeCache(device, {.kvHeads = 2, .headDim = 64, .capacity = 16, .sequences = 2, .dtype = DType::f32});
  }
  Tensor rows(uint64_t count) const { return tokens(device, count, 2, 64); }
  static Tensor row(const Tensor& of, uint64_t index) { return REQUIRE(of.slice(index, 1)); }

  Body append(const HeadsView& tokens, uint32_t sequence) { return appendTo(cache, tokens, sequence); }
  static Body appendTo(AttentionCache& cache, const HeadsView& tokens, uint32_t sequence) {
    return [=, &cache](auto& e) { return cache.append(e, tokens, tokens, sequence); };
  }
  Body append(const Tensor& tokens, const Sequences& sequences) {
    return [=, this](auto& e) { return cache.append(e, {.keys = tokens, .values = tokens, .sequences = sequences}); };
  }
  Body attend(const Tensor& tokens, uint32_t sequence, const AttentionOptions& options = {}) {
    return [=, this](auto& e) {
      return cache.attend(e, tokens, {.output = REQUIRE(out.slice(0, tokens.shape()[0]))}, options, sequence);
    };
  }
  Body attend(const Tensor& tokens, const Sequences& sequences, const std::vector<CachePrefix>& after = {}) {
    return [=, this](auto& e) {
      return cache.attend(e, {.queries = tokens,
                              .results = {.output = REQUIRE(out.slice(0, tokens.shape()[0]))},
                              .sequences = sequences,
                              .after = after});
    };
  }
  static Body encode(const MultiRoPE& rotation) {
    return [=](auto& e) { return e.encode(rotation); };
  }
  Body rotate(const HeadsView& tokens, const Sequences& sequences, const RotaryEmbedding& rotary = {}) {
    return encode({.queries = tokens, .positions = cache.nextPositions(sequences), .rotary = rotary});
  }
  Body rotateBoth(const Sequences& sequences, const std::optional<RotaryOffsets>& offsets = {}) {
    return encode({.queries = queries, .keys = keys, .positions = cache.nextPositions(sequences), .offsets = offsets});
  }
  Body step(std::optional<RotaryStep> rotary, const Sequences& sequences, const std::vector<CachePrefix>& after = {}) {
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
  Body copy(uint32_t source, uint32_t target) {
    return [=, this](auto& e) { return cache.copy(e, source, target); };
  }
  // A kernel that reads and writes.
  static Body dispatch(const char* name, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) {
    return [=](auto& e) { return e.dispatch(fakeDispatch(name, reads, writes)); };
  }
  Result<void> run(const std::vector<Body>& calls) {
    CommandEncoder encoder(device);
    if (auto done = encode(encoder, calls); !done) return done;
    if (auto committed = encoder.commit(); !committed) return committed.error();
    return {};
  }
  static Result<void> encode(CommandEncoder& encoder, const std::vector<Body>& calls) {
    for (const Body& call : calls) {
      if (auto done = call(encoder); !done) return done;
    }
    return {};
  }
};

}  // namespace

TEST(AttentionCacheCall, ACacheOfSeveralSequencesWantsOneNamed) {
  CallFixture f(1, 1);
  AttentionCache quantized = makeCache(
      f.device, {.kvHeads = 2, .headDim = 64, .capacity = 4, .sequences = 2, .quantized = KVQuantizedStorage{}});
  AttentionCache only = makeCache(f.device, {.kvHeads = 2, .headDim = 64, .capacity = 4, .dtype = DType::f32});
  const Tensor one = f.rows(1), out = f.rows(1);
  const CacheStep step{.queries = one, .keys = one, .values = one, .results = {.output = out}};
  const Body calls[] = {
      [&](auto& e) { return f.cache.append(e, one, one); },
      [&](auto& e) {
        return f.cache.append(e, {.keys = one, .values = one, .sequences = {kOnlySequence}, .rowCounts = {{1}}});
      },
      [&](auto& e) { return f.cache.attend(e, one, {.output = out}); },
      [&](auto& e) { return f.cache.appendAndAttend(e, step); },
      [&](auto& e) { return quantized.dequantize(e, out, {}, 0); },
      [&](auto&) { return f.cache.truncate(0); },
      f.encode({.queries = one, .positions = f.cache.nextPositions()}),
  };
  for (const Body& call : calls) f.no(f.run({call}));
  f.no(f.cache.nextPosition());
  f.no(f.cache.count());
  f.no(f.cache.nextPosition(7));
  f.no(f.cache.count(2));
  EXPECT(f.cache.isSuspect(2) && !f.cache.isSuspect(1) && !f.cache.isSuspect());
  for (const uint32_t sequence : {0u, 1u}) EXPECT_EQ(*f.cache.nextPosition(sequence), 1u);
  REQUIRE(f.run({[&](auto& e) { return only.append(e, one, one); }}));
  EXPECT_EQ(*only.nextPosition(), 1u);
}

TEST(AttentionCacheCall, AttentionNeedsTokens) {
  CallFixture f(1, 0);
  const Tensor one = f.row(f.queries, 0);
  f.no(f.run({f.attend(one, 1)}));
  f.no(f.run({f.attend(f.queries, {0, 1})}));
  f.no(f.run({f.attend(one, 1, {.isCausal = false})}));
}

TEST(AttentionCacheCall, AnAppendComesBeforeItsAttention) {
  CallFixture f(1, 0);
  const Tensor one = f.row(f.queries, 0);
  const Body append = f.append(one, 0), other = f.append(one, 1), attend = f.attend(one, 0), fused = f.step({}, {0});
  for (const Body& late : {append, f.append(one, Sequences{0}), fused}) f.no(f.run({attend, late}));
  EXPECT_EQ(*f.cache.nextPosition(0), 1u);
  f.no(RecordedStep::record(f.device, [&](CommandEncoder& e) { return f.encode(e, {attend, append}); }));
  REQUIRE(f.run({attend, other}));
  REQUIRE(f.run({f.attend(one, 0, {.isCausal = false}), append}));
  REQUIRE(f.run({append, attend, attend, append, attend}));
  REQUIRE(f.run({fused, attend, append}));
  REQUIRE(f.run({f.copy(1, 0), attend, append}));
  REQUIRE(f.run({attend, f.copy(1, 0), append}));
}

// Queries that are rotated after the append would get the position of the token after theirs.
TEST(AttentionCacheCall, TokensRotatedByNextPositionsAreAppended) {
  CallFixture f(0, 0);
  const Body rotate = f.rotate(f.keys, {0}), append = f.append(f.keys, 0), copy = f.copy(1, 0);
  const Body rotateBoth = f.rotate(f.keys, {0, 1}), project = f.dispatch("project", {f.out}, {f.keys});
  f.no(f.run({rotate}));
  f.no(f.run({append, rotate}));
  f.no(f.run({rotate, append, project, rotate}));
  f.no(f.run({rotateBoth, f.append(f.row(f.keys, 0), 0)}));
  f.no(f.run({rotate, copy, append}));  // before a copy that moves where they go
  REQUIRE(f.run({rotate, append, copy}));
  EXPECT_EQ(*f.cache.nextPosition(0), 0u);
  REQUIRE(f.run({rotate, append, project, rotate, append}));
  REQUIRE(f.run({rotateBoth, f.append(f.keys, Sequences{0, 1})}));
  EXPECT_EQ(*f.cache.nextPosition(0), 5u);
  EXPECT_EQ(*f.cache.nextPosition(1), 1u);
  // A refused op takes no part.
  CommandEncoder encoder(f.device);
  f.no(encoder.encode(MultiRoPE{.queries = tokens(f.device, 2, 2, 63), .positions = f.cache.nextPositions({0})}));
  REQUIRE(encoder.encode(MultiRoPE{.queries = f.keys, .positions = 3}));
  REQUIRE(encoder.commit());
}

TEST(AttentionCacheCall, NextPositionsAreThoseOfTheAppend) {
  CallFixture f(0, 0);
  CommandEncoder late(f.device);
  REQUIRE(f.encode(late, {f.rotate(f.keys, {1})}));
  REQUIRE(f.run({f.append(f.rows(2), 1)}));
  REQUIRE(f.encode(late, {f.append(f.keys, 1)}));
  f.no(late.commit());
  // A reset in between makes other positions, whenever the tokens are appended.
  for (const bool appendsFirst : {true, false}) {
    REQUIRE(f.run({f.append(f.keys, 0)}));
    CommandEncoder again(f.device);
    REQUIRE(f.encode(again, {f.rotate(f.keys, {0})}));
    if (appendsFirst) REQUIRE(f.encode(again, {f.append(f.keys, 0)}));
    REQUIRE(f.cache.reset(0));
    if (!appendsFirst) REQUIRE(f.encode(again, {f.append(f.keys, 0)}));
    f.no(again.commit());
  }
  // Too many tokens of several sequences for a list; other sequences than those of the views; none.
  CommandEncoder encoder(f.device);
  f.no(encoder.encode(MultiRoPE{.queries = f.rows(1100), .positions = f.cache.nextPositions({0, 1}, {{1000, 100}})}));
  f.no(f.encode(encoder, {f.rotate(f.keys, {0, 1, 0})}));
  f.no(f.encode(encoder, {f.rotate(f.keys, {0, 2})}));
  f.no(encoder.encode(MultiRoPE{.queries = f.keys, .positions = std::shared_ptr<const PositionSource>()}));
  f.no(plan(MultiRoPE{.queries = f.keys, .positions = f.cache.nextPositions({0, 1})}));
}

TEST(RotatedTokens, AnAppendTakesThem) {
  CallFixture f;
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(f.queries, 0)}));
  f.no(f.run({f.rotateBoth({0}), f.append(f.rows(2), 0)}));
  // Only some of the appended ones were rotated.
  const Tensor three = f.rows(3);
  f.no(f.run({f.rotate(REQUIRE(three.slice(1, 2)), {0}), f.append(three, 0)}));
  f.no(f.run({f.rotate(REQUIRE(three.slice(0, 2)), {0}), f.append(three, 0)}));
  // Out of place, the source stays as it was.
  const Tensor into = f.rows(2);
  const Body apart = f.encode({.queries = f.keys, .rotatedQueries = into, .positions = f.cache.nextPositions({0})});
  f.no(f.run({apart, f.append(f.keys, 0)}));
  REQUIRE(f.run({apart, f.append(into, 0)}));
  f.no(RecordedStep::record(f.device, [&](CommandEncoder& e) { return f.encode(e, {apart, f.append(f.keys, 0)}); }));
}

// Every head counts, wherever it lies.
TEST(RotatedTokens, AllHeadsAreRotated) {
  CallFixture f;
  const auto columns = [](const Tensor& of, uint64_t first, uint64_t heads) {
    const Tensor flat = REQUIRE(of.reshaped(REQUIRE(Shape::make({2, of.shape()[1] * 64}))));
    return REQUIRE(HeadsView::columns(flat, first * 64, heads, 64));
  };
  const auto rotate = [&](const HeadsView& rows) { return f.rotate(rows, {0}); };
  const Body append = f.append(f.keys, 0), first = rotate(columns(f.keys, 0, 1)),
             second = rotate(columns(f.keys, 1, 1));
  f.no(f.run({first, append}));
  f.no(f.run({second, append}));
  f.no(f.run({second, rotate(columns(f.keys, 0, 2)), append}));
  REQUIRE(f.run({first, second, append}));
  // As [heads, tokens] of a tensor that is [tokens, heads].
  const HeadsView transposed(f.keys, {.tokens = 2, .heads = 2, .headDim = 64, .tokenStride = 64, .headStride = 128});
  f.no(f.run({rotate(transposed), append}));
  // Queries and keys of a fused projection as one view.
  const Tensor fused = tokens(f.device, 2, 4, 64);
  const HeadsView queries = columns(fused, 0, 2), keys = columns(fused, 2, 2);
  const Body attend = [&](auto& e) { return f.cache.attend(e, queries, {.output = f.out}, {}, 0); };
  REQUIRE(f.run({rotate(HeadsView(fused)), f.append(keys, 0), attend}));
  REQUIRE(f.run({rotate(queries), rotate(keys), f.append(keys, 0), attend}));
}

TEST(RotatedTokens, TheOrderOfRowsIsThatOfTheRotation) {
  CallFixture f;
  const Tensor first = f.row(f.keys, 0), second = f.row(f.keys, 1);
  const Body rotateBoth = f.rotateBoth({0}), append = f.append(f.keys, 0), elsewhere = f.appendTo(f.other, f.keys, 0);
  // Two tokens are rotated before the first is appended.
  f.no(f.run({f.rotate(first, {0}), f.rotate(second, {0}), f.append(first, 0), f.append(second, 0)}));
  // Slices in another order, and twice.
  f.no(f.run({rotateBoth, f.append(second, 0), f.append(first, 0)}));
  f.no(f.run({f.rotate(first, {0}), f.append(first, 0), f.append(first, 0)}));
  // Lists in another order, also where sequences are at the same position.
  const Sequences ordered{0, 1}, swapped{1, 0};
  f.no(f.run({f.rotateBoth(ordered), f.append(f.keys, swapped)}));
  f.no(f.run({f.rotateBoth(ordered), f.append(f.keys, ordered), f.attend(f.queries, swapped)}));
  f.no(f.run({f.step(RotaryStep{.positions = f.cache.nextPositions(ordered)}, swapped)}));
  f.no(f.run({f.step(RotaryStep{.positions = f.other.nextPositions(ordered)}, ordered)}));
  f.no(f.run({rotateBoth, append, elsewhere}));  // another cache, which has other positions
  EXPECT_EQ(*f.cache.nextPosition(0), 2u);
  REQUIRE(f.run({rotateBoth, f.append(first, 0), f.append(second, 0)}));
  REQUIRE(f.run({f.rotateBoth(ordered), f.append(f.keys, ordered)}));
  REQUIRE(f.run({f.step(RotaryStep{.positions = f.cache.nextPositions(swapped)}, swapped)}));
  // A cache at the same positions, such as that of the next layer, can have them too.
  REQUIRE(f.run({[&](auto& e) { return f.cache.copy(e, 0, f.other, 0); }}));
  REQUIRE(f.run({rotateBoth, append, elsewhere}));
  // But not beside other rows that the step rotates for it, nor what has replaced them since, unrotated.
  const Tensor ofOther = f.rows(2);
  const Body rotateOther = f.encode({.queries = ofOther, .positions = f.other.nextPositions({0})});
  const Body appendOther = f.appendTo(f.other, ofOther, 0), project = f.dispatch("project", {f.rows(2)}, {f.keys});
  f.no(f.run({rotateBoth, append, rotateOther, elsewhere}));
  f.no(f.run({rotateBoth, append, project, rotateOther, elsewhere}));
  // Queries can attend over both.
  REQUIRE(f.run({rotateBoth, append, rotateOther, appendOther, f.attend(f.queries, 0),
                 [&](auto& e) { return f.other.attend(e, f.queries, {.output = f.out}, {}, 0); }}));
  REQUIRE(f.run({rotateBoth, append, rotateOther, appendOther}));
  f.cache.reset();
  f.no(f.run({f.rotateBoth(ordered), f.append(f.keys, swapped)}));
}

TEST(RotatedTokens, QueriesAttendAtTheirPositions) {
  CallFixture f;
  const Tensor three = f.rows(3), one = f.row(f.queries, 0);
  const Body append = f.append(f.keys, 0), rotateKeys = f.rotate(f.keys, {0}), attend = f.attend(f.queries, 0);
  // One query beside three keys would be that of the first, and attends as that of the last.
  f.no(f.run({f.rotate(one, {0}), f.rotate(three, {0}), f.append(three, 0), f.attend(one, 0)}));
  f.no(f.run({f.rotateBoth({0}), append, f.attend(one, 0)}));
  REQUIRE(f.run({f.rotateBoth({0}), append, f.attend(f.row(f.queries, 1), 0)}));
  // Queries that were not rotated beside keys that were, unless a dispatch of the step wrote them.
  f.no(f.run({rotateKeys, append, attend}));
  f.no(f.run({rotateKeys, f.step({}, {0})}));
  REQUIRE(f.run({f.encode({.queries = f.queries, .positions = 4}), rotateKeys, append, attend}));
  const Body apart = f.encode(
      {.queries = f.queries, .keys = f.keys, .rotatedQueries = f.out, .positions = f.cache.nextPositions({1})});
  const Body attendSource = [&](auto& e) { return f.cache.attend(e, f.queries, {.output = f.rows(2)}, {}, 1); };
  f.no(f.run({apart, f.append(f.keys, 1), attendSource}));
  // Rows that all see all tokens have no positions.
  REQUIRE(f.run({f.rotate(f.keys, {1}), f.append(f.keys, 1), f.attend(f.row(f.keys, 0), 1, {.isCausal = false})}));
  // The last part of the queries of a latent cache: all heads of it, the latest row, and nothing of the latent part.
  AttentionCache latent =
      makeCache(f.device, {.kvHeads = 1, .headDim = 64, .capacity = 8, .dtype = DType::f32, .latentDim = 512});
  const Tensor wide = tokens(f.device, 2, 2, 576), results = tokens(f.device, 1, 2, 512);
  const Tensor parts = tokens(f.device, 2, 1, 64), latents = tokens(f.device, 2, 1, 512);
  struct Part {
    uint64_t heads, offset, row;
  };
  for (const auto& [heads, offset, row] : {Part{2, 512, 0}, {1, 512, 1}, {2, 512, 1}, {2, 0, 1}, {2, 448, 1}}) {
    const HeadsView last(
        wide, {.tokens = 2, .heads = heads, .headDim = 64, .offset = offset, .tokenStride = 1152, .headStride = 576});
    CommandEncoder encoder(f.device);
    REQUIRE(encoder.encode(MultiRoPE{.queries = last, .keys = parts, .positions = latent.nextPositions()}));
    REQUIRE(latent.append(encoder, parts, latents));
    const auto attended = latent.attend(encoder, f.row(wide, row), {.output = results}, {.scale = 0.1f});
    if (heads == 2 && offset == 512 && row == 1) {
      REQUIRE(attended);
    } else {
      f.no(attended);
    }
  }
}

TEST(RotatedTokens, HaveTheHeadsOfTheirRotation) {
  CallFixture f;
  const auto rotate = [&](const HeadsView::Strides& strides) { return f.rotate(HeadsView(f.keys, strides), {0}); };
  // One head of 128, four of 32, and heads that begin 16 elements too late.
  const HeadsView::Strides others[] = {
      {.tokens = 2, .heads = 1, .headDim = 128, .tokenStride = 128},
      {.tokens = 2, .heads = 4, .headDim = 32, .tokenStride = 128, .headStride = 32},
      {.tokens = 2, .heads = 1, .headDim = 64, .offset = 16, .tokenStride = 128, .headStride = 64}};
  for (const HeadsView::Strides& strides : others) f.no(f.run({rotate(strides), f.append(f.keys, 0)}));
  // A part of each head.
  REQUIRE(f.run({rotate({.tokens = 2, .heads = 2, .headDim = 32, .offset = 32, .tokenStride = 128, .headStride = 64}),
                 f.append(f.keys, 0)}));
}

TEST(RotatedTokens, AreNotRotatedTwice) {
  CallFixture f;
  const Body both = f.rotateBoth({0}), keys = f.rotate(f.keys, {0}), append = f.append(f.keys, 0);
  f.no(f.run({both, f.step(RotaryStep{}, {0})}));
  f.no(f.run({both, keys, append}));
  f.no(f.run({both, f.rotate(f.row(f.keys, 1), {0}), append}));
  f.no(f.run({keys, both, append}));
  f.no(f.run({keys, append, keys, append}));
  REQUIRE(f.run({both, f.step({}, {0})}));
  REQUIRE(f.run({f.step(RotaryStep{}, {0})}));
  // Back and forth.
  const Body forth = f.rotateBoth({1}), back = f.encode({.queries = f.queries,
                                                         .keys = f.keys,
                                                         .positions = f.cache.nextPositions({1}),
                                                         .rotary = {.isInverse = true}});
  REQUIRE(f.run({forth, back, forth, f.append(f.keys, 1)}));
  f.no(f.run({forth, back, f.append(f.keys, 1)}));
}

// Memory that the step writes again, as the keys of the next layer or conversation, holds other tokens.
TEST(RotatedTokens, OtherTokensInTheSameMemoryAreFree) {
  CallFixture f;
  const Tensor raw = f.rows(2), whole = f.rows(2);
  // Writes keys, and reads others or the same.
  const Body project = f.dispatch("project", {raw}, {f.keys, f.queries});
  const Body normalize = f.dispatch("normalize", {f.keys}, {f.keys});
  REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), project, f.append(f.keys, 1)}));
  f.no(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.append(f.keys, 1)}));
  for (const uint32_t sequence : {0u, 1u}) {
    REQUIRE(f.run({f.rotateBoth({0}), f.append(f.keys, 0), f.attend(f.queries, 0), project, f.rotateBoth({sequence}),
                   f.append(f.keys, sequence), f.attend(f.queries, sequence)}));
  }
  REQUIRE(f.run({f.rotateBoth({0}), normalize, f.append(f.keys, 0)}));
  // A projection after the rotation leaves nothing of it.
  f.no(f.run({f.rotateBoth({1}), project, f.append(f.keys, 1)}));
  // Keys that a kernel puts together from rotated and other parts.
  REQUIRE(f.run({f.rotateBoth({1}), f.dispatch("join", {f.keys, raw}, {whole}), f.append(whole, 1)}));
}

TEST(RotatedTokens, PositionsAfterPrefixesHaveOffsets) {
  CallFixture f;
  using Offsets = std::vector<int32_t>;
  const std::vector<CachePrefix> after{{f.other, 0}};
  REQUIRE(f.run({f.appendTo(f.other, f.keys, 0)}));
  const Body append = f.append(f.keys, 0), attend = f.attend(f.queries, {0}, after), step = f.step({}, {0}, after);
  f.no(f.run({f.rotateBoth({0}), append, attend}));
  f.no(f.run({f.rotateBoth({0}), step}));
  f.no(f.run({f.rotateBoth({0}, Offsets{3}), step}));
  REQUIRE(f.run({f.rotateBoth({0}, Offsets{2}), append, attend}));
  REQUIRE(f.run({f.rotateBoth({0}, Offsets{2}), step}));
  REQUIRE(f.run({f.step(RotaryStep{}, {0}, after)}));

  // Each sequence has its own offset.
  const auto asTwo = [](const Tensor& rows) { return REQUIRE(rows.reshaped(REQUIRE(Shape::make({2, 1, 2, 64})))); };
  const auto rotateTwo = [&](const Offsets& offsets) {
    return f.encode({.queries = asTwo(f.queries),
                     .keys = HeadsView(asTwo(f.keys)),
                     .positions = f.cache.nextPositions({0, 1}),
                     .offsets = offsets});
  };
  const Body appendTwo = f.append(f.keys, Sequences{0, 1}), attendTwo = f.attend(f.queries, {0, 1}, after);
  f.no(f.run({rotateTwo({2, 0}), appendTwo, attendTwo}));
  REQUIRE(f.run({rotateTwo({2, 0}), appendTwo, f.attend(f.row(f.queries, 0), {0}, after)}));
  REQUIRE(f.run({rotateTwo({2, 2}), appendTwo, attendTwo}));
  // Rotations of the same sequence by different numbers.
  const auto rotate = [&](const Tensor& rows, int32_t offset) {
    return f.encode({.queries = rows, .positions = f.cache.nextPositions({0}), .offsets = Offsets{offset}});
  };
  f.no(f.run({rotate(f.keys, 3), rotate(f.queries, 2), append, attend}));
}

TEST(RotatedTokens, QueriesAndKeysHaveOneEmbedding) {
  CallFixture f;
  const RotaryEmbedding given{.base = 1e6f};
  const Body append = f.append(f.keys, 0), attend = f.attend(f.queries, 0);
  const auto rotate = [&](const Tensor& tokens, const RotaryEmbedding& rotary) {
    return f.rotate(tokens, {0}, rotary);
  };
  for (const RotaryEmbedding& other :
       {RotaryEmbedding{}, RotaryEmbedding{.layout = RotaryEmbedding::Layout::interleavedPairs, .base = 1e6f},
        RotaryEmbedding{.base = 1e6f, .ropeDim = 32}, RotaryEmbedding{.base = 1e6f, .scale = 0.5f}}) {
    f.no(f.run({rotate(f.queries, given), rotate(f.keys, other), append, attend}));
  }
  REQUIRE(f.run({rotate(f.queries, given), rotate(f.keys, given), append, attend}));
  // Calls that rotate what they append.
  const Body withGiven = f.step(RotaryStep{.embedding = given}, {0}), withOther = f.step(RotaryStep{}, {0});
  f.no(f.run({withGiven, withOther}));
  f.no(f.run({rotate(f.keys, given), append, withOther}));
  REQUIRE(f.run({withGiven, withGiven}));
  REQUIRE(f.run({withGiven, f.step(RotaryStep{}, {1})}));
  REQUIRE(f.run({withGiven, f.copy(1, 0), withOther}));
  // A call that is refused appends nothing.
  const Tensor rotated = f.rows(2);
  const CacheStep wrong{
      .queries = rotated, .keys = rotated, .values = rotated, .results = {.output = f.rows(1)}, .sequences = {0}};
  const Body refused = [&](auto& e) -> Result<void> {
    f.no(f.cache.appendAndAttend(e, wrong));
    return {};
  };
  REQUIRE(f.run({rotate(rotated, given), refused, withOther}));
  // The factor of attention scales vectors and does not turn them.
  const RotaryEmbedding::YaRN scaled{.originalContext = 1024, .attentionFactor = 2}, plain{.originalContext = 1024};
  REQUIRE(f.run({rotate(f.queries, {.yarn = scaled}), rotate(f.keys, {.yarn = plain}), append, attend}));
}

TEST(RotatedTokens, AllTokensOfACacheAreRotatedInAStepOrNone) {
  CallFixture f;
  const Tensor more = f.rows(2);
  const Body append = f.append(f.keys, 0), rotatedStep = f.step(RotaryStep{}, {0}), attend = f.attend(more, 0);
  REQUIRE(f.run({f.rotateBoth({0}), append}));
  f.no(f.run({f.rotateBoth({0}), append, f.append(more, 0)}));
  f.no(f.run({f.rotateBoth({0}), append, f.append(more, 1)}));
  f.no(f.run({rotatedStep, f.append(more, 0)}));
  f.no(f.run({rotatedStep, attend}));
  REQUIRE(f.run({rotatedStep, f.encode({.queries = more, .positions = 7}), attend}));
  REQUIRE(f.run({rotatedStep}));
  REQUIRE(f.run({f.append(more, 0), attend}));
}

}  // namespace mnk::test
