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
      ![error.localizedRecoverySuggestion isEqual:info[MNKErrorFixKey]]) {
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
    NSString *made = [NSString stringWithUTF8String:text.c_str()];
    return made;
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

NSString *difference(const Dispatch &got, const Dispatch &expected, const Dispatch &planned) {
  const auto sameRegions = [](const std::vector<Region> &a, const std::vector<Region> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Region &x, const Region &y) {
      return x.offset == y.offset && x.rowBytes == y.rowBytes && x.rowStride == y.rowStride && x.rows == y.rows;
    });
  };
  bool sameBindings =
      got.buffers.size() == expected.buffers.size() && planned.buffers.size() == expected.buffers.size();
  for (size_t i = 0; sameBindings && i < expected.buffers.size(); ++i) {
    const Binding &a = got.buffers[i], &b = expected.buffers[i];
    sameBindings = a.index == b.index && a.offset == b.offset && a.length == b.length && a.isZeroed == b.isZeroed &&
                   (a.buffer == b.buffer || !planned.buffers[i].buffer) && sameRegions(a.reads, b.reads) &&
                   sameRegions(a.writes, b.writes);
  }
  const auto sameInlines =
      std::equal(got.inlines.begin(), got.inlines.end(), expected.inlines.begin(), expected.inlines.end(),
                 [](const InlineBytes &a, const InlineBytes &b) { return a.index == b.index && a.bytes == b.bytes; });
  const auto sameMemory = std::equal(
      got.threadgroupMemory.begin(), got.threadgroupMemory.end(), expected.threadgroupMemory.begin(),
      expected.threadgroupMemory.end(),
      [](const ThreadgroupMemory &a, const ThreadgroupMemory &b) { return a.index == b.index && a.bytes == b.bytes; });
  NSString *part = got.kernel.function != expected.kernel.function     ? @"function"
                   : got.kernel.library != expected.kernel.library     ? @"library"
                   : got.kernel.constants != expected.kernel.constants ? @"constants"
                   : got.kind != expected.kind                         ? @"kind"
                   : !sameBindings                                     ? @"buffers"
                   : !sameInlines                                      ? @"inline bytes"
                   : !sameMemory                                       ? @"threadgroup memory"
                   : got.grid.unit != expected.grid.unit || got.grid.extent != expected.grid.extent ||
                           got.grid.threadgroup != expected.grid.threadgroup
                       ? @"grid"
                   : got.bytesRead != expected.bytesRead || got.bytesWritten != expected.bytesWritten ? @"bytes"
                                                                                                      : nil;
  if (!part) return nil;
  return [NSString stringWithFormat:@"%@ differ: %s, expected %s", part, got.text().c_str(), expected.text().c_str()];
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
