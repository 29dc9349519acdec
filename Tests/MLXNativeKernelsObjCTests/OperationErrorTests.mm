#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// What properties can hold that no op takes: nil where the headers say nonnull, objects of other classes, numbers that
// are none, enum cases that are none. Each is an error, and none is followed.
@interface OperationErrorTests : DeviceTestCase
@end

@implementation OperationErrorTests {
  MNKTensor *_vectors;
  MNKCommandEncoder *_step;
}

- (void)setUp {
  [super setUp];
  _vectors = [self zeros:@[ @1, @1, @32 ]];
  _step = [self.device commandEncoder];
}

- (void)tearDown {
  // Nothing of it was recorded.
  XCTAssertEqual([_step commitWithError:nil].summary.total.dispatches, 0u);
  [super tearDown];
}

- (void)refuse:(MNKOperation *)operation op:(NSString *)op what:(NSString *)what line:(int)line {
  NSError *planned = nil, *encoded = nil;
  XCTAssertNil([operation planForDevice:self.device error:&planned], @"line %d", line);
  XCTAssertNil(wrongIn(planned, MNKErrorInvalidArgument, op, what), @"line %d", line);
  XCTAssertFalse([_step encodeOperation:operation error:&encoded], @"line %d", line);
  XCTAssertNil(wrongIn(encoded, MNKErrorInvalidArgument, op, what), @"line %d", line);
  XCTAssertNil([operation planForDevice:nil error:nil], @"line %d", line);
  XCTAssertFalse([_step encodeOperation:operation error:nil], @"line %d", line);
}

struct Change {
  NSString *path;
  id value;  // nil is set as such
  NSString *what;
};

// Each change by itself makes the op one that is refused.
- (void)refuse:(const std::vector<Change> &)changes of:(MNKOperation * (^)(void))make op:(NSString *)op {
  XCTAssertNotNil([make() planForDevice:self.device error:nil]);
  for (size_t i = 0; i < changes.size(); ++i) {
    MNKOperation *operation = make();
    [operation setValue:changes[i].value forKeyPath:changes[i].path];
    [self refuse:operation op:op what:changes[i].what line:static_cast<int>(i)];
  }
}

- (MNKKVCacheWrite *)write {
  MNKKVCacheView *view = [[MNKKVCacheView alloc] initWithKeys:[self zeros:@[ @1, @4, @32 ]] values:nil];
  return [[MNKKVCacheWrite alloc] initWithKeys:_vectors values:nil intoCache:view position:0];
}

- (MNKKVCacheQuantize *)quantize {
  MNKQuantizedKVPlane *plane = [MNKQuantizedKVPlane zerosWithCodec:[MNKKVCodec turboWithBits:4]
                                                             heads:1
                                                           headDim:32
                                                          capacity:4
                                                         sequences:0
                                                            layout:MNKKVLayoutHeadMajor
                                                            device:self.device
                                                             error:nil];
  MNKQuantizedKVCacheView *view = [[MNKQuantizedKVCacheView alloc] initWithKeys:plane values:nil];
  return [[MNKKVCacheQuantize alloc] initWithKeys:_vectors values:nil intoCache:view position:0];
}

- (void)testKVCacheWrite {
  const std::vector<Change> changes{
      {@"keys", nil, @""},
      {@"cache", nil, @"nil was passed for the cache"},
      {@"cache.keys", nil, @""},
      {@"values", _vectors, @""},
      {@"keysView", nil, @"nil was passed for a view of heads"},
      {@"keysView.layout", @2, @"the layout is unknown"},
      {@"valuesView", [[MNKHeadsView alloc] initWithTensor:_vectors], @""},
      {@"sourceLayout", @2, @"the layout is unknown"},
      {@"cache.layout", @(UINT32_MAX), @"the layout is unknown"},
      {@"cache.wrap", @2, @"the wrap is unknown"},
      {@"cache.pinned", @(1ull << 32), @"the number for pinned is out of range"},
      {@"tokens", @-1, @"the number for tokens is out of range"},
      {@"tokens", @0.5, @"the number for tokens is out of range"},
      {@"tokens", @1e20, @"the number for tokens is out of range"},
      {@"tokens", @(NAN), @"the number for tokens is out of range"},
      {@"tokens", @"1", @"another class was passed for tokens"},
      {@"tokens", @2, @""},
      {@"sourceOffset", @(NSUIntegerMax), @""},
      {@"sequence", @1, @""},
      {@"position", @(NSUIntegerMax), @""},
      {@"rowSequences", [MNKIntegers integersWithList:@[ @0 ]], @"only one of sequences and positions"},
      {@"rowPositions", [MNKIntegers integersWithList:@[ @0 ]], @"only one of sequences and positions"},
  };
  [self refuse:changes
            of:^MNKOperation * {
              return self.write;
            }
            op:@"KVCacheWrite"];
  for (id number in @[ @-1, @4294967296, @1.5, @"0", [NSNull null] ]) {
    MNKKVCacheWrite *op = self.write;
    op.rowSequences = [MNKIntegers integersWithList:@[ @0 ]];
    op.rowPositions = [MNKIntegers integersWithList:@[ number ]];
    [self refuse:op op:@"KVCacheWrite" what:@"a row's position" line:__LINE__];
    op.rowSequences = [MNKIntegers integersWithList:@[ number ]];
    [self refuse:op op:@"KVCacheWrite" what:@"a row's sequence" line:__LINE__];
  }
  MNKKVCacheWrite *op = self.write;
  op.rowSequences = [MNKIntegers integersWithList:absentObject()];
  op.rowPositions = [MNKIntegers integersWithTensor:absentObject()];
  [self refuse:op op:@"KVCacheWrite" what:@"nil was passed for" line:__LINE__];
}

- (void)testKVCacheQuantizeAndDequantize {
  const std::vector<Change> changes{
      {@"cache", nil, @"nil was passed for the cache"},
      {@"cache.keys", nil, @"nil was passed for the keys of the cache"},
      {@"cache.keys.codec", nil, @"nil was passed for the codec"},
      {@"cache.keys.codes", nil, @""},
      {@"cache.keys.scales", nil, @""},
      {@"cache.keys.codec.name", @2, @"the codec is unknown"},
      {@"cache.keys.codec.bits", @(1ull << 32), @"the number for bits is out of range"},
      {@"options.candidates", @(NSUIntegerMax), @"the number for candidates is out of range"},
      {@"options.keyScale", @2, @"scale of keys is unknown"},
      {@"options.valueScale", @2, @"scale of values is unknown"},
      {@"options.nonFinite", @2, @"not finite is unknown"},
      {@"counts", _vectors, @""},
      {@"probe", _vectors, @""},
  };
  [self refuse:changes
            of:^MNKOperation * {
              return self.quantize;
            }
            op:@"KVCacheQuantize"];
  MNKKVCacheDequantize *read = [[MNKKVCacheDequantize alloc] initWithCache:self.quantize.cache
                                                                      keys:_vectors
                                                                    values:nil
                                                                  position:0];
  read.domain = static_cast<MNKKVDomain>(2);
  [self refuse:read op:@"KVCacheDequantize" what:@"the domain is unknown" line:__LINE__];
  read.domain = MNKKVDomainOriginal;
  read.layout = static_cast<MNKKVLayout>(9);
  [self refuse:read op:@"KVCacheDequantize" what:@"the layout is unknown" line:__LINE__];
  read.layout = MNKKVLayoutTokenMajor;
  read.keys = nil;
  [self refuse:read op:@"KVCacheDequantize" what:@"" line:__LINE__];
}

- (void)testMultiRoPE {
  MNKOperation * (^make)(void) = ^MNKOperation * {
    return [[MNKMultiRoPE alloc] initWithQueries:[[MNKHeadsView alloc] initWithTensor:self->_vectors]
                                            keys:nil
                                       positions:[MNKRotaryPositions positionsStartingAt:0]
                                          rotary:[[MNKRotaryEmbedding alloc] init]];
  };
  const std::vector<Change> changes{
      {@"queries", nil, @"nil was passed for a view of heads"},
      {@"queries.tensor", nil, @""},
      {@"queries.layout", @2, @"the layout is unknown"},
      {@"queries.strides", [[MNKHeadsStrides alloc] init], @""},
      {@"positions", nil, @"nil was passed for positions"},
      {@"positions", [MNKRotaryPositions positionsStartingAt:NSIntegerMax], @""},
      {@"positions", [MNKRotaryPositions positionsPerAxis:absentObject()], @""},
      {@"positions", [MNKRotaryPositions positionsWithTensor:absentObject()], @""},
      {@"positions", [MNKRotaryPositions positionsPerAxis:@[ @[ @1 ], @[] ]], @"different numbers"},
      {@"positions", [MNKRotaryPositions positionsPerAxis:@[ @[], @[ @1 ] ]], @""},
      {@"positions", [MNKRotaryPositions positionsPerAxis:@[ @[ @4294967295 ] ]],
       @"the number for a position is out of range"},
      {@"positions", [MNKRotaryPositions positionsPerAxis:@[ @[ (id) @"1" ] ]],
       @"another class was passed for a position"},
      {@"positions", [MNKRotaryPositions positionsPerAxis:@[ (id) @1 ]], @"an axis of positions"},
      {@"offsets", [MNKIntegers integersWithList:@[ @(-2147483649LL) ]], @"the number for an offset is out of range"},
      {@"offsets", [MNKIntegers integersWithTensor:absentObject()], @"nil was passed for an offset"},
      {@"rotary", nil, @"nil was passed for the rotary embedding"},
      {@"rotary.layout", @1, @"the rotary layout is unknown"},
      {@"rotary.pairing", @3, @"the pairing is unknown"},
      {@"rotary.otherAxis", @2, @"the other axis is unknown"},
      {@"rotary.sections", (@[ @1, @1, @1, @1, @1 ]), @"too many sections"},
      {@"rotary.sections", @[ @-1 ], @"the number for a section is out of range"},
      {@"rotary.sections", @[ [NSNull null] ], @"another class was passed for a section"},
      {@"rotary.frequencyFactors", @[ @"1" ], @"another class was passed for a frequency factor"},
      {@"rotary.base", @(NAN), @""},
      {@"rotary.ropeDim", @(NSUIntegerMax), @""},
  };
  [self refuse:changes of:make op:@"MultiRoPE"];
  NSError *error = nil;
  XCTAssertNil([MNKHeadsView viewWithColumnsOfTensor:absentObject() firstColumn:0 heads:1 headDim:32 error:&error]);
  XCTAssertEqual(error.code, MNKErrorInvalidArgument);
  XCTAssertNil([MNKHeadsView viewWithColumnsOfTensor:[self zeros:@[ @4 ]] firstColumn:0 heads:1 headDim:4 error:nil]);
  MNKHeadsView *columns = [MNKHeadsView viewWithColumnsOfTensor:[self zeros:@[ @2, @100 ]]
                                                    firstColumn:8
                                                          heads:2
                                                        headDim:32
                                                          error:&error];
  XCTAssertEqual(columns.strides.offset, 8u);
  XCTAssertEqual(columns.strides.tokenStride, 100u);
  XCTAssertEqual(columns.strides.headStride, 32u);
  XCTAssertFalse([_step rotateQueries:absentObject()
                                 keys:nil
                            positions:absentObject()
                               rotary:absentObject()
                                error:&error]);
}

- (void)testFlashDecodeAndMergePartials {
  MNKKVCacheView *view = [[MNKKVCacheView alloc] initWithKeys:[self zeros:@[ @1, @4, @32 ]]
                                                       values:[self zeros:@[ @1, @4, @32 ]]];
  MNKTensor *queries = [self zeros:@[ @1, @32 ]], *out = [self zeros:@[ @1, @32 ]];
  MNKOperation * (^make)(void) = ^MNKOperation * {
    return [[MNKFlashDecode alloc] initWithQueries:queries
                                         overCache:view
                                         sequences:@[ [[MNKAttendedSequence alloc] initWithSequence:0 length:3] ]
                                           results:[MNKAttentionResults resultsIntoTensor:out]];
  };
  MNKQuantizedKVCacheView *quantized = self.quantize.cache;
  const std::vector<Change> changes{
      {@"queries", nil, @""},
      {@"queriesView", nil, @"nil was passed for a view of heads"},
      {@"queriesView.layout", @2, @"the layout is unknown"},
      {@"cache", nil, @"not one of dense and quantized"},
      {@"quantizedCache", quantized, @"not one of dense and quantized"},
      {@"results", nil, @"nil was passed for results"},
      {@"results.output", nil, @""},
      {@"sequences", nil, @""},
      {@"sequences", @[ [NSNull null] ], @"another class was passed for a sequence"},
      {@"sequences", @[ @0 ], @"another class was passed for a sequence"},
      {@"sequences", @[ [[MNKAttendedSequence alloc] initWithSequence:NSUIntegerMax length:1] ], @""},
      {@"sequences", @[ [[MNKAttendedSequence alloc] initWithSequence:0 length:NSUIntegerMax] ], @""},
      {@"sequences", @[ [[MNKAttendedSequence alloc] initWithSequence:0 length:3 highest:2] ], @""},
      {@"options.window", @(1ull << 32), @"the number for window is out of range"},
      {@"options.splits", @(1ull << 32), @"the number for splits is out of range"},
      {@"options.kernel", @3, @"the kernel is unknown"},
      {@"options.merge", @3, @"the merge is unknown"},
      {@"options.scale", @(NAN), @""},
      {@"scratch", queries, @""},
  };
  [self refuse:changes of:make op:@"FlashDecode"];
  // Without options there are the defaults.
  MNKOperation *plain = make();
  [plain setValue:nil forKey:@"options"];
  XCTAssertNotNil([plain planForDevice:self.device error:nil]);
  MNKMergePartials *merge = [[MNKMergePartials alloc] initWithPartials:absentObject() results:absentObject()];
  [self refuse:merge op:@"MergePartials" what:@"nil was passed for results" line:__LINE__];
  merge.results = [MNKAttentionResults resultsIntoTensor:out];
  [self refuse:merge op:@"MergePartials" what:@"" line:__LINE__];
  MNKHadamard *turn = [[MNKHadamard alloc] initWithSource:absentObject() intoTensor:nil];
  [self refuse:turn op:@"Hadamard" what:@"" line:__LINE__];
  turn.source = _vectors;
  turn.usesSigns = YES;
  turn.codec = static_cast<MNKKVCodecName>(2);
  [self refuse:turn op:@"Hadamard" what:@"the codec is unknown" line:__LINE__];
}

- (void)testCodecsAndPlanes {
  NSError *error = nil;
  MNKKVCodecSizes *sizes = [[MNKKVCodec turboWithBits:4] sizesForHeadDim:64 error:&error];
  XCTAssertEqual(sizes.codeBytes, 32u);
  XCTAssertEqual(sizes.scales, 1u);
  XCTAssertEqual(sizes.scaleBytes, 2u);
  XCTAssertEqual([[MNKKVCodec mlx1WithBits:8] sizesForHeadDim:512 error:&error].scaleBytes, 8u);
  XCTAssertEqual([MNKKVCodec turboWithBits:4].scaleType, MNKElementTypeFloat16);
  XCTAssertEqual([MNKKVCodec mlx1WithBits:4].scaleType, MNKElementTypeFloat32);
  XCTAssertNil([[MNKKVCodec turboWithBits:4] sizesForHeadDim:63 error:&error]);
  XCTAssertEqual(error.code, MNKErrorInvalidArgument);
  XCTAssertNil([[MNKKVCodec turboWithBits:9] sizesForHeadDim:64 error:nil]);
  XCTAssertNil(([[[MNKKVCodec alloc] initWithName:static_cast<MNKKVCodecName>(5) bits:4] sizesForHeadDim:64
                                                                                                   error:&error]));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"KVCodec", @"the codec is unknown"));
  MNKKVCodec *codec = [MNKKVCodec turboWithBits:4], *other = [MNKKVCodec turboWithBits:2];
  NSNumber *bytes = [MNKQuantizedKVCacheView bytesWithKeys:codec
                                                    values:other
                                                     heads:2
                                                   headDim:64
                                              valueHeadDim:32
                                                  capacity:5
                                                 sequences:3
                                                     error:&error];
  XCTAssertEqualObjects(bytes, @(2 * 5 * 3 * (32 + 2 + 8 + 2)));
  XCTAssertNil([MNKQuantizedKVCacheView bytesWithKeys:absentObject()
                                               values:nil
                                                heads:2
                                              headDim:64
                                         valueHeadDim:0
                                             capacity:5
                                            sequences:3
                                                error:&error]);
  XCTAssertNil([MNKQuantizedKVCacheView bytesWithKeys:codec
                                               values:nil
                                                heads:NSUIntegerMax
                                              headDim:64
                                         valueHeadDim:0
                                             capacity:NSUIntegerMax
                                            sequences:3
                                                error:&error]);
  XCTAssertNil([MNKQuantizedKVPlane zerosWithCodec:absentObject()
                                             heads:1
                                           headDim:32
                                          capacity:1
                                         sequences:1
                                            layout:MNKKVLayoutHeadMajor
                                            device:self.device
                                             error:&error]);
  XCTAssertNil([MNKQuantizedKVPlane zerosWithCodec:codec
                                             heads:1
                                           headDim:31
                                          capacity:1
                                         sequences:1
                                            layout:MNKKVLayoutHeadMajor
                                            device:self.device
                                             error:&error]);
  XCTAssertNil([MNKQuantizedKVPlane zerosWithCodec:codec
                                             heads:1
                                           headDim:32
                                          capacity:1
                                         sequences:1
                                            layout:static_cast<MNKKVLayout>(2)
                                            device:self.device
                                             error:&error]);
  XCTAssertNil([MNKQuantizedKVPlane zerosWithCodec:codec
                                             heads:NSUIntegerMax
                                           headDim:32
                                          capacity:1
                                         sequences:NSUIntegerMax
                                            layout:MNKKVLayoutHeadMajor
                                            device:self.device
                                             error:nil]);
}

@end
