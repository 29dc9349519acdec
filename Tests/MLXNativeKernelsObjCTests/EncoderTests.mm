#include <atomic>
#include <thread>

#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface EncoderTests : DeviceTestCase
@end

@implementation EncoderTests

- (void)testNothingCanBeRecordedAfterACommit {
  MNKTensor *tensor = [self zeros:@[ @1, @32 ]], *out = [self zeros:@[ @1, @32 ]];
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4];
  descriptor.sequences = 2;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  MNKCommandEncoder *step = [self.device commandEncoder];
  XCTAssertTrue([[step commitWithError:nil] waitWithError:nil]);
  NSError *error = nil;
  MNKHeadsView *view = [[MNKHeadsView alloc] initWithTensor:tensor];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:out];
  const std::vector<std::pair<NSString *, std::function<BOOL(NSError * __autoreleasing *)>>> calls{
      {@"CommandEncoder", [=](NSError **e) { return [step insertBarrierWithError:e]; }},
      {@"AttentionCache.append",
       [=](NSError **e) {
         return [step append:cacheStep({ .keys = viewOf(tensor), .values = viewOf(tensor), .sequences = @[ @0 ] })
                     toCache:cache
                       error:e];
       }},
      {@"AttentionCache.attend",
       [=](NSError **e) {
         return [step attend:cacheStep({ .queries = viewOf(tensor), .results = results, .sequences = @[ @0 ] })
                   overCache:cache
                       error:e];
       }},
      {@"AttentionCache.appendAndAttend",
       [=](NSError **e) {
         return [step appendAndAttend:cacheStep({
                        .queries = view, .keys = view, .values = view, .results = results, .sequences = @[ @0 ]
                      })
                            overCache:cache
                                error:e];
       }},
      {@"AttentionCache.copy", [=](NSError **e) { return [step copySequence:0 toSequence:1 inCache:cache error:e]; }},
      {@"AttentionCache.grown", [=](NSError **e) { return BOOL([step growCache:cache toCapacity:99 error:e] != nil); }},
      {@"CommandEncoder",
       [=](NSError **e) {
         return [step encodeOperation:[[MNKHadamard alloc] initWithSource:tensor destination:nil] error:e];
       }},
      {@"CommandEncoder",
       [=](NSError **e) {
         return [step encodeDispatch:[[MNKDispatch alloc] initWithFunction:@"f" library:nil] error:e];
       }},
      {@"CommandEncoder", [=](NSError **e) { return BOOL([step commitWithError:e] != nil); }},
  };
  for (const auto &[op, call] : calls) {
    error = nil;
    XCTAssertFalse(call(&error));
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, op, @"committed"), @"%@", error);
    XCTAssertFalse(call(nil));
  }
  XCTAssertEqual([cache nextPositionOfSequence:0], 0u);
}

- (void)testAnEmptyStepFinishesAndWaitingIsIdempotent {
  NSError *error = nil;
  MNKCompletion *done = [[self.device commandEncoder] commitWithError:&error];
  for (int i = 0; i < 3; ++i) XCTAssertTrue([done waitWithError:&error]);
  XCTAssertNil(error);
  XCTAssertTrue(done.isDone);
  XCTAssertEqual(done.summary.total.dispatches, 0u);
  XCTAssertEqual([done.summary countsOfKind:@"KVCacheWrite"].dispatches, 0u);
  XCTAssertEqual([done.summary countsOfKind:absentObject()].bytesRead, 0u);
}

- (void)testTheSummaryCountsByKind {
  MNKTensor *x = [self zeros:@[ @2, @32 ]], *y = [self zeros:@[ @2, @32 ]];
  MNKCommandEncoder *step = [self.device commandEncoder];
  XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:x destination:y] error:nil]));
  XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:y destination:nil] error:nil]));
  XCTAssertTrue([step insertBarrierWithError:nil]);
  MNKCompletion *done = [step commitWithError:nil];
  XCTAssertTrue([done waitWithError:nil]);
  MNKSummary *summary = done.summary;
  XCTAssertEqual(summary.total.dispatches, 2u);
  XCTAssertEqual(summary.barriers, 2u);
  MNKCounts *counts = [summary countsOfKind:@"Hadamard"];
  XCTAssertEqual(counts.dispatches, 2u);
  XCTAssertEqual(counts.bytesRead, 512u);
  XCTAssertEqual(counts.bytesWritten, 512u);
  XCTAssertEqual(summary.total.bytesRead, 512u);
  XCTAssertEqual([summary countsOfKind:@"hadamard"].dispatches, 0u);
  XCTAssertTrue([summary.description hasPrefix:@"2 dispatches, 2 barriers, 512 bytes read, 512 bytes written"], @"%@",
                summary);
}

- (void)testTheSummaryHasOpTimesIfMeasured {
  MNKTensor *x = [self zeros:@[ @2, @32 ]];
  for (NSNumber *measures in @[ @NO, @YES ]) {
    MNKCommandEncoder *step = [self.device commandEncoder];
    XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:x destination:nil] error:nil]));
    if (measures.boolValue) XCTAssertTrue([step measureOpsWithError:nil]);
    MNKCompletion *done = [step commitWithError:nil];
    XCTAssertTrue([done waitWithError:nil]);
    XCTAssertFalse([step measureOpsWithError:nil]);
    MNKSummary *summary = done.summary;
    XCTAssertEqualObjects(summary.kinds.allKeys, @[ @"Hadamard" ]);
    XCTAssertEqual(summary.kinds[@"Hadamard"].dispatches, 1u);
    const NSTimeInterval seconds = summary.kinds[@"Hadamard"].deviceSeconds;
    XCTAssertEqual([summary countsOfKind:@"Hadamard"].deviceSeconds, seconds);
    XCTAssertEqual(summary.total.deviceSeconds, seconds);
    if (!measures.boolValue) XCTAssertEqual(seconds, 0);
    // A GPU may be unable to measure, and its clocks are not compared.
    if (measures.boolValue && [self.device.kind isEqualToString:MNKDeviceKindHost]) {
      XCTAssertGreaterThan(seconds, 0);
      XCTAssertLessThanOrEqual(seconds, summary.deviceSeconds);
    }
  }
}

- (void)testHandlersAreCalledOnceInOrder {
  NSMutableArray<NSNumber *> *order = [NSMutableArray array];
  XCTestExpectation *all = [self expectationWithDescription:@"all handlers"];
  all.expectedFulfillmentCount = 8;
  MNKTensor *x = [self zeros:@[ @2, @32 ]];
  for (int i = 0; i < 8; ++i) {
    MNKCommandEncoder *step = [self.device commandEncoder];
    XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:x destination:nil] error:nil]));
    [step commitWithCompletionHandler:^(MNKSummary *, NSError *failure) {
      @synchronized(order) {
        [order addObject:failure ? @-1 : @(i)];
      }
      [all fulfill];
    }];
  }
  [self waitForExpectations:@[ all ] timeout:60];
  @synchronized(order) {
    XCTAssertEqualObjects(order, (@[ @0, @1, @2, @3, @4, @5, @6, @7 ]));
  }
}

- (void)testARefusedCallRecordsNothing {
  MNKTensor *x = [self zeros:@[ @2, @32 ]];
  MNKCommandEncoder *step = [self.device commandEncoder];
  NSError *error = nil;
  MNKTensor *wrong = [self zeros:@[ @2, @31 ]];
  XCTAssertFalse(([step encodeOperation:[[MNKHadamard alloc] initWithSource:wrong destination:nil] error:&error]));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Hadamard", @""));
  XCTAssertFalse([step encodeOperation:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MNKCommandEncoder", @"nil was passed for the operation"));
  XCTAssertFalse([step encodeDispatch:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MNKDispatch", @"nil was passed for the dispatch"));
  XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:x destination:nil] error:nil]));
  MNKCompletion *done = [step commitWithError:nil];
  XCTAssertEqual(done.summary.total.dispatches, 1u);
  XCTAssertTrue([done waitWithError:nil]);
}

// An open step reads and writes tensors when it runs, so it would see the wrong contents.
- (void)testTensorsOfAnOpenStep {
  MNKTensor *x = [self floats:{1, 0, 0, 0} shape:@[ @1, @4 ]], *y = [self zeros:@[ @1, @4 ]];
  float numbers[4] = {};
  NSError *error = nil;
  @autoreleasepool {
    MNKCommandEncoder *step = [self.device commandEncoder];
    XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:x destination:y] error:nil]));
    for (MNKTensor *used in @[ x, y ]) {
      XCTAssertFalse([used writeFloats:numbers count:4 error:&error]);
      XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Buffer", @"an open step uses this memory"), @"%@", error);
    }
    XCTAssertTrue([x readFloats:numbers count:4 error:&error], @"%@", error);
    XCTAssertFalse([y readFloats:numbers count:4 error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Buffer", @"an open step writes this memory"), @"%@", error);
    XCTAssertNil([y dataWithError:nil]);
    XCTAssertTrue([[step commitWithError:nil] waitWithError:nil]);
  }
  XCTAssertEqual([self floatOf:y at:3], 0.5f);
  XCTAssertTrue([x writeFloats:numbers count:4 error:&error], @"%@", error);
}

- (void)testASubclassOfOperationIsRefused {
  MNKOperation *own = [[MNKOperation alloc] init];
  NSError *error = nil;
  XCTAssertNil([own planForDevice:self.device error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorUnsupported, @"MNKOperation", @"not an op of this framework"));
  XCTAssertFalse([[self.device commandEncoder] encodeOperation:own error:&error]);
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
    XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:view destination:nil] error:nil]));
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
