#include "Ops/MultiRoPE/MultiRoPERun.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/EveryRun.hpp"

namespace mnk::test {

namespace {

std::vector<std::byte> bytesOf(const std::vector<int64_t>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(uint32_t));
  for (size_t index = 0; index < numbers.size(); ++index) {
    const auto bits = static_cast<uint32_t>(numbers[index]);
    std::memcpy(&bytes[index * sizeof bits], &bits, sizeof bits);
  }
  return bytes;
}

std::vector<uint32_t> numbersOf(const std::vector<std::byte>& bytes) {
  std::vector<uint32_t> numbers(bytes.size() / sizeof(uint32_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::string text(DType dtype, uint64_t bits) {
  return fmt::format("{} ({:#x})", valueOf(dtype, bits), bits);
}

// What is rotated, and where it goes.
struct Rotated {
  std::string_view name;
  const HeadsView& from;
  const HeadsView& into;
};
std::vector<Rotated> rotatedOf(const MultiRoPE& op) {
  std::vector<Rotated> all{{"queries", op.queries, op.rotatedQueries ? *op.rotatedQueries : op.queries}};
  if (op.keys) all.push_back({"keys", *op.keys, op.rotatedKeys ? *op.rotatedKeys : *op.keys});
  return all;
}

// The first bad element by its coordinates, and how many there are.
void expectElements(const Rotated& rotated, const std::vector<std::byte>& now,
                    const std::vector<TurnedElement>& elements) {
  const DType from = rotated.from.tensor.dtype(), into = rotated.into.tensor.dtype();
  uint64_t bad = 0;
  std::string first;
  for (const TurnedElement& expected : elements) {
    const uint64_t got = bitsAt(now, into, expected.into);
    if (isAllowed(expected, from, into, got) || bad++ != 0) continue;
    const std::string wanted = expected.isTurned ? fmt::format("{} within {:.3g}", expected.value, slackOf(expected))
                                                 : fmt::format("{}, which does not turn", text(into, expected.bits));
    first = fmt::format("{} (sequence {}, token {}, head {}, element {}): got {}, expected {}", rotated.name,
                        expected.sequence, expected.token, expected.head, expected.element, text(into, got), wanted);
  }
  if (bad) fail(__FILE__, __LINE__, fmt::format("{}; {} of {} elements differ", first, bad, elements.size()));
}

}  // namespace

double slackOf(const TurnedElement& expected) {
  return expected.size * (1.5 * 0x1p-22 + expected.uncertainty) + 0x1p-125;
}

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
  std::vector<std::byte> bytes(count * byteSize(dtype));
  for (uint64_t element = 0; element < count; ++element) {
    const double value = (static_cast<double>(random.below(65536)) + 0.5) * 0x1p-14 - 2;
    const uint64_t bits = nearestBits(dtype, value);
    std::memcpy(&bytes[element * byteSize(dtype)], &bits, byteSize(dtype));
  }
  return bytes;
}

double f32At(const std::vector<std::byte>& bytes, uint64_t element) {
  return valueOf(DType::f32, bitsAt(bytes, DType::f32, element));
}

MultiRoPEOutcome outcomeOf(const MultiRoPE& op, const OperandMemory& memory) {
  const auto numbersIn = [&](const Tensor* tensor) {
    return tensor ? numbersOf(memory.before(*tensor)) : std::vector<uint32_t>();
  };
  return reference(op, {.queries = memory.before(op.queries.tensor),
                        .keys = op.keys ? memory.before(op.keys->tensor) : std::vector<std::byte>{},
                        .positions = numbersIn(std::get_if<Tensor>(&op.positions.source)),
                        .offsets = numbersIn(op.offsets ? std::get_if<Tensor>(&*op.offsets) : nullptr)});
}

MultiRoPEOutcome expectRotated(const MultiRoPE& op, const OperandMemory& memory) {
  MultiRoPEOutcome outcome = outcomeOf(op, memory);
  for (const Rotated& rotated : rotatedOf(op)) {
    expectElements(rotated, memory.now(rotated.into.tensor), rotated.name == "keys" ? outcome.keys : outcome.queries);
  }
  return outcome;
}

MultiRoPERun::MultiRoPERun(const std::shared_ptr<Device>& device, const MultiRoPECase& rope, Seeded& random)
    : GuardedOperands(device), name_(rope.name) {
  op_ = makeOp(rope, [&](std::string_view name, DType dtype, const Shape& shape, uint64_t shift) {
    const Tensor& tensor = make(name, dtype, shape, shift * byteSize(dtype));
    // Results keep their poison.
    if (name == "queries" || name == "keys") set(name, ropeElements(random, dtype, shape.elementCount()));
    if (name == "positions") set(name, bytesOf(positionsOf(rope)));
    if (name == "offsets") set(name, bytesOf(offsetsOf(rope)));
    return tensor;
  });
}

void MultiRoPERun::expectRotated() const {
  const Context context(name_);
  const MultiRoPEOutcome outcome = test::expectRotated(op_, memory());
  expectAsBefore({"queries", "keys"});
  std::vector<Tensor> tensors;
  for (const Rotated& rotated : rotatedOf(op_)) {
    tensors.insert(tensors.end(), {rotated.from.tensor, rotated.into.tensor});
  }
  for (const Tensor& tensor : tensors) {
    // With its results as they were, all of it must be.
    auto now = memory().now(tensor);
    const auto before = memory().before(tensor);
    const uint64_t size = byteSize(tensor.dtype());
    for (const Rotated& rotated : rotatedOf(op_)) {
      if (rotated.into.tensor.buffer() != tensor.buffer()) continue;
      for (const TurnedElement& element : rotated.name == "keys" ? outcome.keys : outcome.queries) {
        std::memcpy(&now[element.into * size], &before[element.into * size], size);
      }
    }
    if (now != before) fail(__FILE__, __LINE__, "an element that is no result was changed");
  }
}

void run(const std::shared_ptr<Device>& device, const MultiRoPE& op) {
  CommandEncoder encoder(device);
  REQUIRE(encoder.encode(op));
  REQUIRE(REQUIRE(encoder.commit()).wait());
}

void runOnEveryDevice(const std::vector<MultiRoPECase>& cases) {
  runCases(cases, &MultiRoPERun::expectRotated);
}

}  // namespace mnk::test
