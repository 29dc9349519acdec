// How FlashDecode is laid out on a device: one row of a table for each family of devices, with what it rests on.
// `decode-bench --tune` measures the candidates on a device and prints its row.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/FlashDecode.hpp"

namespace mnk {

struct FlashDecodeTuning {
  std::string_view family;        // of DeviceProfile
  uint32_t vectorSimdgroups = 8;  // of a threadgroup
  uint32_t matrixSimdgroups = 8;
  uint32_t reduceSimdgroups = 8;
  uint32_t threadgroupsPerCore = 2;  // as long as no split has fewer keys than the next
  uint32_t leastKeys = 64;
  uint32_t denseMatrixRows = UINT32_MAX;  // dense f16 caches: from so many rows on the matrix kernel is faster
  uint32_t codedMatrixRows = UINT32_MAX;  // quantized caches
  // Up to so many splits their parts are merged in the dispatch that makes them, where the device allows it.
  uint32_t mostSplitsTogether = 0;
  uint32_t cores = 16;  // where the device does not say
};

FlashDecodeTuning tuningFor(const DeviceProfile& profile);

// Whether there is a kernel for these head dims, over elements or over codes, and which dims have one.
bool hasAttentionKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized);
std::string attentionDimsText(bool isQuantized);

// The instance of the vector kernel for `rows` rows of a head of the cache: of these head dims, or, for vectors of
// elements, the smallest that they fit in. It has 0 rows where there is none.
struct VectorInstance {
  uint32_t keyDim = 0;
  uint32_t valueDim = 0;
  uint32_t rows = 0;  // that a simdgroup computes together
};
VectorInstance vectorInstance(uint64_t keyDim, uint64_t valueDim, uint64_t rows);

// Parts that the longest of the key ranges is divided into, where nobody asks for a number.
uint32_t automaticSplits(const FlashDecodeTuning& tuning, const DeviceProfile& profile, uint64_t threadgroups,
                         uint64_t longest);

}  // namespace mnk
