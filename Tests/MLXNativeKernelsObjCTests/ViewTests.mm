#import "Generated/Objects.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;

// What codecs, planes and views have besides their fields.
@interface ViewTests : DeviceTestCase
@end

@implementation ViewTests

- (void)testCodecs {
  const std::pair<MNKKVCodec *, KVCodec> codecs[] = {
      {[MNKKVCodec turboWithBits : 4], { .name = KVCodec::Name::turbo, .bits = 4 }},
      {[MNKKVCodec mlx1WithBits : 8], { .name = KVCodec::Name::mlx1, .bits = 8 }},
      {[MNKKVCodec mlx1UnrotatedWithBits : 8], { .name = KVCodec::Name::mlx1Unrotated, .bits = 8 }},
      {[MNKKVCodec mlx1Affine4], { .name = KVCodec::Name::mlx1Affine4, .bits = 4 }},
  };
  for (const auto &[codec, core] : codecs) {
    XCTAssertEqualObjects(codec, objectFor(core));
    XCTAssertEqual(codec.scaleType, static_cast<MNKElementType>(core.scaleType()));
    const auto expected = sizes(core, 512);
    NSError *error = nil;
    MNKKVCodecSizes *got = [codec sizesForHeadDim:512 error:&error];
    XCTAssertEqual(got.codeBytes, expected->codeBytes, @"%@", error);
    XCTAssertEqual(got.scales, expected->scales);
    XCTAssertEqual(got.scaleBytes, expected->scaleBytes);
  }
  NSNumber *bytes = [MNKQuantizedKVCacheView byteCountWithKeys:codecs[0].first
                                                        values:[MNKKVCodec turboWithBits:2]
                                                         heads:2
                                                       headDim:64
                                                  valueHeadDim:32
                                                      capacity:5
                                                     sequences:3
                                                         error:nil];
  XCTAssertEqualObjects(bytes, @(2 * 5 * 3 * (32 + 2 + 8 + 2)));
}

- (MNKQuantizedKVPlane *)zerosWithCodec:(MNKKVCodec *)codec
                              sequences:(NSUInteger)sequences
                                 layout:(uint32_t)layout
                                 device:(MNKDevice *)device
                                  error:(NSError **)error {
  return [MNKQuantizedKVPlane zerosWithCodec:codec
                                       heads:2
                                     headDim:32
                                    capacity:4
                                   sequences:sequences
                                      layout:static_cast<MNKKVLayout>(layout)
                                      device:device
                                       error:error];
}

- (void)testPlanes {
  MNKDevice *device = self.device;
  MNKKVCodec *codec = [MNKKVCodec turboWithBits:8];
  MNKQuantizedKVPlane *plane = [self zerosWithCodec:codec
                                          sequences:3
                                             layout:MNKKVLayoutTokenMajor
                                             device:device
                                              error:nil];
  XCTAssertEqualObjects(plane.codec, codec);
  XCTAssertEqualObjects(plane.codes.shape, (@[ @3, @4, @2, @32 ]));
  XCTAssertEqualObjects(plane.scales.shape, (@[ @3, @4, @2 ]));
  MNKTensor *elements = [self zeros:@[ @1 ]];
  plane = [[MNKQuantizedKVPlane alloc] initWithElements:elements];
  XCTAssertTrue([plane.codes isEqual:elements] && !plane.scales);
  const auto zeros = [=](MNKKVCodec *of, NSUInteger sequences, uint32_t layout, MNKDevice *on) {
    return [=](NSError **e) {
      return [self zerosWithCodec:of sequences:sequences layout:layout device:on error:e] != nil;
    };
  };
  XCTAssertNil(wrongIn({
      {@"QuantizedKVPlane", @"nil was passed for the codec", zeros(absentObject(), 1, MNKKVLayoutHeadMajor, device)},
      {@"QuantizedKVPlane", @"the number for layout is unknown", zeros(codec, 1, 3, device)},
      {@"MNKDevice", @"nil was passed for the device", zeros(codec, 1, MNKKVLayoutHeadMajor, absentObject())},
      {@"KVCodec", @"the number for name is unknown",
       [=](NSError **e) {
         MNKKVCodec *unknown = [[MNKKVCodec alloc] initWithName:static_cast<MNKKVCodecName>(5) bits:4];
         return [unknown sizesForHeadDim:64 error:e] != nil;
       }},
      {@"QuantizedKVCacheView", @"nil was passed for the codec of keys",
       [=](NSError **e) {
         return [MNKQuantizedKVCacheView byteCountWithKeys:absentObject()
                                                    values:nil
                                                     heads:2
                                                   headDim:64
                                              valueHeadDim:0
                                                  capacity:5
                                                 sequences:3
                                                     error:e] != nil;
       }},
  }));
}

- (void)testHeadsOfTensors {
  MNKTensor *tensor = [self zeros:@[ @2, @100 ]];
  XCTAssertEqual(tensor.headsView.layout, MNKKVLayoutTokenMajor);
  XCTAssertEqual([MNKHeadsView viewWithTensor:tensor layout:MNKKVLayoutHeadMajor].layout, MNKKVLayoutHeadMajor);
  const auto columns = [=](MNKTensor *of) {
    return
        [=](NSError **e) { return [MNKHeadsView viewWithColumnsOfTensor:of firstColumn:8 heads:2 headDim:32 error:e]; };
  };
  NSError *error = nil;
  MNKHeadsView *view = columns(tensor)(&error);
  XCTAssertEqualObjects(view.tensor, tensor, @"%@", error);
  XCTAssertEqualObjects(view.strides, objectFor(*HeadsView::columns(coreOf(tensor), 8, 2, 32)).strides);
  XCTAssertNil(wrongIn({{@"HeadsView", @"", columns(absentObject())}}));
}

@end
