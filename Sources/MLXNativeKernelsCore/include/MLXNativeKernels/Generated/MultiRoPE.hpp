// Generated from Sources/API by generate.py: change the description instead.
// MultiRoPE, which rotates queries and keys by their positions, and the rotation of a step.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/Rotary.hpp"
#include "MLXNativeKernels/RotaryPositions.hpp"

namespace mnk {

class CommandEncoder;

// How queries and keys of a step over a cache are rotated, as `MultiRoPE` defines it.
//
// Pass queries and keys that are not rotated. The call fails if the same step has rotated them by positions of a cache;
// it cannot see rotations by numbers, or in earlier steps.
struct RotaryStep {
  // How positions rotate pairs.
  RotaryEmbedding embedding = {};
  // The position of each of the step's tokens; none means the positions that they get in the cache.
  std::optional<RotaryPositions> positions = {};
  // One number for each sequence, added to all its positions, such as a model's rope delta; a tensor is i32 or u32.
  std::optional<RotaryOffsets> offsets = {};
};

// Rotates queries and keys by their positions, in one dispatch if they have the same element types and are both in
// place or both out of place.
//
//     into[sequence, token, head] = rotated(from[sequence, token, head])
//
// as `RotaryEmbedding` defines it, by default in place, in any float type, computing in f32. Angles are computed in
// integers, as fractions of a turn: position one million is as exact as position one.
struct MultiRoPE {
  static constexpr std::string_view name = "MultiRoPE";
  static constexpr uint64_t kMaxRopeDim = 1024;  // frequencies are sent inside the dispatch, which is limited to 4 KiB
  static constexpr uint64_t kMaxListed = 1024;   // and so are lists

  // The queries.
  HeadsView queries;
  // The keys: other heads of the same tokens.
  std::optional<HeadsView> keys = {};
  // Where rotated queries go, with their own element type and strides; none means in place.
  std::optional<HeadsView> rotatedQueries = {};
  // Where rotated keys go; none means in place.
  std::optional<HeadsView> rotatedKeys = {};
  // The position of each token.
  RotaryPositions positions = {};
  // One number for each sequence, added to all its positions, such as a model's rope delta; a tensor is i32 or u32.
  std::optional<RotaryOffsets> offsets = {};
  // How positions rotate pairs.
  RotaryEmbedding rotary = {};
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const MultiRoPE& op);
Result<void> encodeRepeated(CommandEncoder& encoder, const MultiRoPE& op);

}  // namespace mnk
