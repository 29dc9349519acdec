#include "Ops/MultiRoPE/MultiRoPEReference.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::test {

namespace {

using Strides = HeadsView::Strides;

// From the shapes that HeadsView lists.
Strides placesOf(const HeadsView& view) {
  if (view.strides) return *view.strides;
  const auto extents = view.tensor.shape().extents();
  uint64_t filled[4] = {1, 1, 1, 1};
  std::copy_backward(extents.begin(), extents.end(), filled + 4);
  const auto [sequences, outer, inner, headDim] = filled;
  Strides places{.sequences = sequences, .headDim = headDim, .sequenceStride = outer * inner * headDim};
  if (view.layout == KVLayout::headMajor) {
    places.heads = outer;
    places.tokens = inner;
    places.headStride = inner * headDim;
    places.tokenStride = headDim;
  } else {
    places.tokens = outer;
    places.heads = inner;
    places.tokenStride = inner * headDim;
    places.headStride = headDim;
  }
  return places;
}

uint32_t axisOf(const RotaryEmbedding& rotary, uint64_t pair) {
  const auto& sections = rotary.sections;
  if (rotary.layout == RotaryEmbedding::Layout::vision) return pair < sections[0] ? 0 : 1;
  if (rotary.layout == RotaryEmbedding::Layout::mrope) {
    // Section after section, round after round.
    for (uint32_t axis = 0;; axis = (axis + 1) % 4) {
      if (pair < sections[axis]) return axis;
      pair -= sections[axis];
    }
  }
  if (rotary.layout != RotaryEmbedding::Layout::imrope) return 0;
  uint64_t round = 0;
  for (uint64_t section : sections) round += section;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (pair % round % 3 == axis && pair % round < 3 * uint64_t{sections[axis]}) return axis;
  }
  return rotary.otherAxis == RotaryEmbedding::OtherAxis::axis0 ? 0 : 3;
}

// By how many roundings of itself each pair's frequency may be wrong beside those that every frequency has. Where
// the corners of YaRN's blend are not rounded to whole pairs, what is wrong with them counts as often as the blend is
// steep.
std::vector<double> conditionOf(const RotaryEmbedding& rotary, uint64_t headDim) {
  std::vector<double> conditions((rotary.ropeDim == 0 ? headDim : rotary.ropeDim) / 2, 1);
  if (!rotary.yarn || rotary.yarn->extensionFactor == 0) return conditions;
  const RotaryEmbedding::YaRN& yarn = *rotary.yarn;
  RotaryEmbedding plain = rotary;
  plain.yarn.reset();
  const long double dims = 2 * conditions.size(), share = yarn.extensionFactor;
  const auto corner = [&](long double turns) {
    const long double all = yarn.originalContext / (2 * std::numbers::pi_v<long double> * turns);
    return dims * std::log(all) / (2 * std::log(static_cast<long double>(rotary.base)));
  };
  const long double fast = corner(yarn.betaFast), slow = corner(yarn.betaSlow);
  const long double width = std::max(0.001L, std::min(slow, dims - 1) - std::max(fast, 0.0L));
  for (uint64_t pair = 0; pair < conditions.size(); ++pair) {
    const long double scaled = referenceFrequency(plain, headDim, pair);
    const long double kept = scaled / rotary.scale;
    const long double far = std::abs(fast) + std::abs(slow) + pair;
    const long double parts = yarn.roundsCorners ? 0 : (scaled + kept) * share * far / width;
    const long double sum = std::abs(referenceFrequency(rotary, headDim, pair));
    if (sum > 0) conditions[pair] = static_cast<double>(std::clamp(parts / sum, 1.0L, 0x1p60L));
  }
  return conditions;
}

struct Pair {
  uint64_t first;
  uint64_t second;
  uint32_t axis;
  long double frequency;
  double uncertainty;  // of the frequency, relative
};

std::vector<Pair> pairsOf(const RotaryEmbedding& rotary, uint64_t headDim) {
  const uint64_t ropeDim = rotary.ropeDim == 0 ? headDim : rotary.ropeDim;
  const uint64_t half = (rotary.pairing == RotaryEmbedding::Pairing::halfOfHeadDim ? headDim : ropeDim) / 2;
  const bool isInterleaved = rotary.layout == RotaryEmbedding::Layout::interleavedPairs ||
                             rotary.pairing == RotaryEmbedding::Pairing::neighbors;
  const std::vector<double> conditions = conditionOf(rotary, headDim);
  std::vector<Pair> pairs;
  for (uint64_t p = 0; p < ropeDim / 2; ++p) {
    pairs.push_back({.first = isInterleaved ? 2 * p : p,
                     .second = isInterleaved ? 2 * p + 1 : p + half,
                     .axis = axisOf(rotary, p),
                     .frequency = referenceFrequency(rotary, headDim, p),
                     .uncertainty = (2 * static_cast<double>(p) + 8) * 0x1p-53 * conditions[p]});
  }
  return pairs;
}

long double magnitudeOf(const RotaryEmbedding& rotary) {
  if (!rotary.yarn) return 1;
  const long double growth = 1 + 0.1L * std::log(1 / static_cast<long double>(rotary.scale));
  const long double magnitude = rotary.yarn->attentionFactor * (rotary.yarn->extensionFactor == 0 ? 1 : growth);
  return rotary.isInverse ? 1 / magnitude : magnitude;
}

// The numbers of a tensor, by its dtype.
std::vector<int64_t> numbersOf(const Tensor* tensor, const ReadTensor& before) {
  std::vector<int64_t> numbers;
  if (!tensor) return numbers;
  for (const uint32_t bits : numbersIn<uint32_t>(before(*tensor))) {
    numbers.push_back(tensor->dtype() == DType::i32 ? int64_t{static_cast<int32_t>(bits)} : int64_t{bits});
  }
  return numbers;
}

// The positions of an op's tokens, offsets included.
class Positions {
 public:
  Positions(const MultiRoPE& op, const Strides& places, const ReadTensor& before)
      : op_(op), places_(places), positions_(numbersOf(std::get_if<Tensor>(&op.positions.source), before)) {
    if (const auto* list = std::get_if<RotaryPositions::List>(&op.positions.source)) {
      positions_.assign(list->numbers.begin(), list->numbers.end());
    }
    if (!op.offsets) return;
    offsets_ = numbersOf(std::get_if<Tensor>(&*op.offsets), before);
    if (const auto* list = std::get_if<std::vector<int32_t>>(&*op.offsets)) offsets_.assign(list->begin(), list->end());
  }

  int64_t at(uint64_t sequence, uint64_t token, uint32_t axis) const {
    const uint64_t total = places_.sequences * places_.tokens, index = sequence * places_.tokens + token;
    const auto* first = std::get_if<int64_t>(&op_.positions.source);
    // Positions on one axis count for all.
    const int64_t position = first ? *first + static_cast<int64_t>(token)
                                   : positions_[positions_.size() == total ? index : axis * total + index];
    return offsets_.empty() ? position : (position + offsets_[sequence]) % (int64_t{1} << 32);
  }

 private:
  const MultiRoPE& op_;
  Strides places_;
  std::vector<int64_t> positions_, offsets_;
};

// What turns one pair of one token.
struct Rotation {
  uint64_t first;
  uint64_t second;
  double uncertainty;  // of the angle, in radians
  long double cosine;
  long double sine;
};

// For all pairs of each token, sequence after sequence.
std::vector<std::vector<Rotation>> rotationsOf(const MultiRoPE& op, const ReadTensor& before) {
  const Strides places = placesOf(op.queries);
  const auto pairs = pairsOf(op.rotary, places.headDim);
  const Positions positions(op, places, before);
  std::vector<std::vector<Rotation>> tokens;
  for (uint64_t sequence = 0; sequence < places.sequences; ++sequence) {
    for (uint64_t token = 0; token < places.tokens; ++token) {
      auto& rotations = tokens.emplace_back();
      for (const Pair& pair : pairs) {
        const int64_t position = positions.at(sequence, token, pair.axis);
        const long double radians =
            (op.rotary.isInverse ? -1 : 1) * static_cast<long double>(position) * pair.frequency;
        const double uncertainty = static_cast<double>(std::abs(radians)) * pair.uncertainty;
        rotations.push_back({pair.first, pair.second, uncertainty, std::cos(radians), std::sin(radians)});
      }
    }
  }
  return tokens;
}

void turn(std::span<TurnedElement> vector, std::span<const double> input, const std::vector<Rotation>& rotations,
          long double magnitude) {
  for (const Rotation& rotation : rotations) {
    const long double x = input[rotation.first], y = input[rotation.second];
    TurnedElement& first = vector[rotation.first];
    TurnedElement& second = vector[rotation.second];
    first.value = static_cast<double>(magnitude * (x * rotation.cosine - y * rotation.sine));
    second.value = static_cast<double>(magnitude * (x * rotation.sine + y * rotation.cosine));
    for (TurnedElement* element : {&first, &second}) {
      element->isTurned = true;
      element->size = static_cast<double>((std::abs(x) + std::abs(y)) * magnitude);
      element->uncertainty = rotation.uncertainty;
    }
  }
}

std::vector<TurnedElement> turned(const std::vector<std::vector<Rotation>>& rotations, long double magnitude,
                                  const HeadsView& from, const HeadsView& into, const ReadTensor& before) {
  const Strides source = placesOf(from);
  const Strides target = placesOf(into);
  const DType dtype = from.tensor.dtype(), result = into.tensor.dtype();
  const std::vector<std::byte> bytes = before(from.tensor);
  std::vector<TurnedElement> elements;
  std::vector<double> input(source.headDim);
  for (uint64_t sequence = 0; sequence < source.sequences; ++sequence) {
    for (uint64_t token = 0; token < source.tokens; ++token) {
      for (uint64_t head = 0; head < source.heads; ++head) {
        const auto start = [&](const Strides& places) {
          return places.offset + sequence * places.sequenceStride + token * places.tokenStride +
                 head * places.headStride;
        };
        for (uint64_t element = 0; element < source.headDim; ++element) {
          const uint64_t bits = bitsAt(bytes, dtype, start(source) + element);
          input[element] = valueOf(dtype, bits);
          elements.push_back({.sequence = sequence,
                              .token = token,
                              .head = head,
                              .element = element,
                              .from = start(source) + element,
                              .into = start(target) + element,
                              .bits = dtype == result ? bits : nearestBits(result, input[element])});
        }
        turn(std::span(elements).last(source.headDim), input, rotations[sequence * source.tokens + token], magnitude);
      }
    }
  }
  return elements;
}

}  // namespace

long double referenceFrequency(const RotaryEmbedding& rotary, uint64_t headDim, uint64_t pair) {
  const uint64_t ropeDim = rotary.ropeDim == 0 ? headDim : rotary.ropeDim;
  const bool isVision = rotary.layout == RotaryEmbedding::Layout::vision;
  const uint64_t place = isVision && pair >= rotary.sections[0] ? pair - rotary.sections[0] : pair;
  const long double dims = isVision ? headDim / 2 : ropeDim;
  const long double base = rotary.base;
  const long double scale = rotary.scale;
  const long double factor = pair < rotary.frequencyFactors.size() ? rotary.frequencyFactors[pair] : 1;
  const long double kept = std::pow(base, -2 * static_cast<long double>(place) / dims) / factor;
  if (!rotary.yarn) return scale * kept;

  // The pair that turns so often in the original context, if pairs could be counted in fractions.
  const RotaryEmbedding::YaRN& yarn = *rotary.yarn;
  const auto pairWithTurns = [&](long double turns) {
    return dims * std::log(yarn.originalContext / (turns * 2 * std::numbers::pi_v<long double>)) / (2 * std::log(base));
  };
  const auto corner = [&](long double pair, bool isUpper) {
    if (!yarn.roundsCorners) return pair;
    return isUpper ? std::ceil(pair) : std::floor(pair);
  };
  const long double low = std::max(0.0L, corner(pairWithTurns(yarn.betaFast), false));
  const long double high = std::min(dims - 1, corner(pairWithTurns(yarn.betaSlow), true));
  const long double way = std::clamp((pair - low) / std::max(0.001L, high - low), 0.0L, 1.0L);
  const long double share = (1 - way) * yarn.extensionFactor;
  return scale * kept * (1 - share) + kept * share;
}

MultiRoPEOutcome reference(const MultiRoPE& op, const ReadTensor& before) {
  const auto rotations = rotationsOf(op, before);
  const long double magnitude = magnitudeOf(op.rotary);
  const auto turnedTo = [&](const HeadsView& from, const std::optional<HeadsView>& into) {
    return turned(rotations, magnitude, from, into ? *into : from, before);
  };
  MultiRoPEOutcome outcome{.queries = turnedTo(op.queries, op.rotatedQueries), .keys = {}};
  if (op.keys) outcome.keys = turnedTo(*op.keys, op.rotatedKeys);
  return outcome;
}

}  // namespace mnk::test
