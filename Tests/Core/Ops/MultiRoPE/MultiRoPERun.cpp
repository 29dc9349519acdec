#include "Ops/MultiRoPE/MultiRoPERun.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::test {

namespace {

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
  uint64_t bad = 0;
  std::string first;
  for (const TurnedElement& expected : rotated.elements) {
    const uint64_t got = bitsAt(now, into, expected.into);
    if (isAllowed(expected, from, into, got) || bad++ != 0) continue;
    const std::string wanted = expected.isTurned ? fmt::format("{} within {:.3g}", expected.value, slackOf(expected))
                                                 : fmt::format("{}, which does not turn", text(into, expected.bits));
    first = fmt::format("{} (sequence {}, token {}, head {}, element {}): got {}, expected {}", rotated.name,
                        expected.sequence, expected.token, expected.head, expected.element, text(into, got), wanted);
  }
  if (bad) fail(__FILE__, __LINE__, fmt::format("{}; {} of {} elements differ", first, bad, rotated.elements.size()));
}

}  // namespace

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
