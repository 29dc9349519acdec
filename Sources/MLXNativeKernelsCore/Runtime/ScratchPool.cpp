#include "Runtime/ScratchPool.hpp"

#include <algorithm>

#include "MLXNativeKernels/Device.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// Sizes are rounded up, so that a buffer still fits when the context grows.
constexpr uint64_t kUnit = 64 * 1024;
constexpr uint64_t kLargestKept = 64 * 1024 * 1024;  // larger buffers are freed
constexpr size_t kMaxKept = 4;                       // steps in flight, plus one

}  // namespace

std::shared_ptr<Buffer> ScratchPool::takeResting(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto fits = std::find_if(resting_.begin(), resting_.end(),
                                 [&](const std::shared_ptr<Buffer>& buffer) { return buffer->length() >= bytes; });
  if (fits == resting_.end()) return nullptr;
  std::shared_ptr<Buffer> taken = std::move(*fits);
  resting_.erase(fits);
  return taken;
}

Result<std::shared_ptr<Buffer>> ScratchPool::acquire(const std::shared_ptr<Device>& device, uint64_t bytes) {
  std::shared_ptr<Buffer> buffer = takeResting(bytes);
  if (buffer) {
    buffer->attach(device);
  } else {
    const uint64_t rounded = bytes <= kLargestKept ? (bytes + kUnit - 1) / kUnit * kUnit : bytes;
    MNK_TRY(auto created, device->makeBuffer(rounded));
    buffer = std::move(created);
  }
  Buffer* acquired = buffer.get();
  return std::shared_ptr<Buffer>(acquired, [pool = weak_from_this(), owned = std::move(buffer)](Buffer*) mutable {
    // The buffer may hold the last reference to the device, which owns the pool.
    const std::shared_ptr<Device> device = owned->device();
    if (const auto open = pool.lock()) open->giveBack(std::move(owned));
    owned.reset();
  });
}

void ScratchPool::giveBack(std::shared_ptr<Buffer> buffer) {
  if (buffer->length() > kLargestKept || !buffer->detach()) return;
  std::shared_ptr<Buffer> dropped;  // freed after the lock is released
  std::lock_guard lock(mutex_);
  // Drops the smallest buffers first, because they fit the fewest plans.
  const auto place = std::lower_bound(resting_.begin(), resting_.end(), buffer->length(),
                                      [](const auto& a, uint64_t length) { return a->length() < length; });
  try {
    resting_.insert(place, std::move(buffer));
  } catch (const std::bad_alloc&) {
    return;  // it goes back to the system
  }
  if (resting_.size() <= kMaxKept) return;
  dropped = std::move(resting_.front());
  resting_.erase(resting_.begin());
}

size_t ScratchPool::idleCount() const {
  std::lock_guard lock(mutex_);
  return resting_.size();
}

}  // namespace mnk
