#include "Timing.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "WorkerPool.hpp"

namespace mnk::bench {

Result<Tensor> makeTensor(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents) {
  auto shape = Shape::make(extents);
  if (!shape) return std::move(shape).error();
  auto tensor = Tensor::zeros(device, dtype, *shape);
  if (tensor) std::memset(tensor->buffer()->contents(), 1, tensor->byteCount());
  return tensor;
}

Result<double> secondsOf(const std::shared_ptr<Device>& device, const Plan& plan) {
  return secondsOfAll(device, std::span(&plan, 1));
}

Result<double> secondsOfAll(const std::shared_ptr<Device>& device, std::span<const Plan> plans) {
  CommandEncoder step(device);
  for (const Plan& plan : plans) {
    if (auto encoded = step.encode(plan); !encoded) return std::move(encoded).error();
  }
  auto done = step.commit();
  if (!done) return std::move(done).error();
  auto summary = done->wait();
  if (!summary) return std::move(summary).error();
  return summary->deviceSeconds;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double copySeconds(const Tensor& into, const Tensor& from, uint32_t workers) {
  constexpr uint64_t kPart = 64 * 1024;
  const uint64_t bytes = into.byteCount();
  std::byte* to = into.buffer()->contents();
  const std::byte* source = from.buffer()->contents();
  const auto start = std::chrono::steady_clock::now();
  host::runInParallel((bytes + kPart - 1) / kPart, workers, [&](uint64_t begin, uint64_t end) {
    std::memcpy(to + begin * kPart, source + begin * kPart, std::min(end * kPart, bytes) - begin * kPart);
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mnk::bench
