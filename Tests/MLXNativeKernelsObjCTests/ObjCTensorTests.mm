#include <cmath>

#include "Harness/SoftFloat.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface ObjCTensorTests : DeviceTestCase
@end

@implementation ObjCTensorTests

- (void)testANewTensorIsZeroAndReportsItsExtents {
  MNKTensor *tensor = [self zeros:@[ @2, @3, @4 ] type:MNKElementTypeUInt16];
  XCTAssertEqualObjects(tensor.shape, (@[ @2, @3, @4 ]));
  XCTAssertEqual(tensor.count, 24u);
  XCTAssertEqual(tensor.byteCount, 48u);
  XCTAssertEqual(tensor.byteOffset, 0u);
  XCTAssertEqual(tensor.elementType, MNKElementTypeUInt16);
  XCTAssertEqualObjects([tensor dataWithError:nil], [NSMutableData dataWithLength:48]);
  XCTAssertEqualObjects(tensor.description, @"u16 [2, 3, 4]");
  MNKTensor *single = [self zeros:@[]];
  XCTAssertEqual(single.count, 1u);
  MNKTensor *empty = [self zeros:@[ @0, @4 ]];
  XCTAssertEqual(empty.byteCount, 0u);
  XCTAssertEqual([empty dataWithError:nil].length, 0u);
  XCTAssertTrue([empty writeFloats:absentMemory<float>() count:0 error:nil]);
}

- (void)testElementTypesHaveTheirSizes {
  const NSUInteger sizes[] = {4, 2, 2, 1, 2, 4, 4};
  for (uint32_t type = 0; type < 7; ++type)
    XCTAssertEqual(MNKElementTypeSize(static_cast<MNKElementType>(type)), sizes[type]);
  XCTAssertEqual(MNKElementTypeSize(static_cast<MNKElementType>(7)), 0u);
  XCTAssertEqual(MNKElementTypeSize(static_cast<MNKElementType>(UINT32_MAX)), 0u);
}

- (void)testFloatsAndBytesRoundTrip {
  const float numbers[] = {1, -2.5f, 0.25f, 1024, 0, -0.0f};
  for (const MNKElementType type : {MNKElementTypeFloat32, MNKElementTypeFloat16, MNKElementTypeBFloat16}) {
    NSError *error = nil;
    MNKTensor *tensor = [MNKTensor tensorWithFloats:numbers
                                              shape:@[ @3, @2 ]
                                        elementType:type
                                             device:self.device
                                              error:&error];
    XCTAssertNotNil(tensor, @"%@", error);
    const auto got = [self floatsOf:tensor];
    for (size_t i = 0; i < 6; ++i) {
      XCTAssertEqual(got[i], numbers[i]);
      XCTAssertEqual(std::signbit(got[i]), std::signbit(numbers[i]));
    }
    NSData *bytes = [tensor dataWithError:nil];
    MNKTensor *same = [MNKTensor tensorWithData:bytes shape:@[ @6 ] elementType:type device:self.device error:&error];
    XCTAssertEqualObjects([same dataWithError:nil], bytes);
    XCTAssertTrue([same writeData:(NSMutableData *_Nonnull)[NSMutableData dataWithLength:bytes.length] error:nil]);
    XCTAssertEqual([self floatOf:same at:0], 0);
    XCTAssertEqual([self floatOf:tensor at:0], 1);
  }
  const int32_t whole[] = {-1, 7};
  MNKTensor *integers = [MNKTensor tensorWithData:[NSData dataWithBytes:whole length:sizeof whole]
                                            shape:@[ @2 ]
                                      elementType:MNKElementTypeInt32
                                           device:self.device
                                            error:nil];
  XCTAssertEqual(memcmp([integers dataWithError:nil].bytes, whole, sizeof whole), 0);
}

// Every 16-bit pattern is read, and every number is rounded, like the reference.
- (void)testHalvesMatchTheReference {
  for (const auto &[type, dtype] :
       {std::pair{MNKElementTypeFloat16, mnk::DType::f16}, std::pair{MNKElementTypeBFloat16, mnk::DType::bf16}}) {
    std::vector<uint16_t> patterns(65536);
    for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
    MNKTensor *tensor = [MNKTensor tensorWithData:[NSData dataWithBytes:patterns.data() length:131072]
                                            shape:@[ @65536 ]
                                      elementType:type
                                           device:self.device
                                            error:nil];
    const auto floats = [self floatsOf:tensor];
    size_t wrong = 0;
    std::vector<float> between;
    for (size_t i = 0; i < patterns.size(); ++i) {
      const double due = mnk::test::valueOf(dtype, i);
      wrong += std::isnan(due) ? !std::isnan(floats[i]) : floats[i] != due;
      // The number, its neighbors, and the tie to the next number with its neighbors.
      const float next = i + 1 < patterns.size() ? static_cast<float>(mnk::test::valueOf(dtype, i + 1)) : 0;
      const float tie = floats[i] + (next - floats[i]) / 2;
      for (const float number : {floats[i], tie}) {
        between.insert(between.end(), {std::nextafterf(number, -INFINITY), number, std::nextafterf(number, INFINITY)});
      }
    }
    XCTAssertEqual(wrong, 0u);
    between.push_back(std::numeric_limits<float>::max());
    between.push_back(-std::numeric_limits<float>::denorm_min());
    MNKTensor *rounded = [MNKTensor tensorWithFloats:between.data()
                                               shape:@[ @(between.size()) ]
                                         elementType:type
                                              device:self.device
                                               error:nil];
    NSData *data = [rounded dataWithError:nil];
    const auto *bits = static_cast<const uint16_t *>(data.bytes);
    for (size_t i = 0; i < between.size(); ++i) {
      const bool isNaN = std::isnan(between[i]);
      wrong += isNaN ? !mnk::test::isNaN(dtype, bits[i]) : bits[i] != mnk::test::nearestBits(dtype, between[i]);
    }
    XCTAssertEqual(wrong, 0u);
  }
}

- (void)testSlicesAndReshapedTensorsShareMemory {
  MNKTensor *tensor = [self zeros:@[ @4, @3 ]];
  MNKTensor *slice = [tensor sliceWithRange:NSMakeRange(1, 2) error:nil];
  XCTAssertEqualObjects(slice.shape, (@[ @2, @3 ]));
  XCTAssertEqual(slice.byteOffset, 12u);
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  XCTAssertTrue([slice writeFloats:numbers count:6 error:nil]);
  MNKTensor *flat = [tensor reshapedTo:@[ @12 ] error:nil];
  XCTAssertTrue([self floatsOf:flat] == (std::vector<float>{0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0}));
  MNKTensor *inner = [slice sliceWithRange:NSMakeRange(1, 1) error:nil];
  XCTAssertEqual(inner.byteOffset, 24u);
  XCTAssertEqual([tensor sliceWithRange:NSMakeRange(4, 0) error:nil].count, 0u);
}

- (void)testASliceKeepsTheMemoryAlive {
  MNKTensor *slice = nil;
  @autoreleasepool {
    MNKTensor *tensor = [self floats:{1, 2, 3, 4} shape:@[ @4 ]];
    slice = [tensor sliceWithRange:NSMakeRange(2, 2) error:nil];
  }
  XCTAssertTrue([self floatsOf:slice] == (std::vector<float>{3, 4}));
}

- (void)testEqualityComparesMemoryTypeAndShape {
  MNKTensor *tensor = [self zeros:@[ @4, @3 ]];
  MNKTensor *same = [[tensor reshapedTo:@[ @12 ] error:nil] reshapedTo:@[ @4, @3 ] error:nil];
  XCTAssertNotIdentical(same, tensor);
  XCTAssertEqualObjects(same, tensor);
  XCTAssertEqual(same.hash, tensor.hash);
  XCTAssertTrue([same isEqualToTensor:tensor]);
  XCTAssertFalse([same isEqualToTensor:absentObject()]);
  XCTAssertNotEqualObjects([tensor reshapedTo:@[ @12 ] error:nil], tensor);
  XCTAssertNotEqualObjects([tensor sliceWithRange:NSMakeRange(0, 3) error:nil], tensor);
  XCTAssertNotEqualObjects([tensor sliceWithRange:NSMakeRange(0, 1) error:nil], [tensor sliceWithRange:NSMakeRange(1, 1)
                                                                                                 error:nil]);
  XCTAssertNotEqualObjects(([self zeros:@[ @4, @3 ]]), tensor);
  XCTAssertNotEqualObjects(tensor, @"f32 [4, 3]");
  NSSet *different = [NSSet setWithArray:@[ tensor, same, [self zeros:@[ @4, @3 ]] ]];
  XCTAssertEqual(different.count, 2u);
}

static MNKTensor *makeTensor(ObjCTensorTests *self, NSArray *shape, MNKElementType type, NSError **error) {
  *error = nil;
  return [MNKTensor zerosWithShape:shape elementType:type device:self.device error:error];
}

- (void)testInvalidTensorsAreRefused {
  NSError *error = nil;
  const float number = 1;
  XCTAssertNil((makeTensor(self, @[ @2 ], static_cast<MNKElementType>(9), &error)));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"the number for element type is unknown"));
  XCTAssertNil((makeTensor(self, @[ @1, @1, @1, @1, @1, @1, @1, @1, @1 ], MNKElementTypeFloat32, &error)));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"too many extents"));
  XCTAssertNil((makeTensor(self, absentObject(), MNKElementTypeFloat32, &error)));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"nil was passed for the shape"));
  XCTAssertNil((makeTensor(self, @[ @(UINT64_MAX), @2 ], MNKElementTypeFloat32, &error)));
  XCTAssertEqual(error.code, MNKErrorInvalidArgument);
  error = nil;
  XCTAssertNil([MNKTensor zerosWithShape:@[ @2 ] elementType:MNKElementTypeFloat32 device:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MNKDevice", @"nil was passed for the device"));
  XCTAssertNil([MNKTensor tensorWithFloats:absentMemory<float>()
                                     shape:@[ @2 ]
                               elementType:MNKElementTypeFloat32
                                    device:self.device
                                     error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"floats are missing"));
  XCTAssertNil([MNKTensor tensorWithFloats:&number
                                     shape:@[ @1 ]
                               elementType:MNKElementTypeUInt8
                                    device:self.device
                                     error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"not of a float type"));
  XCTAssertNil([MNKTensor tensorWithData:[NSData data]
                                   shape:@[ @1 ]
                             elementType:MNKElementTypeUInt8
                                  device:self.device
                                   error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"number of bytes"));
  XCTAssertNil([MNKTensor tensorWithData:absentObject()
                                   shape:@[ @0 ]
                             elementType:MNKElementTypeUInt8
                                  device:self.device
                                   error:&error]);
  XCTAssertNil([MNKTensor zerosWithShape:@[ @-1 ] elementType:MNKElementTypeFloat32 device:self.device error:nil]);
}

// Objects a shape may contain at run time, despite its type.
- (void)testExtentsMustBeWholeNumbers {
  NSArray *extents = @[
    @-1, @2.5, @(-0.5), @1e30, @-1e30, @(INFINITY), @(NAN), @"2", [NSNull null], @[ @2 ], @(1.8446744073709552e19),
    @(INT64_MIN)
  ];
  for (id extent in extents) {
    NSError *error = nil;
    XCTAssertNil((makeTensor(self, @[ @2, extent ], MNKElementTypeUInt8, &error)), @"%@", extent);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"an extent of the shape"), @"%@", extent);
    MNKTensor *ready = [self zeros:@[ @2 ]];
    XCTAssertNil([ready reshapedTo:@[ extent ] error:&error]);
    XCTAssertNil([ready reshapedTo:@[ extent ] error:nil]);
  }
  NSError *error = nil;
  XCTAssertNotNil((makeTensor(self, @[ @2.0, @YES ], MNKElementTypeUInt8, &error)));
}

- (void)testMismatchedReadsWritesAndViewsAreRefused {
  MNKTensor *tensor = [self floats:{1, 2, 3, 4} shape:@[ @2, @2 ]];
  float numbers[5] = {9, 9, 9, 9, 9};
  NSError *error = nil;
  XCTAssertFalse([tensor readFloats:numbers count:5 error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"number of floats"));
  XCTAssertEqual(numbers[0], 9);
  XCTAssertFalse([tensor writeFloats:numbers count:3 error:&error]);
  XCTAssertFalse([tensor readFloats:absentMemory<float>() count:4 error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"floats are missing"));
  XCTAssertFalse([tensor writeFloats:absentMemory<float>() count:4 error:nil]);
  XCTAssertFalse([tensor writeData:(NSMutableData *_Nonnull)[NSMutableData dataWithLength:15] error:&error]);
  XCTAssertFalse([tensor writeData:absentObject() error:&error]);
  XCTAssertFalse([[self zeros:@[ @4 ] type:MNKElementTypeInt32] readFloats:numbers count:4 error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Tensor", @"not of a float type"));
  for (const NSRange range : {NSRange{1, 2}, NSRange{3, 0}, NSRange{NSNotFound, 1}, NSRange{1, NSUIntegerMax},
                              NSRange{NSUIntegerMax, NSUIntegerMax}}) {
    error = nil;
    XCTAssertNil([tensor sliceWithRange:range error:&error]);
    XCTAssertEqual(error.code, MNKErrorInvalidArgument);
  }
  XCTAssertNil([tensor reshapedTo:@[ @5 ] error:&error]);
  XCTAssertNil([tensor reshapedTo:absentObject() error:&error]);
  XCTAssertTrue([self floatsOf:tensor] == (std::vector<float>{1, 2, 3, 4}));
}

@end
