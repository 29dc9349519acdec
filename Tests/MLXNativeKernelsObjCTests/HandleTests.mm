#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// The C and Objective-C APIs over the same objects.
@interface HandleTests : DeviceTestCase
@end

@implementation HandleTests

- (void)testDevices {
  NSError *error = nil;
  mnk_device *handle = [self.device makeHandleWithError:&error];
  XCTAssertTrue(handle != nullptr, @"%@", error);
  XCTAssertEqualObjects(@(mnk_device_kind(handle)), self.device.kind);
  MNKDevice *same = [MNKDevice deviceWithHandle:handle error:&error];
  XCTAssertEqualObjects(same, self.device);
  mnk_device_release(handle);
  XCTAssertEqualObjects(same.name, self.device.name);
}

- (void)testTensorsShareMemory {
  MNKTensor *tensor = [self floats:{1, 2, 3, 4} shape:@[ @2, @2 ]];
  MNKTensor *same = nil;
  @autoreleasepool {
    MNKTensor *slice = [tensor sliceWithRange:NSMakeRange(1, 1) error:nil];
    mnk_tensor *handle = [slice makeHandleWithError:nil];
    same = [MNKTensor tensorWithHandle:handle error:nil];
    XCTAssertEqualObjects(same, slice);
    const float numbers[] = {30, 40};
    XCTAssertTrue(mnk_tensor_write(handle, numbers, sizeof numbers, nullptr));
    mnk_tensor_release(handle);
  }
  XCTAssertEqual([self floatOf:tensor at:3], 40);
  XCTAssertEqual([self floatOf:same at:0], 30);
}

- (void)testCachesAreShared {
  MNKAttentionCache *cache = [self cacheWith:[MNKAttentionCacheDescriptor descriptorWithKVHeads:1
                                                                                        headDim:32
                                                                                       capacity:4]];
  NSError *error = nil;
  mnk_cache *handle = [cache makeHandleWithError:&error];
  XCTAssertTrue(handle != nullptr, @"%@", error);
  MNKAttentionCache *same = [MNKAttentionCache cacheWithHandle:handle error:&error];
  MNKTensor *token = [self zeros:@[ @1, @32 ]];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **failure) {
    return [step appendKeys:token values:token toCache:same error:failure];
  }];
  XCTAssertEqual(cache.nextPosition, 1u);
  mnk_sequence_state state{};
  XCTAssertTrue(mnk_cache_get_sequence(handle, 0, &state, nullptr));
  XCTAssertEqual(state.next_position, 1u);
  mnk_cache_release(handle);
  XCTAssertEqualObjects(same.view, cache.view);
  [same reset];
  XCTAssertEqual(cache.nextPosition, 0u);
}

- (void)testANullHandleIsRefused {
  NSString *what = @"handle is missing";
  XCTAssertNil(wrongIn({
      {@"C API", what,
       [](NSError **e) { return [MNKDevice deviceWithHandle:absentMemory<mnk_device>() error:e] != nil; }},
      {@"C API", what,
       [](NSError **e) { return [MNKTensor tensorWithHandle:absentMemory<mnk_tensor>() error:e] != nil; }},
      {@"C API", what,
       [](NSError **e) { return [MNKAttentionCache cacheWithHandle:absentMemory<mnk_cache>() error:e] != nil; }},
  }));
}

@end
