// Umbrella of the module MLXNativeKernelsCore: the C door.
#pragma once
#include "MLXNativeKernels/mnk.h"
#include "MLXNativeKernels/mnk_metal.h"
