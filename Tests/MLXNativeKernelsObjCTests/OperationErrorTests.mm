#include "Ops/Common/BindingCases.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Property values that no op accepts: nil despite nonnull, objects of other classes, numbers out of range, unknown enum
// cases. Each is an error, and nothing is recorded.
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
  // Nothing was recorded.
  XCTAssertEqual([_step commitWithError:nil].summary.total.dispatches, 0u);
  [super tearDown];
}

- (void)refuse:(MNKOperation *)operation what:(NSString *)what change:(NSString *)change {
  NSString *op = [NSStringFromClass([operation class]) substringFromIndex:3];
  NSError *planned = nil, *encoded = nil;
  XCTAssertNil([operation planForDevice:self.device error:&planned], @"%@", change);
  XCTAssertNil(wrongIn(planned, MNKErrorInvalidArgument, op, what), @"%@", change);
  XCTAssertFalse([_step encodeOperation:operation error:&encoded], @"%@", change);
  XCTAssertNil(wrongIn(encoded, MNKErrorInvalidArgument, op, what), @"%@", change);
  XCTAssertNil([operation planForDevice:nil error:nil], @"%@", change);
  XCTAssertFalse([_step encodeOperation:operation error:nil], @"%@", change);
}

- (MNKKVCacheWrite *)write {
  MNKKVCacheView *view = [[MNKKVCacheView alloc] initWithKeys:[self zeros:@[ @1, @4, @32 ]] values:nil];
  return [[MNKKVCacheWrite alloc] initWithKeys:_vectors.headsView values:nil destination:view position:0];
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
  return [[MNKKVCacheQuantize alloc] initWithKeys:_vectors.headsView values:nil destination:view position:0];
}

- (MNKFlashDecode *)decode {
  MNKKVCacheView *view = [[MNKKVCacheView alloc] initWithKeys:[self zeros:@[ @1, @4, @32 ]]
                                                       values:[self zeros:@[ @1, @4, @32 ]]];
  return [[MNKFlashDecode alloc] initWithQueries:[self zeros:@[ @1, @32 ]].headsView
                                           cache:view
                                       sequences:@[ [[MNKAttendedSequence alloc] initWithSequence:0 length:3] ]
                                         results:[MNKAttentionResults resultsIntoTensor:[self zeros:@[ @1, @32 ]]]];
}

struct Change {
  NSString *path;
  id value;  // nil is set as well
  NSString *what;
};

// An op, and the single changes that make it invalid.
struct Refusals {
  MNKOperation *sound;
  std::vector<Change> changes;
};

- (std::vector<Refusals>)refusals {
  MNKKVCacheWrite *rows = self.write;
  MNKIntegers *zero = [MNKIntegers integersWithList:@[ @0 ]];
  rows.rows = [[MNKKVCacheWriteRows alloc] initWithSequences:zero positions:zero];
  MNKHadamard *hadamard = [[MNKHadamard alloc] initWithSource:_vectors destination:nil];
  hadamard.signs = @(MNKKVCodecNameTurbo);
  MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:[[MNKHeadsView alloc] initWithTensor:_vectors]
                                                        keys:nil
                                                   positions:[MNKRotaryPositions positionsStartingAt:0]
                                                      rotary:[[MNKRotaryEmbedding alloc] init]];
  MNKAttentionPartials *partials = [[MNKAttentionPartials alloc] initWithSums:[self zeros:@[ @2, @1, @1, @32 ]]
                                                                        stats:[self zeros:@[ @2, @1, @1, @2 ]]];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:[self zeros:@[ @1, @1, @32 ]]];
  MNKAttentionCache *cache = [[MNKAttentionCache alloc]
      initWithDevice:self.device
          descriptor:[MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4]
               error:nil];
  const auto next = [cache](NSArray *sequences, NSArray *rowCounts) {
    return [MNKRotaryPositions nextPositionsOfCache:cache sequences:sequences rowCounts:rowCounts];
  };
  const auto numbers = [](id number) { return [MNKIntegers integersWithList:@[ number ]]; };
  return {
      {self.write,
       {
           {@"keys", nil, @"nil was passed for keys"},
           {@"keys.layout", @3, @"the number for layout is unknown"},
           {@"keys.tensor", nil, @"nil was passed for tensor"},
           {@"destination", nil, @"nil was passed for destination"},
           {@"destination.keys", nil, @""},
           {@"values", _vectors.headsView, @""},
           {@"sourceLayout", @3, @"the number for sourceLayout is unknown"},
           {@"destination.layout", @(UINT32_MAX), @"the number for layout is unknown"},
           {@"destination.wrap", @2, @"the number for wrap is unknown"},
           {@"destination.pinned", @(1ull << 32), @"the number for pinned is out of range"},
           {@"tokens", @-1, @"the number for tokens is out of range"},
           {@"tokens", @0.5, @"the number for tokens is out of range"},
           {@"tokens", @1e20, @"the number for tokens is out of range"},
           {@"tokens", @(NAN), @"the number for tokens is out of range"},
           {@"tokens", @"1", @"another class was passed for tokens"},
           {@"tokens", @2, @""},
           {@"sourceOffset", @(NSUIntegerMax), @""},
           {@"sequence", @1, @""},
           {@"position", @(NSUIntegerMax), @""},
       }},
      {rows,
       {
           {@"rows.positions", numbers(@-1), @"positions"},
           {@"rows.sequences", numbers(@-1), @"sequences"},
           {@"rows.positions", numbers(@4294967296), @"positions"},
           {@"rows.sequences", numbers(@4294967296), @"sequences"},
           {@"rows.positions", numbers(@1.5), @"positions"},
           {@"rows.sequences", numbers(@1.5), @"sequences"},
           {@"rows.positions", numbers(@"0"), @"positions"},
           {@"rows.sequences", numbers(@"0"), @"sequences"},
           {@"rows.positions", numbers([NSNull null]), @"positions"},
           {@"rows.sequences", numbers([NSNull null]), @"sequences"},
           {@"rows.sequences", [MNKIntegers integersWithList:absentObject()], @"nil was passed for"},
           {@"rows.positions", [MNKIntegers integersWithTensor:absentObject()], @"nil was passed for"},
           {@"rows.positions", nil, @"nil was passed for positions"},
       }},
      {self.quantize,
       {
           {@"destination", nil, @"nil was passed for destination"},
           {@"destination.keys", nil, @"nil was passed for keys"},
           {@"destination.keys.codec", nil, @"nil was passed for codec"},
           {@"destination.keys.codes", nil, @""},
           {@"destination.keys.scales", nil, @""},
           {@"destination.keys.codec.name", @4, @"the number for name is unknown"},
           {@"destination.keys.codec.bits", @(1ull << 32), @"the number for bits is out of range"},
           {@"destination.keys.codec.scaleFactor", @0, @"scaleFactor is 0"},
           {@"destination.keys.codes", @"codes", @"another class was passed for codes"},
           {@"options.candidates", @0, @"candidates is 0"},
           {@"options.candidates", @(NSUIntegerMax), @"the number for candidates is out of range"},
           {@"options.keyScale", @3, @"the number for keyScale is unknown"},
           {@"options.valueScale", @3, @"the number for valueScale is unknown"},
           {@"options.nonFinite", @2, @"the number for nonFinite is unknown"},
           {@"counts", _vectors, @""},
           {@"probe", _vectors, @""},
       }},
      {[[MNKKVCacheDequantize alloc] initWithSource:self.quantize.destination keys:_vectors values:nil position:0],
       {
           {@"domain", @2, @"the number for domain is unknown"},
           {@"layout", @9, @"the number for layout is unknown"},
           {@"keys", nil, @""},
       }},
      {hadamard,
       {
           {@"source", nil, @""},
           {@"signs", @4, @"the number for signs is unknown"},
           {@"signs", @-1, @"the number for signs is out of range"},
       }},
      {rope,
       {
           {@"queries", nil, @"nil was passed for queries"},
           {@"queries.tensor", nil, @""},
           {@"queries.layout", @3, @"the number for layout is unknown"},
           {@"queries.strides", [[MNKHeadsViewStrides alloc] init], @""},
           {@"positions", nil, @"nil was passed for positions"},
           {@"positions", [MNKRotaryPositions positionsStartingAt:NSIntegerMax], @""},
           {@"positions", [MNKRotaryPositions positionsPerAxis:absentObject()], @""},
           {@"positions", [MNKRotaryPositions positionsWithTensor:absentObject()], @""},
           {@"positions", [MNKRotaryPositions positionsPerAxis:@[ @[ @1 ], @[] ]], @"different numbers"},
           {@"positions", [MNKRotaryPositions positionsPerAxis:@[ @[], @[ @1 ] ]], @"different numbers"},
           {@"positions", @"positions", @"another class was passed for positions"},
           {@"offsets", @"offsets", @"another class was passed for offsets"},
           {@"queries", @"queries", @"another class was passed for queries"},
           {@"positions", [MNKRotaryPositions positionsPerAxis:@[ @[ @4294967295 ] ]],
            @"the number for a position is out of range"},
           {@"positions", [MNKRotaryPositions positionsPerAxis:@[ @[ (id) @"1" ] ]],
            @"another class was passed for a position"},
           {@"positions", [MNKRotaryPositions positionsPerAxis:@[ (id) @1 ]], @"an axis of positions"},
           {@"positions", [MNKRotaryPositions nextPositionsOfCache:absentObject()], @""},
           {@"positions", next(@[ @-1 ], nil), @"the number for a sequence is out of range"},
           {@"positions", next(absentObject(), nil), @"nil was passed for a sequence"},
           {@"offsets", [MNKIntegers integersWithList:@[ @(-2147483649LL) ]],
            @"the number for offsets is out of range"},
           {@"offsets", [MNKIntegers integersWithTensor:absentObject()], @"nil was passed for offsets"},
           {@"rotary", nil, @"nil was passed for rotary"},
           {@"rotary.layout", @1, @"the number for layout is unknown"},
           {@"rotary.pairing", @3, @"the number for pairing is unknown"},
           {@"rotary.otherAxis", @2, @"the number for otherAxis is unknown"},
           {@"rotary.sections", (@[ @1, @1, @1, @1, @1 ]), @"too many sections"},
           {@"rotary.sections", @[ @-1 ], @"the number for sections is out of range"},
           {@"rotary.sections", @[ [NSNull null] ], @"another class was passed for sections"},
           {@"rotary.frequencyFactors", @[ @"1" ], @"another class was passed for frequencyFactors"},
           {@"rotary.base", @(NAN), @""},
           {@"rotary.ropeDim", @(NSUIntegerMax), @""},
       }},
      {self.decode,
       {
           {@"queries", nil, @"nil was passed for queries"},
           {@"queries.layout", @3, @"the number for layout is unknown"},
           {@"cache", nil, @"nil was passed for cache"},
           {@"cache", @"cache", @"another class was passed for cache"},
           {@"results", nil, @"exactly one target"},
           {@"results", @"results", @"another class was passed for results"},
           {@"results.output", nil, @""},
           {@"sequences", nil, @""},
           {@"sequences", @[ [NSNull null] ], @"another class was passed for sequences"},
           {@"sequences", @[ @0 ], @"another class was passed for sequences"},
           {@"sequences", @[ [[MNKAttendedSequence alloc] initWithSequence:NSUIntegerMax - 1 length:1] ], @""},
           {@"sequences", @[ [[MNKAttendedSequence alloc] initWithSequence:0 length:NSUIntegerMax] ], @""},
           {@"sequences", @[ [[MNKAttendedSequence alloc] initWithSequence:0 length:3 highest:2 rows:0 position:nil] ],
            @""},
           {@"options.window", @(1ull << 32), @"the number for window is out of range"},
           {@"options.splits", @(1ull << 32), @"the number for splits is out of range"},
           {@"options.kernel", @3, @"the number for kernel is unknown"},
           {@"options.merge", @3, @"the number for merge is unknown"},
           {@"scratch", _vectors, @""},
       }},
      {[[MNKMergePartials alloc] initWithParts:partials results:results],
       {
           {@"parts", nil, @"nil was passed for parts"},
           {@"results", nil, @"exactly one target"},
       }},
  };
}

- (void)testInvalidChangesAreRefused {
  NSMutableSet<NSString *> *tried = [NSMutableSet set];
  for (const Refusals &one : self.refusals) {
    [tried addObject:NSStringFromClass([one.sound class])];
    for (const Change &change : one.changes) {
      MNKOperation *operation = [one.sound copy];
      [operation setValue:change.value forKeyPath:change.path];
      [self refuse:operation what:change.what change:[NSString stringWithFormat:@"%@ = %@", change.path, change.value]];
    }
    XCTAssertNotNil([one.sound planForDevice:self.device error:nil], @"%@", one.sound);
  }
  for (const std::string_view name : mnk::test::opNames()) {
    NSString *kind = [NSString stringWithFormat:@"MNK%s", name.data()];
    XCTAssertTrue([tried containsObject:kind], @"%@", kind);
  }
}

// Without options, the defaults apply.
- (void)testNoOptions {
  MNKFlashDecode *plain = self.decode;
  plain.options = absentObject();
  XCTAssertNotNil([plain planForDevice:self.device error:nil]);
}

- (void)testColumnsAndRotations {
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

- (void)testCodecsAndPlanes {
  NSError *error = nil;
  MNKKVCodecSizes *sizes = [[MNKKVCodec turboWithBits:4] sizesForHeadDim:64 error:&error];
  XCTAssertEqual(sizes.codeBytes, 32u);
  XCTAssertEqual(sizes.scales, 1u);
  XCTAssertEqual(sizes.scaleBytes, 2u);
  XCTAssertEqual([[MNKKVCodec mlx1WithBits:8] sizesForHeadDim:512 error:&error].scaleBytes, 8u);
  XCTAssertEqual([[MNKKVCodec mlx1UnrotatedWithBits:8] sizesForHeadDim:512 error:&error].scaleBytes, 8u);
  XCTAssertEqual([[MNKKVCodec mlx1Affine4] sizesForHeadDim:512 error:&error].scaleBytes, 4u);
  XCTAssertEqual([MNKKVCodec turboWithBits:4].scaleType, MNKElementTypeFloat16);
  XCTAssertEqual([MNKKVCodec mlx1WithBits:4].scaleType, MNKElementTypeFloat32);
  XCTAssertNil([[MNKKVCodec turboWithBits:4] sizesForHeadDim:63 error:&error]);
  XCTAssertEqual(error.code, MNKErrorInvalidArgument);
  XCTAssertNil([[MNKKVCodec turboWithBits:9] sizesForHeadDim:64 error:nil]);
  XCTAssertNil(([[[MNKKVCodec alloc] initWithName:static_cast<MNKKVCodecName>(5) bits:4] sizesForHeadDim:64
                                                                                                   error:&error]));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"KVCodec", @"the number for name is unknown"));
  MNKKVCodec *codec = [MNKKVCodec turboWithBits:4], *other = [MNKKVCodec turboWithBits:2];
  NSNumber *bytes = [MNKQuantizedKVCacheView byteCountWithKeys:codec
                                                        values:other
                                                         heads:2
                                                       headDim:64
                                                  valueHeadDim:32
                                                      capacity:5
                                                     sequences:3
                                                         error:&error];
  XCTAssertEqualObjects(bytes, @(2 * 5 * 3 * (32 + 2 + 8 + 2)));
  XCTAssertNil([MNKQuantizedKVCacheView byteCountWithKeys:absentObject()
                                                   values:nil
                                                    heads:2
                                                  headDim:64
                                             valueHeadDim:0
                                                 capacity:5
                                                sequences:3
                                                    error:&error]);
  XCTAssertNil([MNKQuantizedKVCacheView byteCountWithKeys:codec
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
                                            layout:static_cast<MNKKVLayout>(3)
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
