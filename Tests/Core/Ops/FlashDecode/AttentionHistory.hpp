// The tokens of sequences, all of them, and attention in double over those that a row sees.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace mnk::test {

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
  std::pair<std::vector<float>, std::vector<float>> token(uint64_t position, uint32_t sequence = 0) const;

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
