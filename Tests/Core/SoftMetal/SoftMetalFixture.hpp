// What tests of SoftMetal start from: a device with a queue and kernels, all made through metal-cpp, and looks at what
// was left behind.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "Harness/Check.hpp"
#include "MetalCpp.hpp"
#include "SoftMetal.hpp"

namespace mnk::test {

NS::String* text(const char* characters);

// One pool for the scope.
class Pool {
 public:
  Pool() : pool_(NS::AutoreleasePool::alloc()->init()) {}
  ~Pool() { pool_->drain(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  NS::AutoreleasePool* pool_;
};

class SoftMetalFixture {
 public:
  explicit SoftMetalFixture(const softmetal::DeviceDescription& about = {});
  // Everything that was made through the fixture or in its pool must be gone, and no violation unread.
  ~SoftMetalFixture();

  MTL::Device* device() const { return device_.get(); }
  MTL::CommandQueue* queue() const { return queue_.get(); }
  // The kernels of Tests/Shaders.
  MTL::Library* library() const { return library_.get(); }
  NS::SharedPtr<MTL::ComputePipelineState> pipeline(const char* function) const;
  NS::SharedPtr<MTL::Buffer> buffer(const char* label, size_t bytes) const;
  MTL::CommandBuffer* commandBuffer(const char* label = "work") const;
  MTL::ComputeCommandEncoder* encoder(MTL::CommandBuffer* commands,
                                      MTL::DispatchType type = MTL::DispatchTypeSerial) const;
  // An encoder of a new command buffer with copy16 set up to copy from one buffer to another.
  struct Copy {
    MTL::CommandBuffer* commands;
    MTL::ComputeCommandEncoder* encoder;
    NS::SharedPtr<MTL::ComputePipelineState> pipeline;
    NS::SharedPtr<MTL::Buffer> from, to;
    void dispatch() const { encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1)); }
    // Ends, commits and waits.
    void finish() const;
  };
  Copy copy(MTL::DispatchType type = MTL::DispatchTypeSerial) const;

 private:
  softmetal::Mark start_;
  NS::AutoreleasePool* pool_;
  NS::SharedPtr<MTL::Device> device_;
  NS::SharedPtr<MTL::CommandQueue> queue_;
  NS::SharedPtr<MTL::Library> library_;
};

// A folder that is removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void expectViolations(const char* file, int line, const std::vector<std::string_view>& parts);

}  // namespace mnk::test

// As many violations as parts, each with its part; none are left.
#define EXPECT_VIOLATIONS(...) ::mnk::test::expectViolations(__FILE__, __LINE__, {__VA_ARGS__})
#define EXPECT_NO_VIOLATION() ::mnk::test::expectViolations(__FILE__, __LINE__, {})
