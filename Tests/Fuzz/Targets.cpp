#include "AttentionCacheTarget.hpp"
#include "CacheFileTarget.hpp"
#include "FarWriteTarget.hpp"
#include "FlashDecodeCall.hpp"
#include "HadamardTarget.hpp"
#include "KVCacheQuantizeCall.hpp"
#include "KVCacheWriteCall.hpp"
#include "MultiRoPECall.hpp"
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
