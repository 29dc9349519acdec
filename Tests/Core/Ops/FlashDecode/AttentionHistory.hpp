// FlashDecodeReference over f32 tokens in plain lists, as tests of all languages have them, and over the tokens of
// sequences.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
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

// The tokens of sequences, all of them, and attention over those that a row sees.
class AttentionHistory {
 public:
  // Values have the head dim of keys without one of their own.
  AttentionHistory(uint64_t queryHeads, uint64_t kvHeads, uint64_t headDim, uint64_t valueHeadDim = 0)
      : queryHeads_(queryHeads),
        kvHeads_(kvHeads),
        headDim_(headDim),
        valueHeadDim_(valueHeadDim != 0 ? valueHeadDim : headDim) {}

  // Keys [kvHeads, headDim] and values [kvHeads, valueHeadDim] of tokens.
  void append(const std::vector<float>& keys, const std::vector<float>& values, uint32_t sequence = 0);
  void truncate(uint64_t position, uint32_t sequence = 0);
  void copy(uint32_t source, uint32_t target) { sequences_[target] = sequences_[source]; }
  uint64_t size(uint32_t sequence = 0) const;

  // What rows of queries [rows, queryHeads, headDim] make of the positions that each of them sees.
  std::vector<double> attended(const std::vector<float>& queries, const std::vector<std::vector<uint64_t>>& seen,
                               uint32_t sequence = 0) const;

 private:
  struct Tokens {
    std::vector<float> keys, values;
  };

  uint64_t queryHeads_;
  uint64_t kvHeads_;
  uint64_t headDim_;
  uint64_t valueHeadDim_;
  std::map<uint32_t, Tokens> sequences_;
};

}  // namespace mnk::test
