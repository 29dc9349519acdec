#import <XCTest/XCTest.h>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"
#import "Support/BindingOps.hpp"
#import "Support/Checks.hpp"

using namespace mnk;
using namespace mnk::objc_test;
using test::FakeDevice;

namespace {

// A tensor in memory of its own, so many bytes past an aligned address.
Tensor tensorOn(const std::shared_ptr<Device> &device, DType dtype, const Shape &shape, uint64_t shift) {
  auto buffer = REQUIRE(device->makeBuffer(shape.elementCount() * byteSize(dtype) + shift));
  return REQUIRE(Tensor::over(buffer, dtype, shape, shift));
}

// Whether the binding asks a device for what the core asks it for: the plan, and what an encoder records.
template <typename Op>
NSString *difference(const std::shared_ptr<FakeDevice> &device, const Op &op) {
  MNKDevice *object = objectOver(std::shared_ptr<Device>(device));
  MNKOperation *operation = objectFor(op);
  NSError *planError = nil, *encodeError = nil;
  MNKPlan *plan = [operation planForDevice:object error:&planError];
  MNKCommandEncoder *step = [object commandEncoderWithLabel:@"binding"];
  const BOOL isEncoded = [step encodeOperation:operation error:&encodeError];
  if (isEncoded && ![step commitWithError:&encodeError]) return encodeError.localizedDescription;

  CommandEncoder encoder(device, "core");
  const auto expected = [&] {
    if constexpr (requires { mnk::plan(op, *device); })
      return mnk::plan(op, *device);
    else
      return mnk::plan(op);
  }();
  const Result<void> encoded = encoder.encode(op);
  if (!encoded) {
    if (isEncoded || plan) return @"the binding takes what the core refuses";
    return wrongIn(planError, encoded.error()) ?: wrongIn(encodeError, encoded.error());
  }
  if (!isEncoded || !plan) return (encodeError ?: planError).localizedDescription;
  REQUIRE(encoder.commit());

  if (![plan.description isEqual:[NSString stringWithUTF8String:expected->text().c_str()]]) return plan.description;
  if (plan.scratchBytes != expected->scratchBytes) return @"scratch bytes differ";
  if (plan.dispatches.count != expected->dispatches.size()) return @"another number of planned dispatches";
  for (size_t i = 0; i < expected->dispatches.size(); ++i) {
    const Dispatch &due = expected->dispatches[i];
    MNKPlannedDispatch *planned = plan.dispatches[i];
    NSArray *grid = @[ @(due.grid.extent[0]), @(due.grid.extent[1]), @(due.grid.extent[2]) ];
    if (![planned.function isEqual:[NSString stringWithUTF8String:due.kernel.function.c_str()]] ||
        ![planned.grid isEqual:grid] || planned.bytesRead != due.countedBytesRead() ||
        planned.bytesWritten != due.countedBytesWritten()) {
      return [NSString stringWithFormat:@"dispatch %zu of the plan differs", i];
    }
  }
  const auto committed = device->committed();
  const auto &got = committed[committed.size() - 2], &due = committed.back();
  if (got.label != "binding" || got.trace != due.trace) return @"another trace";
  for (size_t i = 0; i < due.dispatches.size(); ++i) {
    NSString *differing =
        objc_test::difference(got.dispatches[i].dispatch, due.dispatches[i].dispatch, expected->dispatches[i]);
    if (differing) return differing;
  }
  return nil;
}

// Every so many of the cases: the C++ tests run them all.
template <typename Case, typename MakeOp>
NSString *differencesIn(const std::vector<Case> &cases, size_t stride, MakeOp makeOpOn) {
  NSMutableArray<NSString *> *found = [NSMutableArray array];
  for (size_t i = 0; i < cases.size() && found.count < 5; i += stride) {
    @autoreleasepool {
      const auto device = FakeDevice::make();
      NSString *differing = difference(device, makeOpOn(cases[i], device));
      if (differing) [found addObject:[NSString stringWithFormat:@"%s: %@", cases[i].name.c_str(), differing]];
    }
  }
  return found.count == 0 ? nil : [found componentsJoinedByString:@"\n"];
}

}  // namespace

// Every property reaches the core: what a device is asked for is the same, byte for byte, whether an op was made here
// or in C++.
@interface OperationPlanTests : XCTestCase
@end

@implementation OperationPlanTests

- (void)testKVCacheWrite {
  XCTAssertNil(differencesIn(test::allCases(), 61, [](const auto &one, const auto &device) {
    return test::makeOp(
        one, [&](DType dtype, const Shape &shape, uint64_t shift) { return tensorOn(device, dtype, shape, shift); });
  }));
  for (const auto &cases : {test::rowCases(), test::sourceCases()}) {
    XCTAssertNil(differencesIn(cases, 1, [](const auto &one, const auto &device) {
      return test::makeOp(
          one, [&](DType dtype, const Shape &shape, uint64_t shift) { return tensorOn(device, dtype, shape, shift); });
    }));
  }
}

- (void)testKVCacheQuantize {
  const auto make = [](const auto &one, const auto &device) {
    return test::makeOp(one, [&](std::string_view, DType dtype, const Shape &shape, uint64_t shift) {
      return tensorOn(device, dtype, shape, shift);
    });
  };
  XCTAssertNil(differencesIn(test::allQuantizeCases(), 41, make));
  XCTAssertNil(differencesIn(test::optionCases(), 1, make));
  XCTAssertNil(differencesIn(test::probeCases(), 3, make));
}

- (void)testMultiRoPE {
  const auto make = [](const auto &one, const auto &device) {
    return test::makeOp(one, [&](std::string_view, DType dtype, const Shape &shape, uint64_t shift) {
      return tensorOn(device, dtype, shape, shift * byteSize(dtype));
    });
  };
  XCTAssertNil(differencesIn(test::rope::allCases(), 101, make));
  XCTAssertNil(differencesIn(test::rope::positionCases(), 2, make));
  XCTAssertNil(differencesIn(test::rope::scalingCases(), 2, make));
  XCTAssertNil(differencesIn(test::rope::sectionCases(), 2, make));
}

- (void)testFlashDecode {
  const auto make = [](const auto &one, const auto &device) {
    FlashDecode op = test::makeOp(one, [&](std::string_view, DType dtype, const Shape &shape, uint64_t shift) {
      return tensorOn(device, dtype, shape, shift);
    });
    if (one.hasScratch) {
      const uint64_t bytes = REQUIRE(plan(op, *device)).scratchBytes;
      op.scratch = tensorOn(device, DType::u8, REQUIRE(Shape::make({bytes})), 0);
    }
    return op;
  };
  XCTAssertNil(differencesIn(test::allDecodeCases(), 13, make));
  XCTAssertNil(differencesIn(test::scoreCases(), 1, make));
  XCTAssertNil(differencesIn(test::ringCases(), 5, make));
  XCTAssertNil(differencesIn(test::queryCases(), 1, make));
}

- (void)testEveryOptionOfFlashDecodeReachesTheCore {
  using Change = void (*)(AttentionOptions &);
  for (const Change change :
       {Change([](AttentionOptions &o) { o.scale = 0.5f; }), Change([](AttentionOptions &o) { o.isCausal = false; }),
        Change([](AttentionOptions &o) { o.window = 3; }), Change([](AttentionOptions &o) { o.softcap = 20; }),
        Change([](AttentionOptions &o) { o.splits = 2; }),
        Change([](AttentionOptions &o) { o.kernel = FlashDecodeKernel::vector; }),
        Change([](AttentionOptions &o) { o.merge = FlashDecodeMerge::separate; }),
        Change([](AttentionOptions &o) { o.splits = 2000; })}) {
    const auto device = FakeDevice::make();
    FlashDecode op = test::makeOp(test::FlashDecodeCase{.name = "options", .options = {}},
                                  [&](std::string_view, DType dtype, const Shape &shape, uint64_t shift) {
                                    return tensorOn(device, dtype, shape, shift);
                                  });
    change(op.options);
    XCTAssertNil(difference(device, op));
  }
}

- (void)testHadamard {
  for (const bool isApart : {false, true}) {
    for (const bool isInverse : {false, true}) {
      for (const std::optional<KVCodecName> signs :
           {std::optional<KVCodecName>(), std::optional(KVCodecName::turbo), std::optional(KVCodecName::mlx1)}) {
        const auto device = FakeDevice::make();
        const Shape shape = REQUIRE(Shape::make({3, 64}));
        Hadamard op{.from = tensorOn(device, DType::f16, shape, 2), .signs = signs, .isInverse = isInverse};
        if (isApart) op.into = tensorOn(device, DType::f32, shape, 0);
        XCTAssertNil(difference(device, op));
      }
    }
  }
}

- (void)testKVCacheDequantize {
  using Change = void (*)(KVCacheDequantize &);
  for (const Change change :
       {Change([](KVCacheDequantize &) {}), Change([](KVCacheDequantize &op) { op.sequence = 1; }),
        Change([](KVCacheDequantize &op) { op.position = 3; }), Change([](KVCacheDequantize &op) { op.keys = {}; }),
        Change([](KVCacheDequantize &op) { op.values = {}; }),
        Change([](KVCacheDequantize &op) { op.keys = op.values = {}; }),
        Change([](KVCacheDequantize &op) { op.domain = KVDomain::rotated; }),
        Change([](KVCacheDequantize &op) { op.layout = KVLayout::headMajor; }),
        Change([](KVCacheDequantize &op) { op.from.layout = KVLayout::tokenMajor; }), Change([](KVCacheDequantize &op) {
          op.from.pinned = 2;
          op.from.wrap = KVWrap::ring;
          op.position = 9;
        }),
        Change([](KVCacheDequantize &op) { op.from.keys.means = op.from.keys.channelScales = {}; }),
        Change([](KVCacheDequantize &op) { op.from.values->means = {}; })}) {
    const auto device = FakeDevice::make();
    const auto tensor = [&](DType dtype, std::initializer_list<uint64_t> extents) {
      return tensorOn(device, dtype, REQUIRE(Shape::make(extents)), 0);
    };
    // As many heads as slots and tokens, so that a layout can be any.
    const auto plane = [&](uint32_t bits, uint64_t headDim) {
      const KVCodec codec{.bits = bits};
      return QuantizedKVPlane{.codec = codec,
                              .codes = tensor(DType::u8, {2, 5, 5, REQUIRE(sizes(codec, headDim)).codeBytes}),
                              .scales = tensor(DType::f16, {2, 5, 5}),
                              .means = tensor(DType::f32, {5, headDim})};
    };
    KVCacheDequantize op{.from = {.keys = plane(4, 64), .values = plane(3, 32)},
                         .keys = tensor(DType::f16, {5, 5, 64}),
                         .values = tensor(DType::f16, {5, 5, 32})};
    op.from.keys.channelScales = tensor(DType::f32, {5, 64});
    change(op);
    XCTAssertNil(difference(device, op));
  }
}

- (void)testMergePartials {
  for (int kind = 0; kind < 4; ++kind) {
    const auto device = FakeDevice::make();
    const auto tensor = [&](std::initializer_list<uint64_t> extents) {
      return tensorOn(device, DType::f32, REQUIRE(Shape::make(extents)), 0);
    };
    MergePartials op{.partials = {tensor({3, 2, 4, 32}), tensor({3, 2, 4, 2})}};
    if (kind == 0) op.results.partials = AttentionPartials{tensor({2, 4, 32}), tensor({2, 4, 2})};
    if (kind >= 1) op.results.into = tensor({2, 4, 32});
    if (kind >= 2) op.results.logSumExp = tensor({2, 4});
    if (kind >= 3) op.sinks = tensor({4});
    XCTAssertNil(difference(device, op));
  }
}

- (void)testPlanForNoDeviceIsThatOfTheCore {
  const auto device = FakeDevice::make();
  const Hadamard op{.from = tensorOn(device, DType::f32, REQUIRE(Shape::make({2, 32})), 0)};
  MNKPlan *plan = [objectFor(op) planForDevice:nil error:nil];
  XCTAssertEqualObjects(plan.description, [NSString stringWithUTF8String:mnk::plan(op)->text().c_str()]);
}

- (void)testACacheOfTheBindingRecordsWhatOneOfTheCoreDoes {
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
    XCTAssertEqual(cache.bytes, core.bytes());
    XCTAssertEqual(cache.bytesPerToken, core.bytesPerToken());
    XCTAssertEqual(cache.bytesSaved, core.bytesSaved());
    XCTAssertEqualObjects(cache.descriptor, objectFor(core.descriptor()));
    XCTAssertEqual(cache.quantizedView != nil, isQuantized);
    const auto tensor = [&](std::initializer_list<uint64_t> extents) {
      return tensorOn(device, DType::f32, REQUIRE(Shape::make(extents)), 0);
    };
    const Tensor keys = tensor({2, 2, 64}), values = tensor({2, 2, 64}), out = tensor({2, 4, 64});
    const uint32_t sequences[] = {2, 0};
    CommandEncoder encoder(device);
    REQUIRE(core.append(encoder, keys, values, 1));
    REQUIRE(core.append(encoder, keys, values, sequences));
    REQUIRE(core.attend(encoder, tensor({2, 4, 64}), {.into = out}, {.window = 2}, 1));
    REQUIRE(core.attend(encoder, tensor({2, 4, 64}), {.into = out}, {.softcap = 2}, sequences));
    const HeadsView headMajor(keys, KVLayout::headMajor), rows(tensor({2, 4, 64}));
    const uint32_t counts[] = {2, 0};
    REQUIRE(core.append(encoder, headMajor, values, sequences, counts));
    REQUIRE(core.attend(encoder, rows, {.into = out}, {}, sequences, counts));
    REQUIRE(core.appendAndAttend(
        encoder, {.queries = rows, .keys = headMajor, .values = values, .results = {.into = out}, .sequence = 2}));
    REQUIRE(core.copy(encoder, 2, 1));
    REQUIRE(encoder.commit());
    MNKCommandEncoder *step = [object commandEncoder];
    MNKAttentionOptions *window = [[MNKAttentionOptions alloc] init], *softcap = [[MNKAttentionOptions alloc] init];
    window.window = 2;
    softcap.softcap = 2;
    MNKAttentionResults *results = [MNKAttentionResults resultsIntoTensor:objectOver(out)];
    MNKTensor *queries = objectOver(tensor({2, 4, 64}));
    XCTAssertTrue([step appendKeys:objectOver(keys) values:objectOver(values) toCache:cache sequence:1 error:nil]);
    XCTAssertTrue(([step appendKeys:objectOver(keys)
                             values:objectOver(values)
                            toCache:cache
                          sequences:@[ @2, @0 ]
                              error:nil]));
    XCTAssertTrue([step attendQueries:queries overCache:cache sequence:1 results:results options:window error:nil]);
    XCTAssertTrue(([step attendQueries:queries
                             overCache:cache
                             sequences:@[ @2, @0 ]
                               results:results
                               options:softcap
                                 error:nil]));
    MNKHeadsView *keyView = [MNKHeadsView viewWithTensor:objectOver(keys) layout:MNKKVLayoutHeadMajor];
    MNKHeadsView *valueView = [[MNKHeadsView alloc] initWithTensor:objectOver(values)];
    MNKHeadsView *queryView = [[MNKHeadsView alloc] initWithTensor:queries];
    XCTAssertTrue(([step appendKeysView:keyView
                             valuesView:valueView
                                toCache:cache
                              sequences:@[ @2, @0 ]
                              rowCounts:@[ @2, @0 ]
                                  error:nil]));
    XCTAssertTrue(([step attendQueriesView:queryView
                                 overCache:cache
                                 sequences:@[ @2, @0 ]
                                 rowCounts:@[ @2, @0 ]
                                   results:results
                                   options:nil
                                     error:nil]));
    XCTAssertTrue([step appendAndAttendQueries:queryView
                                          keys:keyView
                                        values:valueView
                                     overCache:cache
                                      sequence:2
                                       results:results
                                       options:nil
                                         error:nil]);
    XCTAssertTrue([step copySequence:2 toSequence:1 inCache:cache error:nil]);
    XCTAssertNotNil([step commitWithError:nil]);
    const auto committed = device->committed();
    XCTAssertEqual(committed.size(), 2u);
    for (uint32_t sequence = 0; sequence < 3; ++sequence) {
      XCTAssertEqual([cache nextPositionOfSequence:sequence], core.nextPosition(sequence));
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
