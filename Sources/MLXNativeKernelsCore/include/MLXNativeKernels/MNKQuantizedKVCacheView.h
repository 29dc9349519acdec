#import <MLXNativeKernels/MNKKVCacheView.h>
#import <MLXNativeKernels/MNKKVCodec.h>

@class MNKDevice;

NS_ASSUME_NONNULL_BEGIN

/// Codes and scales of keys, or of values, in memory that the caller owns.
///
/// Shapes, where the first axis may be left out for a single sequence, and where scales have a last axis of 2 if a
/// vector has two of them:
/// - head-major: codes `[sequences, heads, capacity, codeBytes]`, scales `[sequences, heads, capacity]`
/// - token-major: codes `[sequences, capacity, heads, codeBytes]`, scales `[sequences, capacity, heads]`
///
/// What is quantized is `(x - means) .* channelScales`.
///
/// One of keys and values may be dense: `initWithElements:` makes such a plane.
@interface MNKQuantizedKVPlane : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithCodec:(MNKKVCodec *)codec
                        codes:(MNKTensor *)codes
                       scales:(nullable MNKTensor *)scales NS_DESIGNATED_INITIALIZER;
/// Dense vectors beside codes: `float32`, `float16` or `bfloat16`, with `headDim` instead of `codeBytes`.
- (instancetype)initWithElements:(MNKTensor *)elements;

/// New memory, in which every vector is zero. Without sequences (0) there is no axis of them.
+ (nullable instancetype)zerosWithCodec:(MNKKVCodec *)codec
                                  heads:(NSUInteger)heads
                                headDim:(NSUInteger)headDim
                               capacity:(NSUInteger)capacity
                              sequences:(NSUInteger)sequences
                                 layout:(MNKKVLayout)layout
                                 device:(MNKDevice *)device
                                  error:(NSError **)error
    NS_SWIFT_NAME(zeros(codec:heads:headDim:capacity:sequences:layout:device:));

/// Ignored for dense vectors.
@property(nonatomic, copy) MNKKVCodec *codec;
/// `uint8`, or the elements of dense vectors.
@property(nonatomic) MNKTensor *codes;
/// `float16` for turbo, otherwise `float32`; `nil` for dense vectors.
@property(nonatomic, nullable) MNKTensor *scales;
/// Subtracted from vectors before they are quantized: `float32`, `[heads, headDim]`. Turbo only.
@property(nonatomic, nullable) MNKTensor *means;
/// Multiplies the difference: `float32`, `[heads, headDim]`, none of them 0. Keys of turbo only.
@property(nonatomic, nullable) MNKTensor *channelScales;

@end

/// Memory of a quantized cache that the caller owns. Slots are those of an `MNKKVCacheView`.
@interface MNKQuantizedKVCacheView : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKQuantizedKVPlane *)keys
                      values:(nullable MNKQuantizedKVPlane *)values NS_DESIGNATED_INITIALIZER;

@property(nonatomic, copy) MNKQuantizedKVPlane *keys;
/// May have other bits and another head dim; `nil` for keys only.
@property(nonatomic, nullable, copy) MNKQuantizedKVPlane *values;
@property(nonatomic) MNKKVLayout layout;
@property(nonatomic) MNKKVWrap wrap;
/// First positions that a ring never overwrites.
@property(nonatomic) NSUInteger pinned;
/// The length of values that are the first part of keys, in a latent cache; 0 if keys and values are separate.
@property(nonatomic) NSUInteger latentDim;

/// Bytes that codes and scales of such a cache take, before it is made: an unsigned integer. Without values there are
/// only keys.
+ (nullable NSNumber *)byteCountWithKeys:(MNKKVCodec *)keys
                                  values:(nullable MNKKVCodec *)values
                                   heads:(NSUInteger)heads
                                 headDim:(NSUInteger)headDim
                            valueHeadDim:(NSUInteger)valueHeadDim
                                capacity:(NSUInteger)capacity
                               sequences:(NSUInteger)sequences
                                   error:(NSError **)error
    NS_SWIFT_NAME(byteCount(keys:values:heads:headDim:valueHeadDim:capacity:sequences:));

@end

NS_ASSUME_NONNULL_END
