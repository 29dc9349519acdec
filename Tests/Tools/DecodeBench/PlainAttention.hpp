// The same attention in plain vectorized C++ over an f16 cache, whichever storage is measured.
#pragma once
#include <vector>

#include "Bench/NativeAttention.hpp"
#include "DecodeCase.hpp"

namespace mnk::bench::decode {

class PlainAttention {
 public:
  // It supports only some head dimensions. Rows attend one after another.
  static bool canRun(const DecodeCase& shape) { return hasNativeAttention(shape.headDim, shape.latentDim); }

  PlainAttention(const DecodeCase& shape, uint32_t copies);
  PlainAttention(const PlainAttention&) = delete;
  PlainAttention& operator=(const PlainAttention&) = delete;

  double seconds();  // of one run with a thread per core; each run uses the next copy of the cache
  const std::vector<float>& output() const { return output_; }

 private:
  std::vector<std::vector<std::byte>> keys_, values_;
  std::vector<float> queries_, partial_, state_, output_;
  NativeAttention work_;
  uint64_t rows_, length_;
  size_t next_ = 0;
};

}  // namespace mnk::bench::decode
