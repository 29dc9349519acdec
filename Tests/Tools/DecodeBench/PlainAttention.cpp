#include "PlainAttention.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "DecodeProblem.hpp"
#include "WorkerPool.hpp"

namespace mnk::bench::decode {

PlainAttention::PlainAttention(const DecodeCase& shape, uint32_t copies) : rows_(shape.rows), length_(shape.length) {
  const uint64_t elements = shape.heads() * shape.headDim;
  const auto splits = static_cast<uint32_t>(std::clamp<uint64_t>(shape.length / 256, 1, 8));
  const uint64_t cacheBytes = shape.kvHeads * shape.length * shape.headDim * 2;
  for (uint32_t i = 0; i < copies; ++i) {
    for (auto* planes : {&keys_, &values_}) {
      fillWithHalves(planes->emplace_back(cacheBytes).data(), cacheBytes, -1, 1);
    }
  }
  std::vector<_Float16> halves(shape.rows * elements);
  fillWithHalves(reinterpret_cast<std::byte*>(halves.data()), halves.size() * 2, -3, 3);
  queries_.assign(halves.begin(), halves.end());
  partial_.resize(elements * splits);
  state_.resize(shape.heads() * splits * 2);
  output_.resize(shape.rows * elements);
  work_ = {.partial = partial_.data(),
           .state = state_.data(),
           .kvHeads = static_cast<uint32_t>(shape.kvHeads),
           .queriesPerHead = static_cast<uint32_t>(shape.group),
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
  const uint64_t elements = output_.size() / rows_;
  for (uint64_t row = 0; row < rows_; ++row) {
    work_.queries = queries_.data() + row * elements;
    work_.output = output_.data() + row * elements;
    work_.keyCount = static_cast<uint32_t>(length_ - rows_ + row + 1);
    runNativeAttention(work_);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mnk::bench::decode
