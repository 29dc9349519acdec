#include <algorithm>
#include <cstring>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

namespace mnk::test {

namespace {

std::optional<uint64_t> slotOf(const KVCacheView& cache, uint64_t capacity, uint64_t position) {
  if (cache.wrap == KVWrap::linear) return position < capacity ? std::optional(position) : std::nullopt;
  if (position < cache.pinned) return position;
  return cache.pinned + (position - cache.pinned) % (capacity - cache.pinned);
}

HeadsView::Strides sourcePlaces(const HeadsView& source, KVLayout layout) {
  return source.resolvedAs(layout == KVLayout::headMajor ? layout : source.layout);
}

// What keys, or values, leave in the cache, and which of its bytes are written.
struct ExpectedPlane {
  std::vector<std::byte> bytes;
  std::vector<bool> isWritten;
};

ExpectedPlane writtenPlane(const KVCacheWrite& op, const std::map<Place, uint64_t>& tokens, const HeadsView& source,
                           const Tensor& cache, const ReadTensor& before) {
  const DType from = source.tensor.dtype(), to = cache.dtype();
  const std::vector<std::byte> sourceBytes = before(source.tensor);
  const uint64_t headDim = cache.shape()[cache.shape().rank() - 1], size = byteSize(to);
  ExpectedPlane plane{.bytes = before(cache), .isWritten = std::vector<bool>(cache.byteCount())};
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < op.into.heads(); ++head) {
      const uint64_t first = sourceElement(source, op.sourceLayout, token, head);
      const uint64_t row = cacheRow(op.into, place, head);
      for (uint64_t element = 0; element < headDim; ++element) {
        const uint64_t into = row * headDim + element, read = bitsAt(sourceBytes, from, first + element);
        const uint64_t bits = from == to ? read : nearestBits(to, valueOf(from, read));
        std::memcpy(&plane.bytes[into * size], &bits, size);
        std::fill_n(plane.isWritten.begin() + static_cast<ptrdiff_t>(into * size), size, true);
      }
    }
  }
  return plane;
}

std::vector<uint32_t> indicesOf(const RowIndices& indices, const ReadTensor& before) {
  if (const auto* list = std::get_if<std::vector<uint32_t>>(&indices)) return *list;
  return numbersIn<uint32_t>(before(std::get<Tensor>(indices)));
}

std::string elementText(DType dtype, uint64_t bits) {
  return isFloat(dtype) ? fmt::format("{} ({:#x})", valueOf(dtype, bits), bits) : fmt::format("{:#x}", bits);
}

// The first bad element by its coordinates. Where elements are converted, any NaN matches a NaN: formats and processors
// disagree about payloads.
void expectPlane(std::string_view name, const KVCacheView& view, const Tensor& plane, bool isConverted,
                 const std::vector<std::byte>& got, const ExpectedPlane& expected) {
  if (got == expected.bytes) return;
  const DType dtype = plane.dtype();
  for (uint64_t element = 0; element < plane.shape().elementCount(); ++element) {
    const uint64_t gotBits = bitsAt(got, dtype, element), expectedBits = bitsAt(expected.bytes, dtype, element);
    if (gotBits == expectedBits) continue;
    const bool isWritten = expected.isWritten[element * byteSize(dtype)];
    if (isConverted && isWritten && isNaN(dtype, gotBits) && isNaN(dtype, expectedBits)) continue;
    const uint64_t headDim = plane.shape()[plane.shape().rank() - 1], row = element / headDim;
    const uint64_t rows = view.heads() * view.capacity();
    const bool isHeadMajor = view.layout == KVLayout::headMajor;
    const uint64_t inner = isHeadMajor ? view.capacity() : view.heads();
    const uint64_t outerIndex = row % rows / inner, innerIndex = row % inner;
    return fail(__FILE__, __LINE__,
                fmt::format("{} (sequence {}, head {}, slot {}, element {}): got {}, expected {}{}", name, row / rows,
                            isHeadMajor ? outerIndex : innerIndex, isHeadMajor ? innerIndex : outerIndex,
                            element % headDim, elementText(dtype, gotBits), elementText(dtype, expectedBits),
                            isWritten ? "" : ", which was there before"));
  }
}

}  // namespace

uint64_t sourceTokens(const KVCacheWrite& op) {
  return sourcePlaces(op.keys, op.sourceLayout).totalTokens();
}

uint64_t sourceElement(const HeadsView& source, KVLayout layout, uint64_t token, uint64_t head) {
  const HeadsView::Strides s = sourcePlaces(source, layout);
  return s.offset + token / s.tokens * s.sequenceStride + token % s.tokens * s.tokenStride + head * s.headStride;
}

uint64_t cacheRow(const KVCacheView& cache, const Place& place, uint64_t head) {
  const uint64_t heads = cache.heads(), capacity = cache.capacity();
  return cache.layout == KVLayout::headMajor ? (place.sequence * heads + head) * capacity + place.slot
                                             : (place.sequence * capacity + place.slot) * heads + head;
}

std::map<Place, uint64_t> winners(const KVCacheWrite& op, const ReadTensor& before) {
  const uint64_t length = sourceTokens(op), ofAll = op.sequence == kOnlySequence ? 0 : op.sequence;
  const uint64_t count = op.tokens.value_or(op.sourceIsRing ? length : length - op.sourceOffset);
  std::vector<uint32_t> sequences, positions;
  if (op.rows) sequences = indicesOf(op.rows->sequences, before), positions = indicesOf(op.rows->positions, before);
  std::map<Place, uint64_t> tokens;
  for (uint64_t t = 0; t < count; ++t) {
    const uint64_t token = op.sourceIsRing ? (op.sourceOffset % length + t) % length : op.sourceOffset + t;
    const uint64_t sequence = op.rows ? sequences[t] : ofAll;
    const uint64_t position = op.rows ? positions[t] : op.position + t;
    const auto slot = slotOf(op.into, op.into.capacity(), position);
    if (slot && sequence < op.into.sequences()) tokens[{sequence, *slot}] = token;
  }
  return tokens;
}

std::vector<std::byte> rowNumbers(const KVCacheWriteCase& write, std::string_view name) {
  std::vector<uint32_t> numbers;
  for (const auto& [sequence, position] : write.rows.value_or(std::vector<KVCacheWriteCase::Row>())) {
    if (name == "sequences") numbers.push_back(sequence);
    if (name == "positions") numbers.push_back(position);
  }
  return rawBytes(numbers);
}

// A cache keeps its poison.
void fill(KVCacheWriteRun& run, const KVCacheWriteCase& write, Seeded& random) {
  run.setAll([&](std::string_view name, const Tensor& tensor) {
    const bool isSource = name == "keys" || name == "values";
    return isSource ? random.elements(tensor.dtype(), tensor.shape().elementCount()) : rowNumbers(write, name);
  });
}

uint64_t expectWritten(const KVCacheWrite& op, const OperandMemory& memory) {
  const auto tokens = winners(op, memory.before);
  const auto expect = [&](std::string_view name, const HeadsView& source, const Tensor& cache) {
    const ExpectedPlane plane = writtenPlane(op, tokens, source, cache, memory.before);
    expectPlane(name, op.into, cache, source.tensor.dtype() != cache.dtype(), memory.now(cache), plane);
    return static_cast<uint64_t>(std::count(plane.isWritten.begin(), plane.isWritten.end(), true));
  };
  return expect("key cache", op.keys, op.into.keys) +
         (op.values ? expect("value cache", *op.values, *op.into.values) : 0);
}

void expectOutcome(const KVCacheWriteRun& run) {
  run.expectAsBefore({"cache"});
  expectWritten(run.op(), run.memory());
}

}  // namespace mnk::test
