#import <MLXNativeKernels/MLXNativeKernels.h>
#import <XCTest/XCTest.h>

#include <MLXNativeKernels/MLXNativeKernels.hpp>

// One file of Objective-C++ may use all doors: what is public of the framework or package fits together.
@interface DoorsTests : XCTestCase
@end

@implementation DoorsTests

- (void)testDoorsForCAndCxxOpenBesideObjectiveC {
  const auto device = mnk::Device::makeDefault();
  XCTAssertTrue(static_cast<bool>(device));
  XCTAssertGreaterThan(mnk_device_count(), 0u);
}

@end
