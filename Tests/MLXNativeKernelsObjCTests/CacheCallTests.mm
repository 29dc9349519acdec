#include <functional>
#include <unordered_set>

#import "Generated/Objects.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/Common/BindingCases.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;
using test::FakeDevice;

namespace {

std::string textOf(id object) {
  return std::string([object description].UTF8String ?: "");
}

// A cache that is used in C++, and an equal one that is used through the binding.
struct Twins {
  AttentionCache core;
  MNKAttentionCache *object;

  void expectSame() const {
    EXPECT_EQ(textOf(object), core.text());
    EXPECT([object.descriptor isEqual:objectFor(core.descriptor())]);
    EXPECT_EQ(object.byteCount, core.byteCount());
    EXPECT_EQ(object.bytesPerToken, core.bytesPerToken());
    EXPECT_EQ(object.bytesSaved, core.bytesSaved());
    EXPECT_EQ(object.quantizedView != nil, core.quantizedView().has_value());
    EXPECT_EQ(textOf(object.view.keys), core.view().keys.text());
    for (uint32_t sequence = 0; sequence < core.descriptor().sequences; ++sequence) {
      EXPECT_EQ([object nextPositionOfSequence:sequence], *core.nextPosition(sequence));
      EXPECT_EQ([object countOfSequence:sequence], *core.count(sequence));
      EXPECT_EQ([object isSequenceSuspect:sequence] != NO, core.isSuspect(sequence));
    }
  }
};

using InCxx = std::function<Result<void>(CommandEncoder &)>;
using InObjC = std::function<bool(MNKCommandEncoder *, NSError *__autoreleasing *)>;

// Calls in C++ and through the binding, for which the device must be asked for the same.
class CallFixture {
 public:
  Tensor tensor(std::initializer_list<uint64_t> extents) {
    const Tensor made = memory_.make(DType::f32, extents);
    shared_.insert(made.buffer().get());
    return made;
  }

  Twins caches(uint32_t sequences, uint32_t capacity) const {
    const AttentionCacheDescriptor descriptor{.kvHeads = 2,
                                              .headDim = 64,
                                              .capacity = capacity,
                                              .sequences = sequences,
                                              .dtype = DType::bf16,
                                              .whenFull = KVWrap::ring,
                                              .pinned = 1};
    const AttentionCache core = REQUIRE(AttentionCache::make(fake_, descriptor));
    NSError *error = nil;
    MNKAttentionCache *object = [[MNKAttentionCache alloc] initWithDevice:device_
                                                               descriptor:objectFor(descriptor)
                                                                    error:&error];
    EXPECT_EQ(textOf(error), "");
    const Twins made{core, object};
    made.expectSame();
    return made;
  }

  void expectSame(const char *name, const InCxx &inCxx, const InObjC &inObjC) const {
    const test::Context context(name);
    CommandEncoder encoder(fake_);
    REQUIRE(inCxx(encoder));
    REQUIRE(encoder.commit());
    @autoreleasepool {
      NSError *error = nil;
      MNKCommandEncoder *step = [device_ commandEncoder];
      EXPECT(inObjC(step, &error) && [step commitWithError:&error]);
      EXPECT_EQ(textOf(error), "");
    }
    const auto committed = fake_->takeCommitted();
    EXPECT_EQ(committed.size(), 2u);
    if (committed.size() == 2) test::expectSameDispatches(committed[1], committed[0], withoutOwnMemory(committed[0]));
  }

 private:
  // Each cache has its own memory.
  std::vector<Dispatch> withoutOwnMemory(const FakeDevice::Recorded &recorded) const {
    std::vector<Dispatch> dispatches;
    for (const ReadyDispatch &one : recorded.dispatches) {
      dispatches.push_back(one.dispatch);
      for (Binding &binding : dispatches.back().buffers) {
        if (!shared_.contains(binding.buffer.get())) binding.buffer = nullptr;
      }
    }
    return dispatches;
  }

  std::shared_ptr<FakeDevice> fake_ = FakeDevice::make();
  MNKDevice *device_ = objectOver(std::shared_ptr<Device>(fake_));
  test::BindingMemory memory_{fake_};
  std::unordered_set<const Buffer *> shared_;
};

}  // namespace

// Each argument of each call over caches reaches the core.
@interface CacheCallTests : XCTestCase
@end

@implementation CacheCallTests

- (void)testStepsMatchCxx {
  XCTAssertNil(failuresWithin([] {
    CallFixture fixture;
    Twins caches = fixture.caches(3, 4), prompts = fixture.caches(3, 6);
    const Tensor keys = fixture.tensor({2, 2, 64}), values = fixture.tensor({2, 2, 64});
    const Tensor queries = fixture.tensor({2, 4, 64}), output = fixture.tensor({2, 4, 64});
    const HeadsView headMajor(keys, KVLayout::headMajor);
    const AttentionResults results{.output = output}, logged{.output = output, .logSumExp = fixture.tensor({2, 4})};
    const AttentionOptions options{.scale = 2, .window = 2};
    const RotaryStep rotary{
        .embedding = {.ropeDim = 32}, .positions = RotaryPositions(70), .offsets = std::vector<int32_t>{5}};
    const CacheStep prompt{.keys = keys, .values = values, .sequences = {2}};
    fixture.expectSame(
        "append a prompt", [&](auto &encoder) { return prompts.core.append(encoder, prompt); },
        [&](auto *encoder, auto error) {
          return [encoder append:objectFor(prompt) toCache:prompts.object error:error] != NO;
        });
    enum Call { append, attend, both };
    const std::pair<Call, CacheStep> calls[] = {
        {append, {.keys = keys, .values = values, .sequences = {1}}},
        {append, {.keys = keys, .values = values, .sequences = {2, 0}}},
        {append, {.keys = headMajor, .values = values, .sequences = {2, 0, 1}, .rowCounts = {{1, 0, 1}}}},
        {attend, {.queries = queries, .results = results, .options = options, .sequences = {1}}},
        {attend,
         {.queries = queries, .results = logged, .options = options, .sequences = {2, 0, 1}, .rowCounts = {{1, 0, 1}}}},
        {attend, {.queries = queries, .results = results, .sequences = {1}, .after = {{prompts.core, 2}}}},
        {both, {.queries = queries, .keys = keys, .values = values, .results = results, .sequences = {1}}},
        {both,
         {.queries = queries,
          .keys = headMajor,
          .values = values,
          .rotary = rotary,
          .results = results,
          .options = options,
          .sequences = {0},
          .rowCounts = {{2}}}}};
    for (const auto &[call, step] : calls) {
      const auto inCxx = [&, call = call, &step = step](CommandEncoder &encoder) {
        return call == append   ? caches.core.append(encoder, step)
               : call == attend ? caches.core.attend(encoder, step)
                                : caches.core.appendAndAttend(encoder, step);
      };
      const auto inObjC = [&, call = call, &step = step](MNKCommandEncoder *encoder, NSError **error) {
        MNKCacheStep *object = objectFor(step);
        return (call == append   ? [encoder append:object toCache:caches.object error:error]
                : call == attend ? [encoder attend:object overCache:caches.object error:error]
                                 : [encoder appendAndAttend:object overCache:caches.object error:error]) != NO;
      };
      fixture.expectSame(call == append ? "append" : call == attend ? "attend" : "append and attend", inCxx, inObjC);
      caches.expectSame();
    }
  }));
}

// A call that names no sequence means the only one.
- (void)testTheOnlySequenceNeedNotBeNamed {
  XCTAssertNil(failuresWithin([] {
    CallFixture fixture;
    Twins caches = fixture.caches(1, 8);
    const Tensor tokens = fixture.tensor({2, 2, 64}), queries = fixture.tensor({2, 4, 64});
    const Tensor output = fixture.tensor({2, 4, 64});
    const AttentionOptions options{.scale = 2};
    MNKTensor *tokenObject = objectOver(tokens), *queryObject = objectOver(queries);
    const auto append = [&] {
      fixture.expectSame(
          "append", [&](auto &encoder) { return caches.core.append(encoder, tokens, tokens); },
          [&](auto *encoder, auto error) {
            return [encoder appendKeys:tokenObject values:tokenObject toCache:caches.object error:error] != NO;
          });
    };
    append();
    fixture.expectSame(
        "attend", [&](auto &encoder) { return caches.core.attend(encoder, queries, {.output = output}, options); },
        [&](auto *encoder, auto error) {
          return [encoder attendQueries:queryObject
                              overCache:caches.object
                             intoTensor:objectOver(output)
                                options:objectFor(options)
                                  error:error] != NO;
        });
    REQUIRE(caches.core.truncate(1));
    NSError *error = nil;
    EXPECT([caches.object truncateToPosition:1 error:&error]);
    append();
    caches.expectSame();
    EXPECT_EQ(caches.object.nextPosition, 3u);
    EXPECT_EQ(caches.object.count, 3u);
    EXPECT_EQ([caches.object countOfSequence:MNKOnlySequence], 3u);
    EXPECT(![caches.object isSequenceSuspect:MNKOnlySequence]);
    // The number that the core uses for it is that of no sequence.
    EXPECT([caches.object isSequenceSuspect:kOnlySequence]);
    EXPECT_EQ([caches.object nextPositionOfSequence:kOnlySequence], static_cast<NSUInteger>(NSNotFound));
    EXPECT_EQ([caches.object countOfSequence:NSUIntegerMax - 1], static_cast<NSUInteger>(NSNotFound));
    EXPECT([caches.object resetSequence:0 error:&error] && caches.object.nextPosition == 0);
  }));
}

- (void)testCopiesOfCachesMatchCxx {
  XCTAssertNil(failuresWithin([] {
    CallFixture fixture;
    Twins caches = fixture.caches(3, 8), larger = fixture.caches(3, 9);
    const Tensor tokens = fixture.tensor({2, 2, 64});
    const KVQuantizedStorage storage{.keyBits = 5, .valueBits = 3, .options = {.candidates = 17}};
    fixture.expectSame(
        "copies",
        [&](auto &encoder) -> Result<void> {
          REQUIRE(caches.core.append(encoder, tokens, tokens, 2));
          REQUIRE(caches.core.copy(encoder, 2, 1));
          return caches.core.copy(encoder, 1, larger.core, 0);
        },
        [&](auto *encoder, auto error) {
          MNKCacheStep *step = [MNKCacheStep stepWithKeys:objectOver(tokens) values:objectOver(tokens)];
          step.sequences = @[ @2 ];
          return [encoder append:step toCache:caches.object error:error] &&
                 [encoder copySequence:2 toSequence:1 inCache:caches.object error:error] &&
                 [encoder copySequence:1 ofCache:caches.object toSequence:0 ofCache:larger.object error:error];
        });
    caches.expectSame();
    larger.expectSame();
    Twins grown = caches, quantized = caches;
    fixture.expectSame(
        "grown and quantized",
        [&](auto &encoder) -> Result<void> {
          grown.core = REQUIRE(caches.core.grown(encoder, 12));
          quantized.core = REQUIRE(caches.core.quantized(encoder, storage));
          return {};
        },
        [&](auto *encoder, auto error) {
          grown.object = [encoder growCache:caches.object toCapacity:12 error:error];
          quantized.object = [encoder quantizeCache:caches.object asStorage:objectFor(storage) error:error];
          return grown.object && quantized.object;
        });
    grown.expectSame();
    quantized.expectSame();
    const Tensor keys = fixture.tensor({1, 2, 64}), values = fixture.tensor({1, 2, 64});
    fixture.expectSame(
        "dequantized",
        [&](auto &encoder) { return quantized.core.dequantize(encoder, keys, values, 1, 2, KVDomain::rotated); },
        [&](auto *encoder, auto error) {
          return [encoder dequantizeCache:quantized.object
                                 intoKeys:objectOver(keys)
                                   values:objectOver(values)
                                 position:1
                                 sequence:2
                                   domain:MNKKVDomainRotated
                                    error:error] != NO;
        });
  }));
}

- (void)testRotationsMatchCxx {
  XCTAssertNil(failuresWithin([] {
    CallFixture fixture;
    Twins caches = fixture.caches(3, 8);
    const Tensor queries = fixture.tensor({2, 4, 64}), keys = fixture.tensor({2, 2, 64});
    const RotaryEmbedding rotary{.ropeDim = 32};
    const CacheStep append{.keys = keys, .values = keys, .sequences = {2, 0, 1}, .rowCounts = {{1, 0, 1}}};
    fixture.expectSame(
        "rotate by the next positions",
        [&](auto &encoder) -> Result<void> {
          const auto next = caches.core.nextPositions(append.sequences, append.rowCounts);
          REQUIRE(encoder.encode(MultiRoPE{.queries = queries, .keys = keys, .positions = next, .rotary = rotary}));
          return caches.core.append(encoder, append);
        },
        [&](auto *encoder, auto error) {
          MNKRotaryPositions *next = [MNKRotaryPositions nextPositionsOfCache:caches.object
                                                                    sequences:numbersFrom(append.sequences)
                                                                    rowCounts:numbersFrom(*append.rowCounts)];
          return [encoder rotateQueries:objectOver(queries)
                                   keys:objectOver(keys)
                              positions:next
                                 rotary:objectFor(rotary)
                                  error:error] &&
                 [encoder append:objectFor(append) toCache:caches.object error:error];
        });
    fixture.expectSame(
        "rotate queries alone",
        [&](auto &encoder) { return encoder.encode(MultiRoPE{.queries = queries, .positions = 7, .rotary = rotary}); },
        [&](auto *encoder, auto error) {
          return [encoder rotateQueries:objectOver(queries)
                                   keys:nil
                              positions:[MNKRotaryPositions positionsStartingAt:7]
                                 rotary:objectFor(rotary)
                                  error:error] != NO;
        });
  }));
}

@end
