#import <MLXNativeKernels/Generated/MNKCacheStorage.h>
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/MNKKVCodec.h>
#import <MLXNativeKernels/MNKQuantizedKVCacheView.h>
#import <MLXNativeKernels/MNKTensor.h>

NS_ASSUME_NONNULL_BEGIN

/// Names the sequence of a cache that has one. Calls on a cache with several sequences must name or list them.
FOUNDATION_EXPORT const NSUInteger MNKOnlySequence;

@interface MNKAttentionCacheDescriptor (MNKExtents)

+ (instancetype)descriptorWithKVHeads:(NSUInteger)kvHeads headDim:(NSUInteger)headDim capacity:(NSUInteger)capacity;

@end

/// Keys and values of past tokens, with the next position of each sequence.
///
/// An append writes at the next position, which advances when its encoder is committed; one that is dropped advances
/// nothing. If submitted work fails on the device, the sequences it appended to are suspect until they are truncated or
/// reset.
///
/// Several threads may use a cache, each with its own encoders. A commit is refused, with a retryable error, if another
/// thread has since changed tokens that it reads or the position at which it appends.
///
/// Its `description` is one line, such as `8 heads of 128 as f16, 1 sequence at position 13, 4096 slots that fail when
/// full, 16.8 MB`.
///
/// ```objc
/// MNKAttentionCacheDescriptor *d = [MNKAttentionCacheDescriptor descriptorWithKVHeads:8 headDim:128 capacity:4096];
/// MNKAttentionCache *cache = [[MNKAttentionCache alloc] initWithDevice:device descriptor:d error:&error];
/// ```
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKAttentionCache : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// An empty cache.
- (nullable instancetype)initWithDevice:(MNKDevice *)device
                             descriptor:(MNKAttentionCacheDescriptor *)descriptor
                                  error:(NSError **)error NS_DESIGNATED_INITIALIZER;
/// The cache of a file, which continues where the saved one was. The file may come from anywhere: it is checked, and
/// the call fails if keys and values would take more than `maxBytes`.
- (nullable instancetype)initWithDevice:(MNKDevice *)device
                          contentsOfURL:(NSURL *)url
                               maxBytes:(NSUInteger)maxBytes
                                  error:(NSError **)error;
/// The same with another capacity, one that holds every position that the file holds; 0 is that of the saved cache.
- (nullable instancetype)initWithDevice:(MNKDevice *)device
                          contentsOfURL:(NSURL *)url
                               maxBytes:(NSUInteger)maxBytes
                               capacity:(NSUInteger)capacity
                                  error:(NSError **)error NS_DESIGNATED_INITIALIZER;

/// Writes the cache to a file, after waiting for submitted work that writes the cache. Only its owner can read a new
/// file. An existing file is replaced once everything is written, keeps its permissions, and is left unchanged if the
/// call fails. Symbolic links are followed, except links of other users that do not own the link's folder.
- (BOOL)saveToURL:(NSURL *)url error:(NSError **)error NS_SWIFT_NAME(save(to:));

/// The descriptor, with all defaults resolved.
@property(nonatomic, readonly, copy) MNKAttentionCacheDescriptor *descriptor;
/// Keys and values, or codes of them as a cache of bytes, head-major, over the cache's memory. Memory of a new cache is
/// not cleared: bytes of slots that hold no position are undefined.
@property(nonatomic, readonly, copy) MNKKVCacheView *view;
/// Codes and scales; `nil` for a dense cache.
@property(nonatomic, readonly, nullable, copy) MNKQuantizedKVCacheView *quantizedView;

/// Of keys and values together, with their scales.
@property(nonatomic, readonly) NSUInteger byteCount;
/// Of one position of one sequence.
@property(nonatomic, readonly) NSUInteger bytesPerToken;
/// How many more bytes the cache would take as `float16`; negative for `float32`.
@property(nonatomic, readonly) NSInteger bytesSaved;

/// The position that the next appended token gets; `NSNotFound` if the cache has several sequences. It advances when an
/// encoder is committed.
@property(nonatomic, readonly) NSUInteger nextPosition;
/// The number of positions that are kept; `NSNotFound` if the cache has several sequences.
@property(nonatomic, readonly) NSUInteger count;
/// Whether work that appended to any sequence has failed since the sequence's last truncate or reset.
@property(nonatomic, readonly, getter=isSuspect) BOOL suspect;
/// The same for one sequence; `NSNotFound` if the cache does not have it.
- (NSUInteger)nextPositionOfSequence:(NSUInteger)sequence;
- (NSUInteger)countOfSequence:(NSUInteger)sequence;
/// The same for one sequence; `YES` if the cache does not have it.
- (BOOL)isSequenceSuspect:(NSUInteger)sequence;

/// Removes tokens of the only sequence at `position` and after it, as when speculative decoding rolls back.
/// Overwritten positions cannot be restored, and a sliding-window cache refuses a position at which the next row would
/// not see its whole window.
- (BOOL)truncateToPosition:(NSUInteger)position error:(NSError **)error NS_SWIFT_NAME(truncate(to:));
/// The same for any sequence.
- (BOOL)truncateToPosition:(NSUInteger)position
                  sequence:(NSUInteger)sequence
                     error:(NSError **)error NS_SWIFT_NAME(truncate(to:sequence:));
/// Removes all tokens of all sequences.
- (void)reset;
- (BOOL)resetSequence:(NSUInteger)sequence error:(NSError **)error;

@end

/// A sequence of a cache whose tokens come before those of other sequences, such as a prompt that several conversations
/// continue. Both caches must have the same sliding window, or none; otherwise, a call fails unless its options have a
/// `window`.
@interface MNKCachePrefix : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// The only sequence of a cache.
- (instancetype)initWithCache:(MNKAttentionCache *)cache;
- (instancetype)initWithCache:(MNKAttentionCache *)cache sequence:(NSUInteger)sequence NS_DESIGNATED_INITIALIZER;

@property(nonatomic, readonly) MNKAttentionCache *cache;
@property(nonatomic, readonly) NSUInteger sequence;

@end

NS_ASSUME_NONNULL_END
