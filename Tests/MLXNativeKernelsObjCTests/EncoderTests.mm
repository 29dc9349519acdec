#include <atomic>
#include <thread>

#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface EncoderTests : DeviceTestCase
@end

@implementation EncoderTests

- (void)testAnEmptyStepFinishesAndWaitingIsIdempotent {
  NSError *error = nil;
  MNKCompletion *done = [[self.device commandEncoder] commitWithError:&error];
  for (int i = 0; i < 3; ++i) XCTAssertTrue([done waitWithError:&error]);
  XCTAssertNil(error);
  XCTAssertTrue(done.isDone);
  XCTAssertEqual(done.summary.total.dispatches, 0u);
  XCTAssertEqual([done.summary countsOfKind:absentObject()].bytesRead, 0u);
}

- (void)testTheSummaryCountsByKind {
  MNKTensor *x = [self zeros:@[ @2, @32 ]], *y = [self zeros:@[ @2, @32 ]];
  for (const BOOL isMeasured : {NO, YES}) {
    MNKCommandEncoder *step = [self.device commandEncoder];
    XCTAssertTrue([step encodeOperation:[[MNKHadamard alloc] initWithSource:x destination:y] error:nil]);
    XCTAssertTrue([step encodeOperation:[[MNKHadamard alloc] initWithSource:y destination:nil] error:nil]);
    XCTAssertTrue([step insertBarrierWithError:nil]);
    if (isMeasured) XCTAssertTrue([step measureOpsWithError:nil]);
    MNKCompletion *done = [step commitWithError:nil];
    XCTAssertTrue([done waitWithError:nil]);
    XCTAssertFalse([step measureOpsWithError:nil]);
    MNKSummary *summary = done.summary;
    XCTAssertEqual(summary.barriers, 2u);
    XCTAssertEqualObjects(summary.kinds.allKeys, @[ @"Hadamard" ]);
    MNKCounts *ofKind = (MNKCounts *_Nonnull)summary.kinds[@"Hadamard"];
    for (MNKCounts *counts in @[ ofKind, [summary countsOfKind:@"Hadamard"], summary.total ]) {
      XCTAssertEqual(counts.dispatches, 2u);
      XCTAssertEqual(counts.bytesRead, 512u);
      XCTAssertEqual(counts.bytesWritten, 512u);
      XCTAssertEqual(counts.deviceSeconds, summary.total.deviceSeconds);
      // A GPU may be unable to measure, and its clocks are not compared.
      if (isMeasured && self.isHost) XCTAssertGreaterThan(counts.deviceSeconds, 0);
      if (!isMeasured) XCTAssertEqual(counts.deviceSeconds, 0);
    }
    XCTAssertEqual([summary countsOfKind:@"hadamard"].dispatches, 0u);
    XCTAssertTrue([summary.description hasPrefix:@"2 dispatches, 2 barriers, 512 bytes read, 512 bytes written"], @"%@",
                  summary);
  }
}

- (void)testRefusedCallsRecordNothing {
  MNKCommandEncoder *step = [self.device commandEncoder];
  XCTAssertNil(wrongIn({
      {@"Hadamard", @"",
       [=](NSError **e) {
         MNKHadamard *odd = [[MNKHadamard alloc] initWithSource:[self zeros:@[ @2, @31 ]] destination:nil];
         return [step encodeOperation:odd error:e];
       }},
      {@"MNKCommandEncoder", @"nil was passed for the operation",
       [=](NSError **e) { return [step encodeOperation:absentObject() error:e]; }},
      {@"MNKDispatch", @"nil was passed for the dispatch",
       [=](NSError **e) { return [step encodeDispatch:absentObject() error:e]; }},
      {@"MNKCommandEncoder", @"nil was passed for the step",
       [=](NSError **e) { return [step encodeStep:absentObject() error:e]; }},
      {@"MNKCommandEncoder", @"nil was passed for the plan",
       [=](NSError **e) { return [step encodePlan:absentObject() error:e]; }},
  }));
  XCTAssertEqual([step commitWithError:nil].summary.total.dispatches, 0u);
}

- (void)testManyThreadsUseTheirOwnEncoders {
  constexpr int kThreads = 4, kSteps = 25;
  MNKDevice *device = self.device;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, device, &wrong] {
      for (int i = 0; i < kSteps; ++i) {
        @autoreleasepool {
          const float numbers[4] = {static_cast<float>(t), static_cast<float>(i), 1, 2};
          MNKTensor *x = [MNKTensor tensorWithFloats:numbers
                                               shape:@[ @1, @4 ]
                                         elementType:MNKElementTypeFloat32
                                              device:device
                                               error:nil];
          MNKCommandEncoder *step = [device commandEncoder];
          MNKHadamard *turn = [[MNKHadamard alloc] initWithSource:x destination:nil];
          if (![step encodeOperation:turn error:nil] || ![step encodeOperation:turn error:nil]) ++wrong;
          if (![[step commitWithError:nil] waitWithError:nil]) ++wrong;
          float got[4] = {};
          if (![x readFloats:got count:4 error:nil] || memcmp(got, numbers, sizeof got) != 0) ++wrong;
        }
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  XCTAssertEqual(wrong.load(), 0);
}

- (void)testWorkContinuesWithoutItsObjects {
  MNKTensor *x = [self floats:{1, 0, 0, 0} shape:@[ @1, @4 ]];
  XCTestExpectation *done = [self expectationWithDescription:@"done"];
  @autoreleasepool {
    MNKCommandEncoder *step = [self.device commandEncoder];
    MNKTensor *view = [x reshapedTo:@[ @4 ] error:nil];
    XCTAssertTrue([step encodeOperation:[[MNKHadamard alloc] initWithSource:view destination:nil] error:nil]);
    [step commitWithCompletionHandler:^(MNKSummary *summary, NSError *failure) {
      XCTAssertNil(failure);
      XCTAssertEqual(summary.total.dispatches, 1u);
      XCTAssertGreaterThan(summary.deviceSeconds, 0);
      [done fulfill];
    }];
  }
  [self waitForExpectations:@[ done ] timeout:60];
  XCTAssertEqual([self floatOf:x at:3], 0.5f);
}

@end
