// What the rotations of one encoder leave in memory, and the positions of the cache for which they rotate.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "Arena.hpp"
#include "MLXNativeKernels/mnk.h"

namespace mnk::fuzz {

// Vectors as they are passed. Without a tensor they are left out.
struct HeadsSpec {
  std::optional<TensorSpec> tensor = {};
  mnk_heads_view view{};  // everything but the tensor
};

// Where the vectors lie, with strides whatever the view had. Nothing where its tensor has another rank.
std::optional<mnk_heads_view_strides> placesOf(const HeadsSpec& heads);

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
  void leave(const std::vector<RowPlace>& places) {
    for (const RowPlace& place : places) {
      Row& row = rows_[place];
      row.token.reset();
      row.isWritten = false;
    }
  }
  // Rows that were rotated for these tokens, or back.
  void write(const std::vector<RowPlace>& places, const std::vector<float>& numbers, const Tokens& tokens,
             const Angles& angles) {
    set(places, numbers);
    leave(places);
    for (size_t i = 0; i < places.size() && !angles.isInverse; ++i) {
      rows_[places[i]].token = tokens[i];
      rows_[places[i]].angles = angles;
    }
  }
  // Rows that were rotated by numbers, from others.
  void write(const std::vector<RowPlace>& places, const std::vector<float>& numbers) {
    set(places, numbers);
    for (const RowPlace& place : places) rows_[place].isWritten = true;
  }
  // The numbers of rows that were written.
  std::vector<float> read(const std::vector<RowPlace>& places) const {
    std::vector<float> all;
    for (const RowPlace& place : places) {
      const std::vector<float>& row = rows_.at(place).numbers;
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }

  // What has overwritten a row since its rotation may have prepared it for any other token, but not for the same one.
  bool isMisplaced(const RowPlace& place, const RotatedToken& use) const {
    return anglesAt(place) && at(place).token != use;
  }
  // Whether nothing has prepared a row for this token.
  bool isMissing(const RowPlace& place, const RotatedToken& use) const {
    const Row row = at(place);
    return row.token == use ? row.isWritten : !row.isWritten;
  }
  // Of a row that was rotated for a token, and not written since.
  std::optional<Angles> anglesAt(const RowPlace& place) const {
    const Row row = at(place);
    return row.token && !row.isWritten ? std::optional(row.angles) : std::nullopt;
  }

 private:
  struct Row {
    std::vector<float> numbers;
    std::optional<RotatedToken> token;
    Angles angles;
    bool isWritten = false;  // since, or at all
  };
  void set(const std::vector<RowPlace>& places, const std::vector<float>& numbers) {
    for (size_t i = 0; i < places.size(); ++i) {
      const auto length = static_cast<ptrdiff_t>(numbers.size() / places.size());
      const auto first = numbers.begin() + static_cast<ptrdiff_t>(i) * length;
      rows_[places[i]].numbers.assign(first, first + length);
    }
  }
  Row at(const RowPlace& place) const {
    const auto row = rows_.find(place);
    return row == rows_.end() ? Row{} : row->second;
  }

  std::map<RowPlace, Row> rows_;
};

}  // namespace mnk::fuzz
