// Copies of sequences, growth, and quantized copies of dense caches: dispatches, refusals and failures.
// AttentionCacheProperty checks what they hold.
#include "CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

AttentionCacheDescriptor quantizedDescriptor(const std::shared_ptr<Device>& device) {
  AttentionCacheDescriptor descriptor = attendedDescriptor(6, 2);
  descriptor.quantized = KVQuantizedStorage{.keyBits = 5, .valueBits = 3};
  descriptor.quantized->keyMeans = constants(device, 0.5f, 2, 32);
  return descriptor;
}

}  // namespace

TEST(AttentionCacheCopy, SequencesThatStandAlikeShareDispatches) {
  const auto device = FakeDevice::make();
  for (const bool isQuantized : {false, true}) {
    AttentionFixture fixture(device, isQuantized ? quantizedDescriptor(device) : attendedDescriptor(6, 2));
    const uint64_t each = isQuantized ? 2 : 1;  // keys and values, and their scales
    const auto dispatches = [&](auto call) {
      CommandEncoder encoder(device);
      REQUIRE(call(encoder));
      return encoder.summary().total.dispatches;
    };
    const auto grow = [&](CommandEncoder& encoder) { return fixture.cache.grown(encoder, 9); };
    const auto quantize = [&](CommandEncoder& encoder) { return fixture.cache.quantized(encoder, {}); };
    const auto quantizeWithMeans = [&](CommandEncoder& encoder) {
      return fixture.cache.quantized(encoder, {.valueMeans = constants(device, 0.25f, 2, 32)});
    };
    for (const uint32_t sequence : {0, 1, 2}) fixture.appendNow(5, sequence);
    EXPECT_EQ(dispatches(grow), each);
    if (!isQuantized) EXPECT_EQ(dispatches(quantize), 1u);
    if (!isQuantized) EXPECT_EQ(dispatches(quantizeWithMeans), 3u);
    // Two have wrapped, and one of these was rolled back. Pinned positions and the others take a dispatch each, unless
    // their slots are adjacent.
    fixture.appendNow(6, 0);
    fixture.appendNow(6, 1);
    fixture.truncate(10, 1);
    EXPECT_EQ(dispatches(grow), 5 * each);
    EXPECT_EQ(dispatches([&](CommandEncoder& encoder) { return fixture.cache.copy(encoder, 0, 2); }), 2 * each);
    if (!isQuantized) EXPECT_EQ(dispatches(quantize), 4u);
  }
}

TEST(AttentionCacheCopy, ACopyOntoItselfIsChecked) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(6));
  fixture.appendNow(4, 0);
  CommandEncoder elsewhere(FakeDevice::make()), committed(device);
  RefusedCalls no;
  no(fixture.cache.copy(elsewhere, 0, 0));
  REQUIRE(fixture.cache.copy(committed, 0, 0));
  REQUIRE(committed.commit());
  no(fixture.cache.copy(committed, 0, 0));
}

TEST(AttentionCacheCopy, ACopyNeedsItsSourceAndTargetUnchanged) {
  const auto device = FakeDevice::make();
  RefusedCalls no;
  struct Change {
    uint64_t appended;  // 0: a reset
    uint32_t sequence;
    bool isRead = true;
  };
  // The source gets longer, wraps and is reset; the target gets a token.
  for (const auto& [appended, sequence, isRead] : {Change{1, 0, false}, {3, 0}, {0, 0}, {1, 1}}) {
    AttentionFixture fixture(device, attendedDescriptor(6));
    fixture.appendNow(4, 0);
    CommandEncoder copying(device);
    REQUIRE(fixture.cache.copy(copying, 0, 1));
    if (appended == 0) REQUIRE(fixture.cache.reset(sequence));
    if (appended != 0) fixture.appendNow(appended, sequence);
    if (isRead) no(copying.commit());
    if (!isRead) REQUIRE(copying.commit());
    EXPECT_EQ(*fixture.cache.nextPosition(1), !isRead ? 4 : sequence == 1 ? appended : 0);
  }
}

// Failed work leaves what it filled suspect, and its source as it was. The outputs of a failed append are neither
// copied nor saved once they are truncated.
TEST(AttentionCacheCopy, FailuresLeaveTargetsSuspect) {
  RefusedCalls no;
  const std::string_view calls[] = {"AttentionCache.copy", "AttentionCache.grown", "AttentionCache.quantized"};
  for (const std::string_view call : calls) {
    for (const uint32_t capacity : {8, 3}) {
      const Context context(fmt::format("{} of {} slots", call, capacity));
      const auto device = FakeDevice::make();
      AttentionFixture fixture(device, attendedDescriptor(capacity, 1));
      fixture.appendNow(4, 0);
      fixture.appendNow(3, 1);
      device->holdCompletions();
      AttentionCache target = fixture.cache;
      const uint32_t filled = call == calls[0] ? 1 : 0;
      const auto fill = [&](CommandEncoder& encoder) -> Result<void> {
        if (call == calls[0]) return fixture.cache.copy(encoder, 0, 1);
        auto made =
            call == calls[1] ? fixture.cache.grown(encoder, capacity + 1) : fixture.cache.quantized(encoder, {});
        if (!made) return made.error();
        target = *made;
        return {};
      };
      const auto finish = [&](CommandEncoder& encoder, const Result<void>& outcome) {
        const auto done = REQUIRE(encoder.commit());
        EXPECT(device->finishNext(outcome));
        EXPECT_EQ(bool(done.wait()), bool(outcome));
      };
      CommandEncoder failing(device), again(device), appending(device), recovered(device);
      REQUIRE(fill(failing));
      finish(failing, fakeFailure());
      EXPECT(!fixture.cache.isSuspect(0));
      EXPECT(target.isSuspect(filled));
      no(target.truncate(2, filled));
      REQUIRE(fill(again));
      finish(again, {});
      EXPECT(!target.isSuspect(filled));
      fixture.append(appending, 1);
      finish(appending, fakeFailure());
      no(fill(recovered));
      fixture.truncate(4, 0);
      REQUIRE(fill(recovered));
      finish(recovered, {});
      EXPECT_EQ(*target.nextPosition(filled), 4u);
      const CacheFolder folder;
      REQUIRE(fixture.cache.save(folder.path()));
      EXPECT_EQ(*REQUIRE(AttentionCache::load(device, folder.path(), UINT32_MAX)).nextPosition(0), 4u);
    }
  }
}

// A prompt after the growth of a full ring fills the new slots at once, and not token by token.
TEST(AttentionCacheGrow, NewSlotsTakeSeveralTokens) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(4));
  fixture.appendNow(9, 0);
  REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
    fixture.cache = REQUIRE(fixture.cache.grown(encoder, 12));
    return {};
  }));
  const Tensor keys = fixture.zeros({8, kAttendedHeads, kAttendedDim}), queries = fixture.someQueries(8);
  CommandEncoder encoder(device);
  const Tensor out = fixture.zeros({8, kQueryHeads, kAttendedDim});
  REQUIRE(fixture.cache.appendAndAttend(
      encoder, {.queries = queries, .keys = keys, .values = keys, .results = {.output = out}, .sequences = {0}}));
  EXPECT_EQ(encoder.summary().kinds.at("KVCacheWrite").dispatches, 1u);
}

TEST(AttentionCacheGrow, RefusesWhatCannotGrow) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(6));
  fixture.appendNow(3, 0);
  CommandEncoder encoder(device);
  RefusedCalls no;
  no(fixture.cache.grown(encoder, 5));
  no(fixture.cache.grown(encoder, 1u << 31));
  device->failAt(FakeDevice::Call::makeBuffer);
  no(fixture.cache.grown(encoder, 7));
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  // What is committed after another encoder has changed the source is refused, and the larger cache stays empty.
  const AttentionCache larger = REQUIRE(fixture.cache.grown(encoder, 7));
  REQUIRE(fixture.cache.reset(0));
  no(encoder.commit());
  EXPECT_EQ(*larger.nextPosition(0), 0u);
}

// Every run would fill the larger cache from the old one, without the tokens that were appended to it since.
TEST(AttentionCacheGrow, ARecordingCannotGrow) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(6));
  RefusedCalls no;
  no(RecordedStep::record(device, [&](CommandEncoder& encoder) -> Result<void> {
    auto larger = fixture.cache.grown(encoder, 8);
    if (!larger) return larger.error();
    return {};
  }));
}

// A cache that was to be filled by a step that never ran is not an empty one.
TEST(AttentionCacheGrow, WithoutACommitNothingIsKnown) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(6));
  fixture.appendNow(2, 0);
  std::vector<AttentionCache> made;
  {
    CommandEncoder encoder(device);
    made.push_back(REQUIRE(fixture.cache.grown(encoder, 8)));
    made.push_back(REQUIRE(fixture.cache.quantized(encoder, {})));
    const Tensor keys = fixture.zeros({1, kAttendedHeads, kAttendedDim});
    REQUIRE(made[0].append(encoder, keys, keys, 0));  // the step itself can use it
  }
  RefusedCalls no;
  for (AttentionCache& cache : made) {
    EXPECT(cache.isSuspect(0));
    const Tensor keys = fixture.zeros({1, kAttendedHeads, kAttendedDim});
    CommandEncoder encoder(device);
    no(cache.append(encoder, keys, keys, 0));
    cache.reset();
    REQUIRE(cache.append(encoder, keys, keys, 0));
  }
}

TEST(AttentionCacheGrow, ASequenceGoesOnlyWhereItFits) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = quantizedDescriptor(device);
  AttentionFixture fixture(device, descriptor);
  fixture.appendNow(11, 0);
  CommandEncoder encoder(device);
  RefusedCalls no;
  const auto refused = [&](const auto& change) {
    AttentionCacheDescriptor changed = descriptor;
    change(changed);
    AttentionCache other = makeCache(device, changed);
    no(fixture.cache.copy(encoder, 0, other, 1));
    EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  };
  refused([&](auto& d) { d.kvHeads = 1, d.quantized->keyMeans = constants(device, 0.5f, 1, 32); });
  refused([](auto& d) { d.quantized->keyBits = 4; });
  refused([](auto& d) { d.quantized.reset(); });
  refused([&](auto& d) { d.quantized->keyMeans = constants(device, 0.25f, 2, 32); });
  refused([](auto& d) { d.quantized->keyMeans.reset(); });
  refused([](auto& d) { d.capacity = 5; });
  refused([](auto& d) { d.capacity = 20, d.pinned = 1; });
  refused([](auto& d) { d.capacity = 20, d.pinned = 0, d.whenFull = KVWrap::linear; });
  refused([](auto& d) { d.sequences = 1; });
  // Another device.
  const auto stranger = FakeDevice::make();
  AttentionCacheDescriptor same = descriptor;
  same.quantized->keyMeans = constants(stranger, 0.5f, 2, 32);
  AttentionCache elsewhere = makeCache(stranger, same);
  no(fixture.cache.copy(encoder, 0, elsewhere, 1));
  // What has not wrapped fits wherever there is room.
  fixture.truncate(0, 0);
  fixture.appendNow(4, 0);
  descriptor.capacity = 4, descriptor.pinned = 0, descriptor.whenFull = KVWrap::linear;
  AttentionCache linear = makeCache(device, descriptor);
  REQUIRE(fixture.cache.copy(encoder, 0, linear, 1));
}

// Memory of a new cache is undefined, and only positions that were written are read: full checking would report it.
TEST(AttentionCacheGrow, NothingReadsWhatWasNeverWritten) {
  const auto device = hostDevice({.workers = 1, .checking = HostOptions::Checking::full});
  for (const bool isQuantized : {false, true}) {
    AttentionFixture fixture(device, isQuantized ? quantizedDescriptor(device) : attendedDescriptor(6, 2));
    const auto bytes = bytesOf(fixture.cache.view().keys);
    EXPECT(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0xff}; }));
    fixture.appendNow(3, 1);
    const Tensor queries = fixture.someQueries(2);
    for (const float element : fixture.attendNow(queries, {}, 1)) EXPECT(std::isfinite(element));
    CommandEncoder growing(device);
    REQUIRE(fixture.cache.grown(growing, 9));
    REQUIRE(REQUIRE(growing.commit()).wait());
    const CacheFolder folder;
    REQUIRE(fixture.cache.save(folder.path()));
    // A view shows the memory, and an op over it reads what it is told to.
    const Tensor out = fixture.zeros({2, kQueryHeads, kAttendedDim});
    FlashDecode beyond{
        .queries = queries, .cache = fixture.cache.view(), .sequences = {{1, 4}}, .results = {.output = out}};
    if (const auto quantized = fixture.cache.quantizedView()) beyond.cache = *quantized;
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(beyond));
    EXPECT_ERROR(REQUIRE(encoder.commit()).wait(), {.code = ErrorCode::deviceFault, .got = "which is uninitialized"});
  }
}

TEST(QuantizedCopy, IsCommittedWithItsEncoder) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(6, 2));
  fixture.appendNow(4);
  // The tokens it reads must not change; later tokens may be appended meanwhile.
  CommandEncoder reading(device), stale(device);
  const AttentionCache copy = REQUIRE(fixture.cache.quantized(reading, {}));
  fixture.appendNow(1);
  REQUIRE(reading.commit());
  EXPECT_EQ(*copy.nextPosition(0), 4u);
  const AttentionCache refused = REQUIRE(fixture.cache.quantized(stale, {}));
  fixture.appendNow(4);
  RefusedCalls no;
  no(stale.commit());
  EXPECT_EQ(*refused.nextPosition(0), 0u);
  // Appends of the same encoder count, and the encoder can use the copy.
  CommandEncoder both(device);
  const Tensor one = tokens(device, 1, 2, 32);
  REQUIRE(fixture.cache.append(both, one, one, 1));
  AttentionCache later = REQUIRE(fixture.cache.quantized(both, {}));
  REQUIRE(later.append(both, one, one, 1));
  REQUIRE(both.commit());
  EXPECT_EQ(*later.nextPosition(1), 2u);
  EXPECT_EQ(*later.nextPosition(0), 9u);
}

TEST(QuantizedCopy, ARecordedStepCopiesAgain) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, attendedDescriptor(6, 2));
  const Tensor one = tokens(device, 1, 2, 32);
  std::optional<AttentionCache> copied;
  const RecordedStep step = REQUIRE(RecordedStep::record(
      device,
      [&](CommandEncoder& encoder) -> Result<void> {
        if (auto appended = cache.append(encoder, one, one, 0); !appended) return appended;
        auto copy = cache.quantized(encoder, {});
        if (!copy) return copy.error();
        copied = *copy;
        return {};
      },
      "a step"));
  for (uint64_t run = 1; run <= 9; ++run) {
    REQUIRE(step.run());
    EXPECT_EQ(*copied->nextPosition(0), run);
    EXPECT_EQ(*copied->count(0), *cache.count(0));
  }
}

TEST(QuantizedCopy, RefusesQuantizedAndUnsuitableCaches) {
  const auto device = FakeDevice::make();
  CommandEncoder encoder(device);
  RefusedCalls no;
  no(makeCache(device, turboDescriptor()).quantized(encoder, {}));
  no(makeCache(device, kDescriptor).quantized(encoder, {}));
  const auto another = FakeDevice::make();
  AttentionCache cache = makeCache(another, attendedDescriptor(6, 2));
  const Tensor one = tokens(another, 1, 2, 32);
  REQUIRE(CommandEncoder::run(another, [&](CommandEncoder& own) { return cache.append(own, one, one, 0); }));
  no(cache.quantized(encoder, {}));
}

}  // namespace mnk::test
