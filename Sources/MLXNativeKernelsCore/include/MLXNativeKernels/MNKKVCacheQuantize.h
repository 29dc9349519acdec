#import <MLXNativeKernels/MNKKVCacheWrite.h>
#import <MLXNativeKernels/MNKQuantizedKVCacheView.h>

NS_ASSUME_NONNULL_BEGIN

/// Stores new tokens in a quantized cache, as `MNKKVCacheWrite` does in a dense one: the same sources, slots, rings and
/// rows, keys and values in one dispatch.
@interface MNKKVCacheQuantize : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKTensor *)keys
                      values:(nullable MNKTensor *)values
                   intoCache:(MNKQuantizedKVCacheView *)cache
                    position:(NSUInteger)position NS_DESIGNATED_INITIALIZER;

/// Any float type, with the shapes of `MNKKVCacheWrite`.
@property(nonatomic) MNKTensor *keys;
@property(nonatomic, nullable) MNKTensor *values;
/// Token-major unless set.
@property(nonatomic) MNKKVLayout sourceLayout;
@property(nonatomic) NSUInteger sourceOffset;
@property(nonatomic, nullable, copy) NSNumber *tokens;
@property(nonatomic) BOOL sourceIsRing;

@property(nonatomic, copy) MNKQuantizedKVCacheView *cache;
@property(nonatomic) NSUInteger sequence;
@property(nonatomic) NSUInteger position;
@property(nonatomic, nullable, copy) MNKIntegers *rowSequences;
@property(nonatomic, nullable, copy) MNKIntegers *rowPositions;

@property(nonatomic, copy) MNKKVQuantizeOptions *options;
/// `uint32`, `[2]`: the number of vectors with a NaN or an infinity, and of those whose scale was too large, are added.
@property(nonatomic, nullable) MNKTensor *counts;
/// For mlx1 and one token: `float32`, `[heads, headDim]`, the keys' elements as they are compared with boundaries.
@property(nonatomic, nullable) MNKTensor *probe;

@end

NS_ASSUME_NONNULL_END
