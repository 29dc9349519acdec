#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Arguments that steps over caches can receive despite their headers. Each is an error, and records nothing.
@interface CacheErrorTests : DeviceTestCase
@end

@implementation CacheErrorTests {
  MNKCommandEncoder *_step;
  MNKAttentionCache *_cache;
  MNKTensor *_token;
  MNKHeadsView *_view;
  MNKAttentionResults *_results;
}

- (void)setUp {
  [super setUp];
  _step = [self.device commandEncoder];
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4];
  _cache = [self cacheWith:descriptor];
  _token = [self zeros:@[ @1, @32 ]];
  _view = [[MNKHeadsView alloc] initWithTensor:(MNKTensor *_Nonnull)_token];
  _results = [MNKAttentionResults resultsIntoTensor:[self zeros:@[ @1, @32 ]]];
}

- (void)tearDown {
  XCTAssertEqual([_step commitWithError:nil].summary.total.dispatches, 0u);
  XCTAssertEqual(_cache.nextPosition, 0u);
  [super tearDown];
}

- (void)testTensors {
  NSError *error = nil;
  XCTAssertFalse([_step appendKeys:_token values:_token toCache:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"nil was passed for the cache"));
  XCTAssertFalse([_step appendKeys:absentObject() values:_token toCache:_cache error:&error]);
  XCTAssertFalse([_step appendKeys:_token values:absentObject() toCache:_cache error:&error]);
  XCTAssertFalse([_step
       append:cacheStep({ .keys = viewOf(_token), .values = viewOf(_token), .sequences = @[ @(NSUInteger{1} << 32) ] })
      toCache:_cache
        error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"for a sequence"));
  MNKCacheStep *unlisted = [MNKCacheStep stepWithKeys:_token values:_token];
  unlisted.sequences = absentObject();
  XCTAssertFalse([_step append:unlisted toCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"nil was passed for a sequence"));
  XCTAssertFalse([_step attendQueries:_token overCache:_cache intoTensor:absentObject() options:nil error:&error]);
  XCTAssertFalse([_step attend:cacheStep({ .queries = viewOf(_token), .results = absentObject(), .sequences = @[ @0 ] })
                     overCache:_cache
                         error:&error]);
  XCTAssertNil(
      wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.attend", @"attention needs exactly one target"));
  XCTAssertFalse([_step attend:absentObject() overCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.attend", @"nil was passed for the step"));
  XCTAssertFalse([_step attend:cacheStep({ .queries = viewOf(_token), .results = _results, .sequences = @[ @0 ] })
                     overCache:absentObject()
                         error:nil]);
  XCTAssertFalse([_step attend:cacheStep({ .queries = viewOf(_token), .results = _results, .sequences = @[ @9 ] })
                     overCache:_cache
                         error:nil]);
}

- (void)testViews {
  NSError *error = nil;
  XCTAssertFalse([_step append:cacheStep({ .keys = absentObject(), .values = _view, .sequences = @[ @0 ] })
                       toCache:_cache
                         error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"a source has no memory"));
  XCTAssertFalse([_step append:cacheStep({ .keys = _view, .values = absentObject(), .sequences = @[ @0 ] })
                       toCache:_cache
                         error:nil]);
  MNKHeadsView *unknown = [MNKHeadsView viewWithTensor:_token layout:static_cast<MNKKVLayout>(3)];
  XCTAssertFalse([_step append:cacheStep({ .keys = _view, .values = unknown, .sequences = @[ @0 ] })
                       toCache:_cache
                         error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"the number for layout is unknown"));
  XCTAssertFalse([_step attend:cacheStep({ .queries = unknown, .results = _results, .sequences = @[ @0 ] })
                     overCache:_cache
                         error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.attend", @"the number for layout is unknown"));
  // A tensor is token-major, even if its extents would also fit as head-major.
  MNKTensor *swapped = [self zeros:@[ @1, @3, @32 ]];
  XCTAssertFalse([_step appendKeys:swapped values:swapped toCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @""));
  XCTAssertTrue([error.userInfo[MNKErrorFixKey] rangeOfString:@"head-major"].length > 0, @"%@", error);
}

- (void)testLists {
  NSError *error = nil;
  for (id number in @[ @-1, @4294967296, @1.5, @"0", [NSNull null] ]) {
    for (const BOOL isCount : {NO, YES}) {
      NSArray *sequences = isCount ? @[ @0 ] : @[ number ], *counts = isCount ? @[ number ] : nil;
      NSString *what = isCount ? @"for a row count" : @"for a sequence";
      XCTAssertFalse([_step
           append:cacheStep({.keys = _view, .values = _view, .sequences = sequences, .rowCounts = counts})
          toCache:_cache
            error:&error]);
      XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", what));
      XCTAssertFalse([_step
             attend:cacheStep({.queries = _view, .results = _results, .sequences = sequences, .rowCounts = counts})
          overCache:_cache
              error:&error]);
      XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.attend", what));
    }
    XCTAssertFalse(
        ([_step append:cacheStep({ .keys = viewOf(_token), .values = viewOf(_token), .sequences = @[ number ] })
               toCache:_cache
                 error:nil]));
    XCTAssertFalse(
        ([_step attend:cacheStep({ .queries = viewOf(_token), .results = _results, .sequences = @[ number ] })
             overCache:_cache
                 error:nil]));
  }
  // An empty list of counts differs from nil.
  for (NSArray *counts in @[ @[], @[ @1, @1 ] ]) {
    XCTAssertFalse(
        ([_step append:cacheStep({ .keys = _view, .values = _view, .sequences = @[ @0 ], .rowCounts = counts })
               toCache:_cache
                 error:&error]));
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append",
                         @"the row counts do not match the listed sequences"));
    XCTAssertEqualObjects(error.userInfo[MNKErrorExpectedKey], @"1, one for each sequence");
  }
  XCTAssertFalse(
      ([_step append:cacheStep({ .keys = _view, .values = _view, .sequences = @[ @0 ], .rowCounts = @[ @2 ] })
             toCache:_cache
               error:&error]));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"the rows do not match"));
}

- (void)testCacheStep {
  NSError *error = nil;
  NSArray<NSString *> *wrong = @[
    @"queries have no memory", @"a source has no memory", @"a source has no memory", @"nil was passed for the cache",
    @"attention needs exactly one target"
  ];
  for (const int absent : {0, 1, 2, 3, 4}) {
    XCTAssertFalse([_step appendAndAttend:cacheStep({
                            .queries = absent == 0 ? absentObject() : _view,
                            .keys = absent == 1 ? absentObject() : _view,
                            .values = absent == 2 ? absentObject() : _view,
                            .results = absent == 4 ? absentObject() : _results, .sequences = @[ @0 ]
                          })
                                overCache:absent == 3 ? absentObject() : _cache
                                    error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.appendAndAttend", wrong[absent]));
  }
  for (const NSUInteger sequence : {NSUInteger{1}, NSUInteger{1} << 32}) {
    XCTAssertFalse([_step appendAndAttend:cacheStep({
                            .queries = _view, .keys = _view, .values = _view, .results = _results,
                            .sequences = @[ @(sequence) ]
                          })
                                overCache:_cache
                                    error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.appendAndAttend", @"sequence"));
  }
}

- (void)testCacheStepThatRotates {
  MNKRotaryEmbedding *embedding = [[MNKRotaryEmbedding alloc] init];
  embedding.ropeDim = 3;
  const std::pair<MNKRotaryStep *, NSString *> steps[] = {
      {[[MNKRotaryStep alloc] initWithEmbedding:embedding], @"the rope dim is odd or zero"},
      {[[MNKRotaryStep alloc] initWithEmbedding:absentObject()], @"nil was passed for embedding"}};
  for (const auto &[rotary, what] : steps) {
    NSError *error = nil;
    XCTAssertFalse([_step appendAndAttend:cacheStep({
                            .queries = _view, .keys = _view, .values = _view, .rotary = rotary, .results = _results,
                            .sequences = @[ @0 ]
                          })
                                overCache:_cache
                                    error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.appendAndAttend", what));
  }
  NSError *error = nil;
  XCTAssertFalse([_step appendAndAttend:cacheStep({
                          .queries = _view, .keys = _view, .values = _view, .results = _results, .sequences = @[]
                        })
                              overCache:_cache
                                  error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.appendAndAttend", @"the step has no sequence"));
}

- (void)testQuantizedCopies {
  NSError *error = nil;
  MNKKVQuantizedStorage *storage = [[MNKKVQuantizedStorage alloc] initWithCodec:MNKKVCodecNameTurbo
                                                                        keyBits:4
                                                                      valueBits:4];
  XCTAssertNil([_step quantizeCache:absentObject() asStorage:storage error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.quantized", @"nil was passed for the cache"));
  XCTAssertNil([_step quantizeCache:_cache asStorage:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.quantized", @"nil was passed for the storage"));
  storage.keyBits = 9;
  XCTAssertNil([_step quantizeCache:_cache asStorage:storage error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.quantized", @""));
}

- (void)testCopies {
  NSError *error = nil;
  XCTAssertFalse([_step copySequence:0 toSequence:0 inCache:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.copy", @"nil was passed for the cache"));
  XCTAssertFalse([_step copySequence:NSUInteger{1} << 32 toSequence:0 inCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.copy", @"the source is out of range"));
  XCTAssertFalse([_step copySequence:0 toSequence:NSUIntegerMax inCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.copy", @"the target is out of range"));
  XCTAssertFalse([_step copySequence:0 toSequence:1 inCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.copy", @""));
  XCTAssertFalse([_step copySequence:1 toSequence:0 inCache:_cache error:nil]);
  XCTAssertFalse([_step copySequence:0 ofCache:absentObject() toSequence:0 ofCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.copy", @"nil was passed for the cache"));
  XCTAssertFalse([_step copySequence:0 ofCache:_cache toSequence:0 ofCache:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.copy", @"nil was passed for the cache"));
  XCTAssertFalse([_step copySequence:NSUIntegerMax ofCache:_cache toSequence:0 ofCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.copy", @"the source is out of range"));
  XCTAssertFalse([_step copySequence:0 ofCache:_cache toSequence:1 ofCache:_cache error:nil]);
}

- (void)testGrowth {
  NSError *error = nil;
  XCTAssertNil([_step growCache:absentObject() toCapacity:8 error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.grown", @"nil was passed for the cache"));
  XCTAssertNil([_step growCache:_cache toCapacity:NSUInteger{1} << 32 error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.grown", @"capacity is out of range"));
  XCTAssertNil([_step growCache:_cache toCapacity:0 error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.grown", @"a cache cannot shrink"));
  XCTAssertNil([_step growCache:_cache toCapacity:0 error:nil]);
}

- (void)testSeveralSequencesMustBeNamed {
  MNKAttentionCacheDescriptor *descriptor = _cache.descriptor;
  descriptor.sequences = 2;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  MNKCommandEncoder *encoder = _step;
  MNKTensor *token = _token;
  MNKHeadsView *view = _view;
  MNKAttentionResults *results = _results;
  NSArray<NSNumber *> *only = @[ @(MNKOnlySequence) ];
  MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:view
                                                        keys:nil
                                                   positions:[MNKRotaryPositions nextPositionsOfCache:cache]
                                                      rotary:[[MNKRotaryEmbedding alloc] init]];
  const std::vector<std::function<BOOL(NSError * __autoreleasing *)>> calls{
      [=](NSError **e) { return [encoder appendKeys:token values:token toCache:cache error:e]; },
      [=](NSError **e) {
        return [encoder append:cacheStep({ .keys = view, .values = view, .sequences = only, .rowCounts = @[ @1 ] })
                       toCache:cache
                         error:e];
      },
      [=](NSError **e) { return [encoder attendQueries:token overCache:cache intoTensor:token options:nil error:e]; },
      [=](NSError **e) {
        return [encoder appendAndAttend:cacheStep({
                          .queries = view, .keys = view, .values = view, .results = results,
                          .sequences = @[ @(MNKOnlySequence) ]
                        })
                              overCache:cache
                                  error:e];
      },
      [=](NSError **e) {
        return [encoder dequantizeCache:cache
                               intoKeys:token
                                 values:nil
                               position:0
                               sequence:MNKOnlySequence
                                 domain:MNKKVDomainOriginal
                                  error:e];
      },
      [=](NSError **e) { return [encoder encodeOperation:rope error:e]; },
      [=](NSError **e) { return [cache truncateToPosition:0 error:e]; },
  };
  for (const auto &call : calls) {
    NSError *error = nil;
    XCTAssertFalse(call(&error));
    XCTAssertNotNil(error);
    XCTAssertEqualObjects(error.userInfo[MNKErrorWhatKey],
                          @"the call does not say which sequence of the cache it is for");
  }
}

- (void)testNextPositions {
  const std::tuple<NSArray *, NSArray *, NSString *> lists[] = {
      {@[ @1 ], nil, @"the sequence is not in the cache"},
      {@[ @0 ], @[ @9 ], @"the rows do not match the listed sequences"}};
  for (const auto &[sequences, counts, what] : lists) {
    MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:_view
                                                          keys:nil
                                                     positions:[MNKRotaryPositions nextPositionsOfCache:_cache
                                                                                              sequences:sequences
                                                                                              rowCounts:counts]
                                                        rotary:[[MNKRotaryEmbedding alloc] init]];
    NSError *error = nil;
    XCTAssertFalse([_step encodeOperation:rope error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.nextPositions", what));
    XCTAssertNil([rope planForDevice:nil error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MultiRoPE", @"a plan cannot follow a cache"));
  }
}

- (void)testAttentionBeforeItsTokens {
  NSError *error = nil;
  XCTAssertFalse([_step attend:cacheStep({ .queries = viewOf(_token), .results = _results, .sequences = @[ @0 ] })
                     overCache:_cache
                         error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.attend",
                       @"a sequence has fewer positions than queries"));
  [self step:^BOOL(MNKCommandEncoder *step, NSError **failure) {
    return [step appendKeys:self->_token values:self->_token toCache:self->_cache error:failure];
  }];
  MNKCommandEncoder *step = [self.device commandEncoder];
  XCTAssertTrue([step attend:cacheStep({ .queries = viewOf(_token), .results = _results, .sequences = @[ @0 ] })
                   overCache:_cache
                       error:&error]);
  XCTAssertFalse([step appendKeys:_token values:_token toCache:_cache error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.append", @"has already read the sequence"));
  [_cache reset];
}

- (void)testDequantize {
  NSError *error = nil;
  for (const int domain : {0, 2}) {
    XCTAssertFalse([_step dequantizeCache:_cache
                                 intoKeys:_token
                                   values:nil
                                 position:0
                                 sequence:0
                                   domain:static_cast<MNKKVDomain>(domain)
                                    error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.dequantize",
                         domain == 0 ? @"" : @"the number for domain is unknown"));
  }
  XCTAssertFalse([_step dequantizeCache:absentObject()
                               intoKeys:nil
                                 values:nil
                               position:0
                               sequence:0
                                 domain:MNKKVDomainOriginal
                                  error:nil]);
}

@end
