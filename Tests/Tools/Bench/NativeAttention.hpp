// Decode attention as ordinary vectorized C++, on the Host device's worker threads: the baseline for the device's
// speed.
#pragma once
#include <cstdint>

#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::bench {

constexpr uint32_t kHeadDim = 128;  // of BenchAttention.metal

// Layouts match BenchAttention.metal; keys and values are f16.
struct NativeAttention {
  const float* queries;
  const void* keys;
  const void* values;
  float* partial;
  float* state;
  float* output;
  uint32_t kvHeads, queriesPerHead, keyCount, capacity, splits;
  float scale;
  uint32_t workers;
  uint32_t headDim = kHeadDim;
  uint32_t latentDim = 0;  // of values that are the first part of keys too; `headDim` is then the rest of a key
};
bool hasNativeAttention(uint64_t headDim, uint64_t latentDim = 0);  // 64, 128, 256 and 512, or 64 behind 512
// Does nothing for another head dimension.
void runNativeAttention(const NativeAttention& work);

struct AttentionSizes {
  uint32_t queryHeads = 32, kvHeads = 8, keys = 4096, splits = 8;
};
struct AttentionSeconds {
  double native = 0, kernel = 0;  // the minimum of interleaved runs
  double largestDifference = 0;   // between the two outputs
};
// Runs both on the same random inputs. Uses a Host device with the given options.
Result<AttentionSeconds> timeAttention(const host::Options& options, const AttentionSizes& sizes, uint32_t repetitions);

}  // namespace mnk::bench
