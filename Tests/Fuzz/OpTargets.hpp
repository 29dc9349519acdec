// Targets of ops: each file draws valid cases of the op's tests, which OpFuzz mutates, runs and checks.
#pragma once
#include "Target.hpp"

namespace mnk::fuzz {

Target flashDecodeTarget();
Target kvCacheWriteTarget();
Target kvCacheQuantizeTarget();
Target kvCacheDequantizeTarget();
Target multiRoPETarget();
Target hadamardTarget();

}  // namespace mnk::fuzz
