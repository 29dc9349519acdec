#import <XCTest/XCTest.h>

#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"

using namespace mnk;
using namespace mnk::objc_test;
using test::FakeDevice;

// How completions, handlers and blocks report work that finishes, fails or is refused.
@interface OutcomeTests : XCTestCase
@end

@implementation OutcomeTests {
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
  _cache = [[MNKAttentionCache alloc] initWithDevice:_device descriptor:descriptor error:nil];
  _token = [MNKTensor zerosWithShape:@[ @1, @32 ] elementType:MNKElementTypeFloat32 device:_device error:nil];
  XCTAssertTrue(_cache && _token);
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

- (BOOL)appendTo:(NSUInteger)sequence in:(MNKCommandEncoder *)encoder error:(NSError **)error {
  MNKCacheStep *step = [MNKCacheStep stepWithKeys:_token values:_token];
  step.sequences = @[ @(sequence) ];
  return [encoder append:step toCache:_cache error:error];
}

- (MNKCommandEncoder *)stepAppendingTo:(NSUInteger)sequence {
  MNKCommandEncoder *step = [_device commandEncoder];
  XCTAssertTrue([self appendTo:sequence in:step error:nil]);
  return step;
}

- (void)testAFaultIsReported {
  MNKCompletion *done = [[self stepAppendingTo:1] commitWithError:nil];
  XCTAssertFalse(done.isDone);
  XCTAssertFalse(_cache.isSuspect);
  XCTAssertNil(_device.lastFailure);
  XCTAssertTrue(_fake->finishNext(self.fault));
  XCTAssertTrue(done.isDone);
  for (int i = 0; i < 2; ++i) {
    NSError *error = nil;
    XCTAssertFalse([done waitWithError:&error]);
    XCTAssertNil(wrongIn(error, self.fault));
    XCTAssertFalse([done waitWithError:nil]);
  }
  XCTAssertNil(wrongIn(_device.lastFailure, self.fault));
  XCTAssertTrue([_cache isSequenceSuspect:1]);
  XCTAssertFalse([_cache isSequenceSuspect:0]);
  XCTAssertTrue(_cache.isSuspect);
  XCTAssertTrue([_cache resetSequence:1 error:nil]);
  XCTAssertFalse(_cache.isSuspect);
  XCTAssertNotNil([[self stepAppendingTo:1] commitWithError:nil]);
  XCTAssertTrue(_fake->finishNext(self.fault));
  [_cache reset];
  XCTAssertFalse(_cache.isSuspect);
}

// With a failure or a summary, after which nothing keeps it.
- (void)testAHandlerIsCalledOnceAndReleased {
  for (const bool fails : {true, false}) {
    const auto calls = std::make_shared<std::vector<std::string>>();
    @autoreleasepool {
      [[self stepAppendingTo:0] commitWithCompletionHandler:^(MNKSummary *summary, NSError *failure) {
        calls->push_back(summary ? summary.description.UTF8String ?: "" : partsOf(failure).what);
      }];
    }
    XCTAssertEqual(calls->size(), 0u);
    XCTAssertEqual(calls.use_count(), 2);
    XCTAssertTrue(_fake->finishNext(fails ? Result<void>(self.fault) : Result<void>()));
    XCTAssertEqual(calls->size(), 1u);
    XCTAssertTrue(calls->at(0).starts_with(fails ? "it stopped" : "1 dispatch"), @"%s", calls->at(0).c_str());
    XCTAssertEqual(calls.use_count(), 1);
    [_cache reset];
  }
}

- (void)testAHandlerIsCalledOnceIfNothingIsSubmitted {
  __block int calls = 0;
  __block NSError *reason = nil;
  void (^handler)(MNKSummary *, NSError *) = ^(MNKSummary *, NSError *failure) {
    ++calls;
    reason = failure;
  };
  MNKCommandEncoder *conflicting = [self stepAppendingTo:0];
  MNKCommandEncoder *step = [self stepAppendingTo:0];
  XCTAssertNotNil([step commitWithError:nil]);
  [conflicting commitWithCompletionHandler:handler];
  XCTAssertEqual(calls, 1);
  XCTAssertNil(wrongIn(reason, MNKErrorInvalidArgument, @"AttentionCache", @"changed while this encoder recorded"));
  [step commitWithCompletionHandler:handler];
  XCTAssertEqual(calls, 2);
  XCTAssertNil(wrongIn(reason, MNKErrorInvalidArgument, @"CommandEncoder", @"committed"));
  [step commitWithCompletionHandler:absentObject()];
  [[self stepAppendingTo:1] commitWithCompletionHandler:absentObject()];
  while (_fake->finishNext({})) continue;
  XCTAssertEqual(calls, 2);
}

- (void)testAHandlerCannotWaitForOtherWork {
  MNKCommandEncoder *first = [self stepAppendingTo:0], *second = [self stepAppendingTo:1];
  MNKDevice *device = _device;
  __block MNKCompletion *later = nil;
  __block int calls = 0;
  NSString *what = @"a handler of finished work cannot wait for other work";
  [first commitWithCompletionHandler:^(MNKSummary *, NSError *failure) {
    XCTAssertNil(failure);
    NSError *error = nil;
    XCTAssertFalse([later waitWithError:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorWouldDeadlock, @"Completion", what));
    XCTAssertNil([device runWithError:&error
                                block:^BOOL(MNKCommandEncoder *, NSError **) {
                                  XCTFail(@"nothing may be encoded here");
                                  return YES;
                                }]);
    XCTAssertNil(wrongIn(error, MNKErrorWouldDeadlock, @"MNKDevice", what));
    ++calls;
  }];
  later = [second commitWithError:nil];
  XCTAssertTrue(_fake->finishNext({}));
  XCTAssertEqual(calls, 1);
  XCTAssertTrue(_fake->finishNext({}));
  XCTAssertTrue([later waitWithError:nil]);
}

- (void)testRunEncodesCommitsAndWaits {
  const auto fake = FakeDevice::make();
  fake->onRun = [](const FakeDevice::Recorded &) { return 0.25; };
  MNKDevice *device = objectOver(std::shared_ptr<Device>(fake));
  MNKHadamard *transform = [[MNKHadamard alloc] initWithSource:objectOver(test::floats(fake, 4)) destination:nil];
  __block MNKCommandEncoder *used = nil;
  NSError *error = nil;
  MNKSummary *summary = [device runWithError:&error
                                       block:^BOOL(MNKCommandEncoder *step, NSError **failure) {
                                         used = step;
                                         return [step encodeOperation:transform error:failure];
                                       }];
  XCTAssertEqual(summary.total.dispatches, 1u, @"%@", error);
  XCTAssertEqual(summary.deviceSeconds, 0.25);
  XCTAssertEqualObjects(used.device, device);
  XCTAssertFalse([used insertBarrierWithError:nil]);
}

- (void)testRunRunsNothingIfTheBlockFails {
  NSError *own = [NSError errorWithDomain:@"own" code:7 userInfo:nil], *error = nil;
  XCTAssertNil([_device runWithError:&error
                               block:^BOOL(MNKCommandEncoder *step, NSError **failure) {
                                 XCTAssertTrue([self appendTo:0 in:step error:failure]);
                                 *failure = own;
                                 return NO;
                               }]);
  XCTAssertIdentical(error, own);
  MNKDevice *device = _device;
  const auto run = [=](BOOL (^block)(MNKCommandEncoder *, NSError **)) {
    return [=](NSError **e) { return [device runWithError:e block:block] != nil; };
  };
  XCTAssertNil(wrongIn({
      {@"MNKCommandEncoder", @"nil was passed for the operation",
       run(^BOOL(MNKCommandEncoder *step, NSError **failure) {
         return [step encodeOperation:absentObject() error:failure];
       })},
      {@"MNKDevice", @"the block failed without an error", run(^BOOL(MNKCommandEncoder *, NSError **) {
         return NO;
       })},
      {@"MNKDevice", @"nil was passed for the block", run(absentObject())},
  }));
  XCTAssertEqual(_fake->committed().size(), 0u);
}

@end
