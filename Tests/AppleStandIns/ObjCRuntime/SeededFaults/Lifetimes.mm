// Tests whose fault a sanitizer must report, with the text after "expected:" and a line of the test. .ci/objc runs them
// one by one.
#import <XCTest/XCTest.h>

@interface SeededNode : NSObject
@property(nonatomic, strong) SeededNode *other;
@property(nonatomic, copy) void (^handler)(void);
@end

@implementation SeededNode
@end

@interface Lifetimes : XCTestCase
@end

@implementation Lifetimes

// expected: LeakSanitizer
- (void)testRetainCycle {
  SeededNode *const left = [[SeededNode alloc] init];  // mistake: testRetainCycle
  left.other = [[SeededNode alloc] init];
  left.other.other = left;
}

// expected: LeakSanitizer
- (void)testCycleThroughBlock {
  SeededNode *const node = [[SeededNode alloc] init];  // mistake: testCycleThroughBlock
  void (^const handler)(void) = ^{
    [node description];
  };
  node.handler = handler;
}

// expected: heap-use-after-free
- (void)testUnretainedReferenceOutlives {
  __unsafe_unretained SeededNode *dangling = nil;
  @autoreleasepool {
    SeededNode *const node = [[SeededNode alloc] init];
    dangling = node;
  }
  XCTAssertNil(dangling.other);  // mistake: testUnretainedReferenceOutlives
}

@end
