// Quantizes many numbers times a factor like KVCacheQuantize.
#include "../../Shaders/KVCacheQuantize/CodeSearch.h"

struct CodeSearchParams {
  uint numbers;
  float factor;
};

kernel void searchCodes(
    constant CodeSearchParams& p [[buffer(0)]], device const float* numbers [[buffer(1)]],
    device uint* codes [[buffer(2)]], uint index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  threadgroup_array(float, tables, kCodeTableFloats);
  fillCodeTables(tables, kvKeyBits, index, threads);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  constant const float* guess = codeGuess(kvKeyBits);
  for (uint i = index; i < p.numbers; i += threads) {
    codes[i] = codesOf(tables, guess, kvKeyBits, withinGuess(guess, float4(numbers[i])) * p.factor).x;
  }
}
export_kernel(searchCodes)
