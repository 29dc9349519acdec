#import <MLXNativeKernels/Generated/MNKCacheStorage.h>
#import <MLXNativeKernels/MNKTensor.h>

@class MNKAttentionCache, MNKAttentionOptions, MNKRotaryEmbedding;

NS_ASSUME_NONNULL_BEGIN

/// The steps that a device is prepared for.
///
/// ```objc
/// MNKPreparation *preparation = [[MNKPreparation alloc] initWithCaches:caches];
/// preparation.queryHeads = 32;
/// preparation.tuning = MNKTuningMeasure;
/// NSLog(@"%@", [device prepare:preparation error:&error]);
/// ```
@interface MNKPreparation : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithCaches:(NSArray<MNKAttentionCache *> *)caches NS_DESIGNATED_INITIALIZER;

/// Caches of the device that is prepared, such as one for each layer.
@property(nonatomic, copy) NSArray<MNKAttentionCache *> *caches;
/// Heads of the queries of steps; 0 means the number of KV heads.
@property(nonatomic) NSUInteger queryHeads;
/// The most tokens of a sequence in one step; 1 by default. Steps with one token are always prepared.
@property(nonatomic) NSUInteger rows;
/// The float type of the queries, results, keys and values of steps; `float32` by default.
@property(nonatomic) MNKElementType elementType;
/// How steps attend; `nil` means the defaults.
@property(nonatomic, nullable, copy) MNKAttentionOptions *options;
/// How steps rotate queries and keys; `nil` if they do not.
@property(nonatomic, nullable, copy) MNKRotaryEmbedding *rotary;
/// The table by default.
@property(nonatomic) MNKTuning tuning;
/// The file for measured choices; `nil` means one in the user's caches folder.
@property(nonatomic, nullable, copy) NSURL *tuningFileURL;

@end

/// What was prepared. Its `description` is one line: `12 kernels, 3 shapes measured, 0 known, 0.4 s`.
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKPreparationSummary : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// Kernels that are ready to run.
@property(nonatomic, readonly) NSUInteger kernels;
/// Shapes that the call measured.
@property(nonatomic, readonly) NSUInteger measured;
/// Shapes that were measured before.
@property(nonatomic, readonly) NSUInteger known;
/// Time that the call took.
@property(nonatomic, readonly) NSTimeInterval seconds;
/// Whether there are measured choices and the file holds them. Choices that could not be kept are used until the device
/// is released.
@property(nonatomic, readonly, getter=isKept) BOOL kept;

@end

NS_ASSUME_NONNULL_END
