// Waits for expectations outside a test case and returns the result.
#pragma once
#import <Foundation/Foundation.h>

@class XCTestExpectation;

NS_ASSUME_NONNULL_BEGIN

typedef NS_ENUM(NSInteger, XCTWaiterResult) {
  XCTWaiterResultCompleted = 1,
  XCTWaiterResultTimedOut,
  XCTWaiterResultIncorrectOrder,
  XCTWaiterResultInvertedFulfillment,
  XCTWaiterResultInterrupted
};

@interface XCTWaiter : NSObject
@property(readonly) NSArray<XCTestExpectation *> *fulfilledExpectations;

- (XCTWaiterResult)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds;
- (XCTWaiterResult)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations
                               timeout:(NSTimeInterval)seconds
                          enforceOrder:(BOOL)enforceOrder;
+ (XCTWaiterResult)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds;
+ (XCTWaiterResult)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations
                               timeout:(NSTimeInterval)seconds
                          enforceOrder:(BOOL)enforceOrder;
@end

NS_ASSUME_NONNULL_END
