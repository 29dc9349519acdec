#include <bit>
#include <vector>

#include "MLXNativeKernels/KVCodec.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

std::string_view expectedText(const KVCodec& codec) {
  switch (codec.name) {
    case KVCodec::Name::turbo:
      return "2 to 8 bits, and a head dim of 32, 64, 80, 96, 112, 128, 192, 256 or 512";
    case KVCodec::Name::mlx1:
      return "4 bits and a power of two from 4 to 4096, or 5, 6 or 8 bits and 256 or 512";
    case KVCodec::Name::mlx1Unrotated:
      return "5, 6 or 8 bits, and a head dim of 256 or 512";
    case KVCodec::Name::mlx1Affine4:
      return "4 bits, and a head dim of 256 or 512";
  }
  return "a codec of KVCodec::Name";
}

// Whether each half of a vector of 512 has a scale.
bool hasTwoScales(const KVCodec& codec, uint64_t headDim) {
  return headDim == 512 && (codec.name == KVCodec::Name::mlx1 || codec.name == KVCodec::Name::mlx1Unrotated);
}

}  // namespace

std::string_view name(KVCodec::Name codec) {
  switch (codec) {
    case KVCodec::Name::turbo:
      return "turbo";
    case KVCodec::Name::mlx1:
      return "mlx1";
    case KVCodec::Name::mlx1Unrotated:
      return "mlx1Unrotated";
    case KVCodec::Name::mlx1Affine4:
      return "mlx1Affine4";
  }
  return "unknown codec";
}

bool KVCodec::canQuantize(uint64_t headDim) const {
  const bool isPowerOfTwo = std::has_single_bit(headDim);
  const bool isLong = headDim == 256 || headDim == 512;
  const bool hasBytes = bits == 5 || bits == 6 || bits == 8;
  switch (name) {
    case KVCodec::Name::turbo: {
      const bool hasBlocks = headDim == 80 || headDim == 96 || headDim == 112 || headDim == 192;
      return bits >= 2 && bits <= 8 && ((isPowerOfTwo && headDim >= 32 && headDim <= 512) || hasBlocks);
    }
    case KVCodec::Name::mlx1:
      return bits == 4 ? isPowerOfTwo && headDim >= 4 && headDim <= 4096 : hasBytes && isLong;
    case KVCodec::Name::mlx1Unrotated:
      return hasBytes && isLong;
    case KVCodec::Name::mlx1Affine4:
      return bits == 4 && isLong;
  }
  return false;
}

bool KVCodec::hasByteCodes() const {
  return name != KVCodec::Name::turbo && bits != 4;
}

bool KVCodec::canScale(uint64_t headDim) const {
  constexpr float kLeast = 1e-6f;  // readers of the codec treat smaller values as 1
  constexpr float kMost = 1e6f;    // so that no element overflows
  if (scaleFactor == 1) return true;
  return hasTwoScales(*this, headDim) && scaleFactor >= kLeast && scaleFactor <= kMost;
}

DType KVCodec::scaleType() const {
  return name == KVCodec::Name::turbo ? DType::f16 : DType::f32;
}

std::string KVCodec::text() const {
  return fmt::format("{} of {} bits", mnk::name(name), bits);
}

Result<KVCodecSizes> sizes(const KVCodec& codec, uint64_t headDim) {
  return guarded("KVCodec", [&]() -> Result<KVCodecSizes> {
    if (!codec.canQuantize(headDim)) {
      return Error{.op = "KVCodec",
                   .what = "the codec does not have these bits or this head dim",
                   .got = fmt::format("{}, head dim {}", codec.text(), headDim),
                   .expected = std::string(expectedText(codec)),
                   .fix = "Choose other bits, another codec, or a dense cache."};
    }
    KVCodecSizes sizes;
    sizes.codeBytes = codec.hasByteCodes() ? headDim : headDim * codec.bits / 8;
    sizes.scales = hasTwoScales(codec, headDim) ? 2 : 1;
    sizes.scaleBytes = sizes.scales * byteSize(codec.scaleType());
    return sizes;
  });
}

uint64_t headDimOf(const KVCodec& codec, uint64_t codeBytes) {
  if (codec.bits == 0 || codeBytes > 4096) return 0;
  const uint64_t headDim = codec.hasByteCodes() ? codeBytes : codeBytes * 8 / codec.bits;
  const auto known = sizes(codec, headDim);
  return known && known->codeBytes == codeBytes ? headDim : 0;
}

Result<uint64_t> quantizedCacheBytes(const QuantizedCacheExtents& extents) {
  return guarded("QuantizedKVCacheView", [&]() -> Result<uint64_t> {
    MNK_TRY(auto keys, sizes(extents.keys, extents.headDim));
    uint64_t position = keys.byteCount();
    if (extents.values) {
      MNK_TRY(auto values, sizes(*extents.values, extents.valueHeadDim));
      position += values.byteCount();
    }
    std::optional<uint64_t> bytes = position;
    for (const uint64_t extent : {extents.heads, extents.capacity, extents.sequences}) {
      bytes = bytes ? checkedMultiply(*bytes, extent) : bytes;
    }
    if (bytes) return *bytes;
    return Error{.op = "QuantizedKVCacheView",
                 .what = "the cache has too many bytes to count",
                 .got = fmt::format("{} heads, capacity {} and {} sequences of {} bytes", extents.heads,
                                    extents.capacity, extents.sequences, position),
                 .expected = "less than 2^64 bytes",
                 .fix = "Pass smaller extents."};
  });
}

namespace {

using MakeTensor = Result<Tensor>(const std::shared_ptr<Device>&, DType, const Shape&);

Result<QuantizedKVPlane> makePlane(MakeTensor& make, const std::shared_ptr<Device>& device, const KVCodec& codec,
                                   uint64_t heads, uint64_t headDim, uint64_t capacity,
                                   std::optional<uint64_t> sequences, KVLayout layout) {
  return guarded("QuantizedKVPlane", [&]() -> Result<QuantizedKVPlane> {
    MNK_TRY(auto ofOne, sizes(codec, headDim));
    std::vector<uint64_t> slots;
    if (sequences) slots.push_back(*sequences);
    slots.push_back(layout == KVLayout::headMajor ? heads : capacity);
    slots.push_back(layout == KVLayout::headMajor ? capacity : heads);
    const auto plane = [&](DType dtype, std::optional<uint64_t> perSlot) -> Result<Tensor> {
      auto extents = slots;
      if (perSlot) extents.push_back(*perSlot);
      MNK_TRY(auto shape, Shape::make(extents));
      return make(device, dtype, shape);
    };
    MNK_TRY(auto codes, plane(DType::u8, ofOne.codeBytes));
    // A single scale has no axis.
    MNK_TRY(auto scales, plane(codec.scaleType(), ofOne.scales == 1 ? std::nullopt : std::optional(ofOne.scales)));
    return QuantizedKVPlane{.codec = codec, .codes = codes, .scales = scales};
  });
}

}  // namespace

Result<QuantizedKVPlane> QuantizedKVPlane::zeros(const std::shared_ptr<Device>& device, const KVCodec& codec,
                                                 uint64_t heads, uint64_t headDim, uint64_t capacity,
                                                 std::optional<uint64_t> sequences, KVLayout layout) {
  return makePlane(Tensor::zeros, device, codec, heads, headDim, capacity, sequences, layout);
}
Result<QuantizedKVPlane> QuantizedKVPlane::undefined(const std::shared_ptr<Device>& device, const KVCodec& codec,
                                                     uint64_t heads, uint64_t headDim, uint64_t capacity,
                                                     std::optional<uint64_t> sequences, KVLayout layout) {
  return makePlane(Tensor::undefined, device, codec, heads, headDim, capacity, sequences, layout);
}

uint64_t QuantizedKVPlane::headDim() const {
  const Shape& shape = codes.shape();
  if (shape.rank() == 0) return 0;
  return isDense() ? shape[shape.rank() - 1] : headDimOf(codec, shape[shape.rank() - 1]);
}

KVCodecSizes QuantizedKVPlane::vectorSizes() const {
  if (isDense()) return {.codeBytes = headDim() * byteSize(codes.dtype())};
  const auto taken = sizes(codec, headDim());
  return taken ? *taken : KVCodecSizes{};
}

KVCacheView QuantizedKVCacheView::codes() const {
  KVCacheView view{.keys = keys.codes, .layout = layout, .wrap = wrap, .pinned = pinned};
  if (values) view.values = values->codes;
  return view;
}

}  // namespace mnk
