#include "MLXNativeKernels/MetalDevice.hpp"

#include <TargetConditionals.h>

#include <cstdlib>
#include <cstring>

#include "Devices/Metal/MetalBuffer.hpp"
#include "Devices/Metal/MetalLibrary.hpp"
#include "Devices/Metal/MetalSubmission.hpp"
#include "Devices/Metal/MetalSupport.hpp"
#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

class MetalDevice final : public Device {
 public:
  MetalDevice(Owned<MTL::Device> device, Owned<MTL::CommandQueue> queue, Owned<MTL::Buffer> nothing,
              Owned<MTL::Fence> fence, const Options& options)
      : device_(std::move(device)),
        queue_(std::move(queue)),
        nothing_(std::move(nothing)),
        fence_(std::move(fence)),
        libraryPath_(options.libraryPath),
        usesEmbeddedText_(options.usesEmbeddedText),
        describesDispatches_(options.describesDispatches),
        name_(text(device_->name())),
        profile_(profileOf(device_.get())) {
    limits_.maxThreadsPerThreadgroup = static_cast<uint32_t>(device_->maxThreadsPerThreadgroup().width);
    limits_.maxThreadgroupMemoryBytes = static_cast<uint32_t>(device_->maxThreadgroupMemoryLength());
    limits_.simdgroupWidth = kSimdgroupWidth;
    limits_.maxBufferBytes = device_->maxBufferLength();
  }
  ~MetalDevice() override {
    const AutoreleasePool pool;
    fence_.reset();
    nothing_.reset();
    queue_.reset();
    device_.reset();
  }

  std::string_view kind() const override { return "metal"; }
  std::string name() const override { return name_; }
  const DeviceLimits& limits() const override { return limits_; }
  DeviceProfile basicProfile() const override { return profile_; }
  MTL::Device* native() const { return device_.get(); }
  MTL::CommandQueue* queue() const { return queue_.get(); }

  Result<std::shared_ptr<Buffer>> makeBuffer(uint64_t bytes) override {
    return guarded(kOp, [&] { return MetalBuffer::make(shared_from_this(), device_.get(), bytes); });
  }
  Result<std::shared_ptr<Buffer>> makeUndefinedBuffer(uint64_t bytes) override {
    return guarded(kOp, [&] { return MetalBuffer::make(shared_from_this(), device_.get(), bytes, true); });
  }
  Result<std::shared_ptr<Buffer>> wrapMemory(void* memory, uint64_t bytes, std::function<void()> release) override {
    return guarded(kOp, [&] {
      return MetalBuffer::wrapMemory(shared_from_this(), device_.get(), memory, bytes, std::move(release));
    });
  }
  Result<std::unique_ptr<Submission>> makeSubmission(std::string_view label) override {
    return guarded(kOp, [&] { return submission({}, label); });
  }

  Result<std::unique_ptr<Submission>> submission(Owned<MTL::CommandBuffer> appBuffer, std::string_view label) {
    return std::unique_ptr<Submission>(std::make_unique<MetalSubmission>(
        shared_from_this(),
        MetalSubmission::Target{nothing_, queue_, fence_, std::move(appBuffer), describesDispatches_}, label));
  }

 protected:
  Result<std::shared_ptr<Library>> makeShippedLibrary() override {
    const AutoreleasePool pool;
    return asLibrary(findShippedLibrary(device_.get(), libraryPath_, candidates(searchRoots()), usesEmbeddedText_));
  }
  Result<std::shared_ptr<Library>> makeLibrary(const LibrarySource& source) override {
    const AutoreleasePool pool;
    return asLibrary(makeUserLibrary(device_.get(), source));
  }
  Result<std::shared_ptr<Pipeline>> makePipeline(const std::shared_ptr<Library>& library,
                                                 const KernelKey& key) override {
    const AutoreleasePool pool;
    auto ours = std::dynamic_pointer_cast<MetalLibrary>(library);
    if (ours && ours->device() == device_.get()) {
      return MetalPipeline::make(device_.get(), std::move(ours), key);
    }
    return metalError(ErrorCode::invalidArgument, "the library is not of this device",
                      library ? std::string(library->label()) : "no library", "a library made by this device",
                      "Make the library with the device that runs it.");
  }

 private:
  template <typename Made>
  static Result<std::shared_ptr<Library>> asLibrary(Result<std::shared_ptr<Made>> result) {
    if (!result) return std::move(result).error();
    return std::shared_ptr<Library>(std::move(*result));
  }

  Owned<MTL::Device> device_;
  Owned<MTL::CommandQueue> queue_;
  Owned<MTL::Buffer> nothing_;
  Owned<MTL::Fence> fence_;
  std::string libraryPath_;
  bool usesEmbeddedText_;
  bool describesDispatches_;
  std::string name_;
  DeviceProfile profile_;
  DeviceLimits limits_;
};

Error notMetal(std::string_view what) {
  return metalError(ErrorCode::invalidArgument, what, "another kind of device", "a Metal device",
                    "Make the device with metal::makeDevice.");
}

bool isSet(const char* variable, std::string_view to) {
  const char* value = std::getenv(variable);
  return value && value == to;
}

}  // namespace

Result<std::shared_ptr<Device>> makeDevice(const Options& options) {
  return guarded(kOp, [&]() -> Result<std::shared_ptr<Device>> {
    const AutoreleasePool pool;
    MTL::Device* input = options.device ? options.device : options.queue ? options.queue->device() : nullptr;
    auto device = input ? retained(input) : owned(MTL::CreateSystemDefaultDevice());
    if (!device) {
      return metalError(ErrorCode::unsupported, "there is no GPU that Metal can use", "none", "a Metal device",
                        "Run where Metal is available, or use the Host device.");
    }
    if (options.queue && options.queue->device() != device.get()) {
      return metalError(ErrorCode::invalidArgument, "the queue belongs to another device",
                        "a queue of " + text(options.queue->device()->name()), "a queue of " + text(device->name()),
                        "Make the queue with the device that is passed.");
    }
    MNK_TRY(checkFeatures(device.get()));
    auto queue = options.queue ? retained(options.queue) : owned(device->newCommandQueue());
    auto nothing = owned(device->newBuffer(kNothingBytes, MTL::ResourceStorageModeShared));
    auto fence = owned(device->newFence());
    if (!queue || !nothing || !fence) {
      return metalError(ErrorCode::outOfMemory, "Metal gives no command queue or no memory", "none",
                        "a queue, a fence and a small buffer", "Release what is not needed, and try again.", true);
    }
    nothing->setLabel(nsText("MLXNativeKernels nothing"));
    std::memset(nothing->contents(), 0, kNothingBytes);
    if (!options.queue) queue->setLabel(nsText("MLXNativeKernels"));
    Options used = options;
    used.describesDispatches = options.describesDispatches || isSet("MNK_METAL_DESCRIBE", "1");
    used.usesEmbeddedText = options.usesEmbeddedText || isSet("MNK_METAL_LIBRARY", "embedded");
    return std::shared_ptr<Device>(
        std::make_shared<MetalDevice>(std::move(device), std::move(queue), std::move(nothing), std::move(fence), used));
  });
}

std::vector<std::shared_ptr<Device>> allDevices() {
  const AutoreleasePool pool;
  std::vector<std::shared_ptr<Device>> devices;
  const auto add = [&](const Options& options) {
    auto result = makeDevice(options);
    if (result) devices.push_back(std::move(*result));
  };
  const auto first = owned(MTL::CreateSystemDefaultDevice());
  if (first) add({.device = first.get(), .libraryPath = {}});
#if TARGET_OS_OSX
  const auto natives = owned(MTL::CopyAllDevices());
  const NS::UInteger count = natives ? natives->count() : 0;
  for (NS::UInteger i = 0; i < count; ++i) {
    auto* native = natives->object<MTL::Device>(i);
    if (native != first.get()) add({.device = native, .libraryPath = {}});
  }
#endif
  return devices;
}

Result<std::shared_ptr<Buffer>> wrapBuffer(const std::shared_ptr<Device>& device, MTL::Buffer* buffer) {
  return guarded(kOp, [&]() -> Result<std::shared_ptr<Buffer>> {
    const auto ours = std::dynamic_pointer_cast<MetalDevice>(device);
    if (!ours) return notMetal("an app's Metal buffer cannot be wrapped");
    return MetalBuffer::wrapNative(device, ours->native(), buffer);
  });
}

MTL::Buffer* nativeBuffer(const std::shared_ptr<Buffer>& buffer) {
  const auto* ours = dynamic_cast<const MetalBuffer*>(buffer.get());
  return ours ? ours->native() : nullptr;
}
MTL::Device* nativeDevice(const std::shared_ptr<Device>& device) {
  const auto* ours = dynamic_cast<const MetalDevice*>(device.get());
  return ours ? ours->native() : nullptr;
}
MTL::CommandQueue* nativeQueue(const std::shared_ptr<Device>& device) {
  const auto* ours = dynamic_cast<const MetalDevice*>(device.get());
  return ours ? ours->queue() : nullptr;
}

Result<std::unique_ptr<Submission>> makeSubmission(const std::shared_ptr<Device>& device,
                                                   MTL::CommandBuffer* commandBuffer, std::string_view label) {
  return guarded(kOp, [&]() -> Result<std::unique_ptr<Submission>> {
    const AutoreleasePool pool;
    const auto ours = std::dynamic_pointer_cast<MetalDevice>(device);
    if (!ours) return notMetal("an app's command buffer cannot be used");
    if (!commandBuffer || commandBuffer->device() != ours->native()) {
      return metalError(ErrorCode::invalidArgument, "the command buffer cannot be used",
                        commandBuffer ? "a command buffer of another device" : "no command buffer",
                        "a command buffer of this device", "Make the command buffer with a queue of this device.");
    }
    MNK_TRY(checkOpen(*commandBuffer));
    return ours->submission(retained(commandBuffer), label);
  });
}

}  // namespace mnk::metal
