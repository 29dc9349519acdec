// Scratch memory that encoders acquire from a device. It returns to the pool when its last user is gone, that is when
// work has finished. What was in it before is left there.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "MLXNativeKernels/Buffer.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

class Device;

class ScratchPool : public std::enable_shared_from_this<ScratchPool> {
 public:
  // A buffer of at least `bytes`.
  Result<std::shared_ptr<Buffer>> acquire(const std::shared_ptr<Device>& device, uint64_t bytes);

  // Buffers that nobody uses.
  size_t restingCount() const;

 private:
  std::shared_ptr<Buffer> takeResting(uint64_t bytes);
  void giveBack(std::shared_ptr<Buffer> buffer);

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Buffer>> resting_;
};

}  // namespace mnk
