// Calls from Objective-C into the core: a body returns a Result, no exception escapes, and a failure becomes an
// NSError. Every method that can fail uses `make` or `run`.
#pragma once
#import <Foundation/Foundation.h>

#include <string>
#include <string_view>

#include "MLXNativeKernels/Result.hpp"
#include "Support/Errors.hpp"

namespace mnk::objc {

NSError* _Nonnull errorFrom(const Error& error);
NSString* _Nonnull stringFrom(std::string_view text);
// Empty for nil.
std::string textFrom(NSString* _Nullable string);
// The path of a file URL. Fails for nil and for other URLs.
Result<std::string> pathFrom(NSURL* _Nullable url, std::string_view op);

void store(NSError* _Nullable __autoreleasing* _Nullable out, const Error& error);

// Runs a body that returns Result<Object *> and returns the object or nil.
template <typename Body>
auto make(NSError* _Nullable __autoreleasing* _Nullable out, Body&& body) {
  auto result = guarded("MLXNativeKernels", body);
  using Object = std::remove_reference_t<decltype(*result)>;
  if (result) return *result;
  store(out, result.error());
  return Object(nullptr);
}

// Runs a body that returns Result<void>.
template <typename Body>
BOOL run(NSError* _Nullable __autoreleasing* _Nullable out, Body&& body) {
  const Result<void> result = guarded("MLXNativeKernels", body);
  if (!result) store(out, result.error());
  return result ? YES : NO;
}

}  // namespace mnk::objc
