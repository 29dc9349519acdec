// MergePartials on every device: parts that FlashDecode wrote against attention over all keys, and made-up parts
// against their definition.
#include <algorithm>
#include <limits>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/Common/GuardedOperands.hpp"
#include "Ops/FlashDecode/FlashDecodeRun.hpp"

namespace mnk::test {

namespace {

Shape shapeOf(std::vector<uint64_t> axes, uint64_t last = 0) {
  if (last != 0) axes.push_back(last);
  return REQUIRE(Shape::make(axes));
}

// Sums and stats, poisoned and between guards.
AttentionPartials makePartials(GuardedOperands& operands, const std::string& name, const std::vector<uint64_t>& axes,
                               uint64_t headDim, uint64_t shift = 0) {
  return {operands.make(name + " sums", DType::f32, shapeOf(axes, headDim), shift),
          operands.make(name + " stats", DType::f32, shapeOf(axes, 2), 0)};
}

AttentionPartials someOf(const AttentionPartials& parts, uint64_t begin, uint64_t count) {
  return {REQUIRE(parts.sums.slice(begin, count)), REQUIRE(parts.stats.slice(begin, count))};
}

// A part by itself, which FlashDecode can write.
AttentionPartials onePart(const AttentionPartials& parts, uint64_t index) {
  const auto only = [&](const Tensor& tensor) {
    const auto extents = tensor.shape().extents();
    return REQUIRE(REQUIRE(tensor.slice(index, 1)).reshaped(shapeOf({extents.begin() + 1, extents.end()})));
  };
  return {only(parts.sums), only(parts.stats)};
}

// The keys of a sequence in caches of their own: shard s has keys [bounds[s], bounds[s + 1]).
struct ShardsCase {
  std::string name;
  std::vector<uint64_t> bounds;
  bool hasSinks = false;
  DType into = DType::f32;
  uint64_t mergedFirst = 0;  // number of parts that are merged to partials first
  uint32_t splits = 0;
  uint64_t rows = 2;
  AttentionOptions options = {};
  bool hasSlopes = false;
};

FlashDecodeCase wholeOf(const ShardsCase& shards) {
  FlashDecodeCase attend{.name = shards.name,
                         .cache = DType::f16,
                         .headDim = 64,
                         .valueHeadDim = 64,
                         .kvHeads = 2,
                         .capacity = shards.bounds.back(),
                         .layout = KVLayout::tokenMajor,
                         .group = 3,
                         .rows = shards.rows,
                         .sequences = {{0, shards.bounds.back()}},
                         .into = shards.into,
                         .givesLogSumExp = true,
                         .options = shards.options,
                         .hasSlopes = shards.hasSlopes,
                         .hasSinks = shards.hasSinks};
  attend.options.kernel = AttentionOptions::Kernel::vector;
  return attend;
}

// The operands are those of a call over all keys, which is not run: calls over shards and a merge take its place.
void expectShardsMerge(const std::shared_ptr<Device>& device, const ShardsCase& shards,
                       const PreparedFlashDecode& whole) {
  Seeded random;
  const FlashDecodeRun all(device, whole, random);
  const FlashDecodeCase& attend = whole.attend;
  const uint64_t count = shards.bounds.size() - 1;
  GuardedOperands operands(device);
  const std::vector<uint64_t> axes{attend.rows, attend.heads()};
  const AttentionPartials parts = makePartials(operands, "part", {count, axes[0], axes[1]}, attend.valueHeadDim);
  CommandEncoder encoder(device, "shards");
  for (uint64_t s = 0; s < count; ++s) {
    FlashDecode op = all.op().op;
    const uint64_t begin = shards.bounds[s], keys = shards.bounds[s + 1] - begin;
    auto& view = std::get<KVCacheView>(op.cache);
    // Without keys, there is a slot that is not read.
    for (Tensor* plane : {&view.keys, &*view.values}) {
      *plane = REQUIRE(plane->slice(std::min(begin, attend.capacity - 1), std::max<uint64_t>(keys, 1)));
    }
    op.sequences = {{.length = keys, .position = static_cast<int64_t>(attend.capacity - attend.rows - begin)}};
    op.results = {.partials = onePart(parts, s)};
    op.options.sinks.reset();
    op.options.splits = shards.splits;
    REQUIRE(encoder.encode(op));
  }
  MergePartials merge{.parts = parts, .sinks = all.op().op.options.sinks, .results = all.op().op.results};
  if (shards.mergedFirst) {
    // The sum of the first parts takes the place of the last of them.
    const uint64_t last = shards.mergedFirst - 1;
    const AttentionPartials first = makePartials(operands, "first", {1, axes[0], axes[1]}, attend.valueHeadDim);
    REQUIRE(encoder.encode(
        MergePartials{.parts = someOf(parts, 0, shards.mergedFirst), .results = {.partials = onePart(first, 0)}}));
    REQUIRE(encoder.encode(MergePartials{.parts = first, .results = {.partials = onePart(parts, last)}}));
    merge.parts = someOf(parts, last, count - last);
  }
  REQUIRE(encoder.encode(merge));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  operands.expectAsBefore({"sums", "stats"});
  all.expectAttended();
}

struct MadeUpParts {
  std::string name;
  uint64_t parts = 2;
  std::vector<uint64_t> axes = {3, 4};  // before the head dim, heads last
  uint64_t headDim = 64;
  DType into = DType::f32;
  bool hasSinks = false;
  bool givesPartials = false;
  double spread = 20;       // of the largest scores
  uint64_t partsShift = 0;  // bytes past an aligned address
  uint64_t intoShift = 0;
};

void expectMerges(const std::shared_ptr<Device>& device, const MadeUpParts& made, Seeded& random) {
  uint64_t rows = 1;
  for (uint64_t axis : made.axes) rows *= axis;
  const uint64_t heads = made.axes.back();
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53);
  };
  std::vector<float> sums(made.parts * rows * made.headDim), stats(made.parts * rows * 2), sinks(heads);
  for (uint64_t part = 0; part < made.parts * rows; ++part) {
    // Some rows have nothing in some parts, and row 1 has nothing in any.
    const bool isEmpty = part % rows == 1 || random.below(4) == 0;
    stats[part * 2] = isEmpty ? -std::numeric_limits<float>::infinity() : uniform(-made.spread, made.spread);
    stats[part * 2 + 1] = isEmpty ? 0 : uniform(1, 100);
    for (uint64_t j = 0; j < made.headDim; ++j) sums[part * made.headDim + j] = isEmpty ? 0 : uniform(-50, 50);
  }
  for (float& sink : sinks) sink = uniform(-10, 10);

  std::vector<uint64_t> axes = made.axes;
  axes.insert(axes.begin(), made.parts);
  GuardedOperands operands(device);
  MergePartials op{.parts = makePartials(operands, "part", axes, made.headDim, made.partsShift)};
  if (made.hasSinks) op.sinks = operands.make("sinks", DType::f32, shapeOf({heads}), 0);
  if (made.givesPartials) {
    op.results.partials = makePartials(operands, "result", made.axes, made.headDim, made.intoShift);
  } else {
    op.results.output = operands.make("into", made.into, shapeOf(made.axes, made.headDim), made.intoShift);
  }
  op.results.logSumExp = operands.make("log sum exp", DType::f32, shapeOf(made.axes), 0);
  operands.set("part sums", rawBytes(sums));
  operands.set("part stats", rawBytes(stats));
  operands.set("sinks", rawBytes(sinks));
  REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) { return encoder.encode(op); }));

  operands.expectAsBefore({"into", "result sums", "result stats", "log sum exp"});
  PartsToMerge given{.parts = made.parts, .rows = rows, .headDim = made.headDim, .sums = sums, .stats = stats};
  if (made.hasSinks) given.sinks = sinks;
  const std::vector<AttendedRow> expected = merged(given);
  expectLogSumExp(operands.now("log sum exp"), expected, false);
  if (!made.givesPartials) return expectRows(made.into, operands.now("into"), expected, false);
  expectPartials(operands.now("result sums"), operands.now("result stats"), expected, false);
}

}  // namespace

TEST(MergePartials, ShardsGiveWhatAllKeysGive) {
  const AttentionOptions bidirectional{.isCausal = false};
  AttentionOptions usual{.window = 43};
  setFloats(usual);
  const ShardsCase cases[] = {
      {.name = "one shard", .bounds = {0, 9}},
      {.name = "rows in all shards", .bounds = {0, 3, 5, 6, 7}, .rows = 7},
      {.name = "rows in all shards that see all", .bounds = {0, 3, 5, 6, 7}, .rows = 7, .options = bidirectional},
      {.name = "a window that ends in the first shard", .bounds = {0, 30, 41}, .rows = 11, .options = {.window = 13}},
      {.name = "a window that ends before the last row", .bounds = {0, 30, 41}, .rows = 5, .options = {.window = 3}},
      {.name = "a window over four shards, from both sides",
       .bounds = {0, 8, 16, 24, 32},
       .rows = 10,
       .options = {.isCausal = false, .window = 14}},
      {.name = "slopes", .bounds = {0, 17, 33, 40}, .hasSinks = true, .rows = 9, .hasSlopes = true},
      {.name = "slopes, a window and usual numbers in splits",
       .bounds = {0, 21, 60},
       .splits = 3,
       .rows = 9,
       .options = usual,
       .hasSlopes = true},
      {.name = "two shards", .bounds = {0, 40, 70}},
      {.name = "two shards of f16 results", .bounds = {0, 5, 33}, .into = DType::f16, .splits = 2},
      {.name = "shards and sinks", .bounds = {0, 31, 64, 65}, .hasSinks = true},
      {.name = "shards without keys among others", .bounds = {0, 0, 12, 12, 30, 30}, .hasSinks = true},
      {.name = "shards in two steps", .bounds = {0, 7, 20, 21, 50}, .mergedFirst = 2},
      {.name = "shards in splits, in two steps, with sinks",
       .bounds = {0, 33, 66, 99},
       .hasSinks = true,
       .into = DType::bf16,
       .mergedFirst = 3,
       .splits = 3},
  };
  Seeded random(21);
  std::vector<PreparedFlashDecode> wholes;
  for (const ShardsCase& shards : cases) wholes.push_back(prepared(wholeOf(shards), random));
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (size_t c = 0; c < wholes.size(); ++c) {
      const Context context(cases[c].name);
      expectShardsMerge(device, cases[c], wholes[c]);
    }
  });
}

TEST(MergePartials, MergesWhatPartsMean) {
  std::vector<MadeUpParts> cases;
  for (uint64_t headDim : {8, 16, 24, 32, 48, 64, 80, 96, 120, 128, 136, 144, 192, 248, 256, 272, 400, 512}) {
    const uint64_t number = cases.size();
    cases.push_back({.name = fmt::format("head dim {}", headDim),
                     .parts = 1 + number % 4,
                     .headDim = headDim,
                     .into = number % 3 == 1   ? DType::f16
                             : number % 3 == 2 ? DType::bf16
                                               : DType::f32,
                     .hasSinks = number % 2 == 0});
  }
  for (uint64_t parts : {1, 2, 3, 7, 8, 9, 33, 1024}) {
    cases.push_back({.name = fmt::format("{} parts", parts), .parts = parts, .headDim = 32});
    cases.push_back({.name = fmt::format("{} parts to partials", parts),
                     .parts = parts,
                     .axes = {2, 1, 2},
                     .headDim = 32,
                     .givesPartials = true});
  }
  cases.push_back({.name = "one row", .parts = 5, .axes = {2}, .hasSinks = true});
  cases.push_back({.name = "axes of sequences", .parts = 3, .axes = {2, 3, 4}, .hasSinks = true});
  cases.push_back({.name = "scores far apart", .parts = 6, .spread = 3e4});
  for (uint64_t shift : {4, 8, 12}) {
    cases.push_back({.name = fmt::format("{} bytes past an aligned address", shift),
                     .into = shift == 8 ? DType::f16 : DType::f32,
                     .givesPartials = shift == 12,
                     .partsShift = shift,
                     .intoShift = 16 - shift});
  }
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random(22);
    for (const MadeUpParts& made : cases) {
      const Context context(made.name);
      expectMerges(device, made, random);
    }
  });
}

// Partials that were made and not written hold zeros: a rowMax above low scores, and a rowSum of 0.
TEST(MergePartials, UnwrittenPartsAddNothing) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const auto zeros = [&](std::initializer_list<uint64_t> extents) {
      return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make(extents))));
    };
    constexpr uint64_t kParts = 3, kDim = 8;
    const Tensor sums = zeros({kParts, 1, kDim}), stats = zeros({kParts, 1, 2}), out = zeros({1, kDim});
    for (const float rowMax : {-50.0f, -140.0f, -1000.0f, 7.0f}) {
      std::vector<float> sum(kParts * kDim), stat(kParts * 2);
      std::fill_n(sum.begin() + kDim, kDim, 6.0f);
      stat[2] = rowMax;
      stat[3] = 2;
      REQUIRE(sums.write(std::as_bytes(std::span(sum))));
      REQUIRE(stats.write(std::as_bytes(std::span(stat))));
      REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) {
        return encoder.encode(MergePartials{.parts = {.sums = sums, .stats = stats}, .results = {.output = out}});
      }));
      std::vector<float> got(kDim);
      REQUIRE(out.read(std::as_writable_bytes(std::span(got))));
      EXPECT(got == std::vector<float>(kDim, 3));
    }
  });
}

}  // namespace mnk::test
