#include "Ops/FlashDecode/AttentionHistory.hpp"

#include <algorithm>

#include "Harness/PlanBuffer.hpp"
#include "Ops/FlashDecode/FlashDecodeReference.hpp"
#include "Ops/FlashDecode/TokenAttention.hpp"

namespace mnk::test {

void AttentionHistory::append(const std::vector<float>& keys, const std::vector<float>& values, uint32_t sequence) {
  Tokens& tokens = sequences_[sequence];
  tokens.keys.insert(tokens.keys.end(), keys.begin(), keys.end());
  tokens.values.insert(tokens.values.end(), values.begin(), values.end());
}

void AttentionHistory::truncate(uint64_t position, uint32_t sequence) {
  Tokens& tokens = sequences_[sequence];
  tokens.keys.resize(position * kvHeads_ * headDim_);
  tokens.values.resize(position * kvHeads_ * valueHeadDim_);
}

uint64_t AttentionHistory::size(uint32_t sequence) const {
  const auto found = sequences_.find(sequence);
  return found == sequences_.end() ? 0 : found->second.keys.size() / (kvHeads_ * headDim_);
}

std::pair<std::vector<float>, std::vector<float>> AttentionHistory::token(uint64_t position, uint32_t sequence) const {
  const auto part = [&](const std::vector<float>& all, uint64_t length) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(position * length);
    return std::vector<float>(begin, begin + static_cast<ptrdiff_t>(length));
  };
  const Tokens& tokens = sequences_.at(sequence);
  return {part(tokens.keys, kvHeads_ * headDim_), part(tokens.values, kvHeads_ * valueHeadDim_)};
}

std::vector<double> AttentionHistory::attended(const std::vector<float>& queries,
                                               const std::vector<std::vector<uint64_t>>& seen,
                                               uint32_t sequence) const {
  const uint64_t rows = seen.size(), length = size(sequence);
  if (length == 0) return std::vector<double>(rows * queryHeads_ * valueHeadDim_);
  const Tokens& tokens = sequences_.at(sequence);
  return test::attended({.rows = rows,
                         .heads = queryHeads_,
                         .kvHeads = kvHeads_,
                         .headDim = headDim_,
                         .valueHeadDim = valueHeadDim_,
                         .length = length,
                         .queries = queries,
                         .keys = tokens.keys,
                         .values = tokens.values,
                         .options = {.isCausal = false},
                         .sees = [&](uint64_t row, uint64_t position) {
                           return std::find(seen[row].begin(), seen[row].end(), position) != seen[row].end();
                         }});
}

}  // namespace mnk::test
