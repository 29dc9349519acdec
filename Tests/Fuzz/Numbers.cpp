#include "Numbers.hpp"

#include <algorithm>

namespace mnk::fuzz {

namespace {

// Of the axes that are not 0: what the C door counts to tell whether a shape is one.
bool isCountable(const TensorWords& words) {
  uint64_t product = 1;
  for (const uint64_t extent : words.shape) {
    if (extent != 0 && __builtin_mul_overflow(product, extent, &product)) return false;
  }
  return product <= UINT64_MAX / 8;
}

bool fits(const TensorWords& words) {
  return words.offset % words.elementBytes() == 0 && words.offset <= World::kArenaBytes &&
         words.bytes() <= World::kArenaBytes - words.offset;
}

}  // namespace

uint64_t edge(test::Seeded& random, std::initializer_list<uint64_t> near) {
  constexpr uint64_t kFixed[] = {0, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63};
  const uint64_t index = random.below(std::size(kFixed) + 2 * near.size());
  const uint64_t base = index < std::size(kFixed) ? kFixed[index] : near.begin()[(index - std::size(kFixed)) / 2];
  return base + random.below(5) - 2;  // below 0 is just below 2^64
}

bool place(TensorWords& words, test::Seeded& random) {
  const uint64_t bytes = words.bytes();
  if (bytes > World::kArenaBytes) return false;
  const uint64_t most = (World::kArenaBytes - bytes) / words.elementBytes();
  const uint64_t element = oneOf<uint64_t>(random, {0, most, random.below(most + 1), random.below(most / 16 + 1) * 16});
  words.offset = element * words.elementBytes();
  return true;
}

void makePossible(TensorWords& words, test::Seeded& random) {
  while (!isCountable(words)) *std::max_element(words.shape.begin(), words.shape.end()) >>= 16;
  uint64_t elements = 1;
  const bool isLarge = std::any_of(words.shape.begin(), words.shape.end(), [&](uint64_t extent) {
    return __builtin_mul_overflow(elements, extent, &elements);
  });
  if (isLarge || elements > World::kArenaBytes / words.elementBytes()) {
    const auto largest = std::max_element(words.shape.begin(), words.shape.end());
    const size_t kept = words.shape.size() == 1 ? 1 : static_cast<size_t>(largest - words.shape.begin());
    size_t axis = random.below(words.shape.size());
    if (axis == kept) axis = (axis + 1) % words.shape.size();
    words.shape[axis] = 0;
  }
  if (!fits(words)) place(words, random);
}

}  // namespace mnk::fuzz
