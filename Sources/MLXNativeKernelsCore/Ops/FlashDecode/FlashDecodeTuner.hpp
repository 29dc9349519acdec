// Measures the fastest way to run a FlashDecode on a device.
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

// `ops` is not empty. All ops have the same workload but different KV caches: they run in rotation, so that no op finds
// its data in the GPU's caches. Results are overwritten. No further candidate is tried after `budget` seconds of device
// time.
Result<MeasuredFlashDecode> measureFlashDecode(const std::shared_ptr<Device>& device, std::span<const FlashDecode> ops,
                                               double budget);

}  // namespace mnk
