#include "CAPI/Generated/FieldCases.hpp"
#import "Generated/Objects.hpp"
#include "MLXNativeKernels/Prepare.hpp"
#import "ObjC/Core.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;

// Objects that are values: copies are equal and independent.
@interface DescriptorTests : DeviceTestCase
@end

@implementation DescriptorTests

// Of each field that the API's description has, from C++ to a property and back.
- (void)testEachFieldReachesTheCoreAndIsCopied {
  const Tensor tensor = coreOf([self zeros:@[ @1 ]]), other = coreOf([self zeros:@[ @1 ]]);
  MNKDescriptor *previous = nil;
  test::forEachField(tensor, other, [&](std::string_view name, const auto &core) {
    const std::string field(name);
    const auto object = objectFor(core);
    MNKDescriptor *original = (MNKDescriptor *)object, *copy = [original copy];
    for (MNKDescriptor *each in @[ original, copy ]) {
      objc::Reading reading("test");
      const auto from = objc::structFrom(reading, static_cast<decltype(objectFor(core))>((id)each), "object");
      XCTAssertFalse(reading.failed(), @"%s", field.c_str());
      std::remove_cvref_t<decltype(core)> read;
      XCTAssertTrue(c::read(read, from, {nullptr, name}));
      XCTAssertTrue(test::same(read, core), @"%s", field.c_str());
    }
    XCTAssertEqualObjects(copy, original, @"%s", field.c_str());
    XCTAssertEqual(copy.hash, original.hash, @"%s", field.c_str());
    // This field differs from the last one's object, or the class does.
    XCTAssertNotEqualObjects(original, previous, @"%s", field.c_str());
    previous = original;
    for (NSString *key in [[original class] valueKeys]) {
      id value = [original valueForKey:key];
      const BOOL isMutable = [value isKindOfClass:[MNKDescriptor class]] && [value copy] != value;
      if (isMutable) XCTAssertNotIdentical([copy valueForKey:key], value, @"%@ of %@", key, original);
    }
  });
}

// Each property of a class that is written by hand is part of its value, and there are no others.
- (void)checkProperties:(NSDictionary<NSString *, id> *)changes of:(MNKDescriptor *)plain {
  XCTAssertEqualObjects([NSSet setWithArray:[[plain class] valueKeys]], [NSSet setWithArray:changes.allKeys]);
  XCTAssertNotEqualObjects(plain, @"a descriptor");
  for (NSString *key in changes) {
    MNKDescriptor *changed = [plain copy];
    XCTAssertEqualObjects(changed, plain);
    [changed setValue:changes[key] forKey:key];
    XCTAssertNotEqualObjects(changed, plain, @"%@", key);
    XCTAssertNotEqualObjects(plain, changed, @"%@", key);
    XCTAssertEqualObjects([changed copy], changed, @"%@", key);
    XCTAssertEqual([[changed copy] hash], changed.hash, @"%@", key);
    NSString *shown = [NSString stringWithFormat:@"%@ = ", key];
    XCTAssertTrue([changed.description rangeOfString:shown].length > 0, @"%@", changed);
  }
}

- (MNKAttentionCache *)cache {
  return [self cacheWith:[MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4]];
}

- (void)testStepsAndPreparationsAreValues {
  MNKTensor *one = [self zeros:@[ @1 ]];
  MNKAttentionCache *cache = self.cache;
  MNKRotaryEmbedding *rotary = [[MNKRotaryEmbedding alloc] init];
  MNKAttentionOptions *options = [[MNKAttentionOptions alloc] init];
  options.window = 2;
  [self checkProperties:@{
    @"queries" : one.headsView,
    @"keys" : one.headsView,
    @"values" : one.headsView,
    @"rotary" : [[MNKRotaryStep alloc] initWithEmbedding:rotary],
    @"results" : [MNKAttentionResults resultsIntoTensor:one],
    @"options" : options,
    @"sequences" : @[ @2 ],
    @"rowCounts" : @[ @1 ],
    @"prefixes" : @[ [[MNKCachePrefix alloc] initWithCache:cache] ]
  }
                     of:[[MNKCacheStep alloc] init]];
  XCTAssertEqual([[MNKCachePrefix alloc] initWithCache:cache].sequence, MNKOnlySequence);
  NSMutableArray<MNKAttentionCache *> *caches = [NSMutableArray array];
  MNKPreparation *preparation = [[MNKPreparation alloc] initWithCaches:caches];
  [caches addObject:cache];
  XCTAssertEqual(preparation.caches.count, 0u);
  [self checkProperties:@{
    @"caches" : @[ cache ],
    @"queryHeads" : @8,
    @"rows" : @2,
    @"elementType" : @1,
    @"options" : options,
    @"rotary" : rotary,
    @"tuning" : @(MNKTuningMeasure),
    @"tuningFileURL" : [NSURL fileURLWithPath:@"/tuning"]
  }
                     of:preparation];
  preparation.options = options;
  options.window = 9;
  XCTAssertEqual(preparation.options.window, 2u);
}

// These are immutable, and keep no array of the caller.
- (void)testListsOfNumbersAreValues {
  MNKTensor *one = [self zeros:@[ @1 ]];
  MNKAttentionCache *cache = self.cache;
  NSMutableArray<NSNumber *> *list = [NSMutableArray arrayWithObject:@1], *axis = [NSMutableArray arrayWithObject:@1];
  NSMutableArray<NSArray<NSNumber *> *> *axes = [NSMutableArray arrayWithObject:axis];
  NSArray<MNKDescriptor *> * (^make)(void) = ^{
    return @[
      [MNKIntegers integersWithList:list], [MNKIntegers integersWithList:@[ @2 ]], [MNKIntegers integersWithTensor:one],
      [MNKRotaryPositions positionsStartingAt:0], [MNKRotaryPositions positionsStartingAt:1],
      [MNKRotaryPositions positionsPerAxis:axes], [MNKRotaryPositions positionsPerAxis:@[ @[ @1 ], @[ @1 ] ]],
      [MNKRotaryPositions positionsWithTensor:one], [MNKRotaryPositions nextPositionsOfCache:cache],
      [MNKRotaryPositions nextPositionsOfCache:cache sequences:list rowCounts:nil],
      [MNKRotaryPositions nextPositionsOfCache:cache sequences:@[ @1 ] rowCounts:list]
    ];
  };
  NSArray<MNKDescriptor *> *different = make(), *same = make();
  NSString *before = different.description;
  [list addObject:@2];
  axis[0] = @900;
  [axes addObject:@[ @3 ]];
  XCTAssertEqualObjects(different.description, before);
  for (NSUInteger i = 0; i < different.count; ++i) {
    XCTAssertIdentical([different[i] copy], different[i]);
    XCTAssertEqual(different[i].hash, same[i].hash);
    for (NSUInteger j = 0; j < same.count; ++j) XCTAssertEqual([different[i] isEqual:same[j]], i == j);
  }
}

// Through initializers, which are generated alike.
- (void)testOpsCopyTheirArguments {
  MNKTensor *one = [self zeros:@[ @1 ]];
  MNKKVCacheView *cache = [[MNKKVCacheView alloc] initWithKeys:one values:nil];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:one];
  MNKHeadsView *heads = one.headsView;
  NSMutableArray<MNKAttendedSequence *> *sequences = [NSMutableArray array];
  MNKFlashDecode *decode = [[MNKFlashDecode alloc] initWithQueries:heads
                                                             cache:cache
                                                         sequences:sequences
                                                           results:results];
  MNKFlashDecode *before = [decode copy];
  cache.pinned = 5;
  results.logSumExp = one;
  heads.layout = MNKKVLayoutHeadMajor;
  [sequences addObject:[[MNKAttendedSequence alloc] initWithSequence:0 length:1]];
  XCTAssertEqualObjects(decode, before);
}

- (void)testDefaultsMatchTheCore {
  XCTAssertEqualObjects([[MNKAttentionOptions alloc] init], objectFor(AttentionOptions()));
  XCTAssertEqualObjects([[MNKKVQuantizeOptions alloc] init], objectFor(KVQuantizeOptions()));
  RotaryEmbedding rotary;
  rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 4096};
  MNKRotaryEmbedding *object = [[MNKRotaryEmbedding alloc] init];
  object.yarn = [[MNKRotaryEmbeddingYaRN alloc] initWithOriginalContext:4096];
  object.sections = @[ @0, @0, @0, @0 ];
  object.frequencyFactors = @[];
  XCTAssertEqualObjects(object, objectFor(rotary));
  XCTAssertEqualObjects([[MNKSlidingWindow alloc] initWithWindow:2], objectFor(SlidingWindow{.window = 2}));
  XCTAssertEqualObjects(([MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:2 capacity:3]),
                        objectFor(AttentionCacheDescriptor{.kvHeads = 1, .headDim = 2, .capacity = 3}));
  XCTAssertEqualObjects([MNKKVCodec turboWithBits:4], objectFor(KVCodec{.bits = 4}));
  const Preparation preparation;
  MNKPreparation *defaults = [[MNKPreparation alloc] initWithCaches:@[]];
  XCTAssertEqual(defaults.queryHeads, preparation.queryHeads);
  XCTAssertEqual(defaults.rows, preparation.rows);
  XCTAssertEqual(defaults.elementType, static_cast<MNKElementType>(preparation.dtype));
  XCTAssertEqual(defaults.tuning, static_cast<MNKTuning>(preparation.tuning));
}

@end
