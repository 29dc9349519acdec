#include "Numbers.hpp"

#include <algorithm>

namespace mnk::fuzz {

namespace {

// Of the axes that are not 0: what the C API counts to tell whether a shape is one.
bool isCountable(const TensorSpec& spec) {
  uint64_t product = 1;
  for (const uint64_t extent : spec.shape) {
    if (extent != 0 && __builtin_mul_overflow(product, extent, &product)) return false;
  }
  return product <= UINT64_MAX / 8;
}

bool fits(const TensorSpec& spec) {
  return spec.offset % spec.elementBytes() == 0 && spec.offset <= Arena::kRegionBytes &&
         spec.bytes() <= Arena::kRegionBytes - spec.offset;
}

}  // namespace

bool place(TensorSpec& spec, test::Seeded& random) {
  const uint64_t bytes = spec.bytes();
  if (bytes > Arena::kRegionBytes) return false;
  const uint64_t most = (Arena::kRegionBytes - bytes) / spec.elementBytes();
  const uint64_t element = oneOf<uint64_t>(random, {0, most, random.below(most + 1), random.below(most / 16 + 1) * 16});
  spec.offset = element * spec.elementBytes();
  return true;
}

void makePossible(TensorSpec& spec, test::Seeded& random) {
  while (!isCountable(spec)) *std::max_element(spec.shape.begin(), spec.shape.end()) >>= 16;
  uint64_t elements = 1;
  const bool isLarge = std::any_of(spec.shape.begin(), spec.shape.end(), [&](uint64_t extent) {
    return __builtin_mul_overflow(elements, extent, &elements);
  });
  if (isLarge || elements > Arena::kRegionBytes / spec.elementBytes()) {
    const auto largest = std::max_element(spec.shape.begin(), spec.shape.end());
    const size_t kept = spec.shape.size() == 1 ? 1 : static_cast<size_t>(largest - spec.shape.begin());
    size_t axis = random.below(spec.shape.size());
    if (axis == kept) axis = (axis + 1) % spec.shape.size();
    spec.shape[axis] = 0;
  }
  if (!fits(spec)) place(spec, random);
}

}  // namespace mnk::fuzz
