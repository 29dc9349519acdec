#include "Devices/Metal/MetalBuffer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

constexpr uint64_t kMinBytes = 16;  // Metal cannot create an empty buffer

Error noMemory(uint64_t bytes, uint64_t most) {
  return metalError(ErrorCode::outOfMemory, "no memory for a buffer", countText(bytes, "byte"),
                    fmt::format("at most {}, and no more than is free", countText(most, "byte")),
                    "Ask for less, or free other buffers first.", bytes <= most);
}

}  // namespace

MetalBuffer::MetalBuffer(std::shared_ptr<Device> device, Owned<MTL::Buffer> native, uint64_t bytes)
    : Buffer(bytes),
      device_(std::move(device)),
      native_(std::move(native)),
      isUntracked_(native_->hazardTrackingMode() == MTL::HazardTrackingModeUntracked),
      // Metal's validation aborts a process that asks for the contents of private storage.
      contents_(native_->storageMode() == MTL::StorageModePrivate ? nullptr
                                                                  : static_cast<std::byte*>(native_->contents())) {
  // Two buffers over the same CPU memory have different GPU addresses. Private buffers have only a GPU address.
  const uint64_t begin = contents_ ? reinterpret_cast<uintptr_t>(contents_) : native_->gpuAddress();
  range_ = {contents_ ? nullptr : device_.get(), begin, begin + bytes};
  live_.begin(range_);
}

MetalBuffer::~MetalBuffer() {
  live_.end();
  const AutoreleasePool pool;
  native_.reset();
}

Result<std::shared_ptr<Buffer>> MetalBuffer::make(std::shared_ptr<Device> device, MTL::Device* native, uint64_t bytes,
                                                  bool isUndefined) {
  const AutoreleasePool pool;
  const uint64_t most = native->maxBufferLength();
  if (bytes > most) return noMemory(bytes, most);
  auto result = owned(native->newBuffer(std::max(bytes, kMinBytes), MTL::ResourceStorageModeShared));
  if (!result || !result->contents()) return noMemory(bytes, most);
  result->setLabel(nsText(fmt::format("MLXNativeKernels {}", bytesText(bytes))));
  // Metal does not promise zeros. Writing them takes memory for all pages at once.
  if (!isUndefined) std::memset(result->contents(), 0, bytes);
  return std::shared_ptr<Buffer>(std::make_shared<MetalBuffer>(std::move(device), std::move(result), bytes));
}

Result<std::shared_ptr<Buffer>> MetalBuffer::wrapMemory(std::shared_ptr<Device> device, MTL::Device* native,
                                                        void* memory, uint64_t bytes, std::function<void()> release) {
  const AutoreleasePool pool;
  Releasing atFailure(std::move(release));
  // Shared with the block that Metal calls. Runs once: in the block or when the last owner is destroyed.
  const auto releasing = std::make_shared<Releasing>(std::move(atFailure));
  if (memory && bytes == 0) return make(std::move(device), native, 0);
  const auto page = static_cast<uint64_t>(getpagesize());
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uint64_t most = native->maxBufferLength() / page * page;
  if (!memory || address % page != 0 || bytes > most) {
    std::string got =
        fmt::format("{} at an address {} past a page", countText(bytes, "byte"), countText(address % page, "byte"));
    return metalError(ErrorCode::invalidArgument, "memory cannot be wrapped",
                      memory ? std::move(got) : "a null pointer",
                      fmt::format("at most {} bytes that start at a page, which is {} bytes here", most, page),
                      "Allocate with mmap or vm_allocate, or make a tensor and copy.");
  }
  // Metal maps whole pages; bytes after the last one are never bound.
  const uint64_t mapped = (bytes + page - 1) / page * page;
  auto result = owned(native->newBuffer(memory, mapped, MTL::ResourceStorageModeShared, ^(void*, NS::UInteger) {
    releasing->run();
  }));
  if (!result || result->contents() != memory) {
    return metalError(ErrorCode::invalidArgument, "Metal cannot use this memory", countText(bytes, "byte"),
                      "whole pages of one region from mmap or vm_allocate",
                      "Allocate with mmap or vm_allocate, or make a tensor and copy.");
  }
  result->setLabel(nsText(fmt::format("MLXNativeKernels wrapped {}", bytesText(bytes))));
  return std::shared_ptr<Buffer>(std::make_shared<MetalBuffer>(std::move(device), std::move(result), bytes));
}

Result<std::shared_ptr<Buffer>> MetalBuffer::wrapNative(std::shared_ptr<Device> device, MTL::Device* native,
                                                        MTL::Buffer* buffer) {
  const AutoreleasePool pool;
  if (!buffer || buffer->device() != native) {
    return metalError(ErrorCode::invalidArgument, "the buffer cannot be wrapped",
                      buffer ? "a buffer of " + text(buffer->device()->name()) : "no buffer",
                      "a buffer of " + text(native->name()), "Make the buffer with the device that encodes.");
  }
  const MTL::StorageMode storage = buffer->storageMode();
  if (storage != MTL::StorageModeShared && storage != MTL::StorageModePrivate) {
    return metalError(ErrorCode::unsupported, "the buffer's storage mode is not handled",
                      storage == MTL::StorageModeManaged ? "managed storage" : "memoryless storage",
                      "shared or private storage", "Make the buffer with shared storage.");
  }
  const uint64_t bytes = buffer->length();
  return std::shared_ptr<Buffer>(std::make_shared<MetalBuffer>(std::move(device), retained(buffer), bytes));
}

}  // namespace mnk::metal
