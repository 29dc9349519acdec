// Tests of what blocks keep alive, their copies, and blocks as objects.
#import <XCTest/XCTest.h>

#include <memory>
#include <thread>

#import "Sample.h"

@interface BlockTests : XCTestCase
@end

@implementation BlockTests

- (void)testBlockKeepsWhatItUses {
  const int before = SampleSquare.liveCount;
  @autoreleasepool {
    double (^area)(void) = nil;
    @autoreleasepool {
      SampleSquare *const square = [[SampleSquare alloc] initWithTitle:@"kept"];
      area = ^{
        return square.area;
      };
    }
    XCTAssertEqual(SampleSquare.liveCount, before + 1);
    XCTAssertEqual(area(), 4);
  }
  XCTAssertEqual(SampleSquare.liveCount, before);
}

- (void)testBlockKeepsCxxObjects {
  const auto value = std::make_shared<int>(7);
  @autoreleasepool {
    int (^block)(void) = [^{
      return *value;
    } copy];
    XCTAssertEqual(value.use_count(), 3);  // the value here, in the block on the stack, and in its copy
    XCTAssertEqual(block(), 7);
  }
}

- (void)testBlocksInCollections {
  NSMutableArray<int (^)(void)> *const blocks = [NSMutableArray array];
  const int base = 40;
  for (int i = 0; i < 3; ++i) {
    [blocks addObject:^{
      return base + i;
    }];
  }
  XCTAssertEqual(blocks.lastObject(), 42);
}

- (void)testBlockProperty {
  SampleNode *const node = [SampleNode squareWithTitle:@"worker"];
  const int factor = int(node.side);
  node.work = ^(int value) {
    return value * factor;
  };
  XCTAssertEqual(node.work(5), 15);
  node.work = nil;
  XCTAssertNil(node.work);
}

- (void)testBlockWithWeakSelfBreaksTheCycle {
  const int before = SampleSquare.liveCount;
  @autoreleasepool {
    SampleNode *const node = [SampleNode squareWithTitle:@"cycle"];
    __weak SampleNode *const weak = node;
    node.work = ^(int value) {
      SampleNode *const strong = weak;
      return value + int(strong.side);
    };
    XCTAssertEqual(node.work(1), 4);
  }
  XCTAssertEqual(SampleSquare.liveCount, before);
}

- (void)testBlockOnAnotherThread {
  NSString *const text = [NSString stringWithFormat:@"%d", 12345];
  __block NSUInteger length = 0;
  void (^const work)(void) = ^{
    length = text.length;
  };
  std::thread thread([work] {
    @autoreleasepool {
      work();
    }
  });
  thread.join();
  XCTAssertEqual(length, 5);
}

@end
