// Files that are loaded into caches of another capacity, and what a file holds of memory that nothing has written.
#include "CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Host/HostTestSupport.hpp"

namespace mnk::test {

namespace {

AttentionCacheDescriptor ringDescriptor(uint32_t pinned) {
  AttentionCacheDescriptor descriptor = turboDescriptor();
  descriptor.capacity = 5, descriptor.sequences = 2, descriptor.whenFull = KVWrap::ring, descriptor.pinned = pinned;
  return descriptor;
}

}  // namespace

// At every phase of a ring, into smaller and larger rings: the same as growing the saved cache.
TEST(CacheFileCapacity, RingsContinueInOtherCapacities) {
  const auto device = REQUIRE(Device::makeDefault());
  const CacheFolder folder;
  for (const uint32_t pinned : {0, 2}) {
    for (uint64_t appended = 0; appended < 12; ++appended) {
      for (uint64_t cut = 0; cut < 2; ++cut) {
        Seeded random(appended);
        AttentionCache cache = makeCache(device, ringDescriptor(pinned));
        appendAlike(device, random, {cache}, appended, 1);
        if (appended > cut) REQUIRE(cache.truncate(appended - cut, 1));
        REQUIRE(cache.save(folder.path()));
        for (uint32_t capacity = pinned + 1; capacity < 12; ++capacity) {
          const Context context(
              fmt::format("{} pinned, {} tokens, {} cut, capacity {}", pinned, appended, cut, capacity));
          auto loaded = AttentionCache::load(device, folder.path(), kPlenty, capacity);
          EXPECT_EQ(bool(loaded), *cache.count(1) <= capacity);
          if (!loaded) {
            EXPECT_ERROR(loaded, {.op = "AttentionCache",
                                  .what = "the capacity is too small for the file",
                                  .got = fmt::format("{}", capacity),
                                  .expected = fmt::format("at least {}, for ", *cache.count(1)),
                                  .fix = "Load with a larger capacity"});
            continue;
          }
          EXPECT_EQ(loaded->descriptor().capacity, capacity);
          EXPECT_EQ(*loaded->nextPosition(1), *cache.nextPosition(1));
          EXPECT(contents(*loaded) == contents(cache));
          if (capacity < 5) continue;
          CommandEncoder encoder(device);
          AttentionCache grown = REQUIRE(cache.grown(encoder, capacity));
          REQUIRE(REQUIRE(encoder.commit()).wait());
          appendAlike(device, random, {grown, *loaded}, 3, 1);
          expectSame(*loaded, grown);
        }
      }
    }
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
  EXPECT_ERROR(AttentionCache::load(device, folder.path(), bytes, 8), {.what = "larger than allowed"});
  EXPECT_ERROR(AttentionCache::load(device, folder.path(), UINT64_MAX, 1u << 31), {.what = "too large"});
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), made);
  REQUIRE(AttentionCache::load(device, folder.path(), bytes / 4, 1));
  // A larger ring serves more rows and drafts.
  AttentionCacheDescriptor sliding{
      .kvHeads = 2, .headDim = 8, .pinned = 1, .slidingWindow = SlidingWindow{.window = 5, .maxRows = 3}};
  REQUIRE(makeCache(device, sliding).save(folder.path()));
  const AttentionCache larger = REQUIRE(AttentionCache::load(device, folder.path(), kPlenty, 10));
  EXPECT((larger.descriptor().slidingWindow == SlidingWindow{.window = 5, .maxRows = 5, .maxDraft = 5}));
  EXPECT_ERROR(AttentionCache::load(device, folder.path(), kPlenty, 5),
               {.what = "the capacity is too small for the sliding window"});
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

}  // namespace mnk::test
