#import <MLXNativeKernels/MNKAttentionOptions.h>
#import <MLXNativeKernels/MNKCompletion.h>
#import <MLXNativeKernels/MNKKVCacheDequantize.h>
#import <MLXNativeKernels/MNKMultiRoPE.h>
#import <MLXNativeKernels/MNKOperation.h>

@class MNKAttentionCache, MNKDevice, MNKDispatch;

NS_ASSUME_NONNULL_BEGIN

/// Records work for one command buffer, places barriers where two dispatches touch the same bytes, and submits it.
///
/// A call that fails has recorded nothing. An encoder that is released before it is committed runs nothing, and no
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

/// Writes keys and values at the next position of the only or first sequence, or quantizes them, whichever the cache
/// asks: `[tokens, kvHeads, headDim]`, or `[kvHeads, headDim]` for one token.
- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
             error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:));
/// The same for any sequence.
- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
          sequence:(NSUInteger)sequence
             error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:sequence:));
/// One token for each listed sequence, in the order of the list.
- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
         sequences:(NSArray<NSNumber *> *)sequences
             error:(NSError **)error NS_SWIFT_NAME(append(keys:values:to:sequences:));

/// Attends queries, the newest tokens of the only or first sequence, to all that the cache holds of it, with what this
/// encoder has appended: `[heads, headDim]` for one row, or `[rows, heads, headDim]`.
- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
           intoTensor:(MNKTensor *)output
              options:(nullable MNKAttentionOptions *)options
                error:(NSError **)error NS_SWIFT_NAME(attend(_:over:into:options:));
/// The same for any sequence, and with partials or the logarithm of the sum where they are wanted.
- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
             sequence:(NSUInteger)sequence
              results:(MNKAttentionResults *)results
              options:(nullable MNKAttentionOptions *)options
                error:(NSError **)error NS_SWIFT_NAME(attend(_:over:sequence:results:options:));
/// As many rows of each listed sequence: `[sequences, rows, heads, headDim]`, or `[sequences, heads, headDim]` for one.
- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
            sequences:(NSArray<NSNumber *> *)sequences
              results:(MNKAttentionResults *)results
              options:(nullable MNKAttentionOptions *)options
                error:(NSError **)error NS_SWIFT_NAME(attend(_:over:sequences:results:options:));

/// Turns queries, and keys, in place by their positions: token-major, `[tokens, heads, headDim]`, `[heads, headDim]`
/// for one token, or `[sequences, tokens, heads, headDim]`. `MNKMultiRoPE` can do more.
- (BOOL)rotateQueries:(MNKTensor *)queries
                 keys:(nullable MNKTensor *)keys
            positions:(MNKRotaryPositions *)positions
               rotary:(MNKRotaryEmbedding *)rotary
                error:(NSError **)error NS_SWIFT_NAME(rotate(_:_:positions:rotary:));

/// Reads positions of a quantized cache as numbers, as many as the tensors hold: `[tokens, kvHeads, headDim]`, or
/// without tokens for one. At least one of keys and values.
- (BOOL)dequantizeCache:(MNKAttentionCache *)cache
               intoKeys:(nullable MNKTensor *)keys
                 values:(nullable MNKTensor *)values
               position:(NSUInteger)position
               sequence:(NSUInteger)sequence
                 domain:(MNKKVDomain)domain
                  error:(NSError **)error NS_SWIFT_NAME(dequantize(_:keys:values:position:sequence:domain:));

/// Records an op with operands of the caller's own.
- (BOOL)encodeOperation:(MNKOperation *)operation error:(NSError **)error NS_SWIFT_NAME(encode(_:));
/// Records one launch of a kernel of the caller's own.
- (BOOL)encodeDispatch:(MNKDispatch *)dispatch error:(NSError **)error NS_SWIFT_NAME(encode(_:));
/// Orders everything recorded so far before everything that follows. Dispatches that touch the same bytes are ordered
/// without it.
- (BOOL)insertBarrierWithError:(NSError **)error NS_SWIFT_NAME(insertBarrier());

/// Submits the work.
- (nullable MNKCompletion *)commitWithError:(NSError **)error NS_SWIFT_NAME(commit());
/// Submits the work. The handler is called once, with what was done or with why it failed: on a thread of the device
/// when the work is done, or before this returns where it cannot be submitted. It must not wait for other work of the
/// device.
- (void)commitWithCompletionHandler:
    (void(NS_SWIFT_SENDABLE ^)(MNKSummary *_Nullable summary, NSError *_Nullable failure))completionHandler
    NS_SWIFT_ASYNC_NAME(run());

@end

NS_ASSUME_NONNULL_END
