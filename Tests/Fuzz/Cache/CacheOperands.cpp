#include "CacheOperands.hpp"

#include <algorithm>
#include <cstring>

#include "Harness/SoftFloat.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

bool isFlat(const HeadsSpec& heads) {
  const mnk_heads_view_strides places = *placesOf(heads);
  return places.sequences <= 1 || places.sequence_stride == places.tokens * places.token_stride;
}

TensorSpec partOf(const TensorSpec& whole, uint64_t first, uint64_t rows, uint64_t axis) {
  TensorSpec spec = whole;
  const uint64_t heads = whole.shape[whole.shape.size() - 2], dim = whole.shape.back();
  spec.offset += first * heads * dim * spec.elementBytes();
  spec.shape = {rows, heads, dim};
  if (axis != 0) spec.shape = {axis, rows / axis, heads, dim};
  return spec;
}

mnk_dtype Operands::drawFloat() {
  return oneOf(random_, {MNK_F32, MNK_F16, MNK_BF16});
}

// Memory behind that of the operands before it.
bool Operands::allocate(TensorSpec& spec) {
  for (uint32_t tries = 0; tries < Arena::kRegions; ++tries) {
    spec.region = (firstRegion_ + tries) % Arena::kRegions;
    uint64_t& used = used_[spec.region];
    const uint64_t begin = (used + 3) / 4 * 4 + 4 * random_.below(4);
    if (begin + spec.bytes() > Arena::kRegionBytes) continue;
    spec.offset = begin;
    used = begin + spec.bytes();
    firstRegion_ = spec.region + 1;
    return true;
  }
  return false;
}

bool Operands::draw(HeadsSpec& heads, Floats& numbers, mnk_dtype dtype, std::array<uint64_t, 3> extents,
                    uint64_t axis) {
  const auto [rows, headCount, dim] = extents;
  const uint64_t sequences = std::max<uint64_t>(axis, 1), each = rows / sequences;
  for (uint64_t i = 0; i < rows * headCount * dim; ++i) {
    numbers.push_back((static_cast<float>(random_.below(129)) - 64) / 64);
  }
  mnk_heads_view view{.layout = oneOf(random_, {MNK_KV_LAYOUT_TOKEN_MAJOR, MNK_KV_LAYOUT_DEFAULT})};
  TensorSpec spec{.dtype = dtype, .shape = {each, headCount, dim}};
  if (axis != 0) spec.shape.insert(spec.shape.begin(), sequences);
  switch (random_.below(3)) {
    case 0:
      if (rows == 1 && axis == 0 && coin(random_, 1, 2)) spec.shape = {headCount, dim};
      break;
    case 1:
      view.layout = MNK_KV_LAYOUT_HEAD_MAJOR;
      std::swap(spec.shape[spec.shape.size() - 3], spec.shape[spec.shape.size() - 2]);
      break;
    default: {
      const uint64_t offset = random_.below(5), width = offset + headCount * dim + random_.below(5);
      view.has_strides = true;
      view.strides = {.sequences = sequences,
                      .tokens = each,
                      .heads = headCount,
                      .head_dim = dim,
                      .offset = offset,
                      .sequence_stride = each * width,
                      .token_stride = width,
                      .head_stride = dim};
      spec.shape = {sequences * each, width};
    }
  }
  if (!allocate(spec)) return false;
  heads = {spec, view};
  store(heads, numbers, rows, headCount);
  return true;
}

HeadsSpec Operands::drawRows(const HeadsSpec& whole, uint64_t first, uint64_t rows, uint64_t axis) {
  const bool isTokenMajor = !whole.view.has_strides && whole.view.layout != MNK_KV_LAYOUT_HEAD_MAJOR;
  if (isTokenMajor && coin(random_, 1, 2)) return {partOf(*whole.tensor, first, rows, axis), whole.view};
  mnk_heads_view_strides places = *placesOf(whole);
  places.sequences = std::max<uint64_t>(axis, 1), places.tokens = rows / places.sequences;
  places.sequence_stride = places.tokens * places.token_stride;
  places.offset += first * places.token_stride;
  return {whole.tensor, {.has_strides = true, .strides = places}};
}

void Operands::store(const HeadsSpec& heads, const Floats& numbers, uint64_t rows, uint64_t headCount) {
  const mnk_heads_view_strides places = *placesOf(heads);
  const uint64_t dim = places.head_dim, size = heads.tensor->elementBytes();
  std::vector<std::byte> bytes(heads.tensor->bytes());
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    const uint64_t row = i / (headCount * dim), head = i / dim % headCount, each = rows / places.sequences;
    const uint64_t element = places.offset + row / each * places.sequence_stride + row % each * places.token_stride +
                             head * places.head_stride + i % dim;
    const uint64_t bits = test::nearestBits(static_cast<DType>(heads.tensor->dtype), numbers[i]);
    std::memcpy(&bytes[element * size], &bits, size);
  }
  arena_.fill(*heads.tensor, bytes);
}

}  // namespace mnk::fuzz
