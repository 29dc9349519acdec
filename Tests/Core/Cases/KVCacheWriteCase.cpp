#include "Cases/KVCacheWriteCase.hpp"

#include "Support/Check.hpp"

namespace mnk::test {

namespace {

Shape cacheShape(const KVCacheWriteCase& write, uint64_t headDim) {
  const bool isHeadMajor = write.cacheLayout == KVLayout::headMajor;
  const uint64_t outer = isHeadMajor ? write.heads : write.capacity;
  const uint64_t inner = isHeadMajor ? write.capacity : write.heads;
  if (write.sequences == 0) return REQUIRE(Shape::make({outer, inner, headDim}));
  return REQUIRE(Shape::make({write.sequences, outer, inner, headDim}));
}

RowIndices indices(const KVCacheWriteCase& write, bool isTensor, uint32_t KVCacheWriteCase::Row::*field,
                   const MakeTensor& makeTensor) {
  if (isTensor) return makeTensor(DType::u32, REQUIRE(Shape::make({write.rows->size()})), 0);
  std::vector<uint32_t> list;
  for (const auto& row : *write.rows) list.push_back(row.*field);
  return list;
}

}  // namespace

Shape sourceShape(const KVCacheWriteCase& write, uint64_t headDim) {
  if (write.isSourceRank2) return REQUIRE(Shape::make({write.heads, headDim}));
  if (write.sourceLayout == KVLayout::headMajor) {
    return REQUIRE(Shape::make({write.heads, write.sourceTokens, headDim}));
  }
  return REQUIRE(Shape::make({write.sourceTokens, write.heads, headDim}));
}

std::optional<KVCacheWrite::Rows> makeRows(const KVCacheWriteCase& write, const MakeTensor& makeTensor) {
  using Row = KVCacheWriteCase::Row;
  if (!write.rows) return std::nullopt;
  auto sequences = indices(write, write.areSequencesTensor, &Row::sequence, makeTensor);
  auto positions = indices(write, write.arePositionsTensor, &Row::position, makeTensor);
  return KVCacheWrite::Rows{std::move(sequences), std::move(positions)};
}

KVCacheWrite makeOp(const KVCacheWriteCase& write, const MakeTensor& makeTensor) {
  KVCacheWrite op;
  op.keys = makeTensor(write.source, sourceShape(write, write.headDim), write.sourceShift);
  if (write.valueHeadDim) {
    op.values = makeTensor(write.source, sourceShape(write, write.valueHeadDim), write.sourceShift);
  }
  op.into.keys = makeTensor(write.cache, cacheShape(write, write.headDim), write.cacheShift);
  if (write.valueHeadDim) {
    op.into.values = makeTensor(write.cache, cacheShape(write, write.valueHeadDim), write.cacheShift);
  }
  op.into.layout = write.cacheLayout;
  op.into.wrap = write.wrap;
  op.into.pinned = write.pinned;
  op.sourceLayout = write.sourceLayout;
  op.sourceOffset = write.sourceOffset;
  op.tokens = write.tokens;
  op.sourceIsRing = write.isSourceRing;
  op.sequence = write.sequence;
  op.position = write.position;
  op.rows = makeRows(write, makeTensor);
  return op;
}

}  // namespace mnk::test
