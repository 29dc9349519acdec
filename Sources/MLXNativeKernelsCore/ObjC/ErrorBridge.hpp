// How calls cross from Objective-C into the core: a body gives a Result, exceptions stay inside, and a failure becomes
// an NSError. Every method that can fail goes through `make` or `run`.
#pragma once
#import <Foundation/Foundation.h>

#include <string>
#include <string_view>

#include "MLXNativeKernels/Result.hpp"
#include "Support/Guard.hpp"

namespace mnk::objc {

NSError* _Nonnull errorFrom(const Error& error);
NSString* _Nonnull stringFrom(std::string_view text);
// Empty for nil.
std::string textFrom(NSString* _Nullable string);
// The path of a file. Fails for nil and for what is no file, such as a web address.
Result<std::string> pathFrom(NSURL* _Nullable url, std::string_view op);

void store(NSError* _Nullable __autoreleasing* _Nullable out, const Error& error);

// A body that gives Result<Object *>, and the object or nil.
template <typename Body>
auto make(NSError* _Nullable __autoreleasing* _Nullable out, Body&& body) {
  auto result = guarded("MLXNativeKernels", body);
  using Object = std::remove_reference_t<decltype(*result)>;
  if (result) return *result;
  store(out, result.error());
  return Object(nullptr);
}

// A body that gives Result<void>.
template <typename Body>
BOOL run(NSError* _Nullable __autoreleasing* _Nullable out, Body&& body) {
  const Result<void> result = guarded("MLXNativeKernels", body);
  if (!result) store(out, result.error());
  return result ? YES : NO;
}

}  // namespace mnk::objc
