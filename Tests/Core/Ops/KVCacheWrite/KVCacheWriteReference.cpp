#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::test {

namespace {

std::optional<uint64_t> slotOf(const KVCacheView& cache, uint64_t capacity, uint64_t position) {
  if (cache.wrap == KVWrap::linear) return position < capacity ? std::optional(position) : std::nullopt;
  if (position < cache.pinned) return position;
  return cache.pinned + (position - cache.pinned) % (capacity - cache.pinned);
}

uint64_t converted(DType from, DType to, uint64_t bits) {
  return from == to ? bits : nearestBits(to, valueOf(from, bits));
}

bool isHeadMajor(const HeadsView& source, KVLayout layout) {
  return layout == KVLayout::headMajor || source.layout == KVLayout::headMajor;
}

ExpectedPlane writtenPlane(const KVCacheWrite& op, const std::map<Place, uint64_t>& tokens, const HeadsView& source,
                           const Tensor& cache, const ReadTensor& before) {
  const DType from = source.tensor.dtype(), to = cache.dtype();
  const std::vector<std::byte> sourceBytes = before(source.tensor);
  const uint64_t headDim = cache.shape()[cache.shape().rank() - 1];
  ExpectedPlane plane{.bytes = before(cache),
                      .isWritten = std::vector<bool>(cache.byteCount()),
                      .isRead = std::vector<bool>(sourceBytes.size())};
  const auto mark = [](std::vector<bool>& bytes, uint64_t element, uint64_t size) {
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(element * size), size, true);
  };
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < op.into.heads(); ++head) {
      const uint64_t first = sourceElement(source, op.sourceLayout, token, head);
      const uint64_t row = cacheRow(op.into, place, head);
      for (uint64_t element = 0; element < headDim; ++element) {
        const uint64_t at = first + element, into = row * headDim + element;
        const uint64_t bits = converted(from, to, bitsAt(sourceBytes, from, at));
        std::memcpy(&plane.bytes[into * byteSize(to)], &bits, byteSize(to));
        mark(plane.isRead, at, byteSize(from));
        mark(plane.isWritten, into, byteSize(to));
      }
    }
  }
  return plane;
}

std::vector<uint32_t> indicesOf(const RowIndices& indices, const ReadTensor& before) {
  if (const auto* list = std::get_if<std::vector<uint32_t>>(&indices)) return *list;
  return numbersIn<uint32_t>(before(std::get<Tensor>(indices)));
}

}  // namespace

uint64_t sourceTokens(const KVCacheWrite& op) {
  if (op.keys.strides) return op.keys.strides->sequences * op.keys.strides->tokens;
  const Shape& shape = op.keys.tensor.shape();
  const uint32_t rank = shape.rank();
  if (rank == 2) return 1;
  const uint64_t sequences = rank == 4 ? shape[0] : 1;
  return sequences * (isHeadMajor(op.keys, op.sourceLayout) ? shape[rank - 2] : shape[rank - 3]);
}

uint64_t sourceElement(const HeadsView& source, KVLayout layout, uint64_t token, uint64_t head) {
  if (source.strides) {
    const HeadsView::Strides& s = *source.strides;
    return s.offset + token / s.tokens * s.sequenceStride + token % s.tokens * s.tokenStride + head * s.headStride;
  }
  const Shape& shape = source.tensor.shape();
  const uint32_t rank = shape.rank();
  const uint64_t headDim = shape[rank - 1];
  if (rank == 2) return head * headDim;
  const uint64_t outer = shape[rank - 3], inner = shape[rank - 2];
  const bool isInner = isHeadMajor(source, layout);
  const uint64_t tokens = isInner ? inner : outer;
  const uint64_t within = isInner ? head * inner + token % tokens : token % tokens * inner + head;
  return (token / tokens * outer * inner + within) * headDim;
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

KVCacheWriteOutcome reference(const KVCacheWrite& op, const ReadTensor& before) {
  const auto tokens = winners(op, before);
  KVCacheWriteOutcome outcome{.keyCache = writtenPlane(op, tokens, op.keys, op.into.keys, before),
                              .storedTokens = tokens.size()};
  if (op.values) outcome.valueCache = writtenPlane(op, tokens, *op.values, *op.into.values, before);
  return outcome;
}

}  // namespace mnk::test
