#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Steps that are recorded once and run again.
@interface ObjCRecordedStepTests : DeviceTestCase
@end

@implementation ObjCRecordedStepTests

- (MNKAttentionCache *)cacheOf:(NSUInteger)capacity {
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1
                                                                                       headDim:32
                                                                                      capacity:capacity];
  descriptor.elementType = MNKElementTypeFloat32;
  return [self cacheWith:descriptor];
}

- (void)testRunsEqualFreshSteps {
  NSArray<MNKAttentionCache *> *caches = @[ [self cacheOf:16], [self cacheOf:16] ];
  MNKTensor *keys = [self zeros:@[ @1, @32 ]], *rotated = [self zeros:@[ @1, @32 ]];
  NSArray<MNKTensor *> *results = @[ [self zeros:@[ @1, @32 ]], [self zeros:@[ @1, @32 ]] ];
  std::vector<float> numbers(32);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) / 8;
  XCTAssertTrue([keys writeFloats:numbers.data() count:32 error:nil]);
  BOOL (^encode)(MNKCommandEncoder *, NSUInteger, MNKRotaryPositions *, NSError **) = ^BOOL(
      MNKCommandEncoder *encoder, NSUInteger layer, MNKRotaryPositions *positions, NSError **failure) {
    MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:[[MNKHeadsView alloc] initWithTensor:keys]
                                                          keys:nil
                                                     positions:positions
                                                        rotary:[[MNKRotaryEmbedding alloc] init]];
    rope.rotatedQueries = [[MNKHeadsView alloc] initWithTensor:rotated];
    return [encoder encodeOperation:rope error:failure] &&
           [encoder appendKeys:rotated values:rotated toCache:caches[layer] error:failure] &&
           [encoder attendQueries:rotated overCache:caches[layer] intoTensor:results[layer] options:nil error:failure];
  };
  NSError *error = nil;
  MNKRotaryPositions *next = [MNKRotaryPositions nextPositionsOfCache:caches[0]];
  MNKRecordedStep *step = [self.device recordStepWithLabel:@"token"
                                                     error:&error
                                                     block:^BOOL(MNKCommandEncoder *encoder, NSError **failure) {
                                                       return encode(encoder, 0, next, failure);
                                                     }];
  XCTAssertNotNil(step, @"%@", error);
  XCTAssertEqualObjects(step.device, self.device);
  XCTAssertEqual(caches[0].nextPosition, 0u);
  XCTAssertEqual([step.summary countsOfKind:@"MultiRoPE"].dispatches, 1u);
  for (NSInteger run = 0; run < 10; ++run) {
    if (run == 6) {  // positions follow the cache back
      for (MNKAttentionCache *cache in caches) XCTAssertTrue([cache truncateToPosition:2 error:nil]);
    }
    MNKRotaryPositions *numbered = [MNKRotaryPositions positionsStartingAt:run < 6 ? run : run - 4];
    XCTAssertTrue([[step runWithError:&error] waitWithError:&error], @"%@", error);
    MNKCommandEncoder *fresh = [self.device commandEncoder];
    XCTAssertTrue(encode(fresh, 1, numbered, &error), @"%@", error);
    XCTAssertTrue([[fresh commitWithError:&error] waitWithError:&error], @"%@", error);
    for (NSUInteger i = 0; i < 32; ++i) {
      XCTAssertEqual([self floatOf:results[0] at:i], [self floatOf:results[1] at:i]);
    }
  }
  XCTAssertNil([self.device recordStepWithLabel:@""
                                          error:&error
                                          block:^BOOL(MNKCommandEncoder *encoder, NSError **failure) {
                                            return encode(encoder, 0, [MNKRotaryPositions positionsStartingAt:5],
                                                          failure);
                                          }]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"RecordedStep", @"rotary positions stay as recorded"));
}

// Rows of listed sequences, whose positions are those that numbers name.
- (void)testNextPositionsOfListedSequences {
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:8];
  descriptor.sequences = 2;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  MNKTensor *rows = [self numbers:@[ @3, @1, @32 ] seed:2];
  MNKHeadsView *view = [[MNKHeadsView alloc] initWithTensor:rows];
  NSArray<NSNumber *> *sequences = @[ @1, @0 ], *counts = @[ @2, @1 ];
  MNKTensor * (^rotated)(MNKCommandEncoder *, MNKRotaryPositions *) =
      ^MNKTensor *(MNKCommandEncoder *step, MNKRotaryPositions *positions) {
    MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:view
                                                          keys:nil
                                                     positions:positions
                                                        rotary:[[MNKRotaryEmbedding alloc] init]];
    MNKTensor *into = [self zeros:@[ @3, @1, @32 ]];
    rope.rotatedQueries = [[MNKHeadsView alloc] initWithTensor:into];
    NSError *error = nil;
    XCTAssertTrue([step encodeOperation:rope error:&error], @"%@", error);
    return into;
  };
  MNKRotaryPositions *next = [MNKRotaryPositions nextPositionsOfCache:cache sequences:sequences rowCounts:counts];
  NSError *refusal = nil;
  for (const NSInteger runs : {0, 1}) {
    MNKCommandEncoder *step = [self.device commandEncoder];
    NSArray<NSNumber *> *numbers = runs == 0 ? @[ @0, @1, @0 ] : @[ @2, @3, @1 ];
    MNKTensor *followed = rotated(step, next),
              *numbered = rotated(step, [MNKRotaryPositions positionsPerAxis:@[ numbers ]]);
    MNKHeadsView *keys = [[MNKHeadsView alloc] initWithTensor:followed];
    XCTAssertFalse([step append:cacheStep({.keys = view, .values = view, .sequences = sequences, .rowCounts = counts})
                        toCache:cache
                          error:&refusal]);
    XCTAssertNil(wrongIn(refusal, MNKErrorInvalidArgument, @"AttentionCache.append", @"and uses other keys"));
    XCTAssertTrue([step append:cacheStep({.keys = keys, .values = keys, .sequences = sequences, .rowCounts = counts})
                       toCache:cache
                         error:nil]);
    XCTAssertTrue([[step commitWithError:nil] waitWithError:nil]);
    XCTAssertEqualObjects([followed dataWithError:nil], [numbered dataWithError:nil]);
    XCTAssertNotEqualObjects([followed dataWithError:nil], [rows dataWithError:nil]);
  }
  MNKCommandEncoder *step = [self.device commandEncoder];
  XCTAssertNotNil(rotated(step, next));
  NSError *error = nil;
  XCTAssertNil([step commitWithError:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @"does not append them"));
}

- (void)testStepsAndPlansJoinAnEncoder {
  MNKAttentionCache *cache = [self cacheOf:3];
  MNKTensor *keys = [self zeros:@[ @1, @32 ]];
  NSError *error = nil;
  MNKRecordedStep *step = [self.device recordStepWithLabel:@""
                                                     error:&error
                                                     block:^BOOL(MNKCommandEncoder *encoder, NSError **failure) {
                                                       return [encoder appendKeys:keys
                                                                           values:keys
                                                                          toCache:cache
                                                                            error:failure];
                                                     }];
  MNKHadamard *hadamard = [[MNKHadamard alloc] initWithSource:keys destination:nil];
  MNKPlan *plan = [hadamard planForDevice:nil error:&error];
  MNKCommandEncoder *encoder = [self.device commandEncoder];
  XCTAssertTrue([encoder encodeStep:step error:&error], @"%@", error);
  XCTAssertTrue([encoder encodePlan:plan error:&error], @"%@", error);
  XCTAssertTrue([encoder encodeStep:step error:&error], @"%@", error);
  MNKCompletion *done = [encoder commitWithError:&error];
  XCTAssertTrue([done waitWithError:&error], @"%@", error);
  XCTAssertEqual([done.summary countsOfKind:@"Hadamard"].dispatches, 1u);
  XCTAssertEqual(cache.nextPosition, 2u);
  XCTestExpectation *finished = [self expectationWithDescription:@"the handler"];
  [step runWithCompletionHandler:^(MNKSummary *summary, NSError *failure) {
    XCTAssertEqual(summary.total.dispatches, 1u);
    XCTAssertNil(failure);
    [finished fulfill];
  }];
  [self waitForExpectationsWithTimeout:10 handler:nil];
  // The cache is full.
  XCTAssertNil([step runWithError:&error]);
  __block BOOL isRefused = NO;
  [step runWithCompletionHandler:^(MNKSummary *, NSError *failure) {
    isRefused = failure != nil;
  }];
  XCTAssertTrue(isRefused);
  XCTAssertEqual(cache.nextPosition, 3u);
  XCTAssertFalse([encoder encodeStep:absentObject() error:&error]);
  XCTAssertFalse([encoder encodePlan:absentObject() error:&error]);
}

- (void)testAFailingBlockRecordsNothing {
  NSError *error = nil;
  XCTAssertNil([self.device recordStepWithLabel:@""
                                          error:&error
                                          block:^BOOL(MNKCommandEncoder *, NSError **) {
                                            return NO;
                                          }]);
  XCTAssertNotNil(error);
  error = nil;
  MNKTensor *keys = [self zeros:@[ @1, @31 ]];
  XCTAssertNil([self.device recordStepWithLabel:@""
                                          error:&error
                                          block:^BOOL(MNKCommandEncoder *encoder, NSError **failure) {
                                            return [encoder encodeOperation:[[MNKHadamard alloc] initWithSource:keys
                                                                                                    destination:nil]
                                                                      error:failure];
                                          }]);
  XCTAssertNotNil(error);
  XCTAssertNil([self.device recordStepWithLabel:@"" error:&error block:absentObject()]);
}

@end
