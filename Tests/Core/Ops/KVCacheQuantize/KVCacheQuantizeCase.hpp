// One call of KVCacheQuantize as a name and a few numbers, and what it must do. Cases that are drawn run on every
// device, through the plan and in the fuzzer.
#pragma once
#include <string>
#include <vector>

#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
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

struct DrawnCoding {
  KVCodec codec;
  uint64_t headDim;
};
std::vector<DrawnCoding> everyCoding();  // every codec at every head dim
std::vector<std::string> codingsOtherThan(const std::vector<DrawnCoding>& seen);
// Codecs of keys and values, of head dims whose elements the lanes of a kernel can share.
std::pair<DrawnCoding, DrawnCoding> drawnCodings(Seeded& random);

// Valid cases of every kind.
KVCacheQuantizeCase drawnQuantize(Seeded& random);
inline constexpr uint64_t kDrawnQuantizes = 900;  // which together reach every kernel and every coding
std::vector<KVCacheQuantizeCase> drawnQuantizes(uint64_t count);
// What a draw would rarely hit.
std::vector<KVCacheQuantizeCase> probeCases();  // mlx1's elements as they are compared
std::vector<KVCacheQuantizeCase> manyVectorsCases();

// Keys or values of the cache.
QuantizedKVPlane makeCachePlane(const KVCacheQuantizeCase& quantize, bool isKeys, const MakeNamedTensor& makeTensor);

// The op of a case on tensors of the caller's making, those that the case has: "keys", "values", "key codes",
// "key scales", "key means", "key channel scales", "value codes", "value scales", "value means", "counts", "probe",
// "sequences", "positions".
KVCacheQuantize makeOp(const KVCacheQuantizeCase& quantize, const MakeNamedTensor& makeTensor);

// An op that writes to the same slots.
KVCacheWrite placesOf(const KVCacheQuantize& op);

// Vectors of many sizes to store in a plane, a few of them without a direction or without a value, and many that a
// codec could stumble over.
std::vector<std::byte> sourceVectors(Seeded& random, const HeadsView& source, const QuantizedKVPlane& plane);
// Means, or channel scales.
std::vector<float> quantizeFactors(Seeded& random, uint64_t count, bool areScales);
using KVCacheQuantizeRun = OpRun<KVCacheQuantizeCase>;
void fill(KVCacheQuantizeRun& run, const KVCacheQuantizeCase& quantize, Seeded& random);

// The cache, the counts and the probe of a call that broke no rule hold what the reference says.
void expectStored(const KVCacheQuantize& op, const OperandMemory& memory);
void expectOutcome(const KVCacheQuantizeRun& run);

}  // namespace mnk::test
