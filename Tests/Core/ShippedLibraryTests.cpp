#include <fmt/ranges.h>

#include <cstdio>
#include <set>

#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Support/Check.hpp"
#include "Support/EveryDevice.hpp"
#include "Types/FunctionConstants.h"
#include "Types/KVCacheWriteTypes.h"
#include "Types/MultiRoPETypes.h"
#include "Types/Stamp.h"

namespace mnk::test {

namespace {

// An app ships the library, so it stays small: dtypes and units make functions, everything else is a constant.
constexpr size_t kMostFunctions = 24;

// Every combination of the constants of the functions that start with `prefix`.
struct Family {
  std::string_view prefix;
  std::vector<uint32_t> booleans;
};
const std::vector<uint32_t> kKVCacheWriteConstants = {kKVCacheWriteHasValues, kKVCacheWriteHasRows,
                                                      kKVCacheWriteRowsMayRepeat, kKVCacheWriteIsVectorized};
const std::vector<uint32_t> kMultiRoPEConstants = {
    kMultiRoPEHasKeys,    kMultiRoPEIsApart,       kMultiRoPEHasKeysApart, kMultiRoPEHasPositions,
    kMultiRoPEHasOffsets, kMultiRoPEIsInterleaved, kMultiRoPEIsVectorized};
const Family kFamilies[] = {
    {"kvCacheMove_", kKVCacheWriteConstants},
    {"kvCacheConvert_", kKVCacheWriteConstants},
    {"multiRoPE_", kMultiRoPEConstants},
    {MNK_SHADER_STAMP, {}},
};

std::vector<std::vector<FunctionConstant>> combinations(const std::vector<uint32_t>& booleans) {
  std::vector<std::vector<FunctionConstant>> all;
  for (uint32_t bits = 0; bits < 1u << booleans.size(); ++bits) {
    auto& constants = all.emplace_back();
    for (size_t i = 0; i < booleans.size(); ++i) constants.emplace_back(booleans[i], bool(bits >> i & 1));
  }
  return all;
}

}  // namespace

TEST(ShippedLibrary, ExportsWhatTheListsName) {
  std::set<std::string> expected = {MNK_SHADER_STAMP};
#define ROW(bytes, type) expected.insert("kvCacheMove_" #bytes);
  MNK_KV_CACHE_MOVES(ROW)
#undef ROW
#define ROW(source, cache) expected.insert("kvCacheConvert_" #source "_" #cache);
  MNK_KV_CACHE_CONVERSIONS(ROW)
#undef ROW
#define ROW(from, into) expected.insert("multiRoPE_" #from "_" #into);
  MNK_MULTI_ROPE_DTYPES(ROW)
#undef ROW
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    const auto names = REQUIRE(device->registry().shippedLibrary())->functionNames();
    const std::set<std::string> got(names.begin(), names.end());
    EXPECT_EQ(names.size(), got.size());
    EXPECT_EQ(fmt::format("{}", fmt::join(got, " ")), fmt::format("{}", fmt::join(expected, " ")));
  });
}

TEST(ShippedLibrary, StaysSmall) {
  const auto device = REQUIRE(Device::makeDefault());
  const size_t count = REQUIRE(device->registry().shippedLibrary())->functionNames().size();
  std::printf("the shipped library exports %zu functions; the limit is %zu\n", count, kMostFunctions);
  EXPECT(count > 0);
  EXPECT(count <= kMostFunctions);
}

TEST(ShippedLibrary, EveryFunctionMakesAPipelineWithEveryCombinationOfItsConstants) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const std::string& function : REQUIRE(device->registry().shippedLibrary())->functionNames()) {
      Context context(function);
      bool isKnown = false;
      for (const Family& family : kFamilies) {
        if (!function.starts_with(family.prefix)) continue;
        isKnown = true;
        for (const auto& constants : combinations(family.booleans)) {
          const KernelKey key{.library = nullptr, .function = function, .constants = constants};
          const auto pipeline = REQUIRE(device->registry().pipeline(key));
          EXPECT(pipeline->maxThreadsPerThreadgroup() >= device->limits().simdgroupWidth);
          EXPECT(pipeline->maxThreadsPerThreadgroup() <= device->limits().maxThreadsPerThreadgroup);
          EXPECT_EQ(pipeline->arguments().empty(), function == MNK_SHADER_STAMP);
        }
      }
      if (!isKnown) fail(__FILE__, __LINE__, "no family says which constants this function takes");
    }
  });
}

TEST(ShippedLibrary, OptionalArgumentsFollowTheConstants) {
  const auto device = REQUIRE(Device::makeDefault());
  const auto argumentsWith = [&](bool hasValues, bool hasRows) {
    const auto pipeline = REQUIRE(device->registry().pipeline({.library = nullptr,
                                                               .function = "kvCacheMove_2",
                                                               .constants = {{kKVCacheWriteHasValues, hasValues},
                                                                             {kKVCacheWriteHasRows, hasRows},
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

TEST(ShippedLibrary, AFunctionThatIsNotThereIsATypedError) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    EXPECT_ERROR(device->registry().pipeline({.library = nullptr, .function = "kvCacheMove_3", .constants = {}}),
                 {.code = ErrorCode::shaderBuild, .got = "kvCacheMove_3", .expected = "kvCache"});
  });
}

}  // namespace mnk::test
