// What an encoder knows of memory whose rows it has rotated by positions that follow a cache, so that the rows are used
// at these positions only.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "Runtime/HazardTracker.hpp"

namespace mnk {

class RotatedRows {
 public:
  // Rows of one sequence, with a vector for each head.
  struct Block {
    Block(const HeadsView& view, uint64_t firstRow, uint64_t rowCount);
    uint64_t vectorAt(uint64_t row, uint64_t head) const { return first + row * rowStride + head * headStride; }
    uint64_t end() const { return vectorAt(rows - 1, heads - 1) + vectorBytes; }
    bool operator==(const Block&) const = default;

    const void* space;
    uint64_t first, rowStride, headStride, vectorBytes, rows, heads;
  };
  // The token for which a row was rotated.
  struct Token {
    const void* cache = nullptr;
    uint32_t sequence = 0;
    uint64_t position = 0;
    uint64_t embedding = 0;  // a hash of the angles of each position
  };
  // A vector of a block, and what the encoder did to it last.
  struct Vector {
    uint64_t row = 0, head = 0;
    std::optional<Token> token;  // none: it was not rotated
    bool isKnown = false;        // a rotation wrote it, or left it as it was and wrote elsewhere
    bool isWrittenSince = false;
    bool isReplacedSince = false;  // without being read
    bool isSplit = false;          // what was rotated is not one vector within this one

    bool isRotated() const { return token && !isWrittenSince; }
  };

  // `recorded` is what the encoder's dispatches touch, in their order.
  explicit RotatedRows(const std::vector<Touched>& recorded) : recorded_(recorded) {}

  // Makes room, so that `add` cannot fail for this number of blocks.
  void reserve(size_t blocks);
  // The first row is rotated for this token, the others for those after it; without a token, rows are not rotated.
  void add(const Block& block, const std::optional<Token>& token) noexcept;

  // Whether a row was rotated for this token, by any embedding.
  bool isAnyFor(const Token& token) const;
  // Whether a dispatch wrote a byte of the vector.
  bool isWritten(const Block& block, const Vector& vector) const;

  // The first vector of the block for which `isWrong` holds. The block lies within its tensor.
  template <typename IsWrong>
  std::optional<Vector> firstWrong(const Block& block, IsWrong isWrong) const {
    if (block.rows == 0 || block.heads == 0) return std::nullopt;
    // Most blocks were rotated as a whole, or are of other memory.
    std::optional<Vector> alike = ofAll(block);
    for (uint64_t row = 0; row < block.rows; ++row) {
      for (uint64_t head = 0; head < (alike ? 1 : block.heads); ++head) {
        const Vector vector = alike ? *alike : at(block, row, head);
        if (isWrong(vector)) return vector;
      }
      if (alike) alike->row = row + 1;
      if (alike && alike->token) ++alike->token->position;
    }
    return std::nullopt;
  }

 private:
  struct Run {
    Block block;
    std::optional<Token> token;
    size_t recorded;  // how much the encoder had recorded then
  };
  // A vector of a block that shares bytes with a range, and whether it is the only one and lies within.
  struct Place {
    uint64_t row, head;
    bool fits;
  };
  // Tokens for which rows were rotated.
  struct Tokens {
    Token first;
    uint64_t end;
  };
  static std::optional<Place> placeIn(const Block& block, const void* space, uint64_t begin, uint64_t end);
  static std::optional<Token> tokenAt(const Run& run, uint64_t row);
  bool isWrittenFrom(size_t recorded, const Region& bytes, const void* space) const;
  bool isReplacedFrom(size_t recorded, const Region& bytes, const void* space) const;
  // The first vector, if what holds for it also holds for all heads and rows, with the tokens that follow.
  std::optional<Vector> ofAll(const Block& block) const;
  Vector at(const Block& block, uint64_t row, uint64_t head) const;

  const std::vector<Touched>& recorded_;
  std::vector<Run> runs_;  // in the order of the rotations
  std::vector<Tokens> tokens_;
};

}  // namespace mnk
