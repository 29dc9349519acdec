// Which kernel attends, and with how many threadgroups, simdgroups and splits.
#include "Harness/Check.hpp"
#include "Harness/DeclaredBytes.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Ops/Common/TurboSigns.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;
using Kernel = AttentionOptions::Kernel;

const DeviceProfile kHost{.family = "host", .matrixLayout = MatrixLayout::interleaved};
const DeviceProfile kApple{.family = "apple9", .cores = 10, .matrixLayout = MatrixLayout::interleaved};
const DeviceProfile kOther{.family = "", .cores = 132, .matrixLayout = MatrixLayout::rowMajor};
const DeviceProfile kNoMatrices{.family = "host"};
const DeviceProfile kUnknown{};  // whose layout of matrices is not known either

// One row of f16 in one split.
Case overElements(uint64_t headDim, uint64_t heads, uint64_t keys) {
  return {.cache = DType::f16,
          .headDim = headDim,
          .valueHeadDim = headDim,
          .kvHeads = 1,
          .queries = DType::f16,
          .group = heads,
          .sequences = {{0, keys}},
          .into = DType::f16,
          .options = {.splits = 1}};
}
Case overCodes(uint64_t headDim, uint64_t heads, uint64_t keys) {
  Case attend = overElements(headDim, heads, keys);
  attend.keyCodec = attend.valueCodec = KVCodec{.bits = 4};
  return attend;
}
Case latentCase(uint64_t heads, uint64_t keys, uint64_t rows = 1) {
  Case attend = overElements(64, heads, keys);
  attend.isLatent = true;
  attend.valueHeadDim = 512;
  attend.rows = rows;
  attend.options = {.scale = 0.1f};
  return attend;
}
// The newest rows, of one head.
Case prompt(uint64_t headDim, uint64_t rows) {
  Case attend = overElements(headDim, 1, rows);
  attend.rows = rows;
  return attend;
}
// Of 32 query heads over 8 heads of 128.
Case layerPrompt(uint64_t rows, uint64_t keys) {
  Case attend = overElements(128, 4, keys);
  attend.kvHeads = 8;
  attend.rows = rows;
  return attend;
}
// The same with several sequences.
Case raggedCase(std::vector<AttendedSequence> sequences) {
  Case attend = layerPrompt(1, 0);
  attend.cacheSequences = 130;
  attend.sequences = std::move(sequences);
  return attend;
}
Case with(Case attend, Kernel kernel, DType queries = DType::f16) {
  attend.options.kernel = kernel;
  attend.queries = queries;
  return attend;
}
Case ofBF16(Case attend) {
  attend.cache = DType::bf16;
  return attend;
}
Case inSplits(Case attend, uint32_t splits) {
  attend.options.splits = splits;
  return attend;
}

struct Chosen {
  Case attend;
  DeviceProfile profile;
  std::string kernel;       // without the common part of all names
  uint32_t simdgroups = 0;  // 0: any
};

void expectChosen(const std::vector<Chosen>& all) {
  for (const auto& [attend, profile, kernel, simdgroups] : all) {
    const Context context(fmt::format("{} rows of {} heads over {} keys of {} on {}", attend.rows, attend.heads(),
                                      attend.longest(), attend.headDim, profile.family));
    const Plan planned = REQUIRE(plan(planOp(attend), profile));
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kernel.function, fmt::format("flash{}", kernel));
    if (simdgroups != 0) EXPECT_EQ(dispatch.grid.threadgroup[0], 32 * simdgroups);
    EXPECT(dispatch.threadgroupMemory.empty() || dispatch.threadgroupMemory[0].bytes <= 32u * 1024);
  }
}

}  // namespace

TEST(FlashDecodeLayout, KernelDependsOnRowsStorageAndDevice) {
  expectChosen({
      {overCodes(64, 4, 40), kApple, "DecodeVector_64_64_4"},
      {overCodes(64, 5, 40), kApple, "DecodeMatrix_64_8_16"},
      {overElements(64, 4, 40), kApple, "DecodeVector_64_64_4"},
      {overElements(64, 5, 40), kApple, "DecodeMatrix_64_8_16"},
      {overCodes(64, 32, 40), kHost, "DecodeVector_64_64_4_fewLanes"},
      {overElements(64, 1, 40), kOther, "DecodeVector_64_64_1"},
      {overElements(64, 2, 40), kOther, "DecodeMatrix_64_8_16"},
      {overCodes(64, 1, 40), kOther, "DecodeMatrix_64_8_16"},
      // Queries that are more precise than halves.
      {with(overCodes(64, 32, 40), Kernel::automatic, DType::f32), kApple, "DecodeVector_64_64_4"},
      {with(overElements(64, 32, 40), Kernel::automatic, DType::f32), kApple, "DecodeVector_64_64_4"},
      // Instances that fit into 128 registers, and tiles that leave no simdgroup without one.
      {overElements(64, 16, 512), kApple, "DecodeMatrix_64_8_16"},
      {overElements(128, 16, 512), kApple, "DecodeMatrix_128_8_8"},
      {overElements(128, 4, 512), kApple, "DecodeVector_128_128_4"},
      {overElements(256, 16, 512), kApple, "DecodeVector_256_256_4"},
      // Few lanes share a vector on the Host device alone.
      {with(overElements(128, 4, 100), Kernel::vector), kHost, "DecodeVector_128_128_4_fewLanes"},
      {with(overElements(128, 4, 100), Kernel::vector), kApple, "DecodeVector_128_128_4"},
      {with(overElements(128, 4, 100), Kernel::vector), kUnknown, "DecodeVector_128_128_4"},
      // Prompts.
      {prompt(128, 9), kApple, "Prefill_f16_128_1_32"},
      {prompt(128, 8), kApple, "DecodeMatrix_128_8_8"},
      {prompt(32, 100), kApple, "DecodeVector_32_32_4"},
      {prompt(72, 100), kApple, "DecodeVector_80_80_4"},
      {prompt(112, 100), kApple, "DecodeVector_128_128_4"},
      {prompt(512, 100), kApple, "DecodeVector_512_512_2"},
      {prompt(128, 100), kUnknown, "DecodeVector_128_128_8"},
      {prompt(128, 100), {.family = "apple9"}, "DecodeVector_128_128_4"},
      {prompt(128, 100), kHost, "DecodeVector_128_128_4_fewLanes"},
      {with(prompt(128, 100), Kernel::vector), kApple, "DecodeVector_128_128_4"},
      {with(prompt(128, 100), Kernel::matrix), kApple, "DecodeMatrix_128_8_8"},
      // Latent caches.
      {latentCase(2, 40), kApple, "Prefill_latent_f16_1_16"},
      {latentCase(2, 40), kUnknown, "DecodeVector_latent_64_512_1"},
      {latentCase(2, 40), kNoMatrices, "DecodeVector_latent_64_512_4_fewLanes"},
      {ofBF16(latentCase(2, 40)), kApple, "Prefill_latent_f32_1_8"},
      {ofBF16(latentCase(1, 40)), kApple, "DecodeVector_latent_64_512_1"},
      {ofBF16(latentCase(1, 40)), kNoMatrices, "DecodeVector_latent_64_512_1_fewLanes"},
      {ofBF16(latentCase(1, 40, 2)), kApple, "Prefill_latent_f32_1_8"},
      {with(ofBF16(latentCase(1, 40, 2)), Kernel::vector), kApple, "DecodeVector_latent_64_512_1"},
  });
}

TEST(FlashDecodeLayout, AHostDeviceCanHaveTheKernelsOfAGPU) {
  for (const char* family : {"host", "apple9", ""}) {
    EXPECT_EQ(REQUIRE(host::makeDevice({.compiler = {}, .family = family}))->profile().family, family);
  }
}

TEST(FlashDecodeLayout, SimdgroupsAndTilesDependOnKeys) {
  std::vector<Chosen> all;
  // A few rows are merged at a time, so that memory holds parts of them from all simdgroups.
  for (const uint64_t heads : {1, 4, 8, 16}) {
    const Case attend = with(overElements(256, heads, 256), Kernel::matrix, DType::f32);
    all.push_back({attend, kApple, "DecodeMatrix_256_8_8", 4});
    all.push_back({attend, kOther, "DecodeMatrix_256_8_16", 8});
  }
  // Over codes, long tiles where a simdgroup has two.
  for (const auto [keys, kernel, simdgroups] : {std::tuple{uint64_t{1}, "DecodeMatrix_128_8_16", 8u},
                                                {496, "DecodeMatrix_128_8_16", 8},
                                                {497, "DecodeMatrix_128_8_32", 8},
                                                {2032, "DecodeMatrix_128_8_32", 8},
                                                {2033, "DecodeMatrix_128_8_32", 12},
                                                {4096, "DecodeMatrix_128_8_32", 12}}) {
    all.push_back({overCodes(128, 4, keys), kOther, kernel, simdgroups});
  }
  // No more simdgroups than tiles beyond four.
  for (const auto [keys, splits, simdgroups] :
       {std::tuple{uint64_t{1}, 1u, 4u}, {64, 1, 4}, {65, 1, 5}, {96, 1, 6}, {256, 1, 8}, {256, 2, 8}, {256, 3, 6}}) {
    const Case attend = inSplits(overElements(64, 4, keys), splits);
    all.push_back({with(attend, Kernel::vector), kOther, "DecodeVector_64_64_4", simdgroups});
    all.push_back({with(attend, Kernel::matrix), kOther, "DecodeMatrix_64_8_16", simdgroups});
  }
  expectChosen(all);
  EXPECT_EQ(matrixTileKeys(128, 8, 64), 32u);
  EXPECT_EQ(matrixTileKeys(128, 8, 31), 16u);
  EXPECT_EQ(matrixTileKeys(128, 8, 0), 8u);
  const FlashDecodeTuning many{.maxMatrixRows = 16}, few{.maxMatrixRows = 8};
  EXPECT_EQ(matrixRows(many, 128, 8), 8u);
  EXPECT_EQ(matrixRows(many, 128, 9), 16u);
  EXPECT_EQ(matrixRows(few, 128, 9), 8u);
  EXPECT_EQ(matrixRows(many, 256, 9), 8u);
}

TEST(FlashDecodeLayout, ReservesMemoryForTablesOnlyIfLevelsAreLookedUp) {
  const auto bytesFor = [](const KVCodec& keys, const KVCodec& values) {
    Case attend = with(overElements(64, 2, 40), Kernel::matrix, DType::f32);
    attend.keyCodec = keys, attend.valueCodec = values;
    const FlashDecode op = planOp(attend);
    const AttentionShape shape(op);
    return FlashDecodeLayout::of(shape, kApple).threadgroupBytes(1);
  };
  constexpr uint32_t kTables = 1 << 14;
  for (const uint32_t bits : {3u, 5u, 6u, 7u, 8u}) {
    EXPECT(bytesFor({.bits = bits}, {.bits = 8}) < kTables / 4);
    EXPECT_EQ(bytesFor({.bits = bits}, {.bits = 4}), kTables);
    EXPECT_EQ(bytesFor({.bits = 2}, {.bits = bits}), kTables);
  }
  EXPECT_EQ(bytesFor({.bits = 4}, {.bits = 4}), kTables);
  EXPECT_EQ(bytesFor({KVCodec::Name::mlx1, 4}, {KVCodec::Name::mlx1, 4}), kTables);
}

// The prefill kernel reads the cache once for each tile of rows.
TEST(FlashDecodeLayout, PromptsAreOneDispatchOfTiles) {
  // Of a device and a case: threadgroups, simdgroups, and keys that tiles see, all together, or 0 for any.
  using Golden = std::tuple<DeviceProfile, Case, Size3, uint32_t, uint64_t>;
  for (const auto& [profile, attend, groups, simdgroups, keys] :
       {Golden{kApple, layerPrompt(512, 512), {1, 8, 22}, 12, 6056},
        {kApple, layerPrompt(9, 9), {1, 8, 1}, 5, 9},
        {kApple, layerPrompt(96, 4096), {1, 8, 5}, 10, 20296},
        {kOther, layerPrompt(512, 512), {1, 8, 16}, 8, 4352},
        {kOther, layerPrompt(512, 4096), {1, 8, 16}, 8, 61696},
        {kOther, layerPrompt(2048, 2048), {1, 8, 47}, 11, 49612},
        {kOther, layerPrompt(8192, 8192), {1, 8, 171}, 12, 705872},
        {kOther, layerPrompt(9, 9), {1, 8, 1}, 3, 9},
        {kApple, latentCase(128, 4096), {2, 1, 6}, 12, 6 * 4096},
        {kApple, latentCase(16, 4096), {10, 1, 1}, 8, 4096},
        {kApple, latentCase(16, 40), {1, 1, 1}, 8, 40},
        {kOther, latentCase(128, 1024), {32, 1, 3}, 12, 3 * 1024},
        {kOther, latentCase(128, 4096), {43, 1, 3}, 12, 3 * 4096},
        {kOther, latentCase(128, 65536, 4), {12, 1, 11}, 12, 0}}) {
    const Context context(fmt::format("{} rows over {} keys", attend.rows, attend.longest()));
    const FlashDecode op = planOp(attend);
    const Plan planned = REQUIRE(plan(op, profile));
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(planned.dispatches.size(), groups[0] > 1 ? 2u : 1u);
    EXPECT(dispatch.kernel.function.starts_with(attend.isLatent ? "flashPrefill_latent_" : "flashPrefill_f16_128_"));
    EXPECT_EQ(dispatch.grid.extent, groups);
    EXPECT_EQ(dispatch.grid.threadgroup, (Size3{32 * simdgroups, 1, 1}));
    EXPECT_EQ(dispatch.grid.minThreads, attend.isLatent ? 128u : 32u);
    const uint64_t keyBytes = 2 * (attend.queryDim() + (attend.isLatent ? 0 : attend.valueHeadDim));
    const uint64_t queryBytes = attend.rows * attend.heads() * attend.queryDim() * 2;
    if (keys != 0) EXPECT_EQ(dispatch.countedBytesRead(), attend.kvHeads * keys * keyBytes + queryBytes);
    // Devices without this kernel read the cache for every eight rows.
    if (attend.rows < 512) continue;
    const Plan passes = REQUIRE(plan(op));
    EXPECT_EQ(passes.dispatches.size(), attend.rows / 8);
    uint64_t bytes = 0;
    for (const Dispatch& pass : passes.dispatches) bytes += pass.countedBytesRead();
    EXPECT(2 * dispatch.countedBytesRead() <= bytes);
  }
  // Simdgroups that share rows stay together.
  for (const uint64_t headDim : {64, 80, 96, 128, 192, 256}) {
    const Plan planned = REQUIRE(plan(planOp(prompt(headDim, 100)), kApple));
    EXPECT_EQ(planned.dispatches.at(0).grid.minThreads, headDim > 128 ? 64u : 32u);
  }
}

TEST(FlashDecodeLayout, OneLatentTensorTakesTheKernelAndTheBytesOfTwo) {
  const Case two = latentCase(16, 40);
  Case one = two;
  one.isOneTensor = true;
  for (const DeviceProfile& profile : {kUnknown, kApple}) {
    const Plan ofTwo = REQUIRE(plan(planOp(two), profile)), ofOne = REQUIRE(plan(planOp(one), profile));
    EXPECT_EQ(ofOne.dispatches.at(0).countedBytesRead(), ofTwo.dispatches.at(0).countedBytesRead());
    EXPECT_EQ(ofOne.dispatches.at(0).kernel.function, ofTwo.dispatches.at(0).kernel.function);
  }
}

// The smallest kernel that has room for both vectors, and its own where there is one. Codes have those of powers of
// two.
TEST(FlashDecodeLayout, EveryHeadDimHasTheSmallestKernel) {
  const std::tuple<uint64_t, uint64_t, const char*> dense[] = {
      {8, 8, "32_32"},      {40, 40, "64_64"},     {64, 64, "64_64"},     {72, 40, "80_80"},   {88, 96, "96_96"},
      {64, 104, "128_128"}, {136, 128, "192_128"}, {136, 136, "192_192"}, {192, 8, "192_128"}, {200, 8, "256_256"},
      {8, 248, "256_256"},  {512, 512, "512_512"}, {576, 512, "576_512"}};
  const std::tuple<uint64_t, uint64_t, const char*> quantized[] = {
      {32, 64, "64_64"},     {80, 80, "128_128"},  {96, 64, "128_128"},  {112, 112, "128_128"},
      {192, 128, "256_256"}, {80, 192, "256_256"}, {512, 512, "512_512"}};
  const auto expectSmallest = [](Case attend, const auto& dims) {
    const auto& [keys, values, kernel] = dims;
    attend.headDim = keys, attend.valueHeadDim = values;
    expectChosen({{with(attend, Kernel::vector), kUnknown, fmt::format("DecodeVector_{}_1", kernel)}});
  };
  for (const auto& dims : dense) expectSmallest(overElements(64, 1, 100), dims);
  for (const auto& dims : quantized) expectSmallest(overCodes(64, 1, 100), dims);
  for (uint64_t keyDim = 0; keyDim <= 1024; keyDim += 4) {
    const bool isMultiple = keyDim % 8 == 0 && keyDim != 0 && keyDim <= 256;
    EXPECT_EQ(hasAttentionKernel(keyDim, 8, false, false), isMultiple);
    EXPECT_EQ(hasAttentionKernel(256, keyDim, false, false), isMultiple);
    EXPECT_EQ(hasAttentionKernel(keyDim, 512, false, false), keyDim == 512 || keyDim == 576);
    const bool isOfCodes = std::ranges::find(kTurboHeadDims, keyDim) != std::end(kTurboHeadDims);
    EXPECT_EQ(hasAttentionKernel(keyDim, keyDim, true, false), isOfCodes);
    EXPECT_EQ(hasAttentionKernel(keyDim, 128, true, false), isOfCodes && keyDim != 512);
    EXPECT_EQ(hasAttentionKernel(96, keyDim, true, false), isOfCodes && keyDim != 512);
    // Shorter parts of a latent cache would need kernels that pad them.
    for (const bool isQuantized : {false, true}) {
      EXPECT_EQ(hasAttentionKernel(64, keyDim, isQuantized, true), keyDim == 512);
      EXPECT_EQ(hasAttentionKernel(keyDim, 512, isQuantized, true), keyDim == 64);
    }
  }
}

// Threadgroups for 8 KV heads over 1, 8 and 32 Ki keys: eight a core, if the context has enough keys for the parts.
TEST(FlashDecodeLayout, AppleGPUsHaveThreadgroupsForAllCores) {
  constexpr std::pair<const char*, uint32_t> kChips[] = {
      {"A17 Pro", 6}, {"M1", 8}, {"M4", 10}, {"M2 Pro", 19}, {"M3 Max", 40}};
  std::string table;
  for (const auto& [chip, cores] : kChips) {
    const DeviceProfile profile{.family = "apple9", .cores = cores};
    table += fmt::format("{} {}:", chip, cores);
    for (const uint64_t keys : {1024, 8192, 32768}) {
      table += fmt::format(" {}", 8 * automaticSplits(tuningFor(profile), profile, 8, keys));
    }
    table += "; ";
  }
  EXPECT_EQ(table,
            "A17 Pro 6: 48 48 48; M1 8: 64 64 64; M4 10: 80 80 80; M2 Pro 19: 128 152 152; M3 Max 40: 128 320 320; ");
}

// Threadgroups are those of the rows that there are, and keys that tiles see those that each sequence by itself has.
TEST(FlashDecodeRagged, IsOneDispatchWithoutThreadgroupsToSpare) {
  using Golden = std::tuple<std::vector<AttendedSequence>, uint32_t, uint64_t, std::string_view>;
  for (const auto& [sequences, groups, keys, kernel] :
       {Golden{{{0, 512, 0, 512}, {1, 4000, 0, 1}, {3, 9, 0, 9}},
               22 + 1 + 1,
               6056 + 4000 + 9,
               "flashPrefill_f16_128_1_32"},
        {{{3, 100, 0, 100}, {0, 512, 0, 512}}, 5 + 22, 300 + 6056, "flashPrefill_f16_128_1_32"},
        {{{0, 8, 0, 8}, {1, 4000, 0, 1}, {3, 9, 0, 3}, {2, 60, 0, 2}},
         4 + 1 + 2 + 1,
         8 + 4000 + 9 + 60,
         "flashDecodeMatrix_128_8_8"}}) {
    const Context context(fmt::format("{} rows first", sequences[0].rows));
    const Case attend = raggedCase(sequences);
    const Plan planned = REQUIRE(plan(planOp(attend), kApple));
    EXPECT_EQ(planned.dispatches.size(), 1u);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kernel.function, kernel);
    EXPECT_EQ(dispatch.grid.extent, (Size3{1, 8, groups}));
    EXPECT_EQ(dispatch.countedBytesRead(), 2 * 8 * 256 * keys + attend.queryRows() * 32 * 256);
    // Rows that follow each other are one region.
    EXPECT_EQ(bindingAt(dispatch, kFlashDecodeQueries).reads.size(), 1u);
    EXPECT_EQ(bindingAt(dispatch, kFlashDecodeInto).writes.size(), 1u);
  }
}

// All sequences keep the device busy, also those of a second dispatch: with one less, keys would be split.
TEST(FlashDecodeRagged, SplitsDependOnAllSequences) {
  Case attend = raggedCase({});
  attend.kvHeads = 1;
  attend.options.splits = 0;
  for (uint64_t s = 0; s < 130; ++s) attend.sequences.push_back({s, 4000, 0, 1});
  const DeviceProfile cores259{.family = "another", .cores = 259}, cores260{.family = "another", .cores = 260};
  EXPECT_EQ(REQUIRE(plan(planOp(attend), cores259)).dispatches.size(), 2u);
  EXPECT_EQ(REQUIRE(plan(planOp(attend), cores260)).dispatches.size(), 3u);
}

// A choice that was measured with this number of rows for each sequence applies.
TEST(FlashDecodeRagged, IsMeasuredAsItsLongestSequence) {
  const FlashDecode op = planOp(raggedCase({{0, 20, 0, 5}, {1, 900, 0, 1}, {2, 9, 0, 2}}));
  const auto workload = FlashDecodeWorkload::of(AttentionShape(op));
  EXPECT_EQ(workload.rows, 4u * 5);
  EXPECT_EQ(workload.heads, 8u * 3);
  EXPECT_EQ(workload.keys, 900u);
}

}  // namespace mnk::test
