#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Arguments that calls over caches can receive despite their headers. Each is an error, and records nothing.
@interface CacheErrorTests : DeviceTestCase
@end

@implementation CacheErrorTests {
  MNKCommandEncoder *_encoder;
  MNKAttentionCache *_cache;
  MNKTensor *_token;
}

- (void)setUp {
  [super setUp];
  _encoder = [self.device commandEncoder];
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4];
  descriptor.sequences = 2;
  _cache = [self cacheWith:descriptor];
  _token = [self zeros:@[ @1, @32 ]];
}

- (void)tearDown {
  XCTAssertEqual([_encoder commitWithError:nil].summary.total.dispatches, 0u);
  XCTAssertEqual([_cache nextPositionOfSequence:0], 0u);
  [super tearDown];
}

- (MNKCacheStep *)step {
  MNKCacheStep *step = [MNKCacheStep stepWithKeys:_token values:_token];
  step.queries = _token.headsView;
  step.rotary = [[MNKRotaryStep alloc] initWithEmbedding:[[MNKRotaryEmbedding alloc] init]];
  step.results = [MNKAttentionResults resultsIntoTensor:[self zeros:@[ @1, @32 ]]];
  step.sequences = @[ @0 ];
  return step;
}

- (void)testPropertiesOfSteps {
  const auto prefix = [](id cache) { return @[ [[MNKCachePrefix alloc] initWithCache:cache sequence:1] ]; };
  const std::vector<std::tuple<NSString *, id, NSString *>> changes{
      {@"queries", nil, @"queries have no memory"},
      {@"keys", nil, @"a source has no memory"},
      {@"results", nil, @"attention needs exactly one target"},
      {@"results", @"results", @"another class was passed for results"},
      {@"sequences", nil, @"nil was passed for a sequence"},
      {@"sequences", @[], @"the step has no sequence"},
      {@"sequences", @[ @4294967296 ], @"the number for a sequence is out of range"},
      {@"sequences", @[ @4294967295 ], @"the sequence is not in the cache"},
      {@"sequences", @[ @(MNKOnlySequence) ], @"the call does not say which sequence of the cache it is for"},
      {@"rowCounts", @[ @-1 ], @"the number for a row count is out of range"},
      {@"rowCounts", @[], @"the row counts do not match the listed sequences"},
      {@"prefixes", @[ @1 ], @"another class was passed for a prefix"},
      {@"prefixes", prefix(absentObject()), @"nil was passed for the cache"},
  };
  MNKCommandEncoder *encoder = _encoder;
  MNKAttentionCache *cache = _cache;
  for (const auto &[path, value, what] : changes) {
    MNKCacheStep *step = self.step;
    [step setValue:value forKeyPath:path];
    XCTAssertNil(wrongIn({{@"AttentionCache.appendAndAttend", what,
                           [=](NSError **e) { return [encoder appendAndAttend:step overCache:cache error:e]; }}}),
                 @"%@ = %@", path, value);
  }
  MNKCacheStep *counted = self.step;
  counted.rowCounts = @[ @1, @1 ];
  NSError *error = nil;
  XCTAssertFalse([encoder appendAndAttend:counted overCache:cache error:&error]);
  XCTAssertNil(wrongIn(error, mnk::Error{.op = "AttentionCache.appendAndAttend",
                                         .what = "the row counts do not match the listed sequences",
                                         .got = "2 row counts",
                                         .expected = "1, one for each sequence",
                                         .fix = "Pass a row count for each listed sequence; 0 leaves one out."}));
}

- (void)testArgumentsOfCalls {
  MNKCommandEncoder *encoder = _encoder;
  MNKAttentionCache *cache = _cache;
  MNKTensor *token = _token;
  MNKCacheStep *step = self.step;
  MNKKVQuantizedStorage *storage = [[MNKKVQuantizedStorage alloc] initWithCodec:MNKKVCodecNameTurbo
                                                                        keyBits:4
                                                                      valueBits:4];
  constexpr NSUInteger kTooLarge = NSUInteger{1} << 32;
  NSString *append = @"AttentionCache.append", *attend = @"AttentionCache.attend";
  NSString *copy = @"AttentionCache.copy", *grown = @"AttentionCache.grown";
  NSString *quantized = @"AttentionCache.quantized", *noCache = @"nil was passed for the cache";
  NSString *source = @"the number for the source is out of range",
           *target = @"the number for the target is out of range";
  const auto copies = [=](NSUInteger from, NSUInteger to, MNKAttentionCache *other) {
    return [=](NSError **e) { return [encoder copySequence:from ofCache:cache toSequence:to ofCache:other error:e]; };
  };
  XCTAssertNil(wrongIn({
      {append, noCache, [=](NSError **e) { return [encoder append:step toCache:absentObject() error:e]; }},
      {append, @"another class was passed for the step",
       [=](NSError **e) { return [encoder append:(id) @"step" toCache:cache error:e]; }},
      {attend, @"nil was passed for the step",
       [=](NSError **e) { return [encoder attend:absentObject() overCache:cache error:e]; }},
      {copy, source, [=](NSError **e) { return [encoder copySequence:kTooLarge toSequence:0 inCache:cache error:e]; }},
      {copy, target,
       [=](NSError **e) { return [encoder copySequence:0 toSequence:NSUIntegerMax inCache:cache error:e]; }},
      {copy, noCache, copies(0, 0, absentObject())},
      {copy, target, copies(0, kTooLarge, cache)},
      {grown, noCache, [=](NSError **e) { return [encoder growCache:absentObject() toCapacity:8 error:e] != nil; }},
      {grown, @"the number for capacity is out of range",
       [=](NSError **e) { return [encoder growCache:cache toCapacity:kTooLarge error:e] != nil; }},
      {quantized, noCache,
       [=](NSError **e) { return [encoder quantizeCache:absentObject() asStorage:storage error:e] != nil; }},
      {quantized, @"nil was passed for the storage",
       [=](NSError **e) { return [encoder quantizeCache:cache asStorage:absentObject() error:e] != nil; }},
      {@"AttentionCache.dequantize", @"the number for domain is unknown",
       [=](NSError **e) {
         return [encoder dequantizeCache:cache
                                intoKeys:token
                                  values:nil
                                position:0
                                sequence:0
                                  domain:static_cast<MNKKVDomain>(2)
                                   error:e];
       }},
      {@"MultiRoPE", @"nil was passed for positions",
       [=](NSError **e) {
         return [encoder rotateQueries:token keys:nil positions:absentObject() rotary:absentObject() error:e];
       }},
      {@"AttentionCache", @"the call does not say which sequence of the cache it is for",
       [=](NSError **e) { return [cache truncateToPosition:0 error:e]; }},
      {@"AttentionCache", @"the sequence is not in the cache",
       [=](NSError **e) { return [cache resetSequence:kTooLarge error:e]; }},
  }));
}

// A plan has no encoder to ask for them.
- (void)testNextPositionsNeedAnEncoder {
  MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:_token.headsView
                                                        keys:nil
                                                   positions:[MNKRotaryPositions nextPositionsOfCache:_cache
                                                                                            sequences:@[ @0 ]
                                                                                            rowCounts:@[ @9 ]]
                                                      rotary:[[MNKRotaryEmbedding alloc] init]];
  NSError *error = nil;
  XCTAssertFalse([_encoder encodeOperation:rope error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache.nextPositions",
                       @"the rows do not match the listed sequences"));
  XCTAssertNil([rope planForDevice:nil error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MultiRoPE", @"a plan cannot follow a cache"));
}

@end
