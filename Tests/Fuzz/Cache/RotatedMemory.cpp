#include "RotatedMemory.hpp"

namespace mnk::fuzz {

std::vector<RowPlace> rowPlaces(const HeadsSpec& heads) {
  std::vector<RowPlace> all;
  if (!heads.tensor) return all;
  const mnk_heads_view places = *placesOf(heads);
  for (uint64_t sequence = 0; sequence < places.sequences; ++sequence) {
    for (uint64_t token = 0; token < places.tokens; ++token) {
      const uint64_t element = places.offset + sequence * places.sequence_stride + token * places.token_stride;
      all.push_back({heads.tensor->region, heads.tensor->offset + element * heads.tensor->elementBytes()});
    }
  }
  return all;
}

void RotatedMemory::write(const std::vector<RowPlace>& places, const std::vector<float>& numbers,
                          const std::vector<uint64_t>& positions) {
  for (size_t i = 0; i < places.size(); ++i) {
    const auto length = static_cast<ptrdiff_t>(numbers.size() / places.size());
    const auto first = numbers.begin() + static_cast<ptrdiff_t>(i) * length;
    Row& row = rows_[places[i]];
    row.numbers.assign(first, first + length);
    row.isOverwritten = positions.empty();
    if (!positions.empty()) row.position = positions[i];
  }
}

std::vector<float> RotatedMemory::read(const std::vector<RowPlace>& places) const {
  std::vector<float> all;
  for (const RowPlace& place : places) {
    const std::vector<float>& row = rows_.at(place).numbers;
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

std::optional<uint64_t> RotatedMemory::rotatedFor(const RowPlace& place, uint64_t usedAt) const {
  const auto row = rows_.find(place);
  if (row == rows_.end() || (row->second.isOverwritten && row->second.position != usedAt)) return std::nullopt;
  return row->second.position;
}

}  // namespace mnk::fuzz
