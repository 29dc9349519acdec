// Generated from Sources/API by generate.py: change the description instead.
// Enums that everything else uses: types of elements, codes of errors, origins of kernels, and accesses.
#ifndef MNK_BASICS_H
#define MNK_BASICS_H

#include "MLXNativeKernels/mnk_language.h"

MNK_HEADER_BEGIN

// What the elements of a tensor are.
typedef enum MNK_CLOSED(mnk_dtype) {
  // IEEE single precision, `float` in a kernel.
  MNK_F32 = 0,
  // IEEE half precision, `half` in a kernel.
  MNK_F16 = 1,
  // The upper 16 bits of f32, `bfloat` in a kernel.
  MNK_BF16 = 2,
  // Unsigned, 8 bits.
  MNK_U8 = 3,
  // Unsigned, 16 bits.
  MNK_U16 = 4,
  // Unsigned, 32 bits.
  MNK_U32 = 5,
  // Signed, 32 bits.
  MNK_I32 = 6,
} mnk_dtype;

// What kind of failure an error is. A program branches on this, never on text.
typedef enum MNK_CLOSED(mnk_error_code) {
  // The request is invalid. Nothing was encoded, and no memory was changed.
  MNK_INVALID_ARGUMENT = 1,
  // The device or this build lacks a feature.
  MNK_UNSUPPORTED = 2,
  // Memory could not be allocated.
  MNK_OUT_OF_MEMORY = 3,
  // A file of kernels was not found.
  MNK_LIBRARY_NOT_FOUND = 4,
  // Kernel source does not compile, or lacks the function.
  MNK_SHADER_BUILD = 5,
  // The device stopped a submission.
  MNK_DEVICE_FAULT = 6,
  // The device is gone, or accepts no more work from this process; make another.
  MNK_DEVICE_LOST = 7,
  // The device stopped a submission that took too long.
  MNK_TIMEOUT = 8,
  // A kernel accessed memory that it does not own.
  MNK_PAGE_FAULT = 9,
  // The system forbids work on the device now, such as while the app is in the background.
  MNK_NOT_PERMITTED = 10,
  // Waiting here could never end, as in a handler of finished work, or for a command buffer that the app has not
  // committed.
  MNK_WOULD_DEADLOCK = 11,
} mnk_error_code;

// Where compiled kernels were found.
typedef enum MNK_CLOSED(mnk_library_origin) {
  // Compiled into the program.
  MNK_ORIGIN_PROGRAM = 0,
  // The caller's source, compiled at run time.
  MNK_ORIGIN_GIVEN_TEXT = 1,
  // A file that the caller named.
  MNK_ORIGIN_GIVEN_FILE = 2,
  // The bundle that SwiftPM makes of this package's resources.
  MNK_ORIGIN_MODULE_BUNDLE = 3,
  // The framework that holds this code.
  MNK_ORIGIN_FRAMEWORK_BUNDLE = 4,
  // The folder of the image that holds this code.
  MNK_ORIGIN_BESIDE_CODE = 5,
  // The app's own resources.
  MNK_ORIGIN_MAIN_BUNDLE = 6,
  // The source that this package carries, compiled at run time.
  MNK_ORIGIN_EMBEDDED_TEXT = 7,
} mnk_library_origin;

// What a kernel does to a tensor. What is written and not read is overwritten: a device that checks fills it with NaN
// first.
typedef enum MNK_CLOSED(mnk_access) {
  // It only reads.
  MNK_READ = 0,
  // It overwrites.
  MNK_WRITE = 1,
  // It reads and writes.
  MNK_READ_WRITE = 2,
} mnk_access;

MNK_HEADER_END

#endif
