// What benchmarks share: the time of plans, and that of a plain copy to compare it with.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::bench {

// A tensor whose pages all exist.
Result<Tensor> makeTensor(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents);
// Runs the plan by itself; the device's own time.
Result<double> secondsOf(const std::shared_ptr<Device>& device, const Plan& plan);
// Runs the plans in one submission; the device's own time for all of them.
Result<double> secondsOfAll(const std::shared_ptr<Device>& device, std::span<const Plan> plans);
double median(std::vector<double> values);  // 0 without values
// memcpy by so many threads.
double copySeconds(const Tensor& into, const Tensor& from, uint32_t workers);

}  // namespace mnk::bench
