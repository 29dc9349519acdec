#include "Print.hpp"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <vector>

#include "Codec.hpp"
#include "LloydMax.hpp"
#include "SignSearch.hpp"

namespace mnk::tables {

namespace {

std::string literal(float x) {
  // As few digits as give this very float, and a point, without which it would be no number of the language.
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

// Sections, such as the levels of each number of bits, start lines of their own.
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

}  // namespace

std::string turboTables() {
  std::vector<std::vector<float>> levels, boundaries;
  for (int bits = 2; bits <= 8; bits++) {
    std::vector<float>& of = levels.emplace_back();
    for (const double level : lloydMaxLevels(bits)) of.push_back(clearlyRounded(level));
    std::vector<float>& between = boundaries.emplace_back();
    // The sum of two floats of like size is exact in double.
    for (size_t i = 0; i + 1 < of.size(); i++) between.push_back(float((double(of[i]) + double(of[i + 1])) / 2));
    between.push_back(std::numeric_limits<float>::max());
  }
  std::vector<std::vector<uint32_t>> signs;
  for (const auto& [headDim, seed] : kSignSeeds) signs.push_back(signsOf(headDim, seed));
  const std::vector<std::vector<float>> reach = {{std::begin(kReach), std::end(kReach)}};
  return R"(// Made by .ci/make-tables: constants of the `turbo` codec. Levels are the best there are for numbers of the
// standard normal distribution. Levels and boundaries of `bits` stand from entry (1 << (bits - 1)) - 2 on: the positive
// half, in rising order, of which the negative half is the mirror image.
#pragma once
#include "Words.h"

// clang-format off
)" + table("float", "kTurboLevels", levels) +
         R"(
// Where a level and the next meet; zero, in the middle, is not listed. Nothing passes the last entry of each.
)" + table("float", "kTurboBoundaries", boundaries) +
         R"(
// For D elements from word D / 32 - 1 on. Bit j % 32 of word j / 32 set: element j changes its sign.
)" + table("uint", "kTurboSigns", signs) +
         R"(
// By bits, for the search for a better scale: candidate m of M is 1 + reach * (m - (M - 1) / 2) / sqrt(M - 1) times the
// plain scale, so that 5 candidates are reach / 2 apart and 17 are reach / 4 apart.
)" + table("float", "kTurboReach", reach) +
         "// clang-format on\n";
}

}  // namespace mnk::tables
