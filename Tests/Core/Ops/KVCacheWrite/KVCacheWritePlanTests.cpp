// What KVCacheWrite asks a device to run, without a device.
#include <algorithm>
#include <numeric>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "Harness/RawBytes.hpp"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "KVCacheWriteRun.hpp"
#include "Ops/Common/KernelForms.hpp"

namespace mnk::test {

namespace {

uint64_t countOf(const std::vector<bool>& bytes) {
  return static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), true));
}

void expectWrittenPlane(std::string_view name, const Dispatch& dispatch, const KVCacheWriteCase& write,
                        const HeadsView& source, const Tensor& cache, const ExpectedPlane& expected) {
  if (cache.byteCount() == 0) return;  // vectors without elements lie anywhere
  const uint32_t index = name == "keys" ? kKVCacheWriteKeys : kKVCacheWriteValues;
  // A row may name a source token that another replaces.
  if (!write.rows) expectSourceRead(name, dispatch, index, source, expected.isRead);
  expectDeclared("the cache", dispatch, cache, std::vector<bool>(cache.byteCount()), expected.isWritten);
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

constexpr GoldenText kWritePlans{
    "Ops/KVCacheWrite/Plans.inc",
#include "Plans.inc"
};

}  // namespace

TEST(KVCacheWritePlan, DeclaresExactlyTheBytesThatTheReferenceTouches) {
  uint64_t apart = 0;
  for (const KVCacheWriteCase& write : drawnWrites(kDrawnWrites)) {
    // Where rows of tensors go is known to the kernel alone.
    if (write.areSequencesTensor || write.arePositionsTensor) continue;
    const Context context(write.name);
    const KVCacheWrite op = planOp(write);
    const Plan planned = REQUIRE(plan(op));
    const KVCacheWriteOutcome expected =
        reference(op, [](const Tensor& tensor) { return std::vector<std::byte>(tensor.byteCount()); });
    const uint64_t written = countOf(expected.keyCache.isWritten) + countOf(expected.valueCache.isWritten);
    EXPECT_EQ(planned.dispatches.size(), written == 0 ? 0u : 1u);
    if (planned.dispatches.empty()) continue;
    const Dispatch& dispatch = planned.dispatches[0];
    expectWidest(dispatch, write, op);
    EXPECT_EQ(dispatch.countedBytesWritten(), written);
    EXPECT_EQ(dispatch.grid.extent[1], write.heads);
    expectWrittenPlane("keys", dispatch, write, op.keys, op.into.keys, expected.keyCache);
    if (op.values) {
      expectWrittenPlane("values", dispatch, write, *op.values, *op.into.values, expected.valueCache);
    } else {
      EXPECT_EQ(dispatch.buffers.size(), 2u);
    }
    const bool isDivided = areApart(write, op.keys) || (op.values && areApart(write, *op.values));
    apart += isDivided;
    const auto params = numbersIn<KVCacheWriteParams>(dispatch.inlines[0].bytes).at(0);
    EXPECT_EQ(params.address.sourceLength, sourceTokens(op));
    EXPECT_EQ(params.address.sourceSequenceLength, isDivided ? write.sourceTokens : sourceTokens(op));
    if (write.rows) continue;  // a row may name a source token that another replaces
    EXPECT_EQ(dispatch.countedBytesRead(), countOf(expected.keyCache.isRead) + countOf(expected.valueCache.isRead));
    EXPECT_EQ(dispatch.grid.extent[2], expected.storedTokens);
  }
  EXPECT(apart > 20);
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

// Moves by every width and all conversions, each with its constants both ways; few of their forms are left out.
TEST(KVCacheWritePlan, CasesReachEveryKernel) {
  KernelForms reached;
  for (const KVCacheWriteCase& write : drawnWrites(kDrawnWrites)) reached.add(REQUIRE(plan(planOp(write))));
  EXPECT_EQ(reached.functions().size(), 4u + 6);
  for (const std::string& function : reached.functions()) {
    const bool isMove = function.starts_with("kvCacheMove");
    EXPECT(reached.fixedConstants(function) ==
           (isMove ? std::set<uint32_t>{kKVCacheWriteIsVectorized} : std::set<uint32_t>()));
  }
  EXPECT(reached.forms() > 90);  // of 96
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
