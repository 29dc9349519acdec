// Tests whose fault a sanitizer must report, with the text after "expected:" and a line of the test. .ci/objc runs them
// one by one.
#import <XCTest/XCTest.h>

#include <memory>

@interface SeededNode : NSObject
@property(nonatomic, strong) SeededNode *other;
@property(nonatomic, copy) void (^handler)(void);
@end

@implementation SeededNode
@end

namespace {

struct Handle {
  int values[16] = {};
};

// Leaks the handle on failure.
Handle *makeHandle(bool fails, NSError **error) {
  auto *handle = new Handle;  // mistake: testLeakOnErrorPath
  if (!fails) return handle;
  if (error) *error = [NSError errorWithDomain:@"Planted" code:1 userInfo:nil];
  return nullptr;
}

}  // namespace

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

// expected: LeakSanitizer
- (void)testLeakOnErrorPath {
  NSError *error = nil;
  XCTAssertTrue(makeHandle(true, &error) == nullptr);
  XCTAssertNotNil(error);
}

// expected: LeakSanitizer
- (void)testUnbalancedRetain {
  void *const kept = (__bridge_retained void *)[[SeededNode alloc] init];  // mistake: testUnbalancedRetain
  XCTAssertTrue(kept != nullptr);
}

// expected: heap-use-after-free
- (void)testOverRelease {
  SeededNode *const node = [[SeededNode alloc] init];
  const id surplus = (__bridge_transfer id)(__bridge void *)node;
  XCTAssertNotNil(surplus);
}  // mistake: testOverRelease

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
