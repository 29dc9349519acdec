#include <chrono>
#include <future>

#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Steps that are recorded once and run again.
@interface ObjCRecordedStepTests : DeviceTestCase
@end

@implementation ObjCRecordedStepTests

- (MNKAttentionCache *)cache {
  return [self cacheWith:[MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4]];
}

- (void)testStepsAndPlansRunAloneAndJoinAnEncoder {
  MNKAttentionCache *cache = self.cache;
  MNKTensor *keys = [self floats:std::vector<float>(32, 1) shape:@[ @1, @32 ]];
  NSError *error = nil;
  MNKRecordedStep *step = [self.device recordStepWithLabel:@"token"
                                                     error:&error
                                                     block:^BOOL(MNKCommandEncoder *encoder, NSError **failure) {
                                                       return [encoder appendKeys:keys
                                                                           values:keys
                                                                          toCache:cache
                                                                            error:failure];
                                                     }];
  XCTAssertEqualObjects(step.device, self.device, @"%@", error);
  XCTAssertEqual(step.summary.total.dispatches, 1u);
  XCTAssertEqual(cache.nextPosition, 0u);
  XCTAssertTrue([[step runWithError:&error] waitWithError:&error], @"%@", error);
  XCTAssertEqual(cache.nextPosition, 1u);
  MNKPlan *plan = [[[MNKHadamard alloc] initWithSource:keys destination:nil] planForDevice:nil error:&error];
  MNKCommandEncoder *encoder = [self.device commandEncoder];
  XCTAssertTrue([encoder encodeStep:step error:&error], @"%@", error);
  XCTAssertTrue([encoder encodePlan:plan error:&error], @"%@", error);
  XCTAssertTrue([encoder encodeStep:step error:&error], @"%@", error);
  MNKCompletion *done = [encoder commitWithError:&error];
  XCTAssertTrue([done waitWithError:&error], @"%@", error);
  XCTAssertEqual([done.summary countsOfKind:@"Hadamard"].dispatches, 1u);
  XCTAssertEqual(cache.nextPosition, 3u);
  const auto finished = std::make_shared<std::promise<void>>();
  [step runWithCompletionHandler:^(MNKSummary *summary, NSError *failure) {
    XCTAssertEqual(summary.total.dispatches, 1u);
    XCTAssertNil(failure);
    finished->set_value();
  }];
  XCTAssertTrue(finished->get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
  // The cache is full.
  __block NSError *refused = nil;
  [step runWithCompletionHandler:^(MNKSummary *, NSError *failure) {
    refused = failure;
  }];
  [step runWithCompletionHandler:absentObject()];
  XCTAssertNil([step runWithError:&error]);
  NSString *what = @"the write runs past the end of a linear cache";
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", what));
  XCTAssertNil(wrongIn(refused, MNKErrorInvalidArgument, @"AttentionCache.append", what));
  XCTAssertEqual(cache.nextPosition, 4u);
}

- (void)testAFailingBlockRecordsNothing {
  MNKDevice *device = self.device;
  NSError *own = [NSError errorWithDomain:@"own" code:7 userInfo:nil], *error = nil;
  XCTAssertNil([device recordStepWithLabel:@""
                                     error:&error
                                     block:^BOOL(MNKCommandEncoder *, NSError **failure) {
                                       *failure = own;
                                       return NO;
                                     }]);
  XCTAssertIdentical(error, own);
  const auto record = [=](BOOL (^block)(MNKCommandEncoder *, NSError **)) {
    return [=](NSError **e) { return [device recordStepWithLabel:@"" error:e block:block] != nil; };
  };
  XCTAssertNil(wrongIn({
      {@"MNKDevice", @"the block failed without an error", record(^BOOL(MNKCommandEncoder *, NSError **) {
         return NO;
       })},
      {@"MNKDevice", @"nil was passed for the block", record(absentObject())},
  }));
  // This mistake is found only when the recording ends.
  MNKAttentionCache *cache = self.cache;
  MNKTensor *keys = [self zeros:@[ @1, @32 ]];
  XCTAssertNil(wrongIn({{@"RecordedStep", @"rotary positions stay as recorded",
                         record(^BOOL(MNKCommandEncoder *encoder, NSError **failure) {
                           return [encoder rotateQueries:keys
                                                    keys:nil
                                               positions:[MNKRotaryPositions positionsStartingAt:5]
                                                  rotary:[[MNKRotaryEmbedding alloc] init]
                                                   error:failure] &&
                                  [encoder appendKeys:keys values:keys toCache:cache error:failure];
                         })}}));
}

@end
