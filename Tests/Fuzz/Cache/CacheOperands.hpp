// Draws the operands of a cache program, and places them in the arena one behind another.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "Arena.hpp"
#include "HeadsViews.hpp"

namespace mnk::fuzz {

using Floats = std::vector<float>;

// Whether all rows of a view are equally far apart.
bool isFlat(const HeadsSpec& heads);
// Some rows of a token-major tensor. `axis` is as below.
TensorSpec partOf(const TensorSpec& whole, uint64_t first, uint64_t rows, uint64_t axis);

class Operands {
 public:
  Operands(Arena& arena, test::Seeded& random) : arena_(arena), random_(random) {}

  mnk_dtype drawFloat();
  // False where there is no more memory.
  bool allocate(TensorSpec& spec);
  void fill(const TensorSpec& spec, std::span<const std::byte> bytes) { arena_.fill(spec, bytes); }
  // Numbers that every float type holds, of these extents [rows, heads, headDim], in one of the layouts that a model
  // may leave them in. `axis` is the number of sequences of the view's axis for them; 0: none.
  bool draw(HeadsSpec& heads, Floats& numbers, mnk_dtype dtype, std::array<uint64_t, 3> extents, uint64_t axis);
  // Some rows of a view that `isFlat`, in one of the ways to describe them.
  HeadsSpec drawRows(const HeadsSpec& whole, uint64_t first, uint64_t rows, uint64_t axis);

 private:
  void store(const HeadsSpec& heads, const Floats& numbers, uint64_t rows, uint64_t headCount);

  Arena& arena_;
  test::Seeded& random_;
  std::array<uint64_t, Arena::kRegions> used_{};
  uint32_t firstRegion_ = 0;
};

}  // namespace mnk::fuzz
