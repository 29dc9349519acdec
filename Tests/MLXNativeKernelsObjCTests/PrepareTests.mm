#import "Support/Checks.hpp"
#import "Support/DescriptorChecks.h"
#import "Support/DeviceTestCase.h"

#include <functional>

#include "MLXNativeKernels/Prepare.hpp"

using namespace mnk::objc_test;

// Measures only on separate Host devices, so that the device shared by all tests keeps the choices of the table.
@interface PrepareTests : DeviceTestCase
@end

@implementation PrepareTests {
  NSURL *_file;
}

- (void)setUp {
  [super setUp];
  NSString *name = [[[NSUUID UUID] UUIDString] stringByAppendingString:@".tuning"];
  _file = [NSURL fileURLWithPath:[NSTemporaryDirectory() stringByAppendingPathComponent:name]];
}

- (void)tearDown {
  [[NSFileManager defaultManager] removeItemAtPath:(NSString *_Nonnull)_file.path error:nil];
  [super tearDown];
}

- (MNKAttentionCache *)cacheOn:(MNKDevice *)device {
  NSError *error = nil;
  MNKAttentionCache *cache = [[MNKAttentionCache alloc]
      initWithDevice:device
          descriptor:[MNKAttentionCacheDescriptor descriptorWithKVHeads:2 headDim:64 capacity:256]
               error:&error];
  XCTAssertNotNil(cache, @"%@", error);
  return cache;
}

- (MNKDevice *)host {
  NSError *error = nil;
  MNKDevice *device = [MNKDevice hostDeviceWithOptions:nil error:&error];
  XCTAssertNotNil(device, @"%@", error);
  return device;
}

- (void)testAPreparationIsAValue {
  MNKAttentionCache *cache = [self cacheOn:self.device];
  MNKAttentionOptions *options = [[MNKAttentionOptions alloc] init];
  options.window = 2;
  MNKRotaryEmbedding *rotary = [[MNKRotaryEmbedding alloc] init];
  MNKPreparation *preparation = [[MNKPreparation alloc] initWithCaches:@[]];
  [self checkDescriptor:preparation
                changes:@{
                  @"caches" : @[ cache ],
                  @"queryHeads" : @8,
                  @"rows" : @2,
                  @"elementType" : @1,
                  @"options" : options,
                  @"rotary" : rotary,
                  @"tuning" : @(MNKTuningMeasure),
                  @"tuningFileURL" : [NSURL fileURLWithPath:@"/tuning"]
                }];
  preparation.options = options;
  preparation.rotary = rotary;
  NSMutableArray<MNKAttentionCache *> *caches = [NSMutableArray array];
  MNKPreparation *none = [[MNKPreparation alloc] initWithCaches:caches];
  preparation.caches = caches;
  options.window = 9;
  rotary.base = 5;
  [caches addObject:cache];
  XCTAssertEqual(preparation.options.window, 2u);
  XCTAssertEqual(preparation.rotary.base, 10000);
  XCTAssertEqual(preparation.caches.count, 0u);
  XCTAssertEqual(none.caches.count, 0u);
}

- (void)testDefaultsMatchTheCore {
  const mnk::Preparation preparation;
  MNKPreparation *defaults = [[MNKPreparation alloc] initWithCaches:@[]];
  XCTAssertEqual(defaults.queryHeads, preparation.queryHeads);
  XCTAssertEqual(defaults.rows, preparation.rows);
  XCTAssertEqual(defaults.elementType, static_cast<MNKElementType>(preparation.dtype));
  XCTAssertEqual(defaults.tuning, static_cast<MNKTuning>(preparation.tuning));
}

- (void)testStepsWorkAfterPreparing {
  MNKAttentionCache *cache = [self cacheOn:self.device];
  MNKPreparation *preparation = [[MNKPreparation alloc] initWithCaches:@[ cache, [self cacheOn:self.device] ]];
  preparation.queryHeads = 4;
  preparation.rows = 3;
  preparation.elementType = MNKElementTypeFloat32;
  preparation.options = [[MNKAttentionOptions alloc] init];
  preparation.rotary = [[MNKRotaryEmbedding alloc] init];
  NSError *error = nil;
  MNKPreparationSummary *ready = [self.device prepare:preparation error:&error];
  XCTAssertNotNil(ready, @"%@", error);
  XCTAssertGreaterThanOrEqual(ready.kernels, 3u);
  XCTAssertEqual(ready.measured, 0u);
  XCTAssertEqual(ready.known, 0u);
  XCTAssertGreaterThan(ready.seconds, 0);
  XCTAssertFalse(ready.isKept);
  NSString *begin =
      [NSString stringWithFormat:@"%lu kernels, 0 shapes measured, 0 known, ", (unsigned long)ready.kernels];
  XCTAssertTrue([ready.description hasPrefix:begin], @"%@", ready);

  MNKTensor *keys = [self numbers:@[ @3, @2, @64 ] seed:1];
  MNKTensor *ones = [self floats:std::vector<float>(3 * 2 * 64, 1) shape:@[ @3, @2, @64 ]];
  MNKTensor *queries = [self numbers:@[ @3, @4, @64 ] seed:2], *output = [self zeros:@[ @3, @4, @64 ]];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **failure) {
    return [step rotateQueries:queries
                          keys:keys
                     positions:[MNKRotaryPositions positionsStartingAt:0]
                        rotary:[[MNKRotaryEmbedding alloc] init]
                         error:failure] &&
           [step appendKeys:keys values:ones toCache:cache error:failure] &&
           [step attendQueries:queries overCache:cache intoTensor:output options:nil error:failure];
  }];
  for (const float number : [self floatsOf:output]) XCTAssertEqualWithAccuracy(number, 1, 1e-5);
}

- (void)testMeasuredChoicesAreReused {
  for (const BOOL isFirst : {YES, NO}) {
    MNKDevice *host = [self host];
    MNKPreparation *preparation = [[MNKPreparation alloc] initWithCaches:@[ [self cacheOn:host] ]];
    preparation.tuning = MNKTuningMeasure;
    preparation.tuningFileURL = _file;
    NSError *error = nil;
    MNKPreparationSummary *ready = [host prepare:preparation error:&error];
    XCTAssertNotNil(ready, @"%@", error);
    XCTAssertEqual(ready.measured, isFirst ? 1u : 0u, @"%@", ready);
    XCTAssertEqual(ready.known, isFirst ? 0u : 1u, @"%@", ready);
    XCTAssertTrue(ready.isKept);
    XCTAssertTrue([[NSFileManager defaultManager] fileExistsAtPath:(NSString *_Nonnull)_file.path]);
    XCTAssertEqual([host prepare:preparation error:&error].known, 1u, @"%@", error);
  }
}

- (void)testAnUnwritableFileIsReported {
  MNKDevice *host = [self host];
  MNKPreparation *preparation = [[MNKPreparation alloc] initWithCaches:@[ [self cacheOn:host] ]];
  preparation.tuning = MNKTuningMeasure;
  preparation.tuningFileURL = [NSURL fileURLWithPath:@"/no/such/folder/tuning"];
  NSError *error = nil;
  MNKPreparationSummary *ready = [host prepare:preparation error:&error];
  XCTAssertEqual(ready.measured, 1u, @"%@", error);
  XCTAssertFalse(ready.isKept);
}

- (void)testInvalidPreparationsAreRefused {
  MNKAttentionCache *cache = [self cacheOn:self.device];
  MNKAttentionCache *foreign = [self cacheOn:[self host]];
  MNKAttentionOptions *wide = [[MNKAttentionOptions alloc] init];
  wide.window = NSUIntegerMax;
  MNKRotaryEmbedding *rotary = [[MNKRotaryEmbedding alloc] init];
  rotary.sections = @[ @1, @2, @3, @4, @5 ];
  const std::vector<std::pair<NSString *, std::function<void(MNKPreparation *)>>> changes{
      {@"the rows do not fit a cache", [](MNKPreparation *changed) { changed.rows = 0; }},
      {@"the rows do not fit a cache", [](MNKPreparation *changed) { changed.rows = 257; }},
      {@"the number for rows is out of range", [](MNKPreparation *changed) { changed.rows = NSUIntegerMax; }},
      {@"the number for queryHeads is out of range",
       [](MNKPreparation *changed) { changed.queryHeads = NSUIntegerMax; }},
      {@"", [](MNKPreparation *changed) { changed.queryHeads = 3; }},
      {@"no kernels for tokens of this dtype",
       [](MNKPreparation *changed) { changed.elementType = MNKElementTypeUInt8; }},
      {@"is unknown", [](MNKPreparation *changed) { changed.elementType = static_cast<MNKElementType>(77); }},
      {@"the number for tuning is unknown",
       [](MNKPreparation *changed) { changed.tuning = static_cast<MNKTuning>(2); }},
      {@"the number for window is out of range", [=](MNKPreparation *changed) { changed.options = wide; }},
      {@"too many sections", [=](MNKPreparation *changed) { changed.rotary = rotary; }},
      {@"a cache is of another device",
       [=](MNKPreparation *changed) {
         changed.caches = @[ cache, foreign ];
       }},
      {@"another class was passed for a cache", [](MNKPreparation *changed) { changed.caches = (NSArray *)@[ @1 ]; }},
      {@"nil was passed for the caches", [](MNKPreparation *changed) { changed.caches = absentObject(); }},
      {@"the URL names no file",
       [](MNKPreparation *changed) { changed.tuningFileURL = [NSURL URLWithString:@"https://example.com/tuning"]; }},
  };
  for (const auto &[what, change] : changes) {
    MNKPreparation *preparation = [[MNKPreparation alloc] initWithCaches:@[ cache ]];
    change(preparation);
    NSError *error = nil;
    XCTAssertNil([self.device prepare:preparation error:&error], @"%@", what);
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"prepare", what));
    XCTAssertNil([self.device prepare:preparation error:nil]);
  }
  NSError *error = nil;
  XCTAssertNil([self.device prepare:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"prepare", @"nil was passed for the preparation"));
}

- (void)testACompletionHandlerCannotPrepare {
  MNKDevice *host = [self host];
  MNKPreparation *preparation = [[MNKPreparation alloc] initWithCaches:@[ [self cacheOn:host] ]];
  XCTestExpectation *answered = [self expectationWithDescription:@"the handler"];
  __block NSError *failure = nil;
  [[host commandEncoder] commitWithCompletionHandler:^(MNKSummary *, NSError *) {
    NSError *refused = nil;
    XCTAssertNil([host prepare:preparation error:&refused]);
    failure = refused;
    [answered fulfill];
  }];
  [self waitForExpectations:@[ answered ] timeout:60];
  XCTAssertEqual(failure.code, MNKErrorWouldDeadlock, @"%@", failure);
}

@end
