// Tests of inheritance across modules, variables of C++ types, protocols, categories, and all kinds of results.
#import <XCTest/XCTest.h>

#include <cstdint>

#import "Sample.h"

@interface ClassTests : XCTestCase
@end

@implementation ClassTests

- (void)testInheritance {
  SampleNode *const node = [SampleNode squareWithTitle:@"made"];
  XCTAssertEqualObjects(node.title, @"made");
  XCTAssertEqual(node.area, 10.0);
  XCTAssertTrue([node isKindOfClass:[SampleSquare class]]);
  XCTAssertFalse([node isMemberOfClass:[SampleSquare class]]);
  XCTAssertEqualObjects(NSStringFromClass([node class]), @"SampleNode");
  XCTAssertEqual(node.vector.elements[0], 1);  // aligned
  XCTAssertEqual(node.vector.elements[3], 4);
  XCTAssertEqual(node.sums.values[4], 7);  // returned in memory
}

- (void)testVariablesOfCxxTypesLiveAsLongAsTheObject {
  const int before = SampleSquare.liveCount;
  @autoreleasepool {
    SampleNode *const root = [SampleNode squareWithTitle:@"trunk"];
    SampleNode *const leaf = [SampleNode squareWithTitle:@"leaf"];
    [root adopt:leaf];
    XCTAssertEqualObjects(leaf.path, @"/trunk/leaf");
    XCTAssertEqual(SampleSquare.liveCount, before + 2);
  }
  XCTAssertEqual(SampleSquare.liveCount, before);
}

- (void)testProtocols {
  SampleSquare *const square = [SampleSquare squareWithTitle:@"s"];
  SampleNode *const node = [SampleNode squareWithTitle:@"n"];
  XCTAssertTrue([node conformsToProtocol:@protocol(SampleShape)]);
  XCTAssertFalse([node conformsToProtocol:@protocol(NSCoding)]);
  XCTAssertTrue([node respondsToSelector:@selector(nickname)]);
  XCTAssertFalse([square respondsToSelector:@selector(nickname)]);
  const id<SampleShape> shape = node;
  XCTAssertEqualObjects([shape nickname], @"node");
}

- (void)testNilGivesZero {
  SampleSquare *const none = nil;
  XCTAssertNil(none.title);
  XCTAssertEqual(none.area, 0);
  XCTAssertEqual(none.sums.values[4], 0);
  XCTAssertEqual(none.vector.elements[3], 0);
}

- (void)testKeyValueCoding {
  SampleSquare *const square = [SampleSquare squareWithTitle:@"key"];
  XCTAssertEqualObjects([square valueForKey:@"title"], @"key");
  [square setValue:@5 forKey:@"side"];
  XCTAssertEqual(square.area, 25);
}

@end
