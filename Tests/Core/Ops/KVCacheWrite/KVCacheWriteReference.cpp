#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

#include <cstring>
#include <optional>
#include <utility>

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

struct Plane {
  const HeadsView& source;
  const Tensor& cache;
  const std::vector<std::byte>& sourceBytes;
  ExpectedPlane& target;
  std::vector<bool>& isRead;
};

void writePlane(const KVCacheWrite& op, const std::map<Place, uint64_t>& tokens, const Plane& plane) {
  const Shape& shape = plane.cache.shape();
  const uint64_t headDim = shape[shape.rank() - 1];
  const bool isHeadMajor = op.into.layout == KVLayout::headMajor;
  const uint64_t heads = shape[shape.rank() - (isHeadMajor ? 3 : 2)];
  const uint64_t capacity = shape[shape.rank() - (isHeadMajor ? 2 : 3)];
  const uint64_t fromSize = byteSize(plane.source.tensor.dtype());
  const uint64_t toSize = byteSize(plane.cache.dtype());
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < heads; ++head) {
      for (uint64_t element = 0; element < headDim; ++element) {
        const uint64_t cacheRow = isHeadMajor ? (place.sequence * heads + head) * capacity + place.slot
                                              : (place.sequence * capacity + place.slot) * heads + head;
        const uint64_t from = (sourceElement(plane.source, op.sourceLayout, token, head) + element) * fromSize;
        const uint64_t to = (cacheRow * headDim + element) * toSize;
        uint64_t bits = 0;
        std::memcpy(&bits, &plane.sourceBytes[from], fromSize);
        bits = converted(plane.source.tensor.dtype(), plane.cache.dtype(), bits);
        std::memcpy(&plane.target.bytes[to], &bits, toSize);
        for (uint64_t byte = 0; byte < fromSize; ++byte) plane.isRead[from + byte] = true;
        for (uint64_t byte = 0; byte < toSize; ++byte) plane.target.isWritten[to + byte] = true;
      }
    }
  }
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

std::map<Place, uint64_t> winners(const KVCacheWrite& op, std::span<const uint32_t> sequences,
                                  std::span<const uint32_t> positions) {
  const uint64_t length = sourceTokens(op), ofAll = op.sequence == kOnlySequence ? 0 : op.sequence;
  const uint64_t count = op.tokens.value_or(op.sourceIsRing ? length : length - op.sourceOffset);
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

KVCacheWriteOutcome reference(const KVCacheWrite& op, const KVCacheWriteBytes& before) {
  const bool isConverted = op.keys.tensor.dtype() != op.into.keys.dtype();
  const auto untouched = [&](const std::vector<std::byte>& bytes) {
    return ExpectedPlane{.bytes = bytes, .isWritten = std::vector<bool>(bytes.size()), .isConverted = isConverted};
  };
  KVCacheWriteOutcome outcome{.keyCache = untouched(before.keyCache),
                              .valueCache = untouched(before.valueCache),
                              .keysRead = std::vector<bool>(before.keys.size()),
                              .valuesRead = std::vector<bool>(before.values.size())};
  const auto tokens = winners(op, before.sequences, before.positions);
  outcome.storedTokens = tokens.size();
  writePlane(op, tokens, {op.keys, op.into.keys, before.keys, outcome.keyCache, outcome.keysRead});
  if (op.values) {
    writePlane(op, tokens, {*op.values, *op.into.values, before.values, outcome.valueCache, outcome.valuesRead});
  }
  return outcome;
}

}  // namespace mnk::test
