// The runner's interface to a test case: it creates one for each test, runs it, and counts its failures.
#pragma once
#import <XCTest/XCTest.h>

#include <chrono>

NS_ASSUME_NONNULL_BEGIN

@interface XCTestCase ()
@property(nonatomic, readonly) NSUInteger failureCount;
- (instancetype)initWithTest:(SEL)selector;
- (void)runTest;
// Thread-safe. The location is that of an assertion; without one, only the test's name is printed.
- (void)failAt:(nullable const char *)file line:(int)line text:(NSString *)text;
@end

@interface XCTestExpectation ()
@property(nonatomic) BOOL isWaitedFor;
- (instancetype)initWithDescription:(NSString *)description;
// How often it was fulfilled; waits for the first time.
- (NSUInteger)fulfillmentsUntil:(std::chrono::steady_clock::time_point)deadline;
@end

// Runs all tests whose "Class/method" contains the filter, in name order; all if it is empty. Returns the exit status.
int XCTLinuxRunTests(NSString *filter);

NS_ASSUME_NONNULL_END
