#include "MLXNativeKernels/HostDevice.hpp"

#include <fmt/core.h>

#include "Devices/HostFactory.hpp"
#include "Executor/Module.h"
#include "HostBuffer.hpp"
#include "HostOptions.hpp"
#include "HostPipeline.hpp"
#include "HostQueue.hpp"
#include "HostSubmission.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"
#include "ModuleCompiler.hpp"
#include "Processor.hpp"
#include "Shipped/ShippedKernels.hpp"
#include "Support/Errors.hpp"
#include "WorkerPool.hpp"

namespace mnk::host {

namespace {

constexpr std::string_view kOp = "Host device";

class HostDevice final : public Device {
 public:
  HostDevice(HostOptions options, std::unique_ptr<HostQueue> queue)
      : options_(std::move(options)), queue_(std::move(queue)) {
    limits_.maxThreadsPerThreadgroup = kMaxLanes;
    limits_.maxThreadgroupMemoryBytes = kMaxThreadgroupBytes;
    limits_.bufferIndices = kBufferIndices;
    limits_.threadgroupMemoryIndices = kThreadgroupIndices;
    limits_.maxBufferBytes = kMaxBufferBytes;
  }

  std::string_view kind() const override { return "host"; }
  std::string name() const override {
    return fmt::format("Host ({}, {}, {} worker{})", architectureName(), host::name(options_.level), workers(),
                       workers() == 1 ? "" : "s");
  }
  const DeviceLimits& limits() const override { return limits_; }
  DeviceProfile basicProfile() const override { return {.family = options_.family, .cores = workers()}; }

  Result<std::shared_ptr<Buffer>> makeBuffer(uint64_t bytes) override {
    return guarded(kOp, [&] {
      return HostBuffer::make(shared_from_this(), bytes, options_.checking != HostOptions::Checking::off);
    });
  }

  Result<std::shared_ptr<Buffer>> makeUndefinedBuffer(uint64_t bytes) override {
    return guarded(kOp, [&]() -> Result<std::shared_ptr<Buffer>> {
      MNK_TRY(auto buffer, makeBuffer(bytes));
      if (options_.checking != HostOptions::Checking::off) static_cast<HostBuffer&>(*buffer).makeUndefined();
      return buffer;
    });
  }

  Result<std::shared_ptr<Buffer>> wrapMemory(void* memory, uint64_t bytes, std::function<void()> release) override {
    Releasing releasing(std::move(release));
    return guarded(kOp, [&]() -> Result<std::shared_ptr<Buffer>> {
      if (!memory || bytes > kMaxBufferBytes) {
        return Error{.code = ErrorCode::invalidArgument,
                     .op = std::string(kOp),
                     .what = "memory cannot be wrapped",
                     .got = memory ? fmt::format("{} bytes", bytes) : "a null pointer",
                     .expected = fmt::format("a pointer to at most {} bytes", kMaxBufferBytes),
                     .fix = "Pass the address of memory that stays valid until it is released."};
      }
      return HostBuffer::wrap(shared_from_this(), memory, bytes, std::move(releasing));
    });
  }

  Result<std::unique_ptr<Submission>> makeSubmission(std::string_view label) override {
    return guarded(kOp, [&]() -> Result<std::unique_ptr<Submission>> {
      return std::unique_ptr<Submission>(
          std::make_unique<HostSubmission>(shared_from_this(), *queue_, options_, label));
    });
  }

 protected:
  Result<std::shared_ptr<Library>> makeShippedLibrary() override {
    linkShippedKernels();
    return linkedLibrary(kShippedLabel);
  }

  Result<std::shared_ptr<Library>> makeLibrary(const LibrarySource& source) override {
    MNK_TRY(auto library, compileLibrary(source, options_));
    return std::shared_ptr<Library>(std::move(library));
  }

  Result<std::shared_ptr<Pipeline>> makePipeline(const std::shared_ptr<Library>& library,
                                                 const KernelKey& key) override {
    auto ours = std::dynamic_pointer_cast<HostLibrary>(library);
    if (!ours) {
      return Error{.code = ErrorCode::invalidArgument,
                   .op = "Host device",
                   .what = "the library is not of a Host device",
                   .got = library ? std::string(library->label()) : "no library",
                   .expected = "a library made by a Host device",
                   .fix = "Make the library with the device that runs it."};
    }
    MNK_TRY(auto compiled, libraryFor(ours, key.function, options_));
    return HostPipeline::make(*ours, std::move(compiled), key, options_.level);
  }

 private:
  uint32_t workers() const { return options_.workers ? options_.workers : coreCount(); }

  HostOptions options_;  // with the level in use
  DeviceLimits limits_;
  std::unique_ptr<HostQueue> queue_;
};

}  // namespace

Result<std::shared_ptr<Device>> makeLinkedDevice(const HostOptions& options) {
  MNK_TRY(auto used, resolve(options));
  MNK_TRY(auto queue, HostQueue::make());
  return std::shared_ptr<Device>(std::make_shared<HostDevice>(std::move(used), std::move(queue)));
}

}  // namespace mnk::host

void mnk_register_host_device() {
  mnk::host::setFactory(&mnk::host::makeLinkedDevice);
}
