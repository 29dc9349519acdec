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
  const NSUInteger sizes[] = {4, 2, 2, 1, 2, 4, 4, 0};
  for (uint32_t type = 0; type < 8; ++type) {
    XCTAssertEqual(MNKElementTypeSize(static_cast<MNKElementType>(type)), sizes[type]);
  }
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
    XCTAssertEqual(memcmp(got.data(), numbers, sizeof numbers), 0);
    NSData *bytes = [tensor dataWithError:nil];
    MNKTensor *same = [MNKTensor tensorWithData:bytes shape:@[ @6 ] elementType:type device:self.device error:&error];
    XCTAssertEqualObjects([same dataWithError:nil], bytes);
    XCTAssertTrue([same writeData:(NSMutableData *_Nonnull)[NSMutableData dataWithLength:bytes.length] error:nil]);
    XCTAssertEqual([self floatOf:same at:0], 0);
    XCTAssertEqual([self floatOf:tensor at:0], 1);
  }
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
  MNKTensor *flat = nil, *inner = nil;
  @autoreleasepool {
    MNKTensor *tensor = [self zeros:@[ @4, @3 ]];
    MNKTensor *slice = [tensor sliceWithRange:NSMakeRange(1, 2) error:nil];
    XCTAssertEqualObjects(slice.shape, (@[ @2, @3 ]));
    XCTAssertEqual(slice.byteOffset, 12u);
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    XCTAssertTrue([slice writeFloats:numbers count:6 error:nil]);
    XCTAssertEqual([tensor sliceWithRange:NSMakeRange(4, 0) error:nil].count, 0u);
    flat = [tensor reshapedTo:@[ @12 ] error:nil];
    inner = [slice sliceWithRange:NSMakeRange(1, 1) error:nil];
  }
  XCTAssertTrue([self floatsOf:flat] == (std::vector<float>{0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0}));
  XCTAssertTrue([self floatsOf:inner] == (std::vector<float>{4, 5, 6}));
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

- (void)testInvalidTensorsAreRefused {
  MNKDevice *device = self.device;
  const auto zeros = [=](NSArray *shape, uint32_t type, MNKDevice *on) {
    return [=](NSError **e) {
      return [MNKTensor zerosWithShape:shape elementType:static_cast<MNKElementType>(type) device:on error:e] != nil;
    };
  };
  const auto withFloats = [=](const float *floats, MNKElementType type) {
    return [=](NSError **e) {
      return [MNKTensor tensorWithFloats:floats shape:@[ @1 ] elementType:type device:device error:e] != nil;
    };
  };
  const auto withData = [=](NSData *data, NSArray *shape) {
    return [=](NSError **e) {
      return [MNKTensor tensorWithData:data shape:shape elementType:MNKElementTypeUInt8 device:device error:e] != nil;
    };
  };
  static constexpr float kNumber = 1;
  XCTAssertNil(wrongIn({
      {@"Tensor", @"the number for element type is unknown", zeros(@[ @2 ], 9, device)},
      {@"Tensor", @"too many extents", zeros(@[ @1, @1, @1, @1, @1, @1, @1, @1, @1 ], 0, device)},
      {@"Tensor", @"nil was passed for the shape", zeros(absentObject(), 0, device)},
      {@"Shape", @"", zeros(@[ @(UINT64_MAX), @2 ], 0, device)},
      {@"MNKDevice", @"nil was passed for the device", zeros(@[ @2 ], 0, absentObject())},
      {@"Tensor", @"floats are missing", withFloats(absentMemory<float>(), MNKElementTypeFloat32)},
      {@"Tensor", @"not of a float type", withFloats(&kNumber, MNKElementTypeUInt8)},
      {@"Tensor", @"the number of bytes is not the tensor's", withData([NSData data], @[ @1 ])},
      {@"Tensor", @"the number of bytes is not the tensor's", withData(absentObject(), @[ @0 ])},
  }));
  XCTAssertTrue(zeros(@[ @2.0, @YES ], 0, device)(nil));
}

// Objects that a shape may contain at run time, despite its type.
- (void)testExtentsMustBeWholeNumbers {
  MNKTensor *tensor = [self zeros:@[ @2 ]];
  NSString *range = @"the number for an extent of the shape is out of range";
  for (id extent in
       @[ @-1, @2.5, @(-0.5), @1e30, @-1e30, @(INFINITY), @(NAN), @(1.8446744073709552e19), @(INT64_MIN) ]) {
    XCTAssertNil(
        wrongIn({{@"Tensor", range, [=](NSError **e) { return [tensor reshapedTo:@[ extent ] error:e] != nil; }}}),
        @"%@", extent);
  }
  for (id extent in @[ @"2", [NSNull null], @[ @2 ] ]) {
    XCTAssertNil(wrongIn({{@"Tensor", @"another class was passed for an extent of the shape",
                           [=](NSError **e) { return [tensor reshapedTo:@[ extent ] error:e] != nil; }}}));
  }
}

- (void)testMismatchedReadsWritesAndViewsAreRefused {
  MNKTensor *tensor = [self floats:{1, 2, 3, 4} shape:@[ @2, @2 ]];
  MNKTensor *integers = [self zeros:@[ @4 ] type:MNKElementTypeInt32];
  NSData *shortData = [NSMutableData dataWithLength:15];
  std::vector<float> numbers(5, 9);
  float *into = numbers.data();
  const auto slice = [=](NSUInteger location, NSUInteger length) {
    return [=](NSError **e) { return [tensor sliceWithRange:NSRange{location, length} error:e] != nil; };
  };
  NSString *count = @"the number of floats is not the tensor's", *bytes = @"the number of bytes is not the tensor's";
  XCTAssertNil(wrongIn({
      {@"Tensor", count, [=](NSError **e) { return [tensor readFloats:into count:5 error:e]; }},
      {@"Tensor", count, [=](NSError **e) { return [tensor writeFloats:into count:3 error:e]; }},
      {@"Tensor", @"floats are missing",
       [=](NSError **e) { return [tensor readFloats:absentMemory<float>() count:4 error:e]; }},
      {@"Tensor", @"floats are missing",
       [=](NSError **e) { return [tensor writeFloats:absentMemory<float>() count:4 error:e]; }},
      {@"Tensor", @"not of a float type", [=](NSError **e) { return [integers readFloats:into count:4 error:e]; }},
      {@"Tensor", bytes, [=](NSError **e) { return [tensor writeData:shortData error:e]; }},
      {@"Tensor", bytes, [=](NSError **e) { return [tensor writeData:absentObject() error:e]; }},
      {@"Tensor", @"", slice(1, 2)},
      {@"Tensor", @"", slice(3, 0)},
      {@"Tensor", @"", slice(NSNotFound, 1)},
      {@"Tensor", @"", slice(1, NSUIntegerMax)},
      {@"Tensor", @"", slice(NSUIntegerMax, NSUIntegerMax)},
      {@"Tensor", @"", [=](NSError **e) { return [tensor reshapedTo:@[ @5 ] error:e] != nil; }},
      {@"Tensor", @"nil was passed for the shape",
       [=](NSError **e) { return [tensor reshapedTo:absentObject() error:e] != nil; }},
  }));
  XCTAssertEqual(numbers[0], 9);
  XCTAssertTrue([self floatsOf:tensor] == (std::vector<float>{1, 2, 3, 4}));
}

@end
