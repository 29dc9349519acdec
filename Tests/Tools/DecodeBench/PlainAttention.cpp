#include "PlainAttention.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "DecodeProblem.hpp"
#include "WorkerPool.hpp"

namespace mnk::bench::decode {

PlainAttention::PlainAttention(const DecodeCase& shape, uint32_t copies) {
  const uint64_t elements = shape.heads() * shape.headDim;
  const auto splits = static_cast<uint32_t>(std::clamp<uint64_t>(shape.length / 256, 1, 8));
  const uint64_t cacheBytes = shape.kvHeads * shape.length * shape.headDim * 2;
  for (uint32_t i = 0; i < copies; ++i) {
    for (auto* planes : {&keys_, &values_}) {
      fillWithHalves(planes->emplace_back(cacheBytes).data(), cacheBytes, -1, 1);
    }
  }
  std::vector<_Float16> halves(elements);
  fillWithHalves(reinterpret_cast<std::byte*>(halves.data()), elements * 2, -3, 3);
  queries_.assign(halves.begin(), halves.end());
  partial_.resize(elements * splits);
  state_.resize(shape.heads() * splits * 2);
  output_.resize(elements);
  work_ = {.queries = queries_.data(),
           .partial = partial_.data(),
           .state = state_.data(),
           .output = output_.data(),
           .kvHeads = static_cast<uint32_t>(shape.kvHeads),
           .queriesPerHead = static_cast<uint32_t>(shape.group),
           .keyCount = static_cast<uint32_t>(shape.length),
           .capacity = static_cast<uint32_t>(shape.length),
           .splits = splits,
           .scale = 1 / std::sqrt(static_cast<float>(shape.headDim)),
           .workers = host::coreCount(),
           .headDim = static_cast<uint32_t>(shape.headDim)};
}

double PlainAttention::seconds() {
  work_.keys = keys_[next_].data();
  work_.values = values_[next_].data();
  next_ = (next_ + 1) % keys_.size();
  const auto start = std::chrono::steady_clock::now();
  runNativeAttention(work_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mnk::bench::decode
