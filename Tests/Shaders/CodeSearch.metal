// Quantizes many numbers times factors like KVCacheQuantize.
#include "../../Shaders/KVCacheQuantize/CodeSearch.h"

struct CodeSearchParams {
  uint numbers;
  uint factors;
};

// A row of codes and codebook entries for each factor. With cells, factors become smaller.
template <bool HasCells>
kernel void searchCodes(
    constant CodeSearchParams& p [[buffer(0)]], device const float* numbers [[buffer(1)]],
    device const float* factors [[buffer(2)]], device uint* codes [[buffer(3)]], device float* entries [[buffer(4)]],
    uint index [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
  threadgroup_array(float2, memory, kCodeTableFloats / 2);
  threadgroup float* tables = reinterpret_cast<threadgroup float*>(memory);
  fillCodeTables(tables, kvKeyBits, HasCells, index, threads);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  constant const float* guess = codeGuess(kvKeyBits);
  for (uint i = index; i < p.numbers; i += threads) {
    uint4 cells = uint4(0u);
    uint4 closest = uint4(0u);
    for (uint j = 0; j < p.factors; ++j) {
      const float4 x = float4(numbers[i]);
      uint4 offsets = codeOffsets(tables, guess, kvKeyBits, withinGuess(guess, kvKeyBits, x, factors[j]));
      float4 found = entriesAt(tables, offsets);
      if (HasCells) {
        if (j == 0u) {
          cells = cellOffsets(
              codeOffsets(tables, guess, kvKeyBits, withinGuess(guess, kvKeyBits, x, factors[j])), kvKeyBits);
        }
        moveToCells(tables, x * factors[j], cells, found, closest);
        offsets = cells / 2u;
      }
      codes[j * p.numbers + i] = offsets.x / 4u;
      entries[j * p.numbers + i] = found.x;
    }
  }
}
instantiate_kernel("searchCodes", searchCodes, false)
instantiate_kernel("searchCells", searchCodes, true)
