// Plans that rotate and append, and of attention to what they leave in scratch memory.
#include "Harness/Check.hpp"
#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kAppended = 3, kQueryHeads = 4, kHeads = 2, kDim = 64;

MultiRoPE rotation(RotaryPositions positions = 5) {
  return {.queries = f16(kAppended, kQueryHeads, kDim),
          .keys = HeadsView(f16(kAppended, kHeads, kDim)),
          .positions = std::move(positions)};
}

RotaryAppend denseAppend(const MultiRoPE& rotation) {
  return {.rotation = rotation,
          .append = KVCacheWrite{.keys = *rotation.keys,
                                 .values = HeadsView(f16(kAppended, kHeads, kDim)),
                                 .into = {.keys = f32(kHeads, 8, kDim), .values = f32(kHeads, 8, kDim)}}};
}

QuantizedKVPlane plane() {
  const KVCodec codec{KVCodec::Name::turbo, 4};
  const KVCodecSizes bytes = REQUIRE(sizes(codec, kDim));
  return {.codec = codec, .codes = u8(kHeads, 8, bytes.codeBytes), .scales = f16(kHeads, 8)};
}

RotaryAppend quantized(const MultiRoPE& rotation) {
  RotaryAppend op = denseAppend(rotation);
  const auto& write = std::get<KVCacheWrite>(op.append);
  op.append = KVCacheQuantize{.keys = write.keys, .values = write.values, .into = {.keys = plane(), .values = plane()}};
  return op;
}

constexpr GoldenText kRotaryAppendPlans{
    "Ops/RotaryAppend/Plans.inc",
#include "Plans.inc"
};

}  // namespace

// One dispatch writes queries to scratch memory. A plain KVCacheQuantize is made of the same kernel, with as many
// constants, all of a rotation's false, and fewer heads: four of 16 lanes are a threadgroup of two simdgroups. Tokens
// of a chunk have positions in the middle of each axis, which are bound where they lie. Attention keeps its splits
// behind the queries: sums, then stats.
TEST(RotaryAppendPlan, PlansMatchTheGoldenOnes) {
  MultiRoPE chunk = rotation(RotaryPositions(i32(2, 10)));
  chunk.rotary = {.layout = RotaryEmbedding::Layout::mrope, .sections = {16, 16, 0, 0}};
  RotaryAppend denseChunk = denseAppend(chunk), quantizedChunk = quantized(chunk);
  denseChunk.firstToken = quantizedChunk.firstToken = 6;
  const Tensor queries = f16(kAppended, kQueryHeads, kDim);
  FlashDecode attend{.queries = queries,
                     .cache = KVCacheView{.keys = f16(kHeads, 8, kDim), .values = f16(kHeads, 8, kDim)},
                     .sequences = {{.sequence = 0, .length = 8}},
                     .results = {.output = f16(kAppended, kQueryHeads, kDim)},
                     .options = {.splits = 2, .merge = AttentionOptions::Merge::separate}};
  const uint64_t bytes = rotatedQueryBytes(queries);
  std::vector<std::string> lines{
      planLine("dense", REQUIRE(plan(denseAppend(rotation())))),
      planLine("quantized", REQUIRE(plan(quantized(rotation())))),
      planLine("plain", REQUIRE(plan(std::get<KVCacheQuantize>(quantized(rotation()).append)))),
      planLine("dense chunk", REQUIRE(plan(denseChunk))),
      planLine("quantized chunk", REQUIRE(plan(quantizedChunk))),
      planLine("splits", REQUIRE(plan(attend, ScratchQueries{.bytes = bytes}, nullptr)))};
  attend.options.splits = 1;
  lines.push_back(planLine("whole", REQUIRE(plan(attend, ScratchQueries{.offset = 512, .bytes = 2 * bytes}, nullptr))));
  expectGolden(kRotaryAppendPlans, lines);
}

}  // namespace mnk::test
