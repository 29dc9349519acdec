#import <MLXNativeKernels/MNKIntegers.h>
#import <MLXNativeKernels/MNKKVCacheView.h>
#import <MLXNativeKernels/MNKOperation.h>

NS_ASSUME_NONNULL_BEGIN

/// What the ops that store tokens in a cache have in common: a source, and where its tokens go.
///
/// `MNKKVCacheWrite` and `MNKKVCacheQuantize` are such ops.
@interface MNKKVCacheStore : MNKOperation

/// `[tokens, heads, headDim]`, or `[heads, headDim]` for one token; head-major `[heads, tokens, headDim]`.
@property(nonatomic) MNKTensor *keys;
@property(nonatomic, nullable) MNKTensor *values;
/// Token-major unless set.
@property(nonatomic) MNKKVLayout sourceLayout;
/// First source token to store.
@property(nonatomic) NSUInteger sourceOffset;
/// How many to store; `nil` means all that follow the offset.
@property(nonatomic, nullable, copy) NSNumber *tokens;
/// Source token indices wrap: this linearizes a ring.
@property(nonatomic) BOOL sourceIsRing;

@property(nonatomic) NSUInteger sequence;
/// Of the first token stored.
@property(nonatomic) NSUInteger position;
/// With both of these, each source token goes to a sequence and a position of its own; where several name one slot the
/// last one wins. They take the place of `sequence` and `position`; a tensor is `uint32`.
@property(nonatomic, nullable, copy) MNKIntegers *rowSequences;
@property(nonatomic, nullable, copy) MNKIntegers *rowPositions;

@end

NS_ASSUME_NONNULL_END
