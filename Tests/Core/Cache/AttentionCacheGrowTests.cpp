// Growth of a cache, and copies of sequences to other caches. AttentionCacheProperty grows caches at random.
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

AttentionCache grownNow(const AttentionCache& cache, const std::shared_ptr<Device>& device, uint32_t capacity,
                        uint64_t dispatches) {
  CommandEncoder encoder(device);
  const AttentionCache larger = REQUIRE(cache.grown(encoder, capacity));
  EXPECT_EQ(encoder.summary().total.dispatches, dispatches);
  for (uint32_t sequence = 0; sequence < 3; ++sequence) EXPECT_EQ(*larger.nextPosition(sequence), 0u);
  REQUIRE(REQUIRE(encoder.commit()).wait());
  return larger;
}

void expectSameHeld(const AttentionCache& got, const AttentionCache& expected) {
  for (uint32_t sequence = 0; sequence < expected.descriptor().sequences; ++sequence) {
    EXPECT_EQ(*got.nextPosition(sequence), *expected.nextPosition(sequence));
    EXPECT_EQ(*got.count(sequence), *expected.count(sequence));
  }
  EXPECT(contents(got) == contents(expected));
}

}  // namespace

TEST(AttentionCacheGrow, KeepsWhatACacheHolds) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const bool isQuantized : {false, true}) {
      AttentionFixture fixture(device, isQuantized ? quantizedDescriptor(device) : attendedDescriptor(6, 2));
      const uint64_t each = isQuantized ? 2 : 1;  // keys and values, and their scales
      for (const uint32_t sequence : {0, 1, 2}) fixture.appendNow(5, sequence);
      expectSameHeld(grownNow(fixture.cache, device, 9, each), fixture.cache);
      // Two have wrapped, and one of these was rolled back. Pinned positions and the others take a dispatch each.
      fixture.appendNow(6, 0);
      fixture.appendNow(6, 1);
      fixture.truncate(10, 1);
      const AttentionCache larger = grownNow(fixture.cache, device, 11, 5 * each);
      expectSameHeld(larger, fixture.cache);
      EXPECT_EQ(larger.descriptor().capacity, 11u);
      // Overwritten positions stay lost, and later ones are kept until the larger ring is full.
      const auto held = [&](uint64_t tokens) {
        fixture.appendNow(tokens, 0);
        return *fixture.cache.count(0);
      };
      EXPECT_EQ(*fixture.cache.count(0), 6u);
      fixture.cache = larger;
      EXPECT_EQ(held(5), 11u);
      EXPECT_EQ(held(1), 11u);
      const Tensor queries = fixture.someQueries(1);
      const std::vector<double> expected = fixture.expected(queries, 1, positions(0, 2) + positions(8, 17), 0);
      EXPECT(largestDifference(fixture.attendNow(queries, {}, 0), expected) < (isQuantized ? 0.5 : kF32Sums));
    }
  });
}

TEST(AttentionCacheGrow, ALinearCacheTakesMoreTokens) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCacheDescriptor descriptor = attendedDescriptor(4);
    descriptor.whenFull = KVWrap::linear;
    AttentionFixture fixture(device, descriptor);
    fixture.appendNow(4, 0);
    CommandEncoder full(device);
    const Tensor token = fixture.zeros({1, kAttendedHeads, kAttendedDim});
    EXPECT_ERROR(fixture.cache.append(full, token, token, 0), {.fix = "Grow the cache"});
    // In one step: the grown cache is appended to before it is committed.
    CommandEncoder encoder(device);
    fixture.cache = REQUIRE(fixture.cache.grown(encoder, 6));
    fixture.append(encoder, 2, 0);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT_EQ(*fixture.cache.nextPosition(0), 6u);
    const Tensor queries = fixture.someQueries(1);
    EXPECT(largestDifference(fixture.attendNow(queries, {}, 0), fixture.expected(queries, 1, positions(0, 6), 0)) <
           kF32Sums);
  });
}

// A prompt after the growth of a full ring fills the new slots at once, and not token by token.
TEST(AttentionCacheGrow, NewSlotsTakeSeveralTokens) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(4));
  fixture.appendNow(9, 0);
  fixture.cache = grownNow(fixture.cache, device, 12, 1);
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
  EXPECT_ERROR(fixture.cache.grown(encoder, 5), {.op = "AttentionCache.grown",
                                                 .what = "a cache cannot shrink",
                                                 .got = "a capacity of 5",
                                                 .expected = "at least 6, as now",
                                                 .fix = "Pass a larger capacity"});
  EXPECT_ERROR(fixture.cache.grown(encoder, 1u << 31), {.op = "AttentionCache.grown", .what = "too large"});
  device->failAt(FakeDevice::Call::makeBuffer);
  EXPECT_ERROR(fixture.cache.grown(encoder, 7), {.code = ErrorCode::deviceFault, .op = "AttentionCache.grown"});
  EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  // What is committed after another encoder has changed the source is refused, and the larger cache stays empty.
  const AttentionCache larger = REQUIRE(fixture.cache.grown(encoder, 7));
  REQUIRE(fixture.cache.reset(0));
  EXPECT_ERROR(encoder.commit(), {.what = "the cache was changed while this encoder recorded"});
  EXPECT_EQ(*larger.nextPosition(0), 0u);
  // A failure leaves the larger cache suspect, and the source as it was.
  device->holdCompletions();
  CommandEncoder failing(device);
  const AttentionCache failed = REQUIRE(fixture.cache.grown(failing, 7));
  const auto done = REQUIRE(failing.commit());
  device->finishNext(fakeFailure());
  EXPECT(!done.wait());
  EXPECT(failed.isSuspect(0) && !fixture.cache.isSuspect(0));
  CommandEncoder again(device);
  EXPECT_ERROR(failed.grown(again, 8), {.op = "AttentionCache.grown", .what = "the sequence is suspect"});
}

// Every run would fill the larger cache from the old one, without the tokens that were appended to it since.
TEST(AttentionCacheGrow, ARecordingCannotGrow) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(6));
  EXPECT_ERROR(RecordedStep::record(device,
                                    [&](CommandEncoder& encoder) -> Result<void> {
                                      auto larger = fixture.cache.grown(encoder, 8);
                                      if (!larger) return larger.error();
                                      return {};
                                    }),
               {.op = "AttentionCache.grown",
                .what = "a recording cannot grow a cache",
                .got = "a larger cache, which every run would fill again from the old one",
                .expected = "a step that runs once",
                .fix = "Grow the cache in a step that is not recorded, then record steps over the larger one."});
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
  for (AttentionCache& cache : made) {
    EXPECT(cache.isSuspect(0));
    const Tensor keys = fixture.zeros({1, kAttendedHeads, kAttendedDim});
    CommandEncoder encoder(device);
    EXPECT_ERROR(cache.append(encoder, keys, keys, 0),
                 {.what = "the sequence is suspect because earlier work on it failed or was not committed",
                  .got = "sequence 0, unknown from position 0"});
    cache.reset();
    REQUIRE(cache.append(encoder, keys, keys, 0));
  }
}

TEST(AttentionCacheGrow, ASequenceGoesToAnotherCache) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const bool isQuantized : {false, true}) {
      AttentionCacheDescriptor descriptor = isQuantized ? quantizedDescriptor(device) : attendedDescriptor(6, 2);
      AttentionFixture fixture(device, descriptor);
      fixture.appendNow(11, 1);
      fixture.truncate(10, 1);
      for (const uint32_t capacity : {5, 6, 8}) {  // 5 hold 2 and 3 positions, and all have another slot
        descriptor.capacity = capacity;
        descriptor.sequences = 1;
        AttentionCache other = makeCache(device, descriptor);
        appendAlike(device, fixture.random, {other}, 1);
        CommandEncoder encoder(device);
        REQUIRE(fixture.cache.copy(encoder, 1, other, 0));
        REQUIRE(REQUIRE(encoder.commit()).wait());
        EXPECT_EQ(*other.nextPosition(0), 10u);
        EXPECT(contents(other) == contents(fixture.cache));
        // What is appended to one does not reach the other.
        const std::vector<std::byte> before = contents(fixture.cache);
        appendAlike(device, fixture.random, {other}, 1);
        EXPECT(contents(fixture.cache) == before);
      }
    }
  });
}

TEST(AttentionCacheGrow, ASequenceGoesOnlyWhereItFits) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = quantizedDescriptor(device);
  AttentionFixture fixture(device, descriptor);
  fixture.appendNow(11, 0);
  CommandEncoder encoder(device);
  const auto refused = [&](const ExpectedError& expected, const auto& change) {
    AttentionCacheDescriptor changed = descriptor;
    change(changed);
    AttentionCache other = makeCache(device, changed);
    EXPECT_ERROR(fixture.cache.copy(encoder, 0, other, 1), (expected));
    EXPECT_EQ(encoder.summary().total.dispatches, 0u);
  };
  const std::string kOp = "AttentionCache.copy", kShape = "the caches differ in shape or storage";
  refused({.op = kOp, .what = kShape, .got = "1 head of 32", .expected = "2 heads of 32 as turbo of 5 bits and 3 bits"},
          [&](auto& d) { d.kvHeads = 1, d.quantized->keyMeans = constants(device, 0.5f, 1, 32); });
  refused({.op = kOp, .what = kShape, .got = "4 bits"}, [](auto& d) { d.quantized->keyBits = 4; });
  refused({.op = kOp, .what = kShape, .got = "f32"}, [](auto& d) { d.quantized.reset(); });
  refused({.op = kOp, .what = "the caches differ in means or channel scales"},
          [&](auto& d) { d.quantized->keyMeans = constants(device, 0.25f, 2, 32); });
  refused({.op = kOp, .what = "the caches differ in means or channel scales"},
          [](auto& d) { d.quantized->keyMeans.reset(); });
  const std::string kUnfit = "the other cache cannot hold the sequence";
  refused({.op = kOp,
           .what = kUnfit,
           .got = "positions 7 to 10 and the first 2 of sequence 0, for a ring of 5 slots, 2 of them pinned",
           .expected = "a ring of at least 6 slots, with 2 pinned",
           .fix = "Copy to such a ring."},
          [](auto& d) { d.capacity = 5; });
  refused({.op = kOp, .what = kUnfit}, [](auto& d) { d.capacity = 20, d.pinned = 1; });
  refused({.op = kOp, .what = kUnfit, .got = "a linear cache of 20"},
          [](auto& d) { d.capacity = 20, d.pinned = 0, d.whenFull = KVWrap::linear; });
  refused({.op = kOp, .got = "sequence 1", .expected = "less than 1"}, [](auto& d) { d.sequences = 1; });
  // Another device.
  const auto stranger = FakeDevice::make();
  AttentionCacheDescriptor same = descriptor;
  same.quantized->keyMeans = constants(stranger, 0.5f, 2, 32);
  AttentionCache elsewhere = makeCache(stranger, same);
  EXPECT_ERROR(fixture.cache.copy(encoder, 0, elsewhere, 1), {.op = kOp, .what = "another device"});
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
    grownNow(fixture.cache, device, 9, isQuantized ? 2 : 1);
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

}  // namespace mnk::test
