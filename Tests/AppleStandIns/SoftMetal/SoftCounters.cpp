// Timestamps: MTLCounterSet, MTLCounterSampleBuffer and the compute passes that fill it; and MTLFence.
#include <atomic>
#include <cstring>

#include "SoftEncoder.hpp"

namespace softmetal {

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
  SoftAttachment* at(NS::UInteger index) {
    if (index == 0) return retainedInPool(only);
    return violate("sample buffer attachment {} was requested, which the software Metal does not have", index);
  }
};

struct SoftComputePass : Object {
  Ref<SoftAttachments> attachments;
  MTL::DispatchType type = MTL::DispatchTypeSerial;

  void finish() { attachments = {}; }
  static SoftComputePass* make() {
    auto* pass = softmetal::make<SoftComputePass>();
    pass->attachments = Ref<SoftAttachments>::adopt(softmetal::make<SoftAttachments>());
    pass->attachments->only = Ref<SoftAttachment>::adopt(softmetal::make<SoftAttachment>());
    return autoreleased(pass);
  }
};

struct SoftFence : Object {
  Ref<SoftDevice> owner;
  const SoftCommandBuffer* updatedIn = nullptr;
  size_t mark = 0;  // position in the hazards when it was updated

  void finish() { owner = {}; }
};

namespace {

// Undocumented limits of Apple GPUs.
constexpr size_t kMaxSamples = 4096, kMaxSampleBuffers = 32;
std::atomic<size_t> sampleBuffers = 0;

}  // namespace

uint64_t advanceClock(uint64_t ticks) {
  static std::atomic<uint64_t> clock = 1'000'000;
  return clock.fetch_add(ticks) + ticks;
}

SoftArray* SoftDevice::counterSets() {
  std::vector<Ref<Object>> sets;
  if (about.sampling != Sampling::none) sets.push_back(Ref<Object>::adopt(make<SoftCounterSet>()));
  return autoreleased(makeArray(std::move(sets)));
}

bool SoftDevice::supportsCounterSampling(MTL::CounterSamplingPoint point) {
  if (point == MTL::CounterSamplingPointAtStageBoundary) return about.sampling != Sampling::none;
  return point == MTL::CounterSamplingPointAtDispatchBoundary && about.sampling == Sampling::dispatches;
}

void SoftDevice::sampleTimestamps(MTL::Timestamp* processor, MTL::Timestamp* gpu) {
  *gpu = advanceClock(1000);
  *processor = *gpu * kNanosecondsPerTick;
}

SoftSamples* SoftDevice::newSamples(SoftSamplesDescriptor* descriptor, SoftError** error) {
  const auto refuse = [&](std::string_view why) { return giveError(error, "MTLCounterErrorDomain", 0, why); };
  auto* const checked = usable(descriptor);
  if (!checked || !checked->set) return refuse("the descriptor has no counter set");
  if (shallFail(Call::sampleBuffer)) return refuse("the sample buffer was made to fail");
  if (checked->count == 0 || checked->count > kMaxSamples) return refuse("Invalid sample buffer length");
  if (sampleBuffers.fetch_add(1) >= kMaxSampleBuffers) {
    sampleBuffers -= 1;
    return refuse("Cannot allocate sample buffer");
  }
  if (checked->storage != MTL::StorageModeShared) violate("a sample buffer that is not shared cannot be resolved");
  auto* samples = make<SoftSamples>();
  samples->owner = Ref<SoftDevice>(this);
  samples->values.resize(checked->count);
  return samples;
}

SoftFence* SoftDevice::newFence() {
  if (isDeviceLost()) return nullptr;
  auto* fence = make<SoftFence>();
  fence->owner = Ref<SoftDevice>(this);
  return fence;
}

void SoftSamples::finish() {
  sampleBuffers -= 1;
  owner = {};
}

SoftData* SoftSamples::resolveCounterRange(NS::Range range) {
  if (range.location + range.length > values.size()) {
    return violate("{}: {} samples from {} on were resolved of {}", describe(), range.length, range.location,
                   values.size());
  }
  if (unretainedUses != 0) violate("{} was resolved before its command buffer had completed", describe());
  auto* data = make<SoftData>();
  data->content.resize(range.length * sizeof(uint64_t));
  if (range.length != 0) std::memcpy(data->content.data(), &values[range.location], data->content.size());
  return autoreleased(data);
}

SoftEncoder* SoftCommandBuffer::computeEncoderWithPass(SoftComputePass* pass) {
  auto* const checked = usable(pass);
  SoftEncoder* const encoder = checked ? computeEncoderWithType(checked->type) : nullptr;
  if (!encoder) return nullptr;
  const SoftAttachment& attachment = *checked->attachments->only.get();
  if (!attachment.samples) return encoder;
  if (!device()->supportsCounterSampling(MTL::CounterSamplingPointAtStageBoundary)) {
    breakRule(fmt::format("{}: passes of this GPU cannot be sampled", describe()));
  }
  encoder->addSample(attachment.samples.get(), attachment.first);
  encoder->atEnd = std::pair(attachment.samples, attachment.last);
  return encoder;
}

void SoftEncoder::addSample(SoftSamples* samples, NS::UInteger index) {
  if (!isOurs(samples->owner.get(), *samples)) return;
  if (index >= samples->values.size()) {
    return breakRule("sample {} was requested, of {}", index, samples->values.size());
  }
  buffer->use(samples);
  record.steps.push_back(
      {.note = fmt::format("sample {}", index), .samples = Ref<SoftSamples>(samples), .sampleIndex = index});
}

void SoftEncoder::sampleCounters(SoftSamples* samples, NS::UInteger index, bool) {
  if (!isOpen() || !usable(samples)) return;
  if (!device()->supportsCounterSampling(MTL::CounterSamplingPointAtDispatchBoundary)) {
    return breakRule("{} is not supported on this GPU", currentSelector());
  }
  addSample(samples, index);
}

void SoftEncoder::updateFence(SoftFence* fence) {
  if (!isOpen() || !usable(fence) || !isOurs(fence->owner.get(), *fence)) return;
  buffer->use(fence);
  fence->updatedIn = buffer.get();
  fence->mark = buffer->hazards.mark();
  buffer->hazards.update(fence);
  record.steps.push_back({.note = "update fence"});
}

void SoftEncoder::waitForFence(SoftFence* fence) {
  if (!isOpen() || !usable(fence) || !isOurs(fence->owner.get(), *fence)) return;
  buffer->use(fence);
  buffer->hazards.waitFor(fence);
  if (fence->updatedIn == buffer.get()) buffer->hazards.orderAfter(fence->mark);
  record.steps.push_back({.note = "wait for fence"});
}

void defineCounters() {
  define<SoftData>("NSData").on<&SoftData::bytes>("bytes").on<&SoftData::length>("length");
  define<SoftCounterSet>("MTLCounterSet").on<&SoftCounterSet::name>("name");
  define<SoftSamplesDescriptor>("MTLCounterSampleBufferDescriptor")
      .withAlloc()
      .sets<&SoftSamplesDescriptor::set>("setCounterSet:")
      .sets<&SoftSamplesDescriptor::storage>("setStorageMode:")
      .sets<&SoftSamplesDescriptor::count>("setSampleCount:");
  define<SoftSamples>("MTLCounterSampleBuffer").on<&SoftSamples::resolveCounterRange>("resolveCounterRange:");
  define<SoftAttachment>("MTLComputePassSampleBufferAttachmentDescriptor")
      .sets<&SoftAttachment::samples>("setSampleBuffer:")
      .sets<&SoftAttachment::first>("setStartOfEncoderSampleIndex:")
      .sets<&SoftAttachment::last>("setEndOfEncoderSampleIndex:");
  define<SoftAttachments>("MTLComputePassSampleBufferAttachmentDescriptorArray")
      .on<&SoftAttachments::at>("objectAtIndexedSubscript:");
  define<SoftComputePass>("MTLComputePassDescriptor")
      .onClass<&SoftComputePass::make>("computePassDescriptor")
      .sets<&SoftComputePass::type>("setDispatchType:")
      .on<&SoftComputePass::attachments>("sampleBufferAttachments");
  define<SoftFence>("MTLFence");
}

}  // namespace softmetal
