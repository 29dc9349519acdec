// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/MNKDescriptor.h>
#import <MLXNativeKernels/MNKIntegers.h>
#import <MLXNativeKernels/MNKOperation.h>
#import <MLXNativeKernels/MNKRotaryPositions.h>
#include "MLXNativeKernels/Generated/mnk_kv_cache_write.h"

NS_ASSUME_NONNULL_BEGIN

/// A sequence and a position for each of at most 1,024 source tokens. If several name the same slot, the last one wins.
@interface MNKKVCacheWriteRows : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSequences:(MNKIntegers *)sequences positions:(MNKIntegers *)positions NS_DESIGNATED_INITIALIZER;

/// The sequence of each token; a tensor is `uint32`.
@property(nonatomic, copy) MNKIntegers *sequences;
/// The position of each token; a tensor is `uint32`.
@property(nonatomic, copy) MNKIntegers *positions;

@end

/// Stores new tokens in cache memory that the caller owns, converting to its element type.
///
/// For every token t stored, head h and element e:
///
///     cache[sequence, h, slot(position + t), e] = keys[h, sourceOffset + t, e]
///
/// and the same for values, in one dispatch. Equal element types copy bits unchanged; otherwise rounding is to nearest,
/// ties to even. On a ring, a write longer than the ring keeps the newest tokens, with one writer for each slot.
///
/// Source shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
/// `[heads, tokens, headDim]` (head-major); views can have any strides (`MNKHeadsView`). Tokens of several sequences
/// count one sequence after another: those of sequence s start at `s * tokens`.
@interface MNKKVCacheWrite : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKHeadsView *)keys
                      values:(nullable MNKHeadsView *)values
                 destination:(MNKKVCacheView *)destination
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
@property(nonatomic, copy) MNKKVCacheView *destination;
/// The sequence that tokens go to; `MNKOnlySequence` is that of a cache of one. It is the default: a cache of several
/// sequences needs one of them.
@property(nonatomic) NSUInteger sequence;
/// The position of the first token stored.
@property(nonatomic) NSUInteger position;
/// A place for each source token, which replaces `sequence` and `position`.
@property(nonatomic, nullable, copy) MNKKVCacheWriteRows *rows;

@end

NS_ASSUME_NONNULL_END
