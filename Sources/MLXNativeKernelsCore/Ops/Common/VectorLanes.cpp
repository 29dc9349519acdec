#include "Ops/Common/VectorLanes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "Ops/Common/HeadsMemory.hpp"

namespace mnk {

VectorLanes VectorLanes::forLength(uint64_t longest) {
  return {.chunks = static_cast<uint32_t>(std::bit_ceil((longest + 127) / 128))};
}

VectorLanes VectorLanes::forVectors(uint64_t vectors, uint64_t longest, uint64_t shortest) {
  constexpr uint64_t kManyElements = 1 << 18;
  const VectorLanes least = forLength(longest);
  if (vectors * longest < kManyElements) return least;
  return {.chunks = std::max(least.chunks, static_cast<uint32_t>(std::min<uint64_t>(shortest / 4, 4)))};
}

VectorLanes VectorLanes::forPlanes(uint64_t vectors, const QuantizedKVPlane& first, const QuantizedKVPlane* second) {
  const auto [shortest, longest] = std::minmax({first.headDim(), second ? second->headDim() : first.headDim()});
  return forVectors(vectors, longest, shortest);
}

bool VectorLanes::canShare(uint64_t a, uint64_t b) {
  return std::min(a, b) >= 4 * forLength(std::max(a, b)).chunks;
}

uint32_t VectorLanes::simdgroupsOf(uint64_t length, uint64_t vectors) const {
  const uint64_t each = 32 / lanesOf(length);
  return static_cast<uint32_t>((vectors + each - 1) / each);
}

float inverseRootOf(uint64_t length) {
  const uint64_t block = length & (~length + 1);
  return static_cast<float>(1 / (static_cast<double>(length / block) * std::sqrt(static_cast<double>(block))));
}

Grid gridOf(const VectorLanes& lanes, uint64_t simdgroups, uint64_t rows) {
  // Long vectors fill the registers of a lane, so that fewer threads fit in a threadgroup.
  const uint64_t together = std::min<uint64_t>(simdgroups, lanes.chunks > 4 ? 1 : 4);
  return {.unit = Grid::Unit::threadgroups,
          .extent = {static_cast<uint32_t>((simdgroups + together - 1) / together), static_cast<uint32_t>(rows), 1},
          .threadgroup = {static_cast<uint32_t>(32 * together), 1, 1}};
}

bool isAlignedToFour(const Tensor& tensor) {
  return tensor.range().begin % (4 * byteSize(tensor.dtype())) == 0;
}

bool isAlignedTo16Bytes(const Tensor& tensor) {
  return tensor.range().begin % 16 == 0;
}

namespace {

// Whether each lane's codes in every row are aligned to their size, or to the word that several lanes share.
bool hasAlignedCodes(const QuantizedKVPlane& plane, const VectorLanes& lanes) {
  if (plane.isDense()) return isAlignedTo16Bytes(plane.codes);
  const Shape& shape = plane.codes.shape();
  const uint64_t bytesOfLane = (plane.codec.hasByteCodes() ? 8 : std::bit_floor(plane.codec.bits)) * lanes.chunks / 2;
  return (plane.codes.range().begin | shape[shape.rank() - 1]) % std::clamp<uint64_t>(bytesOfLane, 4, 16) == 0;
}

}  // namespace

std::vector<FunctionConstant> codecConstants(const QuantizedKVPlane& first, const QuantizedKVPlane* second,
                                             const VectorLanes& lanes, std::span<const HeadsView> numbers) {
  const auto isAligned = [](const HeadsView& view) {
    const uint64_t most = 16 / byteSize(view.tensor.dtype());
    return elementAlignment(view, most) == most;
  };
  const QuantizedKVPlane& last = second ? *second : first;
  // A dense plane has no codebook and is described with that of the other plane.
  const KVCodec none = {};
  const KVCodec& codec = !first.isDense() ? first.codec : !last.isDense() ? last.codec : none;
  const DType denseType = first.isDense() ? first.codes.dtype() : last.isDense() ? last.codes.dtype() : DType::f32;
  return {{kKVCodecIsTurbo, codec.name == KVCodec::Name::turbo},
          {kKVCodecIsUnrotated, codec.name == KVCodec::Name::mlx1Unrotated},
          {kKVCodecIsAffine, codec.name == KVCodec::Name::mlx1Affine4},
          {kKVCodecKeyBits, codec.bits},
          {kKVCodecValueBits, last.isDense() ? codec.bits : last.codec.bits},
          {kKVCodecHasQuantizedKeys, !first.isDense()},
          {kKVCodecHasQuantizedValues, second && !second->isDense()},
          {kKVCodecDenseType, static_cast<uint32_t>(denseType)},
          {kKVCodecKeyDim, static_cast<uint32_t>(first.headDim())},
          {kKVCodecValueDim, static_cast<uint32_t>(last.headDim())},
          {kKVCodecHasAlignedCodes, hasAlignedCodes(first, lanes) && hasAlignedCodes(last, lanes)},
          {kKVCodecElementType, static_cast<uint32_t>(numbers.front().tensor.dtype())},
          {kKVCodecIsVectorized, std::all_of(numbers.begin(), numbers.end(), isAligned)},
          {kKVCodecHasKeyMeans, first.means.has_value()},
          {kKVCodecHasValueMeans, second && second->means.has_value()},
          {kKVCodecHasChannelScales, first.channelScales.has_value()}};
}

KVCodecPlane codecPlaneOf(const QuantizedKVPlane& plane, const VectorLanes& lanes, uint64_t heads) {
  const uint64_t headDim = plane.headDim();
  const Shape& shape = plane.codes.shape();
  return {.headDim = static_cast<uint32_t>(headDim),
          .lanes = lanes.lanesOf(headDim),
          .simdgroups = lanes.simdgroupsOf(headDim, heads),
          .codeBytes = static_cast<uint32_t>(shape[shape.rank() - 1]),
          .inverseRoot = inverseRootOf(headDim),
          .scaleFactor = plane.codec.scaleFactor};
}

}  // namespace mnk
