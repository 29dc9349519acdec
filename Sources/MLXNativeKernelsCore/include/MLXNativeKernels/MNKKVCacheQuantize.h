#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/MNKKVCacheStore.h>

NS_ASSUME_NONNULL_BEGIN

/// Stores new tokens, of any float type, in a quantized cache, as `MNKKVCacheWrite` does in a dense one: the same
/// sources, slots, rings and rows, keys and values in one dispatch.
@interface MNKKVCacheQuantize : MNKKVCacheStore

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKTensor *)keys
                      values:(nullable MNKTensor *)values
                   intoCache:(MNKQuantizedKVCacheView *)cache
                    position:(NSUInteger)position;
- (instancetype)initWithKeysView:(MNKHeadsView *)keys
                      valuesView:(nullable MNKHeadsView *)values
                       intoCache:(MNKQuantizedKVCacheView *)cache
                        position:(NSUInteger)position NS_DESIGNATED_INITIALIZER;

@property(nonatomic, copy) MNKQuantizedKVCacheView *cache;
@property(nonatomic, copy) MNKKVQuantizeOptions *options;
/// `uint32`, `[2]`: the number of vectors with a NaN or an infinity, and of those whose scale was too large, are added.
@property(nonatomic, nullable) MNKTensor *counts;
/// For mlx1 and one token: `float32`, `[heads, headDim]`, the keys' elements as they are compared with boundaries.
@property(nonatomic, nullable) MNKTensor *probe;

@end

NS_ASSUME_NONNULL_END
