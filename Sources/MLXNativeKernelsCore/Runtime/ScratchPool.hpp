// Memory that a device lends to encoders and gets back when the last user of a loan is gone, which is when its work has
// finished. What was in it before is left there.
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
  // At least so many bytes.
  Result<std::shared_ptr<Buffer>> lend(const std::shared_ptr<Device>& device, uint64_t bytes);

  // Buffers that nobody uses.
  size_t restingCount() const;

 private:
  std::shared_ptr<Buffer> takeResting(uint64_t bytes);
  void giveBack(std::shared_ptr<Buffer> buffer);

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Buffer>> resting_;
};

}  // namespace mnk
