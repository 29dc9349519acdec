#import "Bridging.hpp"

#include "CAPI/Handles.hpp"

namespace mnk::objc_test {

MNKDevice *objectOver(const std::shared_ptr<Device> &device) {
  const mnk_device handle{device, std::string(device->kind()), device->name()};
  MNKDevice *object = [MNKDevice deviceWithHandle:&handle error:nil];
  return object;
}

MNKTensor *objectOver(const Tensor &tensor) {
  const mnk_tensor handle{tensor};
  MNKTensor *object = [MNKTensor tensorWithHandle:&handle error:nil];
  return object;
}

MNKTensor *objectOver(const std::optional<Tensor> &tensor) {
  return tensor ? objectOver(*tensor) : nil;
}

MNKAttentionCache *objectOver(const AttentionCache &cache) {
  const mnk_cache handle{cache};
  MNKAttentionCache *object = [MNKAttentionCache cacheWithHandle:&handle error:nil];
  return object;
}

NSString *stringFrom(const std::string &text) {
  return @(text.c_str());
}

std::shared_ptr<Device> coreOf(MNKDevice *device) {
  mnk_device *handle = [device makeHandleWithError:nil];
  auto core = handle->device;
  mnk_device_release(handle);
  return core;
}

Tensor coreOf(MNKTensor *tensor) {
  mnk_tensor *handle = [tensor makeHandleWithError:nil];
  Tensor core = handle->tensor;
  mnk_tensor_release(handle);
  return core;
}

}  // namespace mnk::objc_test
