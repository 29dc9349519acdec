#import <MLXNativeKernels/MNKCommandEncoder.h>
#import <MLXNativeKernels/MNKDevice.h>

NS_ASSUME_NONNULL_BEGIN

/// A step that is recorded once and run many times, such as all layers of a token.
///
/// It keeps the calls that were made. A run makes them again: appends start where their caches then end, and attention
/// covers what the caches then hold. A run follows the rules of an encoder: all caches advance or none, and what no
/// longer fits, such as an append to a full cache, is an error before anything runs.
///
/// Rotary positions follow a cache if they are its next ones. Numbers and lists stay, and are refused in a step that
/// appends to a cache. Positions of ops over caller-owned caches stay too; a tensor is read when the step runs. A step
/// keeps the tensors and caches that it uses. Threads may share it.
///
/// ```objc
/// MNKRecordedStep *step = [device recordStepWithLabel:@"token" error:&error
///     block:^BOOL(MNKCommandEncoder *encoder, NSError **failure) {
///   return [encoder appendKeys:k values:v toCache:cache error:failure] &&
///          [encoder attendQueries:q overCache:cache intoTensor:out options:nil error:failure];
/// }];
/// MNKCompletion *done = [step runWithError:&error];
/// ```
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKRecordedStep : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// The device that it runs on.
@property(nonatomic, readonly) MNKDevice *device;

/// Records the step into a new command buffer and submits it. Fails with a retryable error if another thread ran the
/// step, or changed a cache that it uses, meanwhile.
- (nullable MNKCompletion *)runWithError:(NSError **)error NS_SWIFT_NAME(run());
/// The same with a handler, which is called once, as that of
/// `-[MNKCommandEncoder commitWithCompletionHandler:]`.
- (void)runWithCompletionHandler:(void(NS_SWIFT_SENDABLE ^)(MNKSummary *_Nullable summary, NSError *_Nullable failure))
                                     completionHandler NS_SWIFT_ASYNC_NAME(finishedRun());

/// What was recorded. Later runs may differ, as more keys are divided among more threadgroups.
@property(nonatomic, readonly) MNKSummary *summary;

@end

@interface MNKDevice (MNKRecordedStep)

/// Records the block's calls as a step that can be run later, any number of times.
///
/// Every rule is checked. Nothing runs, and no cache advances. The encoder ends with the block and cannot be committed.
/// There is no step if the block returns `NO`; then the error is the one that it stored.
- (nullable MNKRecordedStep *)recordStepWithLabel:(NSString *)label
                                            error:(NSError **)error
                                            block:(BOOL(NS_NOESCAPE ^)(MNKCommandEncoder *encoder, NSError **failure))
                                                      block NS_SWIFT_NAME(record(label:_:));

@end

@interface MNKCommandEncoder (MNKRecordedStep)

/// Records all calls of a step, together with the other work of this encoder. They count as a run once it is committed.
/// If a later call of the step is refused, the encoder cannot be committed.
- (BOOL)encodeStep:(MNKRecordedStep *)step error:(NSError **)error NS_SWIFT_NAME(encode(_:));
/// Records the dispatches of a plan that was made for the encoder's device.
- (BOOL)encodePlan:(MNKPlan *)plan error:(NSError **)error NS_SWIFT_NAME(encode(_:));

@end

NS_ASSUME_NONNULL_END
