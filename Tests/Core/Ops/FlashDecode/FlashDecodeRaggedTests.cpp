// FlashDecode of sequences with unequal numbers of rows: against attention in double on every device, and what the plan
// says of it.
#include "FlashDecode/FlashDecodeTypes.h"
#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Ops/Common/EveryRun.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

const DeviceProfile kGPU{.family = "apple9", .cores = 10, .matrixLayout = MatrixLayout::interleaved};

// Of 32 query heads over 8 heads of 128, in f16.
Case layerCase(std::vector<AttendedSequence> sequences) {
  return {.name = "a layer",
          .cache = DType::f16,
          .headDim = 128,
          .valueHeadDim = 128,
          .kvHeads = 8,
          .cacheSequences = 4,
          .capacity = 4096,
          .queries = DType::f16,
          .group = 4,
          .sequences = std::move(sequences),
          .into = DType::f16,
          .options = {.splits = 1}};
}

uint64_t cacheBytesRead(const Plan& planned, const FlashDecode& op) {
  uint64_t bytes = 0;
  for (const Dispatch& dispatch : planned.dispatches) bytes += dispatch.countedBytesRead();
  const HeadsView::Strides queries = op.queries.resolved();
  return bytes - queries.totalTokens() * queries.heads * queries.headDim * byteSize(op.queries.tensor.dtype());
}

}  // namespace

TEST(FlashDecodeRagged, AttendsToSequencesWithRowsOfTheirOwn) {
  runOnEveryDevice(raggedCases());
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
    const Plan planned = REQUIRE(plan(op, kGPU));
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
      alone += cacheBytesRead(REQUIRE(plan(own, kGPU)), own);
    }
    EXPECT_EQ(cacheBytesRead(planned, op), alone);
  }
}

// A pass has the sequences that have rows for it.
TEST(FlashDecodeRagged, PassesLeaveOutSequencesWithoutRows) {
  const Plan planned = REQUIRE(plan(planOp(layerCase({{0, 20, 0, 20}, {1, 40, 0, 1}, {2, 9, 0, 9}}))));
  EXPECT_EQ(planned.dispatches.size(), 3u);
  const size_t sequences[] = {3, 2, 1};
  for (size_t p = 0; p < planned.dispatches.size(); ++p) {
    for (const InlineBytes& inlined : planned.dispatches[p].inlines) {
      if (inlined.index == kFlashDecodeRuns) EXPECT_EQ(inlined.bytes.size(), sequences[p] * sizeof(::FlashDecodeRun));
      if (inlined.index == kFlashDecodeSequences) {
        EXPECT_EQ(inlined.bytes.size(), sequences[p] * sizeof(FlashDecodeSequence));
      }
    }
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

// What was measured for as many rows of each sequence serves these, too.
TEST(FlashDecodeRagged, IsMeasuredAsItsLongestSequence) {
  const FlashDecode op = planOp(layerCase({{0, 20, 0, 5}, {1, 900, 0, 1}, {2, 9, 0, 2}}));
  const auto workload = FlashDecodeWorkload::of(AttentionShape(op));
  EXPECT_EQ(workload.rows, 4u * 5);
  EXPECT_EQ(workload.heads, 8u * 3);
  EXPECT_EQ(workload.keys, 900u);
}

// Numbers of rows that are all the same say what an axis of sequences says.
TEST(FlashDecodeRagged, EqualNumbersGiveWhatAnAxisGives) {
  Seeded random;
  Case even{.name = "an axis",
            .cache = DType::f16,
            .cacheSequences = 3,
            .group = 3,
            .rows = 5,
            .sequences = {{2, 40}, {0, 17}, {1, 5}}};
  const PreparedFlashDecode axis = prepared(even, random);
  PreparedFlashDecode list = axis;
  list.name = "a list";
  for (AttendedSequence& each : list.attend.sequences) each.rows = 5;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    const FlashDecodeRun first(device, axis, random), second(device, list, random);
    REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
      if (auto encoded = encoder.encode(first.op()); !encoded) return encoded;
      return encoder.encode(second.op());
    }));
    second.expectAttended();
    EXPECT(first.results() == second.results());
  });
}

}  // namespace mnk::test
