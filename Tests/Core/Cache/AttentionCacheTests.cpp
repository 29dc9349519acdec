// The shape of a cache, when its positions advance, which calls it refuses, and its state after conflicts between
// encoders and failures of the device. AttentionCacheProperty checks what a cache holds.
#include "Harness/FakeDevice.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "QuantizedCacheFixture.hpp"

namespace mnk::test {

namespace {

struct SmallCache {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  AttentionCache cache;
  CommandEncoder encoder{device};
  RefusedCalls no;

  explicit SmallCache(const AttentionCacheDescriptor& descriptor = kDescriptor,
                      std::source_location where = std::source_location::current())
      : cache(makeCache(device, descriptor)), no(where) {}
  Result<void> append(uint64_t count, uint32_t sequence = 0) { return test::append(cache, encoder, count, sequence); }
  // A token to each.
  Result<void> appendTo(const std::vector<uint32_t>& sequences) {
    const Tensor source = tokens(device, sequences.size());
    return cache.append(encoder, {.keys = source, .values = source, .sequences = sequences});
  }
  void appendNow(uint64_t count, uint32_t sequence = 0) { test::appendNow(cache, device, count, sequence); }
  uint64_t next(uint32_t sequence = 0) const { return *cache.nextPosition(sequence); }
};

}  // namespace

TEST(AttentionCache, NeedsADeviceWithEnoughMemory) {
  RefusedCalls no;
  no(AttentionCache::make(nullptr, kDescriptor));
  const auto device = FakeDevice::make();
  device->failAt(FakeDevice::Call::makeBuffer, 1);  // keys fit, values do not
  no(AttentionCache::make(device, kDescriptor));
  AttentionCacheDescriptor huge = kDescriptor;
  huge.kvHeads = huge.headDim = huge.capacity = huge.sequences = (1u << 31) - 1;
  no(AttentionCache::make(device, huge));
}

TEST(AttentionCache, ComputesItsCapacity) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor{.kvHeads = 1, .headDim = 8, .pinned = 4};
  struct Expected {
    SlidingWindow sliding;
    uint32_t slots, maxRows;
  };
  for (const auto& [sliding, slots, maxRows] : {Expected{{.window = 32, .maxRows = 16, .maxDraft = 4}, 32 + 16 - 1, 16},
                                                {{.window = 32, .maxRows = 1, .maxDraft = 4}, 32 + 4 - 1, 1},
                                                {{.window = 32}, 32 + 64 - 1, 64},
                                                {{.window = 32, .maxRows = 0}, 32 + 64 - 1, 64}}) {
    descriptor.slidingWindow = sliding;
    const AttentionCache cache = makeCache(device, descriptor);
    EXPECT_EQ(cache.descriptor().capacity, 4 + slots);
    EXPECT_EQ(cache.descriptor().slidingWindow->maxRows, maxRows);
    EXPECT(cache.descriptor().whenFull == KVWrap::ring);
  }
  descriptor.capacity = 100;
  EXPECT_EQ(makeCache(device, descriptor).descriptor().capacity, 100u);
  descriptor.capacity = 0;
  descriptor.slidingWindow = SlidingWindow{.window = UINT32_MAX, .maxRows = UINT32_MAX};
  RefusedCalls no;
  no(AttentionCache::make(device, descriptor));
}

TEST(AttentionCache, ReportsItsShapesAndSizes) {
  AttentionCacheDescriptor alike{.kvHeads = 2, .headDim = 8, .capacity = 5, .sequences = 3, .dtype = DType::bf16};
  AttentionCacheDescriptor wide = alike, ofF32 = kDescriptor, twoScales = alike, latent = alike;
  wide.valueHeadDim = 16;
  ofF32.dtype = DType::f32;
  twoScales.headDim = 512;
  twoScales.quantized =
      KVQuantizedStorage{.codec = KVCodec::Name::mlx1, .keyBits = 8, .valueBits = 4, .scaleFactor = 0.5f};
  latent.kvHeads = 1, latent.headDim = 64, latent.latentDim = 512;
  const AttentionCacheDescriptor descriptors[] = {alike,
                                                  wide,
                                                  kDescriptor,
                                                  ofF32,
                                                  turboDescriptor(),
                                                  mixed(turboDescriptor(), KVQuantizedPlanes::values, DType::bf16),
                                                  mixed(turboDescriptor(), KVQuantizedPlanes::keys, DType::f32),
                                                  twoScales,
                                                  latent};
  for (size_t i = 0; i < std::size(descriptors); ++i) {
    const AttentionCache cache = makeCache(FakeDevice::make(), descriptors[i]);
    const AttentionCacheDescriptor& d = cache.descriptor();
    const uint64_t slots = uint64_t{d.sequences} * d.capacity, elements = d.kvHeads * (d.headDim + d.valueHeadDim);
    EXPECT_EQ(cache.byteCount(), cache.bytesPerToken() * slots);
    EXPECT_EQ(cache.bytesSaved(), static_cast<int64_t>(2 * elements * slots) - static_cast<int64_t>(cache.byteCount()));
    const auto textOf = [](const Tensor& tensor) {
      return fmt::format("{} {}", name(tensor.dtype()), tensor.shape().text());
    };
    std::string text = fmt::format("{} | {} | keys {} | values {}", cache.text(), name(d.dtype),
                                   textOf(cache.view().keys), textOf(*cache.view().values));
    EXPECT_EQ(cache.quantizedView().has_value(), d.quantized.has_value());
    if (const auto view = cache.quantizedView()) {
      for (const auto& plane : {view->keys, *view->values}) {
        text += plane.isDense() ? " | dense"
                                : fmt::format(" | scales {}, factor {}", textOf(plane.scales), plane.codec.scaleFactor);
      }
    }
    expectGoldenLine(kRefusals, fmt::format("AttentionCache_ReportsItsShapesAndSizes {:02}", i),
                     fmt::format("{} | {} bytes a token, {} saved", text, cache.bytesPerToken(), cache.bytesSaved()));
  }
}

TEST(AttentionCache, AdvancesBeforeTheWorkIsDone) {
  SmallCache f;
  f.device->holdCompletions();
  REQUIRE(f.append(2));
  const Completion completion = REQUIRE(f.encoder.commit());
  EXPECT(!completion.isDone());
  EXPECT_EQ(f.next(), 2u);
  EXPECT(f.device->finishNext({}));
  EXPECT_EQ(f.next(), 2u);
  EXPECT(!f.cache.isSuspect());
}

TEST(AttentionCache, ARefusedAppendAdvancesNothing) {
  SmallCache f;
  const Tensor good = tokens(f.device, 2);
  f.no(f.cache.append(f.encoder, tokens(f.device, 1, 3), good, 0));
  f.no(f.cache.append(f.encoder, good, tokens(f.device, 1), 0));
  f.no(f.cache.append(f.encoder, Tensor{}, good, 0));
  REQUIRE(f.cache.append(f.encoder, good, good, 0));
  REQUIRE(f.encoder.commit());
  EXPECT_EQ(f.next(), 2u);
  EXPECT_EQ(f.device->committed().at(0).dispatches.size(), 1u);
}

TEST(AttentionCache, AFailingEncoderAdvancesNothing) {
  SmallCache f;
  f.device->failAt(FakeDevice::Call::dispatch);
  f.no(f.append(2));
  f.device->failAt(FakeDevice::Call::makePipeline);
  f.device->registry().clear();
  f.no(f.append(2));
  REQUIRE(f.append(1));
  REQUIRE(f.encoder.commit());
  EXPECT_EQ(f.next(), 1u);
}

TEST(AttentionCache, ACommittedEncoderRefusesAppends) {
  SmallCache f;
  REQUIRE(f.append(1));
  REQUIRE(f.encoder.commit());
  f.no(f.append(1));
  f.no(f.encoder.commit());
  EXPECT_EQ(f.next(), 1u);
}

TEST(AttentionCache, AppendsToDifferentSlotsNeedNoBarrier) {
  SmallCache f;
  REQUIRE(f.append(2));
  REQUIRE(f.append(1));
  for (int row = 0; row < 2; ++row) REQUIRE(f.appendTo({1}));
  EXPECT_EQ(f.encoder.summary().barriers, 0u);
  REQUIRE(f.append(2));  // slots 3 and 0: the ring wraps
  EXPECT_EQ(f.encoder.summary().barriers, 1u);
}

TEST(AttentionCache, AnEmptyAppendChangesNothing) {
  SmallCache f;
  const Tensor none = tokens(f.device, 0), one = tokens(f.device, 1);
  REQUIRE(f.append(0));
  REQUIRE(f.cache.append(f.encoder, {.keys = none, .values = none, .sequences = {0, 1}, .rowCounts = {{0, 0}}}));
  REQUIRE(f.appendTo({}));
  f.no(f.cache.append(f.encoder, {.keys = one, .values = one, .sequences = {}}));
  EXPECT_EQ(f.encoder.summary().total.dispatches, 0u);
  REQUIRE(f.encoder.commit());
  EXPECT_EQ(f.next(), 0u);
}

TEST(AttentionCache, RefusesUnknownSequences) {
  SmallCache f;
  f.no(f.append(1, 3));
  f.no(f.appendTo({0, 3}));
  f.no(f.cache.truncate(0, 3));
  f.no(f.cache.reset(3));
  REQUIRE(f.encoder.commit());
  EXPECT_EQ(f.next(), 0u);
}

TEST(AttentionCache, AFullLinearCacheRefusesAppends) {
  SmallCache f({.kvHeads = 2, .headDim = 4, .capacity = 4, .sequences = 3, .isStorageOnly = true});
  f.appendNow(3);
  f.no(f.append(2));
  f.no(f.appendTo({0, 1, 0}));
  EXPECT_EQ(f.encoder.summary().total.dispatches, 0u);
}

TEST(AttentionCache, OverwrittenPositionsStayLost) {
  SmallCache f;
  AttentionCacheDescriptor pinned = kDescriptor;
  pinned.pinned = 2;
  AttentionCache pinning = makeCache(f.device, pinned);
  f.appendNow(10);  // 6 to 9
  for (const uint64_t position : {5, 11}) f.no(f.cache.truncate(position, 0));
  EXPECT_EQ(f.next(), 10u);
  appendNow(pinning, f.device, 10);  // 0, 1, 8 and 9
  for (const uint64_t position : {7, 3}) f.no(pinning.truncate(position, 0));
}

TEST(AttentionCache, CopiesAndMovesReferToTheSameCache) {
  SmallCache f;
  AttentionCache original = f.cache, copy = original, moved = std::move(original);
  for (AttentionCache* each : {&f.cache, &copy, &moved, &original}) REQUIRE(append(*each, f.encoder, 1));
  REQUIRE(f.encoder.commit());
  for (AttentionCache* each : {&f.cache, &copy, &moved, &original}) EXPECT_EQ(*each->nextPosition(0), 4u);
}

TEST(AttentionCache, ServesMoreSequencesThanOneWriteHolds) {
  const auto device = REQUIRE(Device::makeDefault());
  const auto count = static_cast<uint32_t>(2 * KVCacheWrite::kMaxRows + 3);
  AttentionCache cache = REQUIRE(AttentionCache::make(
      device,
      {.kvHeads = 1, .headDim = 2, .capacity = 2, .sequences = count, .dtype = DType::f32, .isStorageOnly = true}));
  std::vector<float> numbers(count * 2);
  std::vector<uint32_t> sequences(count);
  for (uint32_t i = 0; i < count; ++i) {
    numbers[2 * i] = numbers[2 * i + 1] = static_cast<float>(i + 1);
    sequences[i] = count - 1 - i;
  }
  const Tensor source = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({count, 1, 2}))));
  REQUIRE(source.write(std::as_bytes(std::span(numbers))));
  CommandEncoder encoder(device);
  REQUIRE(cache.append(encoder, {.keys = source, .values = source, .sequences = sequences}));
  EXPECT_EQ(encoder.summary().total.dispatches, 3u);
  EXPECT_EQ(encoder.summary().barriers, 0u);
  REQUIRE(REQUIRE(encoder.commit()).wait());
  std::vector<float> stored(count * 4);
  REQUIRE(cache.view().keys.read(std::as_writable_bytes(std::span(stored))));
  for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(stored[sequences[i] * 4], static_cast<float>(i + 1));
  EXPECT_EQ(*cache.nextPosition(count - 1), 1u);

  CommandEncoder longer(device);
  sequences.pop_back();
  RefusedCalls no;
  no(cache.append(longer, {.keys = source, .values = source, .sequences = sequences}));
  EXPECT_EQ(longer.summary().total.dispatches, 0u);
}

TEST(AttentionCacheOutcome, TheSecondOfTwoEncodersConflicts) {
  SmallCache f;
  CommandEncoder second(f.device), again(f.device);
  REQUIRE(f.append(2));
  REQUIRE(append(f.cache, second, 1));
  REQUIRE(f.encoder.commit());
  f.no(second.commit());
  EXPECT_EQ(f.next(), 2u);
  EXPECT_EQ(f.device->committed().size(), 1u);
  REQUIRE(append(f.cache, again, 1));
  REQUIRE(again.commit());
  EXPECT_EQ(f.next(), 3u);
}

TEST(AttentionCacheOutcome, EncodersOnDifferentSequencesDoNotConflict) {
  SmallCache f;
  CommandEncoder second(f.device);
  REQUIRE(f.append(2, 0));
  const Tensor wrong = tokens(f.device, 1, 3);
  EXPECT(!f.cache.append(f.encoder, wrong, wrong, 1));  // takes no part
  REQUIRE(append(f.cache, second, 1, 1));
  REQUIRE(second.commit());
  REQUIRE(f.encoder.commit());
  EXPECT_EQ(f.next(0), 2u);
  EXPECT_EQ(f.next(1), 1u);
}

TEST(AttentionCacheOutcome, AConflictInOneCacheAdvancesNoOther) {
  SmallCache f;
  AttentionCache contested = makeCache(f.device);
  REQUIRE(f.append(3));
  REQUIRE(append(contested, f.encoder, 3));
  appendNow(contested, f.device, 1);
  f.no(f.encoder.commit());
  EXPECT_EQ(f.next(), 0u);
  EXPECT_EQ(*contested.nextPosition(0), 1u);
}

TEST(AttentionCacheOutcome, AFaultMakesItsSequencesSuspect) {
  SmallCache f;
  f.appendNow(2, 0);
  f.appendNow(2, 1);
  f.device->holdCompletions();
  REQUIRE(f.append(1, 1));
  const Tensor wrong = tokens(f.device, 1, 3);
  EXPECT(!f.cache.append(f.encoder, wrong, wrong, 2));
  const Completion completion = REQUIRE(f.encoder.commit());
  EXPECT(!f.cache.isSuspect(1));
  EXPECT(f.device->finishNext(fakeFailure()));
  EXPECT_ERROR(completion.wait(), {.code = ErrorCode::deviceFault});
  EXPECT(!f.cache.isSuspect(0));
  EXPECT(f.cache.isSuspect(1));
  EXPECT(!f.cache.isSuspect(2));  // its append was refused, so none of its work failed
  EXPECT_EQ(f.next(1), 3u);
  f.no(f.cache.truncate(3, 1));  // would keep outputs of the failed step
  EXPECT(f.cache.isSuspect(1));
  REQUIRE(f.cache.truncate(2, 1));
  EXPECT(!f.cache.isSuspect(1));
  CommandEncoder last(f.device);
  REQUIRE(append(f.cache, last, 1, 1));
  REQUIRE(last.commit());
  EXPECT_EQ(f.next(1), 3u);
}

TEST(AttentionCacheOutcome, NothingUsesASuspectSequence) {
  RefusedCalls no;
  for (const bool isQuantized : {false, true}) {
    const auto device = FakeDevice::make();
    AttentionCacheDescriptor descriptor{
        .kvHeads = 2, .headDim = 32, .capacity = 8, .sequences = 2, .dtype = DType::f32};
    if (isQuantized) descriptor.quantized.emplace();
    AttentionCache cache = makeCache(device, descriptor);
    const Tensor one = tokens(device, 1, 2, 32), two = tokens(device, 2, 2, 32), out = tokens(device, 2, 2, 32);
    const auto append = [&](uint32_t sequence) {
      CommandEncoder encoder(device);
      REQUIRE(cache.append(encoder, two, two, sequence));
      return REQUIRE(encoder.commit());
    };
    append(0), append(1);
    device->holdCompletions();
    const Completion done = append(1);
    EXPECT(device->finishNext(fakeFailure()));
    EXPECT(!done.wait());
    CommandEncoder encoder(device);
    if (isQuantized) {
      no(cache.dequantize(encoder, two, std::nullopt, 1, 1));
      REQUIRE(cache.dequantize(encoder, two, std::nullopt, 0, 1));
      continue;
    }
    CacheStep step{.queries = two, .results = {.output = out}, .sequences = {0, 1}};
    no(cache.attend(encoder, one, {.output = REQUIRE(out.slice(0, 1))}, {}, 1));
    no(cache.attend(encoder, step));
    step.keys = step.values = two;
    no(cache.appendAndAttend(encoder, step));
    no(cache.append(encoder, one, one, 1));
    no(cache.append(encoder, {.keys = two, .values = two, .sequences = {0, 1}}));
    no(cache.copy(encoder, 1, 0));
    no(cache.grown(encoder, 9));
    no(cache.quantized(encoder, {}));
  }
}

TEST(AttentionCacheOutcome, ResetClearsSuspectSequences) {
  SmallCache f;
  f.device->holdCompletions();
  REQUIRE(f.appendTo({0, 1, 2}));
  REQUIRE(f.encoder.commit());
  EXPECT(f.device->finishNext(fakeFailure()));
  EXPECT(f.cache.isSuspect(0) && f.cache.isSuspect(1) && f.cache.isSuspect(2));
  REQUIRE(f.cache.reset(1));
  EXPECT(f.cache.isSuspect(0) && !f.cache.isSuspect(1));
  f.cache.reset();
  EXPECT(!f.cache.isSuspect(0) && !f.cache.isSuspect(2));
}

// The same with a kernel that really stops: work recorded before it may have finished, so the cache is not reliable.
TEST(AttentionCacheOutcome, AStoppedKernelMakesSequencesSuspect) {
  onEveryHost([](const std::shared_ptr<Device>& device) {
    AttentionCache cache = makeCache(device);
    appendNow(cache, device, 2, 0);
    CommandEncoder encoder(device);
    REQUIRE(append(cache, encoder, 1, 1));
    const Tensor data = tokens(device, 4);
    REQUIRE(encoder.dispatch({.kernel = {conformanceLibrary(), "faultUnsetConstant", {}},
                              .kind = "fault",
                              .buffers = {Binding::whole(0, data, Access::write)},
                              .grid = {.extent = {32, 1, 1}}}));
    const Completion completion = REQUIRE(encoder.commit());
    EXPECT_ERROR(completion.wait(), {.code = ErrorCode::deviceFault});
    EXPECT(!cache.isSuspect(0));
    EXPECT(cache.isSuspect(1));
    EXPECT_EQ(*cache.nextPosition(1), 1u);
    REQUIRE(cache.truncate(0, 1));
    appendNow(cache, device, 1, 1);
    EXPECT(!cache.isSuspect(1));
  });
}

// An encoder that began before the fault was known must not be committed after it.
TEST(AttentionCacheOutcome, AFaultWhileAnEncoderRecordsConflicts) {
  SmallCache f;
  f.device->holdCompletions();
  CommandEncoder next(f.device);
  REQUIRE(f.append(1));
  REQUIRE(f.encoder.commit());
  REQUIRE(append(f.cache, next, 1));
  EXPECT(f.device->finishNext(fakeFailure()));
  f.no(next.commit());
  EXPECT(f.cache.isSuspect());
}

}  // namespace mnk::test
