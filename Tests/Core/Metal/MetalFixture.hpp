// The Metal device on the software Metal, for tests: each fixture resets it, and at the end nothing may be left alive.
// Violations are checked after every test, see MetalFixture.cpp.
#pragma once
#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "Devices/Metal/MetalSupport.hpp"
#include "Harness/Check.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "SoftMetal.hpp"

namespace mnk::test {

class MetalFixture {
 public:
  explicit MetalFixture(std::source_location where = std::source_location::current());
  ~MetalFixture();

  // With the shipped kernels beside it, so that nothing is compiled.
  std::shared_ptr<Device> makeDevice(metal::Options options = {}) const;
  // The path of a library with the shipped kernels.
  const std::string& shippedLibrary() const { return shippedLibrary_; }
  // A path in a folder that goes with the fixture.
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::source_location where_;
  std::string folder_;
  std::string shippedLibrary_;
  softmetal::Mark begin_;
};

// A pool for what a test asks of Metal itself.
using metal::AutoreleasePool;

Tensor makeTensor(const std::shared_ptr<Device>& device, const std::vector<float>& values);
std::vector<float> readTensor(const Tensor& tensor);
// Four numbers for a cache of one head, in a buffer that Metal does not track.
Tensor makeUntracked(const std::shared_ptr<Device>& device);

// What trace() shows.
std::string traceText();
// A command buffer that the app would commit itself.
NS::SharedPtr<MTL::CommandBuffer> appCommandBuffer(const std::shared_ptr<Device>& device);

// Encodes an op or a plan by itself, and commits.
template <typename Op>
Completion submit(const std::shared_ptr<Device>& device, const Op& op) {
  CommandEncoder encoder(device);
  REQUIRE(encoder.encode(op));
  return REQUIRE(encoder.commit());
}

// out[i] = in[i], by the shipped kernels: a cache of one head whose rows are single numbers.
struct CopyFixture {
  explicit CopyFixture(const std::shared_ptr<Device>& device, uint64_t count = 4);
  Tensor in;
  Tensor out;
  KVCacheWrite write;

  void expectCopied(std::source_location where = std::source_location::current()) const;
  void expectUntouched(std::source_location where = std::source_location::current()) const;
};

// Encodes the copy into the app's command buffer.
Completion commitInto(const std::shared_ptr<Device>& device, MTL::CommandBuffer* commands, const CopyFixture& copy,
                      const char* label = "app");

}  // namespace mnk::test
