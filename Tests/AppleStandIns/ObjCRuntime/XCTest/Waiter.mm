#import "Running.h"

@implementation XCTWaiter

+ (XCTWaiterResult)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds {
  return [[[XCTWaiter alloc] init] waitForExpectations:expectations timeout:seconds];
}

+ (XCTWaiterResult)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations
                               timeout:(NSTimeInterval)seconds
                          enforceOrder:(BOOL)enforceOrder {
  return [[[XCTWaiter alloc] init] waitForExpectations:expectations timeout:seconds enforceOrder:enforceOrder];
}

- (XCTWaiterResult)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds {
  return [self waitForExpectations:expectations timeout:seconds enforceOrder:NO];
}

- (XCTWaiterResult)waitForExpectations:(NSArray<XCTestExpectation *> *)expectations
                               timeout:(NSTimeInterval)seconds
                          enforceOrder:(BOOL)enforceOrder {
  [XCTestExpectation waitForAll:expectations timeout:seconds];
  NSMutableArray<XCTestExpectation *> *fulfilled = [NSMutableArray array];
  for (XCTestExpectation *each in expectations) {
    if (each.isFulfilled) [fulfilled addObject:each];
  }
  _fulfilledExpectations = [fulfilled copy];
  NSUInteger last = 0;
  for (XCTestExpectation *each in expectations) {
    if (each.isInverted && each.isFulfilled) return XCTWaiterResultInvertedFulfillment;
    if (each.isInverted) continue;
    if (!each.isFulfilled) return XCTWaiterResultTimedOut;
    if (enforceOrder && each.fulfillmentToken < last) return XCTWaiterResultIncorrectOrder;
    last = each.fulfillmentToken;
  }
  return XCTWaiterResultCompleted;
}

@end
