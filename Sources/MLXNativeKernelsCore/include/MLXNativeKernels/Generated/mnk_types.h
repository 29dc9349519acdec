// Generated from Sources/API by generate.py: change the description instead.
// Every type of the description.
#pragma once
#include "MLXNativeKernels/Generated/mnk_attention_options.h"
#include "MLXNativeKernels/Generated/mnk_basics.h"
#include "MLXNativeKernels/Generated/mnk_cache_storage.h"
#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/Generated/mnk_flash_decode.h"
#include "MLXNativeKernels/Generated/mnk_host_options.h"
#include "MLXNativeKernels/Generated/mnk_kv_cache_quantize.h"
#include "MLXNativeKernels/Generated/mnk_kv_cache_write.h"
#include "MLXNativeKernels/Generated/mnk_multi_rope.h"
#include "MLXNativeKernels/Generated/mnk_quantized_views.h"
#include "MLXNativeKernels/Generated/mnk_rotary.h"
