#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numbers>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"

namespace mnk::test {

namespace {

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

// The positions of all tokens on an axis, offsets included. Positions on one axis count for all.
std::vector<int64_t> positionsOn(uint64_t axis, const MultiRoPE& op, const ReadTensor& before) {
  const HeadsView::Strides places = op.queries.resolved();
  const auto* first = std::get_if<int64_t>(&op.positions.source);
  std::vector<int64_t> listed = numbersOf(std::get_if<Tensor>(&op.positions.source), before), offsets;
  if (const auto* list = std::get_if<RotaryPositions::List>(&op.positions.source)) {
    listed.assign(list->numbers.begin(), list->numbers.end());
  }
  if (op.offsets) {
    offsets = numbersOf(std::get_if<Tensor>(&*op.offsets), before);
    if (const auto* list = std::get_if<std::vector<int32_t>>(&*op.offsets)) offsets.assign(list->begin(), list->end());
  }
  std::vector<int64_t> positions;
  for (uint64_t token = 0, total = places.totalTokens(); token < total; ++token) {
    const int64_t position = first ? *first + static_cast<int64_t>(token % places.tokens)
                                   : listed[listed.size() == total ? token : axis * total + token];
    positions.push_back(offsets.empty() ? position : (position + offsets[token / places.tokens]) % (int64_t{1} << 32));
  }
  return positions;
}

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
  const RotaryEmbedding& rotary = op.rotary;
  const HeadsView::Strides places = op.queries.resolved();
  const uint64_t headDim = places.headDim, ropeDim = rotary.ropeDim == 0 ? headDim : rotary.ropeDim;
  const uint64_t half = (rotary.pairing == RotaryEmbedding::Pairing::halfOfHeadDim ? headDim : ropeDim) / 2;
  const bool isInterleaved = rotary.layout == RotaryEmbedding::Layout::interleavedPairs ||
                             rotary.pairing == RotaryEmbedding::Pairing::neighbors;
  const std::vector<double> conditions = conditionOf(rotary, headDim);
  std::vector<std::vector<Rotation>> tokens(places.totalTokens());
  std::map<uint32_t, std::vector<int64_t>> positions;
  for (uint64_t p = 0; p < ropeDim / 2; ++p) {
    const uint32_t axis = axisOf(rotary, p);
    if (!positions.contains(axis)) positions[axis] = positionsOn(axis, op, before);
    const long double frequency = (rotary.isInverse ? -1 : 1) * referenceFrequency(rotary, headDim, p);
    const double uncertainty = (2 * static_cast<double>(p) + 8) * 0x1p-53 * conditions[p];
    for (uint64_t token = 0; token < tokens.size(); ++token) {
      const long double radians = static_cast<long double>(positions[axis][token]) * frequency;
      tokens[token].push_back({.first = isInterleaved ? 2 * p : p,
                               .second = isInterleaved ? 2 * p + 1 : p + half,
                               .uncertainty = static_cast<double>(std::abs(radians)) * uncertainty,
                               .cosine = std::cos(radians),
                               .sine = std::sin(radians)});
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
  const HeadsView::Strides source = from.resolved();
  const HeadsView::Strides target = into.resolved();
  const DType dtype = from.tensor.dtype(), result = into.tensor.dtype();
  const std::vector<std::byte> bytes = before(from.tensor);
  std::vector<TurnedElement> elements;
  std::vector<double> input(source.headDim);
  for (uint64_t sequence = 0; sequence < source.sequences; ++sequence) {
    for (uint64_t token = 0; token < source.tokens; ++token) {
      for (uint64_t head = 0; head < source.heads; ++head) {
        const auto start = [&](const HeadsView::Strides& places) {
          return places.offset + sequence * places.sequenceStride + token * places.tokenStride +
                 head * places.headStride;
        };
        for (uint64_t element = 0; element < source.headDim; ++element) {
          const uint64_t bits = bitsAt(bytes, dtype, start(source) + element);
          input[element] = valueOf(dtype, bits);
          elements.push_back({.from = start(source) + element,
                              .into = start(target) + element,
                              .bits = dtype == result ? bits : nearestBits(result, input[element])});
        }
        turn(std::span(elements).last(source.headDim), input, rotations[sequence * source.tokens + token], magnitude);
      }
    }
  }
  return elements;
}

std::string text(DType dtype, uint64_t bits) {
  return fmt::format("{} ({:#x})", valueOf(dtype, bits), bits);
}

// How far a turned element may be from its value, apart from its last rounding: 1.5 * 2^-22 of the pair's size, which
// is 2^-23 for cosine and sine, as Rotary.h promises, and 2^-24 for each rounding, which are of the magnitude, of
// its product with them, of the products with x and y, and of their sum. To this comes the angle's error.
double slackOf(const TurnedElement& expected) {
  return expected.size * (1.5 * 0x1p-22 + expected.uncertainty) + 0x1p-125;
}

// Whether a result may stand for what the reference says. Kept elements have their bits between equal dtypes; a
// converted NaN is any NaN, because processors disagree about payloads. Turned ones lie between (value - slack) and
// (value + slack), each rounded to the result's dtype. A GPU may flush what is subnormal. Numbers that overflow on the
// way, and pairs that are not finite, give NaN.
bool isAllowed(const TurnedElement& expected, DType from, DType into, uint64_t got) {
  if (!expected.isTurned) {
    return got == expected.bits || (from != into && isNaN(into, got) && isNaN(into, expected.bits));
  }
  const double value = valueOf(into, got);
  if (!std::isfinite(expected.size)) return !std::isfinite(value);
  if (expected.size > std::numeric_limits<float>::max() && !std::isfinite(value)) return true;
  const double slack = slackOf(expected);
  return value >= valueOf(into, nearestBits(into, expected.value - slack)) &&
         value <= valueOf(into, nearestBits(into, expected.value + slack));
}

// What is rotated, and where it goes.
struct Rotated {
  std::string_view name;
  const HeadsView& from;
  const HeadsView& into;
  const std::vector<TurnedElement>& elements;
};
std::vector<Rotated> rotatedOf(const MultiRoPE& op, const MultiRoPEOutcome& outcome) {
  std::vector<Rotated> all{
      {"queries", op.queries, op.rotatedQueries ? *op.rotatedQueries : op.queries, outcome.queries}};
  if (op.keys) all.push_back({"keys", *op.keys, op.rotatedKeys ? *op.rotatedKeys : *op.keys, outcome.keys});
  return all;
}

// The first bad element by its coordinates, and how many there are.
void expectElements(const Rotated& rotated, const std::vector<std::byte>& now) {
  const DType from = rotated.from.tensor.dtype(), into = rotated.into.tensor.dtype();
  const HeadsView::Strides places = rotated.from.resolved();
  uint64_t bad = 0;
  std::string first;
  for (size_t index = 0; index < rotated.elements.size(); ++index) {
    const TurnedElement& expected = rotated.elements[index];
    const uint64_t got = bitsAt(now, into, expected.into);
    if (isAllowed(expected, from, into, got) || bad++ != 0) continue;
    const std::string wanted = expected.isTurned ? fmt::format("{} within {:.3g}", expected.value, slackOf(expected))
                                                 : fmt::format("{}, which does not turn", text(into, expected.bits));
    const uint64_t head = index / places.headDim, token = head / places.heads;
    first = fmt::format("{} (sequence {}, token {}, head {}, element {}): got {}, expected {}", rotated.name,
                        token / places.tokens, token % places.tokens, head % places.heads, index % places.headDim,
                        text(into, got), wanted);
  }
  if (bad) fail(__FILE__, __LINE__, fmt::format("{}; {} of {} elements differ", first, bad, rotated.elements.size()));
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

std::vector<std::byte> ropeElements(Seeded& random, DType dtype, uint64_t count) {
  std::vector<std::byte> bytes = random.elements(dtype, count);
  for (uint64_t element = 0; element < count; ++element) {
    const uint64_t number = random.next();
    if (number % 16 == 0) continue;
    const double value = (0.25 + static_cast<double>(number >> 40) * 0x1p-23) * (number % 32 < 16 ? 1 : -1);
    const uint64_t bits = nearestBits(dtype, value);
    std::memcpy(&bytes[element * byteSize(dtype)], &bits, byteSize(dtype));
  }
  return bytes;
}

std::vector<std::byte> plainRopeElements(Seeded& random, DType dtype, uint64_t count) {
  std::vector<double> values;
  while (values.size() < count) values.push_back((static_cast<double>(random.below(65536)) + 0.5) * 0x1p-14 - 2);
  return bytesOfValues(dtype, values);
}

// Results keep their poison.
void fill(MultiRoPERun& run, const MultiRoPECase& rope, Seeded& random) {
  run.setAll([&](std::string_view name, const Tensor& tensor) {
    if (name == "queries" || name == "keys") return ropeElements(random, tensor.dtype(), tensor.shape().elementCount());
    std::vector<uint32_t> numbers;
    if (name == "positions" || name == "offsets") {
      for (const int64_t number : name == "positions" ? positionsOf(rope) : offsetsOf(rope)) {
        numbers.push_back(static_cast<uint32_t>(number));
      }
    }
    return rawBytes(numbers);
  });
}

MultiRoPEOutcome expectRotated(const MultiRoPE& op, const OperandMemory& memory) {
  MultiRoPEOutcome outcome = reference(op, memory.before);
  for (const Rotated& rotated : rotatedOf(op, outcome)) expectElements(rotated, memory.now(rotated.into.tensor));
  return outcome;
}

void expectOutcome(const MultiRoPERun& run) {
  const OperandMemory memory = run.memory();
  const MultiRoPEOutcome outcome = expectRotated(run.op(), memory);
  run.expectAsBefore({"queries", "keys"});
  const auto all = rotatedOf(run.op(), outcome);
  std::vector<Tensor> tensors;
  for (const Rotated& rotated : all) tensors.insert(tensors.end(), {rotated.from.tensor, rotated.into.tensor});
  for (const Tensor& tensor : tensors) {
    // With its results as they were, all of it must be.
    auto now = memory.now(tensor);
    const auto before = memory.before(tensor);
    const uint64_t size = byteSize(tensor.dtype());
    for (const Rotated& rotated : all) {
      if (rotated.into.tensor.buffer() != tensor.buffer()) continue;
      for (const TurnedElement& element : rotated.elements) {
        std::memcpy(&now[element.into * size], &before[element.into * size], size);
      }
    }
    if (now != before) fail(__FILE__, __LINE__, "an element that is no result was changed");
  }
}

}  // namespace mnk::test
