// Memory of the Host device: its own pages, or the caller's bytes.
#pragma once
#include <functional>

#include "MLXNativeKernels/Device.hpp"

namespace mnk::host {

inline constexpr uint64_t kMaxBufferBytes = uint64_t(1) << 40;

class HostBuffer final : public Buffer {
 public:
  static Result<std::shared_ptr<Buffer>> make(std::shared_ptr<Device> device, uint64_t bytes);
  static std::shared_ptr<Buffer> wrap(std::shared_ptr<Device> device, void* memory, uint64_t bytes,
                                      std::function<void()> release);

  HostBuffer(std::shared_ptr<Device> device, void* memory, uint64_t bytes, std::function<void()> release);
  ~HostBuffer() override;

  std::shared_ptr<Device> device() const override { return device_; }
  MemoryRange range() const override;
  std::byte* contents() override { return memory_; }

 private:
  std::shared_ptr<Device> device_;
  std::byte* memory_;
  std::function<void()> release_;
};

}  // namespace mnk::host
