// The umbrella: the C API, and for Objective-C the classes over the same core.
#pragma once
#include "MLXNativeKernels/mnk.h"
#include "MLXNativeKernels/mnk_metal.h"

#ifdef __OBJC__
#import <MLXNativeKernels/Generated/MNKTypes.h>
#import <MLXNativeKernels/MNKAttentionCache.h>
#import <MLXNativeKernels/MNKAttentionResults.h>
#import <MLXNativeKernels/MNKCacheStep.h>
#import <MLXNativeKernels/MNKCommandEncoder.h>
#import <MLXNativeKernels/MNKCompletion.h>
#import <MLXNativeKernels/MNKDescriptor.h>
#import <MLXNativeKernels/MNKDevice.h>
#import <MLXNativeKernels/MNKDispatch.h>
#import <MLXNativeKernels/MNKError.h>
#import <MLXNativeKernels/MNKHandles.h>
#import <MLXNativeKernels/MNKIntegers.h>
#import <MLXNativeKernels/MNKKVCodec.h>
#import <MLXNativeKernels/MNKKernelLibrary.h>
#import <MLXNativeKernels/MNKOperation.h>
#import <MLXNativeKernels/MNKPreparation.h>
#import <MLXNativeKernels/MNKQuantizedKVCacheView.h>
#import <MLXNativeKernels/MNKRecordedStep.h>
#import <MLXNativeKernels/MNKRotaryPositions.h>
#import <MLXNativeKernels/MNKTensor.h>
#ifdef __APPLE__
#import <MLXNativeKernels/MNKMetal.h>
#endif
#endif
