// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/Generated/MNKBasics.h>
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/MNKDescriptor.h>
#include "MLXNativeKernels/Generated/mnk_cache_storage.h"

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// What of a cache is quantized. The rest is dense, with the descriptor's element type.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVQuantizedPlanes) {
  /// Keys and values.
  MNKKVQuantizedPlanesBoth = MNK_KV_QUANTIZED_PLANES_BOTH,
  /// Keys.
  MNKKVQuantizedPlanesKeys = MNK_KV_QUANTIZED_PLANES_KEYS,
  /// Values.
  MNKKVQuantizedPlanesValues = MNK_KV_QUANTIZED_PLANES_VALUES,
};

/// How attention chooses kernels, splits and sizes of threadgroups. The choice changes the last bits of results.
typedef NS_CLOSED_ENUM(uint32_t, MNKTuning) {
  /// By a table that comes with the library. Choices that an earlier call measured stay in use.
  MNKTuningTable = MNK_TUNING_TABLE,
  /// By measuring on this device, for some tens of milliseconds for each shape. The choices are kept in a file by
  /// device, version of the system and kernels, and not measured again. Until that file changes, results are the same
  /// from run to run, bit for bit.
  MNKTuningMeasure = MNK_TUNING_MEASURE,
};

/// What a sliding-window cache must serve exactly: steps of up to `maxRows` rows that each see `window` positions, also
/// after a rollback of up to `maxDraft` of the newest tokens.
///
/// A step of several rows sees `window + maxRows - 1` positions, and a rollback of n tokens has lost n positions. The
/// cache has slots for the larger of the two.
@interface MNKSlidingWindow : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithWindow:(NSUInteger)window
                       maxRows:(NSUInteger)maxRows
                      maxDraft:(NSUInteger)maxDraft NS_DESIGNATED_INITIALIZER;
- (instancetype)initWithWindow:(NSUInteger)window;

/// How many positions a row sees, including its own.
@property(nonatomic) NSUInteger window;
/// The most rows of one step, or of one chunk of a longer prompt; 0 means the default, 64.
@property(nonatomic) NSUInteger maxRows;
/// The most tokens that are rolled back at a time.
@property(nonatomic) NSUInteger maxDraft;

@end

/// How a cache quantizes what is appended. Means and channel scales are for turbo only. They are copied when the cache
/// is made, so that their sources may be changed afterwards; the copies may not, while the cache holds anything.
@interface MNKKVQuantizedStorage : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithCodec:(MNKKVCodecName)codec
                      keyBits:(NSUInteger)keyBits
                    valueBits:(NSUInteger)valueBits NS_DESIGNATED_INITIALIZER;

/// Which codec.
@property(nonatomic) MNKKVCodecName codec;
/// Bits of one code of a key. Those of a dense plane are ignored, and read as 0.
@property(nonatomic) NSUInteger keyBits;
/// Bits of one code of a value.
@property(nonatomic) NSUInteger valueBits;
/// For mlx1 and mlx1Unrotated at a head dim of 512. 1 by default.
@property(nonatomic) float scaleFactor;
/// How vectors are quantized where the format allows a choice.
@property(nonatomic, copy) MNKKVQuantizeOptions *options;
/// `float32`, `[kvHeads, headDim]`.
@property(nonatomic, nullable) MNKTensor *keyMeans;
/// `float32`, `[kvHeads, valueHeadDim]`.
@property(nonatomic, nullable) MNKTensor *valueMeans;
/// `float32`, `[kvHeads, headDim]`, none of them 0.
@property(nonatomic, nullable) MNKTensor *keyChannelScales;
/// What of the cache is quantized. `MNKKVQuantizedPlanesBoth` by default.
@property(nonatomic) MNKKVQuantizedPlanes planes;

@end

/// The extents of a cache, and how it stores.
@interface MNKAttentionCacheDescriptor : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKVHeads:(NSUInteger)kvHeads
                        headDim:(NSUInteger)headDim
                       capacity:(NSUInteger)capacity NS_DESIGNATED_INITIALIZER;

/// Heads of keys and values.
@property(nonatomic) NSUInteger kvHeads;
/// Elements of a key of one head.
@property(nonatomic) NSUInteger headDim;
/// Elements of a value of one head; 0 means those of a key, or of its latent part.
@property(nonatomic) NSUInteger valueHeadDim;
/// Slots of one sequence; 0 means the number that the sliding window needs.
@property(nonatomic) NSUInteger capacity;
/// Sequences that are kept side by side. 1 by default.
@property(nonatomic) NSUInteger sequences;
/// A float type. If keys and values are both quantized, it is ignored, and reads as `uint8`. `MNKElementTypeFloat16` by
/// default.
@property(nonatomic) MNKElementType elementType;
/// What an append does when every slot is taken: it fails, or the newest tokens take the slots of the oldest.
/// `MNKKVWrapLinear` by default.
@property(nonatomic) MNKKVWrap whenFull;
/// First positions that a ring never overwrites.
@property(nonatomic) NSUInteger pinned;
/// How keys, values or both are quantized; `nil` for a dense cache.
@property(nonatomic, nullable, copy) MNKKVQuantizedStorage *quantized;
/// Makes a ring that serves this window, with the slots that it needs unless `capacity` is larger. Rows that attend
/// without their own window use this one.
@property(nonatomic, nullable, copy) MNKSlidingWindow *slidingWindow;
/// Makes a latent cache (multi-head latent attention): what is appended as values is also the first part of keys, of
/// this length, and what is appended as keys is the rest of them, rotated already. Queries are those of absorbed
/// attention, with the elements of both together, and attention needs a scale. 0 if keys and values are separate.
@property(nonatomic) NSUInteger latentDim;
/// Whether the cache only stores, so that it may have any head dims.
@property(nonatomic, getter=isStorageOnly) BOOL storageOnly;

@end

NS_ASSUME_NONNULL_END
