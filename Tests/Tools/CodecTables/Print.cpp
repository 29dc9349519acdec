#include "Print.hpp"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "CodeGuess.hpp"
#include "Codec.hpp"
#include "LloydMax.hpp"
#include "SignSearch.hpp"

namespace mnk::tables {

namespace {

std::string literal(float x) {
  // The fewest digits that round-trip, and a point, without which it would not be a floating-point literal.
  char text[32];
  for (int digits = 1; digits <= 9; digits++) {
    std::snprintf(text, sizeof text, "%.*g", digits, double(x));
    if (std::strtof(text, nullptr) == x) break;
  }
  const std::string number = text;
  return number + (number.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}

std::string literal(uint32_t x) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08xu", x);
  return text;
}

// Sections, such as the levels for each number of bits, start on new lines.
template <typename T>
std::string table(const char* type, const char* name, const std::vector<std::vector<T>>& sections) {
  std::string rows;
  size_t count = 0;
  for (const std::vector<T>& section : sections) {
    for (size_t i = 0; i < section.size(); i++) rows += (i % 8 == 0 ? "\n    " : " ") + literal(section[i]) + ",";
    count += section.size();
  }
  return "constant " + std::string(type) + " " + name + "[" + std::to_string(count) + "] = {" + rows + "\n};\n";
}

std::vector<float> turboLevels(int bits) {
  std::vector<float> levels;
  for (const double level : lloydMaxLevels(bits)) levels.push_back(clearlyRounded(level));
  return levels;
}

namespace mlx1 {
#define constant [[maybe_unused]] constexpr
using uint = uint32_t;
#include "Common/Mlx1Tables.h"
#undef constant
}  // namespace mlx1

}  // namespace

std::string turboTables() {
  std::vector<std::vector<float>> levels;
  for (int bits = 2; bits <= 8; bits++) levels.push_back(turboLevels(bits));
  std::vector<std::vector<uint32_t>> signs;
  for (const auto& [headDim, seed] : kSignSeeds) signs.push_back(signsOf(headDim, seed));
  const std::vector<std::vector<float>> reach = {{std::begin(kReach), std::end(kReach)}};
  return R"(// Made by .ci/make-tables: constants of the `turbo` codec. Levels are the best there are for numbers of the
// standard normal distribution, and boundaries are their midpoints. Levels of `bits` stand from entry
// (1 << (bits - 1)) - 2 on: the positive half, in rising order, of which the negative half is the mirror image.
#pragma once
#include "MetalCompat.h"

// clang-format off
)" + table("float", "kTurboLevels", levels) +
         R"(
// For D elements, a power of two, from word D / 32 - 1 on; then those for 80, 96, 112 and 192 elements, which take 3,
// 3, 4 and 6 words. Bit j % 32 of word j / 32 set: element j changes its sign.
)" + table("uint", "kTurboSigns", signs) +
         R"(
// By bits, for the search for a better scale: candidate m of M is 1 + reach * (m - (M - 1) / 2) / sqrt(M - 1) times the
// plain scale, so that 5 candidates are reach / 2 apart and 17 are reach / 4 apart.
)" + table("float", "kTurboReach", reach) +
         "// clang-format on\n";
}

std::string codeGuesses() {
  std::vector<std::vector<float>> turbo, mlx1;
  for (int bits = 2; bits <= 8; bits++) {
    const std::vector<float> levels = turboLevels(bits);
    std::vector<float> boundaries;
    for (size_t i = 0; i + 1 < levels.size(); i++) boundaries.push_back((levels[i] + levels[i + 1]) / 2);
    // 17 candidates go twice as far as 5.
    turbo.push_back(codeGuess(bits, boundaries, 2 * kReach[bits]));
  }
  for (const auto& [bits, first] : {std::pair{4, 0}, std::pair{5, 8}, std::pair{6, 24}, std::pair{8, 56}}) {
    const size_t count = (size_t(1) << (bits - 1)) - 1;
    mlx1.push_back(codeGuess(bits, std::span(mlx1::kMlx1Boundaries).subspan(size_t(first), count), 0));
  }
  return R"(// Made by .ci/make-tables: the polynomials that codes are guessed by, see CodeSearch.h. Rows of six: the coefficients
// of x, x * |x| and so on, and the largest |x|. Up to 5 bits two coefficients are enough.
#pragma once
#include "../Common/MetalCompat.h"

// clang-format off
// For 2 to 8 bits.
)" + table("float", "kTurboGuesses", turbo) +
         R"(
// For 4, 5, 6 and 8 bits.
)" + table("float", "kMlx1Guesses", mlx1) +
         "// clang-format on\n";
}

}  // namespace mnk::tables
