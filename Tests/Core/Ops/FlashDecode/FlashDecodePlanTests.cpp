// What FlashDecode asks a device to run, without a device.
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
#include "Ops/FlashDecode/FlashDecode.hpp"
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

// What a pass reads of queries and cache, and what the dispatch that ends it writes, to the byte.
class DeclaredPass {
 public:
  DeclaredPass(const FlashDecode& op, const Case& attend, const RowSpan& rows)
      : op_(op), attend_(attend), rows_(rows) {}

  void expectReads(const Dispatch& dispatch) const {
    expectReadsQueries(dispatch);
    std::set<uint64_t> sequences;
    for (const AttendedSequence& each : attend_.sequences) sequences.insert(each.sequence);
    if (sequences.size() == attend_.sequences.size() && !attend_.isOneTensor) expectReadsCache(dispatch);
    expectSequencesWithRows(dispatch);
  }
  void expectWrites(const Dispatch& dispatch) const {
    std::vector<uint64_t> vectors;
    for (uint64_t s = 0; s < attend_.sequences.size(); ++s) {
      const uint64_t before = attend_.rowsBefore(s), end = std::min(rows_.end, attend_.rowsOf(s));
      for (uint64_t v = rows_.begin * attend_.heads(); v < end * attend_.heads(); ++v) {
        vectors.push_back(before * attend_.heads() + v);
      }
    }
    const auto expect = [&](std::string_view name, const Tensor& tensor, uint64_t vectorElements) {
      expectDeclared(name, dispatch, tensor, {}, marked(tensor, vectorElements * byteSize(tensor.dtype()), vectors));
    };
    const AttentionResults& results = op_.results;
    if (results.output) expect("results", *results.output, attend_.valueHeadDim);
    if (results.partials) expect("sums", results.partials->sums, attend_.valueHeadDim);
    if (results.partials) expect("stats", results.partials->stats, 2);
    if (results.logSumExp) expect("log sum exp", *results.logSumExp, 1);
  }

 private:
  void expectReadsQueries(const Dispatch& dispatch) const {
    const uint64_t size = byteSize(attend_.queries);
    std::vector<bool> bytes(op_.queries.tensor.byteCount());
    for (uint64_t s = 0; s < attend_.sequences.size(); ++s) {
      for (uint64_t row = rows_.begin; row < std::min(rows_.end, attend_.rowsOf(s)); ++row) {
        for (uint64_t head = 0; head < attend_.heads(); ++head) {
          const uint64_t first = queryStart(op_, s, row, head) * size;
          std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(first), attend_.queryDim() * size, true);
        }
      }
    }
    const Binding& binding = bindingAt(dispatch, kFlashDecodeQueries);
    EXPECT(binding.buffer == op_.queries.tensor.buffer() && binding.writes.empty());
    expectCovers("queries read", binding.reads, boundPart(binding, op_.queries, bytes));
  }
  // Vectors of the cache that one of the rows sees.
  void expectReadsCache(const Dispatch& dispatch) const {
    const CacheGeometry cache = geometryOf(op_);
    std::vector<uint64_t> seen;
    for (size_t s = 0; s < op_.sequences.size(); ++s) {
      const uint64_t all = attend_.rowsOf(s);
      for (const HeldKey& key : heldKeys(cache, op_.sequences[s])) {
        bool isSeen = false;
        for (uint64_t row = rows_.begin; row < std::min(rows_.end, all); ++row) {
          isSeen |= isVisible(op_, key.position, rowPosition(op_.sequences[s], all, row));
        }
        for (uint64_t head = 0; isSeen && head < cache.heads; ++head) {
          seen.push_back(cache.indexOf(op_.sequences[s].sequence, head, key.slot));
        }
      }
    }
    const uint64_t vectors = cache.sequences * cache.heads * cache.capacity;
    for (const auto& [name, tensor] : inputTensors(op_)) {
      if (!name.starts_with("key") && !name.starts_with("value")) continue;
      const bool isParameter = name.ends_with("means") || name.ends_with("channel scales");
      if (name == "value means") continue;  // added where results are finished
      const uint64_t bytes = tensor.byteCount() / (isParameter ? 1 : vectors);
      expectDeclared(name, dispatch, tensor, marked(tensor, bytes, isParameter ? std::vector<uint64_t>{0} : seen), {});
    }
  }
  // Sequences that have no rows left are left out.
  void expectSequencesWithRows(const Dispatch& dispatch) const {
    size_t count = 0;
    for (size_t s = 0; s < attend_.sequences.size(); ++s) count += attend_.rowsOf(s) > rows_.begin;
    for (const InlineBytes& inlined : dispatch.inlines) {
      if (inlined.index == kFlashDecodeRuns) EXPECT_EQ(inlined.bytes.size(), count * sizeof(::FlashDecodeRun));
      if (inlined.index == kFlashDecodeSequences) EXPECT_EQ(inlined.bytes.size(), count * sizeof(FlashDecodeSequence));
    }
  }

  const FlashDecode& op_;
  const Case& attend_;
  RowSpan rows_;
};

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

// The plan that merges in the kernel has no dispatch to merge, and counts, which it has zeroed, for each pass.
void expectMergedInKernel(const Case& attend, const Plan& separate) {
  Case merged = attend;
  merged.options.kernel = AttentionOptions::Kernel::vector;
  merged.options.merge = AttentionOptions::Merge::inKernel;
  if (attend.options.splits == 0) return;
  const Plan planned = REQUIRE(plan(planOp(merged), DeviceProfile{.ordersThreadgroups = true}));
  const bool isSplit = attend.options.splits > 1;
  EXPECT_EQ(planned.dispatches.size() + (isSplit ? 1 : 0), separate.dispatches.size());
  EXPECT_EQ(planned.scratchBytes, separate.scratchBytes);
  EXPECT_EQ(separate.zeroedBytes, 0u);
  uint64_t end = 0;
  for (const Dispatch& dispatch : planned.dispatches) {
    for (const Binding& binding : dispatch.buffers) {
      if (!binding.isZeroed) continue;
      EXPECT_EQ(binding.offset, end);
      EXPECT(isSplit && binding.length >= 2 * sizeof(uint32_t));
      end += binding.length;
    }
  }
  EXPECT_EQ(planned.zeroedBytes, end);
  EXPECT_EQ(end != 0, isSplit);
}

}  // namespace

TEST(FlashDecodePlan, IsADispatchForEveryEightRowsAndOneForSplits) {
  uint32_t split = 0, whole = 0;
  for (const Case& attend : allAttentions()) {
    const Context context(attend.name);
    const FlashDecode op = planOp(attend);
    const Plan planned = REQUIRE(plan(op));
    EXPECT_EQ(planned.op, "FlashDecode");
    if (attend.sequences.size() > 100) continue;  // in several dispatches too
    const std::vector<RowSpan> passes = passesOf(attend);
    const bool isSplit = planned.dispatches.size() == passes.size() + 1;
    EXPECT(isSplit || planned.dispatches.size() == passes.size());
    if (attend.options.splits) {
      EXPECT_EQ(isSplit, attend.options.splits > 1);
      EXPECT_EQ(planned.scratchBytes, attend.hasScratch ? 0 : attend.scratchBytes(attend.options.splits));
    }
    (isSplit ? split : whole) += 1;
    for (size_t p = 0; p < passes.size() && p < planned.dispatches.size(); ++p) {
      const Dispatch& dispatch = planned.dispatches[p];
      EXPECT_EQ(dispatch.kind, "FlashDecode");
      const DeclaredPass declared(op, attend, passes[p]);
      declared.expectReads(dispatch);
      if (!isSplit) declared.expectWrites(dispatch);
    }
    if (isSplit) DeclaredPass(op, attend, {0, attend.rows}).expectWrites(planned.dispatches.back());
    expectMergedInKernel(attend, planned);
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
  const auto library = REQUIRE(devicesUnderTest()[0].device->registry().shippedLibrary());
  for (const std::string& function : library->functionNames()) {
    if (!function.starts_with("flash") || functions.contains(function)) continue;
    fail(__FILE__, __LINE__, fmt::format("no case reaches {}", function));
  }
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
  EXPECT_EQ(bytes, attend.scratchBytes(4));
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

}  // namespace mnk::test
