#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

namespace {

// A new handle of the same object.
template <typename Handle, typename Member>
Result<Handle *> copyOf(const Handle *handle, Member Handle::*member) {
  if (!handle) return c::nullArgument("handle");
  return c::handleFor(Result<Member>(handle->*member));
}

}  // namespace

@implementation MNKDevice (MNKHandles)

+ (instancetype)deviceWithHandle:(const mnk_device *)handle error:(NSError **)error {
  return objc::make<MNKDevice>(error, "C API", [&](Reading &) { return copyOf(handle, &mnk_device::device); });
}
- (mnk_device *)makeHandleWithError:(NSError **)error {
  return objc::make(error, [&] { return copyOf(self->_handle.get(), &mnk_device::device); });
}

@end

@implementation MNKTensor (MNKHandles)

+ (instancetype)tensorWithHandle:(const mnk_tensor *)handle error:(NSError **)error {
  return objc::make<MNKTensor>(error, "C API", [&](Reading &) { return copyOf(handle, &mnk_tensor::tensor); });
}
- (mnk_tensor *)makeHandleWithError:(NSError **)error {
  return objc::make(error, [&] { return copyOf(self->_handle.get(), &mnk_tensor::tensor); });
}

@end

@implementation MNKAttentionCache (MNKHandles)

+ (instancetype)cacheWithHandle:(const mnk_cache *)handle error:(NSError **)error {
  return objc::make<MNKAttentionCache>(error, "C API", [&](Reading &) { return copyOf(handle, &mnk_cache::cache); });
}
- (mnk_cache *)makeHandleWithError:(NSError **)error {
  return objc::make(error, [&] { return copyOf(self->_handle.get(), &mnk_cache::cache); });
}

@end
