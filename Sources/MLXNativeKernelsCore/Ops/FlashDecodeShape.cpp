#include "Ops/FlashDecodeShape.hpp"

#include <algorithm>

namespace mnk {

QueryShape queryShape(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  switch (shape.rank()) {
    case 2:
      return {1, 1, shape[0], shape[1]};
    case 3:
      return {1, shape[0], shape[1], shape[2]};
    case 4:
      return {shape[0], shape[1], shape[2], shape[3]};
    default:
      return {};
  }
}

const QuantizedKVCacheView* quantizedOf(const FlashDecode& op) {
  return std::get_if<QuantizedKVCacheView>(&op.over);
}

KVCacheView slotsOf(const FlashDecode& op) {
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  return quantized ? quantized->codes() : std::get<KVCacheView>(op.over);
}

uint64_t keyDimOf(const FlashDecode& op) {
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  return quantized ? quantized->keys.headDim() : std::get<KVCacheView>(op.over).headDim();
}

uint64_t valueDimOf(const FlashDecode& op) {
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  if (quantized) return quantized->values->headDim();
  const Shape& shape = std::get<KVCacheView>(op.over).values->shape();
  return shape[shape.rank() - 1];
}

AttendedKeys::AttendedKeys(const KVCacheView& cache, const AttendedSequence& sequence)
    : skipped(sequence.written() - std::min(sequence.written(), cache.capacity())),
      start(skipped % std::max<uint64_t>(cache.ringLength(), 1)),
      pinned(cache.pinned),
      capacity(cache.capacity()) {}

uint64_t AttendedKeys::keyOf(uint64_t position) const {
  if (position <= pinned) return position;
  return std::max(pinned, position - std::min(position, skipped));
}

std::vector<SlotRun> AttendedKeys::slots(uint64_t firstKey, uint64_t endKey) const {
  std::vector<SlotRun> runs;
  const auto add = [&](uint64_t begin, uint64_t end, uint64_t shift) {
    if (begin < end) runs.push_back({begin + shift, end - begin});
  };
  // Pinned slots, then those to the end of the ring, then those after its start. Keys from `turn` on come last.
  const uint64_t turn = capacity - start;
  add(firstKey, std::min(endKey, pinned), 0);
  add(std::max(firstKey, pinned), std::min(endKey, turn), start);
  if (endKey > turn) {
    const uint64_t begin = std::max(firstKey, turn);
    runs.push_back({begin + start - (capacity - pinned), endKey - begin});
  }
  return runs;
}

KeyRange keysSeen(const FlashDecode& op, const AttendedKeys& keys, uint64_t length, uint64_t firstRow, uint64_t rows) {
  const uint64_t allRows = queryShape(op.queries).rows;
  // Of the first row and of the last: their position, and one more. Where attention does not depend on positions a
  // sequence may have fewer of them than there are rows.
  const uint64_t firstEnd = length + firstRow + 1 > allRows ? length + firstRow + 1 - allRows : 0;
  const uint64_t lastEnd = length + firstRow + rows > allRows ? length + firstRow + rows - allRows : 0;
  KeyRange range{.first = 0, .end = keys.keyOf(op.options.isCausal ? std::min(lastEnd, length) : length)};
  if (op.options.window != 0 && firstEnd > op.options.window) range.first = keys.keyOf(firstEnd - op.options.window);
  range.first = std::min(range.first, range.end);
  return range;
}

}  // namespace mnk
