// Plans that rotate and append, and of attention to what they leave in scratch memory.
#include "Harness/Check.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"
#include "RotaryAppend/RotaryAppendTypes.h"

namespace mnk::test {

namespace {

constexpr uint64_t kTokens = 3, kQueryHeads = 4, kHeads = 2, kDim = 64;

MultiRoPE rotation(RotaryPositions positions = 5) {
  return {.queries = planTensor(DType::f16, {kTokens, kQueryHeads, kDim}),
          .keys = HeadsView(planTensor(DType::f16, {kTokens, kHeads, kDim})),
          .positions = std::move(positions)};
}

RotaryAppend dense(const MultiRoPE& rotation) {
  return {.rotation = rotation,
          .append = KVCacheWrite{.keys = *rotation.keys,
                                 .values = HeadsView(planTensor(DType::f16, {kTokens, kHeads, kDim})),
                                 .into = {.keys = planTensor(DType::f32, {kHeads, 8, kDim}),
                                          .values = planTensor(DType::f32, {kHeads, 8, kDim})}}};
}

QuantizedKVPlane plane() {
  const KVCodec codec{KVCodecName::turbo, 4};
  const KVCodecSizes bytes = REQUIRE(sizes(codec, kDim));
  return {.codec = codec,
          .codes = planTensor(DType::u8, {kHeads, 8, bytes.codeBytes}),
          .scales = planTensor(DType::f16, {kHeads, 8})};
}

RotaryAppend coded(const MultiRoPE& rotation) {
  RotaryAppend op = dense(rotation);
  const auto& write = std::get<KVCacheWrite>(op.append);
  op.append = KVCacheQuantize{.keys = write.keys, .values = write.values, .into = {.keys = plane(), .values = plane()}};
  return op;
}

const Binding& bindingAt(const Dispatch& dispatch, uint32_t index) {
  for (const Binding& binding : dispatch.buffers) {
    if (binding.index == index) return binding;
  }
  fail(__FILE__, __LINE__, fmt::format("nothing is bound at {}", index));
  throw Stop{};
}

std::string regionText(const std::vector<Region>& regions) {
  std::string text;
  for (const Region& r : regions) text += fmt::format("{}+{}x{}/{} ", r.offset, r.rowBytes, r.rows, r.rowStride);
  return text;
}

}  // namespace

TEST(RotaryAppendPlan, IsOneDispatchThatWritesQueriesToScratchMemory) {
  for (const bool isCoded : {false, true}) {
    const Plan planned = REQUIRE(plan(isCoded ? coded(rotation()) : dense(rotation())));
    EXPECT_EQ(planned.dispatches.size(), 1u);
    EXPECT_EQ(planned.scratchBytes, kTokens * kQueryHeads * kDim * 2);
    const Dispatch& dispatch = planned.dispatches[0];
    EXPECT_EQ(dispatch.kind, "RotaryAppend");
    EXPECT_EQ(dispatch.kernel.function, isCoded ? "kvCacheQuantize_1" : "rotaryAppend");
    const Binding& queries =
        bindingAt(dispatch, isCoded ? uint32_t{kKVCacheQuantizeQueries} : uint32_t{kRotaryAppendQueries});
    const Binding& rotated =
        bindingAt(dispatch, isCoded ? uint32_t{kKVCacheQuantizeRotatedQueries} : uint32_t{kRotaryAppendRotatedQueries});
    EXPECT_EQ(regionText(queries.reads), "0+1536x1/1536 ");
    EXPECT(queries.writes.empty() && rotated.reads.empty());
    EXPECT(!rotated.buffer && !rotated.isZeroed);
    EXPECT_EQ(rotated.offset, 0u);
    EXPECT_EQ(regionText(rotated.writes), "0+1536x1/0 ");
    // Queries are read, and so are keys and values; queries are written, and so are both caches.
    EXPECT_EQ(dispatch.countedBytesRead(), 1536u + 2 * 768u);
    EXPECT_EQ(dispatch.countedBytesWritten(), 1536u + 2 * kTokens * kHeads * (isCoded ? 32u + 2u : 256u));
  }
}

// A plain KVCacheQuantize is made of the same kernel, with as many constants, all of a rotation's false.
TEST(RotaryAppendPlan, ARotationChangesNothingElseOfKVCacheQuantize) {
  const RotaryAppend op = coded(rotation());
  const Dispatch rotated = REQUIRE(plan(op)).dispatches.at(0);
  const Dispatch plain = REQUIRE(plan(std::get<KVCacheQuantize>(op.append))).dispatches.at(0);
  EXPECT_EQ(rotated.kernel.function, plain.kernel.function);
  std::vector<uint32_t> changed;
  for (size_t i = 0; i < plain.kernel.constants.size(); ++i) {
    EXPECT_EQ(rotated.kernel.constants[i].index, plain.kernel.constants[i].index);
    if (rotated.kernel.constants[i] != plain.kernel.constants[i]) {
      changed.push_back(plain.kernel.constants[i].index);
    }
  }
  EXPECT(changed == std::vector<uint32_t>({kKVCacheQuantizeIsRotated, kRotaryAppendQueryType, kMultiRoPEIsVectorized}));
  EXPECT(rotated.inlines[0].bytes == plain.inlines[0].bytes);
  // Four heads of 16 lanes, in a threadgroup of two simdgroups.
  EXPECT_EQ(plain.grid.extent[0], 1u);
  EXPECT_EQ(rotated.grid.extent[0], 2u);
}

// Tokens of a chunk have positions in the middle of each axis.
TEST(RotaryAppendPlan, PositionsOfAChunkAreBoundWhereTheyLie) {
  MultiRoPE chunk = rotation(RotaryPositions(planTensor(DType::i32, {2, 10})));
  chunk.rotary = {.layout = RotaryLayout::mrope, .sections = {16, 16, 0, 0}};
  for (const bool isCoded : {false, true}) {
    RotaryAppend op = isCoded ? coded(chunk) : dense(chunk);
    op.firstToken = 6;
    const Dispatch dispatch = REQUIRE(plan(op)).dispatches.at(0);
    const Binding& positions =
        bindingAt(dispatch, isCoded ? uint32_t{kKVCacheQuantizeRotaryPositions} : uint32_t{kRotaryAppendPositions});
    EXPECT_EQ(positions.offset, 24u);
    EXPECT_EQ(positions.length, 56u);
    EXPECT_EQ(regionText(positions.reads), "0+12x2/40 ");
  }
}

// Queries, then the sums of splits, then their stats.
TEST(RotaryAppendPlan, AttentionKeepsItsSplitsBehindTheQueries) {
  const Tensor queries = planTensor(DType::f16, {kTokens, kQueryHeads, kDim});
  FlashDecode op{.queries = queries,
                 .over = KVCacheView{.keys = planTensor(DType::f16, {kHeads, 8, kDim}),
                                     .values = planTensor(DType::f16, {kHeads, 8, kDim})},
                 .sequences = {{.sequence = 0, .length = 8}},
                 .results = {.into = planTensor(DType::f16, {kTokens, kQueryHeads, kDim})},
                 .options = {.splits = 2, .merge = FlashDecodeMerge::separate}};
  const uint64_t bytes = rotatedQueryBytes(queries);
  const Plan apart = REQUIRE(plan(op));
  const Plan planned = REQUIRE(plan(op, ScratchQueries{.bytes = bytes}, nullptr));
  EXPECT_EQ(planned.dispatches.size(), 2u);
  EXPECT_EQ(planned.scratchBytes, bytes + apart.scratchBytes);
  const Binding& read = bindingAt(planned.dispatches[0], kFlashDecodeQueries);
  EXPECT(!read.buffer && !read.isZeroed);
  EXPECT_EQ(read.offset, 0u);
  EXPECT_EQ(read.length, bytes);
  const auto sumsBytes = kTokens * kQueryHeads * 2 * kDim * sizeof(float);
  EXPECT_EQ(bindingAt(planned.dispatches[0], kFlashDecodeSums).offset, bytes);
  EXPECT_EQ(bindingAt(planned.dispatches[0], kFlashDecodeStats).offset, bytes + sumsBytes);
  EXPECT_EQ(bindingAt(planned.dispatches[1], kFlashDecodePartSums).offset, bytes);
  EXPECT_EQ(bindingAt(planned.dispatches[1], kFlashDecodePartStats).offset, bytes + sumsBytes);

  op.options.splits = 1;
  const Plan whole = REQUIRE(plan(op, ScratchQueries{.offset = 512, .bytes = 2 * bytes}, nullptr));
  EXPECT_EQ(whole.scratchBytes, 2 * bytes);
  EXPECT_EQ(bindingAt(whole.dispatches[0], kFlashDecodeQueries).offset, 512u);
}

}  // namespace mnk::test
