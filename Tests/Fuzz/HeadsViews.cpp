#include "HeadsViews.hpp"

#include <algorithm>

#include "Numbers.hpp"

namespace mnk::fuzz {

std::optional<mnk_heads_view_strides> placesOf(const HeadsSpec& heads) {
  if (heads.view.has_strides) return heads.view.strides;
  const std::vector<uint64_t>& shape = heads.tensor->shape;
  const bool isHeadMajor = heads.view.layout == MNK_KV_LAYOUT_HEAD_MAJOR;
  if (shape.size() > 4 || shape.size() < (isHeadMajor ? 3 : 2)) return std::nullopt;
  std::vector<uint64_t> full(4 - shape.size(), 1);
  full.insert(full.end(), shape.begin(), shape.end());
  mnk_heads_view_strides places{};
  places.sequences = full[0];
  places.sequence_stride = full[1] * full[2] * full[3];
  places.head_dim = full[3];
  places.tokens = isHeadMajor ? full[2] : full[1];
  places.heads = isHeadMajor ? full[1] : full[2];
  places.token_stride = isHeadMajor ? full[3] : full[2] * full[3];
  places.head_stride = isHeadMajor ? full[2] * full[3] : full[3];
  return places;
}

HeadsView scattered(const HeadsView& view, Arena& arena, test::Seeded& random, bool mayRepeat) {
  HeadsView::Strides strides = view.resolved();
  struct Axis {
    uint64_t count;
    uint64_t* stride;
  };
  Axis axes[] = {{strides.heads, &strides.headStride},
                 {strides.tokens, &strides.tokenStride},
                 {strides.sequences, &strides.sequenceStride}};
  for (size_t i = 2; i > 0 && coin(random, 1, 2); --i) std::swap(axes[i], axes[random.below(i + 1)]);
  const uint64_t unit = coin(random, 1, 2) ? 4 : 1;  // elements that go together where addresses allow it
  const auto gap = [&] { return coin(random, 1, 2) ? 0 : unit * random.below(4); };
  uint64_t reach = strides.headDim;
  for (const Axis& axis : axes) {
    const bool isRepeated = mayRepeat && coin(random, 1, 6);
    *axis.stride = isRepeated ? random.below(2) * random.below(strides.headDim + 1) : reach + gap();
    if (axis.count > 1) reach += (axis.count - 1) * *axis.stride;
    if (axis.count <= 1 && coin(random, 1, 4)) *axis.stride = edge(random, {strides.headDim});  // leads nowhere
  }
  strides.offset = gap();
  const uint64_t elements = strides.offset + reach + gap();
  const bool isFlat = coin(random, 2, 3);
  const auto shape = isFlat ? Shape::make({elements}) : Shape::make({1, elements, 1});
  return HeadsView(arena.place(view.tensor.dtype(), *shape, random), strides);
}

}  // namespace mnk::fuzz
