// Measures which way to run a FlashDecode is the fastest on a device.
#pragma once
#include <memory>
#include <span>

#include "MLXNativeKernels/Device.hpp"
#include "Ops/FlashDecode/MeasuredTuning.hpp"

namespace mnk {

struct MeasuredFlashDecode {
  FlashDecodeWorkload workload;
  FlashDecodeChoice planned;  // without any measurement
  FlashDecodeChoice fastest;
  double plannedSeconds = 0;  // of one call
  double fastestSeconds = 0;
  uint64_t candidates = 0;
};

// `ops`, of which there is at least one, are of one workload and read caches of their own: they run in turn, so that
// what one reads is not in the device's caches when it is read again. Results are overwritten. No further candidate is
// tried after `budget` seconds of the device's time.
Result<MeasuredFlashDecode> measureFlashDecode(const std::shared_ptr<Device>& device, std::span<const FlashDecode> ops,
                                               double budget);

}  // namespace mnk
