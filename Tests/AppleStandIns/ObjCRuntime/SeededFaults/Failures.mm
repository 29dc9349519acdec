// Tests that must fail and print the text after "expected:". .ci/objc runs them one by one.
#import <XCTest/XCTest.h>

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

// expected: ((false) is true) failed - why
- (void)testTrue {
  XCTAssertTrue(false, @"why");
}

// expected: ((@1) == nil) failed: "1"
- (void)testNil {
  XCTAssertNil(@1);
}

// expected: NSRangeException
- (void)testException {
  (void)[@[] objectAtIndex:3];
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
