// Views of vectors: those of calls in numbers, and those of ops with strides of any kind.
#pragma once
#include <optional>

#include "Arena.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"

namespace mnk::fuzz {

// Vectors as they are passed. Without a tensor they are left out.
struct HeadsSpec {
  std::optional<TensorSpec> tensor = {};
  mnk_heads_view view{};  // everything but the tensor
};

// Where the vectors lie, with strides whatever the view had. Nothing where its tensor has another rank.
std::optional<mnk_heads_view_strides> placesOf(const HeadsSpec& heads);

// As many vectors elsewhere: axes nested in any order, with gaps between their entries. Where only reads see them, a
// vector may be there more than once.
HeadsView scattered(const HeadsView& view, Arena& arena, test::Seeded& random, bool mayRepeat);

}  // namespace mnk::fuzz
