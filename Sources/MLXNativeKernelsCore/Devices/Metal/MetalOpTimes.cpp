#include "MetalOpTimes.hpp"

#include <objc/message.h>
#include <objc/runtime.h>

#include <cstring>

namespace mnk::metal {

namespace {

// The largest sample buffer, at least on Apple GPUs.
constexpr size_t kMaxSamples = 32 * 1024 / sizeof(MTL::CounterResultTimestamp);

const MTL::CounterSet* timestamps(MTL::Device* device) {
  const NS::Array* sets = device->counterSets();
  for (NS::UInteger i = 0; sets && i < sets->count(); ++i) {
    const auto* set = sets->object<MTL::CounterSet>(i);
    if (text(set->name()) == "timestamp") return set;
  }
  return nullptr;
}

// metal-cpp has only -mutableBytes, which immutable data need not implement.
const void* bytes(const NS::Data* data) {
  return reinterpret_cast<const void* (*)(const void*, SEL)>(&objc_msgSend)(data, sel_registerName("bytes"));
}

}  // namespace

MetalOpTimes::Clocks MetalOpTimes::Clocks::now(MTL::Device* device) {
  Clocks clocks;
  device->sampleTimestamps(&clocks.processor, &clocks.gpu);
  return clocks;
}

std::shared_ptr<MetalOpTimes> MetalOpTimes::make(MTL::Device* device, std::vector<std::string> spans) {
  if (spans.empty() || spans.size() > kMaxSamples / 2) return nullptr;
  const bool betweenDispatches = device->supportsCounterSampling(MTL::CounterSamplingPointAtDispatchBoundary);
  if (!betweenDispatches && !device->supportsCounterSampling(MTL::CounterSamplingPointAtStageBoundary)) return nullptr;
  const MTL::CounterSet* set = timestamps(device);
  if (!set) return nullptr;
  const auto descriptor = owned(MTL::CounterSampleBufferDescriptor::alloc()->init());
  descriptor->setCounterSet(set);
  descriptor->setStorageMode(MTL::StorageModeShared);
  descriptor->setSampleCount(spans.size() * 2);
  auto times = std::make_shared<MetalOpTimes>();
  NS::Error* error = nullptr;
  times->samples_ = owned(device->newCounterSampleBuffer(descriptor.get(), &error));
  times->fence_ = owned(device->newFence());
  if (!times->samples_ || !times->fence_) return nullptr;
  for (const std::string& op : spans) {
    NS::String* name = nsText(op.empty() ? "Custom" : op);
    times->names_.push_back(retained(name ? name : nsText("a name that is not UTF-8")));
  }
  times->device_ = retained(device);
  times->spans_ = std::move(spans);
  times->hasPassPerSpan_ = !betweenDispatches;
  times->start_ = Clocks::now(device);
  return times;
}

MetalOpTimes::~MetalOpTimes() {
  const AutoreleasePool pool;
  names_.clear();
  fence_.reset();
  samples_.reset();
  device_.reset();
}

MTL::ComputeCommandEncoder* MetalOpTimes::makePass(MTL::CommandBuffer& commands, size_t span) const {
  auto* const pass = MTL::ComputePassDescriptor::computePassDescriptor();
  pass->setDispatchType(MTL::DispatchTypeConcurrent);
  auto* const attachment = pass->sampleBufferAttachments()->object(0);
  attachment->setSampleBuffer(samples_.get());
  attachment->setStartOfEncoderSampleIndex(span * 2);
  attachment->setEndOfEncoderSampleIndex(span * 2 + 1);
  auto* const encoder = commands.computeCommandEncoder(pass);
  if (encoder) encoder->setLabel(names_[span].get());
  return encoder;
}

void MetalOpTimes::begin(MTL::ComputeCommandEncoder& encoder, size_t span) const {
  if (!hasPassPerSpan_) {
    encoder.pushDebugGroup(names_[span].get());
    encoder.sampleCountersInBuffer(samples_.get(), span * 2, true);
  } else if (span > 0) {
    encoder.waitForFence(fence_.get());
  }
}

void MetalOpTimes::end(MTL::ComputeCommandEncoder& encoder, size_t span) const {
  if (!hasPassPerSpan_) {
    encoder.sampleCountersInBuffer(samples_.get(), span * 2 + 1, true);
    encoder.popDebugGroup();
  } else if (span + 1 < spans_.size()) {
    encoder.updateFence(fence_.get());
  }
}

std::map<std::string, double> MetalOpTimes::seconds() const {
  std::vector<MTL::CounterResultTimestamp> results(spans_.size() * 2);
  const size_t size = results.size() * sizeof results[0];
  const NS::Data* data = samples_->resolveCounterRange(NS::Range(0, results.size()));
  if (!data || data->length() < size) return {};
  std::memcpy(results.data(), bytes(data), size);

  const Clocks end = Clocks::now(device_.get());
  if (end.gpu <= start_.gpu || end.processor <= start_.processor) return {};
  const double secondsPerTick =
      static_cast<double>(end.processor - start_.processor) / static_cast<double>(end.gpu - start_.gpu) * 1e-9;
  std::map<std::string, double> sums;
  for (size_t span = 0; span < spans_.size(); ++span) {
    const uint64_t from = results[span * 2].timestamp, to = results[span * 2 + 1].timestamp;
    constexpr uint64_t kError = UINT64_MAX;  // MTLCounterErrorValue
    // Some systems leave zeros for samples that were not taken.
    if (from == 0 || from == kError || to == kError || to < from) return {};
    sums[spans_[span]] += static_cast<double>(to - from) * secondsPerTick;
  }
  return sums;
}

}  // namespace mnk::metal
