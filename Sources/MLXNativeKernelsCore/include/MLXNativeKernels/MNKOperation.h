#import <MLXNativeKernels/MNKDescriptor.h>

@class MNKDevice;

NS_ASSUME_NONNULL_BEGIN

/// One dispatch of a plan.
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKPlannedDispatch : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// The kernel.
@property(nonatomic, readonly, copy) NSString *function;
/// Threads or threadgroups along three axes.
@property(nonatomic, readonly, copy) NSArray<NSNumber *> *grid;
@property(nonatomic, readonly) NSUInteger bytesRead;
@property(nonatomic, readonly) NSUInteger bytesWritten;

@end

/// What an op would run. Its `description` is human-readable text. It can be encoded later, and keeps the op's tensors.
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKPlan : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

@property(nonatomic, readonly, copy) NSArray<MNKPlannedDispatch *> *dispatches;
/// Memory that the op needs between its dispatches.
@property(nonatomic, readonly) NSUInteger scratchBytes;

@end

/// An op with its operands, for `-[MNKCommandEncoder encodeOperation:error:]`.
///
/// The classes derived from it in this framework are the ops; deriving others has no use.
@interface MNKOperation : MNKDescriptor

/// Checks every rule and returns what would run on a device, or on an unknown GPU, without running it.
- (nullable MNKPlan *)planForDevice:(nullable MNKDevice *)device error:(NSError **)error NS_SWIFT_NAME(plan(for:));

@end

NS_ASSUME_NONNULL_END
