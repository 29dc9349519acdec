// What KVCacheWrite asks a device to run, without a device.
#include <algorithm>
#include <cstring>
#include <map>

#include "Harness/Check.hpp"
#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "KVCacheWriteCase.hpp"
#include "KVCacheWriteReference.hpp"

namespace mnk::test {

namespace {

constexpr std::pair<DType, DType> kConversions[] = {{DType::f32, DType::f16},  {DType::f32, DType::bf16},
                                                    {DType::f16, DType::f32},  {DType::f16, DType::bf16},
                                                    {DType::bf16, DType::f32}, {DType::bf16, DType::f16}};

KVCacheWrite planWrite(const KVCacheWriteCase& write) {
  return makeOp(write, [](std::string_view, DType dtype, const Shape& shape, uint64_t shift) {
    return planTensor(dtype, shape, shift);
  });
}

Dispatch onlyDispatch(const KVCacheWriteCase& write) {
  const Plan planned = REQUIRE(plan(planWrite(write)));
  EXPECT_EQ(planned.dispatches.size(), 1u);
  if (planned.dispatches.size() != 1) throw Stop{};
  return planned.dispatches[0];
}

KVCacheWriteOutcome outcomeOf(const KVCacheWriteCase& write, const KVCacheWrite& op) {
  const auto bytes = [](const Tensor& tensor) { return std::vector<std::byte>(tensor.byteCount()); };
  KVCacheWriteBytes before{.keys = bytes(op.keys.tensor), .keyCache = bytes(op.into.keys)};
  if (op.values) before.values = bytes(op.values->tensor), before.valueCache = bytes(*op.into.values);
  if (write.rows) {
    for (const auto& row : *write.rows) {
      before.sequences.push_back(row.sequence);
      before.positions.push_back(row.position);
    }
  }
  return reference(op, before);
}

uint64_t countOf(const std::vector<bool>& bytes) {
  return static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), true));
}

void expectWrittenPlane(std::string_view name, const Dispatch& dispatch, const KVCacheWriteCase& write,
                        const HeadsView& source, const Tensor& cache, const std::vector<bool>& read,
                        const ExpectedPlane& written) {
  if (cache.byteCount() == 0) return;  // vectors without elements lie anywhere
  const Binding* from = sourceBindingOf(dispatch, name == "keys" ? kKVCacheWriteKeys : kKVCacheWriteValues, source);
  const Binding* to = bindingOf(dispatch, cache);
  if (!from || !to) return fail(__FILE__, __LINE__, fmt::format("{}: not bound", name));
  EXPECT_EQ(to->offset, cache.byteOffset());
  EXPECT_EQ(to->length, cache.byteCount());
  EXPECT(from->writes.empty());
  EXPECT(to->reads.empty());
  if (!write.rows) expectCovers(fmt::format("{} read", name), from->reads, boundPart(*from, source, read));
  expectCovers(fmt::format("{} written", name), to->writes, written.isWritten);
}

constexpr GoldenText kWritePlans{
    "Ops/KVCacheWrite/Plans.inc",
#include "Plans.inc"
};

}  // namespace

TEST(KVCacheWritePlan, DeclaresExactlyTheBytesThatTheReferenceTouches) {
  for (const KVCacheWriteCase& write : drawnWrites(kDrawnWrites)) {
    // Where rows of tensors go is known to the kernel alone.
    if (write.areSequencesTensor || write.arePositionsTensor) continue;
    const Context context(write.name);
    const KVCacheWrite op = planWrite(write);
    const Plan planned = REQUIRE(plan(op));
    const KVCacheWriteOutcome expected = outcomeOf(write, op);
    const uint64_t written = countOf(expected.keyCache.isWritten) + countOf(expected.valueCache.isWritten);
    EXPECT_EQ(planned.dispatches.size(), written == 0 ? 0u : 1u);
    for (const Dispatch& dispatch : planned.dispatches) {
      EXPECT_EQ(dispatch.countedBytesWritten(), written);
      EXPECT_EQ(dispatch.grid.extent[1], write.heads);
      expectWrittenPlane("keys", dispatch, write, op.keys, op.into.keys, expected.keysRead, expected.keyCache);
      if (op.values) {
        expectWrittenPlane("values", dispatch, write, *op.values, *op.into.values, expected.valuesRead,
                           expected.valueCache);
      } else {
        EXPECT_EQ(dispatch.buffers.size(), 2u);
      }
      if (write.rows) continue;  // a row may name a source token that another replaces
      EXPECT_EQ(dispatch.countedBytesRead(), countOf(expected.keysRead) + countOf(expected.valuesRead));
      EXPECT_EQ(dispatch.grid.extent[2], expected.storedTokens);
    }
  }
}

// Tensors may name rows for it, which the kernel would skip.
TEST(KVCacheWritePlan, ACacheOfNoSequencesNeedsNoDispatch) {
  KVCacheWriteCase write{.sequences = 1, .sourceTokens = 2, .rows = {{{0, 0}, {0, 1}}}};
  write.areSequencesTensor = write.arePositionsTensor = true;
  KVCacheWrite op = planWrite(write);
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  for (Tensor* plane : {&op.into.keys, &*op.into.values}) {
    const Shape& shape = plane->shape();
    *plane = planTensor(plane->dtype(), REQUIRE(Shape::make({0, shape[1], shape[2], shape[3]})), 0);
  }
  EXPECT(REQUIRE(plan(op)).dispatches.empty());
}

// A kernel that only some of the cases reach could be wrong unseen: together they reach all of them.
TEST(KVCacheWritePlan, CasesReachEveryKernel) {
  std::map<std::string, int> reached;
  for (const KVCacheWriteCase& write : drawnWrites(kDrawnWrites)) {
    for (const Dispatch& dispatch : REQUIRE(plan(planWrite(write))).dispatches) ++reached[dispatch.kernel.text()];
  }
  const auto expect = [&](const std::string& kernel) {
    if (reached[kernel] == 0) fail(__FILE__, __LINE__, "no case reaches " + kernel);
  };
  for (const char* rowsMayRepeat : {"", ", rowsMayRepeat"}) {
    expect(fmt::format("kvCacheConvert_f32_f16 {{hasValues, hasRows{}, isVectorized}}", rowsMayRepeat));
    expect(fmt::format("kvCacheConvert_f32_f16 {{hasRows{}}}", rowsMayRepeat));
    expect(fmt::format("kvCacheMove_4 {{hasValues, hasRows{}}}", rowsMayRepeat));
    expect(fmt::format("kvCacheMove_2 {{hasRows{}}}", rowsMayRepeat));
  }
  for (const bool hasValues : {false, true}) {
    for (const char* bytes : {"16", "4", "2", "1"}) {
      expect(fmt::format("kvCacheMove_{}{}", bytes, hasValues ? " {hasValues}" : ""));
    }
    for (const auto& [source, cache] : kConversions) {
      const std::string converting = fmt::format("kvCacheConvert_{}_{}", name(source), name(cache));
      expect(converting + (hasValues ? " {hasValues}" : ""));
      expect(converting + (hasValues ? " {hasValues, isVectorized}" : " {isVectorized}"));
    }
  }
}

TEST(KVCacheWritePlan, MovesAreAsWideAsAlignmentAllows) {
  const struct {
    const char* name;
    void (*change)(KVCacheWriteCase& c);
    const char* function;
    uint32_t threads;
  } cases[] = {
      {"aligned", [](KVCacheWriteCase&) {}, "kvCacheMove_16", 8},
      {"a source 8 bytes off", [](KVCacheWriteCase& c) { c.sourceShift = 8; }, "kvCacheMove_4", 32},
      {"a cache 8 bytes off", [](KVCacheWriteCase& c) { c.cacheShift = 8; }, "kvCacheMove_4", 32},
      {"a source 4 bytes off", [](KVCacheWriteCase& c) { c.sourceShift = 4; }, "kvCacheMove_4", 32},
      {"a cache 2 bytes off", [](KVCacheWriteCase& c) { c.cacheShift = 2; }, "kvCacheMove_2", 64},
      {"both 16 bytes off", [](KVCacheWriteCase& c) { c.sourceShift = c.cacheShift = 16; }, "kvCacheMove_16", 8},
      {"rows of 12 bytes", [](KVCacheWriteCase& c) { c.headDim = 6; }, "kvCacheMove_4", 3},
      {"rows of 10 bytes", [](KVCacheWriteCase& c) { c.headDim = 5; }, "kvCacheMove_2", 5},
      {"narrow values hold wide keys back", [](KVCacheWriteCase& c) { c.valueHeadDim = 3; }, "kvCacheMove_2", 67},
      {"wide values", [](KVCacheWriteCase& c) { c.valueHeadDim = 128; }, "kvCacheMove_16", 24},
      {"no keys", [](KVCacheWriteCase& c) { c.headDim = 0, c.valueHeadDim = 16; }, "kvCacheMove_16", 2},
      {"an odd byte", [](KVCacheWriteCase& c) { c.source = c.cache = DType::u8, c.sourceShift = 1; }, "kvCacheMove_1",
       64},
      {"f32", [](KVCacheWriteCase& c) { c.source = c.cache = DType::f32; }, "kvCacheMove_16", 16},
      {"columns", [](KVCacheWriteCase& c) { c.fused = KVCacheWriteCase::Fused{.lead = 128, .tail = 64}; },
       "kvCacheMove_16", 8},
      {"columns 4 bytes off", [](KVCacheWriteCase& c) { c.fused = KVCacheWriteCase::Fused{.lead = 2}; },
       "kvCacheMove_4", 32},
      {"odd columns, one token", [](KVCacheWriteCase& c) { c.fused = KVCacheWriteCase::Fused{.tail = 1}; },
       "kvCacheMove_16", 8},
      {"odd columns", [](KVCacheWriteCase& c) { c.fused = KVCacheWriteCase::Fused{.tail = 1}, c.sourceTokens = 2; },
       "kvCacheMove_2", 64},
      {"odd values", [](KVCacheWriteCase& c) { c.fused = KVCacheWriteCase::Fused{.between = 1}, c.valueHeadDim = 64; },
       "kvCacheMove_2", 128},
  };
  for (const auto& [name, change, function, threads] : cases) {
    const Context context(name);
    KVCacheWriteCase write{.source = DType::f16, .cache = DType::f16, .headDim = 64, .valueHeadDim = 0};
    change(write);
    const Dispatch dispatch = onlyDispatch(write);
    EXPECT_EQ(dispatch.kernel.function, function);
    EXPECT_EQ(dispatch.grid.extent[0], threads);
  }
}

TEST(KVCacheWritePlan, ConversionsTakeFourElementsWhereAlignmentAllows) {
  for (const auto& [source, cache] : kConversions) {
    for (uint64_t headDim : {64, 6}) {
      for (uint64_t sourceShift = 0; sourceShift <= 16; sourceShift += byteSize(source)) {
        for (uint64_t cacheShift = 0; cacheShift <= 16; cacheShift += byteSize(cache)) {
          const Context context(fmt::format("{} at byte {} to {} at byte {}, head dim {}", name(source), sourceShift,
                                            name(cache), cacheShift, headDim));
          const bool isVectorized =
              headDim % 4 == 0 && sourceShift % (4 * byteSize(source)) == 0 && cacheShift % (4 * byteSize(cache)) == 0;
          const Dispatch dispatch = onlyDispatch({.source = source,
                                                  .cache = cache,
                                                  .headDim = headDim,
                                                  .valueHeadDim = 0,
                                                  .sourceShift = sourceShift,
                                                  .cacheShift = cacheShift});
          EXPECT_EQ(dispatch.kernel.function, fmt::format("kvCacheConvert_{}_{}", name(source), name(cache)));
          EXPECT(dispatch.kernel.constants[3] == FunctionConstant(3, isVectorized));
          EXPECT_EQ(dispatch.grid.extent[0], isVectorized ? headDim / 4 : headDim);
        }
      }
    }
  }
}

// The kernel divides by the tokens of a sequence where they are fewer than those of the source.
TEST(KVCacheWritePlan, OnlySequencesApartNeedADivision) {
  const auto lengthOf = [](KVCacheWriteCase write) {
    write.rows = std::vector<KVCacheWriteCase::Row>(6);
    write.source = write.cache = DType::f32;
    const Dispatch dispatch = onlyDispatch(write);
    KVCacheWriteParams params;
    std::memcpy(&params, dispatch.inlines[0].bytes.data(), sizeof params);
    EXPECT_EQ(params.address.sourceLength, 6u);
    return params.address.sourceSequenceLength;
  };
  using Form = KVCacheWriteCase::Fused::Form;
  const KVLayout headMajor = KVLayout::headMajor;
  EXPECT_EQ(lengthOf({.sourceTokens = 6}), 6u);
  EXPECT_EQ(lengthOf({.sourceLayout = headMajor, .sourceTokens = 6}), 6u);
  EXPECT_EQ(lengthOf({.sourceTokens = 2, .sourceSequences = 3}), 6u);
  EXPECT_EQ(lengthOf({.sourceLayout = headMajor, .sourceTokens = 2, .sourceSequences = 3}), 2u);
  EXPECT_EQ(lengthOf({.sourceLayout = headMajor, .sourceTokens = 1, .sourceSequences = 6}), 6u);
  EXPECT_EQ(
      lengthOf({.sourceTokens = 3, .sourceSequences = 2, .fused = KVCacheWriteCase::Fused{Form::columns, 4, 0, 0}}),
      6u);
  EXPECT_EQ(lengthOf({.sourceTokens = 3, .sourceSequences = 2, .fused = KVCacheWriteCase::Fused{Form::apart, 4, 0, 0}}),
            3u);
}

// Nothing in a plan needs the memory, so sizes may be those of the largest models.
TEST(KVCacheWritePlan, PlansMatchTheGoldenOnes) {
  KVCacheWrite slice = planWrite({.headDim = 64, .valueHeadDim = 0, .sourceTokens = 4});
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
  for (const KVCacheWriteCase& each : cases) lines.push_back(planLine(each.name, REQUIRE(plan(planWrite(each)))));
  expectGolden(kWritePlans, lines);
  EXPECT_EQ(REQUIRE(plan(planWrite(cases[5]))).text(),
            "KVCacheWrite: 1 dispatch\n"
            "  kvCacheConvert_f32_f16 {hasValues, isVectorized}: 64 x 8 x 1 threads, 8.2 KB read, "
            "4.1 KB written");
  EXPECT_EQ(REQUIRE(plan(planWrite({.sourceTokens = 0}))).text(), "KVCacheWrite: 0 dispatches");
}

}  // namespace mnk::test
