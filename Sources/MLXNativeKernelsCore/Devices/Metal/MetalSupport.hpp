// What every file of the Metal device needs: pools, texts and errors.
#pragma once
#include <string>
#include <string_view>

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

// Lives until the pool ends. Null for text that is not UTF-8, which labels may be.
NS::String* nsText(std::string_view text);
std::string text(const NS::String* text);
// What Metal says of a failure; "no reason given" where it says nothing.
std::string reason(const NS::Error* error);

Error metalError(ErrorCode code, std::string what, std::string got, std::string expected, std::string fix);

}  // namespace mnk::metal
