#include "Cases/AttentionHistory.hpp"

#include <limits>

#include "Reference/FlashDecodeReference.hpp"
#include "Support/PlanBuffer.hpp"

namespace mnk::test {

namespace {

std::vector<std::byte> bytesOf(const std::vector<float>& floats) {
  const auto bytes = std::as_bytes(std::span(floats));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void AttentionHistory::append(const std::vector<float>& keys, const std::vector<float>& values, uint32_t sequence) {
  Tokens& tokens = sequences_[sequence];
  tokens.keys.insert(tokens.keys.end(), keys.begin(), keys.end());
  tokens.values.insert(tokens.values.end(), values.begin(), values.end());
}

void AttentionHistory::truncate(uint64_t position, uint32_t sequence) {
  Tokens& tokens = sequences_[sequence];
  tokens.keys.resize(position * kvHeads_ * headDim_);
  tokens.values.resize(position * kvHeads_ * headDim_);
}

uint64_t AttentionHistory::size(uint32_t sequence) const {
  const auto found = sequences_.find(sequence);
  return found == sequences_.end() ? 0 : found->second.keys.size() / (kvHeads_ * headDim_);
}

// A mask over a linear cache of all tokens says what each row sees.
std::vector<double> AttentionHistory::attended(const std::vector<float>& queries,
                                               const std::vector<std::vector<uint64_t>>& seen,
                                               uint32_t sequence) const {
  const uint64_t rows = seen.size(), length = size(sequence);
  std::vector<double> out;
  if (length == 0) return std::vector<double>(rows * queryHeads_ * headDim_);
  const Tokens& tokens = sequences_.at(sequence);
  std::vector<float> mask(rows * length, -std::numeric_limits<float>::infinity());
  for (uint64_t row = 0; row < rows; ++row) {
    for (const uint64_t position : seen[row]) mask.at(row * length + position) = 0;
  }
  FlashDecode op{.queries = planTensor(DType::f32, {rows, queryHeads_, headDim_}),
                 .over = KVCacheView{.keys = planTensor(DType::f32, {length, kvHeads_, headDim_}),
                                     .values = planTensor(DType::f32, {length, kvHeads_, headDim_}),
                                     .layout = KVLayout::tokenMajor},
                 .sequences = {{0, length}}};
  op.options.isCausal = false;
  op.options.mask = planTensor(DType::f32, {rows, length});
  const OperandBytes bytes{{"queries", bytesOf(queries)},
                           {"keys", bytesOf(tokens.keys)},
                           {"values", bytesOf(tokens.values)},
                           {"mask", bytesOf(mask)}};
  for (const AttendedRow& row : test::attended(op, bytes)) out.insert(out.end(), row.output.begin(), row.output.end());
  return out;
}

}  // namespace mnk::test
