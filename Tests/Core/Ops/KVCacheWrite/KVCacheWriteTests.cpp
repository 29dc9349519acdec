// KVCacheWrite on every device against the reference, and what it asks a device to run.
#include <algorithm>
#include <numeric>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "KVCacheWriteCase.hpp"
#include "Ops/Common/KernelForms.hpp"

namespace mnk::test {

namespace {

using Write = KVCacheWriteCase;

// What some cases must be: the cache copies of mlx-native 0.6-0.9, which the page "Coverage" of the documentation
// lists, and what calls may stumble over.
const std::pair<const char*, bool (*)(const Write&)> kKinds[] = {
    {"nearly as many rows as there may be", [](const Write& w) { return w.rows && w.rows->size() > 1000; }},
    {"heads of models", [](const Write& w) { return w.heads == 8 && w.headDim >= 64; }},
    {"around a ring with pinned slots",
     [](const Write& w) { return w.pinned != 0 && !w.rows && w.position > w.capacity && w.sourceTokens > w.capacity; }},
    {"kv_cache_copy",
     [](const Write& w) {
       return w.source == w.cache && w.wrap == KVWrap::ring && w.cacheLayout == KVLayout::tokenMajor && w.heads == 1;
     }},
    {"kv_cache_copy_batch", [](const Write& w) { return w.isSourceRank2 && w.wrap == KVWrap::linear; }},
    {"kv_cache_copy_seq",
     [](const Write& w) {
       return w.sourceOffset != 0 && w.tokens && w.sourceLayout == KVLayout::tokenMajor && w.wrap == KVWrap::ring &&
              w.source == DType::f32 && w.cache == DType::f16 && w.valueHeadDim != 0 && !w.rows;
     }},
    {"kv_cache_copy_seq_bf16_to_bf16_head_major",
     [](const Write& w) {
       return w.sourceLayout == KVLayout::headMajor && w.source == DType::bf16 && w.cache == DType::bf16 && !w.rows;
     }},
    {"kv_cache_copy_batch_f32_to_f16_batched",
     [](const Write& w) { return w.sequences > 1 && w.areSequencesTensor && w.arePositionsTensor; }},
    {"kv_cache_linearize_ring_bytes",
     [](const Write& w) {
       return w.source == DType::u8 && w.isSourceRing && w.sourceLayout == KVLayout::headMajor &&
              w.wrap == KVWrap::linear && w.sourceOffset != 0;
     }},
    {"a prompt longer than a window",
     [](const Write& w) {
       return w.wrap == KVWrap::ring && w.tokens.value_or(w.sourceTokens) > w.capacity && !w.rows;
     }},
};

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

// Numbers that are special, and those around each that a conversion from f32 to the dtype could round to the wrong side
// of: the halfway points between neighbors, with the f32 just below and just above each.
std::vector<uint64_t> f32Patterns(int fractionBits) {
  std::vector<uint64_t> patterns = kF32Specials;
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

// What divides the address of the first vector, its length and all distances to others, in bytes.
uint64_t commonDivisor(const HeadsView& source) {
  const HeadsView::Strides s = source.resolved();
  const uint64_t size = byteSize(source.tensor.dtype());
  uint64_t all = std::gcd(source.tensor.range().begin + s.offset * size, s.headDim * size);
  if (!source.strides) return all;
  for (const auto& [count, stride] : {std::pair(s.sequences, s.sequenceStride), std::pair(s.tokens, s.tokenStride),
                                      std::pair(s.heads, s.headStride)}) {
    if (count > 1) all = std::gcd(all, stride * size);
  }
  return all;
}
uint64_t commonDivisor(const Tensor& cache) {
  return std::gcd(cache.range().begin, cache.shape()[cache.shape().rank() - 1] * byteSize(cache.dtype()));
}

// Moves are as wide as everything allows that keys and values have in common, and conversions are of four elements or
// of one.
void expectWidest(const Dispatch& dispatch, const KVCacheWriteCase& write, const KVCacheWrite& op) {
  uint64_t ofSource = commonDivisor(op.keys), ofCache = commonDivisor(op.into.keys);
  if (op.values) {
    ofSource = std::gcd(ofSource, commonDivisor(*op.values));
    ofCache = std::gcd(ofCache, commonDivisor(*op.into.values));
  }
  const uint64_t from = byteSize(write.source), to = byteSize(write.cache), bytes = std::gcd(ofSource, ofCache);
  const bool isVectorized = write.source != write.cache && ofSource % (4 * from) == 0 && ofCache % (4 * to) == 0;
  uint64_t elements = isVectorized ? 4 : 1;
  if (write.source == write.cache) {
    const uint64_t width = bytes % 16 == 0 ? 16 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
    elements = width / from;
    EXPECT_EQ(dispatch.kernel.function, fmt::format("kvCacheMove_{}", width));
  } else {
    EXPECT_EQ(dispatch.kernel.function, fmt::format("kvCacheConvert_{}_{}", name(write.source), name(write.cache)));
  }
  EXPECT(dispatch.kernel.constants.back() == FunctionConstant(kKVCacheWriteIsVectorized, isVectorized));
  EXPECT_EQ(dispatch.grid.extent[0], (write.headDim + write.valueHeadDim) / elements);
}

// The kernel divides by the tokens of a sequence where sequences do not follow each other like tokens.
bool areApart(const KVCacheWriteCase& write, const HeadsView& source) {
  const auto at = [&](uint64_t token) { return sourceElement(source, write.sourceLayout, token, 0); };
  return write.sourceSequences > 1 && write.sourceTokens > 1 &&
         at(write.sourceTokens) - at(0) != write.sourceTokens * (at(1) - at(0));
}

// The plan declares exactly the vectors that the reference moves. A row may name a source token that another replaces.
void expectDeclaredWrite(const Plan& planned, const KVCacheWriteCase& write, const KVCacheWrite& op,
                         const std::map<Place, uint64_t>& tokens) {
  TouchedBytes touched;
  const auto touch = [&](const HeadsView& source, const Tensor& cache, uint64_t headDim) {
    const uint64_t from = byteSize(write.source), to = byteSize(write.cache);
    for (const auto& [place, token] : tokens) {
      for (uint64_t head = 0; head < write.heads; ++head) {
        touched.reads(source.tensor, sourceElement(source, op.sourceLayout, token, head) * from, headDim * from);
        touched.writes(cache, cacheRow(op.into, place, head) * headDim * to, headDim * to);
      }
    }
  };
  touch(op.keys, op.into.keys, write.headDim);
  if (op.values) touch(*op.values, *op.into.values, write.valueHeadDim);
  if (!write.rows) touched.expectReads(planned);
  touched.expectWrites(planned);
}

constexpr GoldenText kWritePlans{
    "Ops/KVCacheWrite/Plans.inc",
#include "Plans.inc"
};

}  // namespace

TEST(KVCacheWrite, FollowsTheReference) {
  const auto cases = drawnWrites(kDrawnWrites);
  for (const auto& [name, isOfKind] : kKinds) {
    if (std::ranges::count_if(cases, isOfKind) < 5) fail(__FILE__, __LINE__, fmt::format("few cases are {}", name));
  }
  runOnEveryDevice(cases);
}

TEST(KVCacheWrite, RoundsF32Once) {
  expectPatterns(DType::f32, DType::f16, f32Patterns(10));
  expectPatterns(DType::f32, DType::bf16, f32Patterns(7));
  expectPatterns(DType::f32, DType::f32, kF32Specials);
}
TEST(KVCacheWrite, MovesOrConvertsEvery16BitPattern) {
  std::vector<uint64_t> patterns(65536);
  std::iota(patterns.begin(), patterns.end(), 0);
  for (const DType source : {DType::f16, DType::bf16}) {
    for (const DType cache : {DType::f32, DType::f16, DType::bf16}) expectPatterns(source, cache, patterns);
  }
}

// A later write to a slot must not overtake an earlier one of the same submission. A write that is refused leaves no
// trace in it.
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
      again.position = UINT64_MAX;
      EXPECT_ERROR(encoder.encode(again), {.op = KVCacheWrite::name});
    }
    // The first run's source, written last, is what must remain.
    REQUIRE(encoder.encode(first.op()));
    EXPECT_EQ(encoder.summary().barriers, 9u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    first.expectResults();
  });
}

// Moves by every width and all conversions, each with its constants both ways; few of their forms are left out.
TEST(KVCacheWritePlan, CasesReachEveryKernelAndDeclareTheirBytes) {
  KernelForms reached;
  uint64_t apart = 0;
  for (const KVCacheWriteCase& write : drawnWrites(kDrawnWrites)) {
    const Context context(write.name);
    const KVCacheWrite op = planOp(write);
    const Plan planned = REQUIRE(plan(op));
    reached.add(planned);
    // Where rows of tensors go is known to the kernel alone.
    if (write.areSequencesTensor || write.arePositionsTensor) continue;
    const auto tokens = winners(op, {});
    const uint64_t elements = tokens.size() * write.heads * (write.headDim + write.valueHeadDim);
    EXPECT_EQ(planned.dispatches.size(), elements == 0 ? 0u : 1u);
    expectDeclaredWrite(planned, write, op, tokens);
    if (planned.dispatches.empty()) continue;
    const Dispatch& dispatch = planned.dispatches[0];
    expectWidest(dispatch, write, op);
    EXPECT_EQ(dispatch.countedBytesWritten(), elements * byteSize(write.cache));
    EXPECT_EQ(dispatch.grid.extent[1], write.heads);
    EXPECT_EQ(dispatch.buffers.size(), op.values ? 4u : 2u);
    const bool isDivided = areApart(write, op.keys) || (op.values && areApart(write, *op.values));
    apart += isDivided;
    const auto params = numbersIn<KVCacheWriteParams>(dispatch.inlines[0].bytes).at(0);
    EXPECT_EQ(params.address.sourceLength, sourceTokens(op));
    EXPECT_EQ(params.address.sourceSequenceLength, isDivided ? write.sourceTokens : sourceTokens(op));
    if (write.rows) continue;
    EXPECT_EQ(dispatch.countedBytesRead(), elements * byteSize(write.source));
    EXPECT_EQ(dispatch.grid.extent[2], tokens.size());
  }
  EXPECT(apart > 20);
  EXPECT_EQ(reached.functions().size(), 4u + 6);
  for (const std::string& function : reached.functions()) {
    const bool isMove = function.starts_with("kvCacheMove");
    EXPECT(reached.fixedConstants(function) ==
           (isMove ? std::set<uint32_t>{kKVCacheWriteIsVectorized} : std::set<uint32_t>()));
  }
  EXPECT(reached.forms() > 90);  // of 96
}

// Tensors may name rows for it, which the kernel would skip.
TEST(KVCacheWritePlan, ACacheOfNoSequencesNeedsNoDispatch) {
  KVCacheWriteCase write{.sequences = 1, .sourceTokens = 2, .rows = {{{0, 0}, {0, 1}}}};
  write.areSequencesTensor = write.arePositionsTensor = true;
  KVCacheWrite op = planOp(write);
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  for (Tensor* plane : {&op.into.keys, &*op.into.values}) {
    const Shape& shape = plane->shape();
    *plane = planTensor(plane->dtype(), REQUIRE(Shape::make({0, shape[1], shape[2], shape[3]})), 0);
  }
  EXPECT(REQUIRE(plan(op)).dispatches.empty());
}

// Nothing in a plan needs the memory, so sizes may be those of the largest models.
TEST(KVCacheWritePlan, PlansMatchTheGoldenOnes) {
  KVCacheWrite slice = planOp<KVCacheWriteCase>({.headDim = 64, .valueHeadDim = 0, .sourceTokens = 4});
  slice.keys = REQUIRE(slice.keys.tensor.slice(1, 2));
  std::vector<std::string> lines{planLine("slice", REQUIRE(plan(slice)))};
  KVCacheWriteCase rows{.name = "listed rows", .sequences = 3, .sourceTokens = 2, .rows = {{{2, 1}, {0, 3}}}};
  KVCacheWriteCase positions = rows;
  positions.name = "rows with a tensor of positions";
  positions.arePositionsTensor = true;
  KVCacheWriteCase tensors = positions;
  tensors.name = "rows of tensors";
  tensors.areSequencesTensor = true;
  const KVCacheWriteCase cases[] = {
      rows,
      positions,
      tensors,
      {.name = "plain"},
      {.name = "no tokens", .sourceTokens = 0},
      {.name = "a model", .heads = 8, .headDim = 128, .valueHeadDim = 128, .capacity = 4096},
      {.name = "the largest cache",
       .source = DType::bf16,
       .cache = DType::bf16,
       .heads = 1024,
       .headDim = 512,
       .valueHeadDim = 0,
       .capacity = (uint64_t{1} << 31) - 1,
       .sequences = 64,
       .sequence = 63,
       .position = (uint64_t{1} << 31) - 2}};
  for (const KVCacheWriteCase& each : cases) lines.push_back(planLine(each.name, REQUIRE(plan(planOp(each)))));
  expectGolden(kWritePlans, lines);
  EXPECT_EQ(REQUIRE(plan(planOp(cases[5]))).text(),
            "KVCacheWrite: 1 dispatch\n"
            "  kvCacheConvert_f32_f16 {hasValues, isVectorized}: 64 x 8 x 1 threads, 8.2 KB read, "
            "4.1 KB written");
  EXPECT_EQ(REQUIRE(plan(planOp<KVCacheWriteCase>({.sourceTokens = 0}))).text(), "KVCacheWrite: 0 dispatches");
}

}  // namespace mnk::test
