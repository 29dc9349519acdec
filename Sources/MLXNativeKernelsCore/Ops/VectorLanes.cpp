#include "Ops/VectorLanes.hpp"

#include <algorithm>
#include <cmath>

#include "Ops/HeadsMemory.hpp"

namespace mnk {

VectorLanes VectorLanes::forLength(uint64_t longest) {
  return {.chunks = static_cast<uint32_t>(std::max<uint64_t>(longest / 128, 1))};
}

bool VectorLanes::canShare(uint64_t a, uint64_t b) {
  return std::min(a, b) >= 4 * forLength(std::max(a, b)).chunks;
}

uint32_t VectorLanes::simdgroupsOf(uint64_t length, uint64_t vectors) const {
  const uint64_t each = 32 / lanesOf(length);
  return static_cast<uint32_t>((vectors + each - 1) / each);
}

Grid gridOf(const VectorLanes& lanes, uint64_t simdgroups, uint64_t rows) {
  // Long vectors fill a lane's registers, and then a threadgroup has room for fewer threads.
  const uint64_t together = std::min<uint64_t>(simdgroups, lanes.chunks > 4 ? 1 : 4);
  return {.unit = Grid::Unit::threadgroups,
          .extent = {static_cast<uint32_t>((simdgroups + together - 1) / together), static_cast<uint32_t>(rows), 1},
          .threadgroup = {static_cast<uint32_t>(32 * together), 1, 1}};
}

bool isAlignedToFour(const Tensor& tensor) {
  return tensor.range().begin % (4 * byteSize(tensor.dtype())) == 0;
}

std::vector<FunctionConstant> codecConstants(const QuantizedKVPlane& first, const QuantizedKVPlane* second,
                                             std::span<const HeadsView> numbers) {
  const auto isAligned = [](const HeadsView& view) { return elementAlignment(view, 4) == 4; };
  return {{kKVCodecIsTurbo, first.codec.name == KVCodecName::turbo},
          {kKVCodecKeyBits, first.codec.bits},
          {kKVCodecValueBits, second ? second->codec.bits : first.codec.bits},
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
          .inverseRoot = static_cast<float>(1 / std::sqrt(static_cast<double>(headDim))),
          .scaleFactor = plane.codec.scaleFactor};
}

}  // namespace mnk
