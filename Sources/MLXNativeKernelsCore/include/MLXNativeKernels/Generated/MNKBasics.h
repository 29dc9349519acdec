// Generated from Sources/API by generate.py: change the description instead.
#import <Foundation/Foundation.h>
#include "MLXNativeKernels/Generated/mnk_basics.h"

NS_ASSUME_NONNULL_BEGIN

/// The domain of every error that this framework returns.
///
/// `localizedDescription` is one string with all parts, `localizedFailureReason` says what is wrong, and
/// `localizedRecoverySuggestion` what to do about it. `NSDebugDescriptionErrorKey` adds the version of this package.
/// The keys of `MNKError.h` hold the parts.
FOUNDATION_EXPORT NSErrorDomain const MNKErrorDomain;

// clang-format off
/// What the elements of a tensor are.
typedef NS_CLOSED_ENUM(uint32_t, MNKElementType) {
  /// IEEE single precision, `float` in a kernel.
  MNKElementTypeFloat32 = MNK_F32,
  /// IEEE half precision, `half` in a kernel.
  MNKElementTypeFloat16 = MNK_F16,
  /// The upper 16 bits of `float32`, `bfloat` in a kernel.
  MNKElementTypeBFloat16 NS_SWIFT_NAME(bfloat16) = MNK_BF16,
  /// Unsigned, 8 bits.
  MNKElementTypeUInt8 NS_SWIFT_NAME(uint8) = MNK_U8,
  /// Unsigned, 16 bits.
  MNKElementTypeUInt16 NS_SWIFT_NAME(uint16) = MNK_U16,
  /// Unsigned, 32 bits.
  MNKElementTypeUInt32 NS_SWIFT_NAME(uint32) = MNK_U32,
  /// Signed, 32 bits.
  MNKElementTypeInt32 = MNK_I32,
};
// clang-format on

/// What kind of failure an error is. A program branches on this, never on text.
typedef NS_ERROR_ENUM(MNKErrorDomain, MNKErrorCode){
    /// The request is invalid. Nothing was encoded, and no memory was changed.
    MNKErrorInvalidArgument = MNK_INVALID_ARGUMENT,
    /// The device or this build lacks a feature.
    MNKErrorUnsupported = MNK_UNSUPPORTED,
    /// Memory could not be allocated.
    MNKErrorOutOfMemory = MNK_OUT_OF_MEMORY,
    /// A file of kernels was not found.
    MNKErrorLibraryNotFound = MNK_LIBRARY_NOT_FOUND,
    /// Kernel source does not compile, or lacks the function.
    MNKErrorShaderBuild = MNK_SHADER_BUILD,
    /// The device stopped a submission.
    MNKErrorDeviceFault = MNK_DEVICE_FAULT,
    /// The device is gone, or accepts no more work from this process; make another.
    MNKErrorDeviceLost = MNK_DEVICE_LOST,
    /// The device stopped a submission that took too long.
    MNKErrorTimeout = MNK_TIMEOUT,
    /// A kernel accessed memory that it does not own.
    MNKErrorPageFault = MNK_PAGE_FAULT,
    /// The system forbids work on the device now, such as while the app is in the background.
    MNKErrorNotPermitted = MNK_NOT_PERMITTED,
    /// Waiting here could never end, as in a handler of finished work, or for a command buffer that the app has not
    /// committed.
    MNKErrorWouldDeadlock = MNK_WOULD_DEADLOCK,
};

/// Where compiled kernels were found.
typedef NS_CLOSED_ENUM(uint32_t, MNKLibraryOrigin) {
  /// Compiled into the program.
  MNKLibraryOriginProgram = MNK_ORIGIN_PROGRAM,
  /// The caller's source, compiled at run time.
  MNKLibraryOriginGivenText = MNK_ORIGIN_GIVEN_TEXT,
  /// A file that the caller named.
  MNKLibraryOriginGivenFile = MNK_ORIGIN_GIVEN_FILE,
  /// The bundle that SwiftPM makes of this package's resources.
  MNKLibraryOriginModuleBundle = MNK_ORIGIN_MODULE_BUNDLE,
  /// The framework that holds this code.
  MNKLibraryOriginFrameworkBundle = MNK_ORIGIN_FRAMEWORK_BUNDLE,
  /// The folder of the image that holds this code.
  MNKLibraryOriginBesideCode = MNK_ORIGIN_BESIDE_CODE,
  /// The app's own resources.
  MNKLibraryOriginMainBundle = MNK_ORIGIN_MAIN_BUNDLE,
  /// The source that this package carries, compiled at run time.
  MNKLibraryOriginEmbeddedText = MNK_ORIGIN_EMBEDDED_TEXT,
};

/// What a kernel does to a tensor. What is written and not read is overwritten: a device that checks fills it with NaN
/// first.
typedef NS_CLOSED_ENUM(uint32_t, MNKAccess) {
  /// It only reads.
  MNKAccessRead = MNK_READ,
  /// It overwrites.
  MNKAccessWrite = MNK_WRITE,
  /// It reads and writes.
  MNKAccessReadWrite = MNK_READ_WRITE,
};

NS_ASSUME_NONNULL_END
