// The extents of a tensor, outermost first. A shape holds at most eight extents and its element count
// always fits in 64 bits, so code that has a Shape multiplies without checking.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

class Shape {
 public:
  static constexpr uint32_t kMaxRank = 8;

  Shape() = default;  // rank 0, one element
  static Result<Shape> make(std::span<const uint64_t> extents);
  static Result<Shape> make(std::initializer_list<uint64_t> extents);

  uint32_t rank() const { return rank_; }
  uint64_t operator[](uint32_t axis) const { return axis < rank_ ? extents_[axis] : 0; }
  uint64_t elementCount() const;
  std::span<const uint64_t> extents() const { return {extents_.data(), rank_}; }
  std::string text() const;  // "[6, 2, 8]"

  bool operator==(const Shape&) const = default;

 private:
  std::array<uint64_t, kMaxRank> extents_{};
  uint32_t rank_ = 0;
};

}  // namespace mnk
