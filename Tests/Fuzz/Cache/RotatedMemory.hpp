// What the rotations of one encoder leave in memory, and the positions of the cache for which they rotate.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "HeadsViews.hpp"

namespace mnk::fuzz {

// Where the first vector of a row begins.
struct RowPlace {
  uint32_t region = 0;
  uint64_t byte = 0;

  auto operator<=>(const RowPlace&) const = default;
};
// The places of a view's rows; none where there is no tensor.
std::vector<RowPlace> rowPlaces(const HeadsSpec& heads);

// A token of the cache.
struct RotatedToken {
  uint32_t sequence = 0;
  uint64_t position = 0;

  bool operator==(const RotatedToken&) const = default;
};

// The token of each row; none for rows of no token.
using Tokens = std::vector<std::optional<RotatedToken>>;

// What turns a row, besides its position.
struct Angles {
  mnk_rotary_embedding_layout layout{};
  double base = 0;
  uint64_t ropeDim = 0;
  bool isInverse = false;

  bool operator==(const Angles&) const = default;
};

class RotatedMemory {
 public:
  bool isEmpty() const { return rows_.empty(); }
  // Rows that positions of the cache leave as they were, because the results go elsewhere.
  void leave(const std::vector<RowPlace>& places);
  // Rows that were rotated for these tokens, or back.
  void write(const std::vector<RowPlace>& places, const std::vector<float>& numbers, const Tokens& tokens,
             const Angles& angles);
  // Rows that were rotated by numbers, from others.
  void write(const std::vector<RowPlace>& places, const std::vector<float>& numbers);
  // The numbers of rows that were written.
  std::vector<float> read(const std::vector<RowPlace>& places) const;

  // What has overwritten a row since its rotation may have prepared it for any other token, but not for the same one.
  bool isMisplaced(const RowPlace& place, const RotatedToken& use) const;
  // Whether nothing has prepared a row for this token.
  bool isMissing(const RowPlace& place, const RotatedToken& use) const;
  // Of a row that was rotated for a token, and not written since.
  std::optional<Angles> anglesAt(const RowPlace& place) const;

 private:
  struct Row {
    std::vector<float> numbers;
    std::optional<RotatedToken> token;
    Angles angles;
    bool isWritten = false;  // since, or at all
  };
  void set(const std::vector<RowPlace>& places, const std::vector<float>& numbers);
  Row at(const RowPlace& place) const;

  std::map<RowPlace, Row> rows_;
};

}  // namespace mnk::fuzz
