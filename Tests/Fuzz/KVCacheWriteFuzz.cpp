#include "KVCacheWriteFuzz.hpp"

#include <algorithm>

#include "HeadsViews.hpp"
#include "OpTargets.hpp"
#include "Ops/KVCacheWrite/KVCacheWrite.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"

namespace mnk::fuzz {

namespace {

struct KVCacheWriteFuzz {
  using Op = KVCacheWrite;
  static constexpr bool kTakesAnyBits = true;

  static Op make(Arena& arena, Seeded& random) {
    const test::KVCacheWriteCase write = test::drawnWrite(random);
    Op op = test::makeOp(write, [&](std::string_view, DType dtype, const Shape& shape, uint64_t) {
      return arena.place(dtype, shape, random);
    });
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
    const test::KVCacheWriteOutcome expected = test::expectWritten(op, arena.memory());
    if (areRead(op.rows)) return FuzzedCall::kUnknown;
    const auto written = [](const test::ExpectedPlane& plane) {
      return static_cast<uint64_t>(std::count(plane.isWritten.begin(), plane.isWritten.end(), true));
    };
    return written(expected.keyCache) + written(expected.valueCache);
  }
};

}  // namespace

HeadsView scatteredSource(const HeadsView& source, KVLayout layout, Arena& arena, Seeded& random) {
  HeadsView view = source;
  if (layout == KVLayout::headMajor) view.layout = layout;
  return scattered(view, arena, random, true);
}

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

bool expectTokens(const KVCacheWrite& op) {
  const uint64_t length = test::sourceTokens(op), left = op.sourceIsRing ? length : length - op.sourceOffset;
  if (left <= length && op.tokens.value_or(left) <= left) return true;
  test::fail(__FILE__, __LINE__, "tokens are stored that the source does not have");
  return false;
}

bool areRead(const std::optional<KVCacheWrite::Rows>& rows) {
  return rows && (std::holds_alternative<Tensor>(rows->sequences) || std::holds_alternative<Tensor>(rows->positions));
}

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

}  // namespace mnk::fuzz
