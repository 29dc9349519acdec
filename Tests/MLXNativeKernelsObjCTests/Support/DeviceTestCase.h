// A test with a device, either from the environment or the best one, and helpers for tensors and steps.
#pragma once
#import <MLXNativeKernels/MLXNativeKernels.h>
#import <XCTest/XCTest.h>

#include <vector>

NS_ASSUME_NONNULL_BEGIN

@interface DeviceTestCase : XCTestCase

@property(nonatomic, readonly) MNKDevice *device;
@property(nonatomic, readonly) BOOL isHost;
// A file that is removed after the test.
@property(nonatomic, readonly) NSURL *temporaryFile;

- (MNKTensor *)zeros:(NSArray<NSNumber *> *)shape;
- (MNKTensor *)zeros:(NSArray<NSNumber *> *)shape type:(MNKElementType)type;
- (MNKTensor *)floats:(const std::vector<float> &)floats shape:(NSArray<NSNumber *> *)shape;
- (std::vector<float>)floatsOf:(MNKTensor *)tensor;
- (float)floatOf:(MNKTensor *)tensor at:(NSUInteger)index;

- (MNKAttentionCache *)cacheWith:(MNKAttentionCacheDescriptor *)descriptor;
// Records a separate step, commits and waits.
- (void)step:(BOOL (^)(MNKCommandEncoder *step, NSError *_Nullable *_Nullable error))body;

@end

NS_ASSUME_NONNULL_END
