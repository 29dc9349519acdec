// Judgments that give nil, or a text that says what is wrong, so that a failure names the line that asked.
#pragma once
#import <MLXNativeKernels/MLXNativeKernels.h>

#include <functional>

#include "MLXNativeKernels/Result.hpp"

// What a caller may pass whatever the headers say.
id _Null_unspecified absentObject();
template <typename Pointee>
Pointee* _Null_unspecified absentMemory() {
  return static_cast<Pointee*>((__bridge void*)absentObject());
}

NS_ASSUME_NONNULL_BEGIN

namespace mnk::objc_test {

// Whether an error is of this code, names this op, has these words in what is wrong, and has all its parts.
NSString* _Nullable wrongIn(NSError* _Nullable error, MNKErrorCode code, NSString* op, NSString* what);
// The same, for the error of the core.
NSString* _Nullable wrongIn(NSError* _Nullable error, const Error& expected);

// What the checks of the C++ tests' support say while the body runs.
NSString* _Nullable failuresWithin(const std::function<void()>& body);

}  // namespace mnk::objc_test

NS_ASSUME_NONNULL_END
