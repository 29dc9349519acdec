#include "CAPI/Handles.hpp"

#include "Support/Errors.hpp"

using namespace mnk;

size_t mnk_dtype_size(mnk_dtype dtype) {
  return byteSize(static_cast<DType>(dtype));
}
const char* mnk_dtype_name(mnk_dtype dtype) {
  return name(static_cast<DType>(dtype)).data();
}

mnk_tensor* mnk_tensor_make(mnk_device* device, mnk_dtype dtype, const uint64_t* shape, size_t rank,
                            mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{device, "device"}}, [&]() -> Result<mnk_tensor*> {
    DType type{};
    MNK_TRY(c::read(type, dtype));
    MNK_TRY(auto extents, c::shape(shape, rank));
    return c::handleFor(Tensor::zeros(device->device, type, extents));
  });
}

mnk_tensor* mnk_tensor_make_wrapping(mnk_device* device, void* memory, uint64_t bytes, mnk_dtype dtype,
                                     const uint64_t* shape, size_t rank, uint64_t byte_offset, void (*release)(void*),
                                     void* context, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {}, [&]() -> Result<mnk_tensor*> {
    if (!device) {
      if (release) release(context);
      return c::nullArgument("device");
    }
    // From here on the buffer releases the memory, also if creating it fails.
    auto buffer = device->device->wrapMemory(memory, bytes, [release, context] {
      if (release) release(context);
    });
    return c::tensorOver(std::move(buffer), dtype, shape, rank, byte_offset);
  });
}

mnk_tensor* mnk_tensor_make_slice(const mnk_tensor* tensor, uint64_t begin, uint64_t count, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{tensor, "tensor"}},
                             [&] { return c::handleFor(tensor->tensor.slice(begin, count)); });
}

mnk_tensor* mnk_tensor_make_reshaped(const mnk_tensor* tensor, const uint64_t* shape, size_t rank,
                                     mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{tensor, "tensor"}}, [&]() -> Result<mnk_tensor*> {
    MNK_TRY(auto extents, c::shape(shape, rank));
    return c::handleFor(tensor->tensor.reshaped(extents));
  });
}

void mnk_tensor_release(mnk_tensor* tensor) {
  delete tensor;
}
mnk_dtype mnk_tensor_dtype(const mnk_tensor* tensor) {
  return tensor ? static_cast<mnk_dtype>(tensor->tensor.dtype()) : MNK_F32;
}
size_t mnk_tensor_rank(const mnk_tensor* tensor) {
  return tensor ? tensor->tensor.shape().rank() : 0;
}
uint64_t mnk_tensor_extent(const mnk_tensor* tensor, size_t axis) {
  return tensor && axis < Shape::kMaxRank ? tensor->tensor.shape()[static_cast<uint32_t>(axis)] : 0;
}
uint64_t mnk_tensor_byte_count(const mnk_tensor* tensor) {
  return tensor ? tensor->tensor.byteCount() : 0;
}
uint64_t mnk_tensor_byte_offset(const mnk_tensor* tensor) {
  return tensor ? tensor->tensor.byteOffset() : 0;
}

bool mnk_tensor_read(const mnk_tensor* tensor, void* into, uint64_t bytes, mnk_error_out error) {
  return c::run(error, {{tensor, "tensor"}}, [&]() -> Result<void> {
    if (!into && bytes != 0) return c::nullArgument("into");
    return tensor->tensor.read({static_cast<std::byte*>(into), bytes});
  });
}

bool mnk_tensor_write(mnk_tensor* tensor, const void* from, uint64_t bytes, mnk_error_out error) {
  return c::run(error, {{tensor, "tensor"}}, [&]() -> Result<void> {
    if (!from && bytes != 0) return c::nullArgument("from");
    return tensor->tensor.write({static_cast<const std::byte*>(from), bytes});
  });
}
