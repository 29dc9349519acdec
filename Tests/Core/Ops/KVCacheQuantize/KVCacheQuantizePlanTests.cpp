// What KVCacheQuantize, KVCacheDequantize and Hadamard ask a device to run, without a device.
#include <algorithm>
#include <map>
#include <set>

#include "Harness/Check.hpp"
#include "Harness/DeclaredBytes.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "KVCacheQuantizeCase.hpp"
#include "MLXNativeKernels/Hadamard.hpp"
#include "MLXNativeKernels/KVCacheDequantize.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

namespace {

using Case = KVCacheQuantizeCase;

KVCacheQuantize planOp(const Case& quantize) {
  return makeOp(quantize, [](std::string_view, DType dtype, const Shape& shape, uint64_t shift) {
    return planTensor(dtype, shape, shift);
  });
}

// An op with the same sources, slots and rows.
KVCacheWrite placesOf(const KVCacheQuantize& op) {
  return {.keys = op.keys,
          .sourceLayout = op.sourceLayout,
          .sourceOffset = op.sourceOffset,
          .tokens = op.tokens,
          .sourceIsRing = op.sourceIsRing,
          .into = op.into.codes(),
          .sequence = op.sequence,
          .position = op.position,
          .rows = op.rows};
}

std::map<Place, uint64_t> winnersOf(const Case& quantize, const KVCacheQuantize& op) {
  std::vector<uint32_t> sequences, positions;
  if (quantize.write.rows) {
    for (const auto& row : *quantize.write.rows) sequences.push_back(row.sequence), positions.push_back(row.position);
  }
  return winners(placesOf(op), sequences, positions);
}

// The bytes of rows in a tensor whose rows are these.
std::vector<bool> marked(const Tensor& tensor, uint64_t rowBytes, const std::vector<uint64_t>& rows) {
  std::vector<bool> bytes(tensor.byteCount());
  for (uint64_t row : rows) {
    for (uint64_t byte = 0; byte < rowBytes; ++byte) bytes.at(row * rowBytes + byte) = true;
  }
  return bytes;
}

void expectDeclared(std::string_view name, const Dispatch& dispatch, const Tensor& tensor,
                    const std::vector<bool>& read, const std::vector<bool>& written) {
  const Binding* binding = bindingOf(dispatch, tensor);
  if (!binding) return fail(__FILE__, __LINE__, fmt::format("{}: not bound", name));
  EXPECT_EQ(binding->offset, tensor.byteOffset());
  EXPECT_EQ(binding->length, tensor.byteCount());
  expectCovers(fmt::format("{} read", name), binding->reads, read);
  expectCovers(fmt::format("{} written", name), binding->writes, written);
}

void expectPlane(std::string_view name, const Dispatch& dispatch, const KVCacheQuantize& op, const HeadsView& source,
                 const QuantizedKVPlane& plane, const std::map<Place, uint64_t>& tokens) {
  const KVCacheWrite places = placesOf(op);
  const uint64_t heads = places.into.heads();
  const uint64_t capacity = places.into.capacity();
  const uint64_t elementBytes = byteSize(source.tensor.dtype());
  std::vector<bool> read(source.tensor.byteCount());
  std::vector<uint64_t> cacheRows;
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < heads; ++head) {
      const auto first =
          read.begin() + static_cast<ptrdiff_t>(sourceElement(source, op.sourceLayout, token, head) * elementBytes);
      std::fill_n(first, plane.headDim() * elementBytes, true);
      cacheRows.push_back(op.into.layout == KVLayout::headMajor
                              ? (place.sequence * heads + head) * capacity + place.slot
                              : (place.sequence * capacity + place.slot) * heads + head);
    }
  }
  const auto none = [](const Tensor& tensor) { return std::vector<bool>(tensor.byteCount()); };
  const auto all = [](const Tensor& tensor) { return std::vector<bool>(tensor.byteCount(), true); };
  KVCodecSizes size{.codeBytes = plane.headDim() * byteSize(plane.codes.dtype())};
  if (!plane.isDense()) size = REQUIRE(sizes(plane.codec, plane.headDim()));
  const auto text = [&](std::string_view part) { return fmt::format("{} {}", name, part); };
  const Binding* from =
      sourceBindingOf(dispatch, name == "key" ? kKVCacheQuantizeKeys : kKVCacheQuantizeValues, source);
  if (!from) return fail(__FILE__, __LINE__, text("source is not bound"));
  expectCovers(text("source read"), from->reads, boundPart(*from, source, read));
  EXPECT(from->writes.empty());
  expectDeclared(text("codes"), dispatch, plane.codes, none(plane.codes),
                 marked(plane.codes, size.codeBytes, cacheRows));
  if (!plane.isDense()) {
    expectDeclared(text("scales"), dispatch, plane.scales, none(plane.scales),
                   marked(plane.scales, size.scaleBytes, cacheRows));
  }
  if (plane.means) expectDeclared(text("means"), dispatch, *plane.means, all(*plane.means), none(*plane.means));
  if (!plane.channelScales) return;
  expectDeclared(text("channel scales"), dispatch, *plane.channelScales, all(*plane.channelScales),
                 none(*plane.channelScales));
}

}  // namespace

TEST(KVCacheQuantizePlan, IsOneDispatchThatDeclaresItsBytes) {
  uint32_t empty = 0, exact = 0;
  for (const Case& quantize : allQuantizeCases()) {
    const Context context(quantize.name);
    const KVCacheQuantize op = planOp(quantize);
    const Plan planned = REQUIRE(plan(op));
    const auto tokens = winnersOf(quantize, op);
    const bool isKnown = !quantize.write.areSequencesTensor && !quantize.write.arePositionsTensor;
    if (isKnown) EXPECT_EQ(planned.dispatches.size(), tokens.empty() ? 0u : 1u);
    EXPECT(planned.dispatches.size() <= 1);
    EXPECT_EQ(planned.scratchBytes, 0u);
    empty += planned.dispatches.empty();
    // Rows may name a source token that another replaces, and rows of a tensor may go anywhere.
    if (planned.dispatches.empty() || quantize.write.rows) continue;
    ++exact;
    const Dispatch& dispatch = planned.dispatches[0];
    expectPlane("key", dispatch, op, op.keys, op.into.keys, tokens);
    if (op.values) expectPlane("value", dispatch, op, *op.values, *op.into.values, tokens);
    if (op.counts) expectDeclared("counts", dispatch, *op.counts, std::vector(8, true), std::vector(8, true));
    if (op.probe) {
      const uint64_t bytes = op.probe->byteCount();
      expectDeclared("probe", dispatch, *op.probe, std::vector(bytes, false), std::vector(bytes, true));
    }
  }
  EXPECT(empty > 5);
  EXPECT(exact > 200);
}

// A kernel that only some of the cases reach could be wrong unseen: together they reach all of them, with each of its
// constants as it can be.
TEST(KVCacheQuantizePlan, CasesReachEveryKernel) {
  std::set<std::string> functions;
  std::map<uint32_t, std::set<uint32_t>> values;
  for (const Case& quantize : allQuantizeCases()) {
    for (const Dispatch& dispatch : REQUIRE(plan(planOp(quantize))).dispatches) {
      functions.insert(dispatch.kernel.function);
      for (const FunctionConstant& constant : dispatch.kernel.constants) {
        values[constant.index].insert(constant.bits);
      }
    }
  }
  for (int chunks = 1; chunks <= 32; chunks *= 2) EXPECT(functions.contains(fmt::format("kvCacheQuantize_{}", chunks)));
  // Those of a rotation are set by RotaryAppend alone.
  const std::set<uint32_t> rotationConstants = {kKVCacheQuantizeIsRotated, kRotaryAppendQueryType,
                                                kMultiRoPEHasPositions,    kMultiRoPEHasOffsets,
                                                kMultiRoPEIsInterleaved,   kMultiRoPEIsVectorized};
  for (const auto& [index, seen] : values) {
    if (rotationConstants.contains(index)) {
      EXPECT(seen == std::set<uint32_t>{0});
    } else if (seen.size() < 2) {
      fail(__FILE__, __LINE__, fmt::format("constant {} is always {}", index, *seen.begin()));
    }
  }
}

TEST(KVCacheQuantizePlan, Loads16BytesWhereVectorsAreAligned) {
  const auto isVectorized = [](uint64_t tokens, const KVCacheWriteCase::Fused& fused) {
    const KVCacheQuantize op = planOp(
        {.write = {.source = DType::f16, .headDim = 64, .valueHeadDim = 32, .sourceTokens = tokens, .fused = fused}});
    const auto constants = REQUIRE(plan(op)).dispatches.at(0).kernel.constants;
    return std::find(constants.begin(), constants.end(), FunctionConstant(kKVCodecIsVectorized, true)) !=
           constants.end();
  };
  EXPECT(isVectorized(3, {}));
  EXPECT(isVectorized(3, {.lead = 8, .between = 24, .tail = 16}));
  EXPECT(!isVectorized(3, {.lead = 4}));
  EXPECT(!isVectorized(3, {.between = 1, .tail = 7}));
  EXPECT(!isVectorized(3, {.tail = 4}));
  EXPECT(isVectorized(1, {.tail = 4}));
}

TEST(KVCacheQuantizePlan, IsOneDispatchWhateverTheTokens) {
  for (uint64_t tokens : {1, 7, 512, 100000}) {
    const KVCacheQuantize op = planOp({.write = {.wrap = KVWrap::linear,
                                                 .heads = 8,
                                                 .headDim = 128,
                                                 .valueHeadDim = 64,
                                                 .capacity = 100000,
                                                 .sourceTokens = tokens},
                                       .valueCodec = {.bits = 3}});
    const Plan planned = REQUIRE(plan(op));
    EXPECT_EQ(planned.op, "KVCacheQuantize");
    EXPECT_EQ(planned.dispatches.size(), 1u);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kind, "KVCacheQuantize");
    EXPECT_EQ(dispatch.countedBytesRead(), tokens * 8 * (128 + 64) * 4);
    EXPECT_EQ(dispatch.countedBytesWritten(), tokens * 8 * (128 * 4 / 8 + 2 + 64 * 3 / 8 + 2));
  }
}

TEST(KVCacheQuantizePlan, RowsOfTensorsAreReadAndCountWhatTheyStore) {
  const Case quantize{.write = {.headDim = 128,
                                .valueHeadDim = 0,
                                .sequences = 3,
                                .sourceTokens = 2,
                                .rows = {{{2, 1}, {0, 3}}},
                                .areSequencesTensor = true,
                                .arePositionsTensor = true}};
  const KVCacheQuantize op = planOp(quantize);
  const Dispatch dispatch = REQUIRE(plan(op)).dispatches.at(0);
  EXPECT_EQ(dispatch.countedBytesRead(), 2u * 2 * 128 * 4 + 2 * 2 * 4);
  EXPECT_EQ(dispatch.countedBytesWritten(), 2u * 2 * (64 + 2));
  expectCovers("codes", bindingOf(dispatch, op.into.keys.codes)->writes,
               std::vector<bool>(op.into.keys.codes.byteCount(), true));
}

TEST(KVCacheQuantizePlan, NothingToDoIsNoDispatch) {
  EXPECT(REQUIRE(plan(planOp({.write = {.headDim = 64, .valueHeadDim = 64, .sourceTokens = 0}}))).dispatches.empty());
  EXPECT(REQUIRE(plan(planOp({.write = {.headDim = 64, .valueHeadDim = 64, .sourceTokens = 3, .tokens = 0}})))
             .dispatches.empty());
  const KVCacheQuantize op = planOp({.write = {.headDim = 64, .valueHeadDim = 64}});
  EXPECT(
      REQUIRE(plan(KVCacheDequantize{.from = op.into, .keys = planTensor(DType::f32, {0, 2, 64})})).dispatches.empty());
  EXPECT(REQUIRE(plan(Hadamard{.from = planTensor(DType::f32, {0, 64})})).dispatches.empty());
}

TEST(KVCacheDequantizePlan, IsOneDispatchThatReadsWhatItsPositionsTake) {
  for (uint64_t tokens : {1, 3, 4}) {
    const KVCacheQuantize made = planOp({.write = {.headDim = 64, .valueHeadDim = 256}, .valueCodec = {.bits = 6}});
    const Tensor keys = planTensor(DType::f16, {tokens, 2, 64});
    const Tensor values = planTensor(DType::f16, {tokens, 2, 256});
    const Plan planned =
        REQUIRE(plan(KVCacheDequantize{.from = made.into, .position = 3, .keys = keys, .values = values}));
    EXPECT_EQ(planned.dispatches.size(), 1u);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.countedBytesRead(), tokens * 2 * (32 + 2 + 192 + 2));
    EXPECT_EQ(dispatch.countedBytesWritten(), tokens * 2 * (64 + 256) * 2);
    EXPECT(bindingOf(dispatch, keys)->reads.empty());
    EXPECT(bindingOf(dispatch, made.into.keys.codes)->writes.empty());
  }
}

TEST(HadamardPlan, IsOneDispatchThatReadsAndWritesAllOnce) {
  const Tensor from = planTensor(DType::f16, {7, 3, 128});
  const Tensor into = planTensor(DType::f32, {7, 3, 128});
  const Dispatch apart = REQUIRE(plan(Hadamard{.from = from, .into = into})).dispatches.at(0);
  EXPECT_EQ(apart.countedBytesRead(), from.byteCount());
  EXPECT_EQ(apart.countedBytesWritten(), into.byteCount());
  EXPECT(bindingOf(apart, from)->writes.empty());
  const Dispatch inPlace = REQUIRE(plan(Hadamard{.from = from})).dispatches.at(0);
  EXPECT_EQ(inPlace.buffers.size(), 1u);
  EXPECT_EQ(inPlace.countedBytesRead(), from.byteCount());
  EXPECT_EQ(inPlace.countedBytesWritten(), from.byteCount());
}

}  // namespace mnk::test
