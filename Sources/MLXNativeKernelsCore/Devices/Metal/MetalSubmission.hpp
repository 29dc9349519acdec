// Work for one command buffer, kept as data until the end: then it becomes one compute encoder, in which dispatches run
// side by side except across barriers, or several where ops are measured. A command buffer of the app's is left alone
// until the commit, so an abandoned submission leaves nothing behind.
#pragma once
#include <span>
#include <variant>

#include "Devices/Metal/MetalOpTimes.hpp"
#include "MLXNativeKernels/Device.hpp"

namespace mnk::metal {

class MetalSubmission final : public Submission {
 public:
  struct Target {
    Owned<MTL::Buffer> nothing;  // stands for a binding without bytes, which Metal does not take
    Owned<MTL::CommandQueue> queue;
    Owned<MTL::CommandBuffer> appBuffer;  // not null: encode into this one, and leave committing to the app
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

  // What was made ahead, because it takes memory.
  struct Prepared {
    Owned<MTL::CommandBuffer> commands;
    Owned<NS::String> label;
    std::vector<Owned<NS::String>> descriptions;  // of each dispatch, or none
    std::shared_ptr<Work> work;
  };

  // The steps, and what happens when they are done, in a command buffer.
  Result<void> encode(const Prepared& prepared, std::span<const Step> steps, std::span<const BoundMemory> memory) const;
  static std::span<const Step> firstSpan(std::span<const Step> steps);
  std::shared_ptr<MetalOpTimes> makeOpTimes() const;

  std::shared_ptr<Device> device_;
  Target target_;
  std::string label_;
  std::vector<Step> steps_;
  std::vector<BoundMemory> memory_;  // of all their bindings
  bool measuresOps_ = false;
  std::shared_ptr<AppBuffer> appBuffer_;  // null without one
  Prepared prepared_;
};

// Metal ends a process that encodes into a command buffer after its commit.
Result<void> checkOpen(const MTL::CommandBuffer& commands);

// "KVCacheWrite kvCacheMove_16 binds 1:512 3:4096 reads 1:0+512 writes 3:1024+64*8@256": the op, the kernel, then by
// buffer index the bytes bound and the regions accessed, as offset + bytes of a row * rows @ distance of rows. "reads
// some" and "writes some" where only the kernel knows which of these bytes.
std::string description(const Dispatch& dispatch);

}  // namespace mnk::metal
