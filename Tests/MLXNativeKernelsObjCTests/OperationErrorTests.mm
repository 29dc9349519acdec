#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Property values that no op accepts: nil despite nonnull, objects of other classes, numbers out of range, unknown enum
// cases. Each is an error, and nothing is recorded. Readers of fields of one type are generated alike.
@interface OperationErrorTests : DeviceTestCase
@end

namespace {

struct Change {
  NSString *path;
  id value;  // nil is set as well
  NSString *what;
};

// An op, and the single changes that make it invalid.
struct Refusals {
  MNKOperation *sound;
  std::vector<Change> changes;
};

}  // namespace

@implementation OperationErrorTests

- (std::vector<Refusals>)refusals {
  MNKTensor *vectors = [self zeros:@[ @1, @1, @32 ]];
  MNKHeadsView *heads = vectors.headsView;
  MNKKVCacheView *view = [[MNKKVCacheView alloc] initWithKeys:[self zeros:@[ @1, @4, @32 ]]
                                                       values:[self zeros:@[ @1, @4, @32 ]]];
  MNKKVCacheWrite *write = [[MNKKVCacheWrite alloc] initWithKeys:heads values:heads destination:view position:0];
  MNKKVCacheWrite *rows = [write copy];
  MNKIntegers *zero = [MNKIntegers integersWithList:@[ @0 ]];
  rows.rows = [[MNKKVCacheWriteRows alloc] initWithSequences:zero positions:zero];
  MNKHeadsViewStrides *strides = [[MNKHeadsViewStrides alloc] init];
  strides.sequences = 0;
  MNKHadamard *hadamard = [[MNKHadamard alloc] initWithSource:vectors destination:nil];
  MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:heads
                                                        keys:nil
                                                   positions:[MNKRotaryPositions positionsStartingAt:0]
                                                      rotary:[[MNKRotaryEmbedding alloc] init]];
  MNKFlashDecode *decode =
      [[MNKFlashDecode alloc] initWithQueries:heads
                                        cache:view
                                    sequences:@[ [[MNKAttendedSequence alloc] initWithSequence:0 length:3] ]
                                      results:[MNKAttentionResults resultsIntoTensor:[self zeros:@[ @1, @1, @32 ]]]];
  MNKAttentionCache *cache = [self cacheWith:[MNKAttentionCacheDescriptor descriptorWithKVHeads:1
                                                                                        headDim:32
                                                                                       capacity:4]];
  const auto next = [cache](NSArray *sequences) {
    return [MNKRotaryPositions nextPositionsOfCache:cache sequences:sequences rowCounts:nil];
  };
  const auto numbers = [](id number) { return [MNKIntegers integersWithList:@[ number ]]; };
  const auto axes = [](NSArray *all) { return [MNKRotaryPositions positionsPerAxis:all]; };
  return {
      {write,
       {
           {@"keys", nil, @"nil was passed for keys"},
           {@"keys", @"keys", @"another class was passed for keys"},
           {@"keys.layout", @3, @"the number for layout is unknown"},
           {@"keys.strides", strides, @"sequences is 0"},
           {@"destination.pinned", @(1ull << 32), @"the number for pinned is out of range"},
           {@"tokens", @-1, @"the number for tokens is out of range"},
           {@"tokens", @0.5, @"the number for tokens is out of range"},
           {@"tokens", @1e20, @"the number for tokens is out of range"},
           {@"tokens", @(NAN), @"the number for tokens is out of range"},
           {@"tokens", @"1", @"another class was passed for tokens"},
           {@"sequence", @(1ull << 32), @"sequence"},
       }},
      {rows,
       {
           {@"rows.positions", @"positions", @"another class was passed for positions"},
           {@"rows.positions", numbers(@-1), @"the number for positions is out of range"},
           {@"rows.sequences", numbers(@4294967296), @"the number for sequences is out of range"},
           {@"rows.sequences", [MNKIntegers integersWithList:absentObject()], @"nil was passed for sequences"},
           {@"rows.positions", [MNKIntegers integersWithTensor:absentObject()], @"nil was passed for positions"},
       }},
      {hadamard,
       {
           {@"signs", @4, @"the number for signs is unknown"},
           {@"signs", @-1, @"the number for signs is out of range"},
       }},
      {rope,
       {
           {@"positions", nil, @"nil was passed for positions"},
           {@"positions", @"positions", @"another class was passed for positions"},
           {@"positions", axes(absentObject()), @"position"},
           {@"positions", axes(@[ @1 ]), @"another class was passed for an axis of positions"},
           {@"positions", axes(@[ @[ @1 ], @[] ]), @"axes hold different numbers of positions"},
           {@"positions", axes(@[ @[ @4294967295 ] ]), @"the number for a position is out of range"},
           {@"positions", axes(@[ @[ @"1" ] ]), @"another class was passed for a position"},
           {@"positions", [MNKRotaryPositions positionsWithTensor:absentObject()], @"position"},
           {@"positions", [MNKRotaryPositions nextPositionsOfCache:absentObject()], @"position"},
           {@"positions", next(absentObject()), @"nil was passed for a sequence"},
           {@"offsets", numbers(@(-2147483649LL)), @"the number for offsets is out of range"},
           {@"rotary.sections", (@[ @1, @1, @1, @1, @1 ]), @"there are too many sections"},
           {@"rotary.frequencyFactors", @[ @"1" ], @"another class was passed for frequencyFactors"},
       }},
      {decode,
       {
           {@"cache", @"cache", @"another class was passed for cache"},
           {@"results", @"results", @"another class was passed for results"},
           {@"sequences", @[ [NSNull null] ], @"another class was passed for sequences"},
       }},
  };
}

- (void)testInvalidChangesAreRefused {
  MNKCommandEncoder *step = [self.device commandEncoder];
  for (const auto &[sound, changes] : self.refusals) {
    NSString *op = [NSStringFromClass([sound class]) substringFromIndex:3];
    XCTAssertNotNil([sound planForDevice:self.device error:nil], @"%@", sound);
    for (const auto &[path, value, what] : changes) {
      MNKOperation *operation = [sound copy];
      [operation setValue:value forKeyPath:path];
      XCTAssertNil(wrongIn({
                       {op, what, [=](NSError **e) { return [operation planForDevice:self.device error:e] != nil; }},
                       {op, what, [=](NSError **e) { return [step encodeOperation:operation error:e]; }},
                   }),
                   @"%@ = %@", path, value);
    }
  }
  XCTAssertEqual([step commitWithError:nil].summary.total.dispatches, 0u);
}

// Without options, the defaults apply.
- (void)testNoOptions {
  MNKFlashDecode *plain = (MNKFlashDecode *)self.refusals.back().sound;
  plain.options = absentObject();
  XCTAssertNotNil([plain planForDevice:self.device error:nil]);
}

- (void)testASubclassOfOperationIsRefused {
  MNKOperation *own = [[MNKOperation alloc] init];
  NSError *error = nil;
  XCTAssertNil([own planForDevice:self.device error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorUnsupported, @"MNKOperation", @"not an op of this framework"));
  XCTAssertFalse([[self.device commandEncoder] encodeOperation:own error:&error]);
}

@end
