#include "PlainAttention.hpp"

#include <algorithm>
#include <chrono>

#include "DecodeProblem.hpp"
#include "WorkerPool.hpp"

namespace mnk::bench::decode {

PlainAttention::PlainAttention(const DecodeCase& shape, uint32_t copies) : rows_(shape.rows), length_(shape.length) {
  const uint64_t elements = shape.heads() * shape.valueDim();
  const auto splits = static_cast<uint32_t>(std::clamp<uint64_t>(shape.length / 256, 1, 8));
  for (uint32_t i = 0; i < copies; ++i) {
    for (const auto& [planes, headDim] : {std::pair(&keys_, shape.headDim), std::pair(&values_, shape.valueDim())}) {
      const uint64_t bytes = shape.kvHeads * shape.length * headDim * 2;
      fillWithHalves(planes->emplace_back(bytes).data(), bytes, -1, 1);
    }
  }
  std::vector<_Float16> halves(shape.rows * shape.heads() * shape.queryDim());
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
           .scale = shape.scale(),
           .workers = host::coreCount(),
           .headDim = static_cast<uint32_t>(shape.headDim),
           .latentDim = static_cast<uint32_t>(shape.latentDim)};
}

double PlainAttention::seconds() {
  work_.keys = keys_[next_].data();
  work_.values = values_[next_].data();
  next_ = (next_ + 1) % keys_.size();
  const auto start = std::chrono::steady_clock::now();
  const uint64_t elements = output_.size() / rows_;
  for (uint64_t row = 0; row < rows_; ++row) {
    work_.queries = queries_.data() + row * (queries_.size() / rows_);
    work_.output = output_.data() + row * elements;
    work_.keyCount = static_cast<uint32_t>(length_ - rows_ + row + 1);
    runNativeAttention(work_);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mnk::bench::decode
