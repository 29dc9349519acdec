#import <MLXNativeKernels/MNKCommandEncoder.h>
#import <MLXNativeKernels/MNKDevice.h>
#import <MLXNativeKernels/MNKTensor.h>
#import <Metal/Metal.h>

NS_ASSUME_NONNULL_BEGIN

/// Metal's own objects in and out, without a copy. What is passed is retained for as long as it is needed.
@interface MNKDevice (MNKMetal)

/// A device over the app's GPU, with its own queue and the kernels that it finds.
+ (nullable instancetype)deviceWithMTLDevice:(id<MTLDevice>)device error:(NSError **)error;
/// A device over the app's Metal objects.
///
/// - Parameters:
///   - queue: Where work is submitted; without one the device makes its own.
///   - libraryURL: The compiled kernels of this framework; without it they are searched for.
///   - describesDispatches: Puts a debug group around each dispatch that names its op and its bytes, for captures.
+ (nullable instancetype)deviceWithMTLDevice:(id<MTLDevice>)device
                                       queue:(nullable id<MTLCommandQueue>)queue
                                  libraryURL:(nullable NSURL *)libraryURL
                         describesDispatches:(BOOL)describesDispatches
                                       error:(NSError **)error;
/// The same; `usesEmbeddedText` compiles the kernels from the text in this framework, whatever else there is.
+ (nullable instancetype)deviceWithMTLDevice:(id<MTLDevice>)device
                                       queue:(nullable id<MTLCommandQueue>)queue
                                  libraryURL:(nullable NSURL *)libraryURL
                         describesDispatches:(BOOL)describesDispatches
                            usesEmbeddedText:(BOOL)usesEmbeddedText
                                       error:(NSError **)error;

/// The GPU; `nil` for a device of another kind.
@property(nonatomic, readonly, nullable) id<MTLDevice> mtlDevice;
/// Where work is submitted; `nil` for a device of another kind.
@property(nonatomic, readonly, nullable) id<MTLCommandQueue> mtlCommandQueue;

/// Records into a command buffer that the app commits itself.
///
/// A commit of the encoder encodes everything into it, as one compute encoder, while no other encoder of it is open;
/// before that the command buffer is untouched. The work is done when the command buffer is. Commit it before you wait:
/// until then waiting for the completion does not return, and reading or writing what the work touches fails with
/// `MNKErrorWouldDeadlock`.
- (nullable MNKCommandEncoder *)commandEncoderIntoCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                                                          label:(NSString *)label
                                                          error:(NSError **)error
    NS_SWIFT_NAME(makeCommandEncoder(into:label:));

@end

@interface MNKTensor (MNKMetal)

/// A tensor over the app's Metal buffer, without a copy. It starts `offset` bytes into the buffer.
+ (nullable instancetype)tensorWrappingMTLBuffer:(id<MTLBuffer>)buffer
                                          offset:(NSUInteger)offset
                                           shape:(NSArray<NSNumber *> *)shape
                                     elementType:(MNKElementType)elementType
                                          device:(MNKDevice *)device
                                           error:(NSError **)error;

/// The Metal buffer that holds it, from `byteOffset` on; `nil` for a tensor of another device. What the app does with
/// it is not checked: reads and writes of its contents do not wait for submitted work, and the app's own work on it is
/// not waited for.
@property(nonatomic, readonly, nullable) id<MTLBuffer> mtlBuffer;

@end

NS_ASSUME_NONNULL_END
