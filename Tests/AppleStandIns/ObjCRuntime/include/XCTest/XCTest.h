// XCTest for Linux: the part of Apple's API that the Objective-C++ tests use, so that the same files run here and in
// Xcode. Waiting blocks the thread; there is no run loop.
#pragma once
#import <XCTest/XCTestAssertions.h>

NS_ASSUME_NONNULL_BEGIN

// Something that a test waits for, fulfilled from any thread. Fulfilling it more than once fails the test.
@interface XCTestExpectation : NSObject
- (void)fulfill;
@end

// A class of tests: each method without arguments whose name begins with "test" is one, and runs in its own object.
@interface XCTestCase : NSObject
@property(readonly, copy) NSString *name;  // "-[Class method]"

+ (void)setUp;
+ (void)tearDown;
- (void)setUp;
- (void)tearDown;

// A test that does not wait for each of these fails.
- (XCTestExpectation *)expectationWithDescription:(NSString *)description;
- (void)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds;
@end

NS_ASSUME_NONNULL_END
