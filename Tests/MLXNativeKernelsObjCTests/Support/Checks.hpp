// Checks that return nil, or a text describing the problem, so that a failure names the line of the caller.
#pragma once
#import <MLXNativeKernels/MLXNativeKernels.h>

#include <functional>

#include "MLXNativeKernels/Result.hpp"

// Nil for parameters that the headers declare nonnull.
id _Null_unspecified absentObject();
template <typename Pointee>
Pointee* _Null_unspecified absentMemory() {
  return static_cast<Pointee*>((__bridge void*)absentObject());
}

NS_ASSUME_NONNULL_BEGIN

namespace mnk::objc_test {

// Checks that an error has this code and op, contains these words in `what`, and has all its parts.
NSString* _Nullable wrongIn(NSError* _Nullable error, MNKErrorCode code, NSString* op, NSString* what);
// The same for the core's error.
NSString* _Nullable wrongIn(NSError* _Nullable error, const Error& expected);

// A step with these properties; nil leaves the default.
struct StepProperties {
  MNKHeadsView* _Nullable queries = nil;
  MNKHeadsView* _Nullable keys = nil;
  MNKHeadsView* _Nullable values = nil;
  MNKRotaryStep* _Nullable rotary = nil;
  MNKAttentionResults* _Nullable results = nil;
  MNKAttentionOptions* _Nullable options = nil;
  NSArray<NSNumber*>* _Nullable sequences = nil;
  NSArray<NSNumber*>* _Nullable rowCounts = nil;
  NSArray<MNKCachePrefix*>* _Nullable prefixes = nil;
};
MNKCacheStep* cacheStep(const StepProperties& properties);
MNKHeadsView* viewOf(MNKTensor* tensor);

// The failures that checks of the C++ test support report while the body runs.
NSString* _Nullable failuresWithin(const std::function<void()>& body);

}  // namespace mnk::objc_test

NS_ASSUME_NONNULL_END
