#include "HostBuffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <exception>

namespace mnk::host {

namespace {

// Where a buffer without bytes points: not null, so that it counts as bound.
alignas(64) std::byte nothing[64];

}  // namespace

HostBuffer::HostBuffer(std::shared_ptr<Device> device, void* memory, uint64_t bytes, std::function<void()> release)
    : Buffer(bytes),
      device_(std::move(device)),
      memory_(static_cast<std::byte*>(memory)),
      release_(std::move(release)) {}

HostBuffer::~HostBuffer() {
  if (!release_) return;
  try {
    release_();
  } catch (...) {  // the caller's code; there is nobody to tell
  }
}

MemoryRange HostBuffer::range() const {
  const uint64_t begin = reinterpret_cast<uintptr_t>(memory_);
  return {nullptr, begin, begin + length()};
}

Result<std::shared_ptr<Buffer>> HostBuffer::make(std::shared_ptr<Device> device, uint64_t bytes) {
  if (bytes == 0) return wrap(std::move(device), nothing, 0, {});
  void* memory = MAP_FAILED;
  if (bytes <= kMaxBufferBytes) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (memory == MAP_FAILED) {
    return Error{.code = ErrorCode::outOfMemory,
                 .op = "Host device",
                 .what = "no memory for a buffer",
                 .got = fmt::format("{} bytes", bytes),
                 .expected = fmt::format("at most {} bytes, and no more than the machine has free", kMaxBufferBytes),
                 .fix = "Ask for less, or free other buffers first.",
                 .retryable = bytes <= kMaxBufferBytes};
  }
  return wrap(std::move(device), memory, bytes, [memory, bytes] { munmap(memory, bytes); });
}

std::shared_ptr<Buffer> HostBuffer::wrap(std::shared_ptr<Device> device, void* memory, uint64_t bytes,
                                         std::function<void()> release) {
  return std::make_shared<HostBuffer>(std::move(device), memory, bytes, std::move(release));
}

}  // namespace mnk::host
