// What FlashDecode and MergePartials ask a device to run, without a device.
#include <algorithm>
#include <map>
#include <set>

#include "FlashDecode/FlashDecodeTypes.h"
#include "FlashDecodeCase.hpp"
#include "Harness/Check.hpp"
#include "Harness/DeclaredBytes.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MergePartials.hpp"
#include "Ops/Common/TurboSigns.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

// Rows of queries that a dispatch has, of all its sequences.
struct RowSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
};

std::vector<RowSpan> passesOf(const Case& attend) {
  std::vector<RowSpan> passes;
  constexpr uint64_t kRows = FlashDecode::kRowsPerPass;
  for (uint64_t row = 0; row < attend.rows; row += kRows) passes.push_back({row, std::min(attend.rows, row + kRows)});
  return passes;
}

// Vectors of the cache that one of the rows sees.
std::vector<uint64_t> vectorsSeen(const FlashDecode& op, const Case& attend, const RowSpan& rows) {
  const CacheGeometry cache = geometryOf(op);
  std::vector<uint64_t> vectors;
  for (uint64_t s = 0; s < op.sequences.size(); ++s) {
    const uint64_t all = attend.rowsOf(s), length = op.sequences[s].length;
    for (const HeldKey& key : heldKeys(cache, op.sequences[s])) {
      bool isSeen = false;
      for (uint64_t row = rows.begin; row < std::min(rows.end, all); ++row) {
        isSeen |= isVisible(op, key.position, rowPosition(length, all, row));
      }
      for (uint64_t head = 0; isSeen && head < cache.heads; ++head) {
        vectors.push_back(cache.indexOf(op.sequences[s].sequence, head, key.slot));
      }
    }
  }
  return vectors;
}

std::vector<uint64_t> vectorsOfRows(const Case& attend, const RowSpan& rows) {
  std::vector<uint64_t> vectors;
  for (uint64_t s = 0; s < attend.sequences.size(); ++s) {
    for (uint64_t v = rows.begin * attend.heads(); v < std::min(rows.end, attend.rowsOf(s)) * attend.heads(); ++v) {
      vectors.push_back(attend.rowsBefore(s) * attend.heads() + v);
    }
  }
  return vectors;
}

std::vector<bool> marked(const Tensor& tensor, uint64_t vectorBytes, const std::vector<uint64_t>& vectors) {
  std::vector<bool> bytes(tensor.byteCount());
  for (uint64_t vector : vectors) {
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(vector * vectorBytes), vectorBytes, true);
  }
  return bytes;
}

// All of a tensor's vectors, as many bytes as its last axes take.
void expectReads(std::string_view name, const Dispatch& dispatch, const Tensor& tensor, uint64_t vectorBytes,
                 const std::vector<uint64_t>& vectors) {
  const Binding* binding = bindingOf(dispatch, tensor);
  if (!binding) return fail(__FILE__, __LINE__, fmt::format("{}: not bound", name));
  EXPECT_EQ(binding->offset, tensor.byteOffset());
  expectCovers(fmt::format("{} read", name), binding->reads, marked(tensor, vectorBytes, vectors));
  EXPECT(binding->writes.empty());
}

void expectWrites(std::string_view name, const Dispatch& dispatch, const Tensor& tensor, uint64_t vectorBytes,
                  const std::vector<uint64_t>& vectors) {
  const Binding* binding = bindingOf(dispatch, tensor);
  if (!binding) return fail(__FILE__, __LINE__, fmt::format("{}: not bound", name));
  EXPECT_EQ(binding->offset, tensor.byteOffset());
  expectCovers(fmt::format("{} written", name), binding->writes, marked(tensor, vectorBytes, vectors));
  EXPECT(binding->reads.empty());
}

// The queries of some rows of all sequences, counted from where they are bound.
void expectReadsQueries(const Dispatch& dispatch, const FlashDecode& op, const Case& attend, const RowSpan& rows) {
  const Tensor& tensor = op.queries.tensor;
  const Binding* binding = bindingOf(dispatch, tensor);
  if (!binding) return fail(__FILE__, __LINE__, "queries: not bound");
  const uint64_t size = byteSize(attend.queries), before = binding->offset - tensor.byteOffset();
  std::vector<bool> bytes(tensor.byteCount());
  for (uint64_t s = 0; s < attend.sequences.size(); ++s) {
    for (uint64_t row = rows.begin; row < std::min(rows.end, attend.rowsOf(s)); ++row) {
      for (uint64_t head = 0; head < attend.heads(); ++head) {
        const uint64_t first = queryStart(op, s, row, head) * size;
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(first), attend.headDim * size, true);
      }
    }
  }
  EXPECT(
      std::none_of(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(before), [](bool isRead) { return isRead; }));
  expectCovers("queries read", binding->reads, {bytes.begin() + static_cast<ptrdiff_t>(before), bytes.end()});
  EXPECT(binding->writes.empty());
}

void expectReadsCache(const Dispatch& dispatch, const FlashDecode& op, const Case& attend, const RowSpan& rows) {
  const std::vector<uint64_t> seen = vectorsSeen(op, attend, rows);
  if (const auto* dense = std::get_if<KVCacheView>(&op.over)) {
    expectReads("keys", dispatch, dense->keys, attend.headDim * byteSize(attend.cache), seen);
    return expectReads("values", dispatch, *dense->values, attend.valueHeadDim * byteSize(attend.cache), seen);
  }
  const auto& coded = std::get<QuantizedKVCacheView>(op.over);
  for (const QuantizedKVPlane* plane : {&coded.keys, &*coded.values}) {
    if (plane->isDense()) {
      expectReads("elements", dispatch, plane->codes, plane->headDim() * byteSize(attend.cache), seen);
      continue;
    }
    const KVCodecSizes size = REQUIRE(sizes(plane->codec, plane->headDim()));
    expectReads("codes", dispatch, plane->codes, size.codeBytes, seen);
    expectReads("scales", dispatch, plane->scales, size.scaleBytes, seen);
  }
  const auto expectAll = [&](std::string_view name, const std::optional<Tensor>& tensor) {
    if (tensor) expectReads(name, dispatch, *tensor, tensor->byteCount(), {0});
  };
  expectAll("key means", coded.keys.means);
  expectAll("channel scales", coded.keys.channelScales);
}

void expectWritesResults(const Dispatch& dispatch, const FlashDecode& op, const Case& attend, const RowSpan& rows) {
  const std::vector<uint64_t> vectors = vectorsOfRows(attend, rows);
  const AttentionResults& results = op.results;
  if (results.into) {
    expectWrites("results", dispatch, *results.into, attend.valueHeadDim * byteSize(attend.into), vectors);
  }
  if (results.partials) {
    expectWrites("sums", dispatch, results.partials->sums, attend.valueHeadDim * sizeof(float), vectors);
    expectWrites("stats", dispatch, results.partials->stats, 2 * sizeof(float), vectors);
  }
  if (results.logSumExp) expectWrites("log sum exp", dispatch, *results.logSumExp, sizeof(float), vectors);
}

uint64_t scratchOf(const Case& attend, uint64_t splits) {
  return attend.rowsBefore(attend.sequences.size()) * attend.heads() * splits * (attend.valueHeadDim + 2) *
         sizeof(float);
}

bool isSequenceTwice(const Case& attend) {
  std::set<uint64_t> seen;
  for (const AttendedSequence& each : attend.sequences) seen.insert(each.sequence);
  return seen.size() != attend.sequences.size();
}

Case plainCase(uint64_t length) {
  return {.cache = DType::f16,
          .headDim = 128,
          .valueHeadDim = 128,
          .kvHeads = 8,
          .capacity = 4096,
          .queries = DType::f16,
          .group = 4,
          .sequences = {{0, length}},
          .into = DType::f16};
}

}  // namespace

TEST(FlashDecodePlan, IsADispatchForEveryEightRowsAndOneForSplits) {
  uint32_t split = 0, whole = 0;
  for (const Case& attend : allDecodeCases()) {
    const Context context(attend.name);
    const FlashDecode op = planOp(attend);
    const Plan planned = REQUIRE(plan(op));
    const std::vector<RowSpan> passes = passesOf(attend);
    EXPECT_EQ(planned.op, "FlashDecode");
    if (attend.sequences.size() > 100) continue;  // in several dispatches too
    const bool isSplit = planned.dispatches.size() == passes.size() + 1;
    EXPECT(isSplit || planned.dispatches.size() == passes.size());
    if (attend.options.splits) {
      EXPECT_EQ(isSplit, attend.options.splits > 1);
      EXPECT_EQ(planned.scratchBytes, isSplit ? scratchOf(attend, attend.options.splits) : 0);
    }
    (isSplit ? split : whole) += 1;
    for (size_t p = 0; p < passes.size() && p < planned.dispatches.size(); ++p) {
      const Dispatch& dispatch = planned.dispatches[p];
      EXPECT_EQ(dispatch.kind, "FlashDecode");
      expectReadsQueries(dispatch, op, attend, passes[p]);
      if (!isSequenceTwice(attend)) expectReadsCache(dispatch, op, attend, passes[p]);
      if (!isSplit) expectWritesResults(dispatch, op, attend, passes[p]);
    }
    if (isSplit) expectWritesResults(planned.dispatches.back(), op, attend, {0, attend.rows});
  }
  EXPECT(split > 100);
  EXPECT(whole > 100);
}

// A kernel that only some of the cases reach could be wrong unseen: together they reach all of them, with each of its
// constants as it can be.
TEST(FlashDecodePlan, CasesReachEveryKernel) {
  std::set<std::string> functions;
  std::map<uint32_t, std::set<uint32_t>> values;
  std::vector<Case> cases = allDecodeCases();
  for (size_t c = 0, count = cases.size(); c < count; ++c) {
    if (!cases[c].fitsMatrices()) continue;
    cases.push_back(cases[c]);
    cases.back().options.kernel = FlashDecodeKernel::matrix;
  }
  const auto add = [&](const Plan& planned) {
    for (const Dispatch& dispatch : planned.dispatches) {
      functions.insert(dispatch.kernel.function);
      for (const FunctionConstant& constant : dispatch.kernel.constants) values[constant.index].insert(constant.bits);
    }
  };
  for (const Case& attend : cases) {
    if (attend.options.kernel != FlashDecodeKernel::matrix) add(REQUIRE(plan(planOp(attend))));
    for (const DeviceUnderTest& tested : devicesUnderTest()) {
      if (tested.device->kind() == "host") add(REQUIRE(plan(planOp(attend), *tested.device)));
    }
  }
  const auto expectReached = [&](const std::string& function) {
    if (!functions.contains(function)) fail(__FILE__, __LINE__, fmt::format("no case reaches {}", function));
  };
#define ROW(keyDim, valueDim, rows) expectReached("flashDecodeVector_" #keyDim "_" #valueDim "_" #rows);
  MNK_FLASH_VECTOR_INSTANCES(ROW)
#undef ROW
#define ROW(chunks) expectReached("flashDecodeReduce_" #chunks);
  MNK_FLASH_REDUCE_INSTANCES(ROW)
#undef ROW
#define ROW(headDim, rows, keys) expectReached("flashDecodeMatrix_" #headDim "_" #rows "_" #keys);
  MNK_FLASH_MATRIX_INSTANCES(ROW)
#undef ROW
  for (const auto& [index, seen] : values) {
    // These are known of a device alone; or asked for by FlashDecodeInKernelMerge and FlashLatent.
    if (index == kFlashDecodeHasRowMajorMatrices || index == kFlashDecodeTableBits) continue;
    if (index == kFlashDecodeMergesTogether || index == kFlashDecodeIsOneTensor) continue;
    if (seen.size() < 2) fail(__FILE__, __LINE__, fmt::format("constant {} is always {}", index, *seen.begin()));
  }
}

// The smallest kernel that has room for both vectors, and its own where there is one. Codes have those of powers of
// two.
TEST(FlashDecodePlan, EveryHeadDimHasTheSmallestKernel) {
  struct Choice {
    uint64_t keyDim, valueDim;
    std::string_view kernel;
    bool isCoded = false;
  };
  const Choice choices[] = {{8, 8, "32_32"},
                            {40, 40, "64_64"},
                            {64, 64, "64_64"},
                            {72, 40, "80_80"},
                            {88, 96, "96_96"},
                            {64, 104, "128_128"},
                            {136, 128, "192_128"},
                            {136, 136, "192_192"},
                            {192, 8, "192_128"},
                            {200, 8, "256_256"},
                            {8, 248, "256_256"},
                            {512, 512, "512_512"},
                            {576, 512, "576_512"},
                            {32, 64, "64_64", true},
                            {80, 80, "128_128", true},
                            {96, 64, "128_128", true},
                            {112, 112, "128_128", true},
                            {192, 128, "256_256", true},
                            {80, 192, "256_256", true},
                            {512, 512, "512_512", true}};
  for (const auto& [keyDim, valueDim, kernel, isCoded] : choices) {
    const Context context(fmt::format("{} and {}{}", keyDim, valueDim, isCoded ? ", coded" : ""));
    Case attend = plainCase(100);
    attend.headDim = keyDim, attend.valueHeadDim = valueDim, attend.group = 1;
    attend.options.kernel = FlashDecodeKernel::vector;
    if (isCoded) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 4};
    const std::string function = REQUIRE(plan(planOp(attend))).dispatches.at(0).kernel.function;
    EXPECT_EQ(function, fmt::format("flashDecodeVector_{}_1", kernel));
  }
  for (uint64_t keyDim = 0; keyDim <= 1024; keyDim += 4) {
    const bool isMultiple = keyDim % 8 == 0 && keyDim != 0 && keyDim <= 256;
    EXPECT_EQ(hasAttentionKernel(keyDim, 8, false, false), isMultiple);
    EXPECT_EQ(hasAttentionKernel(256, keyDim, false, false), isMultiple);
    EXPECT_EQ(hasAttentionKernel(keyDim, 512, false, false), keyDim == 512 || keyDim == 576);
    const bool isOfCodes = std::ranges::find(kTurboHeadDims, keyDim) != std::end(kTurboHeadDims);
    EXPECT_EQ(hasAttentionKernel(keyDim, keyDim, true, false), isOfCodes);
    EXPECT_EQ(hasAttentionKernel(keyDim, 128, true, false), isOfCodes && keyDim != 512);
    EXPECT_EQ(hasAttentionKernel(96, keyDim, true, false), isOfCodes && keyDim != 512);
  }
}

TEST(FlashDecodePlan, FewLanesShareAVectorOnTheHostAlone) {
  for (const auto& [family, function] : {std::pair("host", "flashDecodeVector_128_128_4_fewLanes"),
                                         {"apple9", "flashDecodeVector_128_128_4"},
                                         {"", "flashDecodeVector_128_128_4"}}) {
    Case attend = plainCase(100);
    attend.headDim = attend.valueHeadDim = 128;
    attend.group = 4;
    attend.options.kernel = FlashDecodeKernel::vector;
    const auto device = REQUIRE(host::makeDevice({.compiler = {}, .family = family}));
    EXPECT_EQ(device->profile().family, family);
    EXPECT_EQ(REQUIRE(plan(planOp(attend), *device)).dispatches.at(0).kernel.function, function);
  }
}

TEST(FlashDecodePlan, ReadsEveryByteOfKeysAndValuesOnce) {
  for (uint64_t length : {1, 33, 4096}) {
    Case attend = plainCase(length);
    attend.options.splits = 1;
    const Plan whole = REQUIRE(plan(planOp(attend)));
    const uint64_t vectors = 32 * 128 * 2;
    EXPECT_EQ(whole.dispatches.size(), 1u);
    EXPECT_EQ(whole.scratchBytes, 0u);
    EXPECT_EQ(whole.dispatches.at(0).countedBytesRead(), 2 * 8 * length * 128 * 2 + vectors);
    EXPECT_EQ(whole.dispatches.at(0).countedBytesWritten(), vectors);
    attend.options.splits = 3;
    const Plan split = REQUIRE(plan(planOp(attend)));
    EXPECT_EQ(split.dispatches.size(), 2u);
    EXPECT_EQ(split.scratchBytes, 32u * 3 * 130 * 4);
    EXPECT_EQ(split.dispatches.at(0).countedBytesRead(), 2 * 8 * length * 128 * 2 + vectors);
    EXPECT_EQ(split.dispatches.at(0).countedBytesWritten(), split.scratchBytes);
    EXPECT_EQ(split.dispatches.at(1).countedBytesRead(), split.scratchBytes);
    EXPECT_EQ(split.dispatches.at(1).countedBytesWritten(), vectors);
    attend.keyCodec = KVCodec{.bits = 4};
    attend.valueCodec = KVCodec{.bits = 3};
    EXPECT_EQ(REQUIRE(plan(planOp(attend))).dispatches.at(0).countedBytesRead(),
              8 * length * (64 + 2 + 48 + 2) + vectors);
  }
}

TEST(FlashDecodePlan, AWindowIsAllThatIsRead) {
  Case attend = plainCase(4000);
  attend.options.splits = 1;
  attend.options.window = 100;
  EXPECT_EQ(REQUIRE(plan(planOp(attend))).dispatches.at(0).countedBytesRead(), 2u * 8 * 100 * 256 + 32 * 256);
  attend.rows = 5;
  EXPECT_EQ(REQUIRE(plan(planOp(attend))).dispatches.at(0).countedBytesRead(), 2u * 8 * 104 * 256 + 5 * 32 * 256);
}

TEST(FlashDecodePlan, AWindowAndPinnedPositionsAreAllThatIsRead) {
  for (bool hasMask : {false, true}) {
    Case attend = plainCase(9000);
    attend.wrap = KVWrap::ring;
    attend.pinned = 4;
    attend.options.splits = 1;
    attend.options.window = 100;
    attend.options.windowSeesPinned = true;
    if (hasMask) attend.mask = MaskCase{};
    const uint64_t mask = hasMask ? 4096 * sizeof(float) : 0;
    EXPECT_EQ(REQUIRE(plan(planOp(attend))).dispatches.at(0).countedBytesRead(), 2u * 8 * 104 * 256 + 32 * 256 + mask);
    attend.rows = 5;
    EXPECT_EQ(REQUIRE(plan(planOp(attend))).dispatches.at(0).countedBytesRead(),
              2u * 8 * 108 * 256 + 5 * 32 * 256 + 5 * mask);
  }
}

TEST(FlashDecodePlan, MemoryOfTheCallersServesSplits) {
  Case attend = plainCase(500);
  attend.options.splits = 4;
  FlashDecode op = planOp(attend);
  const uint64_t bytes = REQUIRE(plan(op)).scratchBytes;
  EXPECT_EQ(bytes, scratchOf(attend, 4));
  op.scratch = planTensor(DType::u8, {bytes});
  const Plan planned = REQUIRE(plan(op));
  EXPECT_EQ(planned.scratchBytes, 0u);
  for (const Dispatch& dispatch : planned.dispatches) EXPECT(bindingOf(dispatch, *op.scratch) != nullptr);
  constexpr std::string_view kTooLittle = "there is too little scratch memory";
  op.scratch = planTensor(DType::u8, {bytes - 1});
  EXPECT_ERROR(plan(op), {.op = FlashDecode::name, .what = kTooLittle});
  op.scratch = planTensor(DType::u8, {bytes}, 4);
  EXPECT_ERROR(plan(op), {.op = FlashDecode::name, .what = kTooLittle});
  op.options.splits = 1;
  op.scratch = planTensor(DType::u8, {0});
  EXPECT(bool(plan(op)));
}

TEST(FlashDecodePlan, NothingToDoIsNoDispatch) {
  Case attend = plainCase(500);
  attend.rows = 0;
  EXPECT(REQUIRE(plan(planOp(attend))).dispatches.empty());
}

TEST(MergePartialsPlan, IsOneDispatchThatReadsAndWritesAllOnce) {
  for (uint64_t parts : {1, 2, 1024}) {
    const MergePartials op{.partials = {.sums = planTensor(DType::f32, {parts, 3, 4, 128}),
                                        .stats = planTensor(DType::f32, {parts, 3, 4, 2})},
                           .results = {.into = planTensor(DType::f16, {3, 4, 128})}};
    const Plan planned = REQUIRE(plan(op));
    EXPECT(planned.op == "MergePartials" && planned.dispatches.size() == 1 && planned.scratchBytes == 0);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kind, "MergePartials");
    EXPECT_EQ(dispatch.countedBytesRead(), parts * 3 * 4 * 130 * 4);
    EXPECT_EQ(dispatch.countedBytesWritten(), 3u * 4 * 128 * 2);
  }
}

}  // namespace mnk::test
