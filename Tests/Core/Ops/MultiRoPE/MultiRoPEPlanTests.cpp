// What MultiRoPE asks a device to run, without a device.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "Harness/Check.hpp"
#include "Harness/PlanBuffer.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "MultiRoPECase.hpp"
#include "MultiRoPEReference.hpp"

namespace mnk::test {

namespace {

using Case = MultiRoPECase;

MultiRoPE planOp(const Case& rope) {
  return makeOp(rope, [](std::string_view, DType dtype, const Shape& shape, uint64_t shift) {
    return planTensor(dtype, shape, shift * byteSize(dtype));
  });
}

Dispatch onlyDispatch(const MultiRoPE& op) {
  const Plan planned = REQUIRE(plan(op));
  EXPECT_EQ(planned.dispatches.size(), 1u);
  if (planned.dispatches.size() != 1) throw Stop{};
  return planned.dispatches[0];
}

const Binding& bindingAt(const Dispatch& dispatch, uint32_t index) {
  const auto found = std::find_if(dispatch.buffers.begin(), dispatch.buffers.end(),
                                  [&](const Binding& binding) { return binding.index == index; });
  if (found != dispatch.buffers.end()) return *found;
  fail(__FILE__, __LINE__, fmt::format("nothing is bound at {}", index));
  throw Stop{};
}

bool staysInPlace(const Case& rope, RopePlacing alone) {
  return rope.placing == RopePlacing::inPlace || rope.placing == RopePlacing::inPlaceByName || rope.placing == alone;
}

// Fails unless the regions cover exactly these elements of the tensor, each once.
void expectCovers(std::string_view name, const Binding& binding, const std::vector<Region>& regions,
                  const Tensor& tensor, const std::vector<uint64_t>& elements) {
  const uint64_t size = byteSize(tensor.dtype());
  std::vector<uint32_t> times(tensor.byteCount());
  for (const Region& region : regions) {
    for (uint64_t row = 0; row < region.rows; ++row) {
      const uint64_t begin = binding.offset - tensor.byteOffset() + region.offset + row * region.rowStride;
      for (uint64_t byte = 0; byte < region.rowBytes; ++byte) ++times.at(begin + byte);
    }
  }
  for (uint64_t element : elements) {
    for (uint64_t byte = 0; byte < size; ++byte) --times.at(element * size + byte);
  }
  const auto wrong = std::find_if(times.begin(), times.end(), [](uint32_t count) { return count != 0; });
  if (wrong == times.end()) return;
  fail(__FILE__, __LINE__,
       fmt::format("{}: byte {} is declared {} times too often", name, wrong - times.begin(),
                   static_cast<int32_t>(*wrong)));
}

// In place, elements that do not turn are left alone, and the rest is read where it is written: Metal does not allow
// that buffers of two arguments alias.
void expectOperand(std::string_view name, const Dispatch& dispatch, uint32_t index, const HeadsView& from,
                   const HeadsView& into, const std::vector<TurnedElement>& elements, bool isInPlace) {
  std::vector<uint64_t> read, written;
  for (const TurnedElement& element : elements) {
    if (isInPlace && !element.isTurned) continue;
    read.push_back(element.from);
    written.push_back(element.into);
  }
  const Binding& target = bindingAt(dispatch, index + 1);
  const Binding& source = isInPlace ? target : bindingAt(dispatch, index);
  EXPECT_EQ(source.writes.empty(), !isInPlace);
  EXPECT_EQ(target.reads.empty(), !isInPlace);
  const auto isBound = [&](const Binding& binding) { return binding.index == index; };
  EXPECT_EQ(std::any_of(dispatch.buffers.begin(), dispatch.buffers.end(), isBound), !isInPlace);
  expectCovers(fmt::format("{} read", name), source, source.reads, from.tensor, read);
  expectCovers(fmt::format("{} written", name), target, target.writes, into.tensor, written);
}

std::vector<RotaryFrequency> boundFrequencies(const Dispatch& dispatch) {
  for (const InlineBytes& inlined : dispatch.inlines) {
    if (inlined.index != kMultiRoPEFrequencies) continue;
    std::vector<RotaryFrequency> frequencies(inlined.bytes.size() / sizeof(RotaryFrequency));
    std::memcpy(frequencies.data(), inlined.bytes.data(), inlined.bytes.size());
    return frequencies;
  }
  return {};
}

}  // namespace

TEST(MultiRoPEPlan, DeclaresExactlyTheBytesThatTheReferenceTouches) {
  for (const Case& rope : rope::allCases()) {
    const Context context(rope.name);
    const MultiRoPE op = planOp(rope);
    const auto bytes = [](const Tensor& tensor) { return std::vector<std::byte>(tensor.byteCount()); };
    MultiRoPEContents before{.queries = bytes(op.queries.tensor)};
    if (op.keys) before.keys = bytes(op.keys->tensor);
    before.positions.resize(4 * rope.totalTokens());
    before.offsets.resize(std::max<uint64_t>(1, rope.sequences));
    const MultiRoPEOutcome expected = reference(op, before);
    const Plan planned = REQUIRE(plan(op));
    const bool queriesStay = staysInPlace(rope, RopePlacing::queriesStay);
    const bool keysStay = staysInPlace(rope, RopePlacing::keysStay);
    const bool isSplit = op.keys && queriesStay != keysStay;
    EXPECT_EQ(planned.dispatches.size(), rope.totalTokens() == 0 ? 0u : (isSplit ? 2u : 1u));
    if (planned.dispatches.empty()) continue;
    expectOperand("queries", planned.dispatches.front(), kMultiRoPEQueries, op.queries,
                  op.rotatedQueries ? *op.rotatedQueries : op.queries, expected.queries, queriesStay);
    if (op.keys) {
      expectOperand("keys", planned.dispatches.back(), isSplit ? kMultiRoPEQueries : kMultiRoPEKeys, *op.keys,
                    op.rotatedKeys ? *op.rotatedKeys : *op.keys, expected.keys, keysStay);
    }
    for (const Dispatch& dispatch : planned.dispatches) {
      EXPECT_EQ(dispatch.grid.extent[2], rope.totalTokens());
      EXPECT(!dispatch.bytesRead && !dispatch.bytesWritten);
    }
  }
}

// A kernel that only some of the cases reach could be wrong unseen: together they reach all of them, with each of its
// constants both ways.
TEST(MultiRoPEPlan, CasesReachEveryKernel) {
  std::map<std::string, int> reached;
  for (const Case& rope : rope::allCases()) {
    for (const Dispatch& dispatch : REQUIRE(plan(planOp(rope))).dispatches) {
      for (const FunctionConstant& constant : dispatch.kernel.constants) {
        ++reached[fmt::format("{} {}: {}", dispatch.kernel.function, constant.index, constant.bits)];
      }
      const auto& constants = dispatch.kernel.constants;
      MultiRoPEParams params;
      std::memcpy(&params, dispatch.inlines.at(0).bytes.data(), sizeof params);
      ++reached[fmt::format("interleaved {}, vectorized {}, groups of {}", constants[5].bits, constants[6].bits,
                            params.headsPerGroup > 1 ? "heads" : "one")];
    }
  }
  const auto expect = [&](const std::string& kernel) {
    if (reached[kernel] == 0) fail(__FILE__, __LINE__, "no case reaches " + kernel);
  };
  for (const char* from : {"f32", "f16", "bf16"}) {
    for (const char* into : {"f32", "f16", "bf16"}) {
      for (uint32_t constant = kMultiRoPEHasKeys; constant <= kMultiRoPEIsVectorized; ++constant) {
        for (uint32_t bits : {0, 1}) {
          // What changes its dtype cannot stay in place.
          if (constant == kMultiRoPEIsApart && bits == 0 && std::string_view(from) != into) continue;
          expect(fmt::format("multiRoPE_{}_{} {}: {}", from, into, constant, bits));
        }
      }
    }
  }
  for (uint32_t interleaved : {0, 1}) {
    for (uint32_t vectorized : {0, 1}) {
      for (const char* group : {"heads", "one"}) {
        expect(fmt::format("interleaved {}, vectorized {}, groups of {}", interleaved, vectorized, group));
      }
    }
  }
}

TEST(MultiRoPEPlan, TurnsFourPairsAThreadWhereAlignmentAllows) {
  struct Expected {
    std::string_view name;
    MultiRoPE op;
    uint32_t threads;
  };
  const auto strided = [](uint64_t offset, uint64_t tokenStride) {
    return HeadsView(
        planTensor(DType::f16, {1000}),
        {.tokens = 2, .heads = 2, .headDim = 64, .offset = offset, .tokenStride = tokenStride, .headStride = 64});
  };
  const Expected cases[] = {
      {"aligned", {.queries = planTensor(DType::f16, {2, 2, 64})}, 8},
      {"an element off", {.queries = planTensor(DType::f16, {2, 2, 64}, 2)}, 32},
      {"four elements off", {.queries = planTensor(DType::f16, {2, 2, 64}, 8)}, 8},
      {"f32 four elements off", {.queries = planTensor(DType::f32, {2, 2, 64}, 16)}, 8},
      {"f32 two elements off", {.queries = planTensor(DType::f32, {2, 2, 64}, 8)}, 32},
      {"an offset of four", {.queries = strided(4, 128)}, 8},
      {"an offset of two", {.queries = strided(2, 128)}, 32},
      {"tokens apart by a multiple of four", {.queries = strided(0, 132)}, 8},
      {"tokens apart by something else", {.queries = strided(0, 130)}, 32},
      {"a head dim of 12", {.queries = planTensor(DType::f16, {2, 2, 12})}, 6},
      {"a rope dim of 12", {.queries = planTensor(DType::f16, {2, 2, 64}), .rotary = {.ropeDim = 12}}, 6},
      {"a rope dim of 16", {.queries = planTensor(DType::f16, {2, 2, 64}), .rotary = {.ropeDim = 16}}, 2},
      {"the rest is copied apart",
       {.queries = planTensor(DType::f16, {2, 2, 64}),
        .rotatedQueries = planTensor(DType::f16, {2, 2, 64}),
        .rotary = {.ropeDim = 16}},
       8},
      {"keys hold queries back",
       {.queries = planTensor(DType::f16, {2, 2, 64}), .keys = planTensor(DType::f16, {2, 1, 64}, 2)},
       32},
      {"results hold queries back",
       {.queries = planTensor(DType::f16, {2, 2, 64}), .rotatedQueries = planTensor(DType::f32, {2, 2, 64}, 4)},
       32},
  };
  for (const Expected& expected : cases) {
    const Context context{std::string(expected.name)};
    const Dispatch dispatch = onlyDispatch(expected.op);
    EXPECT_EQ(dispatch.grid.extent[0], expected.threads);
    const bool isVectorized = expected.threads <= 8 && expected.threads != 6;
    EXPECT(dispatch.kernel.constants[6] == FunctionConstant(kMultiRoPEIsVectorized, isVectorized));
  }
}

TEST(MultiRoPEPlan, HeadsShareAThreadWhereThereAreManyTokens) {
  const auto groups = [](uint64_t tokens) {
    return onlyDispatch(
               {.queries = planTensor(DType::f16, {tokens, 20, 64}), .keys = planTensor(DType::f16, {tokens, 3, 64})})
        .grid.extent[1];
  };
  EXPECT_EQ(groups(1), 23u);
  EXPECT_EQ(groups(63), 23u);
  EXPECT_EQ(groups(64), 10u + 2);
  EXPECT_EQ(groups(100), 7u + 1);
  EXPECT_EQ(groups(1000), 3u + 1);
}

TEST(MultiRoPEPlan, ParametersAndListsTravelInline) {
  const MultiRoPE op{.queries = planTensor(DType::f16, {2, 3, 4, 128}),
                     .positions = std::vector<int32_t>(6, -1),
                     .offsets = std::vector<int32_t>{5, 6}};
  const Dispatch dispatch = onlyDispatch(op);
  EXPECT_EQ(dispatch.inlines.size(), 4u);
  EXPECT_EQ(dispatch.inlines[0].bytes.size(), 160u);
  EXPECT_EQ(dispatch.inlines[1].bytes.size(), 64u * 8);
  EXPECT(dispatch.inlines[2].bytes == std::vector<std::byte>(24, std::byte{0xff}));
  EXPECT(dispatch.inlines[3].bytes == InlineBytes::of(0, std::array<int32_t, 2>{5, 6}).bytes);
  EXPECT_EQ(dispatch.buffers.size(), 1u);
  EXPECT(dispatch.threadgroupMemory.empty());
  EXPECT(dispatch.grid.unit == Grid::Unit::threads);
  EXPECT_EQ(dispatch.kind, "MultiRoPE");
  EXPECT(!dispatch.kernel.library);
}

// One radian is 0.159154943091895335768... turns.
TEST(MultiRoPEPlan, FrequenciesAreFractionsOfATurnWithTheirAxis) {
  MultiRoPE op{.queries = planTensor(DType::f16, {1, 6}), .rotary = {.base = 1}};
  EXPECT_EQ(boundFrequencies(onlyDispatch(op)).size(), 3u);
  EXPECT_EQ(boundFrequencies(onlyDispatch(op))[2].high, 0x28be60dbu);
  // Double has 53 bits, of which the last 11 or so are not there.
  EXPECT_EQ(boundFrequencies(onlyDispatch(op))[2].low >> 12, 0x9391054au >> 12);
  op.rotary = {.layout = RotaryLayout::mrope, .sections = {0, 1, 1, 1}, .base = 1};
  const auto axes = boundFrequencies(onlyDispatch(op));
  EXPECT_EQ(axes[0].low & 3, 1u);
  EXPECT_EQ(axes[1].low & 3, 2u);
  EXPECT_EQ(axes[2].low & 3, 3u);
  // Whole turns do not matter: seven radians are 1.114 turns.
  op.rotary = {.base = 1, .scale = 7};
  EXPECT_EQ(boundFrequencies(onlyDispatch(op))[0].high, static_cast<uint32_t>((7 / 6.283185307179586 - 1) * 0x1p32));
  // A blend may turn backward, and loses no digit by it.
  op.rotary = {.base = 100, .scale = 0.125, .yarn = YaRN{.originalContext = 1000000, .extensionFactor = -0.25f}};
  const uint64_t backward =
      (uint64_t{boundFrequencies(onlyDispatch(op))[0].high} << 32) | boundFrequencies(onlyDispatch(op))[0].low;
  EXPECT_EQ((0 - backward) >> 12, static_cast<uint64_t>(0.09375 / 6.283185307179586 * 0x1p64) >> 12);
  op.rotary = {.base = 1, .frequencyFactors = {INFINITY, 1, 1}};
  EXPECT_EQ(boundFrequencies(onlyDispatch(op))[0].high, 0u);
  EXPECT_EQ(boundFrequencies(onlyDispatch(op))[0].low, 0u);
}

TEST(MultiRoPEPlan, SaysWhatWouldRun) {
  const MultiRoPE op{.queries = planTensor(DType::f16, {32, 128}), .keys = planTensor(DType::f16, {8, 128})};
  const Plan planned = REQUIRE(plan(op));
  EXPECT_EQ(planned.op, "MultiRoPE");
  EXPECT_EQ(planned.scratchBytes, 0u);
  EXPECT_EQ(planned.text(),
            "MultiRoPE: 1 dispatch\n"
            "  multiRoPE_f16_f16 {hasKeys, isVectorized}: 16 x 40 x 1 threads, "
            "10.2 KB read, 10.2 KB written");
}

TEST(MultiRoPEPlan, KeysThatAreUnlikeQueriesGetADispatchOfTheirOwn) {
  MultiRoPE op{.queries = planTensor(DType::f32, {3, 4, 16}), .keys = planTensor(DType::f32, {3, 2, 16})};
  op.rotatedKeys = planTensor(DType::f16, {3, 2, 16});
  Plan planned = REQUIRE(plan(op));
  EXPECT_EQ(planned.dispatches.size(), 2u);
  EXPECT_EQ(planned.dispatches[0].kernel.function, "multiRoPE_f32_f32");
  EXPECT_EQ(planned.dispatches[1].kernel.function, "multiRoPE_f32_f16");
  EXPECT_EQ(planned.dispatches[1].grid.extent[1], 2u);
  op.rotatedQueries = planTensor(DType::f16, {3, 4, 16});
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

// Nothing in a plan needs the memory, so sizes may be those of the largest models.
TEST(MultiRoPEPlan, CountsLargeTensorsIn64Bits) {
  const uint64_t tokens = (uint64_t{1} << 31) - 1;
  const MultiRoPE op{.queries = HeadsView(planTensor(DType::f16, {128, tokens, 512}), KVLayout::headMajor)};
  const Dispatch dispatch = onlyDispatch(op);
  const Binding& queries = bindingAt(dispatch, kMultiRoPERotatedQueries);
  EXPECT_EQ(queries.reads.at(0).end(), op.queries.tensor.byteCount());
  EXPECT_EQ(dispatch.grid.extent[2], tokens);
  EXPECT_EQ(dispatch.countedBytesWritten(), op.queries.tensor.byteCount());
}

// Scattered vectors are declared as a whole; what is counted is what moves.
TEST(MultiRoPEPlan, CountsBytesThatMoveWhereMoreAreDeclared) {
  const HeadsView scattered(planTensor(DType::f16, {90 * 301}),
                            {.tokens = 100, .heads = 90, .headDim = 2, .tokenStride = 3, .headStride = 301});
  const Dispatch dispatch = onlyDispatch({.queries = scattered});
  EXPECT(bindingAt(dispatch, kMultiRoPERotatedQueries).reads.at(0).byteCount() > 100u * 90 * 4);
  EXPECT_EQ(dispatch.countedBytesRead(), 100u * 90 * 4);
  EXPECT_EQ(dispatch.countedBytesWritten(), 100u * 90 * 4);
}

}  // namespace mnk::test
