// Work for one command buffer, and the times of its ops.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "Devices/Metal/MetalSupport.hpp"
#include "MLXNativeKernels/Device.hpp"

namespace mnk::metal {

// Measures the ops of a command buffer with the GPU's timestamp counters: two timestamps for each span of a command
// buffer: a sequence of dispatches of one op. Apple GPUs sample only at the start and end of a compute pass, so each
// span is a pass; other GPUs can also sample between dispatches.
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

// Work for one command buffer, stored as data until the commit. It is then encoded into one compute encoder, in which
// dispatches run concurrently except across barriers, or into several if ops are measured. An app's command buffer is
// untouched until the commit, so an abandoned submission leaves nothing behind.
class MetalSubmission final : public Submission {
 public:
  struct Target {
    Owned<MTL::Buffer> nothing;  // replaces a binding without bytes, which Metal refuses
    Owned<MTL::CommandQueue> queue;
    Owned<MTL::Fence> fence;              // orders the device's submissions that bind untracked buffers
    Owned<MTL::CommandBuffer> appBuffer;  // not null: encode into this one; the app commits it
    bool describesDispatches = false;
  };

  MetalSubmission(std::shared_ptr<Device> device, Target target, std::string_view label);
  ~MetalSubmission() override;

  using Submission::dispatch;
  Result<void> dispatch(SharedDispatch shared, std::span<BoundMemory> memory) override;
  void barrier() override;
  void measureOps() override { measuresOps_ = true; }
  Result<void> prepare(std::function<void(SubmissionReport)> finished) override;
  void discardPrepared() noexcept override;
  Result<void> commit() noexcept override;
  std::function<WorkProgress()> progress() const override;

 private:
  struct Barrier {};
  struct Bound {
    SharedDispatch shared;
    size_t firstMemory = 0;
  };
  using Step = std::variant<Bound, Barrier>;
  struct Work;
  class AppBuffer;

  // Allocated in advance, because allocation can fail.
  struct Prepared {
    Owned<MTL::CommandBuffer> commands;
    Owned<NS::String> label;
    std::vector<Owned<NS::String>> descriptions;  // one for each dispatch, or empty
    std::shared_ptr<Work> work;
  };

  bool canOrder() const;
  // Encodes the steps and their completion handler into a command buffer.
  Result<void> encode(const Prepared& prepared, std::span<const Step> steps, std::span<const BoundMemory> memory) const;
  static std::span<const Step> firstSpan(std::span<const Step> steps);
  std::shared_ptr<MetalOpTimes> makeOpTimes() const;

  std::shared_ptr<Device> device_;
  Target target_;
  std::string label_;
  std::vector<Step> steps_;
  std::vector<BoundMemory> memory_;  // of all bindings of the steps
  bool measuresOps_ = false;
  bool bindsUntracked_ = false;
  std::shared_ptr<AppBuffer> appBuffer_;  // null if there is none
  Prepared prepared_;
};

// Metal aborts a process that encodes into a committed command buffer.
Result<void> checkOpen(const MTL::CommandBuffer& commands);

// "KVCacheWrite kvCacheMove_16 binds 1:512 3:4096 reads 1:0+512 writes 3:1024+64*8@256": the op, the kernel, and, by
// buffer index, the bound bytes and accessed regions as offset + row bytes * rows @ row stride. "reads some" and
// "writes some" mean that the kernel decides which of these bytes to access.
std::string description(const Dispatch& dispatch);

}  // namespace mnk::metal
