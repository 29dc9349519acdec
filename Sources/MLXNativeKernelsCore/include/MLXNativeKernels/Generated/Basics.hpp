// Generated from Sources/API by generate.py: change the description instead.
// Enums that everything else uses: types of elements, codes of errors, origins of kernels, and accesses.
#pragma once
#include <cstdint>
#include <string_view>

namespace mnk {

// What the elements of a tensor are.
enum class DType : uint32_t {
  // IEEE single precision, `float` in a kernel.
  f32,
  // IEEE half precision, `half` in a kernel.
  f16,
  // The upper 16 bits of f32, `bfloat` in a kernel.
  bf16,
  // Unsigned, 8 bits.
  u8,
  // Unsigned, 16 bits.
  u16,
  // Unsigned, 32 bits.
  u32,
  // Signed, 32 bits.
  i32,
};

constexpr std::string_view name(DType one) {
  switch (one) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::u8:
      return "u8";
    case DType::u16:
      return "u16";
    case DType::u32:
      return "u32";
    case DType::i32:
      return "i32";
  }
  return "unknown dtype";
}

// What kind of failure an error is. A program branches on this, never on text.
enum class ErrorCode : uint32_t {
  // The request is invalid. Nothing was encoded, and no memory was changed.
  invalidArgument = 1,
  // The device or this build lacks a feature.
  unsupported = 2,
  // Memory could not be allocated.
  outOfMemory = 3,
  // A file of kernels was not found.
  libraryNotFound = 4,
  // Kernel source does not compile, or lacks the function.
  shaderBuild = 5,
  // The device stopped a submission.
  deviceFault = 6,
  // The device is gone, or accepts no more work from this process; make another.
  deviceLost = 7,
  // The device stopped a submission that took too long.
  timeout = 8,
  // A kernel accessed memory that it does not own.
  pageFault = 9,
  // The system forbids work on the device now, such as while the app is in the background.
  notPermitted = 10,
  // Waiting here could never end, as in a handler of finished work, or for a command buffer that the app has not
  // committed.
  wouldDeadlock = 11,
};

constexpr std::string_view name(ErrorCode one) {
  switch (one) {
    case ErrorCode::invalidArgument:
      return "invalidArgument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::outOfMemory:
      return "outOfMemory";
    case ErrorCode::libraryNotFound:
      return "libraryNotFound";
    case ErrorCode::shaderBuild:
      return "shaderBuild";
    case ErrorCode::deviceFault:
      return "deviceFault";
    case ErrorCode::deviceLost:
      return "deviceLost";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::pageFault:
      return "pageFault";
    case ErrorCode::notPermitted:
      return "notPermitted";
    case ErrorCode::wouldDeadlock:
      return "wouldDeadlock";
  }
  return "unknown code";
}

// Where compiled kernels were found.
enum class LibraryOriginKind : uint32_t {
  // Compiled into the program.
  program,
  // The caller's source, compiled at run time.
  givenText,
  // A file that the caller named.
  givenFile,
  // The bundle that SwiftPM makes of this package's resources.
  moduleBundle,
  // The framework that holds this code.
  frameworkBundle,
  // The folder of the image that holds this code.
  besideCode,
  // The app's own resources.
  mainBundle,
  // The source that this package carries, compiled at run time.
  embeddedText,
};

constexpr std::string_view name(LibraryOriginKind one) {
  switch (one) {
    case LibraryOriginKind::program:
      return "the program";
    case LibraryOriginKind::givenText:
      return "given text";
    case LibraryOriginKind::givenFile:
      return "given file";
    case LibraryOriginKind::moduleBundle:
      return "module bundle";
    case LibraryOriginKind::frameworkBundle:
      return "framework bundle";
    case LibraryOriginKind::besideCode:
      return "beside the code";
    case LibraryOriginKind::mainBundle:
      return "main bundle";
    case LibraryOriginKind::embeddedText:
      return "embedded text";
  }
  return "unknown origin";
}

// What a kernel does to a tensor. What is written and not read is overwritten: a device that checks fills it with NaN
// first.
enum class Access : uint32_t {
  // It only reads.
  read,
  // It overwrites.
  write,
  // It reads and writes.
  readWrite,
};

}  // namespace mnk
