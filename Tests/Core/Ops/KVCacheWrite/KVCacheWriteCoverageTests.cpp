// The cache copies of mlx-native 0.6-0.9: the call here that does the same, checked against the formula that is
// documented there. The page "Coverage" of the documentation lists them.
#include <algorithm>
#include <functional>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
#include "KVCacheWriteRun.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t H = 3;   // heads
constexpr uint64_t D = 8;   // head dim
constexpr uint64_t C = 5;   // capacity
constexpr uint64_t R = 24;  // elements of a token in the forms without heads

// Where an element goes and where it comes from, as indices into cache and source.
struct Move {
  uint64_t to;
  uint64_t from;
};
using Formula = std::function<Move(uint64_t t, uint64_t h, uint64_t e)>;

// Runs one write on every device, in one dispatch, and checks the formula for all elements of all tokens that stay.
void expectCovered(const KVCacheWriteCase& write, const Formula& formula) {
  const Context context(fmt::format("{} to {}{}", name(write.source), name(write.cache),
                                    write.valueHeadDim == 0 ? "" : ", keys and values"));
  const uint64_t tokens = std::min(write.tokens.value_or(write.sourceTokens), write.capacity);
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    const KVCacheWriteRun opRun(device, write, random);
    const KVCacheWrite& op = opRun.op();
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(op));
    EXPECT_EQ(encoder.summary().total.dispatches, 1u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    opRun.expectResults();
    const auto expectFormula = [&](std::string_view plane, const Tensor& source, const Tensor& cache) {
      const auto from = opRun.before(plane), to = opRun.memory().now(cache);
      const DType dtype = cache.dtype();
      for (uint64_t i = 0; i < tokens * write.heads * write.headDim; ++i) {
        const uint64_t t = i / write.headDim / write.heads, h = i / write.headDim % write.heads, e = i % write.headDim;
        const Move move = formula(t, h, e);
        const uint64_t bits = bitsAt(from, source.dtype(), move.from), got = bitsAt(to, dtype, move.to);
        const bool isMove = source.dtype() == dtype;
        const uint64_t expected = isMove ? bits : nearestBits(dtype, valueOf(source.dtype(), bits));
        if (got == expected || (!isMove && isNaN(dtype, got) && isNaN(dtype, expected))) continue;
        return fail(__FILE__, __LINE__,
                    fmt::format("{} (token {}, head {}, element {}): got {:#x}, expected {:#x}", plane, t, h, e, got,
                                expected));
      }
    };
    expectFormula("keys", op.keys.tensor, op.into.keys);
    if (op.values) expectFormula("values", op.values->tensor, *op.into.values);
  });
}

// 4 of 7 tokens from source token 2, at positions 8 … 11 of a ring.
KVCacheWriteCase sequenceCase(DType source, DType cache, bool isDual) {
  return {.source = source,
          .cache = cache,
          .heads = H,
          .headDim = D,
          .valueHeadDim = isDual ? D : 0,
          .capacity = C,
          .sourceTokens = 7,
          .sourceOffset = 2,
          .tokens = 4,
          .position = 8};
}

}  // namespace

// [T, R] to [capacity, R]: a token is one head of R elements.
TEST(KVCacheWriteCoverage, Copy) {
  for (DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    expectCovered({.source = dtype,
                   .cache = dtype,
                   .cacheLayout = KVLayout::tokenMajor,
                   .heads = 1,
                   .headDim = R,
                   .valueHeadDim = 0,
                   .capacity = 4,
                   .sourceTokens = 3,
                   .position = 6},
                  [](uint64_t t, uint64_t, uint64_t e) {
                    return Move{(6 + t) % 4 * R + e, t * R + e};
                  });
  }
}

// [H, D], one token at position 3 of a linear cache.
TEST(KVCacheWriteCoverage, Batch) {
  for (DType cache : {DType::f32, DType::f16}) {
    for (uint64_t valueHeadDim : {uint64_t{0}, D}) {
      expectCovered({.cache = cache,
                     .wrap = KVWrap::linear,
                     .heads = H,
                     .headDim = D,
                     .valueHeadDim = valueHeadDim,
                     .capacity = C,
                     .isSourceRank2 = true,
                     .position = 3},
                    [](uint64_t, uint64_t h, uint64_t e) {
                      return Move{(h * C + 3) * D + e, h * D + e};
                    });
    }
  }
}

TEST(KVCacheWriteCoverage, Seq) {
  const std::tuple<DType, DType, bool> forms[] = {{DType::f32, DType::f32, false},
                                                  {DType::f32, DType::f16, false},
                                                  {DType::bf16, DType::f32, false},
                                                  {DType::f32, DType::f32, true},
                                                  {DType::f32, DType::f16, true}};
  for (const auto& [source, cache, isDual] : forms) {
    expectCovered(sequenceCase(source, cache, isDual), [](uint64_t t, uint64_t h, uint64_t e) {
      return Move{(h * C + (8 + t) % C) * D + e, ((2 + t) * H + h) * D + e};
    });
  }
}

TEST(KVCacheWriteCoverage, SeqHeadMajor) {
  KVCacheWriteCase write = sequenceCase(DType::bf16, DType::bf16, false);
  write.sourceLayout = KVLayout::headMajor;
  expectCovered(write, [](uint64_t t, uint64_t h, uint64_t e) {
    return Move{(h * C + (8 + t) % C) * D + e, (h * 7 + 2 + t) * D + e};
  });
}

TEST(KVCacheWriteCoverage, Batched) {
  using Rows = std::vector<KVCacheWriteCase::Row>;
  const std::pair<KVWrap, Rows> forms[] = {{KVWrap::linear, {{2, 1}, {0, 4}, {3, 0}, {2, 2}}},
                                           {KVWrap::ring, {{2, 11}, {0, 4}, {3, 5}, {2, 7}}}};
  for (const auto& form : forms) {
    const Rows& rows = form.second;
    expectCovered({.wrap = form.first,
                   .heads = H,
                   .headDim = D,
                   .valueHeadDim = 0,
                   .capacity = C,
                   .sequences = 4,
                   .sourceTokens = 4,
                   .rows = rows,
                   .areSequencesTensor = true,
                   .arePositionsTensor = true},
                  [&](uint64_t t, uint64_t h, uint64_t e) {
                    const uint64_t slot = rows[t].position % C;
                    return Move{((rows[t].sequence * H + h) * C + slot) * D + e, (t * H + h) * D + e};
                  });
  }
}

// 5 rows of 19 bytes that end at row 10 of a ring of 6, to a linear cache of 7.
TEST(KVCacheWriteCoverage, LinearizeRingBytes) {
  expectCovered({.source = DType::u8,
                 .cache = DType::u8,
                 .sourceLayout = KVLayout::headMajor,
                 .wrap = KVWrap::linear,
                 .heads = H,
                 .headDim = 19,
                 .valueHeadDim = 0,
                 .capacity = 7,
                 .sourceTokens = 6,
                 .isSourceRing = true,
                 .sourceOffset = 10 - 5,
                 .tokens = 5},
                [](uint64_t i, uint64_t h, uint64_t b) {
                  return Move{(h * 7 + i) * 19 + b, (h * 6 + (10 - 5 + i) % 6) * 19 + b};
                });
}

// A prompt longer than a window: the caller there passes the last tokens; here the whole prompt may be passed.
TEST(KVCacheWriteCoverage, SlidingPrefillKeepsTheNewest) {
  KVCacheWriteCase write = sequenceCase(DType::f32, DType::f16, true);
  write.sourceOffset = write.position = 7 - C;
  write.tokens = C;
  const Formula newest = [](uint64_t t, uint64_t h, uint64_t e) {
    const uint64_t token = 7 - C + t;
    return Move{(h * C + token % C) * D + e, (token * H + h) * D + e};
  };
  expectCovered(write, newest);
  write.sourceOffset = write.position = 0;
  write.tokens.reset();
  expectCovered(write, newest);
}

}  // namespace mnk::test
