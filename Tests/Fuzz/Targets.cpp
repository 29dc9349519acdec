#include "AttentionCacheTarget.hpp"
#include "FarWriteTarget.hpp"
#include "KVCacheWriteCall.hpp"
#include "MultiRoPECall.hpp"
#include "Target.hpp"
#include "TensorTarget.hpp"

namespace mnk::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all{kvCacheWriteTarget(), multiRoPETarget(), tensorTarget(), attentionCacheTarget(),
                                       farWriteTarget()};
  return all;
}

}  // namespace mnk::fuzz
