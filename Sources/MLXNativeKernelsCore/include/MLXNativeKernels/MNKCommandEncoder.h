#import <MLXNativeKernels/Generated/MNKAttentionOptions.h>
#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/MNKCompletion.h>
#import <MLXNativeKernels/MNKOperation.h>

@class MNKAttentionCache, MNKCacheStep, MNKDevice, MNKDispatch, MNKKVQuantizedStorage, MNKRotaryEmbedding,
    MNKRotaryPositions;

NS_ASSUME_NONNULL_BEGIN

/// Records work for one command buffer, places barriers where two dispatches touch the same bytes, and submits it.
///
/// A call that fails has recorded nothing; one that would read memory which failed work was to write fails, until the
/// memory is written again. An encoder that is released before it is committed runs nothing, and no
/// cache advances. It belongs to one thread at a time, and one commit ends it.
///
/// ```objc
/// MNKCommandEncoder *step = [device commandEncoder];
/// if (![step appendKeys:k values:v toCache:cache error:&error] ||
///     ![step attendQueries:q overCache:cache intoTensor:out options:nil error:&error]) return error;
/// [step commitWithCompletionHandler:^(MNKSummary *_Nullable summary, NSError *_Nullable failure) { … }];
/// ```
__attribute__((objc_subclassing_restricted))
@interface MNKCommandEncoder : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

@property(nonatomic, readonly) MNKDevice *device;

/// Writes keys and values at the next positions of their sequences, or quantizes them, whichever the cache asks:
/// `[tokens, kvHeads, headDim]`, or `[kvHeads, headDim]` for one token. A tensor is token-major; a view can have
/// another layout.
- (BOOL)append:(MNKCacheStep *)step
       toCache:(MNKAttentionCache *)cache
         error:(NSError **)error NS_SWIFT_NAME(append(_:to:));
/// The same for the only sequence of a cache.
- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
             error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:));

/// Attends queries, the newest tokens of their sequences, to all that the cache holds of them, with what this encoder
/// has appended: `[heads, headDim]` for one row, or `[rows, heads, headDim]`. All sequences attend in the same
/// dispatch, even if row counts differ; a mask needs equal counts.
///
/// With a window, a row that would see a position that a ring has overwritten is an error. Without one a row sees what
/// the ring holds up to its own position. Several rows in one step then see less than the same rows one at a time,
/// because all of their keys are stored before the first attends; `appendAndAttend:` gives the results of one at a
/// time.
- (BOOL)attend:(MNKCacheStep *)step
     overCache:(MNKAttentionCache *)cache
         error:(NSError **)error NS_SWIFT_NAME(attend(_:over:));
/// The same for the only sequence of a cache.
- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
           intoTensor:(MNKTensor *)output
              options:(nullable MNKAttentionOptions *)options
                error:(NSError **)error NS_SWIFT_NAME(attend(_:over:into:options:));

/// Appends any number of tokens and attends with their queries, in chunks that a ring can serve. Gives the same results
/// as appending and attending one token at a time. Tokens that take several chunks need causal attention, without a
/// mask. A step with a rotary embedding rotates queries and keys in the dispatch that stores the keys.
- (BOOL)appendAndAttend:(MNKCacheStep *)step
              overCache:(MNKAttentionCache *)cache
                  error:(NSError **)error NS_SWIFT_NAME(appendAndAttend(_:over:));

/// Replaces a sequence with a copy of another.
- (BOOL)copySequence:(NSUInteger)source
          toSequence:(NSUInteger)target
             inCache:(MNKAttentionCache *)cache
               error:(NSError **)error NS_SWIFT_NAME(copySequence(_:to:in:));
/// Replaces a sequence of another cache, which has the same heads, head dims, storage, means and channel scales. Its
/// capacity may differ, as long as it holds every position that is copied: a sequence that a ring has overwritten in
/// part fits only a ring with the same number of pinned positions.
- (BOOL)copySequence:(NSUInteger)source
             ofCache:(MNKAttentionCache *)cache
          toSequence:(NSUInteger)target
             ofCache:(MNKAttentionCache *)other
               error:(NSError **)error NS_SWIFT_NAME(copySequence(_:of:to:of:));
/// A new cache of a larger capacity with the contents of this one: the same sequences at the same positions. Only the
/// encoder can use it until it is committed: to others, its sequences are suspect. A recording cannot grow a cache.
/// This one stays as it is. Positions that a ring has overwritten stay lost.
- (nullable MNKAttentionCache *)growCache:(MNKAttentionCache *)cache
                               toCapacity:(NSUInteger)capacity
                                    error:(NSError **)error NS_SWIFT_NAME(grow(_:toCapacity:));

/// Rotates queries, and keys, in place by their positions: token-major, `[tokens, heads, headDim]`, `[heads, headDim]`
/// for one token, or `[sequences, tokens, heads, headDim]`. `MNKMultiRoPE` has more options.
- (BOOL)rotateQueries:(MNKTensor *)queries
                 keys:(nullable MNKTensor *)keys
            positions:(MNKRotaryPositions *)positions
               rotary:(MNKRotaryEmbedding *)rotary
                error:(NSError **)error NS_SWIFT_NAME(rotate(_:_:positions:rotary:));

/// A new, quantized cache with the contents of a dense one: the same sequences, positions and slots. Only the encoder
/// can use it until it is committed. Sequences of the same length are quantized in one dispatch, keys and values
/// together; with means or channel scales there is one for each sequence.
- (nullable MNKAttentionCache *)quantizeCache:(MNKAttentionCache *)cache
                                    asStorage:(MNKKVQuantizedStorage *)storage
                                        error:(NSError **)error NS_SWIFT_NAME(quantize(_:as:));

/// Dequantizes positions of a quantized cache; the tensors say how many: `[tokens, kvHeads, headDim]`, or without
/// tokens for one. At least one of keys and values.
- (BOOL)dequantizeCache:(MNKAttentionCache *)cache
               intoKeys:(nullable MNKTensor *)keys
                 values:(nullable MNKTensor *)values
               position:(NSUInteger)position
               sequence:(NSUInteger)sequence
                 domain:(MNKKVDomain)domain
                  error:(NSError **)error NS_SWIFT_NAME(dequantize(_:keys:values:position:sequence:domain:));

/// Records an op with the caller's own operands.
- (BOOL)encodeOperation:(MNKOperation *)operation error:(NSError **)error NS_SWIFT_NAME(encode(_:));
/// Records one launch of the caller's own kernel.
- (BOOL)encodeDispatch:(MNKDispatch *)dispatch error:(NSError **)error NS_SWIFT_NAME(encode(_:));
/// Orders everything recorded so far before everything that follows. Dispatches that touch the same bytes are ordered
/// without it.
- (BOOL)insertBarrierWithError:(NSError **)error NS_SWIFT_NAME(insertBarrier());

/// Measures how long each kind of op takes on the device, for `MNKSummary`. At any time before the commit. Measured ops
/// run one after another, which costs some microseconds each on a GPU.
- (BOOL)measureOpsWithError:(NSError **)error NS_SWIFT_NAME(measureOps());

/// Submits the work. It fails if it reads what earlier, failed work was to write.
- (nullable MNKCompletion *)commitWithError:(NSError **)error NS_SWIFT_NAME(commit());
/// Submits the work. The handler is called once, with what was done or with why it failed: on a thread of the device
/// when the work is done, or before this returns if it cannot be submitted. It can read the results of this work. It
/// cannot wait for other work, which may need that thread: such waits fail with `MNKErrorWouldDeadlock`.
- (void)commitWithCompletionHandler:
    (void(NS_SWIFT_SENDABLE ^)(MNKSummary *_Nullable summary, NSError *_Nullable failure))completionHandler
    NS_SWIFT_ASYNC_NAME(run());

@end

NS_ASSUME_NONNULL_END
