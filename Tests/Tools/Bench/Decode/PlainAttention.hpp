// The same attention as ordinary vectorized C++ over an f16 cache, whichever storage is measured, on the Host device's
// worker threads: the baseline for the device's speed.
#pragma once
#include <vector>

#include "Decode.hpp"

namespace mnk::bench {

struct AttentionWork {
  const float* queries;
  const void* keys;  // f16, and so are values
  const void* values;
  float* partial;
  float* state;
  float* output;
  uint32_t kvHeads, queriesPerHead, keyCount, capacity, splits;
  float scale;
  uint32_t workers, headDim;
  uint32_t latentDim;  // of values that are the first part of keys too; `headDim` is then the rest of a key
};

class PlainAttention {
 public:
  // It supports head dimensions 64, 128, 256 and 512, or 64 behind 512.
  static bool canRun(const DecodeCase& shape);

  // 0 workers: one per core. Rows attend one after another.
  PlainAttention(const DecodeCase& shape, uint32_t copies, uint32_t workers);
  PlainAttention(const PlainAttention&) = delete;
  PlainAttention& operator=(const PlainAttention&) = delete;

  double seconds();  // of one run; each run uses the next copy of the cache
  const std::vector<float>& output() const { return output_; }

 private:
  std::vector<std::vector<std::byte>> keys_, values_;
  std::vector<float> queries_, partial_, state_, output_;
  AttentionWork work_;
  uint64_t rows_, length_;
  size_t next_ = 0;
};

}  // namespace mnk::bench
