#import <objc/runtime.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>

#import "Catch.h"
#import "Running.h"

NSString *xct::note(NSString *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  NSString *const text = [[NSString alloc] initWithFormat:format arguments:arguments];
  va_end(arguments);
  return [@" - " stringByAppendingString:text];
}

void _XCTFail(XCTestCase *test, const char *file, int line, NSString *text) {
  [test failAt:file line:line text:text];
}

namespace {

// Runs the body; describes the exception that escaped, or nil.
NSString *escapeFrom(const std::function<void()> &body) {
  NSString *escape = nil;
  const std::function<void()> guarded = [&] {
    try {
      body();
    } catch (const std::exception &exception) {
      escape = [NSString stringWithFormat:@"failed: caught C++ exception \"%s\"", exception.what()];
    } catch (...) {
      if (!std::current_exception()) throw;  // not a C++ exception: an NSException
      escape = @"failed: caught C++ exception of an unknown type";
    }
  };
  NSException *const exception =
      XCTLinuxCatch([](void *context) { (*static_cast<const std::function<void()> *>(context))(); },
                    const_cast<void *>(static_cast<const void *>(&guarded)));
  if (exception)
    escape = [NSString stringWithFormat:@"failed: caught \"%@\", \"%@\"", exception.name, exception.reason];
  return escape;
}

}  // namespace

@implementation XCTestCase {
  SEL _selector;
  std::mutex _mutex;  // guards the count of failures, which any thread may change
  NSMutableArray<XCTestExpectation *> *_expectations;
}

@synthesize failureCount = _failureCount;

- (instancetype)initWithTest:(SEL)selector {
  if (!(self = [super init])) return nil;
  _selector = selector;
  _expectations = [NSMutableArray array];
  return self;
}

- (NSString *)name {
  return [NSString stringWithFormat:@"-[%s %s]", class_getName([self class]), sel_getName(_selector)];
}

- (NSUInteger)failureCount {
  std::lock_guard lock(_mutex);
  return _failureCount;
}

- (void)failAt:(const char *)file line:(int)line text:(NSString *)text {
  std::lock_guard lock(_mutex);
  ++_failureCount;
  std::printf("%s:%d: error: %s : %s\n", file ?: "<unknown>", line, self.name.UTF8String, text.UTF8String);
}

- (void)fail:(NSString *)text {
  [self failAt:nullptr line:0 text:text];
}

// Runs a part of the test. An exception that escapes is a failure.
- (void)guard:(std::function<void()>)part {
  if (NSString *const escape = escapeFrom(part)) [self fail:escape];
}

- (void)runTest {
  [self guard:[&] { [self setUp]; }];
  if (self.failureCount == 0) {
    [self guard:[&] {
      const IMP method = [self methodForSelector:self->_selector];
      reinterpret_cast<void (*)(id, SEL)>(reinterpret_cast<void *>(method))(self, self->_selector);
    }];
  }
  [self guard:[&] { [self tearDown]; }];
  for (XCTestExpectation *each in _expectations) {
    if (!each.isWaitedFor && self.failureCount == 0) {
      [self fail:[NSString stringWithFormat:@"Failed due to unwaited expectation '%@'.", each]];
    }
    if ([each fulfillmentsUntil:{}] > 1) {
      [self fail:[NSString
                     stringWithFormat:@"API violation - multiple calls made to -[XCTestExpectation fulfill] for %@.",
                                      each]];
    }
  }
}

+ (void)setUp {
}

+ (void)tearDown {
}

- (void)setUp {
}

- (void)tearDown {
}

- (XCTestExpectation *)expectationWithDescription:(NSString *)description {
  XCTestExpectation *const expectation = [[XCTestExpectation alloc] initWithDescription:description];
  [_expectations addObject:expectation];
  return expectation;
}

- (void)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  NSMutableArray<NSString *> *const missing = [NSMutableArray array];
  for (XCTestExpectation *each in expectations) {
    each.isWaitedFor = YES;
    if ([each fulfillmentsUntil:deadline] == 0) [missing addObject:[NSString stringWithFormat:@"\"%@\"", each]];
  }
  if (missing.count == 0) return;
  [self fail:[NSString stringWithFormat:@"Asynchronous wait failed: Exceeded timeout of %g seconds, with unfulfilled "
                                        @"expectations: %@.",
                                        seconds, [missing componentsJoinedByString:@", "]]];
}

@end
