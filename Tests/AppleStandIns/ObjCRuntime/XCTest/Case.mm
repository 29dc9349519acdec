#import <objc/runtime.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>

#import "Catch.h"
#import "Running.h"

NSErrorDomain const XCTestErrorDomain = @"com.apple.XCTestErrorDomain";

namespace {

// Raised to end a test that is skipped or does not continue after a failure.
NSString *const kEndOfTest = @"_XCTLinuxEndOfTest";

void raiseEndOfTest() {
  [NSException raise:kEndOfTest format:@"the test has ended"];
}

// Runs the body; describes the exception that escaped, or nil.
NSString *escapeFrom(std::function<void()> body) {
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
  if (exception && ![exception.name isEqualToString:kEndOfTest]) {
    escape = [NSString stringWithFormat:@"failed: caught \"%@\", \"%@\"", exception.name, exception.reason];
  }
  return escape;
}

}  // namespace

@implementation XCTestCase {
  SEL _selector;
  std::mutex _mutex;  // guards the count of failures, which any thread may change
  NSMutableArray<XCTestExpectation *> *_expectations;
  NSMutableArray<void (^)(void)> *_teardownBlocks;
}

@synthesize failureCount = _failureCount;

- (instancetype)initWithTest:(SEL)selector {
  if (!(self = [super init])) return nil;
  _selector = selector;
  _continueAfterFailure = YES;
  _expectations = [NSMutableArray array];
  _teardownBlocks = [NSMutableArray array];
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
  {
    std::lock_guard lock(_mutex);
    ++_failureCount;
    std::printf("%s:%d: error: %s : %s\n", file ?: "<unknown>", line, self.name.UTF8String, text.UTF8String);
  }
  if (!self.continueAfterFailure) raiseEndOfTest();
}

- (void)skipWithNote:(NSString *)note {
  _isSkipped = YES;
  std::printf("%s : Test skipped%s\n", self.name.UTF8String, note.UTF8String);
  raiseEndOfTest();
}

// Runs a part of the test. An exception that escapes is a failure.
- (void)guard:(std::function<void()>)part {
  if (NSString *const escape = escapeFrom(part)) {
    escapeFrom([&] { [self failAt:nullptr line:0 text:escape]; });
  }
}

- (void)guardStep:(BOOL (^)(NSError **))step named:(NSString *)name {
  [self guard:[&] {
    NSError *error = nil;
    if (step(&error) || self->_isSkipped) return;
    [self failAt:nullptr line:0 text:[NSString stringWithFormat:@"failed: %@ gave an error: %@", name, error]];
  }];
}

- (void)runTest {
  [self
      guardStep:^(NSError **error) {
        return [self setUpWithError:error];
      }
          named:@"setUpWithError:"];
  if (!_isSkipped && self.failureCount == 0) {
    [self guard:[&] { [self setUp]; }];
  }
  if (!_isSkipped && self.failureCount == 0) {
    [self guard:[&] {
      const IMP method = [self methodForSelector:self->_selector];
      reinterpret_cast<void (*)(id, SEL)>(reinterpret_cast<void *>(method))(self, self->_selector);
    }];
  }
  for (void (^block)(void) in _teardownBlocks.reverseObjectEnumerator) {
    [self guard:[&] { block(); }];
  }
  [self guard:[&] { [self tearDown]; }];
  [self
      guardStep:^(NSError **error) {
        return [self tearDownWithError:error];
      }
          named:@"tearDownWithError:"];
  [self guard:[&] { [self checkExpectations]; }];
}

- (void)checkExpectations {
  for (XCTestExpectation *each in _expectations) {
    NSString *text = nil;
    if (!each.isWaitedFor && !_isSkipped && self.failureCount == 0) {
      text = [NSString stringWithFormat:@"Failed due to unwaited expectation '%@'.", each];
    }
    if (each.isOverFulfilled) {
      text = [NSString
          stringWithFormat:@"API violation - multiple calls made to -[XCTestExpectation fulfill] for %@.", each];
    }
    if (text) [self failAt:nullptr line:0 text:text];
  }
}

+ (void)setUp {
}

+ (void)tearDown {
}

- (BOOL)setUpWithError:(NSError **)error {
  (void)error;
  return YES;
}

- (void)setUp {
}

- (void)tearDown {
}

- (BOOL)tearDownWithError:(NSError **)error {
  (void)error;
  return YES;
}

- (void)addTeardownBlock:(void (^)(void))block {
  [_teardownBlocks addObject:[block copy]];
}

- (XCTestExpectation *)expectationWithDescription:(NSString *)description {
  XCTestExpectation *const expectation = [[XCTestExpectation alloc] initWithDescription:description];
  expectation.assertForOverFulfill = YES;
  [_expectations addObject:expectation];
  return expectation;
}

- (void)waitForExpectationsWithTimeout:(NSTimeInterval)timeout handler:(XCWaitCompletionHandler)handler {
  NSMutableArray<XCTestExpectation *> *const open = [NSMutableArray array];
  for (XCTestExpectation *each in _expectations) {
    if (!each.isWaitedFor) [open addObject:each];
  }
  const XCTWaiterResult result = [XCTWaiter waitForExpectations:open timeout:timeout];
  if (handler) {
    const auto code =
        result == XCTWaiterResultTimedOut ? XCTestErrorCodeTimeoutWhileWaiting : XCTestErrorCodeFailureWhileWaiting;
    handler(result == XCTWaiterResultCompleted ? nil
                                               : [NSError errorWithDomain:XCTestErrorDomain code:code userInfo:nil]);
  }
  [self report:result of:open timeout:timeout];
}

- (void)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds {
  [self waitForExpectations:expectations timeout:seconds enforceOrder:NO];
}

- (void)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations
                    timeout:(NSTimeInterval)seconds
               enforceOrder:(BOOL)enforceOrder {
  [self report:[XCTWaiter waitForExpectations:expectations timeout:seconds enforceOrder:enforceOrder]
            of:expectations
       timeout:seconds];
}

- (void)report:(XCTWaiterResult)result of:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds {
  NSMutableArray<NSString *> *const names = [NSMutableArray array];
  for (XCTestExpectation *each in expectations) {
    const BOOL isToBlame = result == XCTWaiterResultInvertedFulfillment ? each.isInverted && each.isFulfilled
                           : result == XCTWaiterResultTimedOut          ? !each.isInverted && !each.isFulfilled
                                                                        : YES;
    if (isToBlame) [names addObject:[NSString stringWithFormat:@"\"%@\"", each]];
  }
  NSString *const list = [names componentsJoinedByString:@", "];
  NSString *text = nil;
  switch (result) {
    case XCTWaiterResultCompleted:
    case XCTWaiterResultInterrupted:
      return;
    case XCTWaiterResultTimedOut:
      text = [NSString
          stringWithFormat:@"Exceeded timeout of %g seconds, with unfulfilled expectations: %@.", seconds, list];
      break;
    case XCTWaiterResultIncorrectOrder:
      text = [NSString stringWithFormat:@"Expectations were fulfilled in an order other than: %@.", list];
      break;
    case XCTWaiterResultInvertedFulfillment:
      text = [NSString stringWithFormat:@"Fulfilled inverted expectation %@.", list];
      break;
  }
  [self failAt:nullptr line:0 text:[@"Asynchronous wait failed: " stringByAppendingString:text]];
}

@end
