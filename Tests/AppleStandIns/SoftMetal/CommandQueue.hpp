// MTLCommandQueue and MTLCommandBuffer. Encoders add records to their command buffer; a committed command buffer
// becomes a submission of the Host device.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "Hazards.hpp"
#include "SoftDevice.hpp"

namespace softmetal {

struct SoftCommandBuffer;
struct SoftComputePass;
struct SoftEncoder;

// The GPU's clock is simulated: a dispatch takes one microsecond, however long the Host device takes.
inline constexpr uint64_t kNanosecondsPerTick = 40, kTicksPerDispatch = 25;
// Advances the clock and returns it.
uint64_t advanceClock(uint64_t ticks);

struct SoftCommandQueue : Object {
  Ref<SoftDevice> owner;
  std::mutex mutex;
  std::deque<SoftCommandBuffer*> order;  // enqueued and not yet started; committed ones retain themselves
  NS::UInteger uncommitted = 0;
  // Of command buffers that are committed and not complete.
  std::map<const SoftCommandBuffer*, std::vector<UntrackedAccess>> untracked;

  void finish() { owner = {}; }
  // Reports untracked accesses of a command buffer that nothing orders after those of earlier ones. Requires the lock.
  void checkOrder(SoftCommandBuffer* committed);
  // Starts committed command buffers up to the first that is only enqueued. Requires the lock.
  void startReady();

  template <bool IsRetaining>
  SoftCommandBuffer* commandBuffer();
};

struct RecordedStep {
  bool isBarrier = false;
  mnk::ReadyDispatch dispatch = {};
  std::string group = {};  // the innermost debug group
  std::string note = {};   // if not empty, the record is only this note
  Ref<SoftSamples> samples = {};
  size_t sampleIndex = 0;
};

struct EncoderRecord {
  std::string label;
  bool isConcurrent = false;
  std::vector<RecordedStep> steps;
};

struct SoftCommandBuffer : Object {
  Ref<SoftCommandQueue> queue;
  bool isRetaining = true;

  // Used by the encoding thread until the commit.
  std::vector<EncoderRecord> encoders;
  SoftEncoder* openEncoder = nullptr;
  Hazards hazards;
  std::string firstViolation;
  std::set<Object*> used;  // retained, or counted as used, until the work is done
  std::vector<MTL::CommandBufferHandler> handlers;
  Ref<SoftCommandBuffer> self;  // from commit until the work starts
  std::optional<InjectedEnd> injected;

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<MTL::CommandBufferStatus> status = MTL::CommandBufferStatusNotEnqueued;
  std::atomic<double> startTime = 0, endTime = 0;
  Ref<SoftError> failure;
  double simulatedSeconds = 0;
  std::vector<std::tuple<Ref<SoftSamples>, size_t, uint64_t>> taken;  // samples, with their values

  void finish();
  // Records a violation on which Apple's Metal aborts; the work will not run.
  void breakRule(std::string sentence);
  void use(Object* object);
  void releaseUsed();
  // False, with a violation, after the commit.
  bool isOpen();
  void start();

  SoftDevice* device() { return queue->owner.get(); }
  SoftEncoder* computeEncoder();
  SoftEncoder* computeEncoderWithType(MTL::DispatchType type);
  SoftEncoder* computeEncoderWithPass(SoftComputePass* pass);
  void enqueue();
  void commit();
  void waitUntilCompleted();
  void addCompletedHandler(MTL::CommandBufferHandler handler);
  Object* error();

 private:
  void runHandlers();
  void takeSamples();
  mnk::Result<void> fill(mnk::Submission& submission);
  std::optional<std::pair<int64_t, std::string>> endBeforeWork();
  void complete(mnk::SubmissionReport report, std::optional<std::pair<int64_t, std::string>> early,
                Ref<SoftCommandBuffer> kept);
};

}  // namespace softmetal
