// Tests that must fail and print the text after "expected:". .ci/objc runs them one by one.
#import <XCTest/XCTest.h>

#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace {

struct Farewell {
  ~Farewell() { std::puts("its destructor ran"); }
};

}  // namespace

@interface Failures : XCTestCase
@end

@implementation Failures

// expected: Failures.mm:LINE: error: -[Failures testEqual] : ((1 + 1) equal to (3)) failed: ("2") is not equal to ("3")
// - seen 4
- (void)testEqual {
  XCTAssertEqual(1 + 1, 3, @"seen %d", 4);  // mistake: testEqual
}

// expected: ((@"a") equal to (@"b")) failed: ("a") is not equal to ("b")
- (void)testEqualObjects {
  XCTAssertEqualObjects(@"a", @"b");
}

// expected: ((1.0) equal to (2.0) +/- (0.5)) failed: ("1") is not equal to ("2") +/- ("0.5")
- (void)testAccuracy {
  XCTAssertEqualWithAccuracy(1.0, 2.0, 0.5);
}

// expected: ((NAN) equal to (1.0) +/- (0.5)) failed
- (void)testAccuracyOfNaN {
  XCTAssertEqualWithAccuracy(NAN, 1.0, 0.5);
}

// expected: ((false) is true) failed - why
- (void)testTrue {
  XCTAssertTrue(false, @"why");
}

// expected: ((@1) == nil) failed: "1"
- (void)testNil {
  XCTAssertNil(@1);
}

// expected: failed: caught "NSRangeException", "Index 3 is out of range
- (void)testException {
  (void)[@[] objectAtIndex:3];
}

// expected: its destructor ran
- (void)testExceptionRunsDestructors {
  const Farewell farewell;
  (void)[@[] objectAtIndex:3];
}

// expected: failed: caught C++ exception "loose"
- (void)testCxxException {
  throw std::runtime_error("loose");
}

// expected: failed: caught C++ exception of an unknown type
- (void)testNumberAsException {
  throw 7;
}

// expected: Asynchronous wait failed: Exceeded timeout of 0 seconds, with unfulfilled expectations: "never".
- (void)testTimeout {
  [self waitForExpectations:@[ [self expectationWithDescription:@"never"] ] timeout:0];
}

// expected: Failed due to unwaited expectation 'forgotten'.
- (void)testUnwaitedExpectation {
  [self expectationWithDescription:@"forgotten"];
}

// expected: API violation - multiple calls made to -[XCTestExpectation fulfill] for twice.
- (void)testOverFulfillment {
  XCTestExpectation *const twice = [self expectationWithDescription:@"twice"];
  [twice fulfill];
  [twice fulfill];
  [self waitForExpectations:@[ twice ] timeout:0];
}

@end

@interface FailingSetUp : XCTestCase
@end

@implementation FailingSetUp

- (void)setUp {
  XCTFail(@"before the test");
}

// expected: Executed 1 test, with 1 failure in
- (void)testIsNotReached {
  XCTFail(@"was reached");
}

@end
