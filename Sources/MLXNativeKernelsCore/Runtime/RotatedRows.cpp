#include "Runtime/RotatedRows.hpp"

#include <algorithm>

namespace mnk {

namespace {

// The bytes of a block: rows side by side, or heads, or all from the first to the last.
Region bytesOf(const RotatedRows::Block& block) {
  const uint64_t row = (block.heads - 1) * block.headStride + block.vectorBytes;
  const uint64_t head = (block.rows - 1) * block.rowStride + block.vectorBytes;
  if (block.rows == 1 || row <= block.rowStride) return {block.first, row, block.rowStride, block.rows};
  if (head <= block.headStride) return {block.first, head, block.headStride, block.heads};
  return {.offset = block.first, .rowBytes = block.end() - block.first};
}

bool shareBytes(const RotatedRows::Block& a, const RotatedRows::Block& b) {
  return a.space == b.space && overlap(bytesOf(a), bytesOf(b));
}

Region bytesOf(const RotatedRows::Block& block, const RotatedRows::Vector& vector) {
  return {.offset = block.vectorAt(vector.row, vector.head), .rowBytes = block.vectorBytes};
}

}  // namespace

RotatedRows::Block::Block(const HeadsView& view, uint64_t firstRow, uint64_t rowCount) {
  const HeadsView::Strides strides = view.resolved();
  const uint64_t bytes = byteSize(view.tensor.dtype()), tokens = std::max<uint64_t>(strides.tokens, 1);
  const MemoryRange memory = view.tensor.range();
  space = memory.space;
  first =
      memory.begin +
      (strides.offset + firstRow / tokens * strides.sequenceStride + firstRow % tokens * strides.tokenStride) * bytes;
  rowStride = strides.tokenStride * bytes;
  headStride = strides.headStride * bytes;
  vectorBytes = strides.headDim * bytes;
  rows = rowCount;
  heads = strides.heads;
}

void RotatedRows::reserve(size_t blocks) {
  const size_t needed = runs_.size() + blocks;
  if (needed > runs_.capacity()) runs_.reserve(std::max(needed, 2 * runs_.capacity()));
  tokens_.reserve(runs_.capacity() + tokens_.size());
}

void RotatedRows::add(const Block& block, const std::optional<Token>& token) noexcept {
  if (block.rows == 0 || block.heads == 0) return;
  // Of memory that is used again and again, only the last rotation counts.
  std::erase_if(runs_, [&](const Run& run) { return run.block == block && (token || !run.token); });
  runs_.push_back({block, token, recorded_.size()});
  if (!token) return;
  const uint64_t end = token->position + block.rows;
  const auto known = std::find_if(tokens_.rbegin(), tokens_.rend(), [&](const Tokens& each) {
    return each.first.cache == token->cache && each.first.sequence == token->sequence &&
           token->position >= each.first.position && token->position <= each.end;
  });
  if (known == tokens_.rend()) return tokens_.push_back({*token, end});
  known->end = std::max(known->end, end);
}

bool RotatedRows::isWritten(const Block& block, const Vector& vector) const {
  return isWrittenFrom(0, bytesOf(block, vector), block.space);
}

bool RotatedRows::isAnyFor(const Token& token) const {
  return std::any_of(tokens_.rbegin(), tokens_.rend(), [&](const Tokens& each) {
    return each.first.cache == token.cache && each.first.sequence == token.sequence &&
           token.position >= each.first.position && token.position < each.end;
  });
}

std::optional<RotatedRows::Token> RotatedRows::tokenAt(const Run& run, uint64_t row) {
  if (!run.token) return std::nullopt;
  Token token = *run.token;
  token.position += row;
  return token;
}

bool RotatedRows::isWrittenFrom(size_t recorded, const Region& bytes, const void* space) const {
  const auto begin = recorded_.begin() + static_cast<ptrdiff_t>(std::min(recorded, recorded_.size()));
  return std::any_of(begin, recorded_.end(), [&](const Touched& each) {
    return each.isWrite && each.space == space && overlap(each.region, bytes);
  });
}

// A dispatch touches what it reads before what it writes. If one without reads follows another, it counts as part of
// it, so that some replacements are not seen.
bool RotatedRows::isReplacedFrom(size_t recorded, const Region& bytes, const void* space) const {
  bool isRead = false, wasWrite = false;
  for (size_t i = recorded; i < recorded_.size(); ++i) {
    const Touched& each = recorded_[i];
    if (wasWrite && !each.isWrite) isRead = false;  // another dispatch
    wasWrite = each.isWrite;
    if (each.space != space || !overlap(each.region, bytes)) continue;
    if (each.isWrite && !isRead) return true;
    isRead = isRead || !each.isWrite;
  }
  return false;
}

std::optional<RotatedRows::Place> RotatedRows::placeIn(const Block& block, const void* space, uint64_t begin,
                                                       uint64_t end) {
  if (block.space != space || begin >= block.end() || end <= block.first) return std::nullopt;
  std::optional<Place> found;
  for (uint64_t head = 0; head < block.heads; ++head) {
    const uint64_t first = block.vectorAt(0, head);
    if (first >= end) continue;
    // The first row of the head that ends after the beginning of the range.
    const uint64_t before = begin >= first + block.vectorBytes ? begin - first - block.vectorBytes + 1 : 0;
    if (before != 0 && block.rowStride == 0) continue;
    uint64_t row = before == 0 ? 0 : (before + block.rowStride - 1) / block.rowStride;
    for (; row < block.rows && block.vectorAt(row, head) < end; ++row) {
      const uint64_t start = block.vectorAt(row, head);
      if (found) return Place{found->row, found->head, false};
      found = Place{row, head, start >= begin && start + block.vectorBytes <= end};
      if (block.rowStride == 0) break;
    }
  }
  return found;
}

std::optional<RotatedRows::Vector> RotatedRows::ofAll(const Block& block) const {
  const auto run =
      std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& each) { return shareBytes(each.block, block); });
  if (run == runs_.rend()) return Vector{};
  const auto place = placeIn(run->block, block.space, block.first, block.first + block.vectorBytes);
  const bool isAlike = (block.rows == 1 || block.rowStride == run->block.rowStride) &&
                       (block.heads == 1 || block.headStride == run->block.headStride);
  if (!place || !place->fits || !isAlike || place->row + block.rows > run->block.rows ||
      place->head + block.heads > run->block.heads) {
    return std::nullopt;
  }
  if (isWrittenFrom(run->recorded, bytesOf(block), block.space)) return std::nullopt;
  return Vector{.token = tokenAt(*run, place->row), .isKnown = true};
}

RotatedRows::Vector RotatedRows::at(const Block& block, uint64_t row, uint64_t head) const {
  Vector vector{.row = row, .head = head};
  const Region bytes = bytesOf(block, vector);
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    const auto place = placeIn(run->block, block.space, bytes.offset, bytes.offset + bytes.rowBytes);
    if (!place) continue;
    vector.token = tokenAt(*run, place->row);
    vector.isKnown = true;
    vector.isSplit = !place->fits;
    vector.isWrittenSince = isWrittenFrom(run->recorded, bytes, block.space);
    vector.isReplacedSince = vector.isWrittenSince && isReplacedFrom(run->recorded, bytes, block.space);
    break;
  }
  return vector;
}

}  // namespace mnk
