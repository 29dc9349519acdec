#import "Generated/Objects.hpp"
#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/Common/BindingCases.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;
using test::FakeDevice;
using test::PlanSummary;

namespace {

std::string textOf(NSString *text) {
  return std::string(text.UTF8String ?: "");
}

// The parts of an error, or a description of what is missing.
Error coreOf(NSError *error) {
  const auto part = [&](NSString *key) { return textOf([error.userInfo[key] description]); };
  Error result{.code = static_cast<ErrorCode>(error.code),
               .op = part(MNKErrorOpKey),
               .what = part(MNKErrorWhatKey),
               .got = part(MNKErrorGotKey),
               .expected = part(MNKErrorExpectedKey),
               .fix = part(MNKErrorFixKey),
               .retryable = static_cast<bool>([error.userInfo[MNKErrorIsRetryableKey] boolValue])};
  if (NSString *wrong = wrongIn(error, result)) result.what = textOf(wrong);
  return result;
}

struct ObjCAPI {
  template <typename Op>
  Result<PlanSummary> plan(const Op &op, const std::shared_ptr<Device> &device) const {
    @autoreleasepool {
      NSError *error = nil;
      MNKPlan *plan = [objectFor(op) planForDevice:device ? objectOver(device) : nil error:&error];
      if (!plan) return coreOf(error);
      PlanSummary summary{.text = textOf(plan.description), .scratchBytes = plan.scratchBytes};
      for (MNKPlannedDispatch *one in plan.dispatches) {
        Size3 grid{};
        XCTAssertEqual(one.grid.count, grid.size());
        for (size_t i = 0; i < grid.size(); ++i) grid[i] = one.grid[i].unsignedIntValue;
        summary.dispatches.push_back({textOf(one.function), grid, one.bytesRead, one.bytesWritten});
      }
      return summary;
    }
  }

  template <typename Op>
  Result<void> run(const Op &op, const std::shared_ptr<Device> &device) const {
    @autoreleasepool {
      NSError *error = nil;
      MNKCommandEncoder *step = [objectOver(device) commandEncoderWithLabel:@"binding"];
      if (![step encodeOperation:objectFor(op) error:&error]) return coreOf(error);
      if (![[step commitWithError:&error] waitWithError:&error]) return coreOf(error);
      return {};
    }
  }

  XCTestCase *self;
};

}  // namespace

// Every property reaches the core: ops of this binding equal those of C++.
@interface OperationPlanTests : DeviceTestCase
@end

@implementation OperationPlanTests

- (void)testDispatchesMatchCxx {
  XCTAssertNil(failuresWithin([&] { test::expectSameRequests(ObjCAPI{self}); }));
}

- (void)testMemoryMatchesCxx {
  XCTAssertNil(failuresWithin([&] { test::expectSameResults(ObjCAPI{self}, objc_test::coreOf(self.device)); }));
}

- (void)testCacheStepsMatchTheCore {
  XCTAssertNil(failuresWithin([&] { [self compareCaches]; }));
}

- (void)compareCaches {
  for (const bool isQuantized : {false, true}) {
    const auto device = FakeDevice::make();
    AttentionCacheDescriptor descriptor{.kvHeads = 2,
                                        .headDim = 64,
                                        .valueHeadDim = 64,
                                        .capacity = 5,
                                        .sequences = 3,
                                        .dtype = DType::bf16,
                                        .whenFull = KVWrap::ring,
                                        .pinned = 1};
    if (isQuantized)
      descriptor.quantized = KVQuantizedStorage{.keyBits = 5,
                                                .valueBits = 3,
                                                .options = {.candidates = 17,
                                                            .keyScale = KVScaleRule::leastSquares,
                                                            .valueScale = KVScaleRule::unbiased,
                                                            .nonFinite = KVNonFinite::propagate}};
    AttentionCache core = REQUIRE(AttentionCache::make(device, descriptor));
    MNKDevice *object = objectOver(std::shared_ptr<Device>(device));
    MNKAttentionCache *cache = [[MNKAttentionCache alloc] initWithDevice:object
                                                              descriptor:objectFor(descriptor)
                                                                   error:nil];
    XCTAssertEqual(cache.byteCount, core.byteCount());
    XCTAssertEqual(cache.bytesPerToken, core.bytesPerToken());
    XCTAssertEqual(cache.bytesSaved, core.bytesSaved());
    XCTAssertEqualObjects(cache.descriptor, objectFor(core.descriptor()));
    XCTAssertEqual(cache.quantizedView != nil, isQuantized);
    test::BindingMemory memory(device);
    const auto tensor = [&](std::initializer_list<uint64_t> extents) { return memory.make(DType::f32, extents); };
    const Tensor keys = tensor({2, 2, 64}), values = tensor({2, 2, 64}), out = tensor({2, 4, 64});
    const std::vector<uint32_t> sequences = {2, 0};
    CommandEncoder encoder(device);
    REQUIRE(core.append(encoder, keys, values, 1));
    REQUIRE(core.append(encoder, {.keys = keys, .values = values, .sequences = sequences}));
    REQUIRE(core.attend(encoder, tensor({2, 4, 64}), {.output = out}, {.window = 2}, 1));
    REQUIRE(core.attend(
        encoder,
        {.queries = tensor({2, 4, 64}), .results = {.output = out}, .options = {.scale = 2}, .sequences = sequences}));
    const HeadsView headMajor(keys, KVLayout::headMajor), rows(tensor({2, 4, 64}));
    const std::vector<uint32_t> counts = {2, 0};
    REQUIRE(core.append(encoder, {.keys = headMajor, .values = values, .sequences = sequences, .rowCounts = counts}));
    REQUIRE(core.attend(encoder,
                        {.queries = rows, .results = {.output = out}, .sequences = sequences, .rowCounts = counts}));
    REQUIRE(core.appendAndAttend(
        encoder, {.queries = rows, .keys = headMajor, .values = values, .results = {.output = out}, .sequences = {2}}));
    REQUIRE(core.copy(encoder, 2, 1));
    REQUIRE(encoder.commit());
    MNKCommandEncoder *step = [object commandEncoder];
    MNKAttentionOptions *window = [[MNKAttentionOptions alloc] init], *scale = [[MNKAttentionOptions alloc] init];
    window.window = 2;
    scale.scale = 2;
    MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:objectOver(out)];
    MNKTensor *queries = objectOver(tensor({2, 4, 64}));
    XCTAssertTrue([step append:cacheStep({
                          .keys = viewOf(objectOver(keys)), .values = viewOf(objectOver(values)), .sequences = @[ @1 ]
                        })
                       toCache:cache
                         error:nil]);
    XCTAssertTrue(
        ([step append:cacheStep({
                 .keys = viewOf(objectOver(keys)), .values = viewOf(objectOver(values)), .sequences = @[ @2, @0 ]
               })
              toCache:cache
                error:nil]));
    XCTAssertTrue([step
           attend:cacheStep({ .queries = viewOf(queries), .results = results, .options = window, .sequences = @[ @1 ] })
        overCache:cache
            error:nil]);
    XCTAssertTrue(([step attend:cacheStep({
                           .queries = viewOf(queries), .results = results, .options = scale, .sequences = @[ @2, @0 ]
                         })
                      overCache:cache
                          error:nil]));
    MNKHeadsView *keyView = [MNKHeadsView viewWithTensor:objectOver(keys) layout:MNKKVLayoutHeadMajor];
    MNKHeadsView *valueView = [[MNKHeadsView alloc] initWithTensor:objectOver(values)];
    MNKHeadsView *queryView = [[MNKHeadsView alloc] initWithTensor:queries];
    XCTAssertTrue(([step append:cacheStep({
                           .keys = keyView, .values = valueView, .sequences = @[ @2, @0 ], .rowCounts = @[ @2, @0 ]
                         })
                        toCache:cache
                          error:nil]));
    XCTAssertTrue(([step attend:cacheStep({
                           .queries = queryView, .results = results, .sequences = @[ @2, @0 ], .rowCounts = @[ @2, @0 ]
                         })
                      overCache:cache
                          error:nil]));
    XCTAssertTrue([step appendAndAttend:cacheStep({
                          .queries = queryView, .keys = keyView, .values = valueView, .results = results,
                          .sequences = @[ @2 ]
                        })
                              overCache:cache
                                  error:nil]);
    XCTAssertTrue([step copySequence:2 toSequence:1 inCache:cache error:nil]);
    XCTAssertNotNil([step commitWithError:nil]);
    const auto committed = device->committed();
    XCTAssertEqual(committed.size(), 2u);
    for (uint32_t sequence = 0; sequence < 3; ++sequence) {
      XCTAssertEqual([cache nextPositionOfSequence:sequence], *core.nextPosition(sequence));
    }
    XCTAssertEqualObjects(cache.description, [NSString stringWithUTF8String:core.text().c_str()]);
    XCTAssertEqual(committed[0].trace, committed[1].trace);
    for (size_t i = 0; i < committed[0].dispatches.size(); ++i) {
      const Dispatch &got = committed[1].dispatches[i].dispatch, &due = committed[0].dispatches[i].dispatch;
      XCTAssertTrue(got.kernel.constants == due.kernel.constants);
      XCTAssertEqual(got.inlines.size(), due.inlines.size());
      for (size_t j = 0; j < due.inlines.size(); ++j) XCTAssertTrue(got.inlines[j].bytes == due.inlines[j].bytes);
    }
  }
}

@end
