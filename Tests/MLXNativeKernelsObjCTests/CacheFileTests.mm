#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

@interface CacheFileTests : DeviceTestCase
@end

@implementation CacheFileTests {
  NSURL *_url;
}

- (void)setUp {
  [super setUp];
  NSString *name = [[[NSUUID UUID] UUIDString] stringByAppendingString:@".cache"];
  _url = [NSURL fileURLWithPath:[NSTemporaryDirectory() stringByAppendingPathComponent:name]];
}

- (void)tearDown {
  [[NSFileManager defaultManager] removeItemAtPath:(NSString *_Nonnull)_url.path error:nil];
  [super tearDown];
}

- (MNKAttentionCache *)filledCache:(BOOL)isQuantized {
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4];
  descriptor.sequences = 2;
  descriptor.whenFull = MNKKVWrapRing;
  descriptor.pinned = 1;
  if (isQuantized) {
    descriptor.quantized = [[MNKKVQuantizedStorage alloc] initWithCodec:MNKKVCodecNameTurbo keyBits:5 valueBits:3];
    descriptor.quantized.keyMeans = [self numbers:@[ @1, @32 ] seed:9];
  }
  NSError *error = nil;
  MNKAttentionCache *cache = [[MNKAttentionCache alloc] initWithDevice:self.device descriptor:descriptor error:&error];
  XCTAssertNotNil(cache, @"%@", error);
  MNKTensor *keys = [self numbers:@[ @3, @1, @32 ] seed:1], *values = [self numbers:@[ @3, @1, @32 ] seed:2];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **failure) {
    return [step append:cacheStep({ .keys = viewOf(keys), .values = viewOf(values), .sequences = @[ @1 ] })
                toCache:cache
                  error:failure];
  }];
  return cache;
}

- (void)testALoadedCacheContinuesWhereItWasSaved {
  for (const BOOL isQuantized : {NO, YES}) {
    MNKAttentionCache *saved = [self filledCache:isQuantized];
    NSError *error = nil;
    XCTAssertTrue([saved saveToURL:_url error:&error], @"%@", error);
    MNKAttentionCache *loaded = [[MNKAttentionCache alloc] initWithDevice:self.device
                                                            contentsOfURL:_url
                                                                 maxBytes:1 << 20
                                                                    error:&error];
    XCTAssertNotNil(loaded, @"%@", error);
    XCTAssertEqual([loaded nextPositionOfSequence:1], 3u);
    XCTAssertEqual([loaded nextPositionOfSequence:0], 0u);
    XCTAssertEqualObjects([loaded.view.keys dataWithError:nil], [saved.view.keys dataWithError:nil]);
    XCTAssertEqualObjects([loaded.view.values dataWithError:nil], [saved.view.values dataWithError:nil]);
    MNKAttentionCacheDescriptor *a = loaded.descriptor, *b = saved.descriptor;
    XCTAssertEqualObjects([a.quantized.keyMeans dataWithError:nil], [b.quantized.keyMeans dataWithError:nil]);
    a.quantized.keyMeans = b.quantized.keyMeans = nil;
    XCTAssertEqualObjects(a, b);
  }
}

- (void)testACacheIsLoadedIntoMoreSlots {
  MNKAttentionCache *saved = [self filledCache:YES];
  NSError *error = nil;
  XCTAssertTrue([saved saveToURL:_url error:&error], @"%@", error);
  const auto load = [&](NSUInteger capacity) {
    return [[MNKAttentionCache alloc] initWithDevice:self.device
                                       contentsOfURL:self->_url
                                            maxBytes:1 << 20
                                            capacity:capacity
                                               error:&error];
  };
  XCTAssertEqual(load(9).descriptor.capacity, 9u);
  XCTAssertEqual([load(9) nextPositionOfSequence:1], 3u);
  XCTAssertEqual(load(0).descriptor.capacity, saved.descriptor.capacity);
  XCTAssertNil(load(2));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @"the capacity is too small for the file"));
  XCTAssertNil(load(NSUIntegerMax));
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @"capacity is out of range"));
}

- (void)testInvalidFilesAndPathsAreRefused {
  MNKAttentionCache *cache = [self filledCache:NO];
  NSError *error = nil;
  NSURL *web = [NSURL URLWithString:@"https://example.com/cache"];
  XCTAssertFalse([cache saveToURL:web error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @"the URL names no file"));
  XCTAssertFalse([cache saveToURL:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @"the URL names no file"));
  XCTAssertEqualObjects(error.userInfo[MNKErrorGotKey], @"nil");
  XCTAssertFalse([cache saveToURL:[NSURL fileURLWithPath:@"/no/such/folder/cache"] error:&error]);
  XCTAssertEqualObjects(error.domain, MNKErrorDomain);
  XCTAssertFalse([cache saveToURL:web error:nil]);

  XCTAssertTrue([cache saveToURL:_url error:&error]);
  NSURL *missing = [NSURL fileURLWithPath:@"/no/such/cache"];
  XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device
                                           contentsOfURL:missing
                                                maxBytes:1 << 20
                                                   error:&error]);
  XCTAssertEqualObjects(error.domain, MNKErrorDomain);
  XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device contentsOfURL:_url maxBytes:16 error:&error]);
  XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:absentObject()
                                           contentsOfURL:_url
                                                maxBytes:1 << 20
                                                   error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MNKDevice", @"nil was passed for the device"));
  XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device
                                           contentsOfURL:absentObject()
                                                maxBytes:1
                                                   error:nil]);
  XCTAssertTrue([[@"garbage" dataUsingEncoding:NSUTF8StringEncoding] writeToURL:_url atomically:YES]);
  XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device contentsOfURL:_url maxBytes:1 << 20 error:&error]);
}

- (void)testInvalidDescriptorsAreRefused {
  const std::vector<std::pair<NSString *, NSNumber *>> changes{
      {@"kvHeads", @0},
      {@"kvHeads", @(1ull << 32)},
      {@"headDim", @(NSUIntegerMax)},
      {@"valueHeadDim", @(NSUIntegerMax)},
      {@"capacity", @(1ull << 40)},
      {@"sequences", @(1ull << 33)},
      {@"pinned", @(1ull << 34)},
      {@"elementType", @77},
      {@"elementType", @6},
      {@"whenFull", @2},
      {@"quantized.codec", @2},
      {@"quantized.keyBits", @(1ull << 32)},
      {@"quantized.valueBits", @9},
      {@"quantized.options.candidates", @2},
      {@"quantized.options.keyScale", @3},
      {@"quantized.options.valueScale", @3},
      {@"quantized.options.nonFinite", @2},
  };
  for (const auto &[path, value] : changes) {
    MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1
                                                                                         headDim:32
                                                                                        capacity:4];
    if ([path hasPrefix:@"quantized"]) {
      descriptor.quantized = [[MNKKVQuantizedStorage alloc] initWithCodec:MNKKVCodecNameTurbo keyBits:4 valueBits:4];
    }
    [descriptor setValue:value forKeyPath:path];
    NSError *error = nil;
    XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device descriptor:descriptor error:&error], @"%@",
                 descriptor);
    XCTAssertEqualObjects(error.domain, MNKErrorDomain);
    XCTAssertEqual(error.code, MNKErrorInvalidArgument);
    XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device descriptor:descriptor error:nil]);
  }
  NSError *error = nil;
  XCTAssertNil([[MNKAttentionCache alloc] initWithDevice:self.device descriptor:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"AttentionCache", @"nil was passed for the descriptor"));
}

@end
