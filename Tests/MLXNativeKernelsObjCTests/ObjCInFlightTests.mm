#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;
using test::FakeDevice;

// Memory that submitted work may still access, failing work, and calls that wait for it.
@interface ObjCInFlightTests : DeviceTestCase
@end

@implementation ObjCInFlightTests

// Commits the Hadamard transform of (1, 0, 0, 0), whose elements are all 0.5.
- (MNKCompletion *)committedTransformOf:(MNKTensor *)tensor {
  MNKCommandEncoder *step = [self.device commandEncoder];
  NSError *error = nil;
  XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:tensor destination:nil] error:&error]),
                @"%@", error);
  MNKCompletion *done = [step commitWithError:&error];
  XCTAssertNotNil(done, @"%@", error);
  return done;
}

- (void)testReadingRightAfterACommitReturnsTheResults {
  XCTAssertNil(failuresWithin([&] {
    for (const bool isData : {false, true}) {
      MNKTensor *x = [self floats:{1, 0, 0, 0} shape:@[ @1, @4 ]];
      test::Gate gate(coreOf(self.device));
      XCTAssertNotNil([self committedTransformOf:x]);
      float got[4] = {};
      float *into = got;
      const bool isRead = test::waitingFor([&] { gate.open(); },
                                           [&] {
                                             if (!isData) return [x readFloats:into count:4 error:nil] != NO;
                                             NSData *data = [x dataWithError:nil];
                                             if (data.length == sizeof got) memcpy(into, data.bytes, sizeof got);
                                             return data != nil;
                                           });
      XCTAssertTrue(isRead);
      for (const float number : got) XCTAssertEqual(number, 0.5f);
    }
  }));
}

- (void)testWritingRightAfterACommitWaitsForReaders {
  XCTAssertNil(failuresWithin([&] {
    MNKTensor *x = [self floats:{1, 0, 0, 0} shape:@[ @1, @4 ]], *y = [self zeros:@[ @1, @4 ]];
    test::Gate gate(coreOf(self.device));
    MNKCommandEncoder *step = [self.device commandEncoder];
    XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:x destination:y] error:nil]));
    XCTAssertNotNil([step commitWithError:nil]);
    const float other[4] = {9, 9, 9, 9};
    const float *numbers = other;
    XCTAssertTrue(
        test::waitingFor([&] { gate.open(); }, [&] { return [x writeFloats:numbers count:4 error:nil] != NO; }));
    XCTAssertEqual([self floatOf:y at:3], 0.5f);
    XCTAssertEqual([self floatOf:x at:3], 9);
  }));
}

- (void)testSavingRightAfterACommitIncludesTheTokens {
  NSString *name = [[[NSUUID UUID] UUIDString] stringByAppendingString:@".cache"];
  NSString *path = [NSTemporaryDirectory() stringByAppendingPathComponent:name];
  NSURL *url = [NSURL fileURLWithPath:path];
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4];
  descriptor.elementType = MNKElementTypeFloat32;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  MNKTensor *token = [self numbers:@[ @1, @32 ] seed:3];
  XCTAssertNil(failuresWithin([&] {
    test::Gate gate(coreOf(self.device));
    MNKCommandEncoder *step = [self.device commandEncoder];
    XCTAssertTrue([step appendKeys:token values:token toCache:cache error:nil]);
    XCTAssertNotNil([step commitWithError:nil]);
    XCTAssertTrue(test::waitingFor([&] { gate.open(); }, [&] { return [cache saveToURL:url error:nil] != NO; }));
  }));
  MNKAttentionCache *loaded = [[MNKAttentionCache alloc] initWithDevice:self.device
                                                          contentsOfURL:url
                                                               maxBytes:1 << 20
                                                                  error:nil];
  XCTAssertEqual(loaded.nextPosition, 1u);
  const auto stored = [self floatsOf:loaded.view.keys], expected = [self floatsOf:token];
  XCTAssertTrue(std::equal(expected.begin(), expected.end(), stored.begin()));
  XCTAssertTrue([[NSFileManager defaultManager] removeItemAtPath:path error:nil]);
}

- (void)testRunEncodesCommitsAndWaits {
  MNKTensor *x = [self floats:{1, 0, 0, 0} shape:@[ @1, @4 ]];
  MNKHadamard *transform = [[MNKHadamard alloc] initWithSource:x destination:nil];
  NSError *error = nil;
  __block MNKCommandEncoder *used = nil;
  MNKSummary *summary = [self.device runWithError:&error
                                            block:^BOOL(MNKCommandEncoder *step, NSError **failure) {
                                              used = step;
                                              return [step encodeOperation:transform error:failure];
                                            }];
  XCTAssertEqual(summary.total.dispatches, 1u, @"%@", error);
  XCTAssertGreaterThan(summary.deviceSeconds, 0);
  XCTAssertNil(error);
  XCTAssertEqual(used.device, self.device);
  XCTAssertEqual([self floatOf:x at:2], 0.5f);
  XCTAssertFalse([used insertBarrierWithError:nil]);
}

- (void)testRunRunsNothingIfTheBlockFails {
  MNKTensor *x = [self floats:{1, 0, 0, 0} shape:@[ @1, @4 ]];
  MNKHadamard *transform = [[MNKHadamard alloc] initWithSource:x destination:nil];
  NSError *own = [NSError errorWithDomain:@"own" code:7 userInfo:nil], *error = nil;
  XCTAssertNil([self.device runWithError:&error
                                   block:^BOOL(MNKCommandEncoder *step, NSError **failure) {
                                     XCTAssertTrue([step encodeOperation:transform error:failure]);
                                     *failure = own;
                                     return NO;
                                   }]);
  XCTAssertIdentical(error, own);
  BOOL (^refuses)(MNKCommandEncoder *, NSError **) = ^BOOL(MNKCommandEncoder *step, NSError **failure) {
    return [step encodeOperation:absentObject() error:failure];
  };
  XCTAssertNil([self.device runWithError:&error block:refuses]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MNKCommandEncoder", @"nil was passed for the operation"));
  XCTAssertNil([self.device runWithError:nil block:refuses]);
  XCTAssertNil([self.device runWithError:&error
                                   block:^BOOL(MNKCommandEncoder *step, NSError **) {
                                     return ![step encodeOperation:transform error:nil];
                                   }]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MNKDevice", @"the block failed without an error"));
  XCTAssertNil([self.device runWithError:&error block:absentObject()]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MNKDevice", @"nil was passed for the block"));
  XCTAssertEqual([self floatOf:x at:0], 1);
  // A block that itself commits.
  XCTAssertNil([self.device runWithError:&error
                                   block:^BOOL(MNKCommandEncoder *step, NSError **failure) {
                                     return [step commitWithError:failure] != nil;
                                   }]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"CommandEncoder", @"committed"));
}

- (Error)fault {
  return {.code = ErrorCode::pageFault,
          .op = "Device",
          .what = "it stopped",
          .got = "a fault",
          .expected = "none",
          .fix = "Fix the kernel."};
}

- (void)testFailuresStayWithTheMemory {
  XCTAssertNil(failuresWithin([&] {
    const auto fake = FakeDevice::make();
    MNKDevice *device = objectOver(std::shared_ptr<Device>(fake));
    MNKTensor *x = objectOver(test::floats(fake, 4));
    MNKHadamard *transform = [[MNKHadamard alloc] initWithSource:x destination:nil];
    fake->holdCompletions();
    XCTAssertNil(device.lastFailure);
    NSError *error = nil;
    MNKSummary *summary = test::waitingFor(
        [&] {
          // The call commits the work it waits for.
          for (int i = 0; i < 10'000 && !fake->finishNext(self.fault); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        },
        [&] {
          NSError *__autoreleasing failure = nil;
          MNKSummary *result = [device runWithError:&failure
                                              block:^BOOL(MNKCommandEncoder *step, NSError **e) {
                                                return [step encodeOperation:transform error:e];
                                              }];
          error = failure;
          return result;
        });
    XCTAssertNil(summary);
    XCTAssertNil(wrongIn(error, self.fault));
    XCTAssertNil(wrongIn(device.lastFailure, self.fault));
    float numbers[4] = {1, 2, 3, 4};
    XCTAssertFalse([x readFloats:numbers count:4 error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorPageFault, @"Buffer", @"earlier work that was to write this memory failed"));
    XCTAssertNil([x dataWithError:nil]);
    XCTAssertFalse([[device commandEncoder] encodeOperation:transform error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorPageFault, @"CommandEncoder", @"memory that failed work was to write"));
    XCTAssertTrue([x writeFloats:numbers count:4 error:&error]);
    XCTAssertTrue([x readFloats:numbers count:4 error:&error]);
    XCTAssertNotNil(device.lastFailure);
  }));
}

- (void)testAHandlerCannotWaitForOtherWork {
  XCTAssertNil(failuresWithin([&] {
    const auto fake = FakeDevice::make();
    MNKDevice *device = objectOver(std::shared_ptr<Device>(fake));
    MNKTensor *x = objectOver(test::floats(fake, 4)), *y = objectOver(test::floats(fake, 4));
    fake->holdCompletions();
    MNKCommandEncoder *first = [device commandEncoder], *second = [device commandEncoder];
    XCTAssertTrue(([first encodeOperation:[[MNKHadamard alloc] initWithSource:x destination:nil] error:nil]));
    XCTAssertTrue(([second encodeOperation:[[MNKHadamard alloc] initWithSource:y destination:nil] error:nil]));
    __block MNKCompletion *later = nil;
    __block int calls = 0;
    [first commitWithCompletionHandler:^(MNKSummary *, NSError *failure) {
      XCTAssertNil(failure);
      float numbers[4] = {};
      NSError *error = nil;
      XCTAssertTrue([x readFloats:numbers count:4 error:&error], @"%@", error);
      XCTAssertFalse([y readFloats:numbers count:4 error:&error]);
      XCTAssertNil(wrongIn(error, MNKErrorWouldDeadlock, @"Buffer", @"a handler of finished work cannot wait"));
      XCTAssertFalse([later waitWithError:&error]);
      XCTAssertNil(wrongIn(error, MNKErrorWouldDeadlock, @"Completion", @"a handler of finished work cannot wait"));
      XCTAssertNil([device runWithError:&error
                                  block:^BOOL(MNKCommandEncoder *, NSError **) {
                                    XCTFail(@"nothing may be encoded here");
                                    return YES;
                                  }]);
      XCTAssertNil(wrongIn(error, MNKErrorWouldDeadlock, @"MNKDevice", @"a handler of finished work cannot wait"));
      ++calls;
    }];
    later = [second commitWithError:nil];
    XCTAssertTrue(fake->finishNext({}));
    XCTAssertEqual(calls, 1);
    XCTAssertTrue(fake->finishNext({}));
    XCTAssertTrue([later waitWithError:nil]);
  }));
}

@end
