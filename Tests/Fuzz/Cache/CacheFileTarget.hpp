// Files of caches, valid, damaged, forged and of nothing at all, through mnk_cache_make_from_path.
#pragma once
#include "Target.hpp"

namespace mnk::fuzz {

Target cacheFileTarget();

}  // namespace mnk::fuzz
