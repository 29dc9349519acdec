#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "Harness/FakeDevice.hpp"
#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Caller-owned memory is used without a copy and released exactly once.
@interface WrappedMemoryTests : DeviceTestCase
@end

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

- (MNKTensor *)wrappedAt:(NSUInteger)offset
                   shape:(NSArray *)shape
                    type:(MNKElementType)type
                counting:(std::shared_ptr<std::atomic<int>>)count
                   error:(NSError **)error {
  return [MNKTensor tensorWrappingMemory:_memory
                                  length:_length
                                  offset:offset
                                   shape:shape
                             elementType:type
                                  device:self.device
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
      MNKTensor *tensor = [self wrappedAt:16 shape:@[ @2, @2 ] type:MNKElementTypeFloat32 counting:count error:&error];
      XCTAssertNotNil(tensor, @"%@", error);
      XCTAssertEqual(tensor.byteOffset, 16u);
      const float written[] = {1, 2, 3, 4};
      XCTAssertTrue([tensor writeFloats:written count:4 error:nil]);
      XCTAssertEqual(numbers[4], 1);
      numbers[7] = 40;
      XCTAssertEqual([self floatOf:tensor at:3], 40);
      slice = [tensor sliceWithRange:NSMakeRange(1, 1) error:nil];
    }
    XCTAssertEqual(count->load(), 0);
    XCTAssertEqual([self floatOf:slice at:1], 40);
  }
  XCTAssertEqual(count->load(), 1);
}

- (void)testWorkRetainsTheMemory {
  const auto count = std::make_shared<std::atomic<int>>(0);
  @autoreleasepool {
    MNKTensor *tensor = [self wrappedAt:0 shape:@[ @4, @32 ] type:MNKElementTypeFloat32 counting:count error:nil];
    static_cast<float *>(_memory)[0] = 8;
    [self encode:[[MNKHadamard alloc] initWithSource:tensor destination:nil]];
  }
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step insertBarrierWithError:error];
  }];
  XCTAssertEqual(count->load(), 1);
  XCTAssertEqualWithAccuracy(static_cast<float *>(_memory)[31], 8 / sqrt(32), 1e-6);
}

- (void)testMemoryIsReleasedOnceAfterFailures {
  struct Call {
    NSUInteger length, offset;
    NSArray *shape;
    uint32_t type;
    BOOL hasDevice, hasMemory;
  };
  const NSUInteger length = _length;
  const std::vector<Call> calls{
      {length, length, @[ @1 ], MNKElementTypeFloat32, YES, YES},  // starts at the end
      {length, 2, @[ @1 ], MNKElementTypeFloat32, YES, YES},       // between elements
      {length, NSUIntegerMax - 3, @[ @8 ], MNKElementTypeFloat32, YES, YES},
      {length, 0, @[ @(length) ], MNKElementTypeFloat32, YES, YES},  // longer than the memory
      {length, 0, @[ @(UINT64_MAX), @(UINT64_MAX) ], MNKElementTypeFloat32, YES, YES},
      {length, 0, @[ @-1 ], MNKElementTypeFloat32, YES, YES},
      {length, 0, @[ @"1" ], MNKElementTypeFloat32, YES, YES},
      {length, 0, absentObject(), MNKElementTypeFloat32, YES, YES},
      {length, 0, @[ @1 ], 99, YES, YES},
      {length, 0, @[ @1 ], MNKElementTypeFloat32, NO, YES},
      {length, 0, @[ @1 ], MNKElementTypeFloat32, YES, NO},
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call &call = calls[i];
    for (const bool wantsError : {true, false}) {
      const auto count = std::make_shared<std::atomic<int>>(0);
      @autoreleasepool {
        NSError *error = nil;
        MNKDevice *device = call.hasDevice ? self.device : absentObject();
        XCTAssertNil([MNKTensor tensorWrappingMemory:call.hasMemory ? _memory : absentMemory<void>()
                                              length:call.length
                                              offset:call.offset
                                               shape:call.shape
                                         elementType:static_cast<MNKElementType>(call.type)
                                              device:device
                                         deallocator:^{
                                           ++*count;
                                         }
                                               error:wantsError ? &error : nil],
                     @"call %zu", i);
        XCTAssertEqual(error != nil, wantsError);
        if (error) XCTAssertEqualObjects(error.domain, MNKErrorDomain);
        // Before the call returns.
        XCTAssertEqual(count->load(), 1, @"call %zu", i);
      }
      XCTAssertEqual(count->load(), 1, @"call %zu", i);
    }
  }
}

- (void)testTheDeallocatorIsOptional {
  NSError *error = nil;
  MNKTensor *tensor = [MNKTensor tensorWrappingMemory:_memory
                                               length:_length
                                               offset:0
                                                shape:@[ @4 ]
                                          elementType:MNKElementTypeUInt8
                                               device:self.device
                                          deallocator:nil
                                                error:&error];
  XCTAssertNotNil(tensor, @"%@", error);
  XCTAssertNil([MNKTensor tensorWrappingMemory:_memory
                                        length:_length
                                        offset:0
                                         shape:@[ @-4 ]
                                   elementType:MNKElementTypeUInt8
                                        device:self.device
                                   deallocator:nil
                                         error:nil]);
}

// The block and its captures live until the memory is released, and no longer.
- (void)testTheDeallocatorBlockIsReleased {
  __weak NSObject *watched = nil;
  const auto count = std::make_shared<std::atomic<int>>(0);
  @autoreleasepool {
    NSObject *held = [[NSObject alloc] init];
    watched = held;
    MNKTensor *tensor = [MNKTensor tensorWrappingMemory:_memory
                                                 length:_length
                                                 offset:0
                                                  shape:@[ @4 ]
                                            elementType:MNKElementTypeUInt8
                                                 device:self.device
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
