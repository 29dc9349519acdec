#import <XCTest/XCTest.h>

#include "Harness/FakeDevice.hpp"
#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;
using test::FakeDevice;

// How a device failure affects caches, completions and handlers.
@interface CacheOutcomeTests : XCTestCase
@end

@implementation CacheOutcomeTests {
  std::shared_ptr<FakeDevice> _fake;
  MNKDevice *_device;
  MNKAttentionCache *_cache;
  MNKTensor *_token;
}

- (void)setUp {
  [super setUp];
  _fake = FakeDevice::make();
  _device = objectOver(std::shared_ptr<Device>(_fake));
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:8];
  descriptor.sequences = 2;
  MNKAttentionCache *cache = [[MNKAttentionCache alloc] initWithDevice:_device descriptor:descriptor error:nil];
  MNKTensor *token = [MNKTensor zerosWithShape:@[ @1, @32 ] elementType:MNKElementTypeFloat32 device:_device error:nil];
  XCTAssertNotNil(cache);
  XCTAssertNotNil(token);
  _cache = cache;
  _token = token;
  _fake->holdCompletions();
}

- (void)tearDown {
  // The device's record of a failure refers to the device.
  while (_fake->finishNext({})) continue;
  _token = nil;
  _cache = nil;
  _device = nil;
  _fake.reset();
  [super tearDown];
}

- (Error)fault {
  return {.code = ErrorCode::deviceFault,
          .op = "Device",
          .what = "it stopped",
          .got = "a fault",
          .expected = "none",
          .fix = "Try another.",
          .retryable = true};
}

- (MNKCommandEncoder *)stepAppendingTo:(NSUInteger)sequence {
  MNKCommandEncoder *step = [_device commandEncoder];
  XCTAssertTrue([step
       append:cacheStep({ .keys = viewOf(_token), .values = viewOf(_token), .sequences = @[ @(sequence) ] })
      toCache:_cache
        error:nil]);
  return step;
}

- (void)testAFaultMakesSequencesSuspect {
  MNKCompletion *done = [[self stepAppendingTo:1] commitWithError:nil];
  XCTAssertFalse(done.isDone);
  XCTAssertFalse([_cache isSequenceSuspect:1]);
  XCTAssertTrue(_fake->finishNext(self.fault));
  XCTAssertTrue(done.isDone);
  for (int i = 0; i < 3; ++i) {
    NSError *error = nil;
    XCTAssertFalse([done waitWithError:&error]);
    XCTAssertNil(wrongIn(error, self.fault));
    XCTAssertFalse([done waitWithError:nil]);
  }
  XCTAssertTrue([_cache isSequenceSuspect:1]);
  XCTAssertFalse([_cache isSequenceSuspect:0]);
  XCTAssertTrue(_cache.isSuspect);
  XCTAssertEqual([_cache nextPositionOfSequence:1], 1u);

  NSError *error = nil;
  MNKCommandEncoder *next = [_device commandEncoder];
  XCTAssertFalse([next append:cacheStep({ .keys = viewOf(_token), .values = viewOf(_token), .sequences = @[ @1 ] })
                      toCache:_cache
                        error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"suspect"));
  XCTAssertFalse([_cache truncateToPosition:1 sequence:1 error:&error]);
  XCTAssertTrue([_cache truncateToPosition:0 sequence:1 error:&error]);
  XCTAssertFalse([_cache isSequenceSuspect:1]);
  XCTAssertNotNil([[self stepAppendingTo:1] commitWithError:nil]);
}

- (void)testResetClearsSuspectSequences {
  for (const bool all : {true, false}) {
    XCTAssertNotNil([[self stepAppendingTo:0] commitWithError:nil]);
    XCTAssertTrue(_fake->finishNext(self.fault));
    XCTAssertTrue(_cache.isSuspect);
    if (all)
      [_cache reset];
    else
      XCTAssertTrue([_cache resetSequence:0 error:nil]);
    XCTAssertFalse(_cache.isSuspect);
    XCTAssertEqual([_cache nextPositionOfSequence:0], 0u);
  }
}

- (void)testHandlersAreCalledOnceInTheOrderOfSubmissions {
  NSMutableArray<NSString *> *calls = [NSMutableArray array];
  [[self stepAppendingTo:0] commitWithCompletionHandler:^(MNKSummary *, NSError *failure) {
    [calls addObject:[NSString stringWithFormat:@"first %@", failure.userInfo[MNKErrorWhatKey]]];
  }];
  [[self stepAppendingTo:1] commitWithCompletionHandler:^(MNKSummary *, NSError *failure) {
    [calls addObject:failure ? @"second failed" : @"second"];
  }];
  XCTAssertEqual(calls.count, 0u);
  XCTAssertTrue(_fake->finishNext(self.fault));
  XCTAssertEqualObjects(calls, @[ @"first it stopped" ]);
  XCTAssertTrue(_fake->finishNext({}));
  XCTAssertFalse(_fake->finishNext({}));
  XCTAssertEqualObjects(calls, (@[ @"first it stopped", @"second" ]));
}

- (void)testAHandlerIsCalledOnceIfNothingIsSubmitted {
  __block int calls = 0;
  __block NSError *reason = nil;
  void (^handler)(MNKSummary *, NSError *) = ^(MNKSummary *, NSError *failure) {
    ++calls;
    reason = failure;
  };
  MNKCommandEncoder *conflicting = [self stepAppendingTo:0];
  XCTAssertNotNil([[self stepAppendingTo:0] commitWithError:nil]);
  [conflicting commitWithCompletionHandler:handler];
  XCTAssertEqual(calls, 1);
  XCTAssertNil(wrongIn(reason, MNKErrorInvalidArgument, @"AttentionCache", @"changed while this encoder recorded"));
  // A second commit of a submitted encoder.
  MNKCommandEncoder *step = [_device commandEncoder];
  XCTAssertNotNil([step commitWithError:nil]);
  [step commitWithCompletionHandler:handler];
  XCTAssertEqual(calls, 2);
  XCTAssertNil(wrongIn(reason, MNKErrorInvalidArgument, @"CommandEncoder", @"committed"), @"%@", reason);
  [step commitWithCompletionHandler:absentObject()];
  [[self stepAppendingTo:1] commitWithCompletionHandler:absentObject()];
  while (_fake->finishNext({})) continue;
  XCTAssertEqual(calls, 2);
}

- (void)testAHandlerLivesUntilItIsCalled {
  __weak NSObject *watched = nil;
  @autoreleasepool {
    NSObject *held = [[NSObject alloc] init];
    watched = held;
    [[self stepAppendingTo:0] commitWithCompletionHandler:^(MNKSummary *, NSError *failure) {
      XCTAssertNotNil(held);
      XCTAssertNil(failure);
    }];
  }
  @autoreleasepool {
    XCTAssertNotNil(watched);
    XCTAssertTrue(_fake->finishNext({}));
  }
  XCTAssertNil(watched);
}

- (void)testDeviceFailuresBecomeErrors {
  NSError *error = nil;
  _fake->failAt(FakeDevice::Call::makeBuffer);
  XCTAssertNil([MNKTensor zerosWithShape:@[ @4 ] elementType:MNKElementTypeFloat32 device:_device error:&error]);
  XCTAssertNil(wrongIn(error, test::fakeFailure()));
  _fake->failAt(FakeDevice::Call::makeBuffer, 1);
  MNKAttentionCacheDescriptor *descriptor = _cache.descriptor;
  XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:_device descriptor:descriptor error:&error]);
  XCTAssertNil(wrongIn(error, test::fakeFailure()));
  _fake->failAt(FakeDevice::Call::makeLibrary);
  XCTAssertNil([MNKKernelLibrary libraryWithText:@"text" label:@"label" device:_device error:&error]);
  XCTAssertNil(wrongIn(error, test::fakeFailure()));
  [_device clearKernels];
  _fake->failAt(FakeDevice::Call::makeShippedLibrary);
  XCTAssertNil([MNKKernelLibrary shippedLibraryForDevice:_device error:&error]);
  XCTAssertNil(wrongIn(error, test::fakeFailure()));
  MNKCommandEncoder *step = [_device commandEncoder];
  _fake->failAt(FakeDevice::Call::makePipeline);
  XCTAssertFalse([step append:cacheStep({ .keys = viewOf(_token), .values = viewOf(_token), .sequences = @[ @0 ] })
                      toCache:_cache
                        error:&error]);
  Error failure = test::fakeFailure();
  failure.op = "AttentionCache.append";
  XCTAssertNil(wrongIn(error, failure));
  _fake->failAt(FakeDevice::Call::dispatch);
  XCTAssertFalse([step append:cacheStep({ .keys = viewOf(_token), .values = viewOf(_token), .sequences = @[ @0 ] })
                      toCache:_cache
                        error:nil]);
  XCTAssertTrue([step append:cacheStep({ .keys = viewOf(_token), .values = viewOf(_token), .sequences = @[ @0 ] })
                     toCache:_cache
                       error:&error]);
}

- (void)testTheSummaryHasTheTimeOfFinishedWork {
  MNKCompletion *done = [[self stepAppendingTo:0] commitWithError:nil];
  XCTAssertEqual(done.summary.deviceSeconds, 0);
  XCTAssertEqual(done.summary.total.dispatches, 1u);
  XCTAssertTrue(_fake->finishNext({}, 0.25));
  XCTAssertEqual(done.summary.deviceSeconds, 0.25);
  XCTAssertTrue([done.summary.description rangeOfString:@"1 dispatch"].length > 0, @"%@", done.summary);
}

@end
