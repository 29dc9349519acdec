#include "TensorMutations.hpp"

#include <algorithm>

namespace mnk::fuzz {

void changeTheRank(TensorSpec& tensor, test::Seeded& random) {
  std::vector<uint64_t>& shape = tensor.shape;
  switch (random.below(4)) {
    case 0:
      shape.insert(shape.begin() + static_cast<ptrdiff_t>(random.below(shape.size() + 1)), 1 + random.below(2));
      return;
    case 1:
      if (shape.size() > 1) std::swap(shape[random.below(shape.size())], shape[random.below(shape.size())]);
      return;
    case 2:
      shape.clear();
      return;
    default:
      if (!shape.empty()) shape.erase(shape.begin() + static_cast<ptrdiff_t>(random.below(shape.size())));
  }
}

void changeTheDType(TensorSpec& tensor, test::Seeded& random) {
  tensor.dtype = test::number<mnk_dtype>(static_cast<uint32_t>(random.below(7)));
}

void moveAnExtent(TensorSpec& tensor, test::Seeded& random) {
  if (tensor.shape.empty()) return;
  uint64_t& extent = tensor.shape[random.below(tensor.shape.size())];
  extent = coin(random, 2, 3) ? extent + random.below(3) - 1 : edge(random, {extent, uint64_t{1} << 31});
}

void moveBeside(TensorSpec& moved, const TensorSpec& other, test::Seeded& random) {
  if (&moved == &other || std::max(moved.bytes(), other.bytes()) > Arena::kRegionBytes) return;
  const auto bytes = static_cast<int64_t>(moved.bytes()), size = static_cast<int64_t>(moved.elementBytes());
  const auto begin = static_cast<int64_t>(other.offset), end = begin + static_cast<int64_t>(other.bytes());
  const int64_t drawn = oneOf<int64_t>(random, {begin - bytes, begin - bytes + size, begin, end - size, end});
  moved.region = other.region;
  const int64_t most = static_cast<int64_t>(Arena::kRegionBytes) - bytes;
  moved.offset = static_cast<uint64_t>(std::clamp<int64_t>(drawn, 0, std::max<int64_t>(most, 0)) / size * size);
}

}  // namespace mnk::fuzz
