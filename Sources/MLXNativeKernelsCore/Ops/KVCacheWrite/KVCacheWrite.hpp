// Rules of KVCacheWrite, and the operands of its dispatches.
#pragma once
#include <cstdint>
#include <span>

#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Support/Errors.hpp"

namespace mnk {

// Keys or values: a source and its place in the cache, with the indices that a kernel knows them by.
struct KVCacheWritePlane {
  HeadsView source;
  const Tensor& cache;
  uint64_t headDim;
  uint32_t sourceIndex;
  uint32_t cacheIndex;

  uint64_t sourceRowBytes() const;
  uint64_t cacheRowBytes() const;
};

void bindPlane(Dispatch& dispatch, const CacheAddressing& addressing, const KVCacheWritePlane& plane);

// The rules in the order they are checked.
std::span<const Rule<KVCacheWrite>> kvCacheWriteRules();

}  // namespace mnk
