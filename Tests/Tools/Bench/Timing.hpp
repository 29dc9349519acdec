// What benchmarks share: tensors, and timing of plans and of a plain copy; and the benchmarks of ops.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "Support/Errors.hpp"

namespace mnk::bench {

inline constexpr uint32_t kRepetitions = 30;

// The value of a result. An error is thrown, which ends the benchmark that it is in.
template <typename T>
T need(Result<T> result) {
  if (!result) throw std::move(result).error();
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// A tensor whose pages are all allocated.
Tensor makeTensor(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents);
// It repeats a pattern of numbers whose length is coprime to a vector's, of f16, f32 or u8.
Tensor makeFilled(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents,
                  float least, float most);
void fillWithHalves(std::byte* memory, uint64_t bytes, float least, float most);

// Runs the plan alone and returns the device time.
double secondsOf(const std::shared_ptr<Device>& device, const Plan& plan);
// Runs the plans in one submission and returns the device time for all of them.
double secondsOfAll(const std::shared_ptr<Device>& device, std::span<const Plan> plans);
// The least time of each of interleaved runs.
using TimedRun = std::function<double()>;
std::vector<double> leastSeconds(uint32_t repetitions, const std::vector<TimedRun>& runs);
double median(std::vector<double> values);  // 0 for an empty list
// memcpy by `workers` threads.
double copySeconds(const Tensor& into, const Tensor& from, uint32_t workers);

// Each op on the Host device against memcpy of the same number of bytes by the same number of threads; the least of
// interleaved runs.
void benchOps();
// The CPU cost of encoding a layer of a decode step: rotate, append, attend.
void benchLayer();

}  // namespace mnk::bench
