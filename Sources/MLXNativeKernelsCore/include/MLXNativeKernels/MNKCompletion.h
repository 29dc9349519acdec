#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// How many dispatches there were, the bytes that they moved and, if it was measured, the time that they took.
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKCounts : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

@property(nonatomic, readonly) NSUInteger dispatches;
@property(nonatomic, readonly) NSUInteger bytesRead;
@property(nonatomic, readonly) NSUInteger bytesWritten;
/// Time on the device; in the total that of all kinds. 0 unless `-[MNKCommandEncoder measureOpsWithError:]` was called,
/// the device can measure, and the work has finished.
@property(nonatomic, readonly) NSTimeInterval deviceSeconds;

@end

/// What a step recorded. Its `description` is one line: `4 dispatches, 3 barriers, 1.1 MB read, 8.0 KB written, 41 µs`.
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKSummary : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

@property(nonatomic, readonly) MNKCounts *total;
@property(nonatomic, readonly) NSUInteger barriers;
/// Time that the whole step took on the device, measured or not; 0 until the work has finished.
@property(nonatomic, readonly) NSTimeInterval deviceSeconds;
/// The counts of all ops by name.
@property(nonatomic, readonly) NSDictionary<NSString *, MNKCounts *> *kinds;
/// The counts of one op, such as `KVCacheWrite`, or of the caller's own kind; zeros for an unknown one.
- (MNKCounts *)countsOfKind:(NSString *)kind NS_SWIFT_NAME(counts(ofKind:));

@end

/// Submitted work.
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKCompletion : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// Waits until the work is done. Every call returns the same result. In a handler of finished work it fails with
/// `MNKErrorWouldDeadlock` if this work is not done.
- (BOOL)waitWithError:(NSError **)error NS_SWIFT_NAME(wait());
@property(nonatomic, readonly, getter=isDone) BOOL done;
/// What was submitted; its time is 0 until the work is done.
@property(nonatomic, readonly) MNKSummary *summary;

@end

NS_ASSUME_NONNULL_END
