#import <MLXNativeKernels/MNKDescriptor.h>

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// Integers that an op takes: at most 1024 known in advance, which are checked, or a tensor that the kernel reads.
@interface MNKIntegers : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

+ (instancetype)integersWithList:(NSArray<NSNumber *> *)list;
+ (instancetype)integersWithTensor:(MNKTensor *)tensor;

@property(nonatomic, readonly, nullable, copy) NSArray<NSNumber *> *list;
@property(nonatomic, readonly, nullable) MNKTensor *tensor;

@end

NS_ASSUME_NONNULL_END
