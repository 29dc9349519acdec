// What the runner knows of a test case beyond its public face: it makes one for each test, runs it, and asks how it
// went.
#pragma once
#import <XCTest/XCTest.h>

NS_ASSUME_NONNULL_BEGIN

@interface XCTestCase ()
@property(nonatomic, readonly) NSUInteger failureCount;
@property(nonatomic, readonly) BOOL isSkipped;
- (instancetype)initWithTest:(SEL)selector;
- (void)runTest;
// From any thread. The place is that of an assertion; where there is none, of the test's class alone.
- (void)failAt:(nullable const char *)file line:(int)line text:(NSString *)text;
- (void)skipWithNote:(NSString *)note;
@end

@interface XCTestExpectation ()
@property(nonatomic) BOOL isWaitedFor;
@property(nonatomic, readonly) BOOL isOverFulfilled;
// Fulfilled as often as expected. For an inverted one that is what must not be.
@property(nonatomic, readonly) BOOL isFulfilled;
// Counts the fulfillments of the process: tells which expectation was fulfilled first.
@property(nonatomic, readonly) NSUInteger fulfillmentToken;
// Waits until each that is not inverted is fulfilled, or one that is inverted is; NO when the time is over before.
+ (BOOL)waitForAll:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds;
@end

// All tests whose "Class/method" contains the filter, in the order of their names; all where it is empty. Gives the
// status of the process.
int XCTLinuxRunTests(NSString *filter);

NS_ASSUME_NONNULL_END
