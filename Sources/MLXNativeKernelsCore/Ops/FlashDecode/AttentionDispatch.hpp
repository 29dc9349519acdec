// Shared by the dispatches that finish attention: result bindings of FlashDecode and MergePartials, and the kernel that
// merges parts of rows.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "FlashDecode/FlashDecodeTypes.h"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"

namespace mnk {

// Function constants of kernels that finish rows. If the kernel only stores the parts of splits, the results do not
// matter.
std::vector<FunctionConstant> finishConstants(const AttentionResults& results, const QuantizedKVCacheView* quantized,
                                              bool hasSinks);

// A range of memory: of a tensor, or, if `buffer` is null, of the plan's scratch memory.
struct MemoryPart {
  std::shared_ptr<Buffer> buffer;
  uint64_t offset = 0;
  uint64_t length = 0;

  static MemoryPart of(const Tensor& tensor);
};
// Sums and stats of splits, in the caller's scratch memory, or in the plan's scratch memory from offset `bytesBefore`.
std::pair<MemoryPart, MemoryPart> splitBindings(const std::optional<Tensor>& scratch, uint64_t bytesBefore,
                                                uint64_t sumsBytes, uint64_t statsBytes);

void bindTo(Dispatch& dispatch, uint32_t index, const MemoryPart& memory, std::vector<Region> regions, Access access);
// Binds all results. `regions` maps the bytes per row and head of a tensor to the regions that are written.
void bindResults(Dispatch& dispatch, const AttentionResults& results, uint64_t headDim,
                 const std::function<std::vector<Region>(uint64_t bytesPerVector)>& regions);

struct ReduceDispatch {
  std::string_view kind;
  uint64_t rows = 0;
  uint64_t parts = 0;
  uint64_t rowStride = 0;  // in vectors
  uint64_t partStride = 0;
  uint32_t simdgroups = 0;  // at most
  FlashDecodeFinish finish = {};
  MemoryPart sums;
  MemoryPart stats;
  const QuantizedKVCacheView* quantized = nullptr;  // the cache that the parts are from
  std::optional<Tensor> sinks;
  AttentionResults results;
};
Dispatch makeReduce(const ReduceDispatch& reduce);

}  // namespace mnk
