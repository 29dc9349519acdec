#include "Ops/FlashDecode/AttentionHistory.hpp"

#include <algorithm>
#include <limits>

#include "CoreTests.h"
#include "Harness/PlanBuffer.hpp"
#include "Harness/RawBytes.hpp"
#include "Ops/FlashDecode/FlashDecodeReference.hpp"

namespace mnk::test {

std::vector<double> attended(const TokenAttention& tokens) {
  const uint64_t rows = tokens.rows, length = tokens.length;
  const uint64_t valueHeadDim = tokens.valueHeadDim != 0 ? tokens.valueHeadDim : tokens.headDim;
  FlashDecode op{.queries = f32(rows, tokens.heads, tokens.headDim),
                 .cache = KVCacheView{.keys = f32(length, tokens.kvHeads, tokens.headDim),
                                      .values = f32(length, tokens.kvHeads, valueHeadDim),
                                      .layout = KVLayout::tokenMajor,
                                      .pinned = tokens.pinned},
                 .sequences = {{0, length}},
                 .options = tokens.options};
  OperandBytes bytes{
      {"queries", rawBytes(tokens.queries)}, {"keys", rawBytes(tokens.keys)}, {"values", rawBytes(tokens.values)}};
  if (tokens.sees) {
    op.options.mask = f32(rows, length);
    std::vector<float> mask;
    for (uint64_t i = 0; i < rows * length; ++i) {
      mask.push_back(tokens.sees(i / length, i % length) ? 0 : -std::numeric_limits<float>::infinity());
    }
    bytes["mask"] = rawBytes(mask);
  }
  std::vector<double> out;
  for (const AttendedRow& row : attended(op, bytes)) out.insert(out.end(), row.output.begin(), row.output.end());
  return out;
}

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

void core_test_reference_attention(const core_test_attention* of, const float* queries, const float* keys,
                                   const float* values, const bool* held, float* out) {
  const uint64_t planeElements = of->length * of->kv_heads * of->head_dim;
  mnk::test::TokenAttention tokens{
      .rows = of->rows,
      .heads = of->heads,
      .kvHeads = of->kv_heads,
      .headDim = of->head_dim,
      .length = of->length,
      .pinned = of->pinned,
      .queries = {queries, of->rows * of->heads * of->head_dim},
      .keys = {keys, planeElements},
      .values = {values, planeElements},
      .options = {.scale = of->scale, .window = of->window, .windowSeesPinned = of->pinned != 0}};
  if (held) tokens.sees = [=](uint64_t, uint64_t position) { return held[position]; };
  for (const double element : attended(tokens)) *out++ = static_cast<float>(element);
}
