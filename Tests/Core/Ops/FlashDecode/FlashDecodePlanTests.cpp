// What FlashDecode asks a device to run, without a device.
#include <algorithm>
#include <map>
#include <set>

#include "FlashDecode/FlashDecodeTypes.h"
#include "FlashDecodeCase.hpp"
#include "Harness/Check.hpp"
#include "Harness/DeclaredBytes.hpp"
#include "Harness/PlanBuffer.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

const DeviceProfile kRaggedGPU{.family = "apple9", .cores = 10, .matrixLayout = MatrixLayout::interleaved};

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
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(first), attend.queryDim() * size, true);
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

// Sequences that have no rows left are left out.
void expectSequencesWithRows(const Dispatch& dispatch, const Case& attend, const RowSpan& rows) {
  size_t count = 0;
  for (size_t s = 0; s < attend.sequences.size(); ++s) count += attend.rowsOf(s) > rows.begin;
  for (const InlineBytes& inlined : dispatch.inlines) {
    if (inlined.index == kFlashDecodeRuns) EXPECT_EQ(inlined.bytes.size(), count * sizeof(::FlashDecodeRun));
    if (inlined.index == kFlashDecodeSequences) EXPECT_EQ(inlined.bytes.size(), count * sizeof(FlashDecodeSequence));
  }
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

// The same with several sequences.
Case layerCase(std::vector<AttendedSequence> sequences) {
  Case attend = plainCase(0);
  attend.cacheSequences = 4;
  attend.sequences = std::move(sequences);
  attend.options = {.splits = 1};
  return attend;
}

uint64_t cacheBytesRead(const Plan& planned, const FlashDecode& op) {
  uint64_t bytes = 0;
  for (const Dispatch& dispatch : planned.dispatches) bytes += dispatch.countedBytesRead();
  const HeadsView::Strides queries = op.queries.resolved();
  return bytes - queries.totalTokens() * queries.heads * queries.headDim * byteSize(op.queries.tensor.dtype());
}

}  // namespace

TEST(FlashDecodePlan, IsADispatchForEveryEightRowsAndOneForSplits) {
  uint32_t split = 0, whole = 0;
  for (const Case& attend : allAttentions()) {
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
      if (!isSequenceTwice(attend) && !attend.isOneTensor) expectReadsCache(dispatch, op, attend, passes[p]);
      if (!isSplit) expectWritesResults(dispatch, op, attend, passes[p]);
      expectSequencesWithRows(dispatch, attend, passes[p]);
    }
    if (isSplit) expectWritesResults(planned.dispatches.back(), op, attend, {0, attend.rows});
  }
  EXPECT(split > 100);
  EXPECT(whole > 100);
}

// A kernel that only some of the cases reach could be wrong unseen: together they reach all of them, with each of its
// constants as it can be.
TEST(FlashDecodePlan, CasesReachEveryKernel) {
  const DeviceProfile profiles[] = {
      {},
      {.family = "host"},
      {.family = "host", .matrixLayout = MatrixLayout::interleaved},
      {.family = "apple9", .cores = 10, .matrixLayout = MatrixLayout::interleaved},
      {.family = "", .cores = 132, .matrixLayout = MatrixLayout::rowMajor, .ordersThreadgroups = true}};
  std::set<std::string> functions;
  // Of kernels by the part of their names before the first number.
  std::map<std::string, std::map<uint32_t, std::set<uint32_t>>> constants;
  for (const Case& attend : allAttentions()) {
    const Context context(attend.name);
    for (const DeviceProfile& profile : profiles) {
      FlashDecode op = planOp(attend);
      for (const bool isForced : {false, true}) {
        if (isForced && (!attend.fitsMatrices() || profile.matrixLayout == MatrixLayout::unknown)) continue;
        if (isForced) op.options.kernel = AttentionOptions::Kernel::matrix;
        for (const Dispatch& dispatch : REQUIRE(plan(op, profile)).dispatches) {
          const std::string& function = dispatch.kernel.function;
          functions.insert(function);
          auto& seen = constants[function.substr(0, function.find_first_of("0123456789"))];
          for (const FunctionConstant& constant : dispatch.kernel.constants) seen[constant.index].insert(constant.bits);
          for (const auto& memory : dispatch.threadgroupMemory) EXPECT(memory.bytes <= 32u * 1024);
        }
      }
    }
  }
  const auto expectReached = [&](const std::string& function) {
    if (!functions.contains(function)) fail(__FILE__, __LINE__, fmt::format("no case reaches {}", function));
  };
#define ROW(keyDim, valueDim, rows) expectReached("flashDecodeVector_" #keyDim "_" #valueDim "_" #rows);
  MNK_FLASH_VECTOR_INSTANCES(ROW)
#undef ROW
#define ROW(keyDim, valueDim, rows) expectReached("flashDecodeVector_" #keyDim "_" #valueDim "_" #rows "_fewLanes");
  MNK_FLASH_FEW_LANES_INSTANCES(ROW)
#undef ROW
#define ROW(keyDim, valueDim, rows) expectReached("flashDecodeVector_latent_" #keyDim "_" #valueDim "_" #rows);
  MNK_FLASH_LATENT_INSTANCES(ROW)
#undef ROW
#define ROW(chunks) expectReached("flashDecodeReduce_" #chunks);
  MNK_FLASH_REDUCE_INSTANCES(ROW)
#undef ROW
#define ROW(headDim, rows, keys) expectReached("flashDecodeMatrix_" #headDim "_" #rows "_" #keys);
  MNK_FLASH_MATRIX_INSTANCES(ROW)
#undef ROW
#define ROW(type, dim, blocks, keys) expectReached("flashPrefill_" #type "_" #dim "_" #blocks "_" #keys);
  MNK_FLASH_PREFILL_INSTANCES(ROW)
#undef ROW
#define ROW(type, dim, extra, blocks, keys) expectReached("flashPrefill_latent_" #type "_" #blocks "_" #keys);
  MNK_FLASH_LATENT_PREFILL_INSTANCES(ROW)
#undef ROW
  // What kernels do always, or never.
  const std::map<std::string, std::set<uint32_t>> fixed{
      {"flashDecodeReduce_", {kFlashDecodeIsAligned}},
      {"flashDecodeVector_", {kFlashDecodeIsOneTensor}},
      {"flashDecodeVector_latent_", {kFlashDecodeIsPadded, kKVCodecIsUnrotated, kKVCodecIsAffine}},
      {"flashPrefill_f",
       {kFlashDecodeMergesInKernel, kFlashDecodeHasTokens, kFlashDecodeIsPadded, kFlashDecodeIsOneTensor}},
      {"flashPrefill_latent_f",
       {kFlashDecodeMergesInKernel, kFlashDecodeIsPadded, kFlashDecodeSimdgroupsPerRow, kKVCodecIsUnrotated,
        kKVCodecIsAffine}}};
  for (const auto& [kernel, values] : constants) {
    for (const auto& [index, seen] : values) {
      if (seen.size() > 1 || (fixed.contains(kernel) && fixed.at(kernel).contains(index))) continue;
      fail(__FILE__, __LINE__, fmt::format("constant {} of {} is always {}", index, kernel, *seen.begin()));
    }
  }
}

// Of keys and values that a window and pinned positions hide, no byte is read; of a mask, the rows.
TEST(FlashDecodePlan, CountsBytes) {
  for (const uint64_t rows : {0, 1, 5}) {
    Case attend = plainCase(9000);
    attend.rows = rows;
    attend.wrap = KVWrap::ring, attend.pinned = 4;
    attend.options = {.window = 100, .windowSeesPinned = true, .splits = 1};
    attend.mask = MaskCase{};
    const Plan planned = REQUIRE(plan(planOp(attend)));
    EXPECT_EQ(planned.dispatches.size(), rows == 0 ? 0u : 1u);
    for (const Dispatch& dispatch : planned.dispatches) {
      const uint64_t keys = 100 + 4 + rows - 1, maskBytes = rows * 4096 * sizeof(float), queryBytes = rows * 32 * 256;
      EXPECT_EQ(dispatch.countedBytesRead(), 2 * 8 * 256 * keys + maskBytes + queryBytes);
      EXPECT_EQ(dispatch.countedBytesWritten(), rows * 32 * 256);
    }
  }
}

TEST(FlashDecodePlan, SplitsUseCallerScratch) {
  Case attend = plainCase(500);
  attend.options.splits = 4;
  FlashDecode op = planOp(attend);
  const Plan own = REQUIRE(plan(op));
  const uint64_t bytes = own.scratchBytes;
  EXPECT_EQ(bytes, scratchOf(attend, 4));
  EXPECT_EQ(own.dispatches.front().countedBytesWritten(), bytes);
  EXPECT_EQ(own.dispatches.back().countedBytesRead(), bytes);
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

// Threadgroups are those of the rows that there are, and what is read is what each sequence by itself would read.
TEST(FlashDecodeRagged, IsOneDispatchWithoutThreadgroupsToSpare) {
  struct Golden {
    std::vector<AttendedSequence> sequences;
    uint32_t groups;
    std::string_view kernel;
  };
  const Golden goldens[] = {
      {{{0, 512, 0, 512}, {1, 4000, 0, 1}, {3, 9, 0, 9}}, 22 + 1 + 1, "flashPrefill_f16_128_1_32"},
      {{{3, 100, 0, 100}, {0, 512, 0, 512}}, 5 + 22, "flashPrefill_f16_128_1_32"},
      {{{0, 8, 0, 8}, {1, 4000, 0, 1}, {3, 9, 0, 3}, {2, 60, 0, 2}}, 4 + 1 + 2 + 1, "flashDecodeMatrix_128_8_8"},
  };
  for (const auto& [sequences, groups, kernel] : goldens) {
    const Context context(fmt::format("{} rows first", sequences[0].rows));
    const FlashDecode op = planOp(layerCase(sequences));
    const Plan planned = REQUIRE(plan(op, kRaggedGPU));
    EXPECT_EQ(planned.dispatches.size(), 1u);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kernel.function, kernel);
    EXPECT_EQ(dispatch.grid.extent, (Size3{1, 8, groups}));
    // Rows that follow each other are one region.
    for (const Binding& binding : dispatch.buffers) {
      if (binding.index == kFlashDecodeQueries) EXPECT_EQ(binding.reads.size(), 1u);
      if (binding.index == kFlashDecodeInto) EXPECT_EQ(binding.writes.size(), 1u);
    }
    uint64_t alone = 0;
    for (const AttendedSequence& each : sequences) {
      Case one = layerCase({{each.sequence, each.length}});
      one.rows = each.rows;
      const FlashDecode own = planOp(one);
      alone += cacheBytesRead(REQUIRE(plan(own, kRaggedGPU)), own);
    }
    EXPECT_EQ(cacheBytesRead(planned, op), alone);
  }
}

// All sequences keep the device busy, also those of a second dispatch: with one less, keys would be split.
TEST(FlashDecodeRagged, SplitsDependOnAllSequences) {
  Case attend = layerCase({});
  attend.kvHeads = 1;
  attend.cacheSequences = 130;
  attend.options.splits = 0;
  for (uint64_t s = 0; s < 130; ++s) attend.sequences.push_back({s, 4000, 0, 1});
  const DeviceProfile cores259{.family = "another", .cores = 259}, cores260{.family = "another", .cores = 260};
  EXPECT_EQ(REQUIRE(plan(planOp(attend), cores259)).dispatches.size(), 2u);
  EXPECT_EQ(REQUIRE(plan(planOp(attend), cores260)).dispatches.size(), 3u);
}

// A choice that was measured with this number of rows for each sequence applies.
TEST(FlashDecodeRagged, IsMeasuredAsItsLongestSequence) {
  const FlashDecode op = planOp(layerCase({{0, 20, 0, 5}, {1, 900, 0, 1}, {2, 9, 0, 2}}));
  const auto workload = FlashDecodeWorkload::of(AttentionShape(op));
  EXPECT_EQ(workload.rows, 4u * 5);
  EXPECT_EQ(workload.heads, 8u * 3);
  EXPECT_EQ(workload.keys, 900u);
}

}  // namespace mnk::test
