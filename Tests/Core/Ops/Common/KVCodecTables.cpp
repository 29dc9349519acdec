#include "Ops/Common/KVCodecTables.hpp"

#include <cmath>
#include <map>

#include "Harness/ShippedTables.hpp"

namespace mnk::test {

namespace {

// Both halves of a codebook that ships its positive one. The last boundary stands for none.
CodecTable mirrored(const shipped::Codebook& codebook) {
  CodecTable table;
  table.levels.assign(codebook.levels.begin(), codebook.levels.end());
  table.boundaries.assign(codebook.boundaries.begin(), codebook.boundaries.end() - 1);
  table.boundaries.insert(table.boundaries.begin(), 0);
  for (const float level : codebook.levels) table.levels.insert(table.levels.begin(), -level);
  for (size_t i = 0; i + 1 < codebook.levels.size(); ++i) {
    table.boundaries.insert(table.boundaries.begin(), -codebook.boundaries[i]);
  }
  return table;
}

CodecTable madeTable(const KVCodec& codec) {
  if (codec.name == KVCodec::Name::turbo) return mirrored(shipped::turbo(static_cast<int>(codec.bits)));
  if (codec.name != KVCodec::Name::mlx1Affine4) return mirrored(shipped::mlx1(static_cast<int>(codec.bits)));
  CodecTable affine;
  for (int code = 0; code < 16; ++code) affine.levels.push_back(code - 7.5);
  for (int code = 1; code < 16; ++code) affine.boundaries.push_back(code - 8);
  return affine;
}

}  // namespace

const CodecTable& tableOf(const KVCodec& codec) {
  thread_local std::map<std::pair<KVCodec::Name, uint32_t>, CodecTable> tables;
  const auto [found, isNew] = tables.try_emplace({codec.name, codec.bits});
  if (isNew) found->second = madeTable(codec);
  return found->second;
}

std::vector<double> signsOf(KVCodec::Name codec, uint64_t headDim) {
  std::span<const uint32_t> words;
  if (codec == KVCodec::Name::turbo) words = shipped::turboSigns(headDim);
  if (codec == KVCodec::Name::mlx1 && (headDim == 256 || headDim == 512)) words = shipped::kMlx1Signs;
  std::vector<double> signs(headDim, 1);
  for (uint64_t j = 0; j < headDim && !words.empty(); ++j) {
    if (words[j / 32] >> j % 32 & 1) signs[j] = -1;
  }
  return signs;
}

std::vector<double> turboSizes(uint32_t bits, uint32_t candidates) {
  if (candidates == 1) return {1};
  std::vector<double> sizes;
  for (uint32_t m = 0; m < candidates; ++m) {
    const double fromMiddle = m - (candidates - 1) / 2.0;
    sizes.push_back(1 + double{shipped::kTurboReach[bits]} * fromMiddle / std::sqrt(candidates - 1.0));
  }
  return sizes;
}

}  // namespace mnk::test
