// Cases of FlashDecode, drawn at random: all are valid.
#include <algorithm>
#include <bit>

#include "OpFuzz.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeRun.hpp"

namespace mnk::fuzz {

namespace {

using test::FlashDecodeCase;

DType drawFloat(Seeded& random) {
  return oneOf(random, {DType::f32, DType::f16, DType::bf16});
}

// Small ones most of the time: what is checked does not depend on the size, and what a case costs does.
void drawHeadDims(FlashDecodeCase& attend, Seeded& random, bool isQuantized, bool isPrompt) {
  const bool isLong = coin(random, 1, 12);
  attend.isLatent = isLong && coin(random, 1, 3);
  if (attend.isLatent) {
    attend.headDim = 64, attend.valueHeadDim = 512;
    attend.isOneTensor = !isQuantized && coin(random, 1, 2);
    return;
  }
  const auto draw = [&]() -> uint64_t {
    if (!isQuantized) return 8 * (1 + random.below(isLong ? 32 : 8));
    return isLong ? oneOf<uint64_t>(random, {112, 128, 192, 256}) : oneOf<uint64_t>(random, {32, 32, 64, 80, 96});
  };
  attend.headDim = draw();
  attend.valueHeadDim = coin(random, 2, 3) ? attend.headDim : draw();
  if (isLong && coin(random, 1, 4)) {
    attend.headDim = isQuantized || coin(random, 1, 2) ? 512 : 576;
    attend.valueHeadDim = 512;
  }
  // Those that have a kernel which attends with all rows in one dispatch on a GPU.
  if (isPrompt) attend.headDim = attend.valueHeadDim = oneOf<uint64_t>(random, {64, 64, 80, 96, 128, 192, 256});
}

void drawCodecs(FlashDecodeCase& attend, Seeded& random) {
  const bool isTurbo =
      coin(random, 2, 3) || !std::has_single_bit(attend.headDim) || !std::has_single_bit(attend.valueHeadDim);
  const auto draw = [&](uint64_t headDim) {
    if (isTurbo) return KVCodec{.bits = static_cast<uint32_t>(2 + random.below(7))};
    KVCodec codec{.name = KVCodec::Name::mlx1};
    if (headDim == 256 || headDim == 512) codec.bits = oneOf<uint32_t>(random, {4, 5, 6, 8});
    if (headDim == 512) codec.scaleFactor = oneOf(random, {1.0f, 0.75f});
    return codec;
  };
  const bool isLong = std::min(attend.headDim, attend.valueHeadDim) >= 256;
  attend.keyCodec = draw(attend.headDim), attend.valueCodec = draw(attend.valueHeadDim);
  if (!isTurbo && isLong && coin(random, 1, 2)) {  // a variant of mlx1, of these head dims only
    const auto name = coin(random, 1, 2) ? KVCodec::Name::mlx1Unrotated : KVCodec::Name::mlx1Affine4;
    for (std::optional<KVCodec>* codec : {&attend.keyCodec, &attend.valueCodec}) {
      *codec = KVCodec{name, 4, name == KVCodec::Name::mlx1Affine4 ? 1 : (*codec)->scaleFactor};
      if (name == KVCodec::Name::mlx1Unrotated) (*codec)->bits = oneOf<uint32_t>(random, {5, 6, 8});
    }
  }
  if (!attend.isLatent && attend.headDim == attend.valueHeadDim && coin(random, 1, 6)) {
    (coin(random, 1, 2) ? attend.keyCodec : attend.valueCodec).reset();
  }
  attend.hasKeyMeans = isTurbo && coin(random, 1, 3);
  attend.hasValueMeans = isTurbo && coin(random, 1, 3);
  attend.hasChannelScales = isTurbo && coin(random, 1, 3);
  attend.hasWideScales = coin(random, 1, 4);
}

// Lengths that a cache can hold and that rows fit in, or 0.
void drawSequences(FlashDecodeCase& attend, Seeded& random) {
  constexpr uint64_t kLast = (uint64_t{1} << 31) - 1;
  const bool isRing = attend.wrap == KVWrap::ring;
  attend.sequences.clear();
  const uint64_t count = coin(random, 1, 24) ? 0 : 1 + random.below(3);
  const bool isRagged = attend.rows != 0 && coin(random, 1, 4);
  const uint64_t longest = random.below(std::max<uint64_t>(count, 1));
  for (uint64_t s = 0; s < count; ++s) {
    const uint64_t rows = isRagged && s != longest ? 1 + random.below(attend.rows) : attend.rows;
    uint64_t length = random.below((isRing ? 3 * attend.capacity : attend.capacity) + 1);
    if (isRing && coin(random, 1, 16)) length = kLast - random.below(8);
    if (length < rows) length = isRing && coin(random, 3, 4) ? rows : 0;
    AttendedSequence attended{.sequence = random.below(std::max<uint64_t>(attend.cacheSequences, 1)), .length = length};
    // Tokens were taken back: as many as a ring can lose, or a few more, so that it holds pinned positions alone.
    if (coin(random, 1, 4)) {
      const uint64_t most = isRing ? length + attend.capacity + 1 : attend.capacity;
      attended.highest = std::min(length + random.below(most - length + 1), kLast);
    }
    if (isRagged) attended.rows = rows;
    if (coin(random, 1, 4))
      attended.position = static_cast<int64_t>(random.below(std::min(length, kLast / 2) + 20)) - 5;
    attend.sequences.push_back(attended);
  }
  const uint64_t axis = attend.querySequences();
  attend.rank = axis != 1 ? 4 : 3 + static_cast<uint32_t>(random.below(2));
  if (axis == 1 && attend.queryRows() == 1 && coin(random, 1, 2)) attend.rank = 2;
  if (axis == 1 && coin(random, 1, 3)) attend.resultRank = 3 + static_cast<uint32_t>(random.below(2));
}

// Whether the window of a row begins before the oldest position that a ring holds, pinned ones aside.
bool windowReachesLost(const FlashDecodeCase& attend) {
  const uint64_t window = attend.options.window, pinned = attend.pinned;
  if (window == 0) return false;
  for (size_t s = 0; s < attend.sequences.size(); ++s) {
    const uint64_t length = attend.sequences[s].length, written = std::max(length, attend.sequences[s].highest);
    if (written <= attend.capacity) continue;
    const uint64_t rows = attend.rowsOf(s);
    const int64_t first = attend.sequences[s].position.value_or(static_cast<int64_t>(length - std::min(rows, length)));
    for (uint64_t row = 0; row < rows; ++row) {
      if (first + static_cast<int64_t>(row) < 0) continue;
      const uint64_t position = static_cast<uint64_t>(first) + row;
      const uint64_t begin = std::max(position + 1 - std::min(position + 1, window), pinned);
      if (position >= pinned && begin < std::min(length, written - attend.capacity + pinned)) return true;
    }
  }
  return false;
}

void drawOptions(FlashDecodeCase& attend, Seeded& random) {
  AttentionOptions& options = attend.options;
  options = {};
  if (attend.isLatent) options.scale = oneOf(random, {0.0625f, 0.1f});
  if (coin(random, 1, 8)) return;
  test::setFloats(options, &random);
  options.isCausal = coin(random, 5, 6);
  options.window = coin(random, 1, 3) ? static_cast<uint32_t>(1 + random.below(14)) : 0;
  if (coin(random, 1, 16)) options.window = (1u << 31) - 1;
  if (windowReachesLost(attend)) options.window = 0;
  options.windowSeesPinned = coin(random, 1, 3);
  options.splits = oneOf<uint32_t>(random, {0, 0, 0, 1, 2, 3, 5});
  if (coin(random, 1, 64)) options.splits = FlashDecode::kMaxSplits;
  if (coin(random, 1, 2)) options.kernel = AttentionOptions::Kernel::vector;
  options.merge = oneOf(random, {AttentionOptions::Merge::automatic, AttentionOptions::Merge::separate,
                                 AttentionOptions::Merge::inKernel});
  attend.hasSlopes = coin(random, 1, 5);
  attend.hasSinks = !attend.givesPartials && coin(random, 1, 5);
  attend.hasScratch = options.splits != 0 && coin(random, 1, 3);
  if (attend.isRagged() || coin(random, 3, 4)) return;
  attend.mask = test::MaskCase{.dtype = drawFloat(random),
                               .rank = 2 + static_cast<uint32_t>(random.below(3)),
                               .servesAllSequences = coin(random, 1, 3),
                               .servesAllHeads = coin(random, 1, 3),
                               .servesAllRows = coin(random, 1, 3),
                               .extraKeys = random.below(3),
                               .hasEmptyRows = coin(random, 1, 4)};
}

FlashDecodeCase drawCase(Seeded& random) {
  using Places = test::QueryPlaces;
  FlashDecodeCase attend{.name = "fuzz"};
  const bool isPrompt = coin(random, 1, 10), isQuantized = coin(random, 2, 5);
  drawHeadDims(attend, random, isQuantized, isPrompt);
  attend.cache = drawFloat(random), attend.queries = drawFloat(random), attend.into = drawFloat(random);
  if (isQuantized) drawCodecs(attend, random);
  attend.kvHeads = coin(random, 1, 2) ? 1 : 1 + random.below(3);
  attend.cacheSequences = coin(random, 1, 3) ? 0 : 1 + random.below(3);
  attend.capacity = 1 + random.below(12) + (isPrompt ? 9 : 0);
  attend.layout = coin(random, 1, 2) ? KVLayout::headMajor : KVLayout::tokenMajor;
  attend.wrap = coin(random, 2, 3) ? KVWrap::ring : KVWrap::linear;
  if (attend.wrap == KVWrap::ring && coin(random, 1, 3)) {
    attend.pinned = static_cast<uint32_t>(random.below(attend.capacity));
  }
  attend.group = coin(random, 1, 16) ? 0 : 1 + random.below(coin(random, 1, 4) ? 4 : 2);
  attend.rows = coin(random, 1, 24) ? 0 : (coin(random, 1, 12) ? 9 : 1 + random.below(3));
  if (isPrompt) attend.rows = 9 + random.below(9);
  if (coin(random, 1, 50)) attend.group = FlashDecode::kMaxGroup, attend.kvHeads = attend.rows = 1;
  attend.queryPlaces =
      oneOf(random, {Places::tokenMajor, Places::tokenMajor, Places::headMajor, Places::columns, Places::gaps});
  attend.queryGap = random.below(5);
  drawSequences(attend, random);
  attend.givesPartials = coin(random, 1, 4);
  attend.givesLogSumExp = coin(random, 1, 4);
  drawOptions(attend, random);
  return attend;
}

struct FlashDecodeFuzz {
  using Op = FlashDecode;
  static constexpr bool kTakesAnyBits = false;

  static Op make(Arena& arena, Seeded& random) {
    const FlashDecodeCase attend = drawCase(random);
    Op op = test::makeOp(attend, placing(arena, random));
    if (!attend.hasScratch) return op;
    const auto planned = plan(op, *arena.device(0)->device);
    const uint64_t bytes = (planned ? planned->scratchBytes : 0) + random.below(3);
    op.scratch = arena.place(DType::u8, *Shape::make({bytes}), random, 16);
    return op;
  }

  static bool isEmpty(const Op& op) {
    const test::QueryAxes queries = test::queryAxes(op.queries);
    return queries.sequences == 0 || queries.rows == 0 || queries.heads == 0;
  }

  static void fill(const Op& op, Arena& arena, Seeded& random, bool isAlone) {
    if (isEmpty(op)) return;
    const auto bytes = test::inputsOf(op, FlashDecodeCase{.name = "fuzz"}, random, isAlone);
    for (const auto& [name, tensor] : test::inputTensors(op)) arena.write(tensor, bytes.at(name));
  }

  static std::vector<Tensor> outputs(const Op& op) {
    std::vector<Tensor> all;
    const auto& [into, partials, logSumExp] = op.results;
    if (into) all.push_back(*into);
    if (partials) all.insert(all.end(), {partials->sums, partials->stats});
    if (logSumExp) all.push_back(*logSumExp);
    if (op.scratch) all.push_back(*op.scratch);
    return all;
  }

  static uint64_t expect(const Op& op, const Arena& arena) {
    if (isEmpty(op)) return 0;
    test::OperandBytes bytes;
    for (const auto& [name, tensor] : test::inputTensors(op)) bytes[name] = arena.before(tensor);
    const auto rows = test::attended(op, bytes);
    // Numbers that f32 cannot hold on the way.
    const auto isTooLarge = [](const test::AttendedRow& row) { return !(row.magnitude < 1e35); };
    if (std::any_of(rows.begin(), rows.end(), isTooLarge)) return FuzzedCall::kUnknown;
    // Matrices may be of halves.
    const auto* dense = std::get_if<KVCacheView>(&op.cache);
    const bool mayBeChosen = arena.hasGPUKernels() && op.queries.tensor.dtype() != DType::f32;
    const bool isByMatrix = (!dense || dense->keys.dtype() == DType::f16) &&
                            (mayBeChosen || op.options.kernel == AttentionOptions::Kernel::matrix);
    const auto& [into, partials, logSumExp] = op.results;
    if (into) test::expectRows(into->dtype(), arena.now(*into), rows, isByMatrix);
    if (partials) test::expectPartials(arena.now(partials->sums), arena.now(partials->stats), rows, isByMatrix);
    if (logSumExp) test::expectLogSumExp(arena.now(*logSumExp), rows, isByMatrix);
    return FuzzedCall::kUnknown;  // what splits write between dispatches is the op's affair
  }
};

}  // namespace

Target flashDecodeTarget() {
  return {
      .name = "FlashDecode",
      .share = 760,
      .refusals = refusalsOf(
          {"there is too little scratch memory", "op is missing", "queries.tensor is missing", "cache is missing",
           "there are several values for cache", "cache.dense.keys is missing", "cache.quantized.keys.codes is missing",
           "cache.quantized.keys.scales is missing", "cache.quantized.values.codes is missing",
           "cache.quantized.values.scales is missing", "the number is not a case of mnk_kv_layout",
           "the number is not a case of mnk_kv_wrap", "the number is not a case of mnk_kv_codec_name",
           "sequences is missing", "there are too many sequences", "results.partials.sums is missing",
           "results.partials.stats is missing", "the number is not a case of mnk_attention_options_kernel",
           "the number is not a case of mnk_attention_options_merge"},
          attendedCacheRules(), quantizedKVCacheRules(), queryRules(), attentionRules()),
      .make = makeOpCase<FlashDecodeFuzz>};
}

}  // namespace mnk::fuzz
