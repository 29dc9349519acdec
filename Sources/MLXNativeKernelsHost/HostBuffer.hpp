// Memory of the Host device: its own pages or caller-owned bytes.
#pragma once
#include <atomic>
#include <mutex>
#include <optional>

#include "MLXNativeKernels/Device.hpp"
#include "Runtime/WorkInFlight.hpp"
#include "Support/Bytes.hpp"

namespace mnk::host {

inline constexpr uint64_t kMaxBufferBytes = uint64_t(1) << 40;

class HostBuffer final : public Buffer {
 public:
  // Canaries are bytes before and after the buffer that must not change.
  static Result<std::shared_ptr<Buffer>> make(std::shared_ptr<Device> device, uint64_t bytes, bool withCanaries);
  // Poisons the bytes, which nothing has written so far.
  void makeUndefined();
  static std::shared_ptr<Buffer> wrap(std::shared_ptr<Device> device, void* memory, uint64_t bytes, Releasing release);

  HostBuffer(std::shared_ptr<Device> device, void* memory, uint64_t bytes, Releasing release);
  ~HostBuffer() override;

  std::shared_ptr<Device> device() const override { return device_; }
  bool isOf(const Device& owner) const override { return device_.get() == &owner; }
  bool detach() override {
    device_.reset();
    return true;
  }
  void attach(std::shared_ptr<Device> device) override { device_ = std::move(device); }
  MemoryRange range() const override;
  std::byte* contents() override { return memory_; }

  // The first canary byte that changed, relative to the buffer's start. Writes it again, so that later dispatches are
  // not blamed for it.
  std::optional<int64_t> brokenCanary() const;

  // Addresses of undefined bytes that nothing has written, and the removal of those that were.
  ByteRanges unwritten() const;
  void noteWritten(const ByteRanges& addresses);

 protected:
  Result<void> copyIn(uint64_t offset, std::span<const std::byte> from) override;

 private:
  void forbidCanaries() const;  // AddressSanitizer then reports accesses to them

  std::shared_ptr<Device> device_;
  std::byte* memory_;
  bool hasCanaries_ = false;
  std::atomic<bool> isUndefined_ = false;  // some of its bytes are
  mutable std::mutex mutex_;
  ByteRanges unwritten_;  // under the mutex
  Releasing release_;
  LiveMemory live_;
};

}  // namespace mnk::host
