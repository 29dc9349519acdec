// Cases of FlashDecode, drawn at random: all are valid.
#include <algorithm>
#include <utility>

#include "OpFuzz.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeRun.hpp"

namespace mnk::fuzz {

namespace {

using test::AttentionKind;
using test::FlashDecodeCase;

// Small ones most of the time: what is checked does not depend on the size, and what a case costs does.
bool isLarge(const FlashDecodeCase& attend) {
  const uint64_t keys = attend.slots() * attend.sequences.size(), rows = attend.heads() * attend.rows;
  const uint64_t most = attend.rows > FlashDecode::kRowsPerPass ? 60'000 : 12'000;
  return keys * rows * (attend.queryDim() + attend.valueHeadDim) > most;
}

// Queries without sequences, rows or heads: valid, and there is nothing to do.
void makeEmpty(FlashDecodeCase& attend, Seeded& random) {
  attend.rank = 4, attend.resultRank = 0;
  if (attend.isRagged() || coin(random, 1, 3)) return attend.sequences.clear();
  (coin(random, 1, 2) ? attend.group : attend.rows) = 0;
}

FlashDecodeCase drawCase(Seeded& random) {
  using Kind = AttentionKind;
  const Kind kind = oneOf(random, {Kind::dense, Kind::dense, Kind::dense, Kind::dense, Kind::dense, Kind::quantized,
                                   Kind::quantized, Kind::quantized, Kind::latent, Kind::prompt});
  FlashDecodeCase attend;
  do {
    attend = test::drawnAttention(kind, random.next(), random);
  } while (isLarge(attend) && !coin(random, 1, 200));
  if (coin(random, 1, 12)) makeEmpty(attend, random);
  if (coin(random, 1, 64)) attend.options.splits = FlashDecode::kMaxSplits;
  if (coin(random, 1, 3)) attend.options.merge = AttentionOptions::Merge::inKernel;
  return attend;
}

struct FlashDecodeFuzz {
  using Op = FlashDecode;
  static constexpr bool kTakesAnyBits = false;

  static Op make(Arena& arena, Seeded& random) {
    FlashDecodeCase attend = drawCase(random);
    const bool hasScratch = std::exchange(attend.hasScratch, false);
    Op op = test::makeOp(attend, placing(arena, random));
    if (!hasScratch) return op;
    const auto planned = plan(op, *arena.device(0)->device);
    const uint64_t bytes = (planned ? planned->scratchBytes : 0) + random.below(3);
    op.scratch = arena.place(DType::u8, *Shape::make({bytes}), random, 16);
    return op;
  }

  static bool isEmpty(const Op& op) {
    const HeadsView::Strides queries = op.queries.resolved();
    return queries.totalTokens() == 0 || queries.heads == 0;
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
