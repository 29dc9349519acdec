// One call of KVCacheQuantize as a name and a few numbers. Lists of them cover what the op promises; the same lists run
// on every device and through the plan.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/KVCacheQuantize.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

namespace mnk::test {

struct KVCacheQuantizeCase {
  std::string name;
  // Sources, slots and rows. Head dims are those of vectors, cacheShift is that of codes; `cache` is the dtype of what
  // is dense.
  KVCacheWriteCase write;
  KVCodec keyCodec = {};
  KVCodec valueCodec = {};
  KVQuantizeOptions options = {};
  uint64_t scaleShift = 0;  // bytes past an aligned address
  bool hasMeans = false;
  bool hasChannelScales = false;
  bool hasCounts = false;
  bool hasProbe = false;
  bool hasDenseKeys = false;
  bool hasDenseValues = false;
};

std::vector<KVCacheQuantizeCase> codecCases();    // codecs, bits, head dims, source dtypes
std::vector<KVCacheQuantizeCase> headCases();     // numbers of heads that share simdgroups in every way
std::vector<KVCacheQuantizeCase> placeCases();    // where KVCacheWrite's cases put tokens, drawn by lot
std::vector<KVCacheQuantizeCase> addressCases();  // memory that wide loads and stores cannot use
std::vector<KVCacheQuantizeCase> optionCases();   // options, means, channel scales, counts
std::vector<KVCacheQuantizeCase> probeCases();    // mlx1's elements as they are compared
std::vector<KVCacheQuantizeCase> mixedCases();    // keys or values that are stored as elements
std::vector<KVCacheQuantizeCase> allQuantizeCases();

using MakeNamedTensor = std::function<Tensor(std::string_view name, DType dtype, const Shape& shape, uint64_t shift)>;

// The op of a case on tensors of the caller's making, those that the case has: "keys", "values", "key codes",
// "key scales", "key means", "key channel scales", "value codes", "value scales", "value means", "counts", "probe",
// "sequences", "positions".
KVCacheQuantize makeOp(const KVCacheQuantizeCase& quantize, const MakeNamedTensor& makeTensor);

}  // namespace mnk::test
