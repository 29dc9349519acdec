#import "Checks.hpp"

#include <cstring>

#import "Bridging.hpp"
#include "CoreTests.h"
#include "Harness/Check.hpp"

id absentObject() {
  return nil;
}

namespace mnk::objc_test {

Error partsOf(NSError *error) {
  const auto part = [&](NSString *key) {
    NSString *text = error.userInfo[key];
    return std::string([text isKindOfClass:[NSString class]] ? text.UTF8String : "");
  };
  return {.code = static_cast<ErrorCode>(error.code),
          .op = part(MNKErrorOpKey),
          .what = part(MNKErrorWhatKey),
          .got = part(MNKErrorGotKey),
          .expected = part(MNKErrorExpectedKey),
          .fix = part(MNKErrorFixKey),
          .retryable = static_cast<bool>([error.userInfo[MNKErrorIsRetryableKey] boolValue])};
}

NSString *wrongIn(NSError *error, const Error &expected) {
  NSDictionary *parts = @{
    NSLocalizedDescriptionKey : stringFrom(expected.message()),
    NSLocalizedFailureReasonErrorKey : stringFrom(expected.what),
    NSLocalizedRecoverySuggestionErrorKey : stringFrom(expected.fix),
    NSDebugDescriptionErrorKey : stringFrom("MLXNativeKernels " MNK_VERSION ": " + expected.message()),
    MNKErrorOpKey : stringFrom(expected.op),
    MNKErrorWhatKey : stringFrom(expected.what),
    MNKErrorGotKey : stringFrom(expected.got),
    MNKErrorExpectedKey : stringFrom(expected.expected),
    MNKErrorFixKey : stringFrom(expected.fix),
    MNKErrorIsRetryableKey : @(expected.retryable),
  };
  const auto code = static_cast<NSInteger>(expected.code);
  if ([error.domain isEqual:MNKErrorDomain] && error.code == code && [error.userInfo isEqual:parts]) return nil;
  return [NSString stringWithFormat:@"got %@ %ld %@, expected code %ld and %@", error.domain, (long)error.code,
                                    error.userInfo, (long)code, parts];
}

NSString *wrongIn(NSError *error, MNKErrorCode code, NSString *op, NSString *what) {
  const Error parts = partsOf(error);
  if (NSString *wrong = wrongIn(error, parts)) return wrong;
  const bool isMeant = error.code == code && [stringFrom(parts.op) isEqual:op] &&
                       (what.length == 0 || [stringFrom(parts.what) rangeOfString:what].length > 0);
  return isMeant ? nil : [NSString stringWithFormat:@"got code %ld and %@", (long)error.code, error];
}

NSString *wrongIn(const std::vector<Refusal> &refusals) {
  for (const auto &[op, what, call] : refusals) {
    NSError *error = nil;
    NSString *wrong = call(&error) ? @"the call succeeds" : wrongIn(error, MNKErrorInvalidArgument, op, what);
    if (!wrong && call(nil)) wrong = @"the call succeeds without an error";
    if (wrong) return [NSString stringWithFormat:@"%@, %@: %@", op, what, wrong];
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

}  // namespace mnk::objc_test
