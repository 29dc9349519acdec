#include "OpMutator.hpp"

#include <algorithm>
#include <cmath>

#include "CAPI/Handles.hpp"

namespace mnk::fuzz {

namespace {

// Lengths of vectors that some kernels have, and some have not.
uint64_t anyLength(test::Seeded& random) {
  return oneOf<uint64_t>(random, {0, 2, 4, 16, 20, 32, 48, 64, 80, 96, 128, 192, 256, 260, 512, 576, 1024, 4096});
}

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

// One extent, by one or to a number that arithmetic stumbles over.
void moveAnExtent(TensorSpec& tensor, test::Seeded& random) {
  if (tensor.shape.empty()) return;
  uint64_t& extent = tensor.shape[random.below(tensor.shape.size())];
  extent = coin(random, 2, 3) ? extent + random.below(3) - 1 : edge(random, {extent, uint64_t{1} << 31});
}

// Beside another operand, at its first or last byte, or right before or behind it, where nothing is shared.
void moveBeside(TensorSpec& moved, const TensorSpec& other, test::Seeded& random) {
  if (&moved == &other || std::max(moved.bytes(), other.bytes()) > Arena::kRegionBytes) return;
  const auto bytes = static_cast<int64_t>(moved.bytes()), size = static_cast<int64_t>(moved.elementBytes());
  const auto begin = static_cast<int64_t>(other.offset), end = begin + static_cast<int64_t>(other.bytes());
  const int64_t drawn = oneOf<int64_t>(random, {begin - bytes, begin - bytes + size, begin, end - size, end});
  moved.region = other.region;
  const int64_t most = static_cast<int64_t>(Arena::kRegionBytes) - bytes;
  moved.offset = static_cast<uint64_t>(std::clamp<int64_t>(drawn, 0, std::max<int64_t>(most, 0)) / size * size);
}

}  // namespace

float wildNumber(test::Seeded& random) {
  // The reciprocal of 1e-40f is not finite.
  return oneOf(random, {0.0f, -1.0f, -0.0f, NAN, INFINITY, -INFINITY, 1e-40f, 1e-38f, 1e-30f, 0.5f, 2.0f, 1e6f, 1e38f});
}

bool areSame(const Tensor& one, const Tensor& other) {
  const MemoryRange a = one.range(), b = other.range();
  return a.begin == b.begin && a.end == b.end && one.dtype() == other.dtype();
}

bool areMixed(const std::vector<Tensor>& tensors) {
  for (const Tensor& one : tensors) {
    for (const Tensor& other : tensors) {
      if (one.range().overlaps(other.range()) && !areSame(one, other)) return true;
    }
  }
  return false;
}

Tensor OpMutator::made(TensorSpec spec) {
  makePossible(spec, random_);
  return arena_.make(spec, random_)->tensor;
}

Tensor OpMutator::anyTensor() {
  if (tensors_.empty()) return {};
  TensorSpec spec = arena_.specOf(*tensors_[random_.below(tensors_.size())]);
  if (coin(random_, 1, 2)) changeTheRank(spec, random_);
  // What there is one of for each head, for instance.
  if (coin(random_, 1, 3) && !spec.shape.empty()) spec.shape = {spec.shape[random_.below(spec.shape.size())]};
  if (coin(random_, 1, 2)) spec.dtype = oneOf(random_, {MNK_F32, MNK_U8, MNK_U32});
  if (coin(random_, 3, 4)) spec.region = arena_.freeRegion();
  return made(spec);
}

void OpMutator::addTensorChanges(Tensor& tensor) {
  for (int weight = 0; weight < 2; ++weight) add([&] { changeTensor(tensor); });
}

void OpMutator::changeTensor(Tensor& tensor) {
  if (!tensor) return;
  TensorSpec spec = arena_.specOf(tensor);
  const TensorSpec other = arena_.specOf(*tensors_[random_.below(tensors_.size())]);
  switch (random_.below(9)) {
    case 0:
      changeTheRank(spec, random_);
      break;
    case 1:
      changeTheDType(spec, random_);
      break;
    case 2:
    case 3:
      moveAnExtent(spec, random_);
      break;
    case 4:
      if (!spec.shape.empty()) spec.shape.back() = anyLength(random_);
      break;
    case 5:
      spec.device = 1;
      break;
    case 6:
      spec.shape = other.shape;
      break;
    default:
      moveBeside(spec, other, random_);
  }
  tensor = made(spec);
}

void OpMutator::changeAnExtentEverywhere() {
  std::vector<uint64_t> extents;
  for (const Tensor* tensor : tensors_) {
    for (const uint64_t extent : tensor->shape().extents()) extents.push_back(extent);
  }
  if (extents.empty()) return;
  const uint64_t from = extents[random_.below(extents.size())];
  const uint64_t near = from + random_.below(3) - 1;
  const uint64_t to = oneOf(random_, {near, near, anyLength(random_), edge(random_, {from, uint64_t{1} << 31})});
  for (Tensor* tensor : tensors_) {
    TensorSpec spec = arena_.specOf(*tensor);
    if (std::find(spec.shape.begin(), spec.shape.end(), from) == spec.shape.end()) continue;
    std::replace(spec.shape.begin(), spec.shape.end(), from, to);
    *tensor = made(spec);
  }
  for (uint64_t* number : numbers_) {
    if (*number == from) *number = to;
  }
}

}  // namespace mnk::fuzz
