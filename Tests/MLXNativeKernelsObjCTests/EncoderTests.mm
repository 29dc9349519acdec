#include <chrono>
#include <future>

#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface EncoderTests : DeviceTestCase
@end

@implementation EncoderTests

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
    XCTAssertEqual([summary countsOfKind:absentObject()].bytesRead, 0u);
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

- (void)testWorkContinuesWithoutItsObjects {
  MNKTensor *x = [self floats:{1, 0, 0, 0} shape:@[ @1, @4 ]];
  const auto done = std::make_shared<std::promise<void>>();
  @autoreleasepool {
    MNKCommandEncoder *step = [self.device commandEncoder];
    MNKTensor *view = [x reshapedTo:@[ @4 ] error:nil];
    XCTAssertTrue([step encodeOperation:[[MNKHadamard alloc] initWithSource:view destination:nil] error:nil]);
    [step commitWithCompletionHandler:^(MNKSummary *summary, NSError *failure) {
      XCTAssertNil(failure);
      XCTAssertEqual(summary.total.dispatches, 1u);
      XCTAssertGreaterThan(summary.deviceSeconds, 0);
      done->set_value();
    }];
  }
  XCTAssertTrue(done->get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
  XCTAssertEqual([self floatOf:x at:3], 0.5f);
}

@end
