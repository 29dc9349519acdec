#import <MLXNativeKernels/MNKKVCacheStore.h>

NS_ASSUME_NONNULL_BEGIN

/// Stores new tokens in a cache, converting to its element type:
///
///     cache[sequence, head, slotOf(position + t)] = keys[head, sourceOffset + t]      for t < tokens
///
/// and the same for values, in one dispatch. Equal types copy bits unchanged. On a ring a write longer than the ring
/// keeps the newest tokens.
@interface MNKKVCacheWrite : MNKKVCacheStore

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKTensor *)keys
                      values:(nullable MNKTensor *)values
                   intoCache:(MNKKVCacheView *)cache
                    position:(NSUInteger)position;
- (instancetype)initWithKeysView:(MNKHeadsView *)keys
                      valuesView:(nullable MNKHeadsView *)values
                       intoCache:(MNKKVCacheView *)cache
                        position:(NSUInteger)position NS_DESIGNATED_INITIALIZER;

@property(nonatomic, copy) MNKKVCacheView *cache;

@end

NS_ASSUME_NONNULL_END
