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
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
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
    const uint64_t all = attend.rowsOf(s);
    for (const HeldKey& key : heldKeys(cache, op.sequences[s])) {
      bool isSeen = false;
      for (uint64_t row = rows.begin; row < std::min(rows.end, all); ++row) {
        isSeen |= isVisible(op, key.position, rowPosition(op.sequences[s], all, row));
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

// All of a tensor's vectors, as many bytes as its last axes take.
void expectAccess(std::string_view name, const Dispatch& dispatch, const Tensor& tensor, uint64_t vectorBytes,
                  const std::vector<uint64_t>& vectors, bool isWritten) {
  const Binding* binding = bindingOf(dispatch, tensor);
  if (!binding) return fail(__FILE__, __LINE__, fmt::format("{}: not bound", name));
  EXPECT_EQ(binding->offset, tensor.byteOffset());
  expectCovers(name, isWritten ? binding->writes : binding->reads, marked(tensor, vectorBytes, vectors));
  EXPECT((isWritten ? binding->reads : binding->writes).empty());
}
void expectReads(std::string_view name, const Dispatch& dispatch, const Tensor& tensor, uint64_t vectorBytes,
                 const std::vector<uint64_t>& vectors) {
  expectAccess(fmt::format("{} read", name), dispatch, tensor, vectorBytes, vectors, false);
}
void expectWrites(std::string_view name, const Dispatch& dispatch, const Tensor& tensor, uint64_t vectorBytes,
                  const std::vector<uint64_t>& vectors) {
  expectAccess(fmt::format("{} written", name), dispatch, tensor, vectorBytes, vectors, true);
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
  if (const auto* dense = std::get_if<KVCacheView>(&op.cache)) {
    expectReads("keys", dispatch, dense->keys, attend.headDim * byteSize(attend.cache), seen);
    return expectReads("values", dispatch, *dense->values, attend.valueHeadDim * byteSize(attend.cache), seen);
  }
  const auto& quantized = std::get<QuantizedKVCacheView>(op.cache);
  for (const QuantizedKVPlane* plane : {&quantized.keys, &*quantized.values}) {
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
  expectAll("key means", quantized.keys.means);
  expectAll("channel scales", quantized.keys.channelScales);
}

void expectWritesResults(const Dispatch& dispatch, const FlashDecode& op, const Case& attend, const RowSpan& rows) {
  const std::vector<uint64_t> vectors = vectorsOfRows(attend, rows);
  const AttentionResults& results = op.results;
  if (results.output) {
    expectWrites("results", dispatch, *results.output, attend.valueHeadDim * byteSize(attend.into), vectors);
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
    cases.back().options.kernel = AttentionOptions::Kernel::matrix;
  }
  const auto add = [&](const Plan& planned) {
    for (const Dispatch& dispatch : planned.dispatches) {
      functions.insert(dispatch.kernel.function);
      for (const FunctionConstant& constant : dispatch.kernel.constants) values[constant.index].insert(constant.bits);
    }
  };
  for (const Case& attend : cases) {
    if (attend.options.kernel != AttentionOptions::Kernel::matrix) add(REQUIRE(plan(planOp(attend))));
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
    if (index == kFlashDecodeMergesInKernel || index == kFlashDecodeIsOneTensor) continue;
    if (seen.size() < 2) fail(__FILE__, __LINE__, fmt::format("constant {} is always {}", index, *seen.begin()));
  }
}

// The smallest kernel that has room for both vectors, and its own where there is one. Codes have those of powers of
// two.
TEST(FlashDecodePlan, EveryHeadDimHasTheSmallestKernel) {
  using Dims = std::pair<uint64_t, uint64_t>;
  const Dims dense[] = {{8, 8},     {40, 40}, {64, 64}, {72, 40}, {88, 96},   {64, 104}, {136, 128},
                        {136, 136}, {192, 8}, {200, 8}, {8, 248}, {512, 512}, {576, 512}};
  const Dims quantized[] = {{32, 64}, {80, 80}, {96, 64}, {112, 112}, {192, 128}, {80, 192}, {512, 512}};
  std::string chosen;
  const auto choose = [&](const Dims& dims, bool isCoded) {
    Case attend = plainCase(100);
    attend.headDim = dims.first, attend.valueHeadDim = dims.second, attend.group = 1;
    attend.options.kernel = AttentionOptions::Kernel::vector;
    if (isCoded) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 4};
    const std::string function = REQUIRE(plan(planOp(attend))).dispatches.at(0).kernel.function;
    EXPECT(function.starts_with("flashDecodeVector_") && function.ends_with("_1"));
    chosen += function.substr(18, function.size() - 20) + " ";
  };
  for (const Dims& dims : dense) choose(dims, false);
  for (const Dims& dims : quantized) choose(dims, true);
  EXPECT_EQ(chosen,
            "32_32 64_64 64_64 80_80 96_96 128_128 192_128 192_192 192_128 256_256 256_256 512_512 576_512 "
            "64_64 128_128 128_128 128_128 256_256 256_256 512_512 ");
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
    attend.options.kernel = AttentionOptions::Kernel::vector;
    const auto device = REQUIRE(host::makeDevice({.compiler = {}, .family = family}));
    EXPECT_EQ(device->profile().family, family);
    EXPECT_EQ(REQUIRE(plan(planOp(attend), *device)).dispatches.at(0).kernel.function, function);
  }
}

// Every byte of keys and values is read once, and of those that a window and pinned positions hide none.
TEST(FlashDecodePlan, CountsBytes) {
  struct Count {
    uint64_t length, splits;
    uint32_t window, pinned;
    bool hasMask;
    uint64_t rows;
  };
  for (const Count& c : {Count{1, 1, 0, 0, false, 1},
                         {33, 1, 0, 0, false, 1},
                         {4096, 1, 0, 0, false, 1},
                         {4096, 3, 0, 0, false, 1},
                         {4000, 1, 100, 0, false, 1},
                         {4000, 1, 100, 0, false, 5},
                         {9000, 1, 100, 4, false, 1},
                         {9000, 1, 100, 4, false, 5},
                         {9000, 1, 100, 4, true, 1},
                         {9000, 1, 100, 4, true, 5},
                         {500, 1, 0, 0, false, 0}}) {
    Case attend = plainCase(c.length);
    attend.rows = c.rows;
    attend.options.splits = static_cast<uint32_t>(c.splits);
    attend.options.window = c.window;
    if (c.pinned != 0) attend.wrap = KVWrap::ring, attend.pinned = c.pinned, attend.options.windowSeesPinned = true;
    if (c.hasMask) attend.mask = MaskCase{};
    const Plan planned = REQUIRE(plan(planOp(attend)));
    uint64_t expected = c.rows * 32 * 256 + (c.hasMask ? c.rows * 4096 * sizeof(float) : 0);
    expected += 2 * 8 * 256 * (c.window == 0 ? c.length : c.window + c.pinned + c.rows - 1);
    if (c.rows == 0) {
      EXPECT(planned.dispatches.empty());
      continue;
    }
    EXPECT_EQ(planned.dispatches.size(), c.splits > 1 ? 2u : 1u);
    EXPECT_EQ(planned.scratchBytes, c.splits > 1 ? 32u * 3 * 130 * 4 : 0u);
    const Dispatch &first = planned.dispatches.front(), &last = planned.dispatches.back();
    EXPECT_EQ(first.countedBytesRead(), expected);
    EXPECT_EQ(last.countedBytesWritten(), c.rows * 32 * 256);
    if (c.splits == 1) continue;
    EXPECT(first.countedBytesWritten() == planned.scratchBytes && last.countedBytesRead() == planned.scratchBytes);
    attend.keyCodec = KVCodec{.bits = 4};
    attend.valueCodec = KVCodec{.bits = 3};
    EXPECT_EQ(REQUIRE(plan(planOp(attend))).dispatches.at(0).countedBytesRead(),
              8 * c.length * (64 + 2 + 48 + 2) + 32 * 256);
  }
  for (uint64_t parts : {1, 2, 1024}) {
    const MergePartials op{.parts = {.sums = f32(parts, 3, 4, 128), .stats = f32(parts, 3, 4, 2)},
                           .results = {.output = f16(3, 4, 128)}};
    const Plan planned = REQUIRE(plan(op));
    EXPECT(planned.op == "MergePartials" && planned.dispatches.size() == 1 && planned.scratchBytes == 0);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kind, "MergePartials");
    EXPECT_EQ(dispatch.countedBytesRead(), parts * 3 * 4 * 130 * 4);
    EXPECT_EQ(dispatch.countedBytesWritten(), 3u * 4 * 128 * 2);
  }
}

// Threadgroups for 8 KV heads over 1, 8 and 32 Ki keys: eight a core, if the context has enough keys for the parts.
TEST(FlashDecodePlan, AppleGPUsHaveThreadgroupsForAllCores) {
  constexpr std::pair<const char*, uint32_t> kChips[] = {
      {"A17 Pro", 6}, {"M1", 8}, {"M4", 10}, {"M2 Pro", 19}, {"M3 Max", 40}};
  std::string table;
  for (const auto& [chip, cores] : kChips) {
    const DeviceProfile profile{.family = "apple9", .cores = cores};
    table += fmt::format("{} {}:", chip, cores);
    for (const uint64_t keys : {1024, 8192, 32768}) {
      table += fmt::format(" {}", 8 * automaticSplits(tuningFor(profile), profile, 8, keys));
    }
    table += "; ";
  }
  EXPECT_EQ(table,
            "A17 Pro 6: 48 48 48; M1 8: 64 64 64; M4 10: 80 80 80; M2 Pro 19: 128 152 152; M3 Max 40: 128 320 320; ");
}

TEST(FlashDecodePlan, SplitsUseCallerScratch) {
  Case attend = plainCase(500);
  attend.options.splits = 4;
  FlashDecode op = planOp(attend);
  const uint64_t bytes = REQUIRE(plan(op)).scratchBytes;
  EXPECT_EQ(bytes, scratchOf(attend, 4));
  op.scratch = u8(bytes);
  const Plan planned = REQUIRE(plan(op));
  EXPECT_EQ(planned.scratchBytes, 0u);
  for (const Dispatch& dispatch : planned.dispatches) EXPECT(bindingOf(dispatch, *op.scratch) != nullptr);
  constexpr std::string_view kTooLittle = "there is too little scratch memory";
  op.scratch = u8(bytes - 1);
  EXPECT_ERROR(plan(op), {.op = FlashDecode::name, .what = kTooLittle});
  op.scratch = planTensor(DType::u8, {bytes}, 4);
  EXPECT_ERROR(plan(op), {.op = FlashDecode::name, .what = kTooLittle});
  op.options.splits = 1;
  op.scratch = u8(0);
  EXPECT(bool(plan(op)));
}

}  // namespace mnk::test
