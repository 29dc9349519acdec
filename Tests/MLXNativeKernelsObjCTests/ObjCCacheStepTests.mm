#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Steps over views and lists, in chunks, over sliding windows, and copies of sequences.
@interface ObjCCacheStepTests : DeviceTestCase
@end

@implementation ObjCCacheStepTests

- (MNKAttentionCacheDescriptor *)descriptorWithHeads:(NSUInteger)heads capacity:(NSUInteger)capacity {
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:heads
                                                                                       headDim:32
                                                                                      capacity:capacity];
  descriptor.sequences = 3;
  descriptor.elementType = MNKElementTypeFloat32;
  return descriptor;
}

- (void)expect:(const std::vector<float> &)numbers in:(MNKTensor *)rows {
  const auto got = [self floatsOf:rows];
  XCTAssertEqual(got.size(), numbers.size() * 32);
  for (size_t i = 0; i < got.size(); ++i) XCTAssertEqualWithAccuracy(got[i], numbers[i / 32], 1e-4, @"element %zu", i);
}

- (void)expect:(float)number
            of:(MNKAttentionCache *)cache
      sequence:(NSUInteger)sequence
       options:(nullable MNKAttentionOptions *)options {
  MNKTensor *queries = [self zeros:@[ @1, @32 ]], *out = [self zeros:@[ @1, @32 ]];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:out];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step attend:cacheStep({
                   .queries = viewOf(queries), .results = results, .options = options, .sequences = @[ @(sequence) ]
                 })
              overCache:cache
                  error:error];
  }];
  [self expect:{number} in:out];
}

// Two conversations continue a prompt in another cache; a row sees the newest three positions.
- (void)testConversationsContinueAPrompt {
  MNKAttentionCache *prompt = [self cacheWith:[self descriptorWithHeads:1 capacity:8]];
  MNKAttentionCache *cache = [self cacheWith:[self descriptorWithHeads:1 capacity:8]];
  [self append:{1, 2, 3} to:prompt sequence:1];
  MNKAttentionOptions *window = [[MNKAttentionOptions alloc] init];
  window.window = 3;
  NSArray<MNKCachePrefix *> *after = @[ [[MNKCachePrefix alloc] initWithCache:prompt sequence:1] ];
  MNKTensor *out = [self zeros:@[ @4, @1, @32 ]], *again = [self zeros:@[ @4, @1, @32 ]];
  MNKHeadsView *queries = [self zeroTokens:4], *keys = [self zeroTokens:4], *values = [self tokens:{10, 20, 30, 40}];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step appendAndAttend:cacheStep({
                   .queries = queries, .keys = keys, .values = values,
                   .results = [MNKAttentionResults resultsIntoTensor:out], .options = window, .sequences = @[ @2, @0 ],
                   .rowCounts = @[ @3, @1 ], .prefixes = after
                 })
                       overCache:cache
                           error:error] &&
           [step attend:cacheStep({
                   .queries = queries, .results = [MNKAttentionResults resultsIntoTensor:again], .options = window,
                   .sequences = @[ @2, @0 ], .rowCounts = @[ @3, @1 ], .prefixes = after
                 })
               overCache:cache
                   error:error];
  }];
  for (MNKTensor *rows in @[ out, again ]) [self expect:{5, 11, 20, 15} in:rows];
  XCTAssertEqual([[MNKCachePrefix alloc] initWithCache:prompt].sequence, MNKOnlySequence);
  MNKCommandEncoder *step = [self.device commandEncoder];
  NSError *error = nil;
  const BOOL isEncoded = [step attend:cacheStep({
                                 .queries = queries, .results = [MNKAttentionResults resultsIntoTensor:out],
                                 .sequences = @[ @2, @0 ], .rowCounts = @[ @3, @1 ],
                                 .prefixes = @[ [[MNKCachePrefix alloc] initWithCache:prompt] ]
                               })
                            overCache:cache
                                error:&error];
  XCTAssertFalse(isEncoded);
  XCTAssertNotNil(error);
}

// The same tokens as tensors, head-major, and in columns of a fused projection.
- (void)testViewsOfAnyLayout {
  constexpr NSUInteger kTokens = 3, kHeads = 2, kDim = 32, kWidth = 3 * kHeads * kDim;
  const auto fused = [self floatsOf:[self numbers:@[ @(kTokens), @(kWidth) ] seed:1]];
  MNKTensor *projection = [self floats:fused shape:@[ @(kTokens), @(kWidth) ]];
  NSMutableArray<MNKHeadsView *> *columns = [NSMutableArray array], *tokenMajor = [NSMutableArray array],
                                 *headMajor = [NSMutableArray array];
  for (NSUInteger part = 0; part < 3; ++part) {
    std::vector<float> byToken(kTokens * kHeads * kDim), byHead(byToken.size());
    for (NSUInteger t = 0; t < kTokens; ++t) {
      for (NSUInteger h = 0; h < kHeads; ++h) {
        for (NSUInteger e = 0; e < kDim; ++e) {
          const float number = fused[t * kWidth + (part * kHeads + h) * kDim + e];
          byToken[(t * kHeads + h) * kDim + e] = byHead[(h * kTokens + t) * kDim + e] = number;
        }
      }
    }
    NSError *error = nil;
    MNKHeadsView *view = [MNKHeadsView viewWithColumnsOfTensor:projection
                                                   firstColumn:part * kHeads * kDim
                                                         heads:kHeads
                                                       headDim:kDim
                                                         error:&error];
    XCTAssertNotNil(view, @"%@", error);
    [columns addObject:view];
    [tokenMajor addObject:[[MNKHeadsView alloc] initWithTensor:[self floats:byToken
                                                                      shape:@[ @(kTokens), @(kHeads), @(kDim) ]]]];
    [headMajor addObject:[MNKHeadsView viewWithTensor:[self floats:byHead shape:@[ @(kHeads), @(kTokens), @(kDim) ]]
                                               layout:MNKKVLayoutHeadMajor]];
  }
  MNKAttentionCache *cache = [self cacheWith:[self descriptorWithHeads:kHeads capacity:8]];
  NSArray<NSNumber *> *shape = @[ @(kTokens), @(kHeads), @(kDim) ];
  MNKTensor *plain = [self zeros:shape];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step append:cacheStep({
                   .keys = viewOf(tokenMajor[1].tensor), .values = viewOf(tokenMajor[2].tensor), .sequences = @[ @0 ]
                 })
                toCache:cache
                  error:error] &&
           [step attend:cacheStep({
                   .queries = viewOf(tokenMajor[0].tensor), .results = [MNKAttentionResults resultsIntoTensor:plain],
                   .sequences = @[ @0 ]
                 })
               overCache:cache
                   error:error];
  }];
  NSData *expected = [plain dataWithError:nil];
  XCTAssertNotEqualObjects(expected, [[self zeros:shape] dataWithError:nil]);
  for (NSArray<MNKHeadsView *> *views in @[ columns, tokenMajor, headMajor ]) {
    MNKTensor *one = [self zeros:shape], *listed = [self zeros:shape];
    [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
      return [step append:cacheStep({ .keys = views[1], .values = views[2], .sequences = @[ @1 ] })
                  toCache:cache
                    error:error] &&
             [step attend:cacheStep({
                     .queries = views[0], .results = [MNKAttentionResults resultsIntoTensor:one], .sequences = @[ @1 ]
                   })
                 overCache:cache
                     error:error] &&
             [step append:cacheStep({
                     .keys = views[1], .values = views[2], .sequences = @[ @2 ], .rowCounts = @[ @(kTokens) ]
                   })
                  toCache:cache
                    error:error] &&
             [step attend:cacheStep({
                     .queries = views[0], .results = [MNKAttentionResults resultsIntoTensor:listed],
                     .sequences = @[ @2 ], .rowCounts = @[ @(kTokens) ]
                   })
                 overCache:cache
                     error:error];
    }];
    XCTAssertEqualObjects([one dataWithError:nil], expected);
    XCTAssertEqualObjects([listed dataWithError:nil], expected);
    for (const NSUInteger sequence : {1, 2}) XCTAssertTrue([cache resetSequence:sequence error:nil]);
  }
}

- (void)testRowCounts {
  MNKAttentionCache *cache = [self cacheWith:[self descriptorWithHeads:1 capacity:8]];
  NSArray *sequences = @[ @2, @0, @1, @2 ], *counts = @[ @2, @1, @0, @1 ];
  MNKHeadsView *keys = [self zeroTokens:4], *values = [self tokens:{1, 2, 5, 9}];
  MNKTensor *out = [self zeros:@[ @4, @1, @32 ]];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:out];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step append:cacheStep({.keys = keys, .values = values, .sequences = sequences, .rowCounts = counts})
                toCache:cache
                  error:error] &&
           [step attend:cacheStep({.queries = keys, .results = results, .sequences = sequences, .rowCounts = counts})
               overCache:cache
                   error:error];
  }];
  [self expect:{1, 1.5, 5, 4} in:out];
  XCTAssertEqual([cache nextPositionOfSequence:0], 1u);
  XCTAssertEqual([cache nextPositionOfSequence:1], 0u);
  XCTAssertEqual([cache nextPositionOfSequence:2], 3u);
  // Without counts, each sequence has as many rows as its axis in the views.
  MNKHeadsView *batch = [[MNKHeadsView alloc] initWithTensor:[self zeros:@[ @2, @2, @1, @32 ]]];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step append:cacheStep({
                   .keys = batch, .values = batch, .sequences = @[ @1, @0 ]
                 })
                toCache:cache
                  error:error];
  }];
  XCTAssertEqual([cache nextPositionOfSequence:0], 3u);
  XCTAssertEqual([cache nextPositionOfSequence:1], 2u);
}

- (void)testCacheStepMatchesSingleTokens {
  for (const NSUInteger window : {0, 2}) {
    MNKAttentionCacheDescriptor *descriptor = [self descriptorWithHeads:1 capacity:4];
    descriptor.whenFull = MNKKVWrapRing;
    MNKAttentionCache *cache = [self cacheWith:descriptor];
    constexpr int kTokens = 10;
    std::vector<float> numbers, means;
    for (int t = 0; t < kTokens; ++t) {
      numbers.push_back(static_cast<float>(t * t));
      const int oldest = std::max(0, t - (window == 0 ? 4 : static_cast<int>(window)) + 1);
      float sum = 0;
      for (int seen = oldest; seen <= t; ++seen) sum += numbers[seen];
      means.push_back(sum / static_cast<float>(t - oldest + 1));
    }
    MNKHeadsView *keys = [self zeroTokens:kTokens], *values = [self tokens:numbers];
    MNKTensor *out = [self zeros:@[ @(kTokens), @1, @32 ]];
    MNKAttentionOptions *options = [[MNKAttentionOptions alloc] init];
    options.window = window;
    [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
      return [step appendAndAttend:cacheStep({
                     .queries = keys, .keys = keys, .values = values,
                     .results = [MNKAttentionResults resultsIntoTensor:out], .options = options, .sequences = @[ @1 ]
                   })
                         overCache:cache
                             error:error];
    }];
    [self expect:means in:out];
    XCTAssertEqual([cache nextPositionOfSequence:1], 10u);
    XCTAssertEqual([cache nextPositionOfSequence:0], 0u);
  }
}

// Rotates in the dispatch that stores the keys, with the results of rotating before; a list equals single calls.
- (void)testCacheStepRotates {
  MNKAttentionCacheDescriptor *descriptor = [self descriptorWithHeads:1 capacity:8];
  MNKRotaryStep *rotary = [[MNKRotaryStep alloc] initWithEmbedding:[[MNKRotaryEmbedding alloc] init]];
  for (const int kind : {0, 1, 2}) {
    MNKAttentionCache *fused = [self cacheWith:descriptor], *apart = [self cacheWith:descriptor];
    MNKAttentionCache *listed = [self cacheWith:descriptor];
    MNKHeadsView *tokens = [self tokens:{1, -2, 3}];
    if (kind == 1) rotary.positions = [MNKRotaryPositions positionsStartingAt:9];
    if (kind == 2) rotary.offsets = [MNKIntegers integersWithList:@[ @4 ]];
    NSArray<MNKTensor *> *results =
        @[ [self zeros:@[ @3, @1, @32 ]], [self zeros:@[ @3, @1, @32 ]], [self zeros:@[ @3, @1, @32 ]] ];
    [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
      return [step appendAndAttend:cacheStep({
                     .queries = tokens, .keys = tokens, .values = tokens, .rotary = rotary,
                     .results = [MNKAttentionResults resultsIntoTensor:results[0]], .sequences = @[ @1 ]
                   })
                         overCache:fused
                             error:error] &&
             [step appendAndAttend:cacheStep({
                     .queries = tokens, .keys = tokens, .values = tokens, .rotary = rotary,
                     .results = [MNKAttentionResults resultsIntoTensor:results[1]], .sequences = @[ @1 ],
                     .rowCounts = @[ @3 ]
                   })
                         overCache:listed
                             error:error];
    }];
    [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
      MNKRotaryPositions *positions = rotary.positions ?: [MNKRotaryPositions positionsStartingAt:0];
      MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:tokens
                                                            keys:nil
                                                       positions:positions
                                                          rotary:rotary.embedding];
      rope.rotatedQueries = [[MNKHeadsView alloc] initWithTensor:[self zeros:@[ @3, @1, @32 ]]];
      rope.offsets = rotary.offsets;
      MNKHeadsView *rotated = rope.rotatedQueries;
      return [step encodeOperation:rope error:error] &&
             [step appendAndAttend:cacheStep({
                     .queries = rotated, .keys = rotated, .values = tokens,
                     .results = [MNKAttentionResults resultsIntoTensor:results[2]], .sequences = @[ @1 ]
                   })
                         overCache:apart
                             error:error];
    }];
    const auto expected = [self floatsOf:results[2]];
    XCTAssertTrue([self floatsOf:results[0]] == expected);
    XCTAssertTrue([self floatsOf:results[1]] == expected);
    XCTAssertEqual([fused nextPositionOfSequence:1], 3u);
  }
}

- (void)testCopiesOfSequences {
  MNKAttentionCache *cache = [self cacheWith:[self descriptorWithHeads:1 capacity:4]];
  [self append:{1, 2, 6} to:cache sequence:0];
  [self append:{50} to:cache sequence:2];
  MNKCommandEncoder *step = [self.device commandEncoder];
  XCTAssertTrue([step copySequence:0 toSequence:2 inCache:cache error:nil]);
  XCTAssertEqual([cache nextPositionOfSequence:2], 1u);
  XCTAssertTrue([[step commitWithError:nil] waitWithError:nil]);
  XCTAssertEqual([cache nextPositionOfSequence:2], 3u);
  [self append:{11} to:cache sequence:2];
  [self expect:5 of:cache sequence:2 options:nil];
  [self expect:3 of:cache sequence:0 options:nil];
}

- (void)testCachesGrow {
  MNKAttentionCache *cache = [self cacheWith:[self descriptorWithHeads:1 capacity:3]];
  [self append:{1, 2, 6} to:cache sequence:0];
  MNKCommandEncoder *step = [self.device commandEncoder];
  MNKAttentionCache *larger = [step growCache:cache toCapacity:5 error:nil];
  XCTAssertEqual(larger.descriptor.capacity, 5u);
  XCTAssertTrue([step copySequence:0 ofCache:cache toSequence:2 ofCache:larger error:nil]);
  XCTAssertEqual([larger nextPositionOfSequence:0], 0u);
  XCTAssertTrue([[step commitWithError:nil] waitWithError:nil]);
  for (const NSUInteger sequence : {0, 2}) {
    [self append:{11} to:larger sequence:sequence];
    [self expect:5 of:larger sequence:sequence options:nil];
  }
  XCTAssertEqual([cache nextPositionOfSequence:0], 3u);
}

- (void)testASlidingWindowDeterminesTheCapacity {
  MNKAttentionCacheDescriptor *descriptor = [self descriptorWithHeads:1 capacity:0];
  descriptor.slidingWindow = [[MNKSlidingWindow alloc] initWithWindow:4 maxRows:2 maxDraft:3];
  descriptor.pinned = 2;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  MNKAttentionCacheDescriptor *expected = [descriptor copy];
  expected.capacity = 2 + 4 + 3 - 1;
  expected.whenFull = MNKKVWrapRing;
  expected.valueHeadDim = 32;
  XCTAssertEqualObjects(cache.descriptor, expected);
  // Attending without a window uses the cache's, even after a whole draft is truncated.
  for (const float number : {100, 200, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) [self append:{number} to:cache sequence:1];
  [self expect:8.5 of:cache sequence:1 options:nil];
  XCTAssertTrue([cache truncateToPosition:9 sequence:1 error:nil]);
  [self append:{20} to:cache sequence:1];
  [self expect:9.5 of:cache sequence:1 options:nil];
  MNKAttentionOptions *options = [[MNKAttentionOptions alloc] init];
  options.windowSeesPinned = YES;
  [self expect:(5 + 6 + 7 + 20 + 100 + 200) / 6.0f of:cache sequence:1 options:options];
  options.window = 2;
  options.windowSeesPinned = NO;
  [self expect:13.5 of:cache sequence:1 options:options];

  descriptor.capacity = 20;
  XCTAssertEqual([self cacheWith:descriptor].descriptor.capacity, 20u);
  const std::vector<std::pair<NSString *, NSNumber *>> changes{
      {@"capacity", @7},
      {@"slidingWindow.window", @0},
      {@"slidingWindow.window", @(1ull << 32)},
      {@"slidingWindow.maxRows", @(1ull << 32)},
      {@"slidingWindow.maxDraft", @(NSUIntegerMax)},
  };
  for (const auto &[path, value] : changes) {
    MNKAttentionCacheDescriptor *refused = [descriptor copy];
    [refused setValue:value forKeyPath:path];
    NSError *error = nil;
    XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device descriptor:refused error:&error], @"%@",
                 refused);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @""));
  }
}

- (void)testHeadDimsWithoutAttentionAreStorageOnly {
  MNKAttentionCacheDescriptor *descriptor = [self descriptorWithHeads:1 capacity:4];
  descriptor.headDim = 20;
  descriptor.sequences = 1;
  NSError *error = nil;
  XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device descriptor:descriptor error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @"there is no attention kernel"));
  descriptor.storageOnly = YES;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  XCTAssertTrue(cache.descriptor.isStorageOnly);
  MNKTensor *token = [self zeros:@[ @1, @20 ]];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **failure) {
    return [step appendKeys:token values:token toCache:cache error:failure];
  }];
  XCTAssertEqual(cache.nextPosition, 1u);
}

// With zero queries, a result is the mean of the latent parts.
- (void)testALatentCacheStoresValuesInKeys {
  MNKAttentionCacheDescriptor *descriptor = [self descriptorWithHeads:1 capacity:4];
  descriptor.headDim = 64;
  descriptor.sequences = 1;
  descriptor.latentDim = 512;
  descriptor.elementType = MNKElementTypeFloat32;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  XCTAssertEqual(cache.descriptor.latentDim, 512u);
  XCTAssertEqual(cache.descriptor.valueHeadDim, 512u);
  XCTAssertEqual(cache.view.latentDim, 512u);
  std::vector<float> elements(512, 1);
  elements.resize(1024, 3);
  MNKTensor *latent = [self floats:elements shape:@[ @2, @1, @512 ]];
  MNKTensor *keys = [self zeros:@[ @2, @1, @64 ]], *queries = [self zeros:@[ @8, @576 ]];
  MNKTensor *output = [self zeros:@[ @8, @512 ]];
  MNKAttentionOptions *options = [[MNKAttentionOptions alloc] init];
  options.scale = 0.1f;
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step appendKeys:keys values:latent toCache:cache error:error] && [step attendQueries:queries
                                                                                       overCache:cache
                                                                                      intoTensor:output
                                                                                         options:options
                                                                                           error:error];
  }];
  for (const float element : [self floatsOf:output]) XCTAssertEqualWithAccuracy(element, 2, 1e-5);
}

- (void)testTheDescriptionIsTheCoresText {
  MNKAttentionCacheDescriptor *descriptor = [self descriptorWithHeads:8 capacity:4096];
  descriptor.sequences = 1;
  descriptor.headDim = 128;
  descriptor.elementType = MNKElementTypeFloat16;
  MNKTensor *token = [self zeros:@[ @8, @128 ]];
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step appendKeys:token values:token toCache:cache error:error];
  }];
  XCTAssertEqualObjects(cache.description,
                        @"8 heads of 128 as f16, 1 sequence at position 1, 4096 slots that fail when "
                        @"full, 16.8 MB");
}

@end
