#include "PlainAttention.hpp"

#include <algorithm>
#include <chrono>

#include "HostOptions.hpp"
#include "HostSubmission.hpp"
#include "MetalStdlib/Math.h"
#include "Timing.hpp"

#pragma clang diagnostic ignored "-Wpsabi"  // wide vectors stay inside always_inline functions

namespace mnk::bench {

namespace {

constexpr uint32_t kTile = 32;  // keys per step, as in the kernel
constexpr uint32_t kMaxHeadDim = 512;

inline float total(float sum) {
  return sum;
}
template <class V>
__attribute__((always_inline)) inline float total(V sum) {
  return total(sum.lo + sum.hi);
}

// `Width` floats fill a register. Blocking and online softmax match the kernel, for one query head at a time.
// With a `Rest`, the first `HeadDim` elements of a key are also its value.
template <int Width, uint32_t HeadDim, uint32_t Rest>
__attribute__((always_inline)) inline void attendSplit(const AttentionWork& work, uint64_t index) {
  typedef float Wide __attribute__((ext_vector_type(Width)));
  typedef _Float16 Narrow __attribute__((ext_vector_type(Width), aligned(2)));
  constexpr int kRegisters = HeadDim / Width, kRest = Rest / Width;
  const uint32_t kvHead = uint32_t(index % work.kvHeads);
  const uint32_t split = uint32_t(index / work.kvHeads);
  const uint32_t share = ((work.keyCount + work.splits - 1) / work.splits + kTile - 1) / kTile * kTile;
  const uint32_t begin = split * share;
  const uint32_t end = std::min(begin + share, work.keyCount);
  const size_t firstRow = size_t(kvHead) * work.capacity;
  const _Float16* values = static_cast<const _Float16*>(work.values) + firstRow * HeadDim;
  const _Float16* rest = static_cast<const _Float16*>(work.keys) + firstRow * Rest;
  const _Float16* keys = Rest ? values : static_cast<const _Float16*>(work.keys) + firstRow * HeadDim;

  for (uint32_t h = kvHead * work.queriesPerHead; h < (kvHead + 1) * work.queriesPerHead; ++h) {
    Wide query[kRegisters + kRest], sums[kRegisters];
    for (int i = 0; i < kRegisters + kRest; ++i) {
      for (int k = 0; k < Width; ++k) query[i][k] = work.queries[h * (HeadDim + Rest) + i * Width + k] * work.scale;
    }
    for (Wide& each : sums) each = 0.0f;
    float maximum = -INFINITY, sum = 0.0f;
    for (uint32_t tile = begin; tile < end; tile += kTile) {
      const uint32_t count = std::min(end - tile, kTile);
      float score[kTile], top = maximum;
      for (uint32_t j = 0; j < count; ++j) {
        const Narrow* row = reinterpret_cast<const Narrow*>(keys + size_t(tile + j) * HeadDim);
        const Narrow* behind = reinterpret_cast<const Narrow*>(rest + size_t(tile + j) * Rest);
        Wide products = 0.0f;
        for (int i = 0; i < kRegisters; ++i) {
          products = __builtin_elementwise_fma(query[i], __builtin_convertvector(row[i], Wide), products);
        }
        for (int i = 0; i < kRest; ++i) {
          products =
              __builtin_elementwise_fma(query[kRegisters + i], __builtin_convertvector(behind[i], Wide), products);
        }
        score[j] = total(products);
        top = std::max(top, score[j]);
      }
      const float shrink = metal::exp(maximum - top);
      maximum = top;
      sum *= shrink;
      for (int i = 0; i < kRegisters; ++i) sums[i] *= shrink;
      for (uint32_t j = 0; j < count; ++j) {
        score[j] = metal::exp(score[j] - maximum);
        sum += score[j];
      }
      for (uint32_t j = 0; j < count; ++j) {
        const Narrow* row = reinterpret_cast<const Narrow*>(values + size_t(tile + j) * HeadDim);
        for (int i = 0; i < kRegisters; ++i) {
          sums[i] = __builtin_elementwise_fma(__builtin_convertvector(row[i], Wide), (Wide)score[j], sums[i]);
        }
      }
    }
    const size_t at = size_t(h) * work.splits + split;
    for (int i = 0; i < kRegisters; ++i) {
      __builtin_memcpy(work.partial + at * HeadDim + i * Width, &sums[i], sizeof sums[i]);
    }
    work.state[at * 2] = maximum;
    work.state[at * 2 + 1] = sum;
  }
}

using Attend = void (*)(const AttentionWork& work, uint64_t index);

#if defined(__x86_64__)
template <uint32_t HeadDim, uint32_t Rest>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))) void attendAVX512(const AttentionWork& work,
                                                                                              uint64_t index) {
  attendSplit<16, HeadDim, Rest>(work, index);
}
template <uint32_t HeadDim, uint32_t Rest>
__attribute__((target("avx2,fma,f16c"))) void attendAVX2(const AttentionWork& work, uint64_t index) {
  attendSplit<8, HeadDim, Rest>(work, index);
}
#endif
template <uint32_t HeadDim, uint32_t Rest>
void attendBaseline(const AttentionWork& work, uint64_t index) {
  attendSplit<4, HeadDim, Rest>(work, index);
}

template <uint32_t HeadDim, uint32_t Rest = 0>
Attend attendHere() {
#if defined(__x86_64__)
  if (host::bestLevel() == HostOptions::Level::avx512) return &attendAVX512<HeadDim, Rest>;
  if (host::bestLevel() == HostOptions::Level::avx2) return &attendAVX2<HeadDim, Rest>;
#endif
  return &attendBaseline<HeadDim, Rest>;
}

Attend attendFor(uint64_t headDim, uint64_t latentDim) {
  if (latentDim != 0) return latentDim == kMaxHeadDim && headDim == 64 ? attendHere<kMaxHeadDim, 64>() : nullptr;
  switch (headDim) {
    case 64:
      return attendHere<64>();
    case 128:
      return attendHere<128>();
    case 256:
      return attendHere<256>();
    case kMaxHeadDim:
      return attendHere<kMaxHeadDim>();
    default:
      return nullptr;
  }
}

void reduceHead(const AttentionWork& work, uint64_t head) {
  const float* state = work.state + head * work.splits * 2;
  const uint32_t headDim = work.latentDim != 0 ? work.latentDim : work.headDim;
  float maximum = -INFINITY, sum = 0.0f, result[kMaxHeadDim] = {};
  for (uint32_t s = 0; s < work.splits; ++s) maximum = std::max(maximum, state[s * 2]);
  for (uint32_t s = 0; s < work.splits; ++s) {
    const float weight = metal::exp(state[s * 2] - maximum);
    sum += weight * state[s * 2 + 1];
    for (uint32_t i = 0; i < headDim; ++i) {
      result[i] += weight * work.partial[(head * work.splits + s) * headDim + i];
    }
  }
  for (uint32_t i = 0; i < headDim; ++i) work.output[head * headDim + i] = result[i] / sum;
}

void attendAll(const AttentionWork& work) {
  const Attend attend = attendFor(work.headDim, work.latentDim);
  host::runInParallel(uint64_t(work.kvHeads) * work.splits, work.workers, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) attend(work, i);
  });
  host::runInParallel(uint64_t(work.kvHeads) * work.queriesPerHead, work.workers, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) reduceHead(work, i);
  });
}

}  // namespace

bool PlainAttention::canRun(const DecodeCase& shape) {
  return attendFor(shape.headDim, shape.latentDim) != nullptr;
}

PlainAttention::PlainAttention(const DecodeCase& shape, uint32_t copies, uint32_t workers)
    : rows_(shape.rows), length_(shape.length) {
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
           .workers = workers ? workers : host::coreCount(),
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
    attendAll(work_);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mnk::bench
