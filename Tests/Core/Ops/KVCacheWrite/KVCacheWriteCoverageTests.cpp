// One test for each cache copy of mlx-native 0.6-0.9: the call here that does the same, checked against the formula
// that is documented there. The page "Coverage" of the documentation lists them.
#include <array>
#include <cstring>
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

std::vector<uint64_t> bitsOf(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.byteCount());
  REQUIRE(tensor.read(bytes));
  const uint64_t size = byteSize(tensor.dtype());
  std::vector<uint64_t> bits(tensor.shape().elementCount());
  for (size_t index = 0; index < bits.size(); ++index) std::memcpy(&bits[index], &bytes[index * size], size);
  return bits;
}

// Where an element goes and where it comes from, as indices into cache and source.
struct Move {
  uint64_t to;
  uint64_t from;
};
using Formula = std::function<Move(uint64_t t, uint64_t h, uint64_t e)>;

void expectFormula(std::string_view plane, const Tensor& source, const Tensor& cache,
                   const std::array<uint64_t, 3>& extents, const Formula& formula) {
  const auto from = bitsOf(source);
  const auto to = bitsOf(cache);
  const bool isMove = source.dtype() == cache.dtype();
  for (uint64_t t = 0; t < extents[0]; ++t) {
    for (uint64_t h = 0; h < extents[1]; ++h) {
      for (uint64_t e = 0; e < extents[2]; ++e) {
        const Move move = formula(t, h, e);
        const uint64_t bits = from[move.from];
        const uint64_t expected = isMove ? bits : nearestBits(cache.dtype(), valueOf(source.dtype(), bits));
        const uint64_t got = to[move.to];
        if (got == expected || (!isMove && isNaN(cache.dtype(), got) && isNaN(cache.dtype(), expected))) continue;
        return fail(__FILE__, __LINE__,
                    fmt::format("{} (token {}, head {}, element {}): got {:#x}, expected {:#x}", plane, t, h, e, got,
                                expected));
      }
    }
  }
}

// Runs one write on every device, in one dispatch, and checks the formula for all tokens, heads and elements.
void expectCovered(const KVCacheWriteCase& write, const std::array<uint64_t, 3>& extents, const Formula& formula) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    const KVCacheWriteRun opRun(device, write, random);
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(opRun.op()));
    EXPECT_EQ(encoder.summary().total.dispatches, 1u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    const KVCacheWrite& op = opRun.op();
    expectFormula("keys", op.keys.tensor, op.into.keys, extents, formula);
    if (op.values) expectFormula("values", op.values->tensor, *op.into.values, extents, formula);
    opRun.expectWritten();
  });
}

// [T, R] to [capacity, R]: a token is one head of R elements.
KVCacheWriteCase tokenMajorCase(DType dtype) {
  return {.source = dtype,
          .cache = dtype,
          .cacheLayout = KVLayout::tokenMajor,
          .wrap = KVWrap::ring,
          .heads = 1,
          .headDim = R,
          .valueHeadDim = 0,
          .capacity = 4,
          .sourceTokens = 3,
          .position = 6};
}
Move tokenMajorMove(uint64_t t, uint64_t, uint64_t e) {
  return {(6 + t) % 4 * R + e, t * R + e};
}

// [H, D], one token at position 3 of a linear cache.
KVCacheWriteCase oneTokenCase(DType cache, bool isDual) {
  return {.source = DType::f32,
          .cache = cache,
          .wrap = KVWrap::linear,
          .heads = H,
          .headDim = D,
          .valueHeadDim = isDual ? D : 0,
          .capacity = C,
          .isSourceRank2 = true,
          .position = 3};
}
Move oneTokenMove(uint64_t, uint64_t h, uint64_t e) {
  return {(h * C + 3) * D + e, h * D + e};
}

// 4 of 7 tokens from source token 2, at positions 8 … 11 of a ring.
KVCacheWriteCase sequenceCase(DType source, DType cache, bool isDual) {
  return {.source = source,
          .cache = cache,
          .wrap = KVWrap::ring,
          .heads = H,
          .headDim = D,
          .valueHeadDim = isDual ? D : 0,
          .capacity = C,
          .sourceTokens = 7,
          .sourceOffset = 2,
          .tokens = 4,
          .position = 8};
}
Move sequenceMove(uint64_t t, uint64_t h, uint64_t e) {
  return {(h * C + (8 + t) % C) * D + e, ((2 + t) * H + h) * D + e};
}

}  // namespace

TEST(KVCacheWriteCoverage, Copy) {
  expectCovered(tokenMajorCase(DType::bf16), {3, 1, R}, tokenMajorMove);
  expectCovered(tokenMajorCase(DType::f16), {3, 1, R}, tokenMajorMove);
}
TEST(KVCacheWriteCoverage, CopyF32) {
  expectCovered(tokenMajorCase(DType::f32), {3, 1, R}, tokenMajorMove);
}
TEST(KVCacheWriteCoverage, BatchF32) {
  expectCovered(oneTokenCase(DType::f32, false), {1, H, D}, oneTokenMove);
}
TEST(KVCacheWriteCoverage, BatchF32ToF16) {
  expectCovered(oneTokenCase(DType::f16, false), {1, H, D}, oneTokenMove);
}
TEST(KVCacheWriteCoverage, BatchF32KvDual) {
  expectCovered(oneTokenCase(DType::f32, true), {1, H, D}, oneTokenMove);
}
TEST(KVCacheWriteCoverage, BatchF32ToF16KvDual) {
  expectCovered(oneTokenCase(DType::f16, true), {1, H, D}, oneTokenMove);
}
TEST(KVCacheWriteCoverage, SeqF32) {
  expectCovered(sequenceCase(DType::f32, DType::f32, false), {4, H, D}, sequenceMove);
}
TEST(KVCacheWriteCoverage, SeqF32ToF16) {
  expectCovered(sequenceCase(DType::f32, DType::f16, false), {4, H, D}, sequenceMove);
}
TEST(KVCacheWriteCoverage, SeqBF16) {
  expectCovered(sequenceCase(DType::bf16, DType::f32, false), {4, H, D}, sequenceMove);
}
TEST(KVCacheWriteCoverage, SeqF32KvDual) {
  expectCovered(sequenceCase(DType::f32, DType::f32, true), {4, H, D}, sequenceMove);
}
TEST(KVCacheWriteCoverage, SeqF32ToF16KvDual) {
  expectCovered(sequenceCase(DType::f32, DType::f16, true), {4, H, D}, sequenceMove);
}

TEST(KVCacheWriteCoverage, SeqBF16ToBF16HeadMajor) {
  KVCacheWriteCase write = sequenceCase(DType::bf16, DType::bf16, false);
  write.sourceLayout = KVLayout::headMajor;
  expectCovered(write, {4, H, D}, [](uint64_t t, uint64_t h, uint64_t e) {
    return Move{(h * C + (8 + t) % C) * D + e, (h * 7 + 2 + t) * D + e};
  });
}

TEST(KVCacheWriteCoverage, BatchF32ToF16Batched) {
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
                  {4, H, D}, [&](uint64_t t, uint64_t h, uint64_t e) {
                    const uint64_t slot = rows[t].position % C;
                    return Move{((rows[t].sequence * H + h) * C + slot) * D + e, (t * H + h) * D + e};
                  });
  }
}

TEST(KVCacheWriteCoverage, LinearizeRingBytes) {
  constexpr uint64_t rowBytes = 19;
  constexpr uint64_t capacity = 6;
  constexpr uint64_t linear = 7;
  constexpr uint64_t end = 10;
  constexpr uint64_t history = 5;
  expectCovered(
      {.source = DType::u8,
       .cache = DType::u8,
       .sourceLayout = KVLayout::headMajor,
       .wrap = KVWrap::linear,
       .heads = H,
       .headDim = rowBytes,
       .valueHeadDim = 0,
       .capacity = linear,
       .sourceTokens = capacity,
       .isSourceRing = true,
       .sourceOffset = end - history,
       .tokens = history},
      {history, H, rowBytes}, [](uint64_t i, uint64_t h, uint64_t b) {
        return Move{(h * linear + i) * rowBytes + b, (h * capacity + (end - history + i) % capacity) * rowBytes + b};
      });
}

// Keys and values in one dispatch leave the bytes that two dispatches leave.
TEST(KVCacheWriteCoverage, DualEqualsTwoSingles) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    const KVCacheWriteRun dual(device, sequenceCase(DType::f32, DType::f16, true), random);
    KVCacheWrite keys = dual.op();
    KVCacheWrite values = dual.op();
    keys.values.reset();
    keys.into.values.reset();
    values.keys = *values.values;
    values.into.keys = *values.into.values;
    values.values.reset();
    values.into.values.reset();
    for (KVCacheWrite* write : {&keys, &values}) {
      write->into.keys = REQUIRE(Tensor::zeros(device, DType::f16, write->into.keys.shape()));
      // Slots that are not written hold poison in the dual cache, so both start from the same bytes.
      std::vector<std::byte> poison(write->into.keys.byteCount());
      REQUIRE((write == &keys ? dual.op().into.keys : *dual.op().into.values).read(poison));
      REQUIRE(write->into.keys.write(poison));
    }
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(dual.op()));
    REQUIRE(encoder.encode(keys));
    REQUIRE(encoder.encode(values));
    EXPECT_EQ(encoder.summary().barriers, 0u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT(bitsOf(dual.op().into.keys) == bitsOf(keys.into.keys));
    EXPECT(bitsOf(*dual.op().into.values) == bitsOf(values.into.keys));
  });
}

// A prompt longer than a window: the caller there passes the last tokens; here the whole prompt may be passed.
TEST(KVCacheWriteCoverage, SlidingPrefillKeepsTheNewest) {
  KVCacheWriteCase write = sequenceCase(DType::f32, DType::f16, true);
  write.sourceOffset = 7 - C;
  write.tokens = C;
  write.position = 7 - C;
  const Formula newest = [](uint64_t t, uint64_t h, uint64_t e) {
    const uint64_t token = 7 - C + t;
    return Move{(h * C + token % C) * D + e, (token * H + h) * D + e};
  };
  expectCovered(write, {C, H, D}, newest);
  write.sourceOffset = 0;
  write.tokens.reset();
  write.position = 0;
  expectCovered(write, {C, H, D}, newest);
}

}  // namespace mnk::test
