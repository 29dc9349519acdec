#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
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

using Count = std::shared_ptr<std::atomic<int>>;

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

- (MNKTensor *)wrap:(const Wrapping &)how counting:(Count)count error:(NSError **)error {
  return [self wrap:how
        deallocator:^{
          ++*count;
        }
              error:error];
}

- (void)testMemoryIsSharedAndReleasedOnce {
  const auto count = std::make_shared<std::atomic<int>>(0);
  auto *numbers = static_cast<float *>(_memory);
  @autoreleasepool {
    NSError *error = nil;
    MNKTensor *slice = nil;
    @autoreleasepool {
      MNKTensor *tensor = [self wrap:{ .shape = @[ @2, @2 ], .offset = 16 } counting:count error:&error];
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
}

- (void)testWorkUsesTheMemory {
  const auto count = std::make_shared<std::atomic<int>>(0);
  @autoreleasepool {
    MNKTensor *tensor = [self wrap:{ .shape = @[ @4, @32 ] } counting:count error:nil];
    static_cast<float *>(_memory)[0] = 8;
    [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
      return [step encodeOperation:[[MNKHadamard alloc] initWithSource:tensor destination:nil] error:error];
    }];
  }
  // Work of one device finishes in order, and releases what it used.
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step insertBarrierWithError:error];
  }];
  XCTAssertEqual(count->load(), 1);
  XCTAssertEqualWithAccuracy(static_cast<float *>(_memory)[31], 8 / std::sqrt(32), 1e-6);
}

- (void)testMemoryIsReleasedOnceAfterFailures {
  const std::vector<Wrapping> failing{
      {.shape = @[ @1 ], .offset = _length},  // starts at the end
      {.shape = @[ @1 ], .offset = 2},        // between elements
      {.shape = @[ @8 ], .offset = NSUIntegerMax - 3},
      {.shape = @[ @(_length) ]},  // longer than the memory
      {.shape = @[ @(UINT64_MAX), @(UINT64_MAX) ]},
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
        XCTAssertNil([self wrap:failing[i] counting:count error:wantsError ? &error : nil], @"wrapping %zu", i);
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

// The block and its captures live until the memory is released, and no longer.
- (void)testTheDeallocatorBlockIsReleased {
  __weak NSObject *watched = nil;
  const auto count = std::make_shared<std::atomic<int>>(0);
  @autoreleasepool {
    NSObject *held = [[NSObject alloc] init];
    watched = held;
    MNKTensor *tensor = [self wrap:{ .shape = @[ @4 ] }
        deallocator:^{
          ++*count;
          (void)held;
        }
        error:nil];
    held = nil;
    XCTAssertNotNil(watched);
    XCTAssertEqual(tensor.count, 4u);
  }
  XCTAssertEqual(count->load(), 1);
  XCTAssertNil(watched);
}

@end
