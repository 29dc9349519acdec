// Checks that return nil, or a text describing the problem, so that a failure names the line of the caller.
#pragma once
#import <MLXNativeKernels/MLXNativeKernels.h>

#include <functional>
#include <vector>

#include "MLXNativeKernels/Result.hpp"

// Nil for parameters that the headers declare nonnull.
id _Null_unspecified absentObject();
template <typename Pointee>
Pointee* _Null_unspecified absentMemory() {
  return static_cast<Pointee*>((__bridge void*)absentObject());
}

NS_ASSUME_NONNULL_BEGIN

namespace mnk::objc_test {

// The core's error with the parts of this one.
Error partsOf(NSError* _Nullable error);
// Checks that an error is the core's, in all its parts.
NSString* _Nullable wrongIn(NSError* _Nullable error, const Error& expected);
// Checks that an error has this code and op, contains these words in `what`, and has all its parts.
NSString* _Nullable wrongIn(NSError* _Nullable error, MNKErrorCode code, NSString* op, NSString* what);

// A call with an invalid argument, the op that its error names, and words of what is wrong.
struct Refusal {
  NSString* op;
  NSString* what;
  std::function<bool(NSError* _Nullable __autoreleasing* _Nullable)> call;
};
// Checks that each call fails, with its error and also if none is asked for.
NSString* _Nullable wrongIn(const std::vector<Refusal>& refusals);

// The failures that checks of the C++ test support report while the body runs.
NSString* _Nullable failuresWithin(const std::function<void()>& body);

}  // namespace mnk::objc_test

NS_ASSUME_NONNULL_END
