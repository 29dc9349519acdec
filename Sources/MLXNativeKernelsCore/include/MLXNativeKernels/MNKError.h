#import <MLXNativeKernels/Generated/MNKBasics.h>
#import <MLXNativeKernels/mnk_version.h>

NS_ASSUME_NONNULL_BEGIN

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
