// Files that are damaged, truncated, forged or of another kind: each is an error with four parts, and loading allocates
// no memory before it knows that the file is long enough.
#include <sys/stat.h>

#include <tuple>

#include "CacheFileFixture.hpp"
#include "Harness/FakeDevice.hpp"

namespace mnk::test {

namespace {

// A file with all optional parts: turbo, means, channel scales, and two sequences, one of which has wrapped.
std::vector<std::byte> goodFile(const CacheFolder& folder, bool isQuantized = true,
                                KVQuantizedPlanes planes = KVQuantizedPlanes::both) {
  const auto device = REQUIRE(Device::makeDefault());
  AttentionCacheDescriptor descriptor{
      .kvHeads = 1, .headDim = 32, .capacity = 3, .sequences = 2, .whenFull = KVWrap::ring, .pinned = 1};
  if (isQuantized) {
    descriptor.quantized = KVQuantizedStorage{.keyBits = 2, .valueBits = 2};
    descriptor.quantized->keyMeans = constants(device, 1, 1, 32);
    descriptor.quantized->keyChannelScales = constants(device, 1, 1, 32);
    descriptor.quantized->planes = planes;
  }
  Seeded random;
  AttentionCache cache = makeCache(device, descriptor);
  appendAlike(device, random, {cache}, 5, 0);
  appendAlike(device, random, {cache}, 2, 1);
  REQUIRE(cache.save(folder.path()));
  return readFile(folder.path());
}

Result<AttentionCache> loadBytes(const CacheFolder& folder, std::span<const std::byte> bytes,
                                 const std::shared_ptr<Device>& device = FakeDevice::make()) {
  writeFile(folder.path(), bytes);
  return AttentionCache::load(device, folder.path(), kPlenty);
}

void expectComplete(const Result<AttentionCache>& loaded) {
  if (loaded) return fail(__FILE__, __LINE__, "loaded");
  const Error& error = loaded.error();
  EXPECT(error.code == ErrorCode::invalidArgument && error.op == "AttentionCache");
  EXPECT(!error.what.empty() && !error.got.empty() && !error.expected.empty() && !error.fix.empty());
}

// Numbers that a file cannot have at an offset.
struct Forged {
  size_t offset;
  std::vector<uint64_t> numbers;
  bool isWide = false;  // the field has 64 bits
};

const std::vector<Forged> kForged = {
    {0, {0x434b4e4e}},
    {8, {5}},
    {12, {0, 1u << 31, (1u << 31) - 1}},
    {16, {33}},
    {20, {0}},
    {24, {0, 1, (1u << 31) - 1}},
    {28, {0, (1u << 31) - 1, 1000}},
    {32, {1, 4}},
    {36, {2, 0}},
    {40, {3}},
    {44, {2, 0}},
    {48, {4, 1, 3}},
    {52, {9}},
    {56, {0}},
    {60, {0x7fc00000}},
    {64, {6}},
    {68, {2}},
    {72, {UINT32_MAX}},
    {76, {2}},
    {80, {8, 4, 7}},
    {84, {3, UINT32_MAX}},  // a window that does not fit in the slots after the pinned one
    // Cursors of the first sequence, at position 5 of a ring of 3 with 1 pinned, which holds 3 and 4; later positions
    // than 2^62 would overflow.
    {88, {6, 2, 1, UINT64_MAX}, true},
    {96, {UINT64_MAX, (uint64_t{1} << 62) + 1}, true},
    // Of the second, at 2.
    {112, {3, 1}, true},
    {104, {1}, true},
    {120, {0x7f800000}},  // an infinite mean
    {120 + 128, {0}},     // a channel scale
};

// Fields of a file whose values are dense.
const std::vector<Forged> kForgedMixed = {
    {8, {4}}, {32, {3, 0}}, {44, {0, 1, 3, 4, UINT32_MAX}}, {52, {0, 9}}, {56, {2}}, {80, {7}}, {20, {48}}};

void expectForged(RefusedCalls& no, const std::vector<std::byte>& good, const std::vector<Forged>& all) {
  const CacheFolder folder;
  for (const auto& [offset, numbers, isWide] : all) {
    for (const uint64_t number : numbers) {
      const Context context(fmt::format("{} at {}", number, offset));
      std::vector<std::byte> file = good;
      if (isWide) {
        forge(file, offset, number);
      } else {
        forge(file, offset, static_cast<uint32_t>(number));
      }
      const auto device = FakeDevice::make();
      no(loadBytes(folder, file, device));
      // Fields before the means are checked before memory is allocated.
      if (offset < 120) EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
    }
  }
}

}  // namespace

TEST(CacheFileDamage, ForgedFieldsAreReportedByName) {
  const CacheFolder folder;
  RefusedCalls no;
  expectForged(no, goodFile(folder), kForged);
  expectForged(no, goodFile(folder, true, KVQuantizedPlanes::keys), kForgedMixed);
}

TEST(CacheFileDamage, OtherVersionsAreNamed) {
  const CacheFolder folder;
  for (const auto planes : {KVQuantizedPlanes::both, KVQuantizedPlanes::keys}) {
    std::vector<std::byte> file = goodFile(folder, true, planes);
    for (const auto& [version, what, got, fix] :
         {std::tuple(0x01020007u, "the file has an unknown version", "version 7, saved by MLXNativeKernels 1.2",
                     "Load it with the version that saved it"),
          {0x00010003u, "the file has an old version", "version 3, saved by MLXNativeKernels 0.1",
           "Load it with the version that saved it, or compute the cache again."}}) {
      forge(file, 8, version);
      EXPECT_ERROR(
          loadBytes(folder, file),
          {.what = what, .got = got, .expected = "version 4 to 6 in MLXNativeKernels " MNK_VERSION, .fix = fix});
    }
  }
}

TEST(CacheFileDamage, SizesThatOverflowAreTooLarge) {
  const CacheFolder folder;
  std::vector<std::byte> file = goodFile(folder);
  for (const size_t offset : {12, 24, 28}) forge(file, offset, (1u << 31) - 1);
  writeFile(folder.path(), file);
  const auto device = FakeDevice::make();
  RefusedCalls no;
  no(AttentionCache::load(device, folder.path(), UINT64_MAX));
  // Within the limit, but the file is too short for its sequences: none are allocated.
  file = goodFile(folder);
  forge(file, 28, (1u << 31) - 1);
  writeFile(folder.path(), file);
  no(AttentionCache::load(device, folder.path(), UINT64_MAX));
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
}

// Sequences whose positions take more memory than their tokens.
TEST(CacheFileDamage, TheLimitIncludesPositions) {
  const CacheFolder folder;
  const auto device = FakeDevice::make();
  REQUIRE(makeCache(device, {.kvHeads = 1, .headDim = 1, .capacity = 1, .sequences = 100000, .isStorageOnly = true})
              .save(folder.path()));
  RefusedCalls no;
  no(AttentionCache::load(device, folder.path(), 1599999));
  EXPECT(bool(AttentionCache::load(device, folder.path(), 1600000)));
}

TEST(CacheFileDamage, ALinearCacheHoldsAtMostItsSlots) {
  const CacheFolder folder;
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor linear = kDescriptor;
  linear.whenFull = KVWrap::linear;
  REQUIRE(makeCache(device, linear).save(folder.path()));
  std::vector<std::byte> file = readFile(folder.path());
  std::memset(&file[88], 5, 1);
  forge(file, 96, uint64_t{5});
  RefusedCalls no;
  no(loadBytes(folder, file));
}

TEST(CacheFileDamage, TheLimitIsExact) {
  const CacheFolder folder;
  const auto device = FakeDevice::make();
  const AttentionCache cache = makeCache(device, turboDescriptor());
  REQUIRE(cache.save(folder.path()));
  const auto other = FakeDevice::make();
  RefusedCalls no;
  no(AttentionCache::load(other, folder.path(), cache.byteCount() - 1));
  EXPECT_EQ(other->tried(FakeDevice::Call::makeBuffer), 0u);
  REQUIRE(AttentionCache::load(other, folder.path(), cache.byteCount()));
}

TEST(CacheFileDamage, EveryByteCounts) {
  for (const bool isQuantized : {false, true}) {
    const CacheFolder folder;
    const std::vector<std::byte> good = goodFile(folder, isQuantized);
    REQUIRE(loadBytes(folder, good));
    for (size_t offset = 0; offset < good.size(); ++offset) {
      for (const uint8_t flip : {0x01, 0x80, 0xff}) {
        const Context context(fmt::format("byte {} of {}, flipped by {}", offset, good.size(), flip));
        std::vector<std::byte> file = good;
        file[offset] ^= std::byte{flip};
        expectComplete(loadBytes(folder, file));
      }
    }
  }
}

TEST(CacheFileDamage, MissingAndExtraBytesAreErrors) {
  const CacheFolder folder;
  std::vector<std::byte> good = goodFile(folder);
  for (size_t length = 0; length < good.size(); ++length) {
    const Context context(fmt::format("{} of {} bytes", length, good.size()));
    const auto device = FakeDevice::make();
    const auto loaded = loadBytes(folder, std::span(good).first(length), device);
    EXPECT_ERROR(loaded, {.what = "the file ends too early",
                          .got = fmt::format("{} byte", length),
                          .fix = "Save the cache again, or copy the whole file."});
    expectComplete(loaded);
    EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
  }
  const size_t length = good.size();
  RefusedCalls no;
  for (const size_t more : {1, 4, 16, 100'000}) {
    good.resize(length + more);
    no(loadBytes(folder, good));
  }
}

TEST(CacheFileDamage, AWrongChecksumRejectsTheFile) {
  const CacheFolder folder;
  std::vector<std::byte> file = goodFile(folder);
  file.back() ^= std::byte{1};
  EXPECT_ERROR(loadBytes(folder, file), {.op = "AttentionCache",
                                         .what = "the file is damaged",
                                         .got = "a checksum that its contents do not have",
                                         .fix = "Save the cache again, or copy the file again."});
}

TEST(CacheFileDamage, PathsMustLeadToAFile) {
  const CacheFolder folder;
  const auto device = FakeDevice::make();
  std::filesystem::create_directory(folder.path("folder"));
  EXPECT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_ERROR(AttentionCache::load(device, folder.path("none"), kPlenty),
               {.op = "AttentionCache",
                .what = "there is no such file",
                .got = "none\": No such file or directory",
                .expected = "a file that can be read or written there",
                .fix = "Pass the path of a file that this process may read."});
  for (const char* name : {"folder", "pipe"}) {  // loading does not wait for a pipe
    EXPECT_ERROR(AttentionCache::load(device, folder.path(name), kPlenty),
                 {.op = "AttentionCache",
                  .what = "the path does not lead to a plain file",
                  .got = name,
                  .expected = "a plain file",
                  .fix = "Pass the path of a file, not of a folder, a pipe or a device."});
  }
  EXPECT_ERROR(AttentionCache::load(device, folder.path(std::string(300, 'n')), kPlenty),
               {.what = "the file cannot be opened"});
  EXPECT_ERROR(AttentionCache::load(device, "", kPlenty), {.what = "the path names no file", .got = "an empty path"});
  EXPECT_ERROR(AttentionCache::load(device, std::string("x\0y", 3), kPlenty), {.what = "the path names no file"});
}

// The check value from catalogs of CRCs.
TEST(Crc32, MatchesTheZipChecksum) {
  const std::string_view digits = "123456789";
  Crc32 whole;
  whole.add(std::as_bytes(std::span(digits)));
  EXPECT_EQ(whole.value(), 0xcbf43926u);
  Crc32 parts;
  for (const char& digit : digits) parts.add(std::as_bytes(std::span(&digit, 1)));
  EXPECT_EQ(parts.value(), whole.value());
  EXPECT_EQ(Crc32().value(), 0u);
}

}  // namespace mnk::test
