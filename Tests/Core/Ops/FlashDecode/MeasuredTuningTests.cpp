// Choices that were measured: which one a workload gets, how they are kept, and what a file may not say.
#include <sys/stat.h>
#include <unistd.h>

#include "Cache/CacheFileFixture.hpp"
#include "Harness/EnvironmentVariable.hpp"
#include "Harness/TimedDevice.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"
#include "Prepare/TuningFile.hpp"

namespace mnk::test {

namespace {

const FlashDecodeWorkload kWorkload{
    .storage = "f16", .queries = DType::f16, .keyDim = 128, .valueDim = 128, .rows = 4, .heads = 8, .keys = 4096};
const FlashDecodeChoice kVector{.simdgroups = 8, .splits = 16};
const FlashDecodeChoice kPrefill{.usesPrefill = true, .rowsPerTile = 16, .tileKeys = 16, .simdgroups = 12, .splits = 5};
const FlashDecodeChoice kMatrix{
    .usesMatrices = true, .rowsPerTile = 8, .tileKeys = 16, .simdgroups = 4, .splits = 33, .mergesInKernel = true};

FlashDecodeWorkload withKeys(uint64_t keys) {
  FlashDecodeWorkload workload = kWorkload;
  workload.keys = keys;
  return workload;
}

MeasuredTuning someTuning() {
  MeasuredTuning tuning;
  tuning.set(withKeys(1024), kVector);
  tuning.set(withKeys(4096), kMatrix);
  FlashDecodeWorkload quantized = kWorkload;
  quantized.storage = "turbo4:3";
  tuning.set(quantized, kVector);
  FlashDecodeWorkload latent = kWorkload;
  latent.keyDim = 64;
  latent.valueDim = 512;
  tuning.set(latent, kPrefill);
  return tuning;
}

std::string textOf(const std::string& path) {
  const auto bytes = readFile(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void writeText(const std::string& path, std::string_view text) {
  writeFile(path, std::as_bytes(std::span(text)));
}

// With a checksum that is right, so that the text itself is what is refused.
std::string sealed(std::string text) {
  Crc32 sum;
  sum.add(std::as_bytes(std::span(text)));
  return text + fmt::format("crc32 {:08x}\n", sum.value());
}

}  // namespace

TEST(MeasuredTuning, TheNearestNumberOfKeysDecides) {
  const MeasuredTuning tuning = someTuning();
  const std::pair<uint64_t, std::optional<FlashDecodeChoice>> cases[] = {
      {0, {}},         {511, {}},       {512, kVector},  {1024, kVector}, {2000, kVector},
      {2048, kVector}, {2049, kMatrix}, {4096, kMatrix}, {8192, kMatrix}, {8193, {}}};
  for (const auto& [keys, expected] : cases) {
    const Context context(fmt::format("{} keys", keys));
    EXPECT(tuning.find(withKeys(keys)) == expected);
  }
}

TEST(MeasuredTuning, KeepsChoicesOfKernelsThatTheStorageAllows) {
  const auto isKept = [](std::string_view storage, uint64_t headDim, const FlashDecodeChoice& choice) {
    FlashDecodeWorkload workload = kWorkload;
    workload.storage = storage;
    workload.keyDim = workload.valueDim = headDim;
    MeasuredTuning tuning;
    tuning.set(workload, choice);
    return MeasuredTuning::parse(tuning.lines()) == std::optional(tuning);
  };
  const FlashDecodeChoice ofHalves{.usesPrefill = true, .rowsPerTile = 8, .tileKeys = 32, .simdgroups = 4, .splits = 1};
  const FlashDecodeChoice ofFloats{.usesPrefill = true, .rowsPerTile = 8, .tileKeys = 8, .simdgroups = 4, .splits = 1};
  for (const std::string_view storage : {"f16", "turbo4:4", "f16:turbo4", "turbo4:f16"}) {
    EXPECT(isKept(storage, 128, ofHalves) && !isKept(storage, 128, ofFloats));
  }
  for (const std::string_view storage : {"bf16", "f32", "bf16:turbo4", "turbo4:bf16", "turbo4:f32"}) {
    EXPECT(isKept(storage, 128, ofFloats) && !isKept(storage, 128, ofHalves));
  }
  EXPECT(isKept("turbo4:4", 96, kMatrix) && !isKept("f16", 96, kMatrix) && !isKept("turbo4:4", 512, kMatrix));
}

TEST(MeasuredTuning, AnotherWorkloadGetsNoChoice) {
  const MeasuredTuning tuning = someTuning();
  EXPECT(tuning.find(kWorkload).has_value());
  using Change = void (*)(FlashDecodeWorkload&);
  for (const Change change : std::initializer_list<Change>{
           [](auto& w) { w.storage = "bf16"; }, [](auto& w) { w.queries = DType::f32; }, [](auto& w) { w.keyDim = 64; },
           [](auto& w) { w.valueDim = 64; }, [](auto& w) { w.rows = 5; }, [](auto& w) { w.heads = 9; }}) {
    FlashDecodeWorkload workload = kWorkload;
    change(workload);
    EXPECT(!tuning.find(workload));
  }
}

TEST(MeasuredTuning, LinesAreReadAsTheyWereWritten) {
  const MeasuredTuning tuning = someTuning();
  EXPECT(MeasuredTuning::parse(tuning.lines()) == std::optional(tuning));
  EXPECT(MeasuredTuning::parse("") == std::optional(MeasuredTuning()));
}

TEST(MeasuredTuning, UnknownLinesAreRefused) {
  const std::string workload = "f16 f16 128 128 4 8 4096 ", good = workload + "matrix 8 16 4 33 together\n";
  EXPECT(MeasuredTuning::parse(good).has_value());
  std::vector<std::string> all{"\n", " ", "f16\n", workload + "matrix 8 16 4 33 together"};
  for (const char* choice : {"matrix 8 16 4 33 together ", "matrix 8 17 4 33 together", "matrix 8 16 0 33 together",
                             "matrix 8 16 33 33 together", "matrix 8 16 4 0 together", "matrix 8 16 4 1025 together",
                             "matrix 8 16 4 33 apart", "other 0 0 4 33 together", "vector 8 16 4 33 together"}) {
    all.push_back(workload + choice + "\n");
  }
  for (const char* line :
       {"f16 128 64 4 8 4096 matrix 8 16 4 33 together", "f16 100 100 4 8 4096 matrix 8 16 4 33 together",
        "f16 64 512 4 8 4096 prefill 0 0 4 33 separate", "f16 64 512 4 8 4096 prefill 32 16 4 33 separate",
        "f16 128 128 prompt:4 8 4096 vector 0 0 4 33 separate",
        "f16 128 128 prompt: 8 4096 prefill 16 32 4 33 separate", "f16 64 512 4 8 4096 prefill 16 16 4 33 together",
        "f16 64 256 4 8 4096 prefill 16 16 4 33 separate", "u8 128 128 4 8 4096 vector 0 0 4 33 together",
        "f16 128 128 4 8 -1 vector 0 0 4 33 together", "f16 128 128 4 8 0x10 vector 0 0 4 33 together",
        "f16 0128 128 4 8 4096 vector 0 0 4 33 together",
        "f16 128 128 4 8 99999999999999999999 vector 0 0 4 33 together",
        "f16 128 128 4 8 8589934592 vector 0 0 4 33 together"}) {
    all.push_back(fmt::format("f16 {}\n", line));
  }
  for (const std::string& bad : all) {
    const Context context(bad);
    EXPECT(!MeasuredTuning::parse(bad));
    EXPECT(!MeasuredTuning::parse(good + bad));
  }
  EXPECT(!MeasuredTuning::parse(good + good));
}

// 1024 splits of all rows would take 74 GB.
TEST(MeasuredTuning, SplitsStayWithinMemory) {
  FlashDecodeCase attend{.cache = DType::f16,
                         .kvHeads = 1,
                         .cacheSequences = 2,
                         .capacity = 16384,
                         .queries = DType::f16,
                         .group = 32,
                         .sequences = {{0, 16384}, {1, 16384}},
                         .options = {}};
  for (const auto& [rows, splits] : {std::pair{8u, 1024u}, {4096u, 3u}}) {
    attend.rows = rows;
    const FlashDecode op = planOp(attend);
    const AttentionShape shape(op);
    EXPECT_EQ(FlashDecodeLayout::of(shape, {}, FlashDecodeChoice{.simdgroups = 1, .splits = 1024}).splits, splits);
  }
}

TEST(TuningFile, HoldsForOneDeviceAlone) {
  const CacheFolder folder;
  const std::string path = folder.path("tuning");
  const MeasuredTuning tuning = someTuning();
  const TimedDevice device;
  REQUIRE(TuningFile::of(*device.device, path).save(tuning));
  EXPECT(TuningFile::of(*device.device, path).load() == std::optional(tuning));
  const TimedDevice more({.family = "timed", .cores = 33}), other({.family = "other", .cores = 32});
  EXPECT(!TuningFile::of(*more.device, path).load());
  EXPECT(!TuningFile::of(*other.device, path).load());
  EXPECT_EQ(folder.fileCount(), 1u);
}

TEST(TuningFile, DamagedFilesCountForNothing) {
  const CacheFolder folder;
  const std::string path = folder.path("tuning");
  const TimedDevice device;
  const TuningFile file = TuningFile::of(*device.device, path);
  EXPECT(!file.load());
  REQUIRE(file.save(someTuning()));
  const std::string good = textOf(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    writeText(path, changed);
    EXPECT(!file.load());
    writeText(path, good.substr(0, i));
    EXPECT(!file.load());
  }
  const std::string body = good.substr(0, good.rfind("crc32 "));
  const std::string heading = body.substr(0, body.find("f16 f16"));
  for (const std::string& text : {sealed(body + "something else\n"), sealed(""), sealed("heading\n"), good + "\n",
                                  sealed(heading + std::string(1 << 20, ' ') + "\n")}) {
    writeText(path, text);
    EXPECT(!file.load());
  }
  std::string many = heading;
  for (uint64_t keys = 1; keys <= 6000; ++keys)
    many += fmt::format("f16 f16 64 64 1 1 {} vector 0 0 1 1 separate\n", keys);
  writeText(path, sealed(many));
  EXPECT(!file.load());
  writeText(path, sealed(body));
  EXPECT(file.load() == std::optional(someTuning()));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT(!file.load());
}

TEST(TuningFile, IsInTheUsersFolderForCaches) {
  const CacheFolder folder;
  const TimedDevice device, more({.family = "timed", .cores = 33});
#if defined(__APPLE__)
  const EnvironmentVariable home("HOME", folder.path("home"));
  ::mkdir(folder.path("home").c_str(), 0700);
  ::mkdir(folder.path("home/Library").c_str(), 0700);
  const std::string caches = folder.path("home/Library/Caches");
#else
  const std::string caches = folder.path("caches");
  const EnvironmentVariable cacheHome("XDG_CACHE_HOME", caches);
#endif
  const TuningFile file = TuningFile::of(*device.device, "");
  EXPECT(file.path().starts_with(caches + "/MLXNativeKernels/tuning-"));
  EXPECT(file.path() != TuningFile::of(*more.device, "").path());
  REQUIRE(file.save(someTuning()));
  EXPECT(file.load() == std::optional(someTuning()));
  struct stat status {};
  EXPECT_EQ(::stat((caches + "/MLXNativeKernels").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0700u);
}

TEST(TuningFile, AnUnusableFolderIsAnErrorOfWritingAlone) {
  const TimedDevice device;
#if !defined(__APPLE__)
  const EnvironmentVariable cacheHome("XDG_CACHE_HOME", "relative");
#endif
  {
    const EnvironmentVariable home("HOME", "");
    const TuningFile file = TuningFile::of(*device.device, "");
    EXPECT_EQ(file.path(), "");
    EXPECT_ERROR(file.save(someTuning()), {.op = "prepare",
                                           .what = "there is no folder for caches",
                                           .got = "no absolute path in HOME",
                                           .expected = "the user's home folder",
                                           .fix = "Set HOME, or pass a tuning file."});
    EXPECT(!file.load());
  }
  const CacheFolder folder;
  writeText(folder.path("plain"), "");
#if defined(__APPLE__)
  const EnvironmentVariable home("HOME", folder.path("plain"));
#else
  const EnvironmentVariable other("XDG_CACHE_HOME", folder.path("plain"));
#endif
  const TuningFile file = TuningFile::of(*device.device, "");
  EXPECT_ERROR(file.save(someTuning()), {.op = "prepare",
                                         .what = "the folder for tuning cannot be made",
                                         .expected = "a folder that this process may write to",
                                         .fix = "Pass a tuning file elsewhere."});
  EXPECT(!file.load());
}

TEST(TuningFile, UnreadableFilesAreNotReplaced) {
  if (::geteuid() == 0) return;  // may read everything
  const CacheFolder folder;
  const TimedDevice device;
  const TuningFile file = TuningFile::of(*device.device, folder.path("tuning"));
  REQUIRE(file.save(someTuning()));
  ::chmod(file.path().c_str(), 0);
  EXPECT(!file.load());
  EXPECT_ERROR(file.save(someTuning()), {.op = "prepare",
                                         .what = "the tuning file cannot be read",
                                         .got = "Permission denied",
                                         .fix = "Change its mode, or delete it."});
}

}  // namespace mnk::test
