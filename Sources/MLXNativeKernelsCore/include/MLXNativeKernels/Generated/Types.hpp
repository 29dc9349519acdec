// Generated from Sources/API by generate.py: change the description instead.
// Every type of the description.
#pragma once
#include "MLXNativeKernels/Generated/AttentionOptions.hpp"
#include "MLXNativeKernels/Generated/Basics.hpp"
#include "MLXNativeKernels/Generated/CacheStorage.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/Generated/HostOptions.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MLXNativeKernels/Generated/QuantizedViews.hpp"
#include "MLXNativeKernels/Generated/Rotary.hpp"
