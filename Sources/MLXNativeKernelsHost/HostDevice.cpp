#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "Checking/CheckedRun.hpp"
#include "Devices/HostFactory.hpp"
#include "Executor/Fiber.h"
#include "Executor/Module.h"
#include "HostBuffer.hpp"
#include "HostLibrary.hpp"
#include "HostOptions.hpp"
#include "HostSubmission.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"
#include "Shipped/ShippedKernels.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

namespace {

// The address of a buffer without bytes: not null, so that it counts as bound.
alignas(64) std::byte nothing[64];

// More than a vector needs for its alignment. The buffer behind it is aligned to 4 KiB, which is not a page on systems
// with pages of 16 KiB.
constexpr uint64_t kCanaryBytes = 4096;
constexpr std::byte kCanary{0xC5};

// All bytes are equal if each equals the next: a single memcmp, fast even in a debug build.
bool isIntact(const std::byte* canary) {
  return *canary == kCanary && std::memcmp(canary, canary + 1, kCanaryBytes - 1) == 0;
}

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
        return hostError(ErrorCode::invalidArgument, "memory cannot be wrapped",
                         memory ? fmt::format("{} bytes", bytes) : "a null pointer",
                         fmt::format("a pointer to at most {} bytes", kMaxBufferBytes),
                         "Pass the address of memory that stays valid until it is released.");
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
  Result<std::shared_ptr<Library>> makeShippedLibrary() override { return linkedLibrary(kShippedLabel); }

  Result<std::shared_ptr<Library>> makeLibrary(const LibrarySource& source) override {
    MNK_TRY(auto library, compileLibrary(source, options_));
    return std::shared_ptr<Library>(std::move(library));
  }

  Result<std::shared_ptr<Pipeline>> makePipeline(const std::shared_ptr<Library>& library,
                                                 const KernelKey& key) override {
    auto ours = std::dynamic_pointer_cast<HostLibrary>(library);
    if (!ours) {
      return hostError(ErrorCode::invalidArgument, "the library is not of a Host device",
                       library ? std::string(library->label()) : "no library", "a library made by a Host device",
                       "Make the library with the device that runs it.");
    }
    auto compiled = ours;
    if (options_.checking == HostOptions::Checking::full || options_.perturbsResults) {
      MNK_TRY(compiled, libraryFor(ours, key.function, options_));
    }
    return HostPipeline::make(*ours, std::move(compiled), key, options_.level);
  }

 private:
  uint32_t workers() const { return options_.workers ? options_.workers : coreCount(); }

  HostOptions options_;  // with the level in use
  DeviceLimits limits_;
  std::unique_ptr<HostQueue> queue_;
};

}  // namespace

HostBuffer::HostBuffer(std::shared_ptr<Device> device, void* memory, uint64_t bytes, Releasing release)
    : Buffer(bytes),
      device_(std::move(device)),
      memory_(static_cast<std::byte*>(memory)),
      release_(std::move(release)) {
  live_.begin(range());
}

HostBuffer::~HostBuffer() {
  live_.end();
  release_.run();
}

MemoryRange HostBuffer::range() const {
  const uint64_t begin = reinterpret_cast<uintptr_t>(memory_);
  return {nullptr, begin, begin + length()};
}

std::optional<int64_t> HostBuffer::brokenCanary() const {
  if (!hasCanaries_) return std::nullopt;
  sanitizer::allow(memory_ - kCanaryBytes, length() + 2 * kCanaryBytes);
  std::optional<int64_t> broken;
  for (const int64_t begin : {-int64_t(kCanaryBytes), static_cast<int64_t>(length())}) {
    std::byte* const canary = memory_ + begin;
    if (isIntact(canary)) continue;
    const auto* const first = std::find_if(canary, canary + kCanaryBytes, [](std::byte b) { return b != kCanary; });
    if (!broken) broken = begin + (first - canary);
    std::fill_n(canary, kCanaryBytes, kCanary);
  }
  forbidCanaries();
  return broken;
}

void HostBuffer::forbidCanaries() const {
  sanitizer::forbid(memory_ - kCanaryBytes, kCanaryBytes);
  sanitizer::forbid(memory_ + length(), kCanaryBytes);
}

void HostBuffer::makeUndefined() {
  const MemoryRange all = range();
  unwritten_.add(all.begin, all.end);
  poison(unwritten_);
  isUndefined_ = true;
}

ByteRanges HostBuffer::unwritten() const {
  if (!isUndefined_) return {};
  std::lock_guard lock(mutex_);
  return unwritten_;
}

void HostBuffer::noteWritten(const ByteRanges& addresses) {
  if (!isUndefined_) return;
  std::lock_guard lock(mutex_);
  unwritten_ = unwritten_.without(addresses);
  isUndefined_ = !unwritten_.ranges().empty();
}

Result<void> HostBuffer::copyIn(uint64_t offset, std::span<const std::byte> from) {
  auto copied = Buffer::copyIn(offset, from);
  if (copied && isUndefined_) {
    ByteRanges written;
    written.add(range().begin + offset, range().begin + offset + from.size());
    noteWritten(written);
  }
  return copied;
}

Result<std::shared_ptr<Buffer>> HostBuffer::make(std::shared_ptr<Device> device, uint64_t bytes, bool withCanaries) {
  if (bytes == 0) return wrap(std::move(device), nothing, 0, Releasing({}));
  const uint64_t margin = withCanaries ? kCanaryBytes : 0;
  const uint64_t mapped = bytes + 2 * margin;
  void* memory = MAP_FAILED;
  if (bytes <= kMaxBufferBytes) {
    memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (memory == MAP_FAILED) {
    return hostError(ErrorCode::outOfMemory, "no memory for a buffer", fmt::format("{} bytes", bytes),
                     fmt::format("at most {} bytes, and no more than the machine has free", kMaxBufferBytes),
                     "Ask for less, or free other buffers first.", bytes <= kMaxBufferBytes);
  }
  Releasing unmapping([memory, mapped] {
    sanitizer::allow(memory, mapped);
    munmap(memory, mapped);
  });
  auto* start = static_cast<std::byte*>(memory) + margin;
  auto buffer = std::make_shared<HostBuffer>(std::move(device), start, bytes, std::move(unmapping));
  if (withCanaries) {
    std::fill_n(start - margin, margin, kCanary);
    std::fill_n(start + bytes, margin, kCanary);
    buffer->hasCanaries_ = true;
    buffer->forbidCanaries();
  }
  return std::shared_ptr<Buffer>(std::move(buffer));
}

std::shared_ptr<Buffer> HostBuffer::wrap(std::shared_ptr<Device> device, void* memory, uint64_t bytes,
                                         Releasing release) {
  return std::make_shared<HostBuffer>(std::move(device), memory, bytes, std::move(release));
}

Result<std::shared_ptr<Device>> makeLinkedDevice(const HostOptions& options) {
  MNK_TRY(auto used, resolve(options));
  MNK_TRY(auto queue, HostQueue::make());
  return std::shared_ptr<Device>(std::make_shared<HostDevice>(std::move(used), std::move(queue)));
}

}  // namespace mnk::host

void mnk_register_host_device() {
  mnk::host::setFactory(&mnk::host::makeLinkedDevice);
}
