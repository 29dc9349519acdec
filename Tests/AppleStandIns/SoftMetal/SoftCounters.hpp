// Timestamps: MTLCounterSet, MTLCounterSampleBuffer and the compute passes that fill it; and MTLFence. The GPU's clock
// is simulated: a dispatch takes one microsecond, however long the Host device takes.
#pragma once
#include <vector>

#include "CommandQueue.hpp"

namespace softmetal {

inline constexpr uint64_t kNanosecondsPerTick = 40, kTicksPerDispatch = 25;
// Advances the clock and returns it.
uint64_t advanceClock(uint64_t ticks);

struct SoftData : Object {
  std::vector<std::byte> content;

  const void* bytes() { return content.data(); }
  unsigned long length() { return content.size(); }
};

struct SoftCounterSet : Object {
  std::string name = "timestamp";
};

struct SoftSamplesDescriptor : Object {
  Ref<SoftCounterSet> set;
  MTL::StorageMode storage = MTL::StorageModeManaged;
  NS::UInteger count = 0;

  void finish() { set = {}; }
};

struct SoftAttachment : Object {
  Ref<SoftSamples> samples;
  NS::UInteger first = 0, last = 0;

  void finish() { samples = {}; }
};

struct SoftAttachments : Object {
  Ref<SoftAttachment> only;

  void finish() { only = {}; }
  SoftAttachment* at(NS::UInteger index);
};

struct SoftComputePass : Object {
  Ref<SoftAttachments> attachments;
  MTL::DispatchType type = MTL::DispatchTypeSerial;

  void finish() { attachments = {}; }
  static SoftComputePass* make();
};

struct SoftFence : Object {
  Ref<SoftDevice> owner;
  const SoftCommandBuffer* updatedIn = nullptr;
  size_t mark = 0;  // position in the hazards when it was updated

  void finish() { owner = {}; }
};

}  // namespace softmetal
