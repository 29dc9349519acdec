// What benchmarks of the Host device share: the time of a plan, and that of a plain copy to compare it with.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::bench {

// A tensor whose pages all exist.
Result<Tensor> makeTensor(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents);
// Runs the plan by itself; the device's own time.
Result<double> secondsOf(const std::shared_ptr<Device>& device, const Plan& plan);
// memcpy by so many threads.
double copySeconds(const Tensor& into, const Tensor& from, uint32_t workers);

}  // namespace mnk::bench
