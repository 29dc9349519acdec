#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

#include <algorithm>

#include "Harness/Check.hpp"

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

// The columns of one tensor, with room for the values behind them where they lie apart.
KVSources makeFused(const KVCacheWriteCase& write, const std::function<Tensor(const Shape& shape)>& makeTensor) {
  const KVCacheWriteCase::Fused& fused = *write.fused;
  using Form = KVCacheWriteCase::Fused::Form;
  const bool isShared = fused.form == Form::shared;
  const uint64_t sequences = std::max<uint64_t>(write.sourceSequences, 1), tokens = write.sourceTokens;
  const uint64_t keys = write.heads * write.headDim, values = write.heads * write.valueHeadDim;
  if (fused.form == Form::apart) {
    HeadsView::Strides of{.sequences = sequences, .tokens = tokens, .heads = write.heads};
    HeadsView::Strides ofKeys = of, ofValues = of;
    ofKeys.headDim = ofKeys.headStride = write.headDim;
    ofKeys.offset = fused.lead;
    ofKeys.tokenStride = fused.lead + keys;
    ofKeys.sequenceStride = tokens * ofKeys.tokenStride;
    ofValues.headDim = write.valueHeadDim;
    ofValues.offset = sequences * ofKeys.sequenceStride + fused.between;
    ofValues.tokenStride = write.valueHeadDim + fused.tail;
    ofValues.headStride = tokens * ofValues.tokenStride;
    ofValues.sequenceStride = write.heads * ofValues.headStride;
    const Tensor tensor =
        makeTensor(REQUIRE(Shape::make({ofValues.offset + sequences * ofValues.sequenceStride + fused.lead})));
    KVSources sources{.keys = HeadsView(tensor, ofKeys)};
    if (write.valueHeadDim) sources.values = HeadsView(tensor, ofValues);
    return sources;
  }
  const uint64_t width = fused.lead + (isShared ? std::max(keys, values) : keys + fused.between + values) + fused.tail;
  std::vector<uint64_t> extents{tokens, width};
  if (write.sourceSequences) extents.insert(extents.begin(), write.sourceSequences);
  const Tensor tensor = makeTensor(REQUIRE(Shape::make(extents)));
  KVSources sources{.keys = REQUIRE(HeadsView::columns(tensor, fused.lead, write.heads, write.headDim))};
  if (write.valueHeadDim) {
    sources.values = REQUIRE(HeadsView::columns(tensor, fused.lead + (isShared ? 0 : keys + fused.between), write.heads,
                                                write.valueHeadDim));
  }
  return sources;
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

}  // namespace mnk::test
