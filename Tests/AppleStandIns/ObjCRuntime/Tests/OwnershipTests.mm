// ARC: strong and weak references, autorelease pools, properties, exceptions, and all of it on several threads.
#import <XCTest/XCTest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#import "Sample.h"

@interface OwnershipTests : XCTestCase
@end

@implementation OwnershipTests

- (void)testObjectDiesWithItsLastReference {
  const int before = SampleSquare.liveCount;
  SampleSquare *first = [[SampleSquare alloc] initWithTitle:@"one"];
  SampleSquare *second = first;
  first = nil;
  XCTAssertEqual(SampleSquare.liveCount, before + 1);
  XCTAssertEqualObjects(second.title, @"one");
  second = nil;
  XCTAssertEqual(SampleSquare.liveCount, before);
}

- (void)testAutoreleasedObjectDiesWithItsPool {
  const int before = SampleSquare.liveCount;
  @autoreleasepool {
    for (int i = 0; i < 10; ++i) XCTAssertNotNil([SampleSquare squareWithTitle:@"many"]);
  }
  XCTAssertEqual(SampleSquare.liveCount, before);
}

- (void)testWeakReferenceIsZeroed {
  __weak SampleSquare *weak = nil;
  __weak SampleSquare *copy = nil;
  @autoreleasepool {
    SampleSquare *const strong = [[SampleSquare alloc] initWithTitle:@"short-lived"];
    weak = strong;
    copy = weak;
    XCTAssertNotNil(weak);
  }
  XCTAssertNil(weak);
  XCTAssertNil(copy);
}

- (void)testTreeWithWeakParentsDies {
  const int before = SampleSquare.liveCount;
  SampleNode *leaf = nil;
  @autoreleasepool {
    SampleNode *const root = [SampleNode squareWithTitle:@"trunk"];
    leaf = [SampleNode squareWithTitle:@"leaf"];
    [root adopt:leaf];
    XCTAssertEqual(leaf.parent, root);
  }
  XCTAssertNil(leaf.parent);
  @autoreleasepool {
    leaf = nil;
  }
  XCTAssertEqual(SampleSquare.liveCount, before);
}

- (void)testCopyProperty {
  SampleSquare *const square = [SampleSquare squareWithTitle:@"first"];
  NSMutableString *const title = [NSMutableString stringWithString:@"second"];
  square.title = title;
  [title appendString:@", changed"];
  XCTAssertEqualObjects(square.title, @"second");
}

- (void)testAtomicPropertyOnThreads {
  SampleSquare *const square = [SampleSquare squareWithTitle:@"0"];
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 1000; ++i) {
        @autoreleasepool {
          if (thread % 2) square.title = [NSString stringWithFormat:@"%d", i];
          if (square.title.length > 0) ++good;
        }
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  XCTAssertEqual(good.load(), 4000);
}

- (void)testWeakReferenceRacesWithTheLastRelease {
  const int before = SampleSquare.liveCount;
  for (int round = 0; round < 200; ++round) {
    @autoreleasepool {
      SampleSquare *strong = [[SampleSquare alloc] initWithTitle:@"raced for"];
      std::atomic<int> ready = 0;
      __weak SampleSquare *weak = strong;
      std::thread reader([&ready, weak] {
        @autoreleasepool {
          ++ready;
          SampleSquare *got = weak;
          // Either alive or nil.
          while (got && [got.title isEqual:@"raced for"]) {
            got = nil;
            @autoreleasepool {
              got = weak;
            }
          }
        }
      });
      while (ready == 0) std::this_thread::yield();
      strong = nil;
      reader.join();
    }
  }
  XCTAssertEqual(SampleSquare.liveCount, before);
}

// A C++ exception passes through messages, and releases what their frames hold.
- (void)throwWith:(SampleSquare *)square {
  SampleSquare *const held = square;
  XCTAssertNotNil(held);
  throw std::runtime_error("thrown through a message");
}

- (void)testCxxExceptionReleasesLocals {
  __weak SampleSquare *weak = nil;
  std::string text;
  @autoreleasepool {
    try {
      SampleSquare *const local = [[SampleSquare alloc] initWithTitle:@"local"];
      weak = local;
      [self throwWith:local];
    } catch (const std::exception &exception) {
      text = exception.what();
    }
  }
  XCTAssertEqual(text, "thrown through a message");
  XCTAssertNil(weak);
}

- (void)testSynchronized {
  NSObject *const lock = [[NSObject alloc] init];
  int count = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        @synchronized(lock) {
          ++count;
        }
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  XCTAssertEqual(count, 4000);
}

@end
