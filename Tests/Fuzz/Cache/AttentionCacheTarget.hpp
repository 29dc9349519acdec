// Fuzzes making an AttentionCache and cutting its sequences; what appending writes is KVCacheWrite's to prove.
#pragma once
#include "Target.hpp"

namespace mnk::fuzz {

Target attentionCacheTarget();

}  // namespace mnk::fuzz
