// Steps of several sequences that rotate, append and attend in one call, compared with MultiRoPE, append and attend.
#include <fmt/ranges.h>

#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kSequences = 3;

enum class PositionForm { none, first, list, tensor };

struct List {
  std::vector<uint32_t> sequences;
  std::optional<std::vector<uint32_t>> rowCounts = {};
  uint64_t rowsOfEach = 0;  // for views with a sequence axis
  PositionForm positions = PositionForm::none;
  bool hasOffsets = false;
  uint64_t dispatches = 2;
  AttentionOptions options = {};

  uint64_t rowsOf(size_t entry) const { return rowCounts ? (*rowCounts)[entry] : std::max<uint64_t>(rowsOfEach, 1); }
  uint64_t total() const {
    uint64_t rows = 0;
    for (size_t i = 0; i < sequences.size(); ++i) rows += rowsOf(i);
    return rows;
  }
  std::string text() const {
    return fmt::format("sequences {}, rows {} or {} of each, positions {}{}", fmt::join(sequences, " "),
                       fmt::join(rowCounts.value_or(std::vector<uint32_t>()), " "), rowsOfEach,
                       static_cast<int>(positions), hasOffsets ? ", offsets" : "");
  }
};

class ListStep {
 public:
  ListStep(const std::shared_ptr<Device>& device, const List& list, const AttentionCacheDescriptor& descriptor)
      : list_(list), together(device, descriptor), apart(device, descriptor) {
    for (uint32_t sequence = 0; sequence < kSequences; ++sequence) {
      for (AttentionFixture* fixture : {&together, &apart}) fixture->appendNow(2 + sequence, sequence);
    }
  }

  // Runs the step with a rotary argument, or with tokens as they are.
  void run(bool rotates) {
    const uint64_t rows = list_.total();
    CacheStep step{.queries = tokens(kQueryHeads),
                   .keys = tokens(kAttendedHeads),
                   .values = tokens(kAttendedHeads),
                   .options = list_.options,
                   .sequences = list_.sequences,
                   .rowCounts = list_.rowCounts};
    step.results = {.output = together.zeros({rows, kQueryHeads, kAttendedDim}),
                    .logSumExp = together.zeros({rows, kQueryHeads})};
    std::vector<int32_t> positions;
    if (rotates) {
      step.rotary = RotaryStep{.embedding = {.ropeDim = 24}};
      positions = numbers(*step.rotary);
    }
    const Summary summary = REQUIRE(CommandEncoder::run(
        together.device, [&](CommandEncoder& encoder) { return together.cache.appendAndAttend(encoder, step); }));
    EXPECT_EQ(summary.total.dispatches, list_.dispatches);

    const Tensor out = together.zeros({rows, kQueryHeads, kAttendedDim}), logs = together.zeros({rows, kQueryHeads});
    REQUIRE(CommandEncoder::run(together.device, [&](CommandEncoder& encoder) -> Result<void> {
      HeadsView queries = flat(step.queries), keys = flat(step.keys);
      if (rotates) {
        const MultiRoPE rotation{.queries = queries,
                                 .keys = keys,
                                 .rotatedQueries = together.zeros({rows, kQueryHeads, kAttendedDim}),
                                 .rotatedKeys = HeadsView(together.zeros({rows, kAttendedHeads, kAttendedDim})),
                                 .positions = RotaryPositions(tensorOf(positions)),
                                 .rotary = step.rotary->embedding};
        if (auto done = encoder.encode(rotation); !done) return done;
        queries = *rotation.rotatedQueries;
        keys = *rotation.rotatedKeys;
      }
      std::vector<uint32_t> counts;
      for (size_t i = 0; i < list_.sequences.size(); ++i) counts.push_back(static_cast<uint32_t>(list_.rowsOf(i)));
      const HeadsView values = flat(step.values);
      if (auto done = apart.cache.append(
              encoder, {.keys = keys, .values = values, .sequences = list_.sequences, .rowCounts = counts});
          !done)
        return done;
      return apart.cache.attend(encoder, {.queries = queries,
                                          .results = {.output = out, .logSumExp = logs},
                                          .options = list_.options,
                                          .sequences = list_.sequences,
                                          .rowCounts = counts});
    }));
    for (uint32_t sequence = 0; sequence < kSequences; ++sequence) {
      EXPECT_EQ(*together.cache.nextPosition(sequence), *apart.cache.nextPosition(sequence));
    }
    EXPECT(bytesOf(together.cache.view().keys) == bytesOf(apart.cache.view().keys));
    EXPECT(bytesOf(*together.cache.view().values) == bytesOf(*apart.cache.view().values));
    EXPECT(bytesOf(*step.results.output) == bytesOf(out));
    EXPECT(bytesOf(*step.results.logSumExp) == bytesOf(logs));
  }

 private:
  HeadsView tokens(uint64_t heads) {
    const std::vector<float> elements = smallNumbers(together.random, list_.total() * heads * kAttendedDim);
    if (list_.rowsOfEach == 0) return together.tensor(elements, {list_.total(), heads, kAttendedDim});
    return together.tensor(elements, {list_.sequences.size(), list_.rowsOfEach, heads, kAttendedDim});
  }
  static HeadsView flat(const HeadsView& view) {
    const HeadsView::Strides s = view.resolved();
    return REQUIRE(view.tensor.reshaped(REQUIRE(Shape::make({s.totalTokens(), s.heads, s.headDim}))));
  }
  // Sets positions and offsets, and returns their sum for each token.
  std::vector<int32_t> numbers(RotaryStep& rotary) {
    std::vector<int32_t> positions, offsets;
    std::map<uint32_t, int32_t> next;
    for (size_t i = 0; i < list_.sequences.size(); ++i) {
      const uint32_t sequence = list_.sequences[i];
      if (!next.contains(sequence)) next[sequence] = static_cast<int32_t>(*together.cache.nextPosition(sequence));
      int32_t first = list_.positions == PositionForm::first ? 40 : next[sequence];
      for (uint64_t row = 0; row < list_.rowsOf(i); ++row) {
        const bool isGiven = list_.positions == PositionForm::list || list_.positions == PositionForm::tensor;
        positions.push_back(isGiven ? static_cast<int32_t>(together.random.below(5000)) : first++);
      }
      next[sequence] += static_cast<int32_t>(list_.rowsOf(i));
      offsets.push_back(static_cast<int32_t>(together.random.below(90)));
    }
    if (list_.positions == PositionForm::first) rotary.positions = RotaryPositions(40);
    if (list_.positions == PositionForm::list) rotary.positions = RotaryPositions(positions);
    if (list_.positions == PositionForm::tensor) rotary.positions = RotaryPositions(tensorOf(positions));
    if (!list_.hasOffsets) return positions;
    rotary.offsets =
        list_.positions == PositionForm::tensor ? RotaryOffsets(tensorOf(offsets)) : RotaryOffsets(offsets);
    for (size_t i = 0, row = 0; i < offsets.size(); ++i) {
      for (uint64_t end = row + list_.rowsOf(i); row < end; ++row) positions[row] += offsets[i];
    }
    return positions;
  }
  Tensor tensorOf(const std::vector<int32_t>& numbers) const {
    const Tensor tensor = REQUIRE(Tensor::zeros(together.device, DType::i32, REQUIRE(Shape::make({numbers.size()}))));
    REQUIRE(tensor.write(rawBytes(numbers)));
    return tensor;
  }

  const List& list_;
  AttentionFixture together, apart;
};

AttentionCacheDescriptor quantized(AttentionCacheDescriptor descriptor) {
  descriptor.quantized = KVQuantizedStorage{.keyBits = 6, .valueBits = 6};
  return descriptor;
}

}  // namespace

TEST(AttentionCacheStepList, ListsMatchSeparateCalls) {
  using enum PositionForm;
  const List lists[] = {
      {.sequences = {0, 1, 2}},
      {.sequences = {2, 0}, .rowsOfEach = 3},
      {.sequences = {2, 0, 1}, .rowsOfEach = 2, .positions = first, .hasOffsets = true},
      {.sequences = {0, 1, 2}, .positions = list, .hasOffsets = true},
      {.sequences = {0, 1, 2}, .rowsOfEach = 2, .positions = tensor, .hasOffsets = true},
      {.sequences = {0, 1, 2}, .rowCounts = {{3, 0, 2}}},
      {.sequences = {0, 1, 2}, .rowCounts = {{3, 0, 3}}},
      {.sequences = {0, 1, 2}, .rowCounts = {{2, 2, 2}}, .positions = first},
      {.sequences = {1, 0, 2}, .rowCounts = {{2, 1, 3}}, .positions = first},
      {.sequences = {1, 0, 1}, .rowCounts = {{2, 1, 2}}},
      {.sequences = {1, 0}, .rowCounts = {{1, 4}}, .positions = tensor},
      {.sequences = {1, 0}, .rowCounts = {{1, 4}}, .positions = list},
      {.sequences = {2}, .rowCounts = {{3}}},
  };
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const List& list : lists) {
      const Context context(list.text());
      for (const bool rotates : {true, false}) {
        if (!rotates && (list.hasOffsets || list.positions != none)) continue;
        ListStep(device, list, attendedDescriptor(16)).run(rotates);
      }
      ListStep(device, list, quantized(attendedDescriptor(16))).run(true);
    }
  });
}

// A list with more rows than one dispatch holds takes two dispatches, or one for each sequence.
TEST(AttentionCacheStepList, ListsWithManyRowsAreSplit) {
  const auto device = devicesUnderTest().front().device;
  for (const auto& [positions, dispatches] :
       {std::pair(PositionForm::tensor, 2 + 65), std::pair(PositionForm::none, 2 * 66)}) {
    const List list{.sequences = {2, 0},
                    .rowsOfEach = 515,
                    .positions = positions,
                    .dispatches = static_cast<uint64_t>(dispatches),
                    .options = {.window = 2}};
    const Context context(list.text());
    ListStep(device, list, attendedDescriptor(600)).run(true);
    ListStep(device, list, quantized(attendedDescriptor(600))).run(true);
  }
}

// A ring of five serves sequences that are almost full one by one, each in chunks, finally one row at a time: rows
// side by side, or with an axis of sequences.
TEST(AttentionCacheStepList, AFullRingIsServedInChunks) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const auto& [isQuantized, hasAxis] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
      const AttentionCacheDescriptor descriptor =
          isQuantized ? quantized(attendedDescriptor(5)) : attendedDescriptor(5);
      AttentionFixture listed(device, descriptor), single(device, descriptor);
      const std::vector<uint32_t> sequences = hasAxis ? std::vector<uint32_t>{2, 0} : std::vector<uint32_t>{2, 0, 2};
      const std::vector<uint32_t> rowCounts = hasAxis ? std::vector<uint32_t>{7, 7} : std::vector<uint32_t>{3, 2, 2};
      const uint64_t totalRows = hasAxis ? 14 : 7;
      const auto shaped = [&](const Tensor& rows) {
        const Shape& axes = rows.shape();
        return hasAxis ? REQUIRE(rows.reshaped(REQUIRE(Shape::make({2, 7, axes[1], axes[2]})))) : rows;
      };
      const Tensor queries = listed.someQueries(totalRows);
      const Tensor keys = listed.tensor(smallNumbers(listed.random, totalRows * 64), {totalRows, 2, 32});
      const Tensor out = listed.zeros({totalRows, kQueryHeads, kAttendedDim});
      const Tensor expected = listed.zeros({totalRows, kQueryHeads, kAttendedDim});
      REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) {
        return listed.cache.appendAndAttend(encoder, {.queries = shaped(queries),
                                                      .keys = shaped(keys),
                                                      .values = shaped(keys),
                                                      .rotary = RotaryStep{},
                                                      .results = {.output = shaped(out)},
                                                      .sequences = sequences,
                                                      .rowCounts = rowCounts});
      }));
      uint64_t row = 0;
      for (size_t i = 0; i < sequences.size(); ++i) {
        for (uint64_t end = row + rowCounts[i]; row < end; ++row) {
          REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) {
            return single.cache.appendAndAttend(encoder, {.queries = REQUIRE(queries.slice(row, 1)),
                                                          .keys = REQUIRE(keys.slice(row, 1)),
                                                          .values = REQUIRE(keys.slice(row, 1)),
                                                          .rotary = RotaryStep{},
                                                          .results = {.output = REQUIRE(expected.slice(row, 1))},
                                                          .sequences = {sequences[i]}});
          }));
        }
      }
      EXPECT(bytesOf(listed.cache.view().keys) == bytesOf(single.cache.view().keys));
      const std::vector<float> sums = floatsOf(expected);
      EXPECT(largestDifference(floatsOf(out), {sums.begin(), sums.end()}) < kF32Sums);
    }
  });
}

TEST(AttentionCacheStepList, RefusesMismatchedLists) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(16));
  const CacheStep sound{.queries = fixture.zeros({3, kQueryHeads, kAttendedDim}),
                        .keys = fixture.zeros({3, kAttendedHeads, kAttendedDim}),
                        .values = fixture.zeros({3, kAttendedHeads, kAttendedDim}),
                        .rotary = RotaryStep{},
                        .results = {.output = fixture.zeros({3, kQueryHeads, kAttendedDim})},
                        .sequences = {0, 1},
                        .rowCounts = {{2, 1}}};
  CommandEncoder encoder(device);
  const auto refused = [&](auto change, ExpectedError expected) {
    CacheStep step = sound;
    change(step);
    expected.op = "AttentionCache.appendAndAttend";
    expectError(__FILE__, __LINE__, "a list", errorOf(fixture.cache.appendAndAttend(encoder, step)), expected);
  };
  refused(
      [](auto& step) {
        step.rowCounts = std::vector<uint32_t>{2, 2};
      },
      {.what = "the rows do not match the listed sequences"});
  refused([](auto& step) { step.sequences = {0, 3}; }, {.got = "sequence 3"});
  refused(
      [](auto& step) {
        step.rotary->offsets = std::vector<int32_t>{1, 2};
      },
      {.what = "offsets are given for sequences that differ in their rows",
       .got = "offsets, and other row counts for some of 2 sequences",
       .expected = "the same number of rows for each sequence, or no offsets",
       .fix = "Add the offsets to positions"});
  refused(
      [&](auto& step) {
        step.queries = fixture.zeros({2, kQueryHeads, kAttendedDim});
      },
      {.what = "queries, keys and values are not of the same tokens"});
  refused(
      [](auto& step) {
        step.sequences = {1, 1}, step.options.isCausal = false;
      },
      {.what = "a sequence is listed again in attention that is not causal", .got = "sequence 1"});
  refused(
      [&](auto& step) {
        step.options.mask = fixture.zeros({1, 16});
      },
      {.what = "masks are not supported with unequal row counts"});
  refused(
      [](auto& step) {
        step.rotary->positions = RotaryPositions(std::vector<int32_t>{1, 2});
      },
      {.what = "positions do not match the tokens"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
}

}  // namespace mnk::test
