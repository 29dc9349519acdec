// Keys or values of a write to a dense cache.
#pragma once
#include <cstdint>

#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "Ops/Common/CacheAddressing.hpp"

namespace mnk {

// A source and its place in the cache, with the indices that a kernel knows them by.
struct KVCacheWritePlane {
  HeadsView source;
  const Tensor& cache;
  uint64_t headDim;
  uint32_t sourceIndex;
  uint32_t cacheIndex;

  uint64_t sourceRowBytes() const { return headDim * byteSize(source.tensor.dtype()); }
  uint64_t cacheRowBytes() const { return headDim * byteSize(cache.dtype()); }
};

void bindPlane(Dispatch& dispatch, const CacheAddressing& addressing, const KVCacheWritePlane& plane);

}  // namespace mnk
