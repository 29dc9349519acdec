#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Prepares a separate Host device, so that the device shared by all tests keeps the choices of the table.
@interface PrepareTests : DeviceTestCase
@end

@implementation PrepareTests

- (MNKDevice *)host {
  NSError *error = nil;
  MNKDevice *device = [MNKDevice hostDeviceWithOptions:nil error:&error];
  XCTAssertNotNil(device, @"%@", error);
  return device;
}

- (MNKPreparation *)preparationOn:(MNKDevice *)device {
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:2
                                                                                       headDim:64
                                                                                      capacity:256];
  NSError *error = nil;
  MNKAttentionCache *cache = [[MNKAttentionCache alloc] initWithDevice:device descriptor:descriptor error:&error];
  XCTAssertNotNil(cache, @"%@", error);
  return [[MNKPreparation alloc] initWithCaches:@[ cache ]];
}

- (void)testASummarySaysWhatIsReady {
  for (NSURL *file in @[ self.temporaryFile, self.temporaryFile, [NSURL fileURLWithPath:@"/no/such/folder/tuning"] ]) {
    MNKDevice *host = [self host];
    MNKPreparation *preparation = [self preparationOn:host];
    preparation.queryHeads = 4;
    preparation.rows = 3;
    preparation.options = [[MNKAttentionOptions alloc] init];
    preparation.rotary = [[MNKRotaryEmbedding alloc] init];
    preparation.tuning = MNKTuningMeasure;
    preparation.tuningFileURL = file;
    NSError *error = nil;
    MNKPreparationSummary *ready = [host prepare:preparation error:&error];
    XCTAssertNotNil(ready, @"%@", error);
    XCTAssertGreaterThan(ready.kernels, 2u);
    XCTAssertGreaterThan(ready.measured + ready.known, 0u);
    XCTAssertGreaterThan(ready.seconds, 0);
    XCTAssertEqual(ready.isKept, file == self.temporaryFile);
    NSString *begin = [NSString stringWithFormat:@"%lu kernels, %lu shape%s measured, %lu known, ",
                                                 (unsigned long)ready.kernels, (unsigned long)ready.measured,
                                                 ready.measured == 1 ? "" : "s", (unsigned long)ready.known];
    XCTAssertTrue([ready.description hasPrefix:begin], @"%@", ready);
  }
}

- (void)testInvalidPreparationsAreRefused {
  MNKDevice *device = [self host];
  MNKAttentionOptions *wide = [[MNKAttentionOptions alloc] init];
  wide.window = NSUIntegerMax;
  const std::vector<std::tuple<NSString *, id, NSString *>> changes{
      {@"rows", @0, @"the rows do not fit a cache"},
      {@"rows", @(NSUIntegerMax), @"the number for rows is out of range"},
      {@"elementType", @77, @"the number for element type is unknown"},
      {@"tuning", @2, @"the number for tuning is unknown"},
      {@"options", wide, @"the number for window is out of range"},
      {@"caches", @[ @1 ], @"another class was passed for a cache"},
      {@"caches", nil, @"nil was passed for the caches"},
      {@"tuningFileURL", [NSURL URLWithString:@"https://example.com/tuning"], @"the URL names no file"},
  };
  const auto prepare = [=](MNKPreparation *preparation) {
    return [=](NSError **e) { return [device prepare:preparation error:e] != nil; };
  };
  for (const auto &[key, value, what] : changes) {
    MNKPreparation *preparation = [self preparationOn:device];
    [preparation setValue:value forKey:key];
    XCTAssertNil(wrongIn({{@"prepare", what, prepare(preparation)}}));
  }
  XCTAssertNil(wrongIn({{@"prepare", @"nil was passed for the preparation", prepare(absentObject())}}));
}

@end
