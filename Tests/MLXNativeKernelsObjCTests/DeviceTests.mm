#include <cstdlib>

#include "MLXNativeKernels/HostDevice.hpp"
#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface DeviceTests : DeviceTestCase
@end

@implementation DeviceTests

- (void)testTheDefaultDeviceIsShared {
  NSError *error = nil;
  MNKDevice *again = [MNKDevice defaultDeviceWithError:&error];
  XCTAssertNil(error);
  XCTAssertEqualObjects(again, self.device);
  XCTAssertEqual(again.hash, self.device.hash);
  XCTAssertTrue(self.isHost || [self.device.kind isEqual:MNKDeviceKindMetal]);
  if (const char *chosen = std::getenv("MNK_DEVICE")) XCTAssertEqualObjects(again.kind, @(chosen));
  XCTAssertNotEqualObjects(self.device, @"device");
  XCTAssertEqual(coreOf(self.device), *mnk::Device::makeDefault());
}

// Callers can bypass what the headers make unavailable.
- (void)testObjectsThatNothingMadeAreNil {
  for (Class kind in @[
         [MNKDevice class], [MNKTensor class], [MNKKernelLibrary class], [MNKAttentionCache class], [MNKPlan class],
         [MNKCompletion class], [MNKCommandEncoder class], [MNKRecordedStep class], [MNKPreparationSummary class]
       ]) {
    XCTAssertNil([[(id)kind alloc] init], @"%@", kind);
  }
}

- (void)testListsAllDevicesBestFirst {
  NSMutableArray<NSString *> *kinds = [NSMutableArray array];
  for (const auto &core : mnk::Device::all()) [kinds addObject:stringFrom(std::string(core->kind()))];
  XCTAssertEqualObjects([MNKDevice.allDevices valueForKey:@"kind"], kinds);
  XCTAssertTrue([kinds containsObject:MNKDeviceKindHost]);
}

- (void)testHostDevicesTakeOptions {
  NSError *error = nil;
  MNKDevice *plain = [MNKDevice hostDeviceWithOptions:nil error:&error];
  XCTAssertEqualObjects(plain.kind, MNKDeviceKindHost, @"%@", error);
  MNKHostOptions *options = [[MNKHostOptions alloc] init];
  options.orderSeed = UINT64_MAX;
  MNKDevice *seeded = [MNKDevice hostDeviceWithOptions:options error:&error];
  // The name describes its configuration.
  mnk::HostOptions same;
  same.orderSeed = UINT64_MAX;
  XCTAssertEqualObjects(seeded.name, stringFrom((*mnk::host::makeDevice(same))->name()), @"%@", error);
  XCTAssertNotEqualObjects(seeded, plain);
  options.workers = NSUInteger{1} << 33;
  XCTAssertNil(wrongIn({{@"Host device", @"the number for workers is out of range",
                         [=](NSError **e) { return [MNKDevice hostDeviceWithOptions:options error:e] != nil; }}}));
}

- (void)testAnEncoderRetainsItsDevice {
  MNKCommandEncoder *step = nil;
  std::weak_ptr<mnk::Device> watched;
  @autoreleasepool {
    MNKDevice *device = [MNKDevice hostDeviceWithOptions:nil error:nil];
    watched = coreOf(device);
    step = [device commandEncoderWithLabel:absentObject()];
    XCTAssertIdentical(step.device, device);
  }
  @autoreleasepool {
    XCTAssertFalse(watched.expired());
    XCTAssertTrue([[step commitWithError:nil] waitWithError:nil]);
  }
  @autoreleasepool {
    step = nil;
  }
  XCTAssertTrue(watched.expired());
}

@end
