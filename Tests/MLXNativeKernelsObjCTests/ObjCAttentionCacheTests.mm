#include <cmath>

#import "Ops/FlashDecode/AttentionHistory.hpp"
#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface ObjCAttentionCacheTests : DeviceTestCase
@end

@implementation ObjCAttentionCacheTests

- (MNKAttentionCacheDescriptor *)descriptor {
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4];
  descriptor.sequences = 3;
  descriptor.elementType = MNKElementTypeFloat32;
  return descriptor;
}

- (float)attended:(MNKAttentionCache *)cache sequence:(NSUInteger)sequence options:(MNKAttentionOptions *)options {
  MNKTensor *queries = [self numbers:@[ @1, @32 ] seed:1], *out = [self zeros:@[ @1, @32 ]];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:out];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step attend:cacheStep({
                   .queries = viewOf(queries), .results = results, .options = options, .sequences = @[ @(sequence) ]
                 })
              overCache:cache
                  error:error];
  }];
  return [self floatOf:out at:31];
}

- (void)testANewCacheIsEmptyAndReportsItsBytes {
  MNKAttentionCache *cache = [self cacheWith:self.descriptor];
  for (NSUInteger sequence = 0; sequence < 3; ++sequence) {
    XCTAssertEqual([cache nextPositionOfSequence:sequence], 0u);
    XCTAssertEqual([cache countOfSequence:sequence], 0u);
    XCTAssertFalse([cache isSequenceSuspect:sequence]);
  }
  XCTAssertFalse(cache.isSuspect);
  XCTAssertEqual(cache.byteCount, 3u * 4 * 32 * 2 * 4);
  XCTAssertEqual(cache.bytesPerToken, 32u * 2 * 4);
  XCTAssertEqual(cache.bytesSaved, -3 * 4 * 32 * 2 * 2);
  XCTAssertNil(cache.quantizedView);
  XCTAssertEqualObjects(cache.view.keys.shape, (@[ @3, @1, @4, @32 ]));
  XCTAssertEqual(cache.view.wrap, MNKKVWrapLinear);
  MNKAttentionCacheDescriptor *expected = self.descriptor;
  expected.valueHeadDim = 32;
  XCTAssertEqualObjects(cache.descriptor, expected);
  // No sequence is the only one.
  const auto notFound = static_cast<NSUInteger>(NSNotFound);
  for (const NSUInteger sequence : {NSUInteger{3}, NSUInteger{UINT32_MAX}, MNKOnlySequence, NSUInteger{1} << 32}) {
    XCTAssertEqual([cache nextPositionOfSequence:sequence], notFound);
    XCTAssertEqual([cache countOfSequence:sequence], notFound);
    XCTAssertTrue([cache isSequenceSuspect:sequence]);
  }
  XCTAssertEqual(cache.nextPosition, notFound);
  XCTAssertEqual(cache.count, notFound);
}

- (void)testTheOnlySequenceNeedNotBeNamed {
  MNKAttentionCacheDescriptor *descriptor = self.descriptor;
  descriptor.sequences = 1;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  [self append:{1, 2} to:cache sequence:MNKOnlySequence];
  [self append:{6} to:cache sequence:0];
  XCTAssertEqualWithAccuracy([self attended:cache sequence:MNKOnlySequence options:nil], 3, 1e-5);
  XCTAssertEqual(cache.nextPosition, 3u);
  XCTAssertEqual(cache.count, 3u);
  XCTAssertEqual([cache nextPositionOfSequence:MNKOnlySequence], 3u);
  XCTAssertFalse([cache isSequenceSuspect:MNKOnlySequence]);
  XCTAssertTrue([cache truncateToPosition:2 error:nil]);
  XCTAssertTrue([cache truncateToPosition:1 sequence:MNKOnlySequence error:nil]);
  MNKTensor *token = [self zeros:@[ @1, @32 ]];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return
        [step append:cacheStep({ .keys = viewOf(token), .values = viewOf(token), .sequences = @[ @(MNKOnlySequence) ] })
             toCache:cache
               error:error];
  }];
  XCTAssertEqual(cache.nextPosition, 2u);
  // The number that the core uses for it is that of no sequence.
  MNKCommandEncoder *step = [self.device commandEncoder];
  XCTAssertFalse(
      ([step append:cacheStep({ .keys = viewOf(token), .values = viewOf(token), .sequences = @[ @(UINT32_MAX) ] })
            toCache:cache
              error:nil]));
  XCTAssertFalse([step
       append:cacheStep({ .keys = viewOf(token), .values = viewOf(token), .sequences = @[ @(UINT32_MAX) ] })
      toCache:cache
        error:nil]);
}

- (void)testAppendAttendTruncateAndReset {
  MNKAttentionCache *cache = [self cacheWith:self.descriptor];
  [self append:{1, 2, 6} to:cache sequence:0];
  [self append:{10} to:cache sequence:2];
  XCTAssertEqual([cache nextPositionOfSequence:0], 3u);
  XCTAssertEqual([cache nextPositionOfSequence:2], 1u);
  XCTAssertEqual([cache nextPositionOfSequence:1], 0u);
  XCTAssertEqualWithAccuracy([self attended:cache sequence:0 options:nil], 3, 1e-5);
  XCTAssertEqualWithAccuracy([self attended:cache sequence:2 options:nil], 10, 1e-5);
  MNKAttentionOptions *options = [[MNKAttentionOptions alloc] init];
  options.window = 2;
  XCTAssertEqualWithAccuracy([self attended:cache sequence:0 options:options], 4, 1e-5);

  XCTAssertTrue([cache truncateToPosition:2 sequence:0 error:nil]);
  XCTAssertEqual([cache countOfSequence:0], 2u);
  XCTAssertEqualWithAccuracy([self attended:cache sequence:0 options:nil], 1.5, 1e-5);
  NSError *error = nil;
  XCTAssertFalse([cache truncateToPosition:3 sequence:0 error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @""));
  XCTAssertFalse([cache truncateToPosition:0 sequence:3 error:&error]);
  XCTAssertFalse([cache resetSequence:3 error:&error]);
  XCTAssertFalse([cache resetSequence:NSUInteger{1} << 32 error:&error]);
  XCTAssertTrue([cache resetSequence:2 error:&error]);
  XCTAssertEqual([cache nextPositionOfSequence:2], 0u);
  XCTAssertEqual([cache nextPositionOfSequence:0], 2u);
  [cache reset];
  XCTAssertEqual([cache nextPositionOfSequence:0], 0u);
}

- (void)testARingKeepsPinnedAndNewestTokens {
  MNKAttentionCacheDescriptor *descriptor = self.descriptor;
  descriptor.whenFull = MNKKVWrapRing;
  descriptor.pinned = 1;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  for (const float number : {100, 1, 2, 3, 4, 5, 6}) [self append:{number} to:cache sequence:1];
  XCTAssertEqual([cache nextPositionOfSequence:1], 7u);
  XCTAssertEqual([cache countOfSequence:1], 4u);
  XCTAssertEqualWithAccuracy([self attended:cache sequence:1 options:nil], (100 + 4 + 5 + 6) / 4.0, 1e-4);
  NSError *error = nil;
  XCTAssertFalse([cache truncateToPosition:3 sequence:1 error:&error]);
}

- (void)testAFullCacheRefusesAppendsByDefault {
  NSError *error = nil;
  MNKAttentionCache *cache = [self cacheWith:self.descriptor];
  [self append:{1, 2, 3, 4} to:cache sequence:0];
  MNKTensor *token = [self zeros:@[ @1, @32 ]];
  XCTAssertFalse([[self.device commandEncoder]
       append:cacheStep({ .keys = viewOf(token), .values = viewOf(token), .sequences = @[ @0 ] })
      toCache:cache
        error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"past the end"), @"%@", error);
  XCTAssertEqual([cache nextPositionOfSequence:0], 4u);
}

- (void)testBatchesOfSequences {
  MNKAttentionCache *cache = [self cacheWith:self.descriptor];
  [self append:{4} to:cache sequence:2];
  MNKTensor *keys = [self zeros:@[ @2, @1, @32 ]];
  std::vector<float> numbers(32, 8);
  numbers.insert(numbers.end(), 32, 2);
  MNKTensor *values = [self floats:numbers shape:@[ @2, @1, @32 ]];
  MNKTensor *queries = [self numbers:@[ @2, @1, @32 ] seed:3], *out = [self zeros:@[ @2, @1, @32 ]],
            *logs = [self zeros:@[ @2, @1 ]];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:out];
  results.logSumExp = logs;
  NSArray *sequences = @[ @2, @0 ];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step append:cacheStep({.keys = viewOf(keys), .values = viewOf(values), .sequences = sequences})
                toCache:cache
                  error:error] &&
           [step attend:cacheStep({.queries = viewOf(queries), .results = results, .sequences = sequences})
               overCache:cache
                   error:error];
  }];
  XCTAssertEqual([cache nextPositionOfSequence:2], 2u);
  XCTAssertEqual([cache nextPositionOfSequence:0], 1u);
  XCTAssertEqualWithAccuracy([self floatOf:out at:0], 6, 1e-5);
  XCTAssertEqualWithAccuracy([self floatOf:out at:63], 2, 1e-5);
  XCTAssertEqualWithAccuracy([self floatOf:logs at:0], log(2), 1e-5);
}

- (void)testConvertsADenseCacheToQuantizedValues {
  MNKAttentionCache *cache = [self cacheWith:self.descriptor];
  MNKTensor *keys = [self numbers:@[ @2, @1, @32 ] seed:6], *values = [self numbers:@[ @2, @1, @32 ] seed:7];
  MNKKVQuantizedStorage *storage = [[MNKKVQuantizedStorage alloc] initWithCodec:MNKKVCodecNameTurbo
                                                                        keyBits:0
                                                                      valueBits:6];
  storage.planes = MNKKVQuantizedPlanesValues;
  __block MNKAttentionCache *converted = nil;
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    if (![step append:cacheStep({ .keys = viewOf(keys), .values = viewOf(values), .sequences = @[ @0 ] })
              toCache:cache
                error:error])
      return NO;
    converted = [step quantizeCache:cache asStorage:storage error:error];
    return converted != nil;
  }];
  XCTAssertEqual([converted nextPositionOfSequence:0], 2u);
  XCTAssertEqual(converted.descriptor.quantized.planes, MNKKVQuantizedPlanesValues);
  XCTAssertEqual(converted.descriptor.elementType, cache.descriptor.elementType);
  XCTAssertNil(converted.quantizedView.keys.scales);
  XCTAssertNotNil(converted.quantizedView.values.scales);
  XCTAssertEqual(converted.quantizedView.keys.codes.elementType, cache.descriptor.elementType);
  XCTAssertEqual(converted.quantizedView.values.codec.bits, 6u);
}

- (void)testAQuantizedCache {
  MNKAttentionCacheDescriptor *descriptor = self.descriptor;
  MNKKVQuantizedStorage *storage = [[MNKKVQuantizedStorage alloc] initWithCodec:MNKKVCodecNameTurbo
                                                                        keyBits:8
                                                                      valueBits:6];
  storage.keyMeans = [self numbers:@[ @1, @32 ] seed:4];
  storage.valueMeans = [self numbers:@[ @1, @32 ] seed:5];
  storage.keyChannelScales = [self floats:std::vector<float>(32, 2) shape:@[ @1, @32 ]];
  descriptor.quantized = storage;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  XCTAssertEqual(cache.quantizedView.keys.codec.bits, 8u);
  XCTAssertEqual(cache.quantizedView.values.codec.bits, 6u);
  XCTAssertEqualObjects([self vectorText:cache.quantizedView.keys.means], [self vectorText:storage.keyMeans]);
  XCTAssertEqualObjects([self vectorText:cache.quantizedView.values.means], [self vectorText:storage.valueMeans]);
  MNKTensor *channelScales = cache.quantizedView.keys.channelScales;
  XCTAssertEqual([self floatOf:channelScales at:3], 2);
  XCTAssertEqual(cache.quantizedView.keys.codes.elementType, MNKElementTypeUInt8);
  XCTAssertEqual(cache.bytesPerToken, 32u + 24 + 4);
  XCTAssertGreaterThan(cache.bytesSaved, 0);
  XCTAssertEqual(cache.descriptor.quantized.keyBits, 8u);
  MNKTensor *keys = [self numbers:@[ @2, @1, @32 ] seed:6], *values = [self numbers:@[ @2, @1, @32 ] seed:7];
  MNKTensor *queries = [self numbers:@[ @1, @32 ] seed:8], *out = [self zeros:@[ @1, @32 ]];
  MNKTensor *readKeys = [self zeros:@[ @1, @32 ]], *readValues = [self zeros:@[ @1, @32 ]];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step append:cacheStep({ .keys = viewOf(keys), .values = viewOf(values), .sequences = @[ @1 ] })
                toCache:cache
                  error:error] &&
           [step dequantizeCache:cache
                        intoKeys:readKeys
                          values:readValues
                        position:1
                        sequence:1
                          domain:MNKKVDomainOriginal
                           error:error] &&
           [step attend:cacheStep({
                   .queries = viewOf(queries), .results = [MNKAttentionResults resultsIntoTensor:out],
                   .sequences = @[ @1 ]
                 })
               overCache:cache
                   error:error];
  }];
  const auto k = [self floatsOf:keys], v = [self floatsOf:values], q = [self floatsOf:queries];
  const auto expected =
      mnk::test::attended({.heads = 1, .kvHeads = 1, .headDim = 32, .length = 2, .queries = q, .keys = k, .values = v});
  for (size_t i = 0; i < 32; ++i) {
    XCTAssertEqualWithAccuracy([self floatOf:readKeys at:i], k[32 + i], 0.05);
    XCTAssertEqualWithAccuracy([self floatOf:readValues at:i], v[32 + i], 0.15);
    XCTAssertEqualWithAccuracy([self floatOf:out at:i], expected[i], 0.15);
  }
  XCTAssertEqual([cache nextPositionOfSequence:1], 2u);
}

- (NSString *)vectorText:(nullable MNKTensor *)tensor {
  return [[tensor dataWithError:nil] description];
}

- (void)testThePositionAdvancesOnlyWithACommit {
  MNKAttentionCacheDescriptor *descriptor = self.descriptor;
  descriptor.sequences = 1;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  MNKTensor *token = [self zeros:@[ @1, @32 ]];
  @autoreleasepool {
    MNKCommandEncoder *dropped = [self.device commandEncoder];
    XCTAssertTrue([dropped appendKeys:token values:token toCache:cache error:nil]);
    XCTAssertEqual(cache.nextPosition, 0u);
  }
  XCTAssertEqual(cache.nextPosition, 0u);
  MNKCommandEncoder *step = [self.device commandEncoder];
  XCTAssertTrue([step appendKeys:token values:token toCache:cache error:nil]);
  XCTAssertTrue([step appendKeys:token values:token toCache:cache error:nil]);
  XCTAssertEqual(cache.nextPosition, 0u);
  MNKCompletion *done = [step commitWithError:nil];
  XCTAssertEqual(cache.nextPosition, 2u);
  XCTAssertTrue([done waitWithError:nil]);
  // A failed step changes nothing.
  NSError *error = nil;
  MNKCommandEncoder *first = [self.device commandEncoder], *second = [self.device commandEncoder];
  XCTAssertTrue([first appendKeys:token values:token toCache:cache error:nil]);
  XCTAssertTrue([second appendKeys:token values:token toCache:cache error:nil]);
  XCTAssertTrue([[first commitWithError:nil] waitWithError:nil]);
  XCTAssertNil([second commitWithError:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @"changed while this encoder recorded"));
  XCTAssertEqualObjects(error.userInfo[MNKErrorIsRetryableKey], @YES);
  XCTAssertEqual(cache.nextPosition, 3u);
}

@end
