#import "Support/Bridging.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// The C and Objective-C APIs over the same objects. Support/Bridging makes devices and tensors in this way, too.
@interface HandleTests : DeviceTestCase
@end

@implementation HandleTests

- (void)testObjectsAndHandlesShareTheirState {
  MNKAttentionCache *cache = [self cacheWith:[MNKAttentionCacheDescriptor descriptorWithKVHeads:1
                                                                                        headDim:32
                                                                                       capacity:4]];
  NSError *error = nil;
  mnk_cache *handle = [cache makeHandleWithError:&error];
  XCTAssertTrue(handle != nullptr, @"%@", error);
  MNKAttentionCache *same = [MNKAttentionCache cacheWithHandle:handle error:&error];
  mnk_cache_release(handle);
  MNKTensor *token = [self zeros:@[ @1, @32 ]];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **failure) {
    return [step appendKeys:token values:token toCache:same error:failure];
  }];
  XCTAssertEqual(cache.nextPosition, 1u);
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
