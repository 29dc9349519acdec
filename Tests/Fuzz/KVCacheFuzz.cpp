// Cases of KVCacheWrite, KVCacheQuantize and KVCacheDequantize, drawn at random.
#include <algorithm>

#include "OpFuzz.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantize.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantize.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWrite.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

namespace mnk::fuzz {

namespace {

// Moves sources to other places now and then, or leaves out values that the cache has. Rows are those of the case.
template <typename Op>
void varySources(Op& op, Arena& arena, Seeded& random) {
  const auto vary = [&](HeadsView& source) {
    HeadsView view = source;
    if (op.sourceLayout == KVLayout::headMajor) view.layout = op.sourceLayout;
    if (coin(random, 1, 3)) source = scattered(view, arena, random, true);
  };
  vary(op.keys);
  if (op.values) vary(*op.values);
  if (coin(random, 1, 12)) op.values.reset();
  if (op.rows) op.sequence = edge(random, {}), op.position = edge(random, {});  // neither is read
}

// Writes row indices that are tensors. Some name no place, which the kernel skips.
void fillRows(const std::optional<KVCacheWrite::Rows>& rows, const KVCacheView& into, Arena& arena, Seeded& random) {
  if (!rows) return;
  for (const RowIndices* indices : {&rows->sequences, &rows->positions}) {
    const auto* tensor = std::get_if<Tensor>(indices);
    if (!tensor) continue;
    const uint64_t end = indices == &rows->sequences ? into.sequences() : 3 * into.capacity();
    std::vector<uint32_t> numbers(tensor->shape().elementCount());
    for (uint32_t& number : numbers) {
      number =
          static_cast<uint32_t>(coin(random, 1, 12) ? edge(random, {into.capacity(), end}) : random.below(end + 1));
    }
    arena.write(*tensor, std::as_bytes(std::span(numbers)));
  }
}

// Whether all tokens that a call stores are there; else it should not have been accepted. The reference would count
// through those that are not.
bool expectTokens(const KVCacheWrite& op) {
  const uint64_t length = test::sourceTokens(op), left = op.sourceIsRing ? length : length - op.sourceOffset;
  if (left <= length && op.tokens.value_or(left) <= left) return true;
  test::fail(__FILE__, __LINE__, "tokens are stored that the source does not have");
  return false;
}

// Whether the kernel reads them, so that a plan does not know what is stored.
bool areRead(const std::optional<KVCacheWrite::Rows>& rows) {
  return rows && (std::holds_alternative<Tensor>(rows->sequences) || std::holds_alternative<Tensor>(rows->positions));
}

struct KVCacheWriteFuzz {
  using Op = KVCacheWrite;
  static constexpr bool kTakesAnyBits = true;

  static Op make(Arena& arena, Seeded& random) {
    const test::KVCacheWriteCase write = test::drawnWrite(random);
    Op op = test::makeOp(write, placing(arena, random));
    varySources(op, arena, random);
    return op;
  }

  static void fill(const Op& op, Arena& arena, Seeded& random, bool) {
    for (const HeadsView* source : {&op.keys, op.values ? &*op.values : &op.keys}) {
      const Tensor& tensor = source->tensor;
      arena.write(tensor, random.elements(tensor.dtype(), tensor.shape().elementCount()));
    }
    fillRows(op.rows, op.into, arena, random);
  }

  static std::vector<Tensor> outputs(const Op& op) {
    std::vector<Tensor> all{op.into.keys};
    if (op.values) all.push_back(*op.into.values);
    return all;
  }

  static uint64_t expect(const Op& op, const Arena& arena) {
    // Without elements, extents may be too large to count through.
    if (op.into.keys.byteCount() == 0 && (!op.values || op.into.values->byteCount() == 0)) return 0;
    if (!expectTokens(op)) return FuzzedCall::kUnknown;
    const uint64_t written = test::expectWritten(op, arena.memory());
    return areRead(op.rows) ? FuzzedCall::kUnknown : written;
  }
};

// Extents that go together are mutated one by one, and these are too far apart for it.
std::vector<std::string_view> within(std::vector<std::string_view> refusals) {
  std::erase(refusals, "head dims of keys and values are too different");
  std::erase(refusals, "the write has too many rows");
  return refusals;
}

// The tensors of a plane that are read, apart from its codes.
void fillFactors(const QuantizedKVPlane& plane, Arena& arena, Seeded& random) {
  for (const bool areScales : {false, true}) {
    const auto& tensor = areScales ? plane.channelScales : plane.means;
    if (!tensor) continue;
    const auto numbers = test::quantizeFactors(random, tensor->shape().elementCount(), areScales);
    arena.write(*tensor, std::as_bytes(std::span(numbers)));
  }
}

struct KVCacheQuantizeFuzz {
  using Op = KVCacheQuantize;
  static constexpr bool kTakesAnyBits = false;

  static Op make(Arena& arena, Seeded& random) {
    const test::KVCacheQuantizeCase quantize = test::drawnQuantize(random);
    Op op = test::makeOp(quantize, placing(arena, random));
    varySources(op, arena, random);
    return op;
  }

  static void fill(const Op& op, Arena& arena, Seeded& random, bool) {
    const auto fillSource = [&](const HeadsView& source, const QuantizedKVPlane& plane) {
      arena.write(source.tensor, test::sourceVectors(random, source, plane));
    };
    fillSource(op.keys, op.into.keys);
    fillFactors(op.into.keys, arena, random);
    if (op.values) {
      fillSource(*op.values, *op.into.values);
      fillFactors(*op.into.values, arena, random);
    }
    fillRows(op.rows, op.into.codes(), arena, random);
  }

  static std::vector<Tensor> outputs(const Op& op) {
    std::vector<Tensor> all;
    const auto add = [&](const QuantizedKVPlane& plane) {
      all.push_back(plane.codes);
      if (!plane.isDense()) all.push_back(plane.scales);
    };
    add(op.into.keys);
    if (op.values) add(*op.into.values);
    if (op.counts) all.push_back(*op.counts);
    if (op.probe) all.push_back(*op.probe);
    return all;
  }

  static uint64_t expect(const Op& op, const Arena& arena) {
    // Without heads, extents may be too large to count through.
    const KVCacheWrite source{.keys = op.keys,
                              .sourceLayout = op.sourceLayout,
                              .sourceOffset = op.sourceOffset,
                              .tokens = op.tokens,
                              .sourceIsRing = op.sourceIsRing};
    if (op.into.codes().heads() != 0 && expectTokens(source)) test::expectStored(op, arena.memory());
    return FuzzedCall::kUnknown;
  }
};

struct KVCacheDequantizeFuzz {
  using Op = KVCacheDequantize;
  static constexpr bool kTakesAnyBits = false;

  static Op make(Arena& arena, Seeded& random) {
    const test::KVCacheDequantizeCase read = test::drawnDequantize(random);
    Op op = test::makeOp(read, placing(arena, random));
    if (!op.values && !read.stored.hasDenseKeys && coin(random, 1, 4)) op.from.values.reset();
    return op;
  }

  static void fill(const Op& op, Arena& arena, Seeded& random, bool) {
    test::fillInputs(op, random,
                     [&](const Tensor& tensor, std::span<const std::byte> bytes) { arena.write(tensor, bytes); });
  }

  static std::vector<Tensor> outputs(const Op& op) {
    std::vector<Tensor> all;
    if (op.keys) all.push_back(*op.keys);
    if (op.values) all.push_back(*op.values);
    return all;
  }

  static uint64_t expect(const Op& op, const Arena& arena) {
    if (op.from.codes().heads() != 0) test::expectDequantized(op, arena.memory());
    return (op.keys ? op.keys->byteCount() : 0) + (op.values ? op.values->byteCount() : 0);
  }
};

}  // namespace

Target kvCacheWriteTarget() {
  return {.name = "KVCacheWrite",
          .share = 690,
          .refusals = refusalsOf(
              {"op is missing", "keys.tensor is missing", "into.keys is missing",
               "the number is not a case of mnk_kv_layout", "the number is not a case of mnk_kv_wrap",
               "rows.sequences.list is missing", "rows.positions.list is missing", "there are too many rows.sequences",
               "there are too many rows.positions", "values.tensor is missing"},
              kvCacheWriteRules()),
          .make = makeOpCase<KVCacheWriteFuzz>};
}

Target kvCacheQuantizeTarget() {
  return {
      .name = "KVCacheQuantize",
      .share = 190,
      .refusals = within(refusalsOf(
          {"op is missing", "keys.tensor is missing", "into.keys.codes is missing", "into.keys.scales is missing",
           "into.values.codes is missing", "into.values.scales is missing", "the number is not a case of mnk_kv_layout",
           "the number is not a case of mnk_kv_wrap", "the number is not a case of mnk_kv_codec_name",
           "the number is not a case of mnk_kv_scale_rule", "the number is not a case of mnk_kv_non_finite",
           "rows.sequences.list is missing", "rows.positions.list is missing", "there are too many rows.sequences",
           "there are too many rows.positions", "values.tensor is missing"},
          cacheSourceRules(), quantizedKVCacheRules(), cacheLayoutRules(), kvCacheQuantizeRules(), cacheAddressRules(),
          kvCacheQuantizeOverlapRules())),
      .make = makeOpCase<KVCacheQuantizeFuzz>};
}

Target kvCacheDequantizeTarget() {
  return {.name = "KVCacheDequantize",
          .share = 120,
          .refusals = within(refusalsOf(
              {"an extent is too large for the kernel", "op is missing", "from.keys.codes is missing",
               "from.keys.scales is missing", "from.values.codes is missing", "from.values.scales is missing",
               "the number is not a case of mnk_kv_layout", "the number is not a case of mnk_kv_wrap",
               "the number is not a case of mnk_kv_codec_name", "the number is not a case of mnk_kv_domain"},
              quantizedKVCacheRules(), kvCacheDequantizeRules())),
          .make = makeOpCase<KVCacheDequantizeFuzz>};
}

}  // namespace mnk::fuzz
