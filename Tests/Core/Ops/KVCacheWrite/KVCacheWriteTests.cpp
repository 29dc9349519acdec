// KVCacheWrite on every device against the reference.
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
#include "KVCacheWriteRun.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

// Stores the patterns as one row, as four elements a thread and as one.
void expectPatterns(DType source, DType cache, std::vector<uint64_t> patterns) {
  while (patterns.size() % 4 != 0) patterns.push_back(0);
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (uint64_t shift : {uint64_t{0}, byteSize(source)}) {
      Seeded random;
      KVCacheWriteRun opRun(device,
                            {.name = fmt::format("{} to {} at byte {}", name(source), name(cache), shift),
                             .source = source,
                             .cache = cache,
                             .heads = 1,
                             .headDim = patterns.size(),
                             .valueHeadDim = 0,
                             .capacity = 1,
                             .sourceShift = shift},
                            random);
      opRun.set("keys", bytesOfBits(source, patterns));
      run(device, opRun.op());
      opRun.expectResults();
    }
  });
}

// Around each number that a conversion from f32 to the dtype could round to the wrong side of: the halfway points
// between neighbors, with the f32 just below and just above each.
std::vector<uint64_t> f32AroundTies(int fractionBits) {
  std::vector<uint64_t> patterns;
  const uint32_t half = 1u << (22 - fractionBits);
  for (uint32_t exponent :
       {0u, 1u, 96u, 102u, 103u, 110u, 111u, 112u, 113u, 114u, 127u, 141u, 142u, 143u, 253u, 254u}) {
    for (uint32_t fraction : {0u, half, 2 * half, 3 * half, 0x7fffffu - half, 0x7fffffu, 0x800000u - half}) {
      for (uint32_t step : {uint32_t(-1), 0u, 1u}) {
        for (uint32_t sign : {0u, 0x80000000u}) patterns.push_back(((exponent << 23) + fraction + step) | sign);
      }
    }
  }
  return patterns;
}

const std::vector<uint64_t> kF32Specials = {
    0x00000000, 0x80000000,                                      // zeros
    0x7f800000, 0xff800000,                                      // infinities
    0x7fc00000, 0xffc00000, 0x7f800001, 0xff812345, 0x7fffffff,  // NaN, quiet and signaling
    0x00000001, 0x807fffff, 0x00800000,                          // around the smallest normal f32
    0x7f7fffff, 0xff7fffff, 0x7f7f8000, 0x7f7f7fff,              // around the largest bf16
    0x477fe000, 0x477fefff, 0x477ff000, 0xc77ff000,              // 65504, just below 65520, 65520
    0x33000000, 0x33000001, 0x33800000, 0xb3000000,              // 2^-25, just above, 2^-24
    0x33c00000, 0x34200000, 0x387fc000, 0x387fe000, 0x38800000,  // ties among subnormal f16, and the first normal
};

std::vector<uint64_t> everyPattern16() {
  std::vector<uint64_t> patterns(65536);
  for (uint64_t bits = 0; bits < patterns.size(); ++bits) patterns[bits] = bits;
  return patterns;
}

}  // namespace

TEST(KVCacheWrite, FollowsTheReference) {
  runOnEveryDevice(drawnWrites(kDrawnWrites));
}
TEST(KVCacheWrite, FollowsTheReferenceAtItsEdges) {
  runOnEveryDevice(writeEdges());
}

TEST(KVCacheWrite, RoundsF32ToF16Once) {
  expectPatterns(DType::f32, DType::f16, kF32Specials);
  expectPatterns(DType::f32, DType::f16, f32AroundTies(10));
}
TEST(KVCacheWrite, RoundsF32ToBF16Once) {
  expectPatterns(DType::f32, DType::bf16, kF32Specials);
  expectPatterns(DType::f32, DType::bf16, f32AroundTies(7));
}
TEST(KVCacheWrite, ConvertsEveryF16) {
  expectPatterns(DType::f16, DType::f32, everyPattern16());
  expectPatterns(DType::f16, DType::bf16, everyPattern16());
}
TEST(KVCacheWrite, ConvertsEveryBF16) {
  expectPatterns(DType::bf16, DType::f32, everyPattern16());
  expectPatterns(DType::bf16, DType::f16, everyPattern16());
}
TEST(KVCacheWrite, MovesEvery16BitPatternUnchanged) {
  expectPatterns(DType::bf16, DType::bf16, everyPattern16());
  expectPatterns(DType::f16, DType::f16, everyPattern16());
}
TEST(KVCacheWrite, MovesF32SpecialsUnchanged) {
  expectPatterns(DType::f32, DType::f32, kF32Specials);
}

// A later write to a slot must not overtake an earlier one of the same submission.
TEST(KVCacheWrite, WritesOfOneEncoderArriveInOrder) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    const KVCacheWriteRun first(device, {.name = "first", .sourceTokens = 4}, random);
    std::vector<KVCacheWriteRun> later;
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(first.op()));
    for (int round = 0; round < 8; ++round) {
      later.emplace_back(device, KVCacheWriteCase{.name = "later", .sourceTokens = 4}, random);
      KVCacheWrite again = later.back().op();
      again.into = first.op().into;
      REQUIRE(encoder.encode(again));
    }
    // The first run's source, written last, is what must remain.
    REQUIRE(encoder.encode(first.op()));
    EXPECT_EQ(encoder.summary().barriers, 9u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    first.expectResults();
  });
}

}  // namespace mnk::test
