// FlashDecodeReference over f32 tokens in plain lists, as tests of all languages have them.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "MLXNativeKernels/Generated/FlashDecode.hpp"

namespace mnk::test {

struct TokenAttention {
  uint64_t rows = 1;  // the newest positions
  uint64_t heads = 0;
  uint64_t kvHeads = 0;
  uint64_t headDim = 0;
  uint64_t valueHeadDim = 0;  // 0: as headDim
  uint64_t length = 0;
  KVLayout layout = KVLayout::tokenMajor;  // of keys and values
  uint32_t pinned = 0;
  std::span<const float> queries = {};  // [rows, heads, headDim]
  std::span<const float> keys = {};     // `length` positions of [kvHeads, headDim]
  std::span<const float> values = {};   // [kvHeads, valueHeadDim]
  AttentionOptions options = {};        // without tensors
  // Hides positions in addition to the options; optional.
  std::function<bool(uint64_t row, uint64_t position)> sees = {};
};
// [rows, heads, valueHeadDim]
std::vector<double> attended(const TokenAttention& tokens);

}  // namespace mnk::test
