// The runner's interface to a test case: it creates one for each test, runs it, and reads its result.
#pragma once
#import <XCTest/XCTest.h>

NS_ASSUME_NONNULL_BEGIN

@interface XCTestCase ()
@property(nonatomic, readonly) NSUInteger failureCount;
@property(nonatomic, readonly) BOOL isSkipped;
- (instancetype)initWithTest:(SEL)selector;
- (void)runTest;
// Thread-safe. The location is that of an assertion or, without one, only the test's class.
- (void)failAt:(nullable const char *)file line:(int)line text:(NSString *)text;
- (void)skipWithNote:(NSString *)note;
@end

@interface XCTestExpectation ()
@property(nonatomic) BOOL isWaitedFor;
@property(nonatomic, readonly) BOOL isOverFulfilled;
// Fulfilled as often as expected. For an inverted expectation, that is a failure.
@property(nonatomic, readonly) BOOL isFulfilled;
// Counts the fulfillments of the process, to order them.
@property(nonatomic, readonly) NSUInteger fulfillmentToken;
// Waits until each normal expectation or an inverted one is fulfilled; NO on timeout.
+ (BOOL)waitForAll:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds;
@end

// Runs all tests whose "Class/method" contains the filter, in name order; all if it is empty. Returns the exit status.
int XCTLinuxRunTests(NSString *filter);

NS_ASSUME_NONNULL_END
