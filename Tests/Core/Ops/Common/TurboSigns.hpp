// What is chosen, not computed, about the turbo codec: its signs, and how far it looks for a better size. Typed in
// again, so that a change of what is shipped shows.
#pragma once
#include <cstdint>
#include <span>

namespace mnk::test {

constexpr uint64_t kTurboHeadDims[] = {32, 64, 80, 96, 112, 128, 192, 256, 512};

// A word for each 32 elements, and one for the rest. Bit j % 32 of word j / 32 set: element j changes its sign.
std::span<const uint32_t> turboSignWords(uint64_t headDim);

// With M candidates, candidate m is 1 + reach * (m - (M - 1) / 2) / sqrt(M - 1) times the root mean square.
double turboReach(uint32_t bits);

}  // namespace mnk::test
