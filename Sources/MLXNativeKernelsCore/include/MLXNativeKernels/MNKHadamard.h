#import <MLXNativeKernels/MNKKVCodec.h>
#import <MLXNativeKernels/MNKOperation.h>

NS_ASSUME_NONNULL_BEGIN

/// Applies the Walsh-Hadamard transform in natural order to every vector along a tensor's last axis, scaled so that
/// lengths do not change:
///
///     forward   y = H(s .* x) / sqrt(n)        inverse   y = s .* H(x) / sqrt(n)
///
/// where s are the signs of a codec at this length, or ones.
@interface MNKHadamard : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSource:(MNKTensor *)source
                    intoTensor:(nullable MNKTensor *)destination NS_DESIGNATED_INITIALIZER;

/// Any float type; its last axis is a power of two from 4 to 4096, or 80, 96, 112 or 192, where the transform is
/// turbo's rotation by blocks.
@property(nonatomic) MNKTensor *source;
/// Of the same shape; `nil` means in place.
@property(nonatomic, nullable) MNKTensor *destination;
/// Whether the signs of `codec` are used; else there are none.
@property(nonatomic) BOOL usesSigns;
/// Turbo by default.
@property(nonatomic) MNKKVCodecName codec;
@property(nonatomic, getter=isInverse) BOOL inverse;

@end

NS_ASSUME_NONNULL_END
