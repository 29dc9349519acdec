#include <cmath>

#include "Harness/SoftFloat.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface ObjCTensorTests : DeviceTestCase
@end

@implementation ObjCTensorTests

- (void)testTensorsReportTheirExtents {
  MNKTensor *tensor = [self zeros:@[ @2, @3, @4 ] type:MNKElementTypeUInt16];
  XCTAssertEqualObjects(tensor.shape, (@[ @2, @3, @4 ]));
  XCTAssertEqual(tensor.count, 24u);
  XCTAssertEqual(tensor.byteCount, 48u);
  XCTAssertEqual(tensor.byteOffset, 0u);
  XCTAssertEqual(tensor.elementType, MNKElementTypeUInt16);
  XCTAssertEqualObjects([tensor dataWithError:nil], [NSMutableData dataWithLength:48]);
  XCTAssertEqualObjects(tensor.description, @"u16 [2, 3, 4]");
  XCTAssertEqual([self zeros:@[]].count, 1u);
  MNKTensor *empty = [self zeros:@[ @0, @4 ]];
  XCTAssertEqual([empty dataWithError:nil].length, 0u);
  XCTAssertTrue([empty writeFloats:absentMemory<float>() count:0 error:nil]);
  XCTAssertEqual(MNKElementTypeSize(MNKElementTypeInt32), 4u);
  XCTAssertEqual(MNKElementTypeSize(static_cast<MNKElementType>(UINT32_MAX)), 0u);
}

- (void)testTensorsHoldCopiesOfFloatsAndData {
  NSMutableData *data = [NSMutableData dataWithLength:8];
  const float numbers[] = {1, -2.5f};
  NSError *error = nil;
  MNKTensor *floats = [MNKTensor tensorWithFloats:numbers
                                            shape:@[ @2 ]
                                      elementType:MNKElementTypeFloat32
                                           device:self.device
                                            error:&error];
  XCTAssertTrue([self floatsOf:floats] == (std::vector<float>{1, -2.5f}), @"%@", error);
  MNKTensor *zeros = [MNKTensor tensorWithData:data
                                         shape:@[ @2 ]
                                   elementType:MNKElementTypeFloat32
                                        device:self.device
                                         error:&error];
  memcpy(data.mutableBytes, numbers, sizeof numbers);
  XCTAssertEqual([self floatOf:zeros at:0], 0);
  XCTAssertTrue([zeros writeData:data error:&error], @"%@", error);
  XCTAssertEqualObjects([zeros dataWithError:nil], [floats dataWithError:nil]);
}

// Every 16-bit pattern is read, and numbers are rounded, like the reference.
- (void)testHalvesMatchTheReference {
  for (const auto &[type, dtype] :
       {std::pair{MNKElementTypeFloat16, mnk::DType::f16}, std::pair{MNKElementTypeBFloat16, mnk::DType::bf16}}) {
    MNKTensor *tensor = [self zeros:@[ @65536 ] type:type];
    std::vector<uint16_t> bits(65536);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    XCTAssertTrue([tensor writeData:[NSData dataWithBytes:bits.data() length:131072] error:nil]);
    std::vector<float> numbers = [self floatsOf:tensor];
    size_t wrong = 0;
    for (size_t i = 0; i < bits.size(); ++i) {
      const double due = mnk::test::valueOf(dtype, i);
      wrong += std::isnan(due) ? !std::isnan(numbers[i]) : numbers[i] != due;
    }
    XCTAssertEqual(wrong, 0u);
    // Each number, its tie to the next one, and the neighbors of the tie.
    const std::function<float(float, float)> changes[] = {
        [](float one, float) { return one; },
        [](float one, float next) { return one + (next - one) / 2; },
        [](float one, float next) { return std::nextafterf(one + (next - one) / 2, -INFINITY); },
        [](float one, float next) { return std::nextafterf(one + (next - one) / 2, INFINITY); },
    };
    for (const auto &change : changes) {
      std::vector<float> written = numbers;
      for (size_t i = 0; i + 1 < written.size(); ++i) written[i] = change(numbers[i], numbers[i + 1]);
      XCTAssertTrue([tensor writeFloats:written.data() count:written.size() error:nil]);
      NSData *data = [tensor dataWithError:nil];
      memcpy(bits.data(), data.bytes, data.length);
      for (size_t i = 0; i < bits.size(); ++i) {
        wrong += std::isnan(written[i]) ? !mnk::test::isNaN(dtype, bits[i])
                                        : bits[i] != mnk::test::nearestBits(dtype, written[i]);
      }
      XCTAssertEqual(wrong, 0u);
    }
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
  XCTAssertFalse([same isEqualToTensor:absentObject()]);
  MNKTensor *first = [tensor sliceWithRange:NSMakeRange(0, 1) error:nil];
  XCTAssertNotEqualObjects([tensor reshapedTo:@[ @12 ] error:nil], tensor);
  XCTAssertNotEqualObjects([tensor sliceWithRange:NSMakeRange(1, 1) error:nil], first);
  XCTAssertNotEqualObjects(([self zeros:@[ @4, @3 ]]), tensor);
  XCTAssertNotEqualObjects(tensor, @"f32 [4, 3]");
}

- (void)testInvalidTensorsAreRefused {
  MNKDevice *device = self.device;
  const auto zeros = [=](NSArray *shape, uint32_t type, MNKDevice *on) {
    return [=](NSError **e) {
      return [MNKTensor zerosWithShape:shape elementType:static_cast<MNKElementType>(type) device:on error:e] != nil;
    };
  };
  const auto withoutFloats = [=](NSError **e) {
    return [MNKTensor tensorWithFloats:absentMemory<float>()
                                 shape:@[ @1 ]
                           elementType:MNKElementTypeFloat32
                                device:device
                                 error:e] != nil;
  };
  const auto withData = [=](NSData *data, NSArray *shape) {
    return [=](NSError **e) {
      return [MNKTensor tensorWithData:data shape:shape elementType:MNKElementTypeUInt8 device:device error:e] != nil;
    };
  };
  XCTAssertNil(wrongIn({
      {@"Tensor", @"the number for element type is unknown", zeros(@[ @2 ], 9, device)},
      {@"Tensor", @"too many extents", zeros(@[ @1, @1, @1, @1, @1, @1, @1, @1, @1 ], 0, device)},
      {@"Tensor", @"nil was passed for the shape", zeros(absentObject(), 0, device)},
      {@"MNKDevice", @"nil was passed for the device", zeros(@[ @2 ], 0, absentObject())},
      {@"Tensor", @"floats are missing", withoutFloats},
      {@"Tensor", @"the number of bytes is not the tensor's", withData([NSData data], @[ @1 ])},
      {@"Tensor", @"the number of bytes is not the tensor's", withData(absentObject(), @[ @0 ])},
  }));
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
  NSString *count = @"the number of floats is not the tensor's";
  XCTAssertNil(wrongIn({
      {@"Tensor", count, [=](NSError **e) { return [tensor readFloats:into count:5 error:e]; }},
      {@"Tensor", count, [=](NSError **e) { return [tensor writeFloats:into count:3 error:e]; }},
      {@"Tensor", @"floats are missing",
       [=](NSError **e) { return [tensor writeFloats:absentMemory<float>() count:4 error:e]; }},
      {@"Tensor", @"not of a float type", [=](NSError **e) { return [integers readFloats:into count:4 error:e]; }},
      {@"Tensor", @"the number of bytes is not the tensor's",
       [=](NSError **e) { return [tensor writeData:shortData error:e]; }},
      {@"Tensor", @"", slice(3, 0)},
      {@"Tensor", @"", slice(NSUIntegerMax, NSUIntegerMax)},
      {@"Tensor", @"", [=](NSError **e) { return [tensor reshapedTo:@[ @5 ] error:e] != nil; }},
      {@"Tensor", @"nil was passed for the shape",
       [=](NSError **e) { return [tensor reshapedTo:absentObject() error:e] != nil; }},
  }));
  XCTAssertEqual(numbers[0], 9);
  XCTAssertTrue([self floatsOf:tensor] == (std::vector<float>{1, 2, 3, 4}));
}

@end
