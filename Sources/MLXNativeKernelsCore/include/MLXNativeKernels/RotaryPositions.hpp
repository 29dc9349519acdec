// The positions of tokens that are rotated, and what is added to them.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

class CommandEncoder;
struct MultiRoPE;
struct RotaryPositions;

// Where positions come from that are known only when an op is encoded, such as the next ones of a cache.
class PositionSource {
 public:
  virtual ~PositionSource() = default;
  // The positions of these tokens: a number, a list or a tensor. A number would count from the start of every entry of
  // a step; `asList` asks for a list of all tokens instead.
  // `rotation` is the op that asks, or null for one that keeps what it rotates to itself.
  virtual Result<RotaryPositions> resolve(CommandEncoder& encoder, const HeadsView& tokens, const MultiRoPE* rotation,
                                          bool asList) const = 0;
  // The op that asked for them last has been recorded.
  virtual void recorded(CommandEncoder& encoder, const MultiRoPE* rotation) const noexcept = 0;
};

// The position of each token, from -2^31 to 2^31 - 1, on 1 to 4 axes. One axis is used for all of them, as for text.
//   a number   of the first token of every sequence; those that follow count up
//   a list     axis after axis, in each all tokens of all sequences; known in advance, so the rules check it
//   a tensor   the same in i32, or in u32 up to 2^32 - 1: [tokens of all sequences], [axes, tokens of all sequences] or
//              [axes, sequences, tokens]; read by the kernel, which takes what an offset moves further modulo 2^32
//   a source   asked when the op is encoded: AttentionCache::nextPositions
struct RotaryPositions {
  struct List {
    std::vector<int32_t> numbers;
    uint32_t axes = 1;
  };
  std::variant<int64_t, List, Tensor, std::shared_ptr<const PositionSource>> source = int64_t{0};

  RotaryPositions() = default;
  template <std::integral Number>
  RotaryPositions(Number first)
      : source(std::in_range<int64_t>(first) ? static_cast<int64_t>(first) : std::numeric_limits<int64_t>::max()) {}
  RotaryPositions(std::vector<int32_t> numbers, uint32_t axes = 1) : source(List{std::move(numbers), axes}) {}
  RotaryPositions(Tensor tensor) : source(std::move(tensor)) {}
  // Null has a position that the rules refuse.
  RotaryPositions(std::shared_ptr<const PositionSource> from) : source(std::numeric_limits<int64_t>::max()) {
    if (from) source = std::move(from);
  }

  const PositionSource* follows() const {
    const auto* from = std::get_if<std::shared_ptr<const PositionSource>>(&source);
    return from ? from->get() : nullptr;
  }
  bool areNumbers() const { return source.index() < 2; }
};

// One number for each sequence: a list, or an i32 or u32 tensor.
using RotaryOffsets = std::variant<std::vector<int32_t>, Tensor>;

}  // namespace mnk
