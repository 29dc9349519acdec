// Memory of the Metal device: its own shared storage, caller-owned memory, or the app's buffer.
#pragma once
#include <functional>

#include "Devices/Metal/MetalSupport.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "Runtime/WorkInFlight.hpp"

namespace mnk::metal {

class MetalBuffer final : public Buffer {
 public:
  static Result<std::shared_ptr<Buffer>> make(std::shared_ptr<Device> device, MTL::Device* native, uint64_t bytes,
                                              bool isUndefined = false);
  // `release` runs when Metal is done with the memory, or immediately if the call fails.
  static Result<std::shared_ptr<Buffer>> wrapMemory(std::shared_ptr<Device> device, MTL::Device* native, void* memory,
                                                    uint64_t bytes, std::function<void()> release);
  static Result<std::shared_ptr<Buffer>> wrapNative(std::shared_ptr<Device> device, MTL::Device* native,
                                                    MTL::Buffer* buffer);

  MetalBuffer(std::shared_ptr<Device> device, Owned<MTL::Buffer> native, uint64_t bytes);
  ~MetalBuffer() override;

  std::shared_ptr<Device> device() const override { return device_; }
  bool isOf(const Device& owner) const override { return device_.get() == &owner; }
  bool detach() override {
    device_.reset();
    return true;
  }
  void attach(std::shared_ptr<Device> device) override { device_ = std::move(device); }
  MemoryRange range() const override { return range_; }
  std::byte* contents() override { return contents_; }
  MTL::Buffer* native() const { return native_.get(); }
  bool isUntracked() const { return isUntracked_; }

 private:
  std::shared_ptr<Device> device_;
  Owned<MTL::Buffer> native_;
  bool isUntracked_;  // Metal does not order work on it
  std::byte* contents_;
  MemoryRange range_;
  LiveMemory live_;
};

}  // namespace mnk::metal
