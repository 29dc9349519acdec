// Tests of XCTest itself that can pass; SeededFaults has those that must fail.
#import <XCTest/XCTest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <thread>

namespace {

std::string calls;  // calls since the class was set up

}  // namespace

@interface XCTestOrderTests : XCTestCase
@end

@implementation XCTestOrderTests

+ (void)setUp {
  calls = "class";
}

- (BOOL)setUpWithError:(NSError **)error {
  (void)error;
  calls += " setUpWithError";
  return YES;
}

- (void)setUp {
  calls += " setUp";
}

- (void)tearDown {
  calls += " tearDown";
}

- (BOOL)tearDownWithError:(NSError **)error {
  (void)error;
  calls += " tearDownWithError";
  return YES;
}

- (void)testA {
  XCTAssertEqual(calls, "class setUpWithError setUp");
  [self addTeardownBlock:^{
    calls += " first";
  }];
  [self addTeardownBlock:^{
    calls += " last";
  }];
}

- (void)testB {
  XCTAssertEqual(calls, "class setUpWithError setUp last first tearDown tearDownWithError setUpWithError setUp");
  XCTAssertEqualObjects(self.name, @"-[XCTestOrderTests testB]");
}

- (void)testWithArgument:(int)argument {
  XCTFail(@"is no test, and was called with %d", argument);
}

@end

@interface XCTestAssertionTests : XCTestCase
@end

@implementation XCTestAssertionTests

- (void)testValuesOfTwoTypes {
  const std::uint64_t large = 5;
  XCTAssertEqual(large, 5);
  XCTAssertNotEqual(large, 6);
  XCTAssertGreaterThan(large, 4);
  XCTAssertGreaterThanOrEqual(large, 5);
  XCTAssertLessThan(large, 6.5);
  XCTAssertLessThanOrEqual(large, 5u);
  XCTAssertEqual(std::string("text"), "text");
}

- (void)testAccuracy {
  XCTAssertEqualWithAccuracy(1.0f, 1.01, 0.02);
  XCTAssertNotEqualWithAccuracy(1.0, 1.03, 0.02);
  XCTAssertEqualWithAccuracy(INFINITY, INFINITY, 0);
}

- (void)testObjects {
  NSString *const left = [NSString stringWithFormat:@"%d", 1];
  NSMutableString *const right = [NSMutableString stringWithString:@"1"];
  XCTAssertEqualObjects(left, right);
  XCTAssertNotEqualObjects(left, @"2");
  XCTAssertEqualObjects(nil, nil);
  XCTAssertIdentical(left, left);
  XCTAssertNotIdentical(left, right);
}

- (void)testSkippedTestDoesNotGoOn {
  XCTSkipIf(calls.size() > 0 || calls.empty(), @"as %s", "always");
  XCTFail(@"a skipped test goes on");
}

@end

@interface XCTestExpectationTests : XCTestCase
@end

@implementation XCTestExpectationTests

- (void)testFulfilledFromAnotherThread {
  XCTestExpectation *const done = [self expectationWithDescription:@"done"];
  std::thread thread([done] { [done fulfill]; });
  __block BOOL wasCalled = NO;
  [self waitForExpectationsWithTimeout:60
                               handler:^(NSError *error) {
                                 wasCalled = error == nil;
                               }];
  thread.join();
  XCTAssertTrue(wasCalled);
}

- (void)testCountOfFulfillments {
  XCTestExpectation *const thrice = [self expectationWithDescription:@"three times"];
  thrice.expectedFulfillmentCount = 3;
  [thrice fulfill];
  [thrice fulfill];
  XCTAssertEqual([XCTWaiter waitForExpectations:@[ thrice ] timeout:0], XCTWaiterResultTimedOut);
  [thrice fulfill];
  [self waitForExpectations:@[ thrice ] timeout:0];
}

- (void)testInverted {
  XCTestExpectation *const never = [[XCTestExpectation alloc] initWithDescription:@"never"];
  never.inverted = YES;
  XCTAssertEqual([XCTWaiter waitForExpectations:@[ never ] timeout:0], XCTWaiterResultCompleted);
  [never fulfill];
  XCTAssertEqual([XCTWaiter waitForExpectations:@[ never ] timeout:60], XCTWaiterResultInvertedFulfillment);
}

- (void)testOrder {
  XCTestExpectation *const first = [[XCTestExpectation alloc] initWithDescription:@"first"];
  XCTestExpectation *const second = [[XCTestExpectation alloc] initWithDescription:@"second"];
  [first fulfill];
  [second fulfill];
  NSArray<XCTestExpectation *> *const expectations = @[ first, second ];
  NSArray<XCTestExpectation *> *const reversed = @[ second, first ];
  XCTAssertEqual([XCTWaiter waitForExpectations:expectations timeout:60 enforceOrder:YES], XCTWaiterResultCompleted);
  XCTAssertEqual([XCTWaiter waitForExpectations:reversed timeout:60 enforceOrder:YES], XCTWaiterResultIncorrectOrder);
  XCTAssertEqual([XCTWaiter waitForExpectations:reversed timeout:60], XCTWaiterResultCompleted);
}

@end
