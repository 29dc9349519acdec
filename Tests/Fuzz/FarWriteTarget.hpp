// KVCacheWrite at the end of caches with almost 2^31 slots: what 32-bit arithmetic would get wrong lands elsewhere.
#pragma once
#include "Target.hpp"

namespace mnk::fuzz {

Target farWriteTarget();

}  // namespace mnk::fuzz
