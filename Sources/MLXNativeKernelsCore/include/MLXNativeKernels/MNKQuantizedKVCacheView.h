#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>

@class MNKDevice;

NS_ASSUME_NONNULL_BEGIN

@interface MNKQuantizedKVPlane (MNKMemory)

/// Dense vectors beside codes: `float32`, `float16` or `bfloat16`, with `headDim` instead of `codeBytes`.
- (instancetype)initWithElements:(MNKTensor *)elements;

/// New memory, in which every vector is zero. Without sequences (0) there is no axis of them.
+ (nullable instancetype)zerosWithCodec:(MNKKVCodec *)codec
                                  heads:(NSUInteger)heads
                                headDim:(NSUInteger)headDim
                               capacity:(NSUInteger)capacity
                              sequences:(NSUInteger)sequences
                                 layout:(MNKKVLayout)layout
                                 device:(MNKDevice *)device
                                  error:(NSError **)error
    NS_SWIFT_NAME(zeros(codec:heads:headDim:capacity:sequences:layout:device:));

@end

@interface MNKQuantizedKVCacheView (MNKMemory)

/// Bytes that codes and scales of such a cache take, before it is made: an unsigned integer. Without values there are
/// only keys.
+ (nullable NSNumber *)byteCountWithKeys:(MNKKVCodec *)keys
                                  values:(nullable MNKKVCodec *)values
                                   heads:(NSUInteger)heads
                                 headDim:(NSUInteger)headDim
                            valueHeadDim:(NSUInteger)valueHeadDim
                                capacity:(NSUInteger)capacity
                               sequences:(NSUInteger)sequences
                                   error:(NSError **)error
    NS_SWIFT_NAME(byteCount(keys:values:heads:headDim:valueHeadDim:capacity:sequences:));

@end

NS_ASSUME_NONNULL_END
