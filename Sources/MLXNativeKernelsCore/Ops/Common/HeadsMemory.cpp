#include "Ops/Common/HeadsMemory.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

Result<HeadsView> HeadsView::columns(const Tensor& tensor, uint64_t firstColumn, uint64_t heads, uint64_t headDim) {
  return guarded("HeadsView", [&]() -> Result<HeadsView> {
    const Shape& shape = tensor.shape();
    const uint32_t rank = shape.rank();
    if (rank != 2 && rank != 3) {
      return Error{.op = "HeadsView",
                   .what = "the tensor has no columns",
                   .got = shape.text(),
                   .expected = "[tokens, width] or [sequences, tokens, width]",
                   .fix = "Reshape the tensor, or give strides."};
    }
    const uint64_t tokens = shape[rank - 2], width = shape[rank - 1];
    return HeadsView(tensor, Strides{.sequences = rank == 3 ? shape[0] : 1,
                                     .tokens = tokens,
                                     .heads = heads,
                                     .headDim = headDim,
                                     .offset = firstColumn,
                                     .sequenceStride = tokens * width,
                                     .tokenStride = width,
                                     .headStride = headDim});
  });
}

namespace {

bool isReadableRank(uint32_t rank, KVLayout layout) {
  return rank == 3 || rank == 4 || (rank == 2 && layout == KVLayout::tokenMajor);
}

}  // namespace

bool HeadsView::isReadable() const {
  return strides || isReadableRank(tensor.shape().rank(), layout);
}

HeadsView::Strides HeadsView::resolvedAs(KVLayout layout) const {
  if (strides) return *strides;
  const Shape& shape = tensor.shape();
  const uint32_t rank = shape.rank();
  if (!isReadableRank(rank, layout)) return {.sequences = 0, .tokens = 0, .heads = 0};
  const uint64_t inner = shape[rank - 2];
  const uint64_t outer = rank == 2 ? 1 : shape[rank - 3];
  Strides result{.sequences = rank == 4 ? shape[0] : 1, .headDim = shape[rank - 1]};
  result.sequenceStride = outer * inner * result.headDim;
  const bool isHeadMajor = layout == KVLayout::headMajor;
  result.tokens = isHeadMajor ? inner : outer;
  result.heads = isHeadMajor ? outer : inner;
  (isHeadMajor ? result.tokenStride : result.headStride) = result.headDim;
  (isHeadMajor ? result.headStride : result.tokenStride) = inner * result.headDim;
  return result;
}

uint64_t KVCacheView::slotOf(uint64_t position) const {
  if (wrap == KVWrap::linear || position < pinned || ringLength() == 0) return position;
  return pinned + (position - pinned) % ringLength();
}

namespace {

using Strides = HeadsView::Strides;

// With more regions than this, one region that covers them all is cheaper to compare.
constexpr uint64_t kMaxRegions = 64;

struct Axis {
  uint64_t count;
  uint64_t stride;
};

// The axes by ascending stride. An axis of extent 1 has stride 0, because its stride is never used.
std::array<Axis, 3> axesOf(const Strides& strides) {
  std::array<Axis, 3> axes{{{strides.heads, strides.headStride},
                            {strides.tokens, strides.tokenStride},
                            {strides.sequences, strides.sequenceStride}}};
  for (Axis& axis : axes) {
    if (axis.count == 1) axis.stride = 0;
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  return axes;
}

bool isEmpty(const Strides& strides) {
  return strides.sequences == 0 || strides.tokens == 0 || strides.heads == 0 || strides.headDim == 0;
}

// From the first element of the first vector to the end of the last.
std::optional<uint64_t> spanOf(const Strides& strides) {
  std::optional<uint64_t> span = strides.headDim;
  for (const Axis& axis : axesOf(strides)) {
    const auto distance = checkedMultiply(axis.count - 1, axis.stride);
    span = distance && span ? checkedAdd(*span, *distance) : std::nullopt;
  }
  return span;
}

// The byte regions of the run in all vectors. Contiguous axes are joined. The longest remaining axis becomes the rows
// of a region, and the others multiply the regions.
std::vector<Region> regionsOf(const Strides& strides, const ElementRun& run, uint64_t elementBytes) {
  uint64_t rowElements = run.count;
  std::vector<Axis> left;
  for (const Axis& axis : axesOf(strides)) {
    if (axis.count == 1) continue;
    if (left.empty() && axis.stride == rowElements) {
      rowElements *= axis.count;
    } else if (!left.empty() && axis.stride == left.back().count * left.back().stride) {
      left.back().count *= axis.count;
    } else {
      left.push_back(axis);
    }
  }
  const auto longest =
      std::max_element(left.begin(), left.end(), [](const Axis& a, const Axis& b) { return a.count < b.count; });
  Axis rows{1, rowElements};
  if (longest != left.end()) {
    rows = *longest;
    left.erase(longest);
  }
  std::vector<uint64_t> starts{run.begin};
  for (const Axis& axis : left) {
    if (axis.count > kMaxRegions / starts.size()) {
      const uint64_t covered = (*spanOf(strides) - strides.headDim + run.count) * elementBytes;
      return {{.offset = run.begin * elementBytes, .rowBytes = covered, .rowStride = covered, .rows = 1}};
    }
    const size_t before = starts.size();
    for (uint64_t i = 1; i < axis.count; ++i) {
      for (size_t start = 0; start < before; ++start) starts.push_back(starts[start] + i * axis.stride);
    }
  }
  std::vector<Region> regions;
  for (uint64_t start : starts) {
    regions.push_back({.offset = start * elementBytes,
                       .rowBytes = rowElements * elementBytes,
                       .rowStride = rows.stride * elementBytes,
                       .rows = rows.count});
  }
  return regions;
}

// The addresses of all vectors, in order.
std::vector<uint64_t> startsOf(const HeadsView& view) {
  const Strides s = view.resolved();
  const uint64_t first = rangeOf(view).begin;
  std::vector<uint64_t> starts;
  for (uint64_t sequence = 0; sequence < s.sequences; ++sequence) {
    for (uint64_t token = 0; token < s.tokens; ++token) {
      for (uint64_t head = 0; head < s.heads; ++head) {
        const uint64_t element = sequence * s.sequenceStride + token * s.tokenStride + head * s.headStride;
        starts.push_back(first + element * byteSize(view.tensor.dtype()));
      }
    }
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

}  // namespace

bool isLayoutKnown(const HeadsView& view) {
  return view.strides || view.layout <= KVLayout::tokenMajor;
}

bool liesInside(const HeadsView& view) {
  const Strides strides = view.resolved();
  if (isEmpty(strides)) return true;
  const auto span = spanOf(strides);
  return span && fits(strides.offset, *span, view.tensor.shape().elementCount());
}

bool overlapsItself(const Strides& strides) {
  if (isEmpty(strides)) return false;
  uint64_t extent = strides.headDim;
  for (const Axis& axis : axesOf(strides)) {
    if (axis.count > 1 && axis.stride < extent) return true;
    extent += (axis.count - 1) * axis.stride;
  }
  return false;
}

uint64_t elementAlignment(const HeadsView& view, uint64_t most) {
  const Strides strides = view.resolved();
  const uint64_t bytes = byteSize(view.tensor.dtype());
  uint64_t bits = most | (view.tensor.range().begin / bytes + strides.offset);
  for (const Axis& axis : axesOf(strides)) bits |= axis.stride;
  return uint64_t{1} << std::countr_zero(bits);
}

std::string placesText(const HeadsView& view) {
  const Strides s = view.resolved();
  return fmt::format("at {}, strides {}, {} and {}, in {} elements", s.offset, s.sequenceStride, s.tokenStride,
                     s.headStride, view.tensor.shape().elementCount());
}

MemoryRange rangeOf(const HeadsView& view) {
  const Strides strides = view.resolved();
  const uint64_t bytes = byteSize(view.tensor.dtype());
  const MemoryRange tensor = view.tensor.range();
  const uint64_t begin = tensor.begin + strides.offset * bytes;
  return {tensor.space, begin, isEmpty(strides) ? begin : begin + *spanOf(strides) * bytes};
}

uint64_t vectorCount(const HeadsView& view) {
  const Strides strides = view.resolved();
  return strides.totalTokens() * strides.heads;
}

bool vectorsOverlap(const HeadsView& a, const HeadsView& b) {
  const auto starts = startsOf(a);
  const uint64_t lengths[] = {a.resolved().headDim * byteSize(a.tensor.dtype()),
                              b.resolved().headDim * byteSize(b.tensor.dtype())};
  for (const uint64_t start : startsOf(b)) {
    // Only the first vector of a that ends after the start can overlap.
    const auto next = std::upper_bound(starts.begin(), starts.end(), start,
                                       [&](uint64_t at, uint64_t other) { return at < other + lengths[0]; });
    if (next != starts.end() && *next < start + lengths[1]) return true;
  }
  return false;
}

uint64_t bytesOf(const HeadsView& view, std::span<const ElementRun> runs) {
  const Strides strides = view.resolved();
  uint64_t elements = 0;
  for (const ElementRun& run : runs) elements += run.count;
  return elements * strides.totalTokens() * strides.heads * byteSize(view.tensor.dtype());
}

Binding bindingOf(uint32_t index, const HeadsView& view, std::span<const ElementRun> runs, Access access) {
  const Strides strides = view.resolved();
  const uint64_t bytes = byteSize(view.tensor.dtype());
  // The offset of a view without elements may be anywhere.
  Binding binding{.index = index,
                  .buffer = view.tensor.buffer(),
                  .offset = view.tensor.byteOffset() + (isEmpty(strides) ? 0 : strides.offset * bytes),
                  .length = isEmpty(strides) ? 0 : *spanOf(strides) * bytes,
                  .reads = {},
                  .writes = {}};
  if (binding.length == 0) return binding;
  for (const ElementRun& run : runs) {
    const auto regions = regionsOf(strides, run, bytes);
    if (access != Access::write) binding.reads.insert(binding.reads.end(), regions.begin(), regions.end());
    if (access != Access::read) binding.writes.insert(binding.writes.end(), regions.begin(), regions.end());
  }
  return binding;
}

std::string Overlap::text() const {
  return fmt::format("{} overlapping {}", first.name, second.name);
}

std::optional<Overlap> firstOverlap(std::span<const NamedRange> sources, std::span<const NamedRange> targets) {
  for (const NamedRange& target : targets) {
    for (const NamedRange& source : sources) {
      if (source.range.overlaps(target.range)) return {{source, target}};
    }
  }
  for (size_t second = 1; second < targets.size(); ++second) {
    for (size_t first = 0; first < second; ++first) {
      if (targets[first].range.overlaps(targets[second].range)) return {{targets[first], targets[second]}};
    }
  }
  return std::nullopt;
}

void addRows(std::vector<NamedRange>& sources, const std::optional<KVCacheWrite::Rows>& rows) {
  if (!rows) return;
  if (const auto* tensor = std::get_if<Tensor>(&rows->sequences)) sources.push_back({"sequences", tensor->range()});
  if (const auto* tensor = std::get_if<Tensor>(&rows->positions)) sources.push_back({"positions", tensor->range()});
}

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
