// A test with a device, either from the environment or the best one, and helpers for tensors and steps.
#pragma once
#import <MLXNativeKernels/MLXNativeKernels.h>
#import <XCTest/XCTest.h>

#include <vector>

NS_ASSUME_NONNULL_BEGIN

@interface DeviceTestCase : XCTestCase

@property(nonatomic, readonly) MNKDevice *device;
@property(nonatomic, readonly) BOOL isHost;

- (MNKTensor *)zeros:(NSArray<NSNumber *> *)shape;
- (MNKTensor *)zeros:(NSArray<NSNumber *> *)shape type:(MNKElementType)type;
- (MNKTensor *)floats:(const std::vector<float> &)floats shape:(NSArray<NSNumber *> *)shape;
// Distinct numbers from -1 to 1 that depend on the seed.
- (MNKTensor *)numbers:(NSArray<NSNumber *> *)shape seed:(unsigned)seed;
- (std::vector<float>)floatsOf:(MNKTensor *)tensor;
- (float)floatOf:(MNKTensor *)tensor at:(NSUInteger)index;

// Tokens of one head, each filled with one number. Zero keys give all positions the same weight, so attention is a
// mean.
- (MNKHeadsView *)tokens:(const std::vector<float> &)numbers;
- (MNKHeadsView *)zeroTokens:(NSUInteger)count;

- (MNKAttentionCache *)cacheWith:(MNKAttentionCacheDescriptor *)descriptor;
// Appends tokens with zero keys and these values.
- (void)append:(const std::vector<float> &)numbers to:(MNKAttentionCache *)cache sequence:(NSUInteger)sequence;

// Records a separate step, commits and waits.
- (void)step:(BOOL (^)(MNKCommandEncoder *step, NSError *_Nullable *_Nullable error))body;
- (void)encode:(MNKOperation *)operation;

@end

NS_ASSUME_NONNULL_END
