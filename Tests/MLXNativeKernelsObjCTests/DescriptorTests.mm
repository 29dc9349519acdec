#import "Generated/Objects.hpp"
#import "Support/Bridging.hpp"
#import "Support/DescriptorChecks.h"
#import "Support/DeviceTestCase.h"

#include "Ops/FlashDecode/FlashDecodeCase.hpp"

using namespace mnk::objc_test;

@interface DescriptorTests : DeviceTestCase
@end

@implementation DescriptorTests

- (void)testHostOptions {
  [self checkDescriptor:[[MNKHostOptions alloc] init]
                changes:@{
                  @"workers" : @3,
                  @"orderSeed" : @(UINT64_MAX),
                  @"checking" : @(MNKHostOptionsCheckingFull),
                  @"allowsSameValue" : @YES,
                  @"perturbsResults" : @YES,
                  @"level" : @(MNKHostOptionsLevelAVX2),
                  @"compiler" : @"clang++",
                }];
}

- (void)testCodecAndItsOptions {
  [self checkDescriptor:[MNKKVCodec turboWithBits:4] changes:@{@"name" : @1, @"bits" : @5, @"scaleFactor" : @2}];
  [self checkDescriptor:[[MNKKVQuantizeOptions alloc] init]
                changes:@{@"candidates" : @17, @"keyScale" : @2, @"valueScale" : @1, @"nonFinite" : @1}];
  XCTAssertEqualObjects([MNKKVCodec mlx1WithBits:4], ([[MNKKVCodec alloc] initWithName:MNKKVCodecNameMLX1 bits:4]));
  XCTAssertNotEqualObjects([MNKKVCodec mlx1WithBits:4], [MNKKVCodec turboWithBits:4]);
  XCTAssertEqualObjects([MNKKVCodec mlx1UnrotatedWithBits:8],
                        ([[MNKKVCodec alloc] initWithName:MNKKVCodecNameMLX1Unrotated bits:8]));
  XCTAssertEqualObjects([MNKKVCodec mlx1Affine4], ([[MNKKVCodec alloc] initWithName:MNKKVCodecNameMLX1Affine4 bits:4]));
}

- (void)testViews {
  MNKTensor *one = [self zeros:@[ @1 ]], *two = [self zeros:@[ @2 ]];
  NSDictionary *slots = @{@"layout" : @2, @"wrap" : @1, @"pinned" : @7, @"latentDim" : @8};
  NSMutableDictionary *dense = [slots mutableCopy];
  [dense addEntriesFromDictionary:@{@"keys" : two, @"values" : one}];
  [self checkDescriptor:[[MNKKVCacheView alloc] initWithKeys:one values:two] changes:dense];

  MNKQuantizedKVPlane *plane = [[MNKQuantizedKVPlane alloc] initWithCodec:[MNKKVCodec turboWithBits:4]
                                                                    codes:one
                                                                   scales:two];
  [self checkDescriptor:plane
                changes:@{
                  @"codec" : [MNKKVCodec turboWithBits:3],
                  @"codes" : two,
                  @"scales" : one,
                  @"means" : one,
                  @"channelScales" : two
                }];
  MNKQuantizedKVPlane *other = [plane copy];
  other.means = one;
  NSMutableDictionary *quantized = [slots mutableCopy];
  [quantized addEntriesFromDictionary:@{@"keys" : other, @"values" : other}];
  MNKQuantizedKVCacheView *view = [[MNKQuantizedKVCacheView alloc] initWithKeys:plane values:nil];
  [self checkDescriptor:view changes:quantized];
  // The initializer copies its arguments.
  plane.codec.bits = 2;
  plane.means = two;
  XCTAssertEqual(view.keys.codec.bits, 4u);
  XCTAssertNil(view.keys.means);
}

- (void)testHeadsAndRotary {
  MNKTensor *one = [self zeros:@[ @1 ]], *two = [self zeros:@[ @2 ]];
  MNKHeadsViewStrides *strides = [[MNKHeadsViewStrides alloc] init];
  [self checkDescriptor:strides
                changes:@{
                  @"sequences" : @2,
                  @"tokens" : @3,
                  @"heads" : @4,
                  @"headDim" : @5,
                  @"offset" : @6,
                  @"sequenceStride" : @7,
                  @"tokenStride" : @8,
                  @"headStride" : @9
                }];
  MNKHeadsView *view = [[MNKHeadsView alloc] initWithTensor:one];
  [self checkDescriptor:view changes:@{@"tensor" : two, @"layout" : @1, @"strides" : strides}];
  MNKRotaryEmbeddingYaRN *yarn = [[MNKRotaryEmbeddingYaRN alloc] initWithOriginalContext:4096];
  [self checkDescriptor:yarn
                changes:@{
                  @"originalContext" : @8192,
                  @"extensionFactor" : @0.5f,
                  @"attentionFactor" : @2,
                  @"betaFast" : @16,
                  @"betaSlow" : @4,
                  @"roundsCorners" : @NO
                }];
  [self checkDescriptor:[[MNKRotaryEmbedding alloc] init]
                changes:@{
                  @"layout" : @(MNKRotaryEmbeddingLayoutVision),
                  @"sections" : @[ @1, @2 ],
                  @"base" : @5e6,
                  @"ropeDim" : @8,
                  @"pairing" : @2,
                  @"otherAxis" : @1,
                  @"scale" : @0.25,
                  @"frequencyFactors" : @[ @2 ],
                  @"yarn" : yarn,
                  @"inverse" : @YES
                }];
  MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:view
                                                        keys:nil
                                                   positions:[MNKRotaryPositions positionsStartingAt:1]
                                                      rotary:[[MNKRotaryEmbedding alloc] init]];
  MNKHeadsView *other = [[MNKHeadsView alloc] initWithTensor:two];
  MNKRotaryEmbedding *inverse = [[MNKRotaryEmbedding alloc] init];
  inverse.inverse = YES;
  [self checkDescriptor:rope
                changes:@{
                  @"queries" : other,
                  @"keys" : other,
                  @"rotatedQueries" : other,
                  @"rotatedKeys" : other,
                  @"positions" : [MNKRotaryPositions positionsStartingAt:2],
                  @"offsets" : [MNKIntegers integersWithList:@[ @1 ]],
                  @"rotary" : inverse
                }];
}

// These are immutable, so a copy is the same object.
- (void)testListsOfNumbers {
  MNKTensor *one = [self zeros:@[ @1 ]];
  NSMutableArray<NSNumber *> *list = [NSMutableArray arrayWithObject:@1];
  MNKAttentionCache *cache = [[MNKAttentionCache alloc]
      initWithDevice:self.device
          descriptor:[MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4]
               error:nil];
  NSArray *different = @[
    [MNKIntegers integersWithList:list], [MNKIntegers integersWithList:@[ @2 ]], [MNKIntegers integersWithTensor:one],
    [MNKRotaryPositions positionsStartingAt:0], [MNKRotaryPositions positionsStartingAt:1],
    [MNKRotaryPositions positionsPerAxis:@[ @[ @1 ] ]], [MNKRotaryPositions positionsPerAxis:@[ @[ @1 ], @[ @1 ] ]],
    [MNKRotaryPositions positionsWithTensor:one], [MNKRotaryPositions nextPositionsOfCache:cache],
    [MNKRotaryPositions nextPositionsOfCache:cache sequences:list rowCounts:nil],
    [MNKRotaryPositions nextPositionsOfCache:cache sequences:@[ @1 ] rowCounts:list]
  ];
  [list addObject:@2];
  for (MNKDescriptor *each in different) {
    XCTAssertEqualObjects([each copy], each);
    for (MNKDescriptor *other in different) XCTAssertEqual([each isEqual:other], each == other);
  }
  XCTAssertEqualObjects([different[0] list], @[ @1 ]);
  MNKRotaryPositions *listed = different[9], *counted = different[10];
  XCTAssertEqualObjects(listed.sequences, @[ @1 ]);
  XCTAssertEqualObjects(counted.rowCounts, @[ @1 ]);
  XCTAssertEqualObjects([MNKIntegers integersWithList:@[ @1 ]], different[0]);
  XCTAssertEqual([MNKIntegers integersWithList:@[ @1 ]].hash, [different[0] hash]);
  XCTAssertEqualObjects([MNKRotaryPositions positionsWithTensor:one], different[7]);
}

- (void)testOperationsThatStoreTokens {
  MNKTensor *one = [self zeros:@[ @1 ]], *two = [self zeros:@[ @2 ]];
  MNKHeadsView *heads = one.headsView;
  MNKIntegers *integers = [MNKIntegers integersWithList:@[ @1 ]], *others = [MNKIntegers integersWithList:@[ @2 ]];
  MNKKVCacheWriteRows *rows = [[MNKKVCacheWriteRows alloc] initWithSequences:integers positions:integers];
  [self checkDescriptor:rows changes:@{@"sequences" : others, @"positions" : others}];
  NSDictionary *source = @{
    @"keys" : two.headsView,
    @"values" : two.headsView,
    @"sourceLayout" : @0,
    @"sourceOffset" : @1,
    @"tokens" : @2,
    @"sourceIsRing" : @YES,
    @"sequence" : @3,
    @"position" : @4,
    @"rows" : rows
  };
  MNKKVCacheView *view = [[MNKKVCacheView alloc] initWithKeys:one values:nil];
  MNKKVCacheView *otherView = [[MNKKVCacheView alloc] initWithKeys:two values:nil];
  NSMutableDictionary *changes = [source mutableCopy];
  changes[@"destination"] = otherView;
  [self checkDescriptor:[[MNKKVCacheWrite alloc] initWithKeys:heads values:heads destination:view position:9]
                changes:changes];

  MNKQuantizedKVPlane *plane = [[MNKQuantizedKVPlane alloc] initWithCodec:[MNKKVCodec turboWithBits:4]
                                                                    codes:one
                                                                   scales:one];
  MNKQuantizedKVCacheView *quantized = [[MNKQuantizedKVCacheView alloc] initWithKeys:plane values:nil];
  MNKQuantizedKVCacheView *otherCoded = [[MNKQuantizedKVCacheView alloc] initWithKeys:plane values:plane];
  MNKKVQuantizeOptions *options = [[MNKKVQuantizeOptions alloc] init];
  options.candidates = 1;
  changes = [source mutableCopy];
  [changes
      addEntriesFromDictionary:@{@"destination" : otherCoded, @"options" : options, @"counts" : one, @"probe" : one}];
  [self checkDescriptor:[[MNKKVCacheQuantize alloc] initWithKeys:heads values:heads destination:quantized position:9]
                changes:changes];
  [self checkDescriptor:[[MNKKVCacheDequantize alloc] initWithSource:quantized keys:one values:nil position:9]
                changes:@{
                  @"source" : otherCoded,
                  @"sequence" : @1,
                  @"position" : @2,
                  @"keys" : two,
                  @"values" : two,
                  @"layout" : @1,
                  @"domain" : @1
                }];
  [self checkDescriptor:[[MNKHadamard alloc] initWithSource:one destination:nil]
                changes:@{@"source" : two, @"destination" : two, @"signs" : @1, @"inverse" : @YES}];
}

- (void)testAttention {
  MNKTensor *one = [self zeros:@[ @1 ]], *two = [self zeros:@[ @2 ]];
  MNKAttentionOptions *options = [[MNKAttentionOptions alloc] init];
  NSMutableDictionary *optionChanges = [@{@"mask" : one, @"slopes" : one, @"sinks" : one} mutableCopy];
  for (const mnk::test::NumberOption &option : mnk::test::numberOptions()) {
    NSString *key = @(option.name);
    optionChanges[key] = @(1 - [[options valueForKey:key] intValue]);
  }
  [self checkDescriptor:options changes:optionChanges];
  MNKAttentionPartials *partials = [[MNKAttentionPartials alloc] initWithSums:one stats:two];
  [self checkDescriptor:partials changes:@{@"sums" : two, @"stats" : one}];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:one];
  [self checkDescriptor:results changes:@{@"output" : two, @"partials" : partials, @"logSumExp" : two}];
  MNKAttendedSequence *sequence = [[MNKAttendedSequence alloc] initWithSequence:1 length:2];
  XCTAssertEqualObjects([sequence copy], sequence);
  XCTAssertEqualObjects(sequence, [[MNKAttendedSequence alloc] initWithSequence:1 length:2]);
  XCTAssertNotEqualObjects(sequence, [[MNKAttendedSequence alloc] initWithSequence:2 length:2]);
  XCTAssertNotEqualObjects(sequence, [[MNKAttendedSequence alloc] initWithSequence:1 length:1]);
  XCTAssertNotEqualObjects(sequence, [[MNKAttendedSequence alloc] initWithSequence:1
                                                                            length:2
                                                                           highest:3
                                                                              rows:0
                                                                          position:nil]);
  XCTAssertNotEqualObjects(sequence, [[MNKAttendedSequence alloc] initWithSequence:1
                                                                            length:2
                                                                           highest:0
                                                                              rows:4
                                                                          position:nil]);
  MNKKVCacheView *view = [[MNKKVCacheView alloc] initWithKeys:one values:nil];
  MNKQuantizedKVPlane *plane = [[MNKQuantizedKVPlane alloc] initWithCodec:[MNKKVCodec turboWithBits:4]
                                                                    codes:one
                                                                   scales:one];
  MNKFlashDecode *decode = [[MNKFlashDecode alloc] initWithQueries:one.headsView
                                                             cache:view
                                                         sequences:@[]
                                                           results:results];
  MNKAttentionOptions *wide = [options copy];
  wide.window = 9;
  [self checkDescriptor:decode
                changes:@{
                  @"queries" : two.headsView,
                  @"cache" : [[MNKQuantizedKVCacheView alloc] initWithKeys:plane values:nil],
                  @"sequences" : @[ [[MNKAttendedSequence alloc] initWithSequence:0 length:1] ],
                  @"results" : [MNKAttentionResults resultsIntoPartials:partials],
                  @"options" : wide,
                  @"scratch" : one
                }];
  MNKMergePartials *merge = [[MNKMergePartials alloc] initWithParts:partials results:results];
  [self checkDescriptor:merge
                changes:@{
                  @"parts" : [[MNKAttentionPartials alloc] initWithSums:two stats:two],
                  @"sinks" : one,
                  @"results" : [MNKAttentionResults resultsIntoTensor:two]
                }];
  results.output = two;
  partials.sums = two;
  XCTAssertEqualObjects(decode.results.output, one);
  XCTAssertEqualObjects(merge.parts.sums, one);
}

- (void)testCacheDescriptors {
  MNKTensor *one = [self zeros:@[ @1 ]];
  MNKKVQuantizeOptions *options = [[MNKKVQuantizeOptions alloc] init];
  options.candidates = 1;
  MNKKVQuantizedStorage *storage = [[MNKKVQuantizedStorage alloc] initWithCodec:MNKKVCodecNameTurbo
                                                                        keyBits:4
                                                                      valueBits:3];
  [self checkDescriptor:storage
                changes:@{
                  @"codec" : @1,
                  @"keyBits" : @5,
                  @"valueBits" : @4,
                  @"scaleFactor" : @2,
                  @"options" : options,
                  @"keyMeans" : one,
                  @"valueMeans" : one,
                  @"keyChannelScales" : one,
                  @"planes" : @(MNKKVQuantizedPlanesValues)
                }];
  MNKSlidingWindow *window = [[MNKSlidingWindow alloc] initWithWindow:2];
  XCTAssertEqualObjects(window, ([[MNKSlidingWindow alloc] initWithWindow:2 maxRows:64 maxDraft:0]));
  [self checkDescriptor:window changes:@{@"window" : @3, @"maxRows" : @4, @"maxDraft" : @5}];
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:2 capacity:3];
  [self checkDescriptor:descriptor
                changes:@{
                  @"kvHeads" : @2,
                  @"headDim" : @3,
                  @"valueHeadDim" : @4,
                  @"capacity" : @5,
                  @"sequences" : @6,
                  @"elementType" : @0,
                  @"quantized" : storage,
                  @"whenFull" : @1,
                  @"pinned" : @7,
                  @"slidingWindow" : window,
                  @"latentDim" : @8,
                  @"storageOnly" : @YES
                }];
  descriptor.quantized = storage;
  descriptor.slidingWindow = window;
  storage.keyBits = 8;
  window.window = 9;
  XCTAssertEqual(descriptor.quantized.keyBits, 4u);
  XCTAssertEqual(descriptor.slidingWindow.window, 2u);
}

- (void)testOpsCopyTheirArguments {
  MNKTensor *one = [self zeros:@[ @1 ]];
  MNKKVCacheView *dense = [[MNKKVCacheView alloc] initWithKeys:one values:nil];
  MNKQuantizedKVPlane *plane = [[MNKQuantizedKVPlane alloc] initWithCodec:[MNKKVCodec turboWithBits:4]
                                                                    codes:one
                                                                   scales:one];
  MNKQuantizedKVCacheView *quantized = [[MNKQuantizedKVCacheView alloc] initWithKeys:plane values:plane];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:one];
  MNKHeadsView *heads = [[MNKHeadsView alloc] initWithTensor:one];
  MNKRotaryEmbedding *rotary = [[MNKRotaryEmbedding alloc] init];
  NSMutableArray<MNKAttendedSequence *> *sequences = [NSMutableArray array];
  NSArray<MNKOperation *> * (^make)(void) = ^{
    return @[
      [[MNKKVCacheWrite alloc] initWithKeys:heads values:heads destination:dense position:0],
      [[MNKKVCacheQuantize alloc] initWithKeys:heads values:heads destination:quantized position:0],
      [[MNKKVCacheDequantize alloc] initWithSource:quantized keys:one values:nil position:0],
      [[MNKFlashDecode alloc] initWithQueries:heads cache:dense sequences:sequences results:results],
      [[MNKFlashDecode alloc] initWithQueries:heads cache:quantized sequences:sequences results:results],
      [[MNKMultiRoPE alloc] initWithQueries:heads
                                       keys:heads
                                  positions:[MNKRotaryPositions positionsStartingAt:0]
                                     rotary:rotary],
    ];
  };
  // One change at a time, so that no missing copy is hidden by another.
  const std::vector<std::function<void(BOOL)>> changes{
      [=](BOOL isChanged) { dense.pinned = quantized.pinned = isChanged ? 5 : 0; },
      [=](BOOL isChanged) { results.logSumExp = isChanged ? one : nil; },
      [=](BOOL isChanged) { heads.layout = isChanged ? MNKKVLayoutHeadMajor : MNKKVLayoutTokenMajor; },
      [=](BOOL isChanged) { rotary.inverse = isChanged; },
      [=](BOOL isChanged) {
        [sequences setArray:isChanged ? @[ [[MNKAttendedSequence alloc] initWithSequence:0 length:1] ] : @[]];
      },
  };
  for (const auto &change : changes) {
    NSArray *before = [make() valueForKey:@"description"];
    NSArray<MNKOperation *> *operations = make();
    change(YES);
    XCTAssertEqualObjects([operations valueForKey:@"description"], before);
    XCTAssertNotEqualObjects([make() valueForKey:@"description"], before);
    change(NO);
  }
}

- (void)testDefaultsMatchTheCore {
  XCTAssertEqualObjects([[MNKAttentionOptions alloc] init], objectFor(mnk::AttentionOptions()));
  XCTAssertEqualObjects([[MNKKVQuantizeOptions alloc] init], objectFor(mnk::KVQuantizeOptions()));
  mnk::RotaryEmbedding rotary;
  rotary.yarn = mnk::RotaryEmbedding::YaRN{.originalContext = 4096};
  MNKRotaryEmbedding *object = [[MNKRotaryEmbedding alloc] init];
  object.yarn = [[MNKRotaryEmbeddingYaRN alloc] initWithOriginalContext:4096];
  object.sections = @[ @0, @0, @0, @0 ];
  object.frequencyFactors = @[];
  XCTAssertEqualObjects(object, objectFor(rotary));
  XCTAssertEqualObjects(([MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:2 capacity:3]),
                        objectFor(mnk::AttentionCacheDescriptor{.kvHeads = 1, .headDim = 2, .capacity = 3}));
  XCTAssertEqual([MNKKVCodec turboWithBits:4].scaleFactor, mnk::KVCodec().scaleFactor);
}

- (void)testPositionsRetainNoCallerArray {
  NSMutableArray<NSNumber *> *time = [NSMutableArray arrayWithObject:@1];
  NSMutableArray<NSArray<NSNumber *> *> *axes = [NSMutableArray arrayWithObjects:time, @[ @2 ], nil];
  MNKRotaryPositions *positions = [MNKRotaryPositions positionsPerAxis:axes];
  time[0] = @900;
  [axes addObject:@[ @3 ]];
  XCTAssertEqualObjects(positions.axes, (@[ @[ @1 ], @[ @2 ] ]));
  XCTAssertEqualObjects(positions, ([MNKRotaryPositions positionsPerAxis:@[ @[ @1 ], @[ @2 ] ]]));
}

@end
