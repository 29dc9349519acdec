// What was encoded for a cache is refused at the commit if the cache has changed so that it would read something else.
#include <fmt/ranges.h>

#include <thread>

#include "Cases/AttentionScene.hpp"
#include "HostTestSupport.hpp"
#include "Support/EveryDevice.hpp"
#include "Support/FakeDevice.hpp"

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
  Reader(AttentionScene& scene, uint64_t rows, const AttentionOptions& options = {})
      : queries(scene.someQueries(rows)), out(scene.zeros({rows, kQueryHeads, kAttendedDim})), encoder(scene.device) {
    REQUIRE(scene.cache.attend(encoder, queries, {.into = out}, options));
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

TEST(AttentionCacheReaders, AreRefusedWhenTheRingHasOverwrittenWhatTheyRead) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionScene scene(device, attendedDescriptor(4));
    scene.appendNow(4);
    Reader reader(scene, 1);
    scene.appendNow(2);
    reader.expectRefused("sequence 0, whose ring has overwritten positions before 2",
                         "positions from 0, which the encoder reads");
    Reader again(scene, 1);
    again.expect(scene.expected(again.queries, 1, positions(2, 6)));
  });
}

TEST(AttentionCacheReaders, AreRefusedWhenWhatTheyReadWasCut) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint64_t position : {0, 3}) {
      AttentionScene scene(device, linear(8));
      scene.appendNow(4);
      Reader reader(scene, 1);
      scene.truncate(position);
      scene.appendNow(4 - position);  // stands where it stood, with other tokens
      reader.expectRefused(fmt::format("sequence 0, cut at position {}", position),
                           "positions before 4 as they were when they were encoded");
    }
    AttentionScene scene(device, linear(8));
    scene.appendNow(4);
    Reader reader(scene, 1);
    scene.cache.reset();
    reader.expectRefused("sequence 0, cut at position 0", "positions before 4 as they were when they were encoded");
  });
}

TEST(AttentionCacheReaders, SeeWhatTheyWereEncodedForWhenTheRestChanges) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionScene scene(device, attendedDescriptor(8));
    scene.appendNow(4);
    Reader reader(scene, 1);
    const std::vector<double> expected = scene.expected(reader.queries, 1, positions(0, 4));
    scene.appendNow(3);
    scene.truncate(5);
    scene.appendNow(1, 1);
    REQUIRE(scene.cache.reset(1));
    reader.expect(expected);
  });
}

TEST(AttentionCacheReaders, WithAWindowMayLoseWhatIsBehindIt) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const bool isLost : {false, true}) {
      AttentionScene scene(device, attendedDescriptor(4));
      scene.appendNow(4);
      Reader reader(scene, 1, {.window = 2});  // reads positions 2 and 3
      const std::vector<double> expected = scene.expected(reader.queries, 1, positions(0, 4), 0, 2);
      scene.appendNow(isLost ? 3 : 2);
      if (isLost) {
        reader.expectRefused("sequence 0, whose ring has overwritten positions before 3",
                             "positions from 2, which the encoder reads");
      } else {
        reader.expect(expected);
      }
    }
  });
}

TEST(AttentionCacheReaders, OfListsAreCheckedSequenceBySequence) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint32_t cut : {0u, 1u, 2u}) {
      AttentionScene scene(device, linear(8));
      for (const uint32_t sequence : {0, 1, 2}) scene.appendNow(3, sequence);
      const uint32_t sequences[] = {0, 1, 2}, rows[] = {1, 2, 0};
      const Tensor queries = scene.someQueries(3), out = scene.zeros({3, kQueryHeads, kAttendedDim});
      CommandEncoder encoder(device);
      REQUIRE(scene.cache.attend(encoder, queries, {.into = out}, {}, sequences, rows));
      scene.truncate(2, cut);
      if (cut == 2) {  // no row attends to it
        REQUIRE(REQUIRE(encoder.commit()).wait());
      } else {
        EXPECT_ERROR(encoder.commit(), {.what = kWhat, .got = fmt::format("sequence {}, cut at position 2", cut)});
      }
    }
  });
}

TEST(AttentionCacheReaders, SeeWhatOthersAppendBetweenTwoCalls) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionScene scene(device, linear(8));
    scene.appendNow(3);
    Reader reader(scene, 1);
    const std::vector<double> before = scene.expected(reader.queries, 1, positions(0, 3));
    scene.appendNow(1);
    const Tensor later = scene.zeros({1, kQueryHeads, kAttendedDim});
    REQUIRE(scene.cache.attend(reader.encoder, reader.queries, {.into = later}));
    const std::vector<double> after = scene.expected(reader.queries, 1, positions(0, 4));
    reader.expect(before);
    EXPECT(largestDifference(floatsOf(later), after) < kF32Sums);
  });
}

TEST(AttentionCacheReaders, ThatDequantizeAreCheckedLikewise) {
  const auto device = FakeDevice::make();
  for (const uint64_t position : {0, 2}) {
    AttentionCacheDescriptor descriptor = turboDescriptor();
    descriptor.pinned = 1;
    AttentionCache cache = makeCache(device, descriptor);
    const auto appendTokens = [&](uint64_t count) {
      CommandEncoder encoder(device);
      REQUIRE(cache.append(encoder, tokens(device, count, 2, 32), tokens(device, count, 2, 64)));
      REQUIRE(encoder.commit());
    };
    appendTokens(4);
    CommandEncoder encoder(device);
    REQUIRE(cache.dequantize(encoder, tokens(device, 1, 2, 32), std::nullopt, position));
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

TEST(AttentionCacheReaders, AppendsAfterOtherTokensThanWhenTheyWereEncodedAreRefused) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 3);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 1));
  REQUIRE(cache.truncate(2));
  appendNow(cache, device, 1);
  EXPECT_ERROR(encoder.commit(), {.op = "AttentionCache",
                                  .what = kWhat,
                                  .got = "sequence 0, cut at position 2",
                                  .expected = "positions before 3 as they were when they were encoded",
                                  .fix = kFix});
  EXPECT_EQ(cache.nextPosition(), 3u);
}

TEST(AttentionCacheReaders, AnAppendAfterAnotherThatWasTakenBackIsRefused) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 1);
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 1));
  appendNow(cache, device, 2);
  REQUIRE(cache.truncate(1));
  EXPECT_ERROR(encoder.commit(), {.what = kWhat,
                                  .got = "sequence 0, appended to and cut, at position 1",
                                  .expected = "position 1, where the encoder began"});
}

// What an encoder has written itself is not compared with what was there before.
TEST(AttentionCacheReaders, OfWhatTheirEncoderWritesAreNotRefused) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionScene scene(device, attendedDescriptor(4));
    scene.appendNow(2, 0);
    scene.appendNow(9, 1);  // its ring has wrapped
    const Tensor queries = scene.someQueries(1), copied = scene.zeros({1, kQueryHeads, kAttendedDim});
    CommandEncoder encoder(device);
    REQUIRE(scene.cache.copy(encoder, 0, 1));
    REQUIRE(scene.cache.attend(encoder, queries, {.into = copied}, {}, 1));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT(largestDifference(floatsOf(copied), scene.expected(queries, 1, positions(0, 2))) < kF32Sums);
  });
  // A copy over a suspect sequence, and an append where another encoder has appended and been cut back.
  const auto device = FakeDevice::make();
  device->holdCompletions();
  AttentionScene scene(device, attendedDescriptor(4));
  CommandEncoder failing(device);
  scene.append(failing, 2, 1);
  REQUIRE(failing.commit());
  EXPECT(device->finishNext(fakeFailure()));
  const Tensor queries = scene.someQueries(1), out = scene.zeros({1, kQueryHeads, kAttendedDim});
  CommandEncoder encoder(device);
  REQUIRE(scene.cache.copy(encoder, 0, 1));
  scene.append(encoder, 1, 1);
  REQUIRE(scene.cache.attend(encoder, queries, {.into = out}, {}, 1));
  REQUIRE(encoder.commit());
  EXPECT_EQ(scene.cache.nextPosition(1), 1u);
}

// The handler may hold the encoder.
TEST(AttentionCacheReaders, ARefusedCommitForgetsItsHandler) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCache cache = makeCache(device);
    const auto encoder = std::make_shared<CommandEncoder>(device);
    REQUIRE(append(cache, *encoder, 1));
    appendNow(cache, device, 1);
    EXPECT(!encoder->commit([encoder](const Result<Summary>&) {}));
    EXPECT_EQ(encoder.use_count(), 1);
  });
}

TEST(AttentionCacheReaders, OfWhatFailedWorkWasToWriteAreRefused) {
  const auto device = FakeDevice::make();
  AttentionScene scene(device, linear(8));
  scene.appendNow(2);
  device->holdCompletions();
  CommandEncoder failing(device);
  scene.append(failing, 1);
  REQUIRE(failing.commit());
  Reader reader(scene, 1);
  EXPECT(device->finishNext(fakeFailure()));
  EXPECT_ERROR(reader.encoder.commit(), {.what = "the sequence is suspect because earlier work on it failed"});
}

// Threads

// One encoder appends to many caches, the last of which has moved on; another thread appends to the first meanwhile.
TEST(AttentionCacheThreads, ARefusedCommitAdvancesNoCacheForAMoment) {
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
      if (!caches.front().append(encoder, token, token)) continue;
      if (encoder.commit()) ++appended;
    }
  });
  for (int i = 0; i < 200; ++i) {
    CommandEncoder stale(device);
    for (AttentionCache& cache : caches) REQUIRE(cache.append(stale, token, token));
    appendNow(caches.back(), device, 1);
    EXPECT(!stale.commit());
  }
  isDone = true;
  other.join();
  EXPECT_EQ(caches.front().nextPosition(), appended);
  EXPECT_EQ(caches[1].nextPosition(), 0u);
  EXPECT_EQ(caches.back().nextPosition(), 200u);
}

// Every token of a turn is that turn's number, so a mixture of two turns would show.
TEST(AttentionCacheThreads, ReadersSeeOneStateWhileAnotherThreadRewritesTheCache) {
  const auto device = hostDevice({.workers = 1});
  AttentionScene scene(device, attendedDescriptor(6));
  const auto filled = [&](uint64_t count, float value) {
    return scene.tensor(std::vector<float>(count * kAttendedHeads * kAttendedDim, value),
                        {count, kAttendedHeads, kAttendedDim});
  };
  std::atomic<bool> isDone = false;
  std::thread writer([&] {
    for (float turn = 1; !isDone; ++turn) {
      scene.cache.reset();
      CommandEncoder encoder(device);
      const Tensor tokens = filled(3, turn);
      REQUIRE(scene.cache.append(encoder, tokens, tokens));
      REQUIRE(encoder.commit());
      CommandEncoder second(device);
      REQUIRE(scene.cache.append(second, tokens, tokens));
      REQUIRE(second.commit());
    }
  });
  const Tensor queries = scene.someQueries(1), out = scene.zeros({1, kQueryHeads, kAttendedDim});
  int right = 0;
  for (int tries = 0; right < 30 && tries < 20000; ++tries) {
    CommandEncoder encoder(device);
    REQUIRE(scene.cache.attend(encoder, queries, {.into = out}));
    const auto committed = encoder.commit();
    if (!committed) {
      EXPECT(committed.error().retryable);
      continue;
    }
    REQUIRE(committed->wait());
    const std::vector<float> seen = floatsOf(out);
    const auto [least, most] = std::minmax_element(seen.begin(), seen.end());
    // Zeros are of an empty cache. One turn's number is far enough from a mixture with the next.
    EXPECT(*most - *least <= 1e-4f * *most && std::abs(*most - std::round(*most)) <= 1e-4f * *most);
    if (*most != 0) ++right;
  }
  isDone = true;
  writer.join();
  EXPECT(right > 0);
}

// One thread lists a sequence many times, another appends to it; no token may take the place of another.
TEST(AttentionCacheThreads, ListsThatRepeatASequenceLoseNoTokens) {
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
      if (cache.append(encoder, one, one) && encoder.commit()) ++appended;
    }
  });
  uint64_t listed = 0;
  for (int i = 0; i < 100; ++i) {
    CommandEncoder encoder(device);
    REQUIRE(cache.append(encoder, many, many, sequences));
    if (encoder.commit()) listed += sequences.size();
  }
  isDone = true;
  other.join();
  EXPECT_EQ(cache.nextPosition(), appended + listed);
}

}  // namespace mnk::test
