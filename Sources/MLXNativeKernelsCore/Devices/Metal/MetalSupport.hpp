// Autorelease pools, strings, errors and features of GPUs for the Metal device.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "Devices/Metal/MetalCpp.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk::metal {

inline constexpr std::string_view kOp = "Metal device";

// Objects that Metal returns autoreleased live until their thread's pool ends. Every entry point of this folder creates
// a pool, because a thread of the app may have none.
class AutoreleasePool {
 public:
  AutoreleasePool() : pool_(NS::AutoreleasePool::alloc()->init()) {}
  ~AutoreleasePool() { pool_->release(); }
  AutoreleasePool(const AutoreleasePool&) = delete;
  AutoreleasePool& operator=(const AutoreleasePool&) = delete;

 private:
  NS::AutoreleasePool* pool_;
};

// Owns one reference to an object, or null. Replaces metal-cpp's SharedPtr, which calls member functions of null
// objects when copied or assigned; a compiler may then assume that nothing is null and remove later checks.
template <typename T>
class Owned {
 public:
  Owned() = default;
  // Takes over the caller's reference.
  explicit Owned(T* object) : object_(object) {}
  Owned(const Owned& other) : object_(other.object_) {
    if (object_) object_->retain();
  }
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() { reset(); }

  void reset() {
    if (T* object = std::exchange(object_, nullptr)) object->release();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// For results of calls that start with `new`, `alloc` or `Copy`.
template <typename T>
Owned<T> owned(T* object) {
  return Owned<T>(object);
}
// For objects that another owner holds.
template <typename T>
Owned<T> retained(T* object) {
  if (object) object->retain();
  return Owned<T>(object);
}

// Lives until the pool ends. Null if the text is not UTF-8, as labels may be.
NS::String* nsText(std::string_view text);
std::string text(const NS::String* text);
// Metal's description of a failure, or "no reason given".
std::string reason(const NS::Error* error);

Error metalError(ErrorCode code, std::string_view what, std::string_view got, std::string_view expected,
                 std::string_view fix, bool retryable = false);

// Checks the GPU features that kernels need, once when a device is created. The error names the first missing one.
Result<void> checkFeatures(MTL::Device* device);

// The features that affect the speed of kernels.
DeviceProfile profileOf(MTL::Device* device);

// Converts a failed command buffer's error code to an Error that says whether a retry can help.
Error commandBufferError(const NS::Error* error, std::string_view label);

}  // namespace mnk::metal
