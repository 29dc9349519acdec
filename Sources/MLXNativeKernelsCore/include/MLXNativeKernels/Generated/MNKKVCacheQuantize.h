// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/Generated/MNKKVCacheWrite.h>
#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/MNKDescriptor.h>
#import <MLXNativeKernels/MNKKVCodec.h>
#import <MLXNativeKernels/MNKOperation.h>
#include "MLXNativeKernels/Generated/mnk_kv_cache_quantize.h"

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// Stores new tokens in a quantized cache that the caller owns.
///
/// For every token t stored and head h:
///
///     cache[sequence, h, slot(position + t)] = quantized(keys[h, sourceOffset + t])
///
/// as `MNKKVCodec` says, and the same for values, in one dispatch. Sources, slots, rings and rows are those of
/// `MNKKVCacheWrite`. No vector affects what is stored for another.
///
/// A scale beyond the largest `float16` becomes the largest. Elements below 2^-125, or below 2^-100 of the vector's
/// largest, count as zero.
@interface MNKKVCacheQuantize : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKHeadsView *)keys
                      values:(nullable MNKHeadsView *)values
                 destination:(MNKQuantizedKVCacheView *)destination
                    position:(NSUInteger)position NS_DESIGNATED_INITIALIZER;

/// Source of the keys, of any float type.
@property(nonatomic, copy) MNKHeadsView *keys;
/// Source of the values, of the same sequences and tokens; `nil` stores only keys.
@property(nonatomic, nullable, copy) MNKHeadsView *values;
/// The order of axes of `keys` and `values`. `MNKKVLayoutHeadMajor` makes both views head-major. Views with strides
/// ignore it. `MNKKVLayoutTokenMajor` by default.
@property(nonatomic) MNKKVLayout sourceLayout;
/// First source token to store.
@property(nonatomic) NSUInteger sourceOffset;
/// How many tokens to store; without it, all that follow the offset.
@property(nonatomic, nullable, copy) NSNumber *tokens;
/// Whether source tokens wrap around, as when a ring without pinned positions is made linear. At most all tokens of the
/// source can be stored.
@property(nonatomic) BOOL sourceIsRing;
/// Where they go.
@property(nonatomic, copy) MNKQuantizedKVCacheView *destination;
/// The sequence that tokens go to; `MNKOnlySequence` is that of a cache of one. It is the default: a cache of several
/// sequences needs one of them.
@property(nonatomic) NSUInteger sequence;
/// The position of the first token stored.
@property(nonatomic) NSUInteger position;
/// A place for each source token, which replaces `sequence` and `position`.
@property(nonatomic, nullable, copy) MNKKVCacheWriteRows *rows;
/// How vectors are quantized where the format allows a choice.
@property(nonatomic, copy) MNKKVQuantizeOptions *options;
/// Of `uint32`, `[2]`: the number of vectors with a NaN or an infinity, and of those whose scale exceeds the largest
/// `float16`, are added.
@property(nonatomic, nullable) MNKTensor *counts;
/// For one token of `MNKKVCodecNameMLX1`: of `float32`, `[heads, headDim]`, receives the keys' elements as they are
/// compared with boundaries.
@property(nonatomic, nullable) MNKTensor *probe;

@end

/// Dequantizes positions of a quantized cache, keys and values in one dispatch.
///
///     keys[t, h] = the key of head h at position + t      for each token of the tensor
///
/// Shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
/// `[heads, tokens, headDim]` (head-major). With a first axis of sequences, their tokens follow each other: all are of
/// the one sequence that is read. The op cannot detect what a ring has overwritten.
@interface MNKKVCacheDequantize : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSource:(MNKQuantizedKVCacheView *)source
                          keys:(nullable MNKTensor *)keys
                        values:(nullable MNKTensor *)values
                      position:(NSUInteger)position NS_DESIGNATED_INITIALIZER;

/// The cache that is read.
@property(nonatomic, copy) MNKQuantizedKVCacheView *source;
/// The sequence that is read; `MNKOnlySequence` is that of a cache of one. It is the default: a cache of several
/// sequences needs one of them.
@property(nonatomic) NSUInteger sequence;
/// The position of the first token read.
@property(nonatomic) NSUInteger position;
/// Receives the keys, in any float type; `nil` reads only values.
@property(nonatomic, nullable) MNKTensor *keys;
/// Receives the values, in the same type; `nil` reads only keys.
@property(nonatomic, nullable) MNKTensor *values;
/// The order of axes of keys and values. `MNKKVLayoutTokenMajor` by default.
@property(nonatomic) MNKKVLayout layout;
/// The domain of what is read. `MNKKVDomainOriginal` by default.
@property(nonatomic) MNKKVDomain domain;

@end

/// Applies the Walsh-Hadamard transform in natural order to every vector along a tensor's last axis, scaled so that
/// lengths do not change.
///
///     forward   y = H(s .* x) / sqrt(n)        inverse   y = s .* H(x) / sqrt(n)
///
/// where n is a power of two from 4 to 4096 and s are the signs of a codec at this length, or ones. With a codec's
/// signs, forward takes a query to the domain of its codes, and inverse takes the result of attention over them back.
/// At 80, 96, 112 and 192 elements H / sqrt(n) is the rotation by blocks of `MNKKVCodecNameTurbo`.
///
/// Attention does both inside: only a kernel of your own that attends over codes needs them.
@interface MNKHadamard : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSource:(MNKTensor *)source
                   destination:(nullable MNKTensor *)destination NS_DESIGNATED_INITIALIZER;

/// The vectors, of any float type.
@property(nonatomic) MNKTensor *source;
/// Where results go, of the same shape and any float type; `nil` means in place.
@property(nonatomic, nullable) MNKTensor *destination;
/// The codec whose signs are used; `nil` means none. `MNKKVCodecNameTurbo` has signs at 32, 64, 80, 96, 112, 128, 192,
/// 256 and 512, `MNKKVCodecNameMLX1` at 256 and 512, with ones at other powers of two. Other codecs have none.
@property(nonatomic, nullable, copy) NSNumber *signs;
/// Whether to undo the transform.
@property(nonatomic, getter=isInverse) BOOL inverse;

@end

NS_ASSUME_NONNULL_END
