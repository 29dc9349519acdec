#import "Support/DeviceTestCase.h"

// Features of ops in this binding only; OperationPlanTests compares ops with those of C++.
@interface OperationTests : DeviceTestCase
@end

@implementation OperationTests

- (void)testAStepCanRotate {
  MNKTensor *queries = [self numbers:@[ @2, @2, @16 ] seed:8], *keys = [self numbers:@[ @2, @1, @16 ] seed:9];
  const auto beforeQueries = [self floatsOf:queries], beforeKeys = [self floatsOf:keys];
  MNKRotaryEmbedding *rotary = [[MNKRotaryEmbedding alloc] init];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step rotateQueries:queries
                          keys:keys
                     positions:[MNKRotaryPositions positionsStartingAt:7]
                        rotary:rotary
                         error:error];
  }];
  const auto turned = [self floatsOf:queries], turnedKeys = [self floatsOf:keys];
  XCTAssertEqualWithAccuracy(turned[0], beforeQueries[0] * cos(7) - beforeQueries[8] * sin(7), 1e-5);
  XCTAssertEqualWithAccuracy(turnedKeys[16 + 8], beforeKeys[16] * sin(8) + beforeKeys[24] * cos(8), 1e-5);
  rotary.inverse = YES;
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step rotateQueries:queries
                          keys:nil
                     positions:[MNKRotaryPositions positionsPerAxis:@[ @[ @7, @8 ] ]]
                        rotary:rotary
                         error:error];
  }];
  const auto again = [self floatsOf:queries];
  for (size_t i = 0; i < again.size(); ++i) XCTAssertEqualWithAccuracy(again[i], beforeQueries[i], 1e-5);
}

// A tensor property is the tensor of a token-major view, and an op copies its arguments.
- (void)testTensorsAndViewsOfOperations {
  MNKTensor *one = [self zeros:@[ @1, @1, @32 ]], *two = [self zeros:@[ @1, @2, @32 ]];
  MNKKVCacheView *dense = [[MNKKVCacheView alloc] initWithKeys:one values:nil];
  MNKQuantizedKVPlane *plane = [[MNKQuantizedKVPlane alloc] initWithCodec:[MNKKVCodec turboWithBits:4]
                                                                    codes:one
                                                                   scales:one];
  MNKQuantizedKVCacheView *quantized = [[MNKQuantizedKVCacheView alloc] initWithKeys:plane values:nil];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:one];
  MNKHeadsView *view = [MNKHeadsView viewWithTensor:one layout:MNKKVLayoutHeadMajor], *same = [view copy];
  MNKHeadsView *plain = [[MNKHeadsView alloc] initWithTensor:two];
  NSArray<MNKKVCacheStore *> *stores = @[
    [[MNKKVCacheWrite alloc] initWithKeysView:view valuesView:view intoCache:dense position:1],
    [[MNKKVCacheQuantize alloc] initWithKeysView:view valuesView:view intoCache:quantized position:1]
  ];
  NSArray<MNKFlashDecode *> *decodes = @[
    [[MNKFlashDecode alloc] initWithQueriesView:view overCache:dense sequences:@[] results:results],
    [[MNKFlashDecode alloc] initWithQueriesView:view overQuantizedCache:quantized sequences:@[] results:results]
  ];
  view.layout = MNKKVLayoutTokenMajor;
  for (MNKKVCacheStore *store in stores) {
    XCTAssertEqual(store.position, 1u);
    XCTAssertEqualObjects(store.keysView, same);
    XCTAssertEqualObjects(store.valuesView, same);
    XCTAssertEqualObjects(store.keys, one);
    XCTAssertEqualObjects(store.values, one);
    store.keys = store.values = two;
    XCTAssertEqualObjects(store.keysView, plain);
    XCTAssertEqualObjects(store.valuesView, plain);
    store.values = nil;
    XCTAssertNil(store.valuesView);
    XCTAssertNil(store.values);
  }
  for (MNKFlashDecode *decode in decodes) {
    XCTAssertEqualObjects(decode.queriesView, same);
    XCTAssertEqualObjects(decode.queries, one);
    decode.queries = two;
    XCTAssertEqualObjects(decode.queriesView, plain);
  }
  XCTAssertEqual(decodes[0].cache != nil, decodes[1].quantizedCache != nil);
}

- (void)testPlanesOfZeros {
  MNKQuantizedKVPlane *plane = [MNKQuantizedKVPlane zerosWithCodec:[MNKKVCodec turboWithBits:8]
                                                             heads:2
                                                           headDim:32
                                                          capacity:4
                                                         sequences:3
                                                            layout:MNKKVLayoutTokenMajor
                                                            device:self.device
                                                             error:nil];
  XCTAssertEqualObjects(plane.codec, [MNKKVCodec turboWithBits:8]);
  XCTAssertEqualObjects(plane.codes.shape, (@[ @3, @4, @2, @32 ]));
  XCTAssertEqualObjects(plane.scales.shape, (@[ @3, @4, @2 ]));
}

@end
