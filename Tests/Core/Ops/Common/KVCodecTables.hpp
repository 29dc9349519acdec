// Levels, boundaries and signs of the codecs, for references.
#pragma once
#include <cstdint>
#include <vector>

#include "MLXNativeKernels/KVCodec.hpp"

namespace mnk::test {

// Values of f32, in rising order, both halves.
struct CodecTable {
  std::vector<double> levels;      // 2^bits
  std::vector<double> boundaries;  // one fewer
};

const CodecTable& tableOf(const KVCodec& codec);

// 1 or -1 for each element.
std::vector<double> signsOf(KVCodec::Name codec, uint64_t headDim);

// The sizes of a vector that turbo tries, as multiples of its root mean square.
std::vector<double> turboSizes(uint32_t bits, uint32_t candidates);

}  // namespace mnk::test
