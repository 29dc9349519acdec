// A device's pool of scratch buffers. A buffer returns to the pool when its last user releases it, that is, when the
// work has finished. Its contents are not cleared.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

class Device;

class ScratchPool : public std::enable_shared_from_this<ScratchPool> {
 public:
  // A buffer of at least `bytes`.
  Result<std::shared_ptr<Buffer>> acquire(const std::shared_ptr<Device>& device, uint64_t bytes);

  // The number of unused buffers.
  size_t idleCount() const;

 private:
  std::shared_ptr<Buffer> takeResting(uint64_t bytes);
  void giveBack(std::shared_ptr<Buffer> buffer);

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Buffer>> resting_;
};

}  // namespace mnk
