#include "CAPI/Handles.hpp"
#import "ObjC/Core.hpp"

using namespace mnk;

namespace {

// Converts a required handle.
template <typename Object, typename Handle, typename Body>
Object *fromHandle(const Handle *handle, NSError *__autoreleasing *error, Body &&body) {
  return objc::make(error, [&]() -> Result<Object *> {
    if (!handle) return c::nullArgument("handle");
    return body();
  });
}

}  // namespace

@implementation MNKDevice (MNKHandles)

+ (instancetype)deviceWithHandle:(const mnk_device *)handle error:(NSError **)error {
  return fromHandle<MNKDevice>(handle, error, [&] { return [[MNKDevice alloc] initWithCore:handle->device]; });
}
- (mnk_device *)makeHandleWithError:(NSError **)error {
  return objc::make(error, [&] { return c::handleFor(Result<std::shared_ptr<Device>>(self->_core)); });
}

@end

@implementation MNKTensor (MNKHandles)

+ (instancetype)tensorWithHandle:(const mnk_tensor *)handle error:(NSError **)error {
  return fromHandle<MNKTensor>(handle, error, [&] { return [[MNKTensor alloc] initWithCore:handle->tensor]; });
}
- (mnk_tensor *)makeHandleWithError:(NSError **)error {
  return objc::make(error, [&] { return c::handleFor(Result<Tensor>(self->_handle.tensor)); });
}

@end

@implementation MNKAttentionCache (MNKHandles)

+ (instancetype)cacheWithHandle:(const mnk_cache *)handle error:(NSError **)error {
  return fromHandle<MNKAttentionCache>(handle, error,
                                       [&] { return [[MNKAttentionCache alloc] initWithCore:handle->cache]; });
}
- (mnk_cache *)makeHandleWithError:(NSError **)error {
  return objc::make(error, [&] { return c::handleFor(Result<AttentionCache>(self->_handle->cache)); });
}

@end
