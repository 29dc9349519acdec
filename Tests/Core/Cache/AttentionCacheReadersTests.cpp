// A commit is refused if the cache has changed such that the encoded work would read other data.
#include <functional>
#include <thread>

#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Host/HostTestSupport.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

AttentionCacheDescriptor linear(uint32_t capacity) {
  AttentionCacheDescriptor descriptor = attendedDescriptor(capacity);
  descriptor.whenFull = KVWrap::linear;
  return descriptor;
}

// A call over a cache of three sequences with the same number of tokens, and what happens before it is committed.
struct Change {
  const char* name;
  AttentionCacheDescriptor descriptor;
  uint64_t tokens;
  std::function<Result<void>(AttentionFixture&, CommandEncoder&)> call;
  std::function<void(AttentionFixture&)> happens;
  bool isSeen = true;  // or the commit succeeds
};

// Attends with one row.
Result<void> readOne(AttentionFixture& fixture, CommandEncoder& encoder, uint32_t window = 0) {
  return fixture.cache.attend(encoder, fixture.someQueries(1),
                              {.output = fixture.zeros({1, kQueryHeads, kAttendedDim})}, {.window = window}, 0);
}
Result<void> readWindow(AttentionFixture& fixture, CommandEncoder& encoder) {
  return readOne(fixture, encoder, 2);
}
Result<void> readAll(AttentionFixture& fixture, CommandEncoder& encoder) {
  return readOne(fixture, encoder);
}
// The last sequence has no rows.
Result<void> readList(AttentionFixture& fixture, CommandEncoder& encoder) {
  const std::vector<uint32_t> sequences{0, 1, 2}, rows{1, 2, 0};
  return fixture.cache.attend(encoder, {.queries = fixture.someQueries(3),
                                        .results = {.output = fixture.zeros({3, kQueryHeads, kAttendedDim})},
                                        .sequences = sequences,
                                        .rowCounts = rows});
}
Result<void> appendOne(AttentionFixture& fixture, CommandEncoder& encoder) {
  fixture.append(encoder, 1);
  return {};
}
template <uint64_t position>
Result<void> dequantizeOne(AttentionFixture& fixture, CommandEncoder& encoder) {
  return fixture.cache.dequantize(encoder, fixture.zeros({1, kAttendedHeads, kAttendedDim}), std::nullopt, position, 0);
}

AttentionCacheDescriptor codes(uint32_t capacity, uint32_t pinned) {
  AttentionCacheDescriptor descriptor = attendedDescriptor(capacity, pinned);
  descriptor.quantized.emplace();
  return descriptor;
}

const Change kChanges[] = {
    {"a ring that overwrites", attendedDescriptor(4), 4, readAll, [](auto& f) { f.appendNow(2); }},
    {"a cut, and other tokens", linear(8), 4, readAll, [](auto& f) { f.truncate(3), f.appendNow(1); }},
    {"a cut to 0, and other tokens", linear(8), 4, readAll, [](auto& f) { f.truncate(0), f.appendNow(4); }},
    {"a reset", linear(8), 4, readAll, [](auto& f) { f.cache.reset(); }},
    {"changes of what is not read", attendedDescriptor(8), 4, readAll,
     [](auto& f) { f.appendNow(3), f.truncate(5), f.appendNow(1, 1), f.truncate(0, 1); }, false},
    {"a ring that overwrites what is before the window", attendedDescriptor(4), 4, readWindow,
     [](auto& f) { f.appendNow(2); }, false},
    {"a ring that overwrites what is in the window", attendedDescriptor(4), 4, readWindow,
     [](auto& f) { f.appendNow(3); }},
    {"a cut of the first listed sequence", linear(8), 3, readList, [](auto& f) { f.truncate(2, 0); }},
    {"a cut of the second listed sequence", linear(8), 3, readList, [](auto& f) { f.truncate(2, 1); }},
    {"a cut of a listed sequence without rows", linear(8), 3, readList, [](auto& f) { f.truncate(2, 2); }, false},
    {"a ring that overwrites what is dequantized", codes(4, 1), 4, dequantizeOne<2>, [](auto& f) { f.appendNow(3); }},
    {"a ring that keeps what is dequantized", codes(4, 1), 4, dequantizeOne<0>, [](auto& f) { f.appendNow(3); }, false},
    {"an append after replaced tokens", attendedDescriptor(4), 3, appendOne,
     [](auto& f) { f.truncate(2), f.appendNow(1); }},
    {"an append after one that was cut", attendedDescriptor(4), 1, appendOne,
     [](auto& f) { f.appendNow(2), f.truncate(1); }},
};

}  // namespace

TEST(AttentionCacheReaders, AreRefusedIfWhatTheyReadHasChanged) {
  RefusedCalls no;
  for (const Change& change : kChanges) {
    const Context context(change.name);
    const auto device = FakeDevice::make();
    AttentionFixture fixture(device, change.descriptor);
    for (const uint32_t sequence : {0, 1, 2}) fixture.appendNow(change.tokens, sequence);
    CommandEncoder encoder(device);
    REQUIRE(change.call(fixture, encoder));
    change.happens(fixture);
    const uint64_t next = *fixture.cache.nextPosition(0);
    const size_t submissions = device->committed().size();
    if (!change.isSeen) {
      REQUIRE(encoder.commit());
      continue;
    }
    no(encoder.commit());
    EXPECT_EQ(*fixture.cache.nextPosition(0), next);
    EXPECT_EQ(device->committed().size(), submissions);
  }
}

TEST(AttentionCacheReaders, SeeTokensAppendedBetweenTwoCalls) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, linear(8));
  fixture.appendNow(3);
  const Tensor queries = fixture.someQueries(1), before = fixture.zeros({1, kQueryHeads, kAttendedDim});
  const Tensor after = fixture.zeros({1, kQueryHeads, kAttendedDim});
  CommandEncoder encoder(device);
  REQUIRE(fixture.cache.attend(encoder, queries, {.output = before}, {}, 0));
  const std::vector<double> expected = fixture.expected(queries, 1, positions(0, 3));
  fixture.appendNow(1);
  REQUIRE(fixture.cache.attend(encoder, queries, {.output = after}, {}, 0));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  EXPECT(largestDifference(floatsOf(before), expected) < kF32Sums);
  EXPECT(largestDifference(floatsOf(after), fixture.expected(queries, 1, positions(0, 4))) < kF32Sums);
}

// A copy over a suspect sequence, then an append at a position that the failed append had reached: an encoder's own
// writes are not compared with the earlier contents.
TEST(AttentionCacheReaders, OfTheirEncodersWritesAreNotRefused) {
  const auto device = FakeDevice::make();
  device->holdCompletions();
  AttentionFixture fixture(device, attendedDescriptor(4));
  CommandEncoder failing(device);
  fixture.append(failing, 2, 1);
  REQUIRE(failing.commit());
  EXPECT(device->finishNext(fakeFailure()));
  CommandEncoder encoder(device);
  REQUIRE(fixture.cache.copy(encoder, 0, 1));
  fixture.append(encoder, 1, 1);
  REQUIRE(fixture.cache.attend(encoder, fixture.someQueries(1),
                               {.output = fixture.zeros({1, kQueryHeads, kAttendedDim})}, {}, 1));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*fixture.cache.nextPosition(1), 1u);
}

// The handler may retain the encoder.
TEST(AttentionCacheReaders, ARefusedCommitReleasesItsHandler) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  const auto encoder = std::make_shared<CommandEncoder>(device);
  REQUIRE(append(cache, *encoder, 1));
  appendNow(cache, device, 1);
  EXPECT(!encoder->commit([encoder](const Result<Summary>&) {}));
  EXPECT_EQ(encoder.use_count(), 1);
}

TEST(AttentionCacheReaders, OfFailedOutputsAreRefused) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, linear(8));
  fixture.appendNow(2);
  device->holdCompletions();
  CommandEncoder failing(device), reader(device);
  fixture.append(failing, 1);
  REQUIRE(failing.commit());
  REQUIRE(readAll(fixture, reader));
  EXPECT(device->finishNext(fakeFailure()));
  RefusedCalls no;
  no(reader.commit());
}

// One encoder appends to many caches, the last of which has already advanced; meanwhile another thread appends to the
// first.
TEST(AttentionCacheThreads, ARefusedCommitNeverAdvancesACache) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = kDescriptor;
  descriptor.sequences = 1;
  std::vector<AttentionCache> caches;
  for (int i = 0; i < 64; ++i) caches.push_back(makeCache(device, descriptor));
  const Tensor token = tokens(device, 1);
  std::atomic<bool> isDone = false;
  uint64_t appended = 0;
  std::thread other([&] {
    while (!isDone) {
      CommandEncoder encoder(device);
      if (!caches.front().append(encoder, token, token, 0)) continue;
      if (encoder.commit()) ++appended;
    }
  });
  for (int i = 0; i < 200; ++i) {
    CommandEncoder stale(device);
    for (AttentionCache& cache : caches) REQUIRE(cache.append(stale, token, token, 0));
    appendNow(caches.back(), device, 1);
    EXPECT(!stale.commit());
  }
  isDone = true;
  other.join();
  EXPECT_EQ(*caches.front().nextPosition(0), appended);
  EXPECT_EQ(*caches[1].nextPosition(0), 0u);
  EXPECT_EQ(*caches.back().nextPosition(0), 200u);
}

// Every element written in a turn is that turn's number, so a mixture of two turns is visible.
TEST(AttentionCacheThreads, ReadersSeeOneStateDuringRewrites) {
  const auto device = hostDevice({.workers = 1});
  AttentionFixture fixture(device, attendedDescriptor(6));
  const auto filled = [&](uint64_t count, float value) {
    return fixture.tensor(std::vector<float>(count * kAttendedHeads * kAttendedDim, value),
                          {count, kAttendedHeads, kAttendedDim});
  };
  std::atomic<bool> isDone = false;
  std::thread writer([&] {
    for (float turn = 1; !isDone; ++turn) {
      fixture.cache.reset();
      CommandEncoder encoder(device);
      const Tensor tokens = filled(3, turn);
      REQUIRE(fixture.cache.append(encoder, tokens, tokens, 0));
      REQUIRE(encoder.commit());
      CommandEncoder second(device);
      REQUIRE(fixture.cache.append(second, tokens, tokens, 0));
      REQUIRE(REQUIRE(second.commit()).wait());  // otherwise work would queue up before that of the readers
    }
  });
  const Tensor queries = fixture.someQueries(1), out = fixture.zeros({1, kQueryHeads, kAttendedDim});
  int right = 0;
  for (int tries = 0; right < 30 && tries < 20000; ++tries) {
    CommandEncoder encoder(device);
    if (!fixture.cache.attend(encoder, queries, {.output = out}, {}, 0)) continue;  // it was empty
    const auto committed = encoder.commit();
    if (!committed) {
      EXPECT(committed.error().retryable);
      continue;
    }
    REQUIRE(committed->wait());
    const std::vector<float> seen = floatsOf(out);
    const auto [least, most] = std::minmax_element(seen.begin(), seen.end());
    // A turn's number differs measurably from a mixture with the next.
    EXPECT(*most - *least <= 1e-4f * *most && std::abs(*most - std::round(*most)) <= 1e-4f * *most);
    ++right;
  }
  isDone = true;
  writer.join();
  EXPECT(right > 0);
}

// One thread lists a sequence many times while another appends to it; no token may overwrite another.
TEST(AttentionCacheThreads, RepeatedSequencesLoseNoTokens) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor = kDescriptor;
  descriptor.capacity = 1 << 20;
  AttentionCache cache = makeCache(device, descriptor);
  const std::vector<uint32_t> sequences(200, 0);
  const Tensor one = tokens(device, 1), many = tokens(device, sequences.size());
  std::atomic<bool> isDone = false;
  uint64_t appended = 0;
  std::thread other([&] {
    while (!isDone) {
      CommandEncoder encoder(device);
      if (cache.append(encoder, one, one, 0) && encoder.commit()) ++appended;
    }
  });
  uint64_t listed = 0;
  for (int i = 0; i < 100; ++i) {
    CommandEncoder encoder(device);
    REQUIRE(cache.append(encoder, {.keys = many, .values = many, .sequences = sequences}));
    if (encoder.commit()) listed += sequences.size();
  }
  isDone = true;
  other.join();
  EXPECT_EQ(*cache.nextPosition(0), appended + listed);
}

}  // namespace mnk::test
