// MergePartials on every device: parts that FlashDecode wrote against attention over all keys, and made-up parts
// against their definition.
#include <cmath>
#include <cstring>
#include <limits>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeRun.hpp"

namespace mnk::test {

namespace {

Shape shapeOf(const std::vector<uint64_t>& extents) {
  return REQUIRE(Shape::make(extents));
}

std::vector<float> floatsOf(const std::vector<std::byte>& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

// Sums and stats of parts, each of which FlashDecode can write by itself.
struct PartsMemory {
  GuardedTensor sums;
  GuardedTensor stats;

  PartsMemory(const std::shared_ptr<Device>& device, std::vector<uint64_t> axes, uint64_t headDim, uint64_t shift = 0)
      : sums(device, DType::f32, withLast(axes, headDim), shift), stats(device, DType::f32, withLast(axes, 2)) {}

  static Shape withLast(std::vector<uint64_t> axes, uint64_t last) {
    axes.push_back(last);
    return shapeOf(axes);
  }

  AttentionPartials all() const { return {sums.tensor(), stats.tensor()}; }
  AttentionPartials parts(uint64_t begin, uint64_t count) const {
    return {REQUIRE(sums.tensor().slice(begin, count)), REQUIRE(stats.tensor().slice(begin, count))};
  }
  AttentionPartials part(uint64_t index) const {
    const auto only = [&](const GuardedTensor& memory) {
      const auto extents = memory.tensor().shape().extents();
      return REQUIRE(REQUIRE(memory.tensor().slice(index, 1))
                         .reshaped(shapeOf(std::vector<uint64_t>(extents.begin() + 1, extents.end()))));
    };
    return {only(sums), only(stats)};
  }
};

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
                         .group = 3,
                         .rows = shards.rows,
                         .sequences = {{0, shards.bounds.back()}},
                         .into = shards.into,
                         .options = shards.options,
                         .hasSlopes = shards.hasSlopes,
                         .hasSinks = shards.hasSinks};
  attend.options.kernel = AttentionOptions::Kernel::vector;
  return attend;
}

// A cache of some of the keys of the whole, head-major.
KVCacheView shardOf(const std::shared_ptr<Device>& device, const PreparedFlashDecode& whole, uint64_t begin,
                    uint64_t end) {
  const uint64_t heads = whole.attend.kvHeads, capacity = whole.attend.capacity;
  const auto cut = [&](const char* name, uint64_t headDim) {
    const uint64_t vectorBytes = headDim * byteSize(whole.attend.cache);
    std::vector<std::byte> bytes;
    for (uint64_t head = 0; head < heads; ++head) {
      const auto* from = whole.inputs.at(name).data() + (head * capacity + begin) * vectorBytes;
      bytes.insert(bytes.end(), from, from + (end - begin) * vectorBytes);
      bytes.resize((head + 1) * std::max<uint64_t>(end - begin, 1) * vectorBytes);
    }
    const GuardedTensor memory(device, whole.attend.cache,
                               shapeOf({heads, std::max<uint64_t>(end - begin, 1), headDim}));
    memory.set(bytes);
    return memory.tensor();
  };
  return {.keys = cut("keys", whole.attend.headDim), .values = cut("values", whole.attend.valueHeadDim)};
}

void expectShardsMerge(const std::shared_ptr<Device>& device, const ShardsCase& shards,
                       const PreparedFlashDecode& whole) {
  const FlashDecodeCase& attend = whole.attend;
  const uint64_t count = shards.bounds.size() - 1;
  const GuardedTensor queries(device, attend.queries, shapeOf({attend.rows, attend.heads(), attend.headDim}));
  queries.set(whole.inputs.at("queries"));
  const PartsMemory parts(device, {count, attend.rows, attend.heads()}, attend.valueHeadDim);
  const GuardedTensor into(device, shards.into, shapeOf({attend.rows, attend.heads(), attend.valueHeadDim}));
  const GuardedTensor sums(device, DType::f32, shapeOf({attend.rows, attend.heads()}));

  std::optional<GuardedTensor> slopes;
  if (shards.hasSlopes) {
    slopes.emplace(device, DType::f32, shapeOf({attend.heads()}));
    slopes->set(whole.inputs.at("slopes"));
  }
  CommandEncoder encoder(device, "shards");
  for (uint64_t s = 0; s < count; ++s) {
    FlashDecode op{.queries = queries.tensor(),
                   .cache = shardOf(device, whole, shards.bounds[s], shards.bounds[s + 1])};
    const auto firstRow = static_cast<int64_t>(shards.bounds.back() - shards.rows);
    op.sequences = {{.length = shards.bounds[s + 1] - shards.bounds[s],
                     .position = firstRow - static_cast<int64_t>(shards.bounds[s])}};
    op.results.partials = parts.part(s);
    op.options = attend.options;
    op.options.splits = shards.splits;
    if (slopes) op.options.slopes = slopes->tensor();
    REQUIRE(encoder.encode(op));
  }
  MergePartials merge{.parts = parts.all()};
  if (shards.mergedFirst) {
    // The sum of the first parts takes the place of the last of them.
    const uint64_t last = shards.mergedFirst - 1;
    const PartsMemory some(device, {1, attend.rows, attend.heads()}, attend.valueHeadDim);
    REQUIRE(encoder.encode(
        MergePartials{.parts = parts.parts(0, shards.mergedFirst), .results = {.partials = some.part(0)}}));
    REQUIRE(encoder.encode(MergePartials{.parts = some.all(), .results = {.partials = parts.part(last)}}));
    merge.parts = parts.parts(last, count - last);
  }
  std::optional<GuardedTensor> sinks;
  if (shards.hasSinks) {
    sinks.emplace(device, DType::f32, shapeOf({attend.heads()}));
    sinks->set(whole.inputs.at("sinks"));
    merge.sinks = sinks->tensor();
  }
  merge.results = {.output = into.tensor(), .logSumExp = sums.tensor()};
  REQUIRE(encoder.encode(merge));
  REQUIRE(REQUIRE(encoder.commit()).wait());

  parts.sums.expectBordersIntact("sums");
  parts.stats.expectBordersIntact("stats");
  into.expectBordersIntact("results");
  expectRows(shards.into, into.bytes(), whole.expected, false);
  expectLogSumExp(sums.bytes(), whole.expected, false);
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
  const PartsMemory parts(device, axes, made.headDim, made.partsShift);
  parts.sums.set(rawBytes(sums));
  parts.stats.set(rawBytes(stats));
  const GuardedTensor ofSinks(device, DType::f32, shapeOf({heads}));
  ofSinks.set(rawBytes(sinks));
  const GuardedTensor into(device, made.into, PartsMemory::withLast(made.axes, made.headDim), made.intoShift);
  const PartsMemory again(device, made.axes, made.headDim, made.intoShift);
  const GuardedTensor logSumExp(device, DType::f32, shapeOf(made.axes));
  MergePartials op{.parts = parts.all()};
  if (made.hasSinks) op.sinks = ofSinks.tensor();
  if (made.givesPartials) op.results.partials = again.all();
  if (!made.givesPartials) op.results.output = into.tensor();
  op.results.logSumExp = logSumExp.tensor();
  CommandEncoder encoder(device, "merge");
  REQUIRE(encoder.encode(op));
  REQUIRE(REQUIRE(encoder.commit()).wait());

  for (const GuardedTensor* memory : {&parts.sums, &parts.stats, &into, &again.sums, &again.stats, &logSumExp}) {
    memory->expectBordersIntact("an operand");
  }
  EXPECT(floatsOf(parts.sums.bytes()) == sums);
  PartsToMerge expected{.parts = made.parts, .rows = rows, .headDim = made.headDim, .sums = sums, .stats = stats};
  if (made.hasSinks) expected.sinks = sinks;
  const std::vector<AttendedRow> rowsDue = merged(expected);
  expectLogSumExp(logSumExp.bytes(), rowsDue, false);
  if (!made.givesPartials) return expectRows(made.into, into.bytes(), rowsDue, false);
  expectPartials(again.sums.bytes(), again.stats.bytes(), rowsDue, false);
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
