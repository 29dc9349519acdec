#include "Ops/FlashDecode/FlashDecodeShape.hpp"

#include <algorithm>

#include "Support/Format.hpp"

#include "Support/CheckedMath.hpp"

namespace mnk {

uint64_t QueryShape::vectors() const {
  const auto tokens = checkedMultiply(sequences, rows);
  return tokens ? checkedMultiply(*tokens, heads).value_or(UINT64_MAX) : UINT64_MAX;
}

QueryShape queryShape(const HeadsView& queries) {
  const HeadsView::Strides s = queries.resolved();
  return {s.sequences, s.tokens, s.heads, s.headDim};
}

bool isRagged(const FlashDecode& op) {
  return std::any_of(op.sequences.begin(), op.sequences.end(), [](const auto& each) { return each.rows != 0; });
}

uint64_t rowsOf(const FlashDecode& op, const AttendedSequence& attended) {
  return attended.rows != 0 ? attended.rows : queryShape(op.queries).rows;
}

uint64_t longestRows(const FlashDecode& op) {
  if (!isRagged(op)) return queryShape(op.queries).rows;
  return std::max_element(op.sequences.begin(), op.sequences.end(),
                          [](const auto& a, const auto& b) { return a.rows < b.rows; })
      ->rows;
}

const QuantizedKVCacheView* quantizedOf(const FlashDecode& op) {
  return std::get_if<QuantizedKVCacheView>(&op.over);
}

KVCacheView cacheOf(const FlashDecode& op) {
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  return quantized ? quantized->codes() : std::get<KVCacheView>(op.over);
}

SlotExtents slotsOf(const FlashDecode& op) {
  if (const QuantizedKVCacheView* view = quantizedOf(op)) {
    return SlotExtents::of(view->keys.codes, view->layout, view->wrap, view->pinned);
  }
  return SlotExtents::of(std::get<KVCacheView>(op.over));
}

uint64_t latentDimOf(const FlashDecode& op) {
  return std::visit([](const auto& view) { return uint64_t{view.latentDim}; }, op.over);
}

bool isOneTensor(const FlashDecode& op) {
  const auto* dense = std::get_if<KVCacheView>(&op.over);
  return dense && dense->latentDim != 0 && !dense->values;
}

std::optional<DType> denseType(const FlashDecode& op) {
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  if (!quantized) return std::get<KVCacheView>(op.over).keys.dtype();
  for (const QuantizedKVPlane* plane : {&quantized->keys, &*quantized->values}) {
    if (plane->isDense()) return plane->codes.dtype();
  }
  return std::nullopt;
}

uint64_t keyDimOf(const FlashDecode& op) {
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  if (quantized) return quantized->keys.headDim();
  const uint64_t headDim = std::get<KVCacheView>(op.over).headDim();
  return isOneTensor(op) ? headDim - std::min(headDim, latentDimOf(op)) : headDim;
}

uint64_t valueDimOf(const FlashDecode& op) {
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  if (quantized) return quantized->values->headDim();
  if (isOneTensor(op)) return latentDimOf(op);
  const Shape& shape = std::get<KVCacheView>(op.over).values->shape();
  return shape[shape.rank() - 1];
}

uint64_t queryDimOf(const FlashDecode& op) {
  return keyDimOf(op) + latentDimOf(op);
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
  // Pinned slots, then slots up to the end of the ring, then slots after the pinned ones. Keys from `turn` on have
  // wrapped.
  const uint64_t turn = capacity - start;
  add(firstKey, std::min(endKey, pinned), 0);
  add(std::max(firstKey, pinned), std::min(endKey, turn), start);
  if (endKey > turn) {
    const uint64_t begin = std::max(firstKey, turn);
    runs.add({begin + start - (capacity - pinned), endKey - begin});
  }
  return runs;
}

int64_t firstPosition(const FlashDecode& op, const AttendedSequence& attended) {
  return attended.position.value_or(static_cast<int64_t>(attended.length - rowsOf(op, attended)));
}

uint64_t endOfRow(const FlashDecode& op, const AttendedSequence& attended, uint64_t row) {
  return static_cast<uint64_t>(std::max<int64_t>(firstPosition(op, attended) + static_cast<int64_t>(row) + 1, 0));
}

namespace {

// The first position in the window of a row, if there is a window.
uint64_t startOfWindow(const FlashDecode& op, const AttendedSequence& attended, uint64_t row) {
  const uint64_t end = endOfRow(op, attended, row);
  return op.options.window != 0 ? end - std::min<uint64_t>(end, op.options.window) : 0;
}

}  // namespace

bool seesPinned(const FlashDecode& op) {
  return op.options.windowSeesPinned && op.options.window != 0 && slotsOf(op).pinned != 0;
}

std::string heldPositionsText(uint64_t pinned, uint64_t oldest, uint64_t length) {
  const uint64_t first = oldest == 0 ? 0 : std::min(pinned, length);
  if (length <= oldest) return first == 0 ? "no position" : fmt::format("the first {} alone", first);
  const std::string newest =
      length - oldest == 1 ? fmt::format("position {}", oldest) : fmt::format("positions {} to {}", oldest, length - 1);
  return first == 0 ? newest : fmt::format("{} and the first {}", newest, first);
}

KeyRange keysSeen(const FlashDecode& op, const AttendedKeys& keys, const AttendedSequence& attended, uint64_t firstRow,
                  uint64_t rows) {
  const uint64_t length = attended.length, lastEnd = endOfRow(op, attended, firstRow + rows - 1);
  KeyRange range{.first = 0, .end = keys.keyOf(op.options.isCausal ? std::min(lastEnd, length) : length)};
  if (!seesPinned(op)) range.first = std::min(keys.keyOf(startOfWindow(op, attended, firstRow)), range.end);
  return range;
}

AttendedKeys keysOf(const FlashDecode& op, const AttendedSequence& attended, uint64_t firstRow) {
  AttendedKeys keys(slotsOf(op), attended);
  if (seesPinned(op)) keys.hideUntil(startOfWindow(op, attended, firstRow));
  return keys;
}

}  // namespace mnk
