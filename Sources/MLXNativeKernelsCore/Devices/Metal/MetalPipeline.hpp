// A function of a Metal library with its constants. Its requirements and limits are read from Metal once.
#pragma once
#include "Devices/Metal/MetalLibrary.hpp"

namespace mnk::metal {

// The width that kernels are written for.
inline constexpr uint32_t kSimdgroupWidth = 32;
// The size of the buffer that replaces a binding without bytes.
inline constexpr uint32_t kNothingBytes = 4096;

class MetalPipeline final : public Pipeline {
 public:
  static Result<std::shared_ptr<Pipeline>> make(MTL::Device* device, std::shared_ptr<MetalLibrary> library,
                                                const KernelKey& key);

  MetalPipeline(Owned<MTL::ComputePipelineState> native, std::vector<Argument> arguments);
  ~MetalPipeline() override;

  uint32_t maxThreadsPerThreadgroup() const override { return maxThreads_; }
  uint32_t staticThreadgroupBytes() const override { return staticThreadgroupBytes_; }
  std::span<const Argument> arguments() const override { return arguments_; }
  MTL::ComputePipelineState* native() const { return native_.get(); }

 private:
  Owned<MTL::ComputePipelineState> native_;
  std::vector<Argument> arguments_;
  uint32_t maxThreads_;
  uint32_t staticThreadgroupBytes_;
};

}  // namespace mnk::metal
