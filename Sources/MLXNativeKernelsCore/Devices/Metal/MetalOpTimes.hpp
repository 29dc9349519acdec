// Measures the ops of a command buffer with the GPU's timestamp counters.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "Devices/Metal/MetalSupport.hpp"

namespace mnk::metal {

// Two timestamps for each span of a command buffer: a sequence of dispatches of one op. Apple GPUs sample only at the
// start and end of a compute pass, so each span is a pass; other GPUs can also sample between dispatches.
class MetalOpTimes {
 public:
  // Null if the GPU cannot sample or Metal has no memory for samples: work then runs unmeasured.
  static std::shared_ptr<MetalOpTimes> make(MTL::Device* device, std::vector<std::string> spans);

  ~MetalOpTimes();

  bool hasPassPerSpan() const { return hasPassPerSpan_; }
  // The encoder of a span's pass, named after its op. Lives until the caller's pool ends. Null if Metal has none.
  MTL::ComputeCommandEncoder* makePass(MTL::CommandBuffer& commands, size_t span) const;
  // Called around the dispatches of a span. Spans run one after another.
  void begin(MTL::ComputeCommandEncoder& encoder, size_t span) const;
  void end(MTL::ComputeCommandEncoder& encoder, size_t span) const;

  // Seconds by op, after the work is done; empty if the GPU did not sample.
  std::map<std::string, double> seconds() const;

 private:
  // The CPU's clock, in nanoseconds, and the GPU's, in ticks, at the same moment.
  struct Clocks {
    MTL::Timestamp processor = 0, gpu = 0;
    static Clocks now(MTL::Device* device);
  };

  Owned<MTL::Device> device_;
  Owned<MTL::CounterSampleBuffer> samples_;
  Owned<MTL::Fence> fence_;  // orders passes, even over memory that Metal does not track
  std::vector<std::string> spans_;
  std::vector<Owned<NS::String>> names_;  // of spans, for captures and Instruments
  bool hasPassPerSpan_ = false;
  Clocks start_;
};

}  // namespace mnk::metal
