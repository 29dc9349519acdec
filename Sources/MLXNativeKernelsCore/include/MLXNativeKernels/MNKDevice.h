#import <Foundation/Foundation.h>

@class MNKCommandEncoder, MNKHostOptions, MNKPreparation, MNKPreparationSummary, MNKSummary;

NS_ASSUME_NONNULL_BEGIN

/// What a device runs on.
typedef NSString *MNKDeviceKind NS_TYPED_EXTENSIBLE_ENUM;
/// The processor's cores, running the same kernel source.
FOUNDATION_EXPORT MNKDeviceKind const MNKDeviceKindHost;
/// An Apple GPU.
FOUNDATION_EXPORT MNKDeviceKind const MNKDeviceKindMetal;

/// A device that runs kernels: a GPU, or the processor instead of one.
///
/// Submissions run in the order they are committed. A device may be used from several threads.
///
/// ```objc
/// MNKDevice *device = [MNKDevice defaultDeviceWithError:&error];
/// MNKCommandEncoder *step = [device commandEncoder];
/// ```
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKDevice : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// The best device here: the GPU on Apple platforms, the Host device elsewhere, or the one that the environment names
/// (`MNK_DEVICE=host` or `metal`).
+ (nullable instancetype)defaultDeviceWithError:(NSError **)error NS_SWIFT_NAME(makeDefault());

/// Every available device, the best one first.
@property(class, nonatomic, readonly, copy) NSArray<MNKDevice *> *allDevices;

/// A Host device; without options, one with the defaults.
///
/// On Apple platforms the program must link the product MLXNativeKernelsHost and call `mnk_register_host_device()` of
/// `<MLXNativeKernelsHost/MLXNativeKernelsHost.h>` first. Otherwise the call fails with `MNKErrorUnsupported`, and the
/// error names the product.
+ (nullable instancetype)hostDeviceWithOptions:(nullable MNKHostOptions *)options
                                         error:(NSError **)error NS_SWIFT_NAME(makeHost(options:));

@property(nonatomic, readonly, copy) MNKDeviceKind kind;
/// A human-readable name, such as that of the GPU.
@property(nonatomic, readonly, copy) NSString *name;

/// Records work for one command buffer.
- (MNKCommandEncoder *)commandEncoder NS_SWIFT_NAME(makeCommandEncoder());
/// The label is a name for debuggers and messages.
- (MNKCommandEncoder *)commandEncoderWithLabel:(NSString *)label NS_SWIFT_NAME(makeCommandEncoder(label:));

/// Runs the block with an encoder, commits what it recorded and waits until the work is done.
///
/// Nothing runs if the block returns `NO`; then the error is the one that it stored. In a handler of finished work this
/// fails with `MNKErrorWouldDeadlock`.
///
/// ```objc
/// MNKSummary *summary = [device runWithError:&error block:^BOOL(MNKCommandEncoder *step, NSError **failure) {
///   return [step appendKeys:k values:v toCache:cache error:failure] &&
///          [step attendQueries:q overCache:cache intoTensor:out options:nil error:failure];
/// }];
/// ```
- (nullable MNKSummary *)runWithError:(NSError **)error
                                block:(BOOL(NS_NOESCAPE ^)(MNKCommandEncoder *step, NSError **failure))block
    NS_SWIFT_NAME(run(_:));

/// Compiles the kernels of steps over caches ahead of time, and measures which are the fastest if asked to.
///
/// Without it, a step compiles what it needs when it is first recorded. The call waits for the device; in a handler of
/// finished work it fails with `MNKErrorWouldDeadlock`. It does not change the caches.
- (nullable MNKPreparationSummary *)prepare:(MNKPreparation *)preparation error:(NSError **)error;

/// The newest failure of work submitted on this device, for logs; `nil` if there was none.
@property(nonatomic, readonly, nullable) NSError *lastFailure;

/// Releases all compiled kernels, so that a changed file is read again. Kernels in use stay valid.
- (void)clearKernels;

@end

NS_ASSUME_NONNULL_END
