#include "MLXNativeKernels/KVCodec.hpp"

#include <vector>

#include "Support/Errors.hpp"

namespace mnk {

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
