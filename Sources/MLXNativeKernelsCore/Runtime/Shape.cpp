#include "MLXNativeKernels/Shape.hpp"

#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

std::string textOf(std::span<const uint64_t> extents) {
  std::string text;
  for (const uint64_t extent : extents) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

}  // namespace

Result<Shape> Shape::make(std::span<const uint64_t> extents) {
  return guarded("Shape", [&]() -> Result<Shape> {
    if (extents.size() > kMaxRank) {
      return Error{.op = "Shape",
                   .what = "the shape has too many extents",
                   .got = countText(extents.size(), "extent"),
                   .expected = fmt::format("at most {}", kMaxRank),
                   .fix = "Join neighboring axes."};
    }
    // Skips zero extents, so that overflow does not depend on the order of the axes.
    uint64_t count = 1;
    for (uint64_t extent : extents) {
      const auto product = checkedMultiply(count, extent == 0 ? 1 : extent);
      if (!product || *product > UINT64_MAX / 8) {
        return Error{.op = "Shape",
                     .what = "the shape holds more elements than 64-bit sizes can count",
                     .got = textOf(extents),
                     .expected = "fewer than 2^61 elements",
                     .fix = "Pass smaller extents."};
      }
      count = *product;
    }
    Shape shape;
    shape.rank_ = static_cast<uint32_t>(extents.size());
    for (uint32_t axis = 0; axis < shape.rank_; ++axis) shape.extents_[axis] = extents[axis];
    return shape;
  });
}

Result<Shape> Shape::make(std::initializer_list<uint64_t> extents) {
  return make(std::span<const uint64_t>(extents.begin(), extents.size()));
}

uint64_t Shape::elementCount() const {
  uint64_t count = 1;
  for (uint64_t extent : extents()) count *= extent;
  return count;
}

std::string Shape::text() const {
  return textOf(extents());
}

}  // namespace mnk
