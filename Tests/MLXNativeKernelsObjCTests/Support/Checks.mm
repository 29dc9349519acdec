#import "Checks.hpp"

#include <cstring>

#include "CoreTests.h"
#include "Harness/Check.hpp"
#include "MLXNativeKernels/Result.hpp"

id absentObject() {
  return nil;
}

namespace mnk::objc_test {

NSString *wrongIn(NSError *error, MNKErrorCode code, NSString *op, NSString *what) {
  if (!error) return @"there is no error";
  NSDictionary *info = error.userInfo;
  NSString *all = [NSString stringWithFormat:@"%@ %ld %@", error.domain, (long)error.code, info];
  if (![error.domain isEqual:MNKErrorDomain] || error.code != code)
    return [@"another code: " stringByAppendingString:all];
  for (NSString *key in @[ MNKErrorOpKey, MNKErrorWhatKey, MNKErrorGotKey, MNKErrorExpectedKey, MNKErrorFixKey ]) {
    if (![info[key] isKindOfClass:[NSString class]]) return [NSString stringWithFormat:@"no %@: %@", key, all];
  }
  if (![info[MNKErrorIsRetryableKey] isKindOfClass:[NSNumber class]])
    return [@"not retryable or not: " stringByAppendingString:all];
  if (![info[MNKErrorOpKey] isEqual:op]) return [@"another op: " stringByAppendingString:all];
  if (what.length > 0 && [info[MNKErrorWhatKey] rangeOfString:what].length == 0)
    return [@"something else is wrong: " stringByAppendingString:all];
  if (![error.localizedFailureReason isEqual:info[MNKErrorWhatKey]] ||
      ![error.localizedRecoverySuggestion isEqual:info[MNKErrorFixKey]] ||
      ![info[NSDebugDescriptionErrorKey] hasPrefix:@"MLXNativeKernels " MNK_VERSION ": "]) {
    return [@"reason and suggestion are not those of the keys: " stringByAppendingString:all];
  }
  for (NSString *key in @[ MNKErrorOpKey, MNKErrorWhatKey, MNKErrorGotKey, MNKErrorExpectedKey, MNKErrorFixKey ]) {
    NSString *part = info[key];
    if (part.length > 0 && [error.localizedDescription rangeOfString:part].length == 0) {
      return [NSString stringWithFormat:@"the description lacks %@: %@", key, all];
    }
  }
  return nil;
}

NSString *wrongIn(NSError *error, const Error &expected) {
  const auto string = [](const std::string &text) {
    NSString *converted = [NSString stringWithUTF8String:text.c_str()];
    return converted;
  };
  NSString *wrong =
      wrongIn(error, static_cast<MNKErrorCode>(expected.code), string(expected.op), string(expected.what));
  if (wrong) return wrong;
  NSDictionary *parts = @{
    NSLocalizedDescriptionKey : string(expected.message()),
    MNKErrorGotKey : string(expected.got),
    MNKErrorExpectedKey : string(expected.expected),
    MNKErrorFixKey : string(expected.fix),
    MNKErrorIsRetryableKey : @(expected.retryable),
  };
  for (NSString *key in parts) {
    if (![error.userInfo[key] isEqual:parts[key]]) {
      return [NSString stringWithFormat:@"%@ is %@, expected %@", key, error.userInfo[key], parts[key]];
    }
  }
  return nil;
}

namespace {

const std::function<void()> *runningBody = nullptr;
const test::Test bodyTest("ObjC", "body", [] { (*runningBody)(); });

size_t indexOfBody() {
  for (size_t index = 0; index < core_test_count(); ++index) {
    if (std::strcmp(core_test_suite(index), "ObjC") == 0) return index;
  }
  return 0;
}

}  // namespace

NSString *failuresWithin(const std::function<void()> &body) {
  runningBody = &body;
  const char *failures = core_test_run(indexOfBody());
  runningBody = nullptr;
  return failures ? [NSString stringWithUTF8String:failures] : nil;
}

MNKCacheStep *cacheStep(const StepProperties &properties) {
  MNKCacheStep *step = [[MNKCacheStep alloc] init];
  step.queries = properties.queries;
  step.keys = properties.keys;
  step.values = properties.values;
  step.rotary = properties.rotary;
  step.results = properties.results;
  step.options = properties.options;
  if (properties.sequences) step.sequences = (NSArray<NSNumber *> *_Nonnull)properties.sequences;
  step.rowCounts = properties.rowCounts;
  if (properties.prefixes) step.prefixes = (NSArray<MNKCachePrefix *> *_Nonnull)properties.prefixes;
  return step;
}

MNKHeadsView *viewOf(MNKTensor *tensor) {
  return [[MNKHeadsView alloc] initWithTensor:tensor];
}

}  // namespace mnk::objc_test
