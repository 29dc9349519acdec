#import <MLXNativeKernels/Generated/MNKAttentionOptions.h>

@class MNKCachePrefix, MNKHeadsView, MNKRotaryStep;

NS_ASSUME_NONNULL_BEGIN

/// Tokens of sequences of a cache, to append, to attend, or both. Operands do not change.
///
/// ```objc
/// MNKCacheStep *tokens = [[MNKCacheStep alloc] init];
/// tokens.keys = keys;
/// tokens.values = values;
/// tokens.sequences = @[ @2, @0 ];
/// [step append:tokens toCache:cache error:&error];
/// ```
@interface MNKCacheStep : MNKDescriptor

/// A step that appends: `[tokens, kvHeads, headDim]`, or `[kvHeads, headDim]` for one token.
+ (instancetype)stepWithKeys:(MNKTensor *)keys values:(MNKTensor *)values;
/// A step that attends: `[rows, heads, headDim]`, or `[heads, headDim]` for one row.
+ (instancetype)stepWithQueries:(MNKTensor *)queries results:(MNKAttentionResults *)results;

/// Of tokens that attend.
@property(nonatomic, nullable, copy) MNKHeadsView *queries;
/// To append, the same number of tokens as queries.
@property(nonatomic, nullable, copy) MNKHeadsView *keys;
@property(nonatomic, nullable, copy) MNKHeadsView *values;
/// How `appendAndAttend:` rotates queries and keys; `nil` means that they are rotated already, or never.
@property(nonatomic, nullable, copy) MNKRotaryStep *rotary;
/// Where attention goes.
@property(nonatomic, nullable, copy) MNKAttentionResults *results;
/// `nil` means the defaults.
@property(nonatomic, nullable, copy) MNKAttentionOptions *options;
/// The sequences that the tokens continue, in their order: by default `MNKOnlySequence`. A sequence that is listed
/// again continues.
@property(nonatomic, copy) NSArray<NSNumber *> *sequences;
/// How many tokens each listed sequence has, 0 to leave it out. `nil` means all for a single sequence, and for several
/// one each, or the tokens of its sequence in the views.
@property(nonatomic, nullable, copy) NSArray<NSNumber *> *rowCounts;
/// Sequences whose tokens come before those of every listed sequence, the oldest first, such as a prompt that several
/// conversations share. Causality, windows and slopes are those of one sequence with all tokens; there is no mask.
/// Without positions in `rotary`, tokens are rotated by their positions after the prefixes.
@property(nonatomic, copy) NSArray<MNKCachePrefix *> *prefixes;

@end

NS_ASSUME_NONNULL_END
