#include "Harness/Check.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/FlashDecode/FlashDecodeRun.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"
#include "Ops/MultiRoPE/MultiRoPERun.hpp"
#import "Support/BindingOps.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;

// Ops from properties to results, on the device, against the references of the C++ tests.
@interface OperationTests : DeviceTestCase
@end

@implementation OperationTests

// Runs some of the cases in one step, and lets each run check what became of its operands.
template <typename Run, typename Case>
static NSString *failuresOf(OperationTests *self, const std::vector<Case> &cases, size_t stride,
                            void (Run::*check)() const) {
  const auto device = coreOf(self.device);
  return failuresWithin([&] {
    test::Seeded random;
    std::vector<Run> runs;
    runs.reserve(cases.size());
    MNKCommandEncoder *step = [self.device commandEncoder];
    NSError *error = nil;
    for (size_t i = 0; i < cases.size(); i += stride) {
      runs.emplace_back(device, cases[i], random);
      const auto &op = runs.back().op();
      MNKOperation *operation = nil;
      if constexpr (requires { op.op; })
        operation = objectFor(op.op);
      else
        operation = objectFor(op);
      XCTAssertTrue([step encodeOperation:operation error:&error], @"%s: %@", cases[i].name.c_str(), error);
    }
    XCTAssertTrue([[step commitWithError:&error] waitWithError:&error], @"%@", error);
    for (const Run &opRun : runs) (opRun.*check)();
  });
}

- (void)testKVCacheWrite {
  XCTAssertNil(failuresOf(self, test::allCases(), 97, &test::KVCacheWriteRun::expectWritten));
  XCTAssertNil(failuresOf(self, test::sourceCases(), 7, &test::KVCacheWriteRun::expectWritten));
}

- (void)testKVCacheQuantize {
  XCTAssertNil(failuresOf(self, test::allQuantizeCases(), 37, &test::KVCacheQuantizeRun::expectStored));
}

- (void)testMultiRoPE {
  XCTAssertNil(failuresOf(self, test::rope::allCases(), 151, &test::MultiRoPERun::expectRotated));
}

- (void)testFlashDecodeDenseAndQuantized {
  for (const bool isQuantized : {false, true}) {
    std::vector<test::PreparedFlashDecode> prepared;
    XCTAssertNil(failuresWithin([&] {
      test::Seeded random;
      const auto cases = isQuantized ? test::quantizedCases() : test::scoreCases();
      for (size_t i = 0; i < cases.size(); i += isQuantized ? 23 : 7) {
        prepared.push_back(test::prepared(cases[i], random));
      }
    }));
    XCTAssertNil(failuresOf(self, prepared, 1, &test::FlashDecodeRun::expectAttended));
  }
}

- (void)testPartsMergeToTheWhole {
  MNKTensor *queries = [self numbers:@[ @2, @32 ] seed:1];
  MNKTensor *keys = [self numbers:@[ @1, @8, @32 ] seed:2], *values = [self numbers:@[ @1, @8, @32 ] seed:3];
  MNKTensor *whole = [self zeros:@[ @2, @32 ]], *merged = [self zeros:@[ @2, @32 ]];
  MNKTensor *logOfWhole = [self zeros:@[ @2 ]], *logOfMerged = [self zeros:@[ @2 ]];
  MNKTensor *sums = [self zeros:@[ @2, @2, @32 ]], *stats = [self zeros:@[ @2, @2, @2 ]];
  MNKTensor *sinks = [self numbers:@[ @2 ] seed:4];
  const auto decode = [&](MNKTensor *k, MNKTensor *v, NSUInteger length, MNKAttentionResults *results) {
    MNKAttendedSequence *sequence = [[MNKAttendedSequence alloc] initWithSequence:0 length:length];
    MNKFlashDecode *op = [[MNKFlashDecode alloc] initWithQueries:queries
                                                       overCache:[[MNKKVCacheView alloc] initWithKeys:k values:v]
                                                       sequences:@[ sequence ]
                                                         results:results];
    return op;
  };
  MNKAttentionResults *all = [MNKAttentionResults resultsIntoTensor:whole];
  all.logSumExp = logOfWhole;
  MNKFlashDecode *once = decode(keys, values, 8, all);
  once.options.sinks = sinks;
  [self encode:once];
  for (NSUInteger part = 0; part < 2; ++part) {
    const NSRange range = NSMakeRange(part, 1), half = NSMakeRange(part * 4, 4);
    MNKTensor *flatKeys = [keys reshapedTo:@[ @8, @32 ] error:nil], *flatValues = [values reshapedTo:@[ @8, @32 ]
                                                                                               error:nil];
    MNKTensor *partKeys = [[flatKeys sliceWithRange:half error:nil] reshapedTo:@[ @1, @4, @32 ] error:nil];
    MNKTensor *partValues = [[flatValues sliceWithRange:half error:nil] reshapedTo:@[ @1, @4, @32 ] error:nil];
    MNKTensor *partSums = [[sums sliceWithRange:range error:nil] reshapedTo:@[ @2, @32 ] error:nil];
    MNKTensor *partStats = [[stats sliceWithRange:range error:nil] reshapedTo:@[ @2, @2 ] error:nil];
    MNKAttentionPartials *partials = [[MNKAttentionPartials alloc] initWithSums:partSums stats:partStats];
    [self encode:decode(partKeys, partValues, 4, [MNKAttentionResults resultsIntoPartials:partials])];
  }
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:merged];
  results.logSumExp = logOfMerged;
  MNKAttentionPartials *parts = [[MNKAttentionPartials alloc] initWithSums:sums stats:stats];
  MNKMergePartials *merge = [[MNKMergePartials alloc] initWithPartials:parts results:results];
  merge.sinks = sinks;
  [self encode:merge];
  const auto got = [self floatsOf:merged], due = [self floatsOf:whole];
  for (size_t i = 0; i < due.size(); ++i) XCTAssertEqualWithAccuracy(got[i], due[i], 1e-5);
  XCTAssertEqualWithAccuracy([self floatOf:logOfMerged at:1], [self floatOf:logOfWhole at:1], 1e-5);
  XCTAssertNotEqual(due[0], 0);
}

- (void)testHadamardIsThatOfTheReferenceAndItsInverseUndoesIt {
  for (const MNKKVCodecName codec : {MNKKVCodecTurbo, MNKKVCodecMLX1}) {
    MNKTensor *source = [self numbers:@[ @2, @256 ] seed:codec + 5u], *turned = [self zeros:@[ @2, @256 ]];
    MNKHadamard *forward = [[MNKHadamard alloc] initWithSource:source intoTensor:turned];
    forward.usesSigns = YES;
    forward.codec = codec;
    [self encode:forward];
    const auto before = [self floatsOf:source], after = [self floatsOf:turned];
    const std::vector<double> vector(before.begin() + 256, before.end());
    const auto due = test::rotated(static_cast<KVCodecName>(codec), vector);
    for (size_t i = 0; i < 256; ++i) XCTAssertEqualWithAccuracy(after[256 + i], due[i], 1e-5);
    MNKHadamard *back = [forward copy];
    back.source = turned;
    back.destination = nil;
    back.inverse = YES;
    [self encode:back];
    const auto again = [self floatsOf:turned];
    for (size_t i = 0; i < before.size(); ++i) XCTAssertEqualWithAccuracy(again[i], before[i], 1e-5);
  }
}

- (void)testWhatWasQuantizedIsReadBack {
  MNKQuantizedKVPlane *plane[2];
  for (auto &one : plane) {
    one = [MNKQuantizedKVPlane zerosWithCodec:[MNKKVCodec turboWithBits:8]
                                        heads:2
                                      headDim:32
                                     capacity:4
                                    sequences:2
                                       layout:MNKKVLayoutTokenMajor
                                       device:self.device
                                        error:nil];
  }
  XCTAssertEqualObjects(plane[0].codes.shape, (@[ @2, @4, @2, @32 ]));
  XCTAssertEqualObjects(plane[0].scales.shape, (@[ @2, @4, @2 ]));
  MNKQuantizedKVCacheView *view = [[MNKQuantizedKVCacheView alloc] initWithKeys:plane[0] values:plane[1]];
  view.layout = MNKKVLayoutTokenMajor;
  MNKTensor *keys = [self numbers:@[ @3, @2, @32 ] seed:6], *values = [self numbers:@[ @3, @2, @32 ] seed:7];
  MNKKVCacheQuantize *store = [[MNKKVCacheQuantize alloc] initWithKeys:keys values:values intoCache:view position:1];
  store.sequence = 1;
  [self encode:store];
  MNKTensor *readKeys = [self zeros:@[ @2, @3, @32 ]], *readValues = [self zeros:@[ @2, @3, @32 ]];
  MNKKVCacheDequantize *read = [[MNKKVCacheDequantize alloc] initWithCache:view
                                                                      keys:readKeys
                                                                    values:readValues
                                                                  position:1];
  read.sequence = 1;
  read.layout = MNKKVLayoutHeadMajor;
  [self encode:read];
  for (const auto &[got, due] : {std::pair{readKeys, keys}, std::pair{readValues, values}}) {
    const auto a = [self floatsOf:got], b = [self floatsOf:due];
    for (size_t t = 0; t < 3; ++t) {
      for (size_t h = 0; h < 2; ++h) {
        XCTAssertEqualWithAccuracy(a[(h * 3 + t) * 32 + 5], b[(t * 2 + h) * 32 + 5], 0.05);
      }
    }
  }
  // The rotated domain is that of the codec.
  read.domain = MNKKVDomainRotated;
  [self encode:read];
  const auto rotated = [self floatsOf:readKeys], all = [self floatsOf:keys];
  const auto due = test::rotated(KVCodecName::turbo, std::vector<double>(all.begin(), all.begin() + 32));
  for (size_t i = 0; i < 32; ++i) XCTAssertEqualWithAccuracy(rotated[i], due[i], 0.05);
}

- (void)testAStepCanRotate {
  MNKTensor *queries = [self numbers:@[ @2, @2, @16 ] seed:8], *keys = [self numbers:@[ @2, @1, @16 ] seed:9];
  const auto beforeQueries = [self floatsOf:queries], beforeKeys = [self floatsOf:keys];
  MNKRotaryEmbedding *rotary = [[MNKRotaryEmbedding alloc] init];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step rotateQueries:queries
                          keys:keys
                     positions:[MNKRotaryPositions positionsStartingAt:7]
                        rotary:rotary
                         error:error];
  }];
  const auto turned = [self floatsOf:queries], turnedKeys = [self floatsOf:keys];
  XCTAssertEqualWithAccuracy(turned[0], beforeQueries[0] * cos(7) - beforeQueries[8] * sin(7), 1e-5);
  XCTAssertEqualWithAccuracy(turnedKeys[16 + 8], beforeKeys[16] * sin(8) + beforeKeys[24] * cos(8), 1e-5);
  rotary.inverse = YES;
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step rotateQueries:queries
                          keys:nil
                     positions:[MNKRotaryPositions positionsPerAxis:@[ @[ @7, @8 ] ]]
                        rotary:rotary
                         error:error];
  }];
  const auto again = [self floatsOf:queries];
  for (size_t i = 0; i < again.size(); ++i) XCTAssertEqualWithAccuracy(again[i], beforeQueries[i], 1e-5);
}

// A tensor is the tensor of a token-major view, and what an op is made of is copied.
- (void)testTensorsAndViewsOfOperations {
  MNKTensor *one = [self zeros:@[ @1, @1, @32 ]], *two = [self zeros:@[ @1, @2, @32 ]];
  MNKKVCacheView *dense = [[MNKKVCacheView alloc] initWithKeys:one values:nil];
  MNKQuantizedKVPlane *plane = [[MNKQuantizedKVPlane alloc] initWithCodec:[MNKKVCodec turboWithBits:4]
                                                                    codes:one
                                                                   scales:one];
  MNKQuantizedKVCacheView *coded = [[MNKQuantizedKVCacheView alloc] initWithKeys:plane values:nil];
  MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:one];
  MNKHeadsView *view = [MNKHeadsView viewWithTensor:one layout:MNKKVLayoutHeadMajor], *same = [view copy];
  MNKHeadsView *plain = [[MNKHeadsView alloc] initWithTensor:two];
  NSArray<MNKKVCacheStore *> *stores = @[
    [[MNKKVCacheWrite alloc] initWithKeysView:view valuesView:view intoCache:dense position:1],
    [[MNKKVCacheQuantize alloc] initWithKeysView:view valuesView:view intoCache:coded position:1]
  ];
  NSArray<MNKFlashDecode *> *decodes = @[
    [[MNKFlashDecode alloc] initWithQueriesView:view overCache:dense sequences:@[] results:results],
    [[MNKFlashDecode alloc] initWithQueriesView:view overQuantizedCache:coded sequences:@[] results:results]
  ];
  view.layout = MNKKVLayoutTokenMajor;
  for (MNKKVCacheStore *store in stores) {
    XCTAssertEqual(store.position, 1u);
    XCTAssertEqualObjects(store.keysView, same);
    XCTAssertEqualObjects(store.valuesView, same);
    XCTAssertEqualObjects(store.keys, one);
    XCTAssertEqualObjects(store.values, one);
    store.keys = store.values = two;
    XCTAssertEqualObjects(store.keysView, plain);
    XCTAssertEqualObjects(store.valuesView, plain);
    store.values = nil;
    XCTAssertNil(store.valuesView);
    XCTAssertNil(store.values);
  }
  for (MNKFlashDecode *decode in decodes) {
    XCTAssertEqualObjects(decode.queriesView, same);
    XCTAssertEqualObjects(decode.queries, one);
    decode.queries = two;
    XCTAssertEqualObjects(decode.queriesView, plain);
  }
  XCTAssertEqual(decodes[0].cache != nil, decodes[1].quantizedCache != nil);
}

@end
