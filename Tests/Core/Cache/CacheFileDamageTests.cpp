// Files that are damaged, truncated, forged or of another kind: each is an error with four parts, and loading allocates
// no memory before it knows that the file is long enough.
#include <sys/stat.h>

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

constexpr std::string_view kCannotBe = "the file describes a cache that cannot be";
constexpr std::string_view kSequenceCannotBe = "the file describes a sequence that cannot be";

struct Forged {
  size_t offset;
  uint64_t number;
  ExpectedError expected;
  bool isWide = false;  // the field has 64 bits
};

const Forged kForged[] = {
    {0,
     0x434b4e4e,
     {.what = "the file is not one of a cache",
      .got = "another beginning",
      .expected = "\"MNKCACHE\"",
      .fix = "Pass a file that AttentionCache saved."}},
    {8,
     0x01020007,
     {.what = "the file has an unknown version",
      .got = "version 7, saved by MLXNativeKernels 1.2",
      .expected = "version 4 to 6 in MLXNativeKernels " MNK_VERSION,
      .fix = "Load it with the version that saved it"}},
    {8,
     0x00010003,
     {.what = "the file has an old version",
      .got = "version 3, saved by MLXNativeKernels 0.1",
      .expected = "version 4 to 6 in MLXNativeKernels " MNK_VERSION,
      .fix = "Load it with the version that saved it, or compute the cache again."}},
    {8, 5, {.what = kCannotBe, .got = "storage 1 in version 5", .expected = "2 or 3"}},
    {12,
     0,
     {.what = kCannotBe,
      .got = "the cache would hold nothing: kvHeads 0",
      .expected = "at least 1 of each",
      .fix = "Save the cache again; this file is damaged or was not written by this library."}},
    {12, 1u << 31, {.what = kCannotBe, .got = "an extent is too large for the kernels: 2147483648"}},
    {12,
     (1u << 31) - 1,
     {.what = "the cache of the file is larger than allowed",
      .expected = "at most 1048576 bytes",
      .fix = "Allow more, where the file is to be trusted and there is memory."}},
    {16,
     33,
     {.what = kCannotBe, .got = "the codec does not have these bits or this head dim: turbo of 2 bits, head dim 33"}},
    {20, 0, {.what = kCannotBe, .got = "valueHeadDim 0", .expected = "at least 1"}},
    {24, 0, {.what = kCannotBe, .got = "capacity 0"}},
    {24, 1, {.what = kCannotBe, .got = "the cache pins too many positions"}},
    {24, (1u << 31) - 1, {.what = "the cache of the file is larger than allowed"}},
    {28, 0, {.what = kCannotBe, .got = "sequences 0"}},
    {28, (1u << 31) - 1, {.what = "the cache of the file is larger than allowed"}},
    {28, 1000, {.what = "the file ends too early"}},
    {32, 1, {.what = kCannotBe, .got = "dtype f16 in quantized storage", .expected = "u8 in quantized storage"}},
    {32, 4, {.what = kCannotBe, .got = "dtype 4", .expected = "a number from 0 to 3"}},
    {36, 2, {.what = kCannotBe, .got = "wrap 2", .expected = "a number from 0 to 1"}},
    {36, 0, {.what = kCannotBe, .got = "the cache pins too many positions: 1 pinned in a linear cache of 3"}},
    {40, 3, {.what = kCannotBe, .got = "the cache pins too many positions: 3 pinned in a ring of 3"}},
    {44, 2, {.what = kCannotBe, .got = "storage 2", .expected = "a number from 0 to 1"}},
    {44, 0, {.what = kCannotBe, .got = "field of quantized storage 2", .expected = "0"}},
    {48, 4, {.what = kCannotBe, .got = "codec 4", .expected = "a number from 0 to 3"}},
    {48, 1, {.what = kCannotBe, .got = "set of means 5", .expected = "0"}},
    {48, 3, {.what = kCannotBe, .got = "set of means 5", .expected = "0"}},
    {52, 9, {.what = kCannotBe, .got = "turbo of 9 bits"}},
    {56, 0, {.what = kCannotBe, .got = "turbo of 0 bits"}},
    {60, 0x7fc00000, {.what = kCannotBe, .got = "the scale factor cannot be used: nan"}},
    {64, 6, {.what = kCannotBe, .got = "the number of candidates is not supported: 6"}},
    {68, 2, {.what = kCannotBe, .got = "scale of keys 2"}},
    {72, UINT32_MAX, {.what = kCannotBe, .got = "scale of values 4294967295"}},
    {76, 2, {.what = kCannotBe, .got = "rule for vectors that are not finite 2"}},
    {80, 8, {.what = kCannotBe, .got = "set of means 8", .expected = "a number from 0 to 7"}},
    {80, 4, {.what = "the file is too long"}},
    {80, 7, {.what = "the file ends too early"}},
    // A window that does not fit in the slots after the pinned one.
    {84, 3, {.what = kCannotBe, .got = "the capacity is too small for the sliding window: 3"}},
    {84, UINT32_MAX, {.what = kCannotBe, .got = "the capacity is too small for the sliding window: 3"}},
    // Cursors of the first sequence, at position 5 of a ring of 3 with 1 pinned, and of the second, at 2.
    {88,
     6,
     {.what = kSequenceCannotBe,
      .got = "next position 6 after 5",
      .expected = "what a ring of 3 with 1 pinned can hold"},
     true},
    {88, 2, {.what = kSequenceCannotBe, .got = "next position 2 after 5"}, true},  // 3 is the oldest
    {88, 1, {.what = kSequenceCannotBe, .got = "next position 1 after 5"}, true},
    {88, UINT64_MAX, {.what = kSequenceCannotBe}, true},
    {96, UINT64_MAX, {.what = kSequenceCannotBe, .got = "next position 5 after 18446744073709551615"}, true},
    {96, (uint64_t{1} << 62) + 1, {.what = kSequenceCannotBe}, true},  // later positions would overflow
    {112, 3, {.what = "the file ends too early"}, true},
    {112, 1, {.what = kSequenceCannotBe, .got = "next position 2 after 1"}, true},
    {104, 1, {.what = kSequenceCannotBe, .got = "next position 1 after 2"}, true},  // truncated at a pinned position
    // An infinite mean and a channel scale of 0.
    {120, 0x7f800000, {.what = "means or channel scales hold a number that cannot be used", .got = "keyMeans"}},
    {120 + 128, 0, {.what = "means or channel scales hold a number that cannot be used", .got = "keyChannelScales"}},
};

// Fields of a file whose values are dense.
const Forged kForgedMixed[] = {
    {8, 4, {.what = kCannotBe, .got = "storage 2", .expected = "a number from 0 to 1"}},
    {8, 2, {.what = "the file has an old version", .got = "version 2", .expected = "version 4 to 6"}},
    {8, 7, {.what = "the file has an unknown version", .got = "version 7", .expected = "version 4 to 6"}},
    {32, 3, {.what = kCannotBe, .got = "dtype u8 in mixed storage", .expected = "a float in dense or mixed storage"}},
    {32, 0, {.what = "the file ends too early"}},
    {44, 0, {.what = kCannotBe, .got = "field of quantized storage 2", .expected = "0"}},
    {44, 1, {.what = kCannotBe, .got = "storage 1 in version 5", .expected = "2 or 3"}},
    {44, 3, {.what = kCannotBe, .got = "2 bits of a dense plane", .expected = "0"}},
    {44, 4, {.what = kCannotBe, .got = "storage 4", .expected = "a number from 0 to 3"}},
    {44, UINT32_MAX, {.what = kCannotBe, .got = "storage 4294967295"}},
    {52, 0, {.what = kCannotBe, .got = "turbo of 0 bits"}},
    {52, 9, {.what = kCannotBe, .got = "turbo of 9 bits"}},
    {56, 2, {.what = kCannotBe, .got = "2 bits of a dense plane", .expected = "0"}},
    {80, 7, {.what = kCannotBe, .got = "means or channel scales of a dense plane"}},
    {20,
     48,
     {.what = kCannotBe, .got = "the codec does not have these bits or this head dim: turbo of 2 bits, head dim 48"}},
};

void expectForged(const std::vector<std::byte>& good, std::span<const Forged> all) {
  const CacheFolder folder;
  for (const Forged& forged : all) {
    const Context context(fmt::format("{} at {}", forged.number, forged.offset));
    std::vector<std::byte> file = good;
    if (forged.isWide) {
      forge(file, forged.offset, forged.number);
    } else {
      forge(file, forged.offset, static_cast<uint32_t>(forged.number));
    }
    const auto device = FakeDevice::make();
    const auto loaded = loadBytes(folder, file, device);
    EXPECT_ERROR(loaded, (forged.expected));
    expectComplete(loaded);
    // Fields before the means are checked before memory is allocated.
    if (forged.offset < 120) EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
  }
}

}  // namespace

TEST(CacheFileDamage, ForgedFieldsAreReportedByName) {
  const CacheFolder folder;
  expectForged(goodFile(folder), kForged);
  expectForged(goodFile(folder, true, KVQuantizedPlanes::keys), kForgedMixed);
}

TEST(CacheFileDamage, SizesThatOverflowAreTooLarge) {
  const CacheFolder folder;
  std::vector<std::byte> file = goodFile(folder);
  for (const size_t offset : {12, 24, 28}) forge(file, offset, (1u << 31) - 1);
  writeFile(folder.path(), file);
  const auto device = FakeDevice::make();
  EXPECT_ERROR(
      AttentionCache::load(device, folder.path(), UINT64_MAX),
      {.what = "the cache of the file is larger than allowed", .got = "more bytes than 64-bit sizes can count"});
  // Within the limit, but the file is too short for its sequences: none are allocated.
  file = goodFile(folder);
  forge(file, 28, (1u << 31) - 1);
  writeFile(folder.path(), file);
  EXPECT_ERROR(AttentionCache::load(device, folder.path(), UINT64_MAX),
               {.what = "the file ends too early", .expected = "34359738444 bytes"});
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
}

// Sequences whose positions take more memory than their tokens.
TEST(CacheFileDamage, TheLimitIncludesPositions) {
  const CacheFolder folder;
  const auto device = FakeDevice::make();
  REQUIRE(makeCache(device, {.kvHeads = 1, .headDim = 1, .capacity = 1, .sequences = 100000, .isStorageOnly = true})
              .save(folder.path()));
  EXPECT_ERROR(AttentionCache::load(device, folder.path(), 1599999),
               {.what = "the cache of the file is larger than allowed",
                .got = "1600000 bytes",
                .expected = "at most 1599999 bytes"});
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
  EXPECT_ERROR(loadBytes(folder, file),
               {.what = kSequenceCannotBe, .got = "next position 5 after 5", .expected = "a linear cache of 4"});
}

TEST(CacheFileDamage, TheLimitIsExact) {
  const CacheFolder folder;
  const auto device = FakeDevice::make();
  const AttentionCache cache = makeCache(device, turboDescriptor());
  REQUIRE(cache.save(folder.path()));
  const auto other = FakeDevice::make();
  EXPECT_ERROR(AttentionCache::load(other, folder.path(), cache.byteCount() - 1),
               {.what = "the cache of the file is larger than allowed",
                .got = fmt::format("{} bytes", cache.byteCount()),
                .expected = fmt::format("at most {} bytes", cache.byteCount() - 1)});
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
  for (const size_t more : {1, 4, 16, 100'000}) {
    good.resize(length + more);
    EXPECT_ERROR(loadBytes(folder, good), {.what = "the file is too long",
                                           .got = fmt::format("{} bytes", length + more),
                                           .expected = fmt::format("{} bytes", length),
                                           .fix = "Save the cache again; something was added to this file."});
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
