#include <fmt/ranges.h>

#include <cstdio>
#include <map>
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

// Function constants that are numbers, with values that suit all functions. All others are flags.
const std::vector<FunctionConstant> kNumbers = {{kKVCodecKeyBits, 4u},
                                                {kKVCodecValueBits, 3u},
                                                {kKVCodecKeyDim, 128u},
                                                {kKVCodecValueDim, 128u},
                                                {kKVCodecElementType, uint32_t{kFloat16}},
                                                {kKVCodecDenseType, uint32_t{kFloat16}},
                                                {kHadamardFromType, uint32_t{kFloat32}},
                                                {kHadamardIntoType, uint32_t{kBFloat16}},
                                                {kRotaryAppendQueryType, uint32_t{kBFloat16}},
                                                {kRotaryAppendKeyType, uint32_t{kFloat32}},
                                                {kRotaryAppendCacheType, uint32_t{kBFloat16}},
                                                {kFlashDecodeCacheType, uint32_t{kFloat16}},
                                                {kFlashDecodeQueryType, uint32_t{kFloat32}},
                                                {kFlashDecodeIntoType, uint32_t{kBFloat16}},
                                                {kFlashDecodeMaskType, uint32_t{kFloat16}},
                                                {kFlashDecodeTableBits, 14u}};

// Functions without a body, whose presence is all that matters.
const std::set<std::string> kEmptyFunctions = {MNK_SHADER_STAMP, "ordersThreadgroups"};

std::vector<uint32_t> flags() {
  std::set<uint32_t> numbers = {kFlashDecodeSimdgroupsPerRow};
  for (const FunctionConstant& number : kNumbers) numbers.insert(number.index);
  std::vector<uint32_t> flags;
#define ROW(op, name, index) \
  if (!numbers.contains(index)) flags.push_back(index);
  MNK_FUNCTION_CONSTANTS(ROW)
#undef ROW
  return flags;
}

// Every pair of values of every two flags occurs in one of these: none set, all set, and for each bit of a flag's place
// the flags that have it and those that do not. All combinations would take a GPU minutes.
std::vector<std::vector<FunctionConstant>> combinations(uint32_t simdgroupsPerRow) {
  const std::vector<uint32_t> all = flags();
  std::vector<std::vector<FunctionConstant>> rows;
  const auto add = [&](auto isSet) {
    auto& row = rows.emplace_back(kNumbers);
    row.emplace_back(kFlashDecodeSimdgroupsPerRow, simdgroupsPerRow);
    for (size_t i = 0; i < all.size(); ++i) row.emplace_back(all[i], bool(isSet(i)));
  };
  add([](size_t) { return false; });
  add([](size_t) { return true; });
  for (size_t bit = 0; size_t(1) << bit < all.size(); ++bit) {
    for (const size_t value : {0, 1}) add([&](size_t i) { return (i >> bit & 1) == value; });
  }
  return rows;
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

// Functions whose names begin alike share a template: each is built with no flags and with all of them set, and the
// remaining combinations are spread over them.
TEST(ShippedLibrary, FunctionsBuildWithAllPairsOfConstants) {
  for (const auto& [name, device, hasOwnKernels] : devicesUnderTest()) {
    if (!hasOwnKernels) continue;
    const Context onDevice(name);
    std::map<std::pair<std::string, bool>, std::vector<std::string>> families;
    for (const std::string& function : REQUIRE(device->registry().shippedLibrary())->functionNames()) {
      const bool isLatent = function.find("_latent_") != std::string::npos;
      families[{function.substr(0, function.find('_')), isLatent}].push_back(function);
    }
    for (const auto& [family, functions] : families) {
      const auto rows = combinations(family.first != "flashPrefill" ? 1 : family.second ? 4 : 2);
      for (size_t i = 0; i < functions.size(); ++i) {
        const Context context(functions[i]);
        for (size_t row = 0; row < rows.size(); ++row) {
          if (row > 1 && row % functions.size() != i) continue;
          const KernelKey key{.library = nullptr, .function = functions[i], .constants = rows[row]};
          const auto pipeline = REQUIRE(device->registry().pipeline(key));
          EXPECT(pipeline->maxThreadsPerThreadgroup() >= device->limits().simdgroupWidth);
          EXPECT(pipeline->maxThreadsPerThreadgroup() <= device->limits().maxThreadsPerThreadgroup);
          EXPECT_EQ(pipeline->arguments().empty(), kEmptyFunctions.contains(functions[i]));
        }
      }
    }
  }
}

}  // namespace mnk::test
