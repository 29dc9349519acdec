#import <MLXNativeKernels/MNKDescriptor.h>

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// Whole numbers that an op takes: known now and checked, at most 1024, or in a tensor that the kernel reads.
@interface MNKIntegers : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

+ (instancetype)integersWithList:(NSArray<NSNumber *> *)list;
+ (instancetype)integersWithTensor:(MNKTensor *)tensor;

@property(nonatomic, readonly, nullable, copy) NSArray<NSNumber *> *list;
@property(nonatomic, readonly, nullable) MNKTensor *tensor;

@end

NS_ASSUME_NONNULL_END
