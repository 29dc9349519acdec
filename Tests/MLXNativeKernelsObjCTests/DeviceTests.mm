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
  XCTAssertNotNil([MNKDevice defaultDeviceWithError:nil]);
  XCTAssertTrue(self.isHost || [self.device.kind isEqual:MNKDeviceKindMetal]);
  XCTAssertGreaterThan(self.device.name.length, 0u);
  XCTAssertEqualObjects(self.device.description, self.device.name);
  XCTAssertNotEqualObjects(self.device, @"device");
  XCTAssertEqual(coreOf(self.device), *mnk::Device::makeDefault());
}

- (void)testKindsMatchTheCore {
  XCTAssertEqualObjects(MNKDeviceKindHost, @"host");
  XCTAssertEqualObjects(MNKDeviceKindMetal, @"metal");
}

- (void)testListsAllDevicesBestFirst {
  NSArray<MNKDevice *> *all = MNKDevice.allDevices;
  const auto core = mnk::Device::all();
  XCTAssertEqual(all.count, core.size());
  for (size_t i = 0; i < core.size(); ++i) {
    XCTAssertEqualObjects(all[i].kind, [NSString stringWithUTF8String:std::string(core[i]->kind()).c_str()]);
  }
  XCTAssertTrue([[all valueForKey:@"kind"] containsObject:MNKDeviceKindHost]);
}

- (void)testHostDevicesTakeOptions {
  NSError *error = nil;
  MNKDevice *plain = [MNKDevice hostDeviceWithOptions:nil error:&error];
  XCTAssertEqualObjects(plain.kind, MNKDeviceKindHost, @"%@", error);
  MNKHostOptions *options = [[MNKHostOptions alloc] init];
  options.workers = 1;
  options.orderSeed = UINT64_MAX;
  options.checking = MNKHostOptionsCheckingGuarded;
  options.allowsSameValue = YES;
  options.level = MNKHostOptionsLevelBaseline;
  MNKDevice *guarded = [MNKDevice hostDeviceWithOptions:options error:&error];
  XCTAssertNotNil(guarded, @"%@", error);
  XCTAssertNotEqualObjects(guarded, plain);
  // The name describes its configuration.
  mnk::HostOptions same;
  same.workers = 1;
  same.orderSeed = UINT64_MAX;
  same.checking = mnk::HostOptions::Checking::guarded;
  same.allowsSameValue = true;
  same.level = mnk::HostOptions::Level::baseline;
  const auto core = mnk::host::makeDevice(same);
  XCTAssertEqualObjects(guarded.name, [NSString stringWithUTF8String:(*core)->name().c_str()]);
}

- (void)testGuardedCheckingPoisonsOutputs {
  MNKHostOptions *options = [[MNKHostOptions alloc] init];
  options.checking = MNKHostOptionsCheckingGuarded;
  NSError *error = nil;
  MNKDevice *device = [MNKDevice hostDeviceWithOptions:options error:&error];
  MNKTensor *source = [MNKTensor zerosWithShape:@[ @2, @32 ]
                                    elementType:MNKElementTypeFloat32
                                         device:device
                                          error:&error];
  MNKCommandEncoder *step = [device commandEncoder];
  XCTAssertTrue(([step encodeOperation:[[MNKHadamard alloc] initWithSource:source destination:nil] error:&error]),
                @"%@", error);
  XCTAssertTrue([[step commitWithError:&error] waitWithError:&error], @"%@", error);
}

- (NSData *)attendedWith:(MNKHostOptions *)options {
  NSError *error = nil;
  MNKDevice *device = [MNKDevice hostDeviceWithOptions:options error:&error];
  NSData *keys = [[self numbers:@[ @1, @8, @32 ] seed:1] dataWithError:&error];
  NSData *rows = [[self numbers:@[ @2, @32 ] seed:2] dataWithError:&error];
  MNKTensor *cached = [MNKTensor tensorWithData:keys
                                          shape:@[ @1, @8, @32 ]
                                    elementType:MNKElementTypeFloat32
                                         device:device
                                          error:&error];
  MNKTensor *queries = [MNKTensor tensorWithData:rows
                                           shape:@[ @2, @32 ]
                                     elementType:MNKElementTypeFloat32
                                          device:device
                                           error:&error];
  MNKTensor *out = [MNKTensor zerosWithShape:@[ @2, @32 ] elementType:MNKElementTypeFloat32 device:device error:&error];
  MNKFlashDecode *decode =
      [[MNKFlashDecode alloc] initWithQueries:queries.headsView
                                        cache:[[MNKKVCacheView alloc] initWithKeys:cached values:cached]
                                    sequences:@[ [[MNKAttendedSequence alloc] initWithSequence:0 length:8] ]
                                      results:[MNKAttentionResults resultsIntoTensor:out]];
  MNKCommandEncoder *step = [device commandEncoder];
  XCTAssertTrue([step encodeOperation:decode error:&error], @"%@", error);
  XCTAssertTrue([[step commitWithError:&error] waitWithError:&error], @"%@", error);
  NSData *attended = [out dataWithError:&error];
  return attended;
}

- (void)testPerturbsResultsOnlyIfRequested {
  MNKHostOptions *moved = [[MNKHostOptions alloc] init];
  moved.perturbsResults = YES;
  MNKHostOptions *still = [[MNKHostOptions alloc] init];
  still.allowsSameValue = YES;
  NSData *plain = [self attendedWith:[[MNKHostOptions alloc] init]];
  XCTAssertEqualObjects([self attendedWith:still], plain);
  XCTAssertNotEqualObjects([self attendedWith:moved], plain);
}

- (void)testReportsAMissingCompiler {
  if (!self.isHost) XCTSkip(@"Metal needs no external compiler");
  MNKHostOptions *options = [[MNKHostOptions alloc] init];
  options.compiler = @"/no/such/compiler";
  NSError *error = nil;
  MNKDevice *device = [MNKDevice hostDeviceWithOptions:options error:&error];
  XCTAssertNotNil(device, @"%@", error);
  XCTAssertNil(([MNKKernelLibrary
      libraryWithText:@"kernel void f(device uint* x [[buffer(0)]]) { x[0] = 1; }\nexport_kernel(f)\n"
                label:@"compilerless"
               device:device
                error:&error]));
  XCTAssertTrue([error.localizedDescription rangeOfString:@"/no/such/compiler"].length > 0, @"%@", error);
}

- (void)testInvalidOptionsAreRefused {
  const std::vector<std::function<void(MNKHostOptions *)>> changes{
      [=](MNKHostOptions *options) { options.workers = NSUInteger{1} << 33; },
      [=](MNKHostOptions *options) { options.checking = static_cast<MNKHostOptionsChecking>(3); },
      [=](MNKHostOptions *options) { options.checking = static_cast<MNKHostOptionsChecking>(-1); },
      [=](MNKHostOptions *options) { options.level = static_cast<MNKHostOptionsLevel>(4); },
      [=](MNKHostOptions *options) { options.level = static_cast<MNKHostOptionsLevel>(INT32_MIN); },
  };
  for (const auto &change : changes) {
    MNKHostOptions *options = [[MNKHostOptions alloc] init];
    change(options);
    NSError *error = nil;
    XCTAssertNil([MNKDevice hostDeviceWithOptions:options error:&error]);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"Host device", @""), @"%@", options);
    XCTAssertNil([MNKDevice hostDeviceWithOptions:options error:nil]);
  }
}

- (void)testAnEncoderRetainsItsDevice {
  MNKCommandEncoder *step = nil;
  __weak MNKDevice *watched = nil;
  @autoreleasepool {
    MNKDevice *device = [MNKDevice hostDeviceWithOptions:nil error:nil];
    watched = device;
    step = [device commandEncoderWithLabel:absentObject()];
    XCTAssertIdentical(step.device, device);
  }
  @autoreleasepool {
    XCTAssertNotNil(watched);
    XCTAssertTrue([[step commitWithError:nil] waitWithError:nil]);
  }
  @autoreleasepool {
    step = nil;
  }
  XCTAssertNil(watched);
}

@end
