// What every file of the Metal device needs: pools, texts and errors.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "Devices/Metal/MetalCpp.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk::metal {

inline constexpr std::string_view kOp = "Metal device";

// Objects that Metal hands out without a `new` live until the pool of their thread ends. Every way into this folder
// opens one, because a thread of the app's may have none.
class AutoreleasePool {
 public:
  AutoreleasePool() : pool_(NS::AutoreleasePool::alloc()->init()) {}
  ~AutoreleasePool() { pool_->release(); }
  AutoreleasePool(const AutoreleasePool&) = delete;
  AutoreleasePool& operator=(const AutoreleasePool&) = delete;

 private:
  NS::AutoreleasePool* pool_;
};

// One reference to an object, or null. By hand, because metal-cpp's SharedPtr calls functions of null objects when it
// is copied or assigned; a compiler may then take for granted that nothing is null, and drop the checks that follow.
template <typename T>
class Owned {
 public:
  Owned() = default;
  // Takes over a reference that the caller has.
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

// For what a call that starts with `new`, `alloc` or `Copy` returns.
template <typename T>
Owned<T> owned(T* object) {
  return Owned<T>(object);
}
// For what somebody else owns.
template <typename T>
Owned<T> retained(T* object) {
  if (object) object->retain();
  return Owned<T>(object);
}

// Lives until the pool ends. Null for text that is not UTF-8, which labels may be.
NS::String* nsText(std::string_view text);
std::string text(const NS::String* text);
// What Metal says of a failure; "no reason given" where it says nothing.
std::string reason(const NS::Error* error);

Error metalError(ErrorCode code, std::string what, std::string got, std::string expected, std::string fix);

}  // namespace mnk::metal
