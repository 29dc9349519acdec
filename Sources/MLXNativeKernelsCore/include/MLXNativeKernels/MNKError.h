#import <Foundation/Foundation.h>
#import <MLXNativeKernels/mnk_version.h>

NS_ASSUME_NONNULL_BEGIN

/// The domain of every error that this framework returns.
///
/// `localizedDescription` is one string with all parts, `localizedFailureReason` says what is wrong, and
/// `localizedRecoverySuggestion` what to do about it. `NSDebugDescriptionErrorKey` adds the version of this package.
/// The keys below hold the parts.
FOUNDATION_EXPORT NSErrorDomain const MNKErrorDomain;

/// What kind of failure an error is. A program branches on this, never on text.
typedef NS_ERROR_ENUM(MNKErrorDomain, MNKErrorCode){
    /// The request is invalid. Nothing was recorded, and no memory was changed.
    MNKErrorInvalidArgument = 1,
    /// The device or this build lacks a feature.
    MNKErrorUnsupported = 2,
    /// Memory could not be allocated.
    MNKErrorOutOfMemory = 3,
    /// A file of kernels was not found.
    MNKErrorLibraryNotFound = 4,
    /// Kernel source does not compile, or lacks the function.
    MNKErrorShaderBuild = 5,
    /// The device stopped a submission.
    MNKErrorDeviceFault = 6,
    /// The device is gone, or accepts no more work from this process. Make another.
    MNKErrorDeviceLost = 7,
    /// The device stopped a submission that took too long.
    MNKErrorTimeout = 8,
    /// A kernel accessed memory that it does not own.
    MNKErrorPageFault = 9,
    /// The system forbids work on the device now, such as while the app is in the background.
    MNKErrorNotPermitted = 10,
    /// Waiting here could never end, such as in a handler of finished work.
    MNKErrorWouldDeadlock = 11,
};

/// An `NSString`: the op or the object that refused the call, such as `KVCacheWrite`.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorOpKey;
/// An `NSString`: what is wrong.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorWhatKey;
/// An `NSString`: what was passed.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorGotKey;
/// An `NSString`: what was expected.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorExpectedKey;
/// An `NSString`: how to fix it.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorFixKey;
/// An `NSNumber`: whether the same call may succeed later.
FOUNDATION_EXPORT NSErrorUserInfoKey const MNKErrorIsRetryableKey;

NS_ASSUME_NONNULL_END
