#include "MLXNativeKernels/KVCodec.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

Result<uint64_t> quantizedCacheBytes(const QuantizedCacheExtents& extents) {
  return guarded("QuantizedKVCacheView", [&]() -> Result<uint64_t> {
    MNK_TRY(auto keys, sizes(extents.keys, extents.headDim));
    uint64_t position = keys.byteCount();
    if (extents.values) {
      MNK_TRY(auto values, sizes(*extents.values, extents.valueHeadDim));
      position += values.byteCount();
    }
    std::optional<uint64_t> bytes = position;
    for (const uint64_t extent : {extents.heads, extents.capacity, extents.sequences}) {
      bytes = bytes ? checkedMultiply(*bytes, extent) : bytes;
    }
    if (bytes) return *bytes;
    return Error{.op = "QuantizedKVCacheView",
                 .what = "the cache has too many bytes to count",
                 .got = fmt::format("{} heads, capacity {} and {} sequences of {} bytes", extents.heads,
                                    extents.capacity, extents.sequences, position),
                 .expected = "less than 2^64 bytes",
                 .fix = "Pass smaller extents."};
  });
}

}  // namespace mnk
