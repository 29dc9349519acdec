// The format of saved caches, and saves that fail or run beside other work. AttentionCacheProperty saves and loads
// caches of all storages.
#include <thread>

#include "CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "Host/HostTestSupport.hpp"

namespace mnk::test {

// Readers of an older version report the number when they refuse the file.
TEST(CacheFile, StoragesHaveTheirOwnVersions) {
  const CacheFolder folder;
  const auto device = FakeDevice::make();
  const auto expectVersion = [&](uint32_t version, const AttentionCacheDescriptor& descriptor) {
    const AttentionCache cache = makeCache(device, descriptor);
    REQUIRE(cache.save(folder.path()));
    const auto file = readFile(folder.path());
    EXPECT(file[11] == std::byte{MNK_VERSION_MAJOR} && file[10] == std::byte{MNK_VERSION_MINOR});
    EXPECT(file[9] == std::byte{0} && file[8] == static_cast<std::byte>(version));
    EXPECT_EQ(REQUIRE(AttentionCache::load(device, folder.path(), kPlenty)).text(), cache.text());
  };
  expectVersion(4, kDescriptor);
  expectVersion(4, turboDescriptor());
  expectVersion(5, mixed(turboDescriptor(), KVQuantizedPlanes::keys));
  expectVersion(5, mixed(turboDescriptor(), KVQuantizedPlanes::values));
  expectVersion(6, {.kvHeads = 1, .headDim = 64, .capacity = 4, .dtype = DType::f32, .latentDim = 512});
}

TEST(CacheFile, StoresOnlyUsedSlots) {
  const auto device = REQUIRE(Device::makeDefault());
  const CacheFolder folder;
  Seeded random;
  AttentionCache cache =
      makeCache(device, {.kvHeads = 2, .headDim = 8, .capacity = 1000, .sequences = 2, .dtype = DType::f32});
  appendAlike(device, random, {cache}, 3, 1);
  REQUIRE(cache.save(folder.path()));
  EXPECT_EQ(readFile(folder.path()).size(), 88u + 2 * 16 + 3 * cache.bytesPerToken() + 4);
  expectSame(REQUIRE(AttentionCache::load(device, folder.path(), kPlenty)), cache);
}

// Larger than the buffer for reading and writing.
TEST(CacheFile, LargeCachesRoundTrip) {
  const auto device = REQUIRE(Device::makeDefault());
  const CacheFolder folder;
  Seeded random;
  AttentionCache cache =
      makeCache(device, {.kvHeads = 2, .headDim = 127, .capacity = 700, .dtype = DType::f32, .isStorageOnly = true});
  appendAlike(device, random, {cache}, 690);
  REQUIRE(cache.save(folder.path()));
  expectSame(REQUIRE(AttentionCache::load(device, folder.path(), cache.byteCount())), cache);
}

// The format is fixed: this file stays readable, and saves write the same bytes except for the package's version.
TEST(CacheFile, VersionFourIsStable) {
  const auto device = REQUIRE(Device::makeDefault());
  const CacheFolder folder;
  AttentionCache cache = makeCache(device, {.kvHeads = 1,
                                            .headDim = 2,
                                            .valueHeadDim = 1,
                                            .capacity = 3,
                                            .dtype = DType::f32,
                                            .whenFull = KVWrap::ring,
                                            .pinned = 1,
                                            .isStorageOnly = true});
  CommandEncoder encoder(device);
  REQUIRE(cache.append(encoder, numbers(device, {1, 2}, REQUIRE(Shape::make({1, 2}))),
                       numbers(device, {-2}, REQUIRE(Shape::make({1, 1}))), 0));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  REQUIRE(cache.save(folder.path()));
  const uint32_t words[] = {0x434b4e4d, 0x45484341, 4, 1, 2, 1, 3, 1, 0, 1, 1, 0,          0,          0,          0,
                            0,          0,          0, 0, 0, 0, 0, 1, 0, 1, 0, 0x3f800000, 0x40000000, 0xc0000000, 0};
  std::vector<std::byte> expected(sizeof words);
  std::memcpy(expected.data(), words, sizeof words);
  forge(expected, 0, words[0]);
  writeFile(folder.path("by hand"), expected);
  expectSame(REQUIRE(AttentionCache::load(device, folder.path("by hand"), kPlenty)), cache);
  forge(expected, 8, MNK_VERSION_MAJOR << 24 | MNK_VERSION_MINOR << 16 | 4u);
  EXPECT(readFile(folder.path()) == expected);
}

TEST(CacheFile, FieldsOfQuantizedStorageAreStable) {
  const auto device = FakeDevice::make();
  const CacheFolder folder;
  AttentionCacheDescriptor descriptor = turboDescriptor();
  descriptor.quantized = KVQuantizedStorage{.codec = KVCodec::Name::mlx1,
                                            .keyBits = 8,
                                            .valueBits = 4,
                                            .scaleFactor = 0.5f,
                                            .options = {.candidates = 17,
                                                        .keyScale = KVScaleRule::unbiased,
                                                        .valueScale = KVScaleRule::leastSquares,
                                                        .nonFinite = KVNonFinite::propagate}};
  descriptor.headDim = descriptor.valueHeadDim = 512;
  REQUIRE(makeCache(device, descriptor).save(folder.path()));
  const std::vector<std::byte> file = readFile(folder.path());
  const uint32_t words[] = {3, 1, 0, 1, 1, 8, 4, 0x3f000000, 17, 0, 1, 1, 0, 0};  // offsets 32 to 88
  EXPECT(std::memcmp(&file[32], words, sizeof words) == 0);
  expectSame(REQUIRE(AttentionCache::load(device, folder.path(), UINT32_MAX)), makeCache(device, descriptor));

  descriptor = turboDescriptor();
  descriptor.quantized->keyMeans = constants(device, 1, 2, 32);
  descriptor.quantized->valueMeans = constants(device, 2, 2, 64);
  descriptor.quantized->keyChannelScales = constants(device, 4, 2, 32);
  REQUIRE(makeCache(device, descriptor).save(folder.path()));
  const std::vector<std::byte> withMeans = readFile(folder.path());
  EXPECT_EQ(withMeans.size(), 88u + 3 * 16 + 2 * (32 + 64 + 32) * 4 + 4);
  EXPECT(withMeans[48] == std::byte{0} && withMeans[80] == std::byte{7});
  float found[3];
  std::memcpy(&found[0], &withMeans[88 + 48], 4);
  std::memcpy(&found[1], &withMeans[88 + 48 + 256], 4);
  std::memcpy(&found[2], &withMeans[88 + 48 + 256 + 512], 4);
  EXPECT(found[0] == 1 && found[1] == 2 && found[2] == 4);
}

TEST(CacheFile, SavingReplacesTheFile) {
  const auto device = FakeDevice::make();
  const CacheFolder folder;
  AttentionCache cache = makeCache(device);
  writeFile(folder.path(), std::vector<std::byte>(100'000, std::byte{7}));
  REQUIRE(cache.save(folder.path()));
  appendNow(cache, device, 2);
  REQUIRE(cache.save(folder.path()));
  EXPECT_EQ(folder.fileCount(), 1u);
  EXPECT_EQ(*REQUIRE(AttentionCache::load(device, folder.path(), kPlenty)).nextPosition(0), 2u);
}

TEST(CacheFile, AFailedSaveKeepsTheOldFile) {
  const auto device = FakeDevice::make();
  const CacheFolder folder;
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 1);
  REQUIRE(cache.save(folder.path()));
  const auto before = readFile(folder.path());
  device->holdCompletions();
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 1, 2));
  REQUIRE(encoder.commit());
  EXPECT(device->finishNext(fakeFailure()));
  RefusedCalls no;
  no(cache.save(folder.path()));
  EXPECT(readFile(folder.path()) == before);
  EXPECT_EQ(folder.fileCount(), 1u);
  REQUIRE(cache.reset(2));
  REQUIRE(cache.save(folder.path()));
}

TEST(CacheFile, ReportsPathsThatCannotBeSaved) {
  const CacheFolder folder;
  const AttentionCache cache = makeCache(FakeDevice::make());
  std::filesystem::create_directory(folder.path("folder"));
  EXPECT_ERROR(cache.save(folder.path("none/cache")), {.op = "AttentionCache",
                                                       .what = "no file can be made beside the path",
                                                       .got = "none/cache\": No such file or directory",
                                                       .expected = "a file that can be read or written there",
                                                       .fix = "Pass a path in a folder that exists"});
  EXPECT_ERROR(cache.save(folder.path("folder")), {.op = "AttentionCache",
                                                   .what = "the path does not lead to a plain file",
                                                   .got = "folder\"",
                                                   .fix = "Pass the path of a file, not of a folder"});
  EXPECT_ERROR(cache.save(""), {.what = "the path names no file", .got = "an empty path"});
  EXPECT_ERROR(cache.save(folder.path() + std::string("\0x", 2)),
               {.what = "the path names no file", .got = "a zero in it"});
  EXPECT_EQ(folder.fileCount(), 1u);
  // The longest allowed name: the temporary file's name must not be longer.
  const std::string longest = folder.path(std::string(255, 'n'));
  REQUIRE(cache.save(longest));
  REQUIRE(AttentionCache::load(FakeDevice::make(), longest, kPlenty));
}

TEST(CacheFile, FailsIfMemoryIsMissing) {
  const CacheFolder folder;
  AttentionCacheDescriptor descriptor = turboDescriptor();
  const auto device = FakeDevice::make();
  descriptor.quantized->keyMeans = constants(device, 1, 2, 32);
  REQUIRE(makeCache(device, descriptor).save(folder.path()));
  RefusedCalls no;
  no(AttentionCache::load(nullptr, folder.path(), kPlenty));
  for (uint32_t buffer = 0; buffer < 6; ++buffer) {
    const auto failing = FakeDevice::make();
    failing->failAt(FakeDevice::Call::makeBuffer, buffer);
    no(AttentionCache::load(failing, folder.path(), kPlenty));
  }
}

TEST(CacheFile, SavingWaitsForSubmittedWork) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const CacheFolder folder;
    AttentionCache cache = makeCache(device);
    appendNow(cache, device, 1);
    const Tensor source = REQUIRE(floats(device, 16, 3).reshaped(REQUIRE(Shape::make({2, 2, 4}))));
    Gate gate(device);
    CommandEncoder encoder(device);
    REQUIRE(cache.append(encoder, source, source, 0));
    const Completion done = REQUIRE(encoder.commit());
    REQUIRE(waitingFor([&] { gate.open(); }, [&] { return cache.save(folder.path("at once")); }));
    REQUIRE(done.wait());
    REQUIRE(cache.save(folder.path("later")));
    EXPECT(readFile(folder.path("at once")) == readFile(folder.path("later")));
    expectSame(REQUIRE(AttentionCache::load(device, folder.path("at once"), cache.byteCount())), cache);
  });
}

TEST(CacheFile, RefusesToSaveAChangingCache) {
  const CacheFolder folder;
  RefusedCalls no;
  for (const bool standsWhereItStood : {false, true}) {
    const auto device = FakeDevice::make();
    AttentionCache cache = makeCache(device);
    appendNow(cache, device, 2);
    REQUIRE(cache.save(folder.path()));
    const std::vector<std::byte> before = readFile(folder.path());
    device->onRead = [&] {
      REQUIRE(cache.truncate(1, 0));
      if (standsWhereItStood) appendNow(cache, device, 1);
    };
    no(cache.save(folder.path()));
    EXPECT(readFile(folder.path()) == before);
    EXPECT_EQ(folder.fileCount(), 1u);
  }
}

TEST(CacheFileCapacity, KeepsOtherRules) {
  const auto device = FakeDevice::make();
  const CacheFolder folder;
  AttentionCache linear = makeCache(device, {.kvHeads = 2, .headDim = 8, .capacity = 4});
  REQUIRE(linear.save(folder.path()));
  const uint64_t bytes = linear.byteCount();
  EXPECT_EQ(REQUIRE(AttentionCache::load(device, folder.path(), 2 * bytes, 8)).byteCount(), 2 * bytes);
  // The limit is that of the cache that is made.
  const auto made = device->tried(FakeDevice::Call::makeBuffer);
  RefusedCalls no;
  no(AttentionCache::load(device, folder.path(), bytes, 8));
  no(AttentionCache::load(device, folder.path(), UINT64_MAX, 1u << 31));
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), made);
  REQUIRE(AttentionCache::load(device, folder.path(), bytes / 4, 1));
  AttentionCache ring = makeCache(device);
  appendNow(ring, device, 9);
  REQUIRE(ring.save(folder.path()));
  no(AttentionCache::load(device, folder.path(), kPlenty, 3));
  // A larger ring serves more rows and drafts.
  AttentionCacheDescriptor sliding{
      .kvHeads = 2, .headDim = 8, .pinned = 1, .slidingWindow = SlidingWindow{.window = 5, .maxRows = 3}};
  REQUIRE(makeCache(device, sliding).save(folder.path()));
  const AttentionCache same = REQUIRE(AttentionCache::load(device, folder.path(), kPlenty));
  EXPECT((same.descriptor().slidingWindow == SlidingWindow{.window = 5, .maxRows = 3, .maxDraft = 3}));
  EXPECT(same.descriptor().capacity == 8 && !same.descriptor().isStorageOnly);
  const AttentionCache larger = REQUIRE(AttentionCache::load(device, folder.path(), kPlenty, 10));
  EXPECT((larger.descriptor().slidingWindow == SlidingWindow{.window = 5, .maxRows = 5, .maxDraft = 5}));
  no(AttentionCache::load(device, folder.path(), kPlenty, 5));
}

// A file holds zeros for slots without a readable position, and never what memory held before.
TEST(CacheFileCapacity, FilesHoldNothingThatWasNotWritten) {
  const auto device = hostDevice({.workers = 1, .checking = HostOptions::Checking::guarded});
  const CacheFolder folder;
  AttentionCache cache =
      makeCache(device, {.kvHeads = 2, .headDim = 8, .capacity = 6, .sequences = 2, .dtype = DType::f32});
  const Tensor ones = constants(device, 1, 4, 16);
  const Tensor tokens = REQUIRE(ones.reshaped(REQUIRE(Shape::make({4, 2, 8}))));
  CommandEncoder encoder(device);
  REQUIRE(cache.append(encoder, tokens, tokens, 1));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  REQUIRE(cache.truncate(3, 1));
  REQUIRE(cache.save(folder.path()));
  std::vector<std::byte> file = readFile(folder.path());
  file.resize(file.size() - 4);  // the checksum
  EXPECT_EQ(std::ranges::count(file, std::byte{0xff}), 0);
  EXPECT_EQ(std::ranges::count(bytesOf(cache.view().keys), std::byte{0xff}), 2 * 8 * 4 * 8);  // of 8 slots, poison
}

// Each turn writes its number everywhere, so a file that mixes two turns is visible.
TEST(AttentionCacheThreads, SavesHoldOneStateDuringRewrites) {
  const CacheFolder folder;
  const auto device = hostDevice({.workers = 1});
  AttentionCache cache = makeCache(device);
  std::atomic<bool> isDone = false;
  const auto fillWith = [&](float turn) {
    REQUIRE(cache.truncate(0, 0));
    const Tensor source = tokens(device, 4);
    const std::vector<float> elements(4 * 2 * 4, turn);
    REQUIRE(source.write(std::as_bytes(std::span(elements))));
    CommandEncoder encoder(device);
    REQUIRE(cache.append(encoder, source, source, 0));
    REQUIRE(REQUIRE(encoder.commit()).wait());
  };
  fillWith(1);
  std::thread writer([&] {
    for (int turn = 2; !isDone; ++turn) {
      fillWith(static_cast<float>(turn % 1000));
      std::this_thread::sleep_for(std::chrono::milliseconds(turn % 3));  // otherwise hardly any save succeeds
    }
  });
  int saves = 0;
  for (int i = 0; saves < 20 && i < 2000; ++i) {
    const auto saved = cache.save(folder.path());
    if (!saved) {
      EXPECT(saved.error().retryable);
      continue;
    }
    ++saves;
    const AttentionCache loaded = REQUIRE(AttentionCache::load(device, folder.path(), cache.byteCount()));
    if (*loaded.nextPosition(0) == 0) continue;
    const std::vector<std::byte> keys = bytesOf(loaded.view().keys), values = bytesOf(*loaded.view().values);
    const uint64_t ofSequence = keys.size() / 3;
    for (uint64_t at = 0; at < ofSequence; ++at) {
      EXPECT(keys[at] == keys[at % 2] && values[at] == keys[at % 2]);
    }
  }
  isDone = true;
  writer.join();
  EXPECT(saves > 0);
}

}  // namespace mnk::test
