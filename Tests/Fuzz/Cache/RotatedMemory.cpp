#include "RotatedMemory.hpp"

namespace mnk::fuzz {

std::vector<RowPlace> rowPlaces(const HeadsSpec& heads) {
  std::vector<RowPlace> all;
  if (!heads.tensor) return all;
  const mnk_heads_view_strides places = *placesOf(heads);
  for (uint64_t sequence = 0; sequence < places.sequences; ++sequence) {
    for (uint64_t token = 0; token < places.tokens; ++token) {
      const uint64_t element = places.offset + sequence * places.sequence_stride + token * places.token_stride;
      all.push_back({heads.tensor->region, heads.tensor->offset + element * heads.tensor->elementBytes()});
    }
  }
  return all;
}

void RotatedMemory::set(const std::vector<RowPlace>& places, const std::vector<float>& numbers) {
  for (size_t i = 0; i < places.size(); ++i) {
    const auto length = static_cast<ptrdiff_t>(numbers.size() / places.size());
    const auto first = numbers.begin() + static_cast<ptrdiff_t>(i) * length;
    rows_[places[i]].numbers.assign(first, first + length);
  }
}

void RotatedMemory::leave(const std::vector<RowPlace>& places) {
  for (const RowPlace& place : places) {
    Row& row = rows_[place];
    row.token.reset();
    row.isWritten = false;
  }
}

void RotatedMemory::write(const std::vector<RowPlace>& places, const std::vector<float>& numbers, const Tokens& tokens,
                          const Angles& angles) {
  set(places, numbers);
  leave(places);
  for (size_t i = 0; i < places.size() && !angles.isInverse; ++i) {
    rows_[places[i]].token = tokens[i];
    rows_[places[i]].angles = angles;
  }
}

void RotatedMemory::write(const std::vector<RowPlace>& places, const std::vector<float>& numbers) {
  set(places, numbers);
  for (const RowPlace& place : places) rows_[place].isWritten = true;
}

std::vector<float> RotatedMemory::read(const std::vector<RowPlace>& places) const {
  std::vector<float> all;
  for (const RowPlace& place : places) {
    const std::vector<float>& row = rows_.at(place).numbers;
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

RotatedMemory::Row RotatedMemory::at(const RowPlace& place) const {
  const auto row = rows_.find(place);
  return row == rows_.end() ? Row{} : row->second;
}

bool RotatedMemory::isMisplaced(const RowPlace& place, const RotatedToken& use) const {
  return anglesAt(place) && at(place).token != use;
}

bool RotatedMemory::isMissing(const RowPlace& place, const RotatedToken& use) const {
  const Row row = at(place);
  return row.token == use ? row.isWritten : !row.isWritten;
}

std::optional<Angles> RotatedMemory::anglesAt(const RowPlace& place) const {
  const Row row = at(place);
  return row.token && !row.isWritten ? std::optional(row.angles) : std::nullopt;
}

}  // namespace mnk::fuzz
