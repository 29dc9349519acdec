#import <MLXNativeKernels/MNKFlashDecode.h>
#import <MLXNativeKernels/MNKOperation.h>

NS_ASSUME_NONNULL_BEGIN

/// Finishes attention whose keys were attended to in parts, on one device or on several: the result is that of
/// `MNKFlashDecode` over all keys at once.
@interface MNKMergePartials : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithPartials:(MNKAttentionPartials *)partials
                         results:(MNKAttentionResults *)results NS_DESIGNATED_INITIALIZER;

/// What is merged, with an axis of parts before those that `MNKFlashDecode` writes; at most 1024 parts.
@property(nonatomic, copy) MNKAttentionPartials *partials;
/// `float32`, `[heads]`; not if results are partials again.
@property(nonatomic, nullable) MNKTensor *sinks;
@property(nonatomic, copy) MNKAttentionResults *results;

@end

NS_ASSUME_NONNULL_END
