// What tests of SoftMetal start from: a device with a queue and kernels, all made through metal-cpp, and looks at what
// was left behind.
#pragma once
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "Cache/CacheFileFixture.hpp"
#include "Devices/Metal/MetalSupport.hpp"
#include "Harness/Check.hpp"
#include "MetalCpp.hpp"
#include "SoftMetal.hpp"

namespace mnk::test {

NS::String* text(const char* characters);
std::string utf8(const NS::String* string);

// Sends messages that metal-cpp has no functions for.
struct Sender : NS::Object {
  using NS::Object::sendMessage;
};

using Pool = metal::AutoreleasePool;  // for a scope

// At its end everything that was made through the fixture or in its pool must be gone, and violations that were not
// expected before must be those of the test's line in Violations.inc, in their order.
class SoftMetalFixture {
 public:
  explicit SoftMetalFixture(const softmetal::DeviceDescription& about = {}, const char* note = "",
                            std::source_location where = std::source_location::current());
  ~SoftMetalFixture();

  MTL::Device* device() const { return device_.get(); }
  MTL::CommandQueue* queue() const { return queue_.get(); }
  // The kernels of Tests/Shaders.
  MTL::Library* library() const { return library_.get(); }
  NS::SharedPtr<MTL::Function> function(const char* name) const;
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
    MTL::ComputeCommandEncoder* operator->() const { return encoder; }
    void dispatch() const { encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1)); }
    // Ends, commits and waits.
    void finish() const;
    uint32_t* numbersFrom() const { return static_cast<uint32_t*>(from->contents()); }
    uint32_t* numbersTo() const { return static_cast<uint32_t*>(to->contents()); }
  };
  Copy copy(MTL::DispatchType type = MTL::DispatchTypeSerial, MTL::CommandBuffer* commands = nullptr) const;
  // The same in a command buffer that does not retain what it uses.
  Copy unretainedCopy() const { return copy(MTL::DispatchTypeSerial, queue_->commandBufferWithUnretainedReferences()); }

 private:
  std::string key_;
  softmetal::Mark start_;
  NS::AutoreleasePool* pool_;
  NS::SharedPtr<MTL::Device> device_;
  NS::SharedPtr<MTL::CommandQueue> queue_;
  NS::SharedPtr<MTL::Library> library_;
};

void expectViolations(const char* file, int line, const std::vector<std::string_view>& parts);

}  // namespace mnk::test

// As many violations as parts, each with its part; none are left.
#define EXPECT_VIOLATIONS(...) ::mnk::test::expectViolations(__FILE__, __LINE__, {__VA_ARGS__})
