// Reads caches over caller-owned memory in op descriptors. `name` is the field, for errors.
#pragma once
#include <string>

#include "CAPI/Handles.hpp"

namespace mnk::c {

Result<KVCacheView> cacheView(const mnk_kv_cache_view& input, const std::string& name);
Result<QuantizedKVCacheView> quantizedView(const mnk_quantized_kv_view& input, const std::string& name);

}  // namespace mnk::c
