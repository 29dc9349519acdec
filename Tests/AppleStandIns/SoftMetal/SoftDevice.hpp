// MTLDevice and MTLBuffer. A device owns a Host device, which wraps the memory of its buffers.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"
#include "MetalCpp.hpp"
#include "SoftFoundation.hpp"

namespace softmetal {

struct SoftBuffer;
struct SoftCommandQueue;
struct SoftCompileOptions;
struct SoftFunction;
struct SoftLibrary;
struct SoftPipeline;
struct SoftPipelineDescriptor;
struct SoftReflection;
struct SoftData;
struct SoftFence;
struct SoftSamples;
struct SoftSamplesDescriptor;
using Deallocator = void (^)(void*, NS::UInteger);

struct SoftDevice : Object {
  DeviceDescription about;
  size_t number = 0;
  std::shared_ptr<mnk::Device> host;

  // The device at this index in the machine's list, with a reference for the caller.
  static SoftDevice* get(size_t number);
  void finish();
  bool supports(int64_t family) const;

  Object* name() { return pooledString(about.name); }
  uint64_t registryID() { return 0x5000 + number; }
  bool supportsFamily(MTL::GPUFamily family) { return supports(family); }
  NS::UInteger maxBufferLength() { return about.maxBufferLength; }
  NS::UInteger maxThreadgroupMemoryLength() { return about.maxThreadgroupMemoryLength; }
  MTL::Size maxThreadsPerThreadgroup();

  SoftBuffer* newBuffer(NS::UInteger length, MTL::ResourceOptions options);
  SoftBuffer* newBufferWithBytes(const void* bytes, NS::UInteger length, MTL::ResourceOptions options);
  SoftBuffer* newBufferNoCopy(void* memory, NS::UInteger length, MTL::ResourceOptions options, Deallocator deallocator);
  SoftArray* counterSets();
  bool supportsCounterSampling(MTL::CounterSamplingPoint point);
  void sampleTimestamps(MTL::Timestamp* processor, MTL::Timestamp* gpu);
  SoftSamples* newSamples(SoftSamplesDescriptor* descriptor, SoftError** error);
  SoftFence* newFence();
  SoftCommandQueue* newCommandQueue();
  SoftLibrary* newLibraryWithURL(SoftURL* url, SoftError** error);
  SoftLibrary* newLibraryWithSource(Object* source, SoftCompileOptions* options, SoftError** error);
  SoftPipeline* newPipeline(SoftFunction* function, SoftError** error);
  SoftPipeline* newPipelineDescribed(SoftPipelineDescriptor* descriptor, MTL::PipelineOption options,
                                     SoftReflection** reflection, SoftError** error);
};

// MTLCounterSampleBuffer; SoftCounters.cpp has the code that fills it.
struct SoftSamples : Object {
  Ref<SoftDevice> owner;
  std::vector<uint64_t> values;

  void finish();
  SoftData* resolveCounterRange(NS::Range range);
};

class BufferMemory;

struct SoftBuffer : Object {
  Ref<SoftDevice> owner;
  std::shared_ptr<BufferMemory> memory;
  std::shared_ptr<mnk::Buffer> host;
  uint64_t bytes = 0;
  MTL::ResourceOptions options = 0;

  void finish();
  bool isUntracked() const { return MTL::HazardTrackingMode(options >> 8 & 3) == MTL::HazardTrackingModeUntracked; }

  void* contents();
  uint64_t gpuAddress();
  MTL::StorageMode storageMode() { return MTL::StorageMode(options >> 4 & 15); }
  // The default of a buffer that is not on a heap is tracked.
  MTL::HazardTrackingMode hazardTrackingMode() {
    return isUntracked() ? MTL::HazardTrackingModeUntracked : MTL::HazardTrackingModeTracked;
  }
};

}  // namespace softmetal
