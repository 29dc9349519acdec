// How long the ops of a command buffer take, by the GPU's timestamp counters.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "Devices/Metal/MetalSupport.hpp"

namespace mnk::metal {

// Two timestamps for each span of a command buffer: a run of dispatches of one op. Apple GPUs sample at the start and
// the end of a compute pass only, so that a span is a pass; others sample between dispatches, too.
class MetalOpTimes {
 public:
  // Null if the GPU cannot tell, or Metal has no room for the samples: work then runs without being measured.
  static std::shared_ptr<MetalOpTimes> make(MTL::Device* device, std::vector<std::string> spans);

  ~MetalOpTimes();

  bool hasPassPerSpan() const { return hasPassPerSpan_; }
  // The encoder of a span's own pass, named after its op, which lives until the caller's pool ends. Null if Metal has
  // none.
  MTL::ComputeCommandEncoder* makePass(MTL::CommandBuffer& commands, size_t span) const;
  // Around the dispatches of a span. Spans run one after another.
  void begin(MTL::ComputeCommandEncoder& encoder, size_t span) const;
  void end(MTL::ComputeCommandEncoder& encoder, size_t span) const;

  // Seconds by op, of work that is done; empty if the GPU did not sample.
  std::map<std::string, double> seconds() const;

 private:
  // The clocks of the processor, in nanoseconds, and of the GPU, in its own ticks, at one moment.
  struct Clocks {
    MTL::Timestamp processor = 0, gpu = 0;
    static Clocks now(MTL::Device* device);
  };

  Owned<MTL::Device> device_;
  Owned<MTL::CounterSampleBuffer> samples_;
  Owned<MTL::Fence> fence_;  // orders passes, also over memory that Metal does not track
  std::vector<std::string> spans_;
  std::vector<Owned<NS::String>> names_;  // of spans, for captures and Instruments
  bool hasPassPerSpan_ = false;
  Clocks start_;
};

}  // namespace mnk::metal
