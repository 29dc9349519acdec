#include "Cache/AttentionCacheTarget.hpp"
#include "Cache/CacheFileTarget.hpp"
#include "FarWriteTarget.hpp"
#include "OpTargets.hpp"
#include "Target.hpp"
#include "TensorTarget.hpp"

namespace mnk::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
      kvCacheWriteTarget(), multiRoPETarget(), kvCacheQuantizeTarget(), kvCacheDequantizeTarget(), hadamardTarget(),
      flashDecodeTarget(),  tensorTarget(),    attentionCacheTarget(),  cacheFileTarget(),         farWriteTarget()};
  return all;
}

}  // namespace mnk::fuzz
