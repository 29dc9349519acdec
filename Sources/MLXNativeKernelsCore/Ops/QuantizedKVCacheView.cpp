#include "MLXNativeKernels/QuantizedKVCacheView.hpp"

namespace mnk {

uint64_t QuantizedKVPlane::headDim() const {
  const Shape& shape = codes.shape();
  return shape.rank() == 0 ? 0 : headDimOf(codec, shape[shape.rank() - 1]);
}

KVCacheView QuantizedKVCacheView::codes() const {
  KVCacheView view{.keys = keys.codes, .layout = layout, .wrap = wrap, .pinned = pinned};
  if (values) view.values = values->codes;
  return view;
}

}  // namespace mnk
