// Cases drawn at random, which the op's own tests, those of KVCacheQuantize and the fuzzer share, and cases that a draw
// would rarely hit.
#include <algorithm>

#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

namespace mnk::test {

namespace {

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

KVCacheWriteCase drawnWrite(Seeded& random) {
  using Fused = KVCacheWriteCase::Fused;
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
    write.fused = Fused{.form = oneOf(random, {Fused::Form::columns, Fused::Form::shared, Fused::Form::apart}),
                        .lead = gap(),
                        .between = gap(),
                        .tail = gap()};
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
    write.name = fmt::format("case {}: {} x {} tokens of {}, {} heads of {} and {}, to {}, {} slots at {}", i,
                             write.sourceSequences, write.sourceTokens, name(write.source), write.heads, write.headDim,
                             write.valueHeadDim, name(write.cache), write.capacity, write.position);
  }
  return cases;
}

std::vector<KVCacheWriteCase> writeEdges() {
  std::vector<KVCacheWriteCase> cases;
  for (uint64_t headDim : {64, 80, 96, 128, 256, 512}) {
    for (KVLayout layout : {KVLayout::headMajor, KVLayout::tokenMajor}) {
      cases.push_back({.name = fmt::format("8 heads of {}", headDim),
                       .cacheLayout = layout,
                       .heads = 8,
                       .headDim = headDim,
                       .valueHeadDim = headDim / 2,
                       .sourceTokens = 3,
                       .position = 2});
    }
  }
  KVCacheWriteCase longest{.name = "as many rows as a list holds",
                           .heads = 1,
                           .valueHeadDim = 0,
                           .capacity = 100,
                           .sequences = 2,
                           .sourceTokens = 1024,
                           .rows = std::vector<KVCacheWriteCase::Row>(1024)};
  for (uint32_t row = 0; row < 1024; ++row) (*longest.rows)[row] = {row % 3 % 2, row * 7};
  cases.push_back(longest);
  // Every phase of a small ring, without and with pinned slots, by every number of tokens to three times its length.
  for (uint32_t pinned : {0, 2}) {
    for (uint64_t tokens = 0; tokens < 14; ++tokens) {
      for (uint64_t position = 0; position <= 8; ++position) {
        cases.push_back({.name = fmt::format("{} tokens at {} of a ring of 4, {} pinned", tokens, position, pinned),
                         .pinned = pinned,
                         .headDim = 3,
                         .valueHeadDim = 0,
                         .sourceTokens = tokens,
                         .position = position});
      }
    }
  }
  return cases;
}

}  // namespace mnk::test
