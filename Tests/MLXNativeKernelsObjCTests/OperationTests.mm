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
