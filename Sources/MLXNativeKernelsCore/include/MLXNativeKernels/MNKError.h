#import <Foundation/Foundation.h>
#import <MLXNativeKernels/mnk_version.h>

NS_ASSUME_NONNULL_BEGIN

/// The domain of every error that this framework returns.
///
/// `localizedDescription` is one text with all parts, `localizedFailureReason` says what is wrong, and
/// `localizedRecoverySuggestion` what to do about it. `NSDebugDescriptionErrorKey` adds the version of this package.
/// The parts by themselves are under the keys below.
FOUNDATION_EXPORT NSErrorDomain const MNKErrorDomain;

/// What kind of failure an error is. A program branches on this, never on text.
typedef NS_ERROR_ENUM(MNKErrorDomain, MNKErrorCode){
    /// The request breaks a rule. Nothing was recorded, and no memory was changed.
    MNKErrorInvalidArgument = 1,
    /// The device or this build lacks something.
    MNKErrorUnsupported = 2,
    /// Memory could not be had.
    MNKErrorOutOfMemory = 3,
    /// A file of kernels was not found.
    MNKErrorLibraryNotFound = 4,
    /// Kernel text does not compile, or lacks the function.
    MNKErrorShaderBuild = 5,
    /// The device stopped a submission.
    MNKErrorDeviceFault = 6,
    /// The device is gone, or takes no more work of this process. Make another.
    MNKErrorDeviceLost = 7,
    /// The device stopped a submission that took too long.
    MNKErrorTimeout = 8,
    /// A kernel touched memory that is not its own.
    MNKErrorPageFault = 9,
    /// The system forbids work on the device now, such as while the app is in the background.
    MNKErrorNotPermitted = 10,
    /// Waiting here could never end, such as in a handler of finished work.
    MNKErrorWouldDeadlock = 11,
};

/// An `NSString`: the op or the object that refused, such as `KVCacheWrite`.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorOpKey;
/// An `NSString`: what is wrong.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorWhatKey;
/// An `NSString`: what was given.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorGotKey;
/// An `NSString`: what would have been right.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorExpectedKey;
/// An `NSString`: what to do about it.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorFixKey;
/// An `NSNumber`: whether the same call may succeed later.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorIsRetryableKey;

NS_ASSUME_NONNULL_END
