#include <algorithm>

#include "MultiRoPECall.hpp"

namespace mnk::fuzz {

namespace {

using Spec = MultiRoPESpec;
using Wide = unsigned __int128;  // sums and products of 64-bit numbers as they are, not wrapped

constexpr uint64_t kMostListed = 1024;
constexpr uint64_t kMostFactors = 512;
constexpr uint64_t kExtentEnd = uint64_t{1} << 31;
constexpr __int128 kPositionEnd = __int128{1} << 31;

// What the C API itself refuses, before an op exists.
std::string refusalOfView(const HeadsSpec& heads) {
  if (!heads.tensor) return {};
  if (heads.view.size != sizeof(mnk_heads_view)) return "mnk_heads_view has the wrong size";
  const bool isLayout = heads.view.layout == MNK_HEAD_MAJOR || heads.view.layout == MNK_TOKEN_MAJOR;
  return isLayout || heads.view.has_strides ? "" : "the number is not a layout";
}

std::string refusalOfNumbers(const NumberSpec& numbers, std::string_view name) {
  if (numbers.tensor) return {};
  if (!numbers.hasList && numbers.count() != 0) return fmt::format("{} is missing", name);
  return numbers.count() > kMostListed ? fmt::format("there are too many {}", name) : "";
}

std::string refusalOfEmbedding(const Spec& spec) {
  const mnk_rotary_embedding& rotary = spec.numbers.rotary;
  if (rotary.size != sizeof rotary) return "mnk_rotary_embedding has the wrong size";
  constexpr uint32_t kModes[] = {0, 2, 8, 24, 40};
  if (std::count(std::begin(kModes), std::end(kModes), static_cast<uint32_t>(rotary.layout)) == 0) {
    return "the number is not a rotary layout";
  }
  if (static_cast<uint32_t>(rotary.pairing) > 2) return "the number is not a rotary pairing";
  if (static_cast<uint32_t>(rotary.other_axis) > 1) return "the number is not a rotary axis";
  const uint64_t count = spec.factorCount.value_or(spec.factors.size());
  if (!spec.hasFactors && count != 0) return "frequency_factors is missing";
  return count > kMostFactors ? "there are too many frequency factors" : "";
}

std::string refusalOfStruct(const Spec& spec) {
  const uint64_t size = spec.numbers.size, own = sizeof(mnk_multi_rope);
  if (spec.isNull) return "mnk_multi_rope is missing";
  if (size < own || size > 2 * own || (size > own && spec.tail != 0)) return "mnk_multi_rope has the wrong size";
  if (!spec.queries.tensor) return "queries.tensor is missing";
  for (const HeadsSpec* heads : {&spec.queries, &spec.keys, &spec.rotatedQueries, &spec.rotatedKeys}) {
    if (std::string what = refusalOfView(*heads); !what.empty()) return what;
  }
  if (std::string what = refusalOfNumbers(spec.positions, "positions"); !what.empty()) return what;
  if (std::string what = refusalOfNumbers(spec.offsets, "offsets"); !what.empty()) return what;
  return refusalOfEmbedding(spec);
}

bool isFloat(mnk_dtype dtype) {
  return dtype == MNK_F32 || dtype == MNK_F16 || dtype == MNK_BF16;
}

bool hasTokens(const mnk_heads_view& places) {
  return places.sequences != 0 && places.tokens != 0;
}

bool isTooLarge(const mnk_heads_view& places) {
  return std::max({places.sequences, places.tokens, places.heads, places.head_dim}) >= kExtentEnd ||
         Wide{places.sequences} * places.tokens >= kExtentEnd;
}

bool isSameTokens(const mnk_heads_view& a, const mnk_heads_view& b) {
  return a.sequences == b.sequences && a.tokens == b.tokens && a.head_dim == b.head_dim;
}

struct Axis {
  uint64_t count;
  uint64_t stride;
};
std::array<Axis, 3> axesOf(const mnk_heads_view& places) {
  return {{{places.sequences, places.sequence_stride},
           {places.tokens, places.token_stride},
           {places.heads, places.head_stride}}};
}

bool isInside(const HeadsSpec& heads, const mnk_heads_view& places) {
  if (!hasTokens(places)) return true;
  Wide end = Wide{places.offset} + places.head_dim;
  for (const Axis& axis : axesOf(places)) end += Wide{axis.stride} * (axis.count - 1);
  return end <= heads.tensor->elements();
}

// Whether some stride is not past all that the smaller ones reach.
bool crowds(const mnk_heads_view& places) {
  if (!hasTokens(places)) return false;
  auto axes = axesOf(places);
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  uint64_t reach = places.head_dim;
  for (const Axis& axis : axes) {
    if (axis.count == 1) continue;
    if (axis.stride < reach) return true;
    reach += axis.stride * (axis.count - 1);
  }
  return false;
}

// Ranks, dtypes, extents and strides of what is rotated and where it goes.
std::string refusalOfOperands(const Spec& spec) {
  if (spec.rotatedKeys.tensor && !spec.keys.tensor) return "rotated keys are given without keys";
  const auto rotated = rotatedOf(spec);
  std::vector<const HeadsSpec*> all;
  for (const RotatedSpec& one : rotated) all.insert(all.end(), {one.from, one.into});
  std::vector<mnk_heads_view> places;
  for (const HeadsSpec* heads : all) {
    const auto found = placesOf(*heads);
    if (!found) return "an operand has the wrong rank";
    places.push_back(*found);
  }
  const auto any = [&](auto isBad) { return std::any_of(places.begin(), places.end(), isBad); };
  const auto isNotFloat = [](const HeadsSpec* heads) { return !isFloat(heads->tensor->dtype); };
  if (std::any_of(all.begin(), all.end(), isNotFloat)) return "an operand is not of a float dtype";
  if (any([](const auto& view) { return view.heads == 0 || view.head_dim == 0; })) {
    return "an operand has no heads, or heads of no elements";
  }
  if (places[0].head_dim % 2 == 1) return "the head dim is odd";
  if (any(isTooLarge)) return "an extent is too large for the kernel";
  if (places.size() > 2 && !isSameTokens(places[2], places[0])) return "keys do not match queries";
  for (size_t from = 0; from < places.size(); from += 2) {
    const bool isSame = isSameTokens(places[from + 1], places[from]) && places[from + 1].heads == places[from].heads;
    if (!isSame) return "a result does not match what is rotated";
  }
  for (size_t index = 0; index < all.size(); ++index) {
    if (!isInside(*all[index], places[index])) return "vectors lie outside of their tensor";
  }
  for (size_t into = 1; into < places.size(); into += 2) {
    if (crowds(places[into])) return "the vectors of a result overlap each other";
  }
  return {};
}

uint64_t tokensOf(const Spec& spec) {
  const auto queries = placesOf(spec.queries);
  return queries ? queries->sequences * queries->tokens : 0;
}

bool isOfIntegers(const NumberSpec& numbers) {
  return !numbers.tensor || numbers.tensor->dtype == MNK_I32 || numbers.tensor->dtype == MNK_U32;
}

// How many axes the positions have; 0 where they do not match the tokens.
uint64_t axesOf(const Spec& spec) {
  const NumberSpec& positions = spec.positions;
  const uint64_t tokens = tokensOf(spec);
  const auto upToFour = [](uint64_t axes) { return axes <= 4 ? axes : 0; };
  if (positions.tensor) {
    const std::vector<uint64_t>& shape = positions.tensor->shape;
    if (shape == std::vector{tokens}) return 1;
    if (shape.size() < 2) return 0;
    const auto queries = placesOf(spec.queries);
    const std::vector<uint64_t> behind(shape.begin() + 1, shape.end());
    const bool isEach = behind == std::vector{tokens} || behind == std::vector{queries->sequences, queries->tokens};
    return isEach ? upToFour(shape[0]) : 0;
  }
  if (!positions.hasList) return 1;
  const uint64_t axes = positions.listAxes == 0 ? 1 : upToFour(positions.listAxes);
  return positions.list.size() == axes * tokens ? axes : 0;
}

// Every position that is known before the kernel runs, without and with its offset.
bool isTooFar(const Spec& spec) {
  const auto queries = placesOf(spec.queries);
  const uint64_t tokens = tokensOf(spec);
  if (spec.positions.tensor || tokens == 0) return false;
  const bool hasOffsets = spec.offsets.hasList && !spec.offsets.tensor;
  const auto isFar = [&](__int128 position, uint64_t sequence) {
    const __int128 offset = hasOffsets ? spec.offsets.list[sequence] : 0;
    for (const __int128 one : {position, position + offset}) {
      if (one < -kPositionEnd || one >= kPositionEnd) return true;
    }
    return false;
  };
  if (spec.positions.hasList) {
    for (uint64_t index = 0; index < spec.positions.list.size(); ++index) {
      if (isFar(spec.positions.list[index], index % tokens / queries->tokens)) return true;
    }
    return false;
  }
  const __int128 first = spec.numbers.first_position;
  for (uint64_t sequence = 0; sequence < (hasOffsets ? queries->sequences : 1); ++sequence) {
    if (isFar(first, sequence) || isFar(first + queries->tokens - 1, sequence)) return true;
  }
  return false;
}

std::string refusalOfPositions(const Spec& spec) {
  if (!isOfIntegers(spec.positions)) return "positions are not i32 or u32";
  if (axesOf(spec) == 0) return "positions do not match the tokens";
  const NumberSpec& offsets = spec.offsets;
  if (!isOfIntegers(offsets)) return "offsets are not i32 or u32";
  if (offsets.tensor || offsets.hasList) {
    const uint64_t count = offsets.tensor ? offsets.tensor->elements() : offsets.list.size();
    if (count != placesOf(spec.queries)->sequences) return "offsets do not match the sequences";
  }
  return isTooFar(spec) ? "a position is out of range" : "";
}

std::string refusalBeforeSharing(const Spec& spec) {
  for (const auto refusal : {refusalOfStruct, refusalOfOperands, refusalOfPositions}) {
    if (std::string what = refusal(spec); !what.empty()) return what;
  }
  return {};
}

}  // namespace

std::optional<mnk_heads_view> placesOf(const HeadsSpec& heads) {
  if (heads.view.has_strides) return heads.view;
  const std::vector<uint64_t>& shape = heads.tensor->shape;
  const bool isHeadMajor = heads.view.layout == MNK_HEAD_MAJOR;
  if (shape.size() > 4 || shape.size() < (isHeadMajor ? 3 : 2)) return std::nullopt;
  std::vector<uint64_t> full(4 - shape.size(), 1);
  full.insert(full.end(), shape.begin(), shape.end());
  mnk_heads_view places{};
  places.sequences = full[0];
  places.sequence_stride = full[1] * full[2] * full[3];
  places.head_dim = full[3];
  places.tokens = isHeadMajor ? full[2] : full[1];
  places.heads = isHeadMajor ? full[1] : full[2];
  places.token_stride = isHeadMajor ? full[3] : full[2] * full[3];
  places.head_stride = isHeadMajor ? full[2] * full[3] : full[3];
  return places;
}

std::vector<RotatedSpec> rotatedOf(const Spec& spec) {
  const auto into = [](const HeadsSpec& from, const HeadsSpec& given) { return given.tensor ? &given : &from; };
  std::vector<RotatedSpec> rotated{{&spec.queries, into(spec.queries, spec.rotatedQueries)}};
  if (spec.keys.tensor) rotated.push_back({&spec.keys, into(spec.keys, spec.rotatedKeys)});
  return rotated;
}

std::string refusalOf(const Spec& spec) {
  if (std::string what = refusalBeforeSharing(spec); !what.empty()) return what;
  if (sharesMemory(spec)) return "results share memory with other operands";
  return refusalOfRotary(spec, placesOf(spec.queries)->head_dim, axesOf(spec));
}

bool isOpen(const Spec& spec) {
  return refusalBeforeSharing(spec).empty() && isRotaryOpen(spec, placesOf(spec.queries)->head_dim);
}

}  // namespace mnk::fuzz
