// Umbrella of the module MLXNativeKernelsCore: the C door.
#pragma once
#include "MLXNativeKernels/mnk.h"
