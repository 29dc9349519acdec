#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface CacheFileTests : DeviceTestCase
@end

@implementation CacheFileTests

- (void)testALoadedCacheIsTheSavedOne {
  NSURL *url = self.temporaryFile;
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4];
  descriptor.quantized = [[MNKKVQuantizedStorage alloc] initWithCodec:MNKKVCodecNameTurbo keyBits:5 valueBits:3];
  MNKTensor *tokens = [self floats:std::vector<float>(96, 2) shape:@[ @3, @1, @32 ]];
  MNKAttentionCache *saved = [self cacheWith:descriptor];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **failure) {
    return [step appendKeys:tokens values:tokens toCache:saved error:failure];
  }];
  NSError *error = nil;
  XCTAssertTrue([saved saveToURL:url error:&error], @"%@", error);
  MNKAttentionCache *loaded = [[MNKAttentionCache alloc] initWithDevice:self.device
                                                          contentsOfURL:url
                                                               maxBytes:1 << 20
                                                                  error:&error];
  XCTAssertEqualObjects(loaded.description, saved.description, @"%@", error);
  XCTAssertEqualObjects([loaded.view.keys dataWithError:nil], [saved.view.keys dataWithError:nil]);
  const auto load = [&](MNKDevice *device, NSURL *from, NSUInteger maxBytes, NSUInteger capacity) {
    return [=](NSError **e) {
      return [[MNKAttentionCache alloc] initWithDevice:device
                                         contentsOfURL:from
                                              maxBytes:maxBytes
                                              capacity:capacity
                                                 error:e];
    };
  };
  XCTAssertEqual(load(self.device, url, 1 << 20, 9)(nil).descriptor.capacity, 9u);
  XCTAssertNil(wrongIn({
      {@"AttentionCache", @"the capacity is too small for the file", load(self.device, url, 1 << 20, 2)},
      {@"AttentionCache", @"the number for capacity is out of range", load(self.device, url, 1 << 20, NSUIntegerMax)},
      {@"AttentionCache", @"", load(self.device, url, 16, 0)},
      {@"AttentionCache", @"the URL names no file", load(self.device, absentObject(), 1, 0)},
      {@"MNKDevice", @"nil was passed for the device", load(absentObject(), url, 1 << 20, 0)},
  }));
}

- (void)testURLsMustNameFiles {
  MNKAttentionCache *cache = [self cacheWith:[MNKAttentionCacheDescriptor descriptorWithKVHeads:1
                                                                                        headDim:32
                                                                                       capacity:4]];
  NSError *error = nil;
  mnk::Error expected{.op = "AttentionCache",
                      .what = "the URL names no file",
                      .got = "nil",
                      .expected = "a file URL",
                      .fix = "Make it with +[NSURL fileURLWithPath:]."};
  XCTAssertFalse([cache saveToURL:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, expected));
  expected.got = "https://example.com/cache";
  NSURL *web = [NSURL URLWithString:@"https://example.com/cache"];
  XCTAssertFalse([cache saveToURL:web error:&error]);
  XCTAssertNil(wrongIn(error, expected));
  XCTAssertFalse([cache saveToURL:[NSURL fileURLWithPath:@"/no/such/folder/cache"] error:&error]);
  XCTAssertEqualObjects(error.domain, MNKErrorDomain);
}

- (void)testInvalidDescriptorsAreRefused {
  MNKDevice *device = self.device;
  const auto make = [=](MNKAttentionCacheDescriptor *with) {
    return
        [=](NSError **e) { return [[MNKAttentionCache alloc] initWithDevice:device descriptor:with error:e] != nil; };
  };
  XCTAssertNil(wrongIn({
      {@"AttentionCache", @"", make([MNKAttentionCacheDescriptor descriptorWithKVHeads:0 headDim:32 capacity:4])},
      {@"AttentionCache", @"nil was passed for the descriptor", make(absentObject())},
  }));
}

@end
