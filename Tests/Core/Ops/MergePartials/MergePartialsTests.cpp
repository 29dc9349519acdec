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

// The keys of a sequence in caches of their own: shard s has keys [bounds[s], bounds[s + 1]). Calls over shards, and a
// merge, take the place of a call over the whole, whose operands they have.
struct Shards {
  FlashDecodeCase whole;
  std::vector<uint64_t> bounds{0};
  uint32_t splits = 0;
  uint64_t mergedFirst = 0;  // number of parts that are merged to partials first

  uint64_t count() const { return bounds.size() - 1; }
};

Shards drawnShards(uint64_t number, Seeded& random) {
  Shards shards{.whole = {.name = fmt::format("shards {}", number), .sequences = {}, .options = {}}};
  const uint64_t count = 1 + random.below(5);
  while (shards.count() < count) {
    shards.bounds.push_back(shards.bounds.back() + (coin(random, 1, 4) ? 0 : 1 + random.below(33)));
  }
  shards.bounds.back() += shards.bounds.back() == 0;
  FlashDecodeCase& whole = shards.whole;
  whole.cache = DType::f16, whole.layout = KVLayout::tokenMajor;
  whole.capacity = shards.bounds.back();
  whole.sequences = {{0, whole.capacity}};
  whole.group = 3;
  whole.rows = 1 + random.below(std::min<uint64_t>(whole.capacity, 11));
  whole.into = oneOf(random, {DType::f32, DType::f16, DType::bf16});
  whole.givesLogSumExp = true;
  whole.hasSlopes = coin(random, 1, 4), whole.hasSinks = coin(random, 1, 2);
  whole.options.kernel = AttentionOptions::Kernel::vector;
  whole.options.isCausal = coin(random, 3, 4);
  if (coin(random, 1, 2)) whole.options.window = static_cast<uint32_t>(1 + random.below(whole.capacity));
  if (coin(random, 1, 3)) setFloats(whole.options, &random);
  if (coin(random, 1, 2)) shards.splits = static_cast<uint32_t>(1 + random.below(3));
  if (count > 1 && coin(random, 1, 2)) shards.mergedFirst = 1 + random.below(count);
  return shards;
}

void expectShardsMerge(const std::shared_ptr<Device>& device, const Shards& shards, const PreparedFlashDecode& whole) {
  Seeded random;
  const FlashDecodeRun all(device, whole, random);
  const FlashDecodeCase& attend = whole.attend;
  const uint64_t count = shards.count();
  GuardedOperands operands(device);
  const auto partials = [&](const std::string& name, uint64_t parts) {
    return makePartials(operands, name, {parts, attend.rows, attend.heads()}, attend.valueHeadDim);
  };
  const AttentionPartials parts = partials("part", count);
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
    const AttentionPartials first = partials("first", 1);
    REQUIRE(encoder.encode(
        MergePartials{.parts = someOf(parts, 0, shards.mergedFirst), .results = {.partials = onePart(first, 0)}}));
    REQUIRE(encoder.encode(MergePartials{.parts = first, .results = {.partials = onePart(parts, last)}}));
    merge.parts = someOf(parts, last, count - last);
  }
  REQUIRE(encoder.encode(merge));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  operands.expectAsBefore({"sums", "stats"});
  all.expectResults();
}

struct MadeUpParts {
  uint64_t parts = 2;
  std::vector<uint64_t> axes = {3, 4};  // before the head dim, heads last
  uint64_t headDim = 64;
  DType into = DType::f32;
  bool hasSinks = false;
  bool givesPartials = false;
  double top = 0;           // the largest scores are around it
  double spread = 20;       // and that far from it
  uint64_t partsShift = 0;  // bytes past an aligned address
  uint64_t intoShift = 0;
};

// Consecutive numbers go through all head dims and numbers of parts.
MadeUpParts drawnParts(uint64_t number, Seeded& random) {
  constexpr uint64_t kParts[] = {2, 1, 3, 7, 8, 9, 33};
  MadeUpParts made{.parts = number < 2 ? MergePartials::kMaxParts : kParts[number % std::size(kParts)],
                   .axes = oneOf<std::vector<uint64_t>>(random, {{2}, {3, 4}, {2, 2, 3}, {2, 1, 2}}),
                   .headDim = number % 48 < 32 ? 8 * (1 + number % 48) : 16 * (number % 48 - 15),
                   .into = kEveryFloat[number % std::size(kEveryFloat)],
                   .givesPartials = number % 2 == 0};
  made.hasSinks = !made.givesPartials && coin(random, 1, 2);
  made.top = oneOf(random, {0.0, -140.0, -1000.0});
  if (coin(random, 1, 8)) made.spread = 3e4;
  if (coin(random, 1, 2)) made.partsShift = 4 * random.below(4), made.intoShift = 4 * random.below(4);
  return made;
}

void expectMerges(const std::shared_ptr<Device>& device, const MadeUpParts& made, Seeded& random) {
  uint64_t rows = 1;
  for (uint64_t axis : made.axes) rows *= axis;
  const uint64_t heads = made.axes.back();
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53);
  };
  std::vector<float> sums(made.parts * rows * made.headDim), stats(made.parts * rows * 2), sinks(heads);
  for (uint64_t part = 0; part < made.parts * rows; ++part) {
    // Some rows have nothing in some parts, and row 1 has nothing in any. Partials that were made and not written hold
    // zeros: a rowMax that may be above all scores, and a rowSum of 0.
    const bool isEmpty = part % rows == 1 || random.below(4) == 0;
    const float rowMax = uniform(made.top - made.spread, made.top + made.spread);
    const float none = random.below(2) == 0 ? 0 : -std::numeric_limits<float>::infinity();
    stats[part * 2] = isEmpty ? none : rowMax;
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
  run(device, op);

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
  Seeded random(21, 1), contents(21);
  std::vector<std::pair<Shards, PreparedFlashDecode>> all;
  while (all.size() < 30) {
    const Shards shards = drawnShards(all.size(), random);
    all.emplace_back(shards, prepared(shards.whole, contents));
  }
  const auto expectHit = [&](const char* name, bool (*holds)(const Shards&)) {
    const bool isHit = std::ranges::any_of(all, [&](const auto& each) { return holds(each.first); });
    if (!isHit) fail(__FILE__, __LINE__, fmt::format("no case has {}", name));
  };
  expectHit("one shard", [](const Shards& s) { return s.count() == 1; });
  expectHit("a shard without keys", [](const Shards& s) { return s.count() > 2 && s.bounds[1] == s.bounds[2]; });
  expectHit("rows in several shards",
            [](const Shards& s) { return s.count() > 1 && s.whole.rows > s.whole.capacity - s.bounds[1]; });
  expectHit("a window that ends in the first shard", [](const Shards& s) {
    return s.whole.options.window != 0 && s.whole.options.window > s.whole.capacity - s.bounds[1] && s.count() > 1;
  });
  expectHit("a window from both sides",
            [](const Shards& s) { return s.whole.options.window != 0 && !s.whole.options.isCausal; });
  expectHit("slopes and sinks", [](const Shards& s) { return s.whole.hasSlopes && s.whole.hasSinks; });
  expectHit("two steps in splits", [](const Shards& s) { return s.mergedFirst > 1 && s.splits > 1; });
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const auto& [shards, whole] : all) {
      const Context context(whole.name);
      expectShardsMerge(device, shards, whole);
    }
  });
}

TEST(MergePartials, MergesWhatPartsMean) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random(22);
    for (uint64_t number = 0; number < 64; ++number) {
      const MadeUpParts made = drawnParts(number, random);
      const Context context(fmt::format("{}: {} parts of {}", number, made.parts, made.headDim));
      expectMerges(device, made, random);
    }
  });
}

}  // namespace mnk::test
