// The op of a case, and cases drawn at random, which the op's own tests, those of KVCacheQuantize and the fuzzer share.
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

#include <algorithm>

namespace mnk::test {

namespace {

RowIndices indices(const KVCacheWriteCase& write, std::string_view name, bool isTensor,
                   uint32_t KVCacheWriteCase::Row::*field, const MakeNamedTensor& makeTensor) {
  if (isTensor) return makeTensor(name, DType::u32, REQUIRE(Shape::make({write.rows->size()})), 0);
  std::vector<uint32_t> list;
  for (const auto& row : *write.rows) list.push_back(row.*field);
  return list;
}

Shape sourceShape(const KVCacheWriteCase& write, uint64_t headDim) {
  std::vector<uint64_t> extents{write.sourceTokens, write.heads, headDim};
  if (write.sourceLayout == KVLayout::headMajor) std::swap(extents[0], extents[1]);
  if (write.isSourceRank2) extents = {write.heads, headDim};
  if (write.sourceSequences) extents.insert(extents.begin(), write.sourceSequences);
  return REQUIRE(Shape::make(extents));
}

KVSources makeFused(const KVCacheWriteCase& write, const std::function<Tensor(const Shape& shape)>& makeTensor) {
  const auto& [lead, between, tail, isShared] = *write.fused;
  const uint64_t keys = write.heads * write.headDim, values = write.heads * write.valueHeadDim;
  const uint64_t firstValue = isShared ? 0 : keys + between;
  std::vector<uint64_t> extents{write.sourceTokens, lead + std::max(keys, firstValue + values) + tail};
  if (write.sourceSequences) extents.insert(extents.begin(), write.sourceSequences);
  const Tensor tensor = makeTensor(REQUIRE(Shape::make(extents)));
  const auto columns = [&](uint64_t first, uint64_t headDim) {
    return REQUIRE(HeadsView::columns(tensor, lead + first, write.heads, headDim));
  };
  KVSources sources{.keys = columns(0, write.headDim)};
  if (write.valueHeadDim) sources.values = columns(firstValue, write.valueHeadDim);
  return sources;
}

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
  const bool isLong = tokens > 1000;
  write.areSequencesTensor = isLong || coin(random, 1, 2);
  write.arePositionsTensor = isLong || coin(random, 1, 2);
  // Places repeat. Lists name only what is there; what tensors name beside it is not stored.
  for (uint64_t token = 0; token < tokens; ++token) {
    const bool isNowhere = write.areSequencesTensor && coin(random, 1, 12);
    const bool isAnywhere = isRing || write.arePositionsTensor;
    const uint64_t end = isAnywhere && coin(random, 1, 2) ? 3 * write.capacity : write.capacity;
    const bool isFar = isAnywhere && coin(random, 1, 16);
    write.rows->push_back({static_cast<uint32_t>(isNowhere ? edge(random, {sequences}) : random.below(sequences)),
                           static_cast<uint32_t>(isFar ? edge(random, {UINT32_MAX}) : random.below(end))});
  }
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

}  // namespace

Shape cacheShape(const KVCacheWriteCase& write, std::optional<uint64_t> each) {
  std::vector<uint64_t> extents{write.heads, write.capacity};
  if (write.cacheLayout == KVLayout::tokenMajor) std::swap(extents[0], extents[1]);
  if (write.sequences) extents.insert(extents.begin(), write.sequences);
  if (each) extents.push_back(*each);
  return REQUIRE(Shape::make(extents));
}

KVSources makeSources(const KVCacheWriteCase& write, const MakeNamedTensor& makeTensor) {
  const auto make = [&](std::string_view name, const Shape& shape) {
    return makeTensor(name, write.source, shape, write.sourceShift);
  };
  if (write.fused) return makeFused(write, [&](const Shape& shape) { return make("keys", shape); });
  const KVLayout layoutOfViews = write.isLayoutOfViews ? write.sourceLayout : KVLayout::tokenMajor;
  const auto view = [&](std::string_view name, uint64_t headDim) {
    return HeadsView(make(name, sourceShape(write, headDim)), layoutOfViews);
  };
  KVSources sources{.keys = view("keys", write.headDim)};
  if (write.valueHeadDim) sources.values = view("values", write.valueHeadDim);
  if (!write.isLayoutOfViews) sources.layout = write.sourceLayout;
  return sources;
}

std::optional<KVCacheWrite::Rows> makeRows(const KVCacheWriteCase& write, const MakeNamedTensor& makeTensor) {
  using Row = KVCacheWriteCase::Row;
  if (!write.rows) return std::nullopt;
  auto sequences = indices(write, "sequences", write.areSequencesTensor, &Row::sequence, makeTensor);
  auto positions = indices(write, "positions", write.arePositionsTensor, &Row::position, makeTensor);
  return KVCacheWrite::Rows{std::move(sequences), std::move(positions)};
}

KVCacheWrite makeOp(const KVCacheWriteCase& write, const MakeNamedTensor& makeTensor) {
  KVCacheWrite op;
  setPlaces(op, write, makeTensor);
  const auto cache = [&](std::string_view name, uint64_t headDim) {
    return makeTensor(name, write.cache, cacheShape(write, headDim), write.cacheShift);
  };
  op.into.keys = cache("key cache", write.headDim);
  if (write.valueHeadDim) op.into.values = cache("value cache", write.valueHeadDim);
  return op;
}

KVCacheWriteCase drawnWrite(Seeded& random) {
  const auto layout = [&] { return coin(random, 1, 2) ? KVLayout::headMajor : KVLayout::tokenMajor; };
  KVCacheWriteCase write{.name = "drawn", .sourceLayout = layout(), .cacheLayout = layout()};
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
    write.fused = {.lead = gap(), .between = gap(), .tail = gap(), .isShared = coin(random, 1, 3)};
  }
  if (coin(random, 1, 3)) write.rows.emplace();
  drawPlaces(write, random, drawTokens(write, random));
  write.source = oneOf(random, {DType::f32, DType::f16, DType::bf16});
  write.cache = oneOf(random, {DType::f32, DType::f16, DType::bf16});
  if (coin(random, 1, 4)) write.source = write.cache = oneOf(random, {DType::u8, DType::u16, DType::u32, DType::i32});
  // Half of them at addresses that vectors can use.
  if (coin(random, 1, 2)) {
    write.sourceShift = byteSize(write.source) * random.below(16 / byteSize(write.source) + 1);
    write.cacheShift = byteSize(write.cache) * random.below(16 / byteSize(write.cache) + 1);
  }
  return write;
}

std::vector<KVCacheWriteCase> drawnWrites(uint64_t count) {
  Seeded random(2, 2);  // the same every time: together they reach every kernel
  std::vector<KVCacheWriteCase> cases;
  for (uint64_t i = 0; i < count; ++i) {
    KVCacheWriteCase& write = cases.emplace_back(drawnWrite(random));
    if (i % 100 == 0 && write.sourceTokens < 100) {  // as in models
      write.heads = 8;
      write.headDim = oneOf<uint64_t>(random, {64, 80, 96, 128, 256, 512});
      if (write.valueHeadDim != 0) write.valueHeadDim = write.headDim / 2;
    }
    write.name = fmt::format("case {}: {} x {} tokens of {}, {} heads of {} and {}, to {}, {} slots at {}", i,
                             write.sourceSequences, write.sourceTokens, name(write.source), write.heads, write.headDim,
                             write.valueHeadDim, name(write.cache), write.capacity, write.position);
  }
  return cases;
}

}  // namespace mnk::test
