#include "Ops/FlashDecode/FlashDecode.hpp"

#include <algorithm>

#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// Queries in scratch memory are contiguous.
HeadsView::Strides placesOf(const HeadsView& view, const std::optional<ScratchQueries>& scratch) {
  HeadsView::Strides places = view.resolved();
  if (!scratch) return places;
  places.offset = scratch->offset / byteSize(view.tensor.dtype());
  places.headStride = places.headDim;
  places.tokenStride = places.heads * places.headDim;
  places.sequenceStride = places.tokens * places.tokenStride;
  return places;
}

const Tensor* valuesOf(const FlashDecode& op) {
  if (const auto* view = std::get_if<QuantizedKVCacheView>(&op.cache)) return &view->values->codes;
  const auto& values = std::get<KVCacheView>(op.cache).values;
  return values ? &*values : nullptr;
}

}  // namespace

AttentionShape::AttentionShape(const FlashDecode& op, const std::optional<ScratchQueries>& scratchQueries)
    : queryView(op.queries),
      sequences(op.sequences),
      results(op.results),
      options(op.options),
      scratch(op.scratch),
      scratchQueries(scratchQueries),
      queries(placesOf(op.queries, scratchQueries)),
      quantized(std::get_if<QuantizedKVCacheView>(&op.cache)),
      keyPlane(quantized ? &quantized->keys.codes : &std::get<KVCacheView>(op.cache).keys),
      valuePlane(valuesOf(op)),
      slots(std::visit(
          [&](const auto& view) { return SlotExtents::of(*keyPlane, view.layout, view.wrap, view.pinned); }, op.cache)),
      latentDim(std::visit([](const auto& view) { return view.latentDim; }, op.cache)),
      isRagged(std::ranges::any_of(op.sequences, [](const auto& each) { return each.rows != 0; })),
      longestRows(isRagged ? std::ranges::max(op.sequences, {}, &AttendedSequence::rows).rows : queries.tokens) {
  if (quantized) {
    keyDim = quantized->keys.headDim();
    valueDim = quantized->values->headDim();
    keyVector = quantized->keys.vectorSizes();
    valueVector = quantized->values->vectorSizes();
    if (quantized->keys.isDense()) denseType = keyPlane->dtype();
    if (quantized->values->isDense()) denseType = valuePlane->dtype();
    return;
  }
  const auto lastExtent = [](const Tensor& tensor) { return tensor.shape()[tensor.shape().rank() - 1]; };
  denseType = keyPlane->dtype();
  keyDim = lastExtent(*keyPlane) - (isOneTensor() ? latentDim : 0);
  valueDim = isOneTensor() ? latentDim : lastExtent(*valuePlane);
  keyVector = {.codeBytes = keyDim * byteSize(*denseType)};
  valueVector = {.codeBytes = valueDim * byteSize(*denseType)};
}

Result<AttentionShape> AttentionShape::of(const FlashDecode& op, const std::optional<ScratchQueries>& scratchQueries) {
  MNK_TRY(checkAttendedCache(op));
  AttentionShape shape(op, scratchQueries);
  MNK_TRY(checkRules(attentionRules(), shape, FlashDecode::name));
  return shape;
}

uint64_t AttentionShape::queryVectors() const {
  const auto tokens = checkedMultiply(queries.sequences, queries.tokens);
  return tokens ? checkedMultiply(*tokens, queries.heads).value_or(UINT64_MAX) : UINT64_MAX;
}

bool AttentionShape::canUseMatrices() const {
  if (valueDim != keyDim || matrixDim(keyDim, quantized != nullptr) == 0) return false;
  return quantized ? !denseType : denseType == DType::f16 && !options.mask;
}

AttendedKeys::AttendedKeys(const SlotExtents& cache, const AttendedSequence& sequence)
    : skipped(sequence.written() - std::min(sequence.written(), cache.capacity)),
      start(skipped % std::max<uint64_t>(cache.capacity - std::min<uint64_t>(cache.capacity, cache.pinned), 1)),
      pinned(cache.pinned),
      capacity(cache.capacity) {}

void AttendedKeys::hideUntil(uint64_t position) {
  hidden = std::max(keyOf(position), pinned) - pinned;
  skipped += hidden;
  start = skipped % std::max<uint64_t>(capacity - pinned, 1);
}

uint64_t AttendedKeys::keyOf(uint64_t position) const {
  if (position <= pinned) return position;
  return std::max(pinned, position - std::min(position, skipped));
}

SlotRuns AttendedKeys::slots(uint64_t firstKey, uint64_t endKey) const {
  SlotRuns runs;
  const auto add = [&](uint64_t begin, uint64_t end, uint64_t shift) {
    if (begin < end) runs.add({begin + shift, end - begin});
  };
  // Pinned slots, then slots up to the end of the ring, then slots after the pinned ones.
  const uint64_t firstWrapped = capacity - start;
  add(firstKey, std::min(endKey, pinned), 0);
  add(std::max(firstKey, pinned), std::min(endKey, firstWrapped), start);
  if (endKey > firstWrapped) {
    const uint64_t begin = std::max(firstKey, firstWrapped);
    runs.add({begin + start - (capacity - pinned), endKey - begin});
  }
  return runs;
}

int64_t AttentionShape::firstPosition(const AttendedSequence& attended) const {
  return attended.position.value_or(static_cast<int64_t>(attended.length - rowsOf(attended)));
}

uint64_t AttentionShape::endOfRow(const AttendedSequence& attended, uint64_t row) const {
  return static_cast<uint64_t>(std::max<int64_t>(firstPosition(attended) + static_cast<int64_t>(row) + 1, 0));
}

// The first position in the window of a row, if there is a window.
uint64_t AttentionShape::startOfWindow(const AttendedSequence& attended, uint64_t row) const {
  const uint64_t end = endOfRow(attended, row);
  return options.window != 0 ? end - std::min<uint64_t>(end, options.window) : 0;
}

KeyRange AttentionShape::keysSeen(const AttendedKeys& keys, const AttendedSequence& attended, uint64_t firstRow,
                                  uint64_t rows) const {
  const uint64_t length = attended.length, lastEnd = endOfRow(attended, firstRow + rows - 1);
  KeyRange range{.first = 0, .end = keys.keyOf(options.isCausal ? std::min(lastEnd, length) : length)};
  if (!seesPinned()) range.first = std::min(keys.keyOf(startOfWindow(attended, firstRow)), range.end);
  return range;
}

AttendedKeys AttentionShape::keysOf(const AttendedSequence& attended, uint64_t firstRow) const {
  AttendedKeys keys(slots, attended);
  if (seesPinned()) keys.hideUntil(startOfWindow(attended, firstRow));
  return keys;
}

std::string heldPositionsText(uint64_t pinned, uint64_t oldest, uint64_t length) {
  const uint64_t first = oldest == 0 ? 0 : std::min(pinned, length);
  if (length <= oldest) return first == 0 ? "no position" : fmt::format("the first {} alone", first);
  const std::string newest =
      length - oldest == 1 ? fmt::format("position {}", oldest) : fmt::format("positions {} to {}", oldest, length - 1);
  return first == 0 ? newest : fmt::format("{} and the first {}", newest, first);
}

}  // namespace mnk
