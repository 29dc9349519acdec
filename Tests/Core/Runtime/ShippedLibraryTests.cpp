#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <set>

#include "Common/FunctionConstants.h"
#include "Common/KVCodecTypes.h"
#include "FlashDecode/FlashDecodeTypes.h"
#include "Hadamard/HadamardTypes.h"
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "Runtime/Stamp.h"

namespace mnk::test {

namespace {

// Apps ship the library, so it stays small: dtypes, units and vector lengths make functions; everything else is a
// constant.
constexpr size_t kMaxFunctions = 92;

// All combinations of the constants of functions that start with `prefix`, with numeric constants that suit all of
// them.
struct Family {
  std::string_view prefix;
  std::vector<uint32_t> booleans;
  std::vector<FunctionConstant> numbers = {};
};
const std::vector<uint32_t> kKVCacheWriteConstants = {kKVCacheHasValues, kKVCacheHasRows, kKVCacheRowsMayRepeat,
                                                      kKVCacheWriteIsVectorized};
const std::vector<uint32_t> kMultiRoPEConstants = {
    kMultiRoPEHasKeys,    kMultiRoPEIsOutOfPlace,  kMultiRoPEHasKeysOutOfPlace, kMultiRoPEHasPositions,
    kMultiRoPEHasOffsets, kMultiRoPEIsInterleaved, kMultiRoPEIsVectorized};
const std::vector<uint32_t> kKVCodecConstants = {
    kKVCacheHasValues,          kKVCodecIsTurbo,     kKVCodecIsVectorized,  kKVCodecHasQuantizedKeys,
    kKVCodecHasQuantizedValues, kKVCodecHasKeyMeans, kKVCodecHasValueMeans, kKVCodecHasChannelScales,
    kKVCodecIsUnrotated,        kKVCodecIsAffine};
template <typename T>
std::vector<T> joined(std::vector<T> some, std::initializer_list<std::type_identity_t<T>> more) {
  some.insert(some.end(), more);
  return some;
}
const std::vector<FunctionConstant> kCodecNumbers = {{kKVCodecKeyBits, 5u},
                                                     {kKVCodecValueBits, 4u},
                                                     {kKVCodecKeyDim, 80u},
                                                     {kKVCodecValueDim, 64u},
                                                     {kKVCodecHasAlignedCodes, true},
                                                     {kKVCodecElementType, uint32_t{kFloat16}},
                                                     {kKVCodecDenseType, uint32_t{kFloat16}}};
std::vector<FunctionConstant> flashDecodeNumbers(uint32_t simdgroupsPerRow = 1) {
  return {{kKVCodecKeyBits, 4u},
          {kKVCodecValueBits, 3u},
          {kKVCodecKeyDim, 128u},
          {kKVCodecValueDim, 128u},
          {kFlashDecodeCacheType, uint32_t{kFloat16}},
          {kFlashDecodeQueryType, uint32_t{kFloat32}},
          {kFlashDecodeIntoType, uint32_t{kBFloat16}},
          {kFlashDecodeMaskType, uint32_t{kFloat16}},
          {kFlashDecodeTableBits, 14u},
          {kFlashDecodeSimdgroupsPerRow, simdgroupsPerRow}};
}
// Everything in FlashDecode that is not a number is a flag.
const std::vector<uint32_t> kFlashDecodeConstants = [] {
  std::vector<uint32_t> flags = {kKVCodecIsTurbo,     kKVCodecHasQuantizedKeys, kKVCodecHasQuantizedValues,
                                 kKVCodecHasKeyMeans, kKVCodecHasValueMeans,    kKVCodecHasChannelScales,
                                 kKVCodecIsUnrotated, kKVCodecIsAffine};
  std::set<uint32_t> numbers;
  for (const FunctionConstant& number : flashDecodeNumbers()) numbers.insert(number.index);
#define ROW(op, name, index) \
  if (std::string_view(#op) == "FlashDecode" && !numbers.contains(index)) flags.push_back(index);
  MNK_FUNCTION_CONSTANTS(ROW)
#undef ROW
  return flags;
}();
const Family kFamilies[] = {
    {"kvCacheMove_", kKVCacheWriteConstants},
    {"kvCacheConvert_", kKVCacheWriteConstants},
    {"multiRoPE_", kMultiRoPEConstants},
    {"kvCacheQuantize_",
     joined(kKVCodecConstants, {kKVCacheHasRows, kKVCacheRowsMayRepeat, kKVCacheQuantizeAppliesRoPE,
                                kKVCacheQuantizeHasSearch, kMultiRoPEHasPositions, kMultiRoPEHasOffsets}),
     joined(kCodecNumbers, {{kRotaryAppendQueryType, uint32_t{kBFloat16}},
                            {kMultiRoPEIsInterleaved, false},
                            {kMultiRoPEIsVectorized, true}})},
    {"rotaryAppend",
     {kKVCacheHasRows, kKVCacheRowsMayRepeat, kMultiRoPEHasPositions, kMultiRoPEHasOffsets, kMultiRoPEIsInterleaved,
      kMultiRoPEIsVectorized},
     {{kRotaryAppendQueryType, uint32_t{kFloat16}},
      {kRotaryAppendKeyType, uint32_t{kFloat32}},
      {kRotaryAppendCacheType, uint32_t{kBFloat16}}}},
    {"kvCacheDequantize_", kKVCodecConstants, kCodecNumbers},
    {"hadamard",
     {kHadamardIsOutOfPlace, kHadamardIsVectorized},
     {{kHadamardFromType, uint32_t{kFloat32}}, {kHadamardIntoType, uint32_t{kBFloat16}}}},
    {"flashDecodeVector_", kFlashDecodeConstants, flashDecodeNumbers()},
    {"flashDecodeMatrix_", kFlashDecodeConstants, flashDecodeNumbers()},
    {"flashDecodeReduce_", kFlashDecodeConstants, flashDecodeNumbers()},
    {"flashPrefill_latent_", kFlashDecodeConstants, flashDecodeNumbers(4)},
    {"flashPrefill_", kFlashDecodeConstants, flashDecodeNumbers(2)},
    {"mathProbe", {}},
    {"matrixLayoutProbe", {}},
    {"ordersThreadgroups", {}},
    {MNK_SHADER_STAMP, {}},
};

// Functions without a body, whose presence is all that matters.
const std::set<std::string> kEmptyFunctions = {MNK_SHADER_STAMP, "ordersThreadgroups"};

// Every pair of values of every two constants occurs in one of these: none set, all set, and for each bit of a
// constant's index the constants that have it and those that do not. All combinations would take a GPU minutes.
std::vector<uint32_t> pairwiseBits(size_t count) {
  const uint32_t all = (1u << count) - 1;
  std::vector<uint32_t> rows = {0, all};
  for (size_t bit = 0; size_t(1) << bit < count; ++bit) {
    uint32_t row = 0;
    for (size_t i = 0; i < count; ++i) row |= uint32_t(i >> bit & 1) << i;
    rows.insert(rows.end(), {row, all & ~row});
  }
  return rows;
}

std::vector<std::vector<FunctionConstant>> combinations(const Family& family) {
  std::vector<std::vector<FunctionConstant>> all;
  for (const uint32_t bits : pairwiseBits(family.booleans.size())) {
    auto& constants = all.emplace_back(family.numbers);
    for (size_t i = 0; i < family.booleans.size(); ++i) {
      constants.emplace_back(family.booleans[i], bool(bits >> i & 1));
    }
    // Counts and a probe vary together with rows.
    constants.emplace_back(kKVCacheQuantizeHasCounts, bool(bits >> 6 & 1));
    constants.emplace_back(kKVCacheQuantizeHasProbe, bool(bits >> 7 & 1));
  }
  return all;
}

}  // namespace

TEST(ShippedLibrary, ExportsTheListedFunctions) {
  std::set<std::string> expected = kEmptyFunctions;
  expected.insert({"mathProbe", "matrixLayoutProbe"});
  expected.insert("rotaryAppend");
#define ROW(bytes, type) expected.insert("kvCacheMove_" #bytes);
  MNK_KV_CACHE_MOVES(ROW)
#undef ROW
#define ROW(source, cache) expected.insert("kvCacheConvert_" #source "_" #cache);
  MNK_KV_CACHE_CONVERSIONS(ROW)
#undef ROW
#define ROW(from, into) expected.insert("multiRoPE_" #from "_" #into);
  MNK_MULTI_ROPE_DTYPES(ROW)
#undef ROW
#define ROW(chunks)                            \
  expected.insert("kvCacheQuantize_" #chunks); \
  expected.insert("kvCacheDequantize_" #chunks);
  MNK_VECTOR_CHUNKS(ROW)
#undef ROW
#define ROW(chunks) expected.insert("hadamard_" #chunks);
  MNK_HADAMARD_CHUNKS(ROW)
#undef ROW
#define ROW(parts) expected.insert("hadamardParts_" #parts);
  MNK_HADAMARD_PARTS(ROW)
#undef ROW
#define ROW(keyDim, valueDim, rows) expected.insert("flashDecodeVector_" #keyDim "_" #valueDim "_" #rows);
  MNK_FLASH_VECTOR_INSTANCES(ROW)
#undef ROW
#define ROW(keyDim, valueDim, rows) expected.insert("flashDecodeVector_latent_" #keyDim "_" #valueDim "_" #rows);
  MNK_FLASH_LATENT_INSTANCES(ROW)
#undef ROW
#define ROW(headDim, rows, keys) expected.insert("flashDecodeMatrix_" #headDim "_" #rows "_" #keys);
  MNK_FLASH_MATRIX_INSTANCES(ROW)
#undef ROW
#define ROW(chunks) expected.insert("flashDecodeReduce_" #chunks);
  MNK_FLASH_REDUCE_INSTANCES(ROW)
#undef ROW
#define ROW(type, dim, blocks, keys) expected.insert("flashPrefill_" #type "_" #dim "_" #blocks "_" #keys);
  MNK_FLASH_PREFILL_INSTANCES(ROW)
#undef ROW
#define ROW(type, dim, extra, blocks, keys) expected.insert("flashPrefill_latent_" #type "_" #blocks "_" #keys);
  MNK_FLASH_LATENT_PREFILL_INSTANCES(ROW)
#undef ROW
  std::printf("the shipped library exports %zu functions; the limit is %zu\n", expected.size(), kMaxFunctions);
  EXPECT(expected.size() <= kMaxFunctions);
  std::set<std::string> expectedOnHost = expected;
#define ROW(keyDim, valueDim, rows) \
  expectedOnHost.insert("flashDecodeVector_" #keyDim "_" #valueDim "_" #rows "_fewLanes");
  MNK_FLASH_FEW_LANES_INSTANCES(ROW)
#undef ROW
#define ROW(keyDim, valueDim, rows) \
  expectedOnHost.insert("flashDecodeVector_latent_" #keyDim "_" #valueDim "_" #rows "_fewLanes");
  MNK_FLASH_LATENT_FEW_LANES_INSTANCES(ROW)
#undef ROW
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    const auto names = REQUIRE(device->registry().shippedLibrary())->functionNames();
    std::set<std::string> got(names.begin(), names.end());
    EXPECT_EQ(names.size(), got.size());
    if (device->kind() != "host") got.insert("ordersThreadgroups");  // only some GPUs' libraries have it
    EXPECT_EQ(fmt::format("{}", fmt::join(got, " ")),
              fmt::format("{}", fmt::join(device->kind() == "host" ? expectedOnHost : expected, " ")));
  });
}

// The functions of a family share a template: each is built with no constants and with all of them set, and the
// remaining combinations are spread over the family.
TEST(ShippedLibrary, FunctionsBuildWithAllPairsOfConstants) {
  for (const auto& [name, device, hasOwnKernels] : devicesUnderTest()) {
    if (!hasOwnKernels) continue;
    const Context onDevice(name);
    std::vector<std::string> names = REQUIRE(device->registry().shippedLibrary())->functionNames();
    for (const Family& family : kFamilies) {
      const auto isOther = [&](const std::string& function) { return !function.starts_with(family.prefix); };
      const auto others = std::partition(names.begin(), names.end(), std::not_fn(isOther));
      const std::vector<std::string> functions(names.begin(), others);
      names.erase(names.begin(), others);
      const auto all = combinations(family);
      for (size_t i = 0; i < functions.size(); ++i) {
        const Context context(functions[i]);
        for (size_t row = 0; row < all.size(); ++row) {
          if (row > 1 && row % functions.size() != i) continue;
          const KernelKey key{.library = nullptr, .function = functions[i], .constants = all[row]};
          const auto pipeline = REQUIRE(device->registry().pipeline(key));
          EXPECT(pipeline->maxThreadsPerThreadgroup() >= device->limits().simdgroupWidth);
          EXPECT(pipeline->maxThreadsPerThreadgroup() <= device->limits().maxThreadsPerThreadgroup);
          EXPECT_EQ(pipeline->arguments().empty(), kEmptyFunctions.contains(functions[i]));
        }
      }
    }
    EXPECT_EQ(fmt::format("of no family: {}", fmt::join(names, " ")), "of no family: ");
  }
}

TEST(ShippedLibrary, OptionalArgumentsFollowTheConstants) {
  const auto device = REQUIRE(Device::makeDefault());
  const auto argumentsWith = [&](bool hasValues, bool hasRows) {
    const auto pipeline = REQUIRE(device->registry().pipeline({.library = nullptr,
                                                               .function = "kvCacheMove_2",
                                                               .constants = {{kKVCacheHasValues, hasValues},
                                                                             {kKVCacheHasRows, hasRows},
                                                                             {kKVCacheRowsMayRepeat, false},
                                                                             {kKVCacheWriteIsVectorized, false}}}));
    std::set<uint32_t> indices;
    for (const auto& argument : pipeline->arguments()) indices.insert(argument.index);
    return fmt::format("{}", fmt::join(indices, " "));
  };
  EXPECT_EQ(argumentsWith(false, false), "0 1 3");
  EXPECT_EQ(argumentsWith(true, false), "0 1 2 3 4");
  EXPECT_EQ(argumentsWith(false, true), "0 1 3 5 6");
  EXPECT_EQ(argumentsWith(true, true), "0 1 2 3 4 5 6");
}

TEST(ShippedLibrary, AMissingFunctionIsATypedError) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    EXPECT_ERROR(device->registry().pipeline({.library = nullptr, .function = "kvCacheMove_3", .constants = {}}),
                 {.code = ErrorCode::shaderBuild, .got = "kvCacheMove_3", .expected = "one of flashDecodeMatrix_128"});
  });
}

}  // namespace mnk::test
