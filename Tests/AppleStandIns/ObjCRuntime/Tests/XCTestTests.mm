// Tests of XCTest itself that can pass; SeededFaults has those that must fail.
#import <XCTest/XCTest.h>

#include <string>
#include <thread>

namespace {

std::string calls;  // calls since the class was set up

}  // namespace

@interface XCTestTests : XCTestCase
@end

@implementation XCTestTests

+ (void)setUp {
  calls = "class";
}

- (void)setUp {
  calls += " setUp";
}

- (void)tearDown {
  calls += " tearDown";
}

- (void)testA {
  XCTAssertEqual(calls, "class setUp");
}

- (void)testB {
  XCTAssertEqual(calls, "class setUp tearDown setUp");
  XCTAssertEqualObjects(self.name, @"-[XCTestTests testB]");
}

- (void)testWithArgument:(int)argument {
  XCTFail(@"is no test, and was called with %d", argument);
}

- (void)testValuesOfTwoTypes {
  const uint64_t large = 5;
  XCTAssertEqual(large, 5);
  XCTAssertNotEqual(large, 6);
  XCTAssertGreaterThan(large, 4.5);
  XCTAssertEqualWithAccuracy(1.0f, 1.01, 0.02);
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

- (void)testFulfilledFromAnotherThread {
  XCTestExpectation *const done = [self expectationWithDescription:@"done"];
  std::thread thread([done] { [done fulfill]; });
  [self waitForExpectations:@[ done ] timeout:60];
  thread.join();
}

@end
