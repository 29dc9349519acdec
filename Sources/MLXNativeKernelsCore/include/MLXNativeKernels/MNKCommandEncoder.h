#import <MLXNativeKernels/MNKAttentionOptions.h>
#import <MLXNativeKernels/MNKCompletion.h>
#import <MLXNativeKernels/MNKKVCacheDequantize.h>
#import <MLXNativeKernels/MNKMultiRoPE.h>
#import <MLXNativeKernels/MNKOperation.h>

@class MNKAttentionCache, MNKCachePrefix, MNKDevice, MNKDispatch, MNKQuantizedStorage;

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

/// Writes keys and values at the next position of the only sequence, or quantizes them, whichever the cache
/// asks: `[tokens, kvHeads, headDim]`, or `[kvHeads, headDim]` for one token. A tensor is token-major; a view can have
/// another layout.
- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
             error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:));
/// The same for one of several sequences.
- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
          sequence:(NSUInteger)sequence
             error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:sequence:));
/// One token for each listed sequence, in the order of the list, or `[sequences, tokens, kvHeads, headDim]`.
- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
         sequences:(NSArray<NSNumber *> *)sequences
             error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:sequences:));
/// Appends tokens of one sequence in any layout.
- (BOOL)appendKeysView:(MNKHeadsView *)keys
            valuesView:(MNKHeadsView *)values
               toCache:(MNKAttentionCache *)cache
              sequence:(NSUInteger)sequence
                 error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:sequence:));
/// Appends tokens of several sequences in any layout, in the order of the list. A sequence that is listed again
/// continues.
///
/// - Parameter rowCounts: How many tokens each listed sequence has; `nil` means one for each, or as many as the views
///   have for each of their sequences.
- (BOOL)appendKeysView:(MNKHeadsView *)keys
            valuesView:(MNKHeadsView *)values
               toCache:(MNKAttentionCache *)cache
             sequences:(NSArray<NSNumber *> *)sequences
             rowCounts:(nullable NSArray<NSNumber *> *)rowCounts
                 error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:sequences:rowCounts:));

/// Attends queries, the newest tokens of the only sequence, to all that the cache holds of it, with what this
/// encoder has appended: `[heads, headDim]` for one row, or `[rows, heads, headDim]`.
///
/// With a window, a row that would see a position that a ring has overwritten is an error. Without one a row sees what
/// the ring holds up to its own position. Several rows in one step then see less than the same rows one at a time,
/// because all of their keys are stored before the first attends; `appendAndAttendQueries:` gives the results of one at
/// a time.
- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
           intoTensor:(MNKTensor *)output
              options:(nullable MNKAttentionOptions *)options
                error:(NSError **)error NS_SWIFT_NAME(attend(_:over:into:options:));
/// The same for one of several sequences, and optionally with the logarithm of the sum.
- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
             sequence:(NSUInteger)sequence
              results:(MNKAttentionResults *)results
              options:(nullable MNKAttentionOptions *)options
                error:(NSError **)error NS_SWIFT_NAME(attend(_:over:sequence:results:options:));
/// The same number of rows of each listed sequence: `[sequences, rows, heads, headDim]`, or
/// `[sequences, heads, headDim]` for one.
- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
            sequences:(NSArray<NSNumber *> *)sequences
              results:(MNKAttentionResults *)results
              options:(nullable MNKAttentionOptions *)options
                error:(NSError **)error NS_SWIFT_NAME(attend(_:over:sequences:results:options:));
/// Attends queries of one sequence in any layout.
- (BOOL)attendQueriesView:(MNKHeadsView *)queries
                overCache:(MNKAttentionCache *)cache
                 sequence:(NSUInteger)sequence
                  results:(MNKAttentionResults *)results
                  options:(nullable MNKAttentionOptions *)options
                    error:(NSError **)error NS_SWIFT_NAME(attend(_:over:sequence:results:options:));
/// Attends queries of several sequences in any layout. Lists mean what they mean in an append: a sequence's rows are
/// its newest tokens, or the newest before those of a later entry for the same sequence. All attend in the same
/// dispatch, even if row counts differ; a mask needs equal counts.
- (BOOL)attendQueriesView:(MNKHeadsView *)queries
                overCache:(MNKAttentionCache *)cache
                sequences:(NSArray<NSNumber *> *)sequences
                rowCounts:(nullable NSArray<NSNumber *> *)rowCounts
                  results:(MNKAttentionResults *)results
                  options:(nullable MNKAttentionOptions *)options
                    error:(NSError **)error NS_SWIFT_NAME(attend(_:over:sequences:rowCounts:results:options:));

/// Attends queries of sequences whose first tokens are in other caches, such as a prompt that several conversations
/// share. Position 0 of a listed sequence follows the last position of the last prefix: causality, windows and slopes
/// are those of one sequence with all tokens. There is no mask.
- (BOOL)attendQueriesView:(MNKHeadsView *)queries
                overCache:(MNKAttentionCache *)cache
                sequences:(NSArray<NSNumber *> *)sequences
                rowCounts:(nullable NSArray<NSNumber *> *)rowCounts
                    after:(NSArray<MNKCachePrefix *> *)prefixes
                  results:(MNKAttentionResults *)results
                  options:(nullable MNKAttentionOptions *)options
                    error:(NSError **)error NS_SWIFT_NAME(attend(_:over:sequences:rowCounts:after:results:options:));

/// Appends any number of tokens of one sequence and attends with their queries, in chunks that a ring can serve: the
/// results are those of appending and attending token by token. Tokens that take several chunks need causal attention,
/// without a mask.
- (BOOL)appendAndAttendQueries:(MNKHeadsView *)queries
                          keys:(MNKHeadsView *)keys
                        values:(MNKHeadsView *)values
                     overCache:(MNKAttentionCache *)cache
                      sequence:(NSUInteger)sequence
                       results:(MNKAttentionResults *)results
                       options:(nullable MNKAttentionOptions *)options
                         error:(NSError **)error
    NS_SWIFT_NAME(appendAndAttend(_:keys:values:over:sequence:results:options:));
/// The same with queries and keys that are rotated in the dispatch that stores the keys; those that are passed do not
/// change.
- (BOOL)appendAndAttendQueries:(MNKHeadsView *)queries
                          keys:(MNKHeadsView *)keys
                        values:(MNKHeadsView *)values
                        rotary:(nullable MNKRotaryStep *)rotary
                     overCache:(MNKAttentionCache *)cache
                      sequence:(NSUInteger)sequence
                       results:(MNKAttentionResults *)results
                       options:(nullable MNKAttentionOptions *)options
                         error:(NSError **)error
    NS_SWIFT_NAME(appendAndAttend(_:keys:values:rotary:over:sequence:results:options:));
/// The same for several sequences, with the meaning that lists have in `appendKeysView:`. An entry counts as a sequence
/// of positions and offsets.
- (BOOL)appendAndAttendQueries:(MNKHeadsView *)queries
                          keys:(MNKHeadsView *)keys
                        values:(MNKHeadsView *)values
                        rotary:(nullable MNKRotaryStep *)rotary
                     overCache:(MNKAttentionCache *)cache
                     sequences:(NSArray<NSNumber *> *)sequences
                     rowCounts:(nullable NSArray<NSNumber *> *)rowCounts
                       results:(MNKAttentionResults *)results
                       options:(nullable MNKAttentionOptions *)options
                         error:(NSError **)error
    NS_SWIFT_NAME(appendAndAttend(_:keys:values:rotary:over:sequences:rowCounts:results:options:));

/// The same for sequences whose first tokens are in other caches, as in `attendQueriesView:`. Without positions in
/// `rotary`, tokens are rotated by their positions after the prefixes.
- (BOOL)appendAndAttendQueries:(MNKHeadsView *)queries
                          keys:(MNKHeadsView *)keys
                        values:(MNKHeadsView *)values
                        rotary:(nullable MNKRotaryStep *)rotary
                     overCache:(MNKAttentionCache *)cache
                     sequences:(NSArray<NSNumber *> *)sequences
                     rowCounts:(nullable NSArray<NSNumber *> *)rowCounts
                         after:(NSArray<MNKCachePrefix *> *)prefixes
                       results:(MNKAttentionResults *)results
                       options:(nullable MNKAttentionOptions *)options
                         error:(NSError **)error
    NS_SWIFT_NAME(appendAndAttend(_:keys:values:rotary:over:sequences:rowCounts:after:results:options:));

/// Replaces a sequence with a copy of another.
- (BOOL)copySequence:(NSUInteger)source
          toSequence:(NSUInteger)target
             inCache:(MNKAttentionCache *)cache
               error:(NSError **)error NS_SWIFT_NAME(copySequence(_:to:in:));
/// Replaces a sequence of another cache, which has the same heads, head dims, storage, means and channel scales. Its
/// capacity may differ, as long as it holds every position that is copied: a sequence that a ring has overwritten in
/// part fits only a ring with as many pinned positions.
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
                                    asStorage:(MNKQuantizedStorage *)storage
                                        error:(NSError **)error NS_SWIFT_NAME(quantize(_:as:));

/// Dequantizes positions of a quantized cache, as many as the tensors hold: `[tokens, kvHeads, headDim]`, or without
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
