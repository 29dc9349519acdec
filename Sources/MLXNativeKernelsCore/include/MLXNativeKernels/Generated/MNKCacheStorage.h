// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/MNKDescriptor.h>
#include "MLXNativeKernels/Generated/mnk_cache_storage.h"

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

NS_ASSUME_NONNULL_END
