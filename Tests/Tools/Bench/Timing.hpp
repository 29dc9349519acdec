// What benchmarks share: timing of plans and of a plain copy.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::bench {

// A tensor whose pages are all allocated.
Result<Tensor> makeTensor(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents);
// Runs the plan alone and returns the device time.
Result<double> secondsOf(const std::shared_ptr<Device>& device, const Plan& plan);
// Runs the plans in one submission and returns the device time for all of them.
Result<double> secondsOfAll(const std::shared_ptr<Device>& device, std::span<const Plan> plans);
double median(std::vector<double> values);  // 0 for an empty list
// memcpy by `workers` threads.
double copySeconds(const Tensor& into, const Tensor& from, uint32_t workers);

}  // namespace mnk::bench
