#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

// Caller-owned memory is used without a copy and released exactly once.
@interface WrappedMemoryTests : DeviceTestCase
@end

namespace {

struct Wrapping {
  NSArray *shape;
  NSUInteger offset = 0;
  uint32_t type = MNKElementTypeFloat32;
  BOOL hasDevice = YES, hasMemory = YES;
};

}  // namespace

@implementation WrappedMemoryTests {
  void *_memory;
  NSUInteger _length;
}

- (void)setUp {
  [super setUp];
  // Whole pages, as a GPU requires.
  _length = static_cast<NSUInteger>(getpagesize());
  _memory = mmap(nullptr, _length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
}

- (void)tearDown {
  munmap(_memory, _length);
  [super tearDown];
}

- (MNKTensor *)wrap:(const Wrapping &)how deallocator:(void (^)(void))deallocator error:(NSError **)error {
  return [MNKTensor tensorWrappingMemory:how.hasMemory ? _memory : absentMemory<void>()
                                  length:_length
                                  offset:how.offset
                                   shape:how.shape
                             elementType:static_cast<MNKElementType>(how.type)
                                  device:how.hasDevice ? self.device : absentObject()
                             deallocator:deallocator
                                   error:error];
}

// The block and its captures live until the memory is released, and no longer.
- (void)testMemoryIsSharedAndReleasedOnce {
  const auto count = std::make_shared<std::atomic<int>>(0);
  auto *numbers = static_cast<float *>(_memory);
  @autoreleasepool {
    NSError *error = nil;
    MNKTensor *slice = nil;
    @autoreleasepool {
      MNKTensor *tensor = [self wrap:{
        .shape = @[ @2, @2 ], .offset = 16
      }
          deallocator:^{
            ++*count;
          }
          error:&error];
      XCTAssertEqual(tensor.byteOffset, 16u, @"%@", error);
      const float written[] = {1, 2, 3, 4};
      XCTAssertTrue([tensor writeFloats:written count:4 error:nil]);
      XCTAssertEqual(numbers[4], 1);
      numbers[7] = 40;
      slice = [tensor sliceWithRange:NSMakeRange(1, 1) error:nil];
    }
    XCTAssertEqual(count->load(), 0);
    XCTAssertEqual([self floatOf:slice at:1], 40);
  }
  XCTAssertEqual(count->load(), 1);
  XCTAssertEqual(count.use_count(), 1);
}

- (void)testMemoryIsReleasedOnceAfterFailures {
  const std::vector<Wrapping> failing{
      {.shape = @[ @1 ], .offset = _length},  // starts at the end
      {.shape = @[ @1 ], .offset = 2},        // between elements
      {.shape = @[ @(_length) ]},             // longer than the memory
      {.shape = @[ @"1" ]},
      {.shape = absentObject()},
      {.shape = @[ @1 ], .type = 99},
      {.shape = @[ @1 ], .hasDevice = NO},
      {.shape = @[ @1 ], .hasMemory = NO},
  };
  for (size_t i = 0; i < failing.size(); ++i) {
    for (const bool wantsError : {true, false}) {
      const auto count = std::make_shared<std::atomic<int>>(0);
      @autoreleasepool {
        NSError *error = nil;
        void (^release)(void) = ^{
          ++*count;
        };
        XCTAssertNil([self wrap:failing[i] deallocator:release error:wantsError ? &error : nil], @"wrapping %zu", i);
        XCTAssertEqualObjects(error.domain, wantsError ? MNKErrorDomain : nil);
        // Before the call returns.
        XCTAssertEqual(count->load(), 1, @"wrapping %zu", i);
      }
      XCTAssertEqual(count->load(), 1, @"wrapping %zu", i);
    }
  }
}

- (void)testTheDeallocatorIsOptional {
  NSError *error = nil;
  XCTAssertNotNil([self wrap:{ .shape = @[ @4 ] } deallocator:nil error:&error], @"%@", error);
  XCTAssertNil([self wrap:{ .shape = @[ @-4 ] } deallocator:nil error:nil]);
}

@end
