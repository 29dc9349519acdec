// A commit is refused if the cache has changed such that the encoded work would read other data.
#include <thread>

#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Host/HostTestSupport.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

constexpr const char* kWhat = "the cache was changed while this encoder recorded";
constexpr const char* kFix = "Encode this step again, with a new encoder.";

AttentionCacheDescriptor linear(uint32_t capacity) {
  AttentionCacheDescriptor descriptor = attendedDescriptor(capacity);
  descriptor.whenFull = KVWrap::linear;
  return descriptor;
}

// Records an attend over sequence 0, lets the cache change, and commits.
struct Reader {
  Reader(AttentionFixture& fixture, uint64_t rows, const AttentionOptions& options = {})
      : queries(fixture.someQueries(rows)),
        out(fixture.zeros({rows, kQueryHeads, kAttendedDim})),
        encoder(fixture.device) {
    REQUIRE(fixture.cache.attend(encoder, queries, {.output = out}, options, 0));
  }
  void expectRefused(const std::string& got, const std::string& expected) {
    const auto committed = encoder.commit();
    EXPECT_ERROR(committed, {.op = "AttentionCache", .what = kWhat, .got = got, .expected = expected, .fix = kFix});
    EXPECT(!committed && committed.error().retryable);
    EXPECT_EQ(floatsOf(out), std::vector<float>(floatsOf(out).size()));
  }
  void expect(const std::vector<double>& expected) {
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT(largestDifference(floatsOf(out), expected) < kF32Sums);
  }

  Tensor queries, out;
  CommandEncoder encoder;
};

}  // namespace

TEST(AttentionCacheReaders, AreRefusedAfterTheRingOverwrites) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionFixture fixture(device, attendedDescriptor(4));
    fixture.appendNow(4);
    Reader reader(fixture, 1);
    fixture.appendNow(2);
    reader.expectRefused("sequence 0, whose ring has overwritten positions before 2",
                         "positions from 0, which the encoder reads");
    Reader again(fixture, 1);
    again.expect(fixture.expected(again.queries, 1, positions(2, 6)));
  });
}

TEST(AttentionCacheReaders, AreRefusedAfterATruncation) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint64_t position : {0, 3}) {
      AttentionFixture fixture(device, linear(8));
      fixture.appendNow(4);
      Reader reader(fixture, 1);
      fixture.truncate(position, 0);
      fixture.appendNow(4 - position);  // returns to the same position with other tokens
      reader.expectRefused(fmt::format("sequence 0, cut at position {}", position),
                           "positions before 4 as they were when they were encoded");
    }
    AttentionFixture fixture(device, linear(8));
    fixture.appendNow(4);
    Reader reader(fixture, 1);
    fixture.cache.reset();
    reader.expectRefused("sequence 0, cut at position 0", "positions before 4 as they were when they were encoded");
  });
}

TEST(AttentionCacheReaders, IgnoreUnrelatedChanges) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionFixture fixture(device, attendedDescriptor(8));
    fixture.appendNow(4);
    Reader reader(fixture, 1);
    const std::vector<double> expected = fixture.expected(reader.queries, 1, positions(0, 4));
    fixture.appendNow(3);
    fixture.truncate(5, 0);
    fixture.appendNow(1, 1);
    REQUIRE(fixture.cache.reset(1));
    reader.expect(expected);
  });
}

TEST(AttentionCacheReaders, IgnoreChangesOutsideTheirWindow) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const bool isLost : {false, true}) {
      AttentionFixture fixture(device, attendedDescriptor(4));
      fixture.appendNow(4);
      Reader reader(fixture, 1, {.window = 2});  // reads positions 2 and 3
      const std::vector<double> expected = fixture.expected(reader.queries, 1, positions(0, 4), 0, 2);
      fixture.appendNow(isLost ? 3 : 2);
      if (isLost) {
        reader.expectRefused("sequence 0, whose ring has overwritten positions before 3",
                             "positions from 2, which the encoder reads");
      } else {
        reader.expect(expected);
      }
    }
  });
}

TEST(AttentionCacheReaders, AreCheckedForEachListedSequence) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint32_t cut : {0u, 1u, 2u}) {
      AttentionFixture fixture(device, linear(8));
      for (const uint32_t sequence : {0, 1, 2}) fixture.appendNow(3, sequence);
      const std::vector<uint32_t> sequences{0, 1, 2}, rows{1, 2, 0};
      const Tensor queries = fixture.someQueries(3), out = fixture.zeros({3, kQueryHeads, kAttendedDim});
      CommandEncoder encoder(device);
      REQUIRE(fixture.cache.attend(
          encoder, {.queries = queries, .results = {.output = out}, .sequences = sequences, .rowCounts = rows}));
      fixture.truncate(2, cut);
      if (cut == 2) {  // no row attends to it
        REQUIRE(REQUIRE(encoder.commit()).wait());
      } else {
        EXPECT_ERROR(encoder.commit(), {.what = kWhat, .got = fmt::format("sequence {}, cut at position 2", cut)});
      }
    }
  });
}

TEST(AttentionCacheReaders, SeeTokensAppendedBetweenTwoCalls) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionFixture fixture(device, linear(8));
    fixture.appendNow(3);
    Reader reader(fixture, 1);
    const std::vector<double> before = fixture.expected(reader.queries, 1, positions(0, 3));
    fixture.appendNow(1);
    const Tensor later = fixture.zeros({1, kQueryHeads, kAttendedDim});
    REQUIRE(fixture.cache.attend(reader.encoder, reader.queries, {.output = later}, {}, 0));
    const std::vector<double> after = fixture.expected(reader.queries, 1, positions(0, 4));
    reader.expect(before);
    EXPECT(largestDifference(floatsOf(later), after) < kF32Sums);
  });
}

TEST(AttentionCacheReaders, ThatDequantizeAreChecked) {
  const auto device = FakeDevice::make();
  for (const uint64_t position : {0, 2}) {
    AttentionCacheDescriptor descriptor = turboDescriptor();
    descriptor.pinned = 1;
    AttentionCache cache = makeCache(device, descriptor);
    const auto appendTokens = [&](uint64_t count) {
      CommandEncoder encoder(device);
      REQUIRE(cache.append(encoder, tokens(device, count, 2, 32), tokens(device, count, 2, 64), 0));
      REQUIRE(encoder.commit());
    };
    appendTokens(4);
    CommandEncoder encoder(device);
    REQUIRE(cache.dequantize(encoder, tokens(device, 1, 2, 32), std::nullopt, position, 0));
    appendTokens(3);  // position 0 is pinned
    if (position == 0) {
      REQUIRE(encoder.commit());
    } else {
      EXPECT_ERROR(encoder.commit(), {.what = kWhat,
                                      .got = "sequence 0, whose ring has overwritten positions before 4",
                                      .expected = "positions from 2, which the encoder reads"});
    }
  }
}

TEST(AttentionCacheReaders, AppendsAfterReplacedTokensAreRefused) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 3);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 1));
  REQUIRE(cache.truncate(2, 0));
  appendNow(cache, device, 1);
  EXPECT_ERROR(encoder.commit(), {.op = "AttentionCache",
                                  .what = kWhat,
                                  .got = "sequence 0, cut at position 2",
                                  .expected = "positions before 3 as they were when they were encoded",
                                  .fix = kFix});
  EXPECT_EQ(*cache.nextPosition(0), 3u);
}

TEST(AttentionCacheReaders, AppendsAfterATruncatedAppendAreRefused) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 1);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 1));
  appendNow(cache, device, 2);
  REQUIRE(cache.truncate(1, 0));
  EXPECT_ERROR(encoder.commit(), {.what = kWhat,
                                  .got = "sequence 0, appended to and cut, at position 1",
                                  .expected = "position 1, where the encoder began"});
}

// An encoder's own writes are not compared with the earlier contents.
TEST(AttentionCacheReaders, OfTheirEncodersWritesAreNotRefused) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionFixture fixture(device, attendedDescriptor(4));
    fixture.appendNow(2, 0);
    fixture.appendNow(9, 1);  // its ring has wrapped
    const Tensor queries = fixture.someQueries(1), copied = fixture.zeros({1, kQueryHeads, kAttendedDim});
    CommandEncoder encoder(device);
    REQUIRE(fixture.cache.copy(encoder, 0, 1));
    REQUIRE(fixture.cache.attend(encoder, queries, {.output = copied}, {}, 1));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT(largestDifference(floatsOf(copied), fixture.expected(queries, 1, positions(0, 2))) < kF32Sums);
  });
  // A copy over a suspect sequence, then an append at a position the failed append had reached.
  const auto device = FakeDevice::make();
  device->holdCompletions();
  AttentionFixture fixture(device, attendedDescriptor(4));
  CommandEncoder failing(device);
  fixture.append(failing, 2, 1);
  REQUIRE(failing.commit());
  EXPECT(device->finishNext(fakeFailure()));
  const Tensor queries = fixture.someQueries(1), out = fixture.zeros({1, kQueryHeads, kAttendedDim});
  CommandEncoder encoder(device);
  REQUIRE(fixture.cache.copy(encoder, 0, 1));
  fixture.append(encoder, 1, 1);
  REQUIRE(fixture.cache.attend(encoder, queries, {.output = out}, {}, 1));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*fixture.cache.nextPosition(1), 1u);
}

// The handler may retain the encoder.
TEST(AttentionCacheReaders, ARefusedCommitReleasesItsHandler) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCache cache = makeCache(device);
    const auto encoder = std::make_shared<CommandEncoder>(device);
    REQUIRE(append(cache, *encoder, 1));
    appendNow(cache, device, 1);
    EXPECT(!encoder->commit([encoder](const Result<Summary>&) {}));
    EXPECT_EQ(encoder.use_count(), 1);
  });
}

TEST(AttentionCacheReaders, OfFailedOutputsAreRefused) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, linear(8));
  fixture.appendNow(2);
  device->holdCompletions();
  CommandEncoder failing(device);
  fixture.append(failing, 1);
  REQUIRE(failing.commit());
  Reader reader(fixture, 1);
  EXPECT(device->finishNext(fakeFailure()));
  EXPECT_ERROR(reader.encoder.commit(),
               {.what = "the sequence is suspect because earlier work on it failed or was not committed"});
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
