// Foundation's Objective-C runtime and the software Metal's small runtime work in one process without interfering: the
// C API runs kernels on every device while Foundation's objects, blocks and pools are in use on the same threads.
#import <XCTest/XCTest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "MLXNativeKernels/mnk.h"

namespace {

template <typename Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle *)>;

// A block passes through the C API as a context, as in the Objective-C API.
void callFinished(void *context, const mnk_error *failure) {
  void (^const finished)(NSString *) = (__bridge_transfer void (^)(NSString *))context;
  finished(failure ? [NSString stringWithUTF8String:mnk_error_message(failure)] : nil);
}

}  // namespace

@interface TwoRuntimesTests : XCTestCase
@end

@implementation TwoRuntimesTests {
  std::vector<Owned<mnk_device>> _devices;
}

- (void)setUp {
  for (size_t i = 0; i < mnk_device_count(); ++i) {
    _devices.push_back({mnk_device_make_at(i, nullptr), mnk_device_release});
  }
}

- (void)testTheDefaultDeviceIsTheOneAskedFor {
  const char *const wanted = std::getenv("MNK_DEVICE");
  XCTSkipUnless(wanted, @"MNK_DEVICE is not set");
  const Owned<mnk_device> device{mnk_device_make_default(nullptr), mnk_device_release};
  XCTAssertEqualObjects([NSString stringWithUTF8String:mnk_device_kind(device.get())],
                        [NSString stringWithUTF8String:wanted]);
}

- (void)testBothDevicesAreThere {
  NSMutableSet<NSString *> *const kinds = [NSMutableSet set];
  for (const auto &device : _devices) {
    [kinds addObject:[NSString stringWithUTF8String:mnk_device_kind(device.get())]];
  }
  XCTAssertTrue([kinds containsObject:@"host"], @"got %@", kinds);
  XCTAssertTrue([kinds containsObject:@"metal"], @"got %@", kinds);
}

- (void)testKernelsRunAmongObjects {
  for (const auto &device : _devices) {
    @autoreleasepool {
      [self transformOn:device.get()];
    }
  }
}

// A Hadamard transform of a one and zeros has the same value everywhere.
- (void)transformOn:(mnk_device *)device {
  const uint64_t shape[] = {4, 64};
  std::vector<float> values(4 * 64);
  for (int row = 0; row < 4; ++row) values[row * 64] = float(8 * (row + 1));
  const Owned<mnk_tensor> tensor{mnk_tensor_make(device, MNK_F32, shape, 2, nullptr), mnk_tensor_release};
  XCTAssertTrue(mnk_tensor_write(tensor.get(), values.data(), values.size() * sizeof(float), nullptr));

  const Owned<mnk_encoder> encoder{mnk_encoder_make(device, "two runtimes", nullptr), mnk_encoder_release};
  mnk_hadamard transform{};
  transform.from = tensor.get();
  mnk_error *error = nullptr;
  XCTAssertTrue(mnk_encoder_hadamard(encoder.get(), &transform, &error), @"%s", mnk_error_message(error));

  XCTestExpectation *const done = [self expectationWithDescription:@"the device calls the block"];
  __block NSString *failure = @"not called";
  void (^const finished)(NSString *) = ^(NSString *text) {
    @autoreleasepool {
      failure = [text copy];
    }
    [done fulfill];
  };
  const Owned<mnk_completion> completion{
      mnk_encoder_commit(encoder.get(), callFinished, (__bridge_retained void *)finished, nullptr),
      mnk_completion_release};
  [self waitForExpectations:@[ done ] timeout:60];
  XCTAssertNil(failure);
  XCTAssertTrue(mnk_completion_wait(completion.get(), nullptr));

  XCTAssertTrue(mnk_tensor_read(tensor.get(), values.data(), values.size() * sizeof(float), nullptr));
  for (int row = 0; row < 4; ++row) {
    XCTAssertEqualWithAccuracy(values[row * 64 + 63], row + 1, 1e-5, @"row %d on %s", row, mnk_device_kind(device));
  }
}

- (void)testErrorsBecomeObjects {
  for (const auto &device : _devices) {
    const uint64_t shape[] = {3, 5};  // not a power of two
    const Owned<mnk_tensor> tensor{mnk_tensor_make(device.get(), MNK_F32, shape, 2, nullptr), mnk_tensor_release};
    const Owned<mnk_encoder> encoder{mnk_encoder_make(device.get(), nullptr, nullptr), mnk_encoder_release};
    mnk_hadamard transform{};
    transform.from = tensor.get();
    mnk_error *error = nullptr;
    XCTAssertFalse(mnk_encoder_hadamard(encoder.get(), &transform, &error));
    XCTAssertTrue([[NSString stringWithUTF8String:mnk_error_message(error)] containsString:@"power of two"]);
    mnk_error_release(error);
  }
}

@end
