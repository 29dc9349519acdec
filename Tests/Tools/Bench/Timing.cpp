#include "Timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "HostSubmission.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::bench {

namespace {

constexpr size_t kPattern = 65521;  // prime

template <typename T>
std::vector<T> pattern(float least, float most) {
  std::vector<T> numbers(kPattern);
  uint32_t seed = 1;
  for (T& number : numbers) {
    seed = seed * 1664525 + 1013904223;
    number = static_cast<T>(least + (most - least) * static_cast<float>(seed >> 8) * 0x1p-24f);
  }
  return numbers;
}

template <typename T>
void fill(std::byte* memory, uint64_t bytes, const std::vector<T>& with) {
  for (uint64_t at = 0; at < bytes; at += with.size() * sizeof(T)) {
    std::memcpy(memory + at, with.data(), std::min<uint64_t>(with.size() * sizeof(T), bytes - at));
  }
}

}  // namespace

Tensor makeTensor(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents) {
  Tensor tensor = need(Tensor::zeros(device, dtype, need(Shape::make(extents))));
  std::memset(tensor.buffer()->contents(), 1, tensor.byteCount());
  return tensor;
}

Tensor makeFilled(const std::shared_ptr<Device>& device, DType dtype, std::initializer_list<uint64_t> extents,
                  float least, float most) {
  auto tensor = makeTensor(device, dtype, extents);
  std::byte* memory = tensor.buffer()->contents();
  const uint64_t bytes = tensor.byteCount();
  if (dtype == DType::f16) fill(memory, bytes, pattern<_Float16>(least, most));
  if (dtype == DType::f32) fill(memory, bytes, pattern<float>(least, most));
  if (dtype == DType::u8) fill(memory, bytes, pattern<uint8_t>(least, most));
  return tensor;
}

void fillWithHalves(std::byte* memory, uint64_t bytes, float least, float most) {
  fill(memory, bytes, pattern<_Float16>(least, most));
}

double secondsOf(const std::shared_ptr<Device>& device, const Plan& plan) {
  return secondsOfAll(device, std::span(&plan, 1));
}

double secondsOfAll(const std::shared_ptr<Device>& device, std::span<const Plan> plans) {
  CommandEncoder step(device);
  for (const Plan& plan : plans) need(step.encode(plan));
  return need(need(step.commit()).wait()).deviceSeconds;
}

std::vector<double> leastSeconds(uint32_t repetitions, const std::vector<TimedRun>& runs) {
  std::vector<double> least(runs.size(), INFINITY);
  for (uint32_t i = 0; i < repetitions; ++i) {
    for (size_t run = 0; run < runs.size(); ++run) {
      least[run] = std::min(least[run], runs[run]());
    }
  }
  return least;
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
