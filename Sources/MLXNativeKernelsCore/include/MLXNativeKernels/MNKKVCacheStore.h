#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/MNKIntegers.h>
#import <MLXNativeKernels/MNKOperation.h>

NS_ASSUME_NONNULL_BEGIN

/// What the ops that store tokens in a cache have in common: a source, and where its tokens go.
///
/// `MNKKVCacheWrite` and `MNKKVCacheQuantize` are such ops.
@interface MNKKVCacheStore : MNKOperation

/// Keys in any layout. The tokens of several sequences count one sequence after another.
@property(nonatomic, copy) MNKHeadsView *keysView;
/// Values of the same sequences and tokens, in their own layout.
@property(nonatomic, nullable, copy) MNKHeadsView *valuesView;
/// The tensor of `keysView`. Setting it makes a view that is token-major: `[tokens, heads, headDim]`, or
/// `[heads, headDim]` for one token.
@property(nonatomic) MNKTensor *keys;
/// The same for `valuesView`.
@property(nonatomic, nullable) MNKTensor *values;
/// Head-major means that both views are `[heads, tokens, headDim]`. Token-major by default.
@property(nonatomic) MNKKVLayout sourceLayout;
/// First source token to store.
@property(nonatomic) NSUInteger sourceOffset;
/// How many to store; `nil` means all that follow the offset.
@property(nonatomic, nullable, copy) NSNumber *tokens;
/// Source token indices wrap: this linearizes a ring.
@property(nonatomic) BOOL sourceIsRing;

/// `MNKOnlySequence` by default: a cache of several sequences needs one of them.
@property(nonatomic) NSUInteger sequence;
/// Of the first token stored.
@property(nonatomic) NSUInteger position;
/// With both of these, each source token goes to its own sequence and position; if several name the same slot, the last
/// one wins. They replace `sequence` and `position`; a tensor is `uint32`.
@property(nonatomic, nullable, copy) MNKIntegers *rowSequences;
@property(nonatomic, nullable, copy) MNKIntegers *rowPositions;

@end

NS_ASSUME_NONNULL_END
