// A class of tests: each method without arguments whose name begins with "test" is one, and runs in its own object.
#pragma once
#import <Foundation/Foundation.h>

@class XCTestExpectation;

NS_ASSUME_NONNULL_BEGIN

typedef void (^XCWaitCompletionHandler)(NSError *_Nullable error);

FOUNDATION_EXPORT NSErrorDomain const XCTestErrorDomain;
typedef NS_ERROR_ENUM(XCTestErrorDomain, XCTestErrorCode){
    XCTestErrorCodeTimeoutWhileWaiting = 0,
    XCTestErrorCodeFailureWhileWaiting = 1,
};

@interface XCTestCase : NSObject
@property(readonly, copy) NSString *name;  // "-[Class method]"
// NO: the first failure ends the test.
@property BOOL continueAfterFailure;

+ (void)setUp;
+ (void)tearDown;
- (BOOL)setUpWithError:(NSError **)error;
- (void)setUp;
- (void)tearDown;
- (BOOL)tearDownWithError:(NSError **)error;
// Runs after the test, before tearDown, last added first.
- (void)addTeardownBlock:(void (^)(void))block;

// A test that does not wait for each of these fails.
- (XCTestExpectation *)expectationWithDescription:(NSString *)description;
- (void)waitForExpectationsWithTimeout:(NSTimeInterval)timeout handler:(nullable XCWaitCompletionHandler)handler;
- (void)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds;
- (void)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations
                    timeout:(NSTimeInterval)seconds
               enforceOrder:(BOOL)enforceOrder;
@end

NS_ASSUME_NONNULL_END
