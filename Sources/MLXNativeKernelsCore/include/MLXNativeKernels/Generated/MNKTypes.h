// Generated from Sources/API by generate.py: change the description instead.
// Every type of the description.
#pragma once
#import <MLXNativeKernels/Generated/MNKAttentionOptions.h>
#import <MLXNativeKernels/Generated/MNKBasics.h>
#import <MLXNativeKernels/Generated/MNKCacheStorage.h>
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/Generated/MNKFlashDecode.h>
#import <MLXNativeKernels/Generated/MNKHostOptions.h>
#import <MLXNativeKernels/Generated/MNKKVCacheQuantize.h>
#import <MLXNativeKernels/Generated/MNKKVCacheWrite.h>
#import <MLXNativeKernels/Generated/MNKMultiRoPE.h>
#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/Generated/MNKRotary.h>
