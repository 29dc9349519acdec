#include "KVCacheWriteFuzz.hpp"

#include <algorithm>
#include <cstring>

#include "HeadsViews.hpp"
#include "OpTargets.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRules.hpp"

namespace mnk::fuzz {

namespace {

using test::KVCacheWriteCase;

void drawExtents(KVCacheWriteCase& write, Seeded& random) {
  const auto headDim = [&] { return oneOf<uint64_t>(random, {1, 2, 3, 4, 4, 5, 8, 16}); };
  write.heads = 1 + random.below(3);
  write.headDim = headDim();
  write.valueHeadDim = coin(random, 2, 3) ? headDim() : 0;
  write.capacity = 1 + random.below(9);
  write.sequences = coin(random, 1, 2) ? 0 : 1 + random.below(3);
  write.sourceTokens = random.below(13);
  // A few without elements: valid, and there is nothing to do.
  if (coin(random, 1, 40)) *oneOf(random, {&write.heads, &write.headDim, &write.sourceTokens}) = 0;
  // As many rows as there may be.
  if (coin(random, 1, 100)) {
    write.heads = write.headDim = 1;
    write.valueHeadDim = random.below(2);
    write.sourceTokens = KVCacheWrite::kMaxRows - (coin(random, 1, 2) ? 0 : random.below(7));
    write.rows.emplace();
  }
  if (coin(random, 1, 3)) {
    write.sourceSequences = 1 + random.below(4);
    write.sourceTokens /= write.sourceSequences;
  }
}

void drawPlaces(KVCacheWriteCase& write, Seeded& random, uint64_t tokens) {
  const bool isRing = write.wrap == KVWrap::ring;
  const uint64_t sequences = std::max<uint64_t>(write.sequences, 1);
  write.sequence = random.below(sequences);
  if (!write.rows) {
    write.position = isRing ? random.below(3 * write.capacity) : random.below(write.capacity - tokens + 1);
    if (isRing && coin(random, 1, 4)) {
      write.position =
          std::min(edge(random, {write.capacity, uint64_t{1} << 33, UINT64_MAX - tokens}), UINT64_MAX - tokens);
    }
    return;
  }
  for (uint64_t token = 0; token < tokens; ++token) {
    const uint64_t end = isRing && coin(random, 1, 2) ? 3 * write.capacity : write.capacity;
    const bool isFar = isRing && coin(random, 1, 16);
    write.rows->push_back({static_cast<uint32_t>(random.below(sequences)),
                           static_cast<uint32_t>(isFar ? edge(random, {UINT32_MAX}) : random.below(end))});
  }
  const bool isLong = tokens > 1000;
  write.areSequencesTensor = isLong || coin(random, 1, 2);
  write.arePositionsTensor = isLong || coin(random, 1, 2);
}

// Tokens that exist, and no more of them than a linear cache holds. Returns how many there are.
uint64_t drawTokens(KVCacheWriteCase& write, Seeded& random) {
  const bool isBounded = write.wrap == KVWrap::linear && !write.rows;
  const uint64_t all = write.sourceTokens * std::max<uint64_t>(write.sourceSequences, 1);
  write.isSourceRing = coin(random, 1, 4);
  write.sourceOffset = write.isSourceRing ? edge(random, {all, random.next()}) : random.below(all + 1);
  const uint64_t left = write.isSourceRing ? all : all - write.sourceOffset;
  const uint64_t most = isBounded ? std::min(left, write.capacity) : left;
  if (most == left && coin(random, 1, 2)) return left;
  write.tokens = coin(random, 1, 3) ? most : random.below(most + 1);
  return *write.tokens;
}

struct KVCacheWriteFuzz {
  using Op = KVCacheWrite;
  static constexpr bool kTakesAnyBits = true;

  static Op make(Arena& arena, Seeded& random) {
    KVCacheWriteCase write = drawWrite(random);
    write.source = oneOf(random, {DType::f32, DType::f16, DType::bf16});
    write.cache = oneOf(random, {DType::f32, DType::f16, DType::bf16});
    if (coin(random, 1, 4)) write.source = write.cache = oneOf(random, {DType::u8, DType::u16, DType::u32, DType::i32});
    Op op = test::makeOp(write,
                         [&](DType dtype, const Shape& shape, uint64_t) { return arena.place(dtype, shape, random); });
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
    test::KVCacheWriteBytes bytes{.keys = arena.before(op.keys.tensor), .keyCache = arena.before(op.into.keys)};
    if (op.values) {
      bytes.values = arena.before(op.values->tensor);
      bytes.valueCache = arena.before(*op.into.values);
    }
    if (op.rows) {
      bytes.sequences = indicesOf(op.rows->sequences, arena);
      bytes.positions = indicesOf(op.rows->positions, arena);
    }
    const test::KVCacheWriteOutcome expected = test::reference(op, bytes);
    test::expectPlane("key cache", op.into, op.into.keys, arena.now(op.into.keys), expected.keyCache);
    if (op.values) {
      test::expectPlane("value cache", op.into, *op.into.values, arena.now(*op.into.values), expected.valueCache);
    }
    if (areRead(op.rows)) return FuzzedCall::kUnknown;
    const auto written = [](const test::ExpectedPlane& plane) {
      return static_cast<uint64_t>(std::count(plane.isWritten.begin(), plane.isWritten.end(), true));
    };
    return written(expected.keyCache) + written(expected.valueCache);
  }
};

}  // namespace

KVCacheWriteCase drawWrite(Seeded& random) {
  using Fused = KVCacheWriteCase::Fused;
  const auto layout = [&] { return coin(random, 1, 2) ? KVLayout::headMajor : KVLayout::tokenMajor; };
  KVCacheWriteCase write{.name = "fuzz", .sourceLayout = layout(), .cacheLayout = layout()};
  drawExtents(write, random);
  write.wrap = coin(random, 2, 3) ? KVWrap::ring : KVWrap::linear;
  if (write.wrap == KVWrap::ring && coin(random, 1, 2)) {
    write.pinned = static_cast<uint32_t>(random.below(write.capacity));
  }
  write.isSourceRank2 = write.sourceTokens == 1 && write.sourceSequences == 0 &&
                        write.sourceLayout == KVLayout::tokenMajor && coin(random, 1, 2);
  write.isLayoutOfViews = !write.isSourceRank2 && coin(random, 1, 3);
  if (!write.isSourceRank2 && coin(random, 1, 4)) {
    const auto gap = [&] { return coin(random, 1, 2) ? 0 : random.below(4) * (coin(random, 1, 2) ? 4 : 1); };
    write.fused = Fused{.form = oneOf(random, {Fused::Form::columns, Fused::Form::shared, Fused::Form::apart}),
                        .lead = gap(),
                        .between = gap(),
                        .tail = gap()};
  }
  if (coin(random, 1, 3)) write.rows.emplace();
  drawPlaces(write, random, drawTokens(write, random));
  return write;
}

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

std::vector<uint32_t> indicesOf(const RowIndices& indices, const Arena& arena) {
  if (const auto* list = std::get_if<std::vector<uint32_t>>(&indices)) return *list;
  const auto bytes = arena.before(std::get<Tensor>(indices));
  std::vector<uint32_t> numbers(bytes.size() / sizeof(uint32_t));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
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
  return {
      .name = "KVCacheWrite",
      .share = 690,
      .refusals = refusalsOf({"mnk_kv_cache_write is missing", "mnk_kv_cache_write has the wrong size",
                              "mnk_kv_cache_view has the wrong size", "keys is missing", "into.keys is missing",
                              "the number is not a layout", "the number is not a wrap", "the list of rows is missing",
                              "there are too many rows", "keys_view->tensor is missing",
                              "values_view->tensor is missing", "mnk_heads_view has the wrong size"},
                             kvCacheWriteRules()),
      .make = makeOpCase<KVCacheWriteFuzz>};
}

}  // namespace mnk::fuzz
