#include "Ops/MultiRoPE/MultiRoPERun.hpp"

#include <algorithm>
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

uint64_t bitsAt(const std::vector<std::byte>& bytes, DType dtype, uint64_t element) {
  uint64_t bits = 0;
  std::memcpy(&bits, &bytes[element * byteSize(dtype)], byteSize(dtype));
  return bits;
}

std::string text(DType dtype, uint64_t bits) {
  return fmt::format("{} ({:#x})", valueOf(dtype, bits), bits);
}

// One tensor that holds results, with all that is expected in it.
struct Target {
  DType from;
  const Tensor& tensor;
  const std::vector<std::byte>& before;
  const std::vector<std::byte>& got;
};

// The first bad element by its coordinates, and how many there are.
void expectElements(const Target& target, std::string_view name, const std::vector<TurnedElement>& elements) {
  const DType dtype = target.tensor.dtype();
  uint64_t bad = 0;
  std::string first;
  for (const TurnedElement& expected : elements) {
    const uint64_t got = bitsAt(target.got, dtype, expected.into);
    if (isAllowed(expected, target.from, dtype, got) || bad++ != 0) continue;
    const std::string wanted = expected.isTurned ? fmt::format("{} within {:.3g}", expected.value, slackOf(expected))
                                                 : fmt::format("{}, which does not turn", text(dtype, expected.bits));
    first = fmt::format("{} (sequence {}, token {}, head {}, element {}): got {}, expected {}", name, expected.sequence,
                        expected.token, expected.head, expected.element, text(dtype, got), wanted);
  }
  if (bad) fail(__FILE__, __LINE__, fmt::format("{}; {} of {} elements differ", first, bad, elements.size()));
}

void expectOthersAsBefore(const Target& target, std::string_view name, const std::vector<bool>& isResult) {
  const DType dtype = target.tensor.dtype();
  for (uint64_t element = 0; element < isResult.size(); ++element) {
    const uint64_t got = bitsAt(target.got, dtype, element);
    const uint64_t expected = bitsAt(target.before, dtype, element);
    if (isResult[element] || got == expected) continue;
    return fail(__FILE__, __LINE__,
                fmt::format("{}: element {} of the tensor is no result and was changed: got {:#x}, expected {:#x}",
                            name, element, got, expected));
  }
}

}  // namespace

double slackOf(const TurnedElement& expected) {
  const double angle = expected.radians * (2 * static_cast<double>(expected.pair) + 8) * 0x1p-53;
  return expected.size * (1.5 * 0x1p-22 + angle) + 0x1p-125;
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

MultiRoPERun::MultiRoPERun(const std::shared_ptr<Device>& device, const MultiRoPECase& rope, Seeded& random)
    : name_(rope.name) {
  op_ = makeOp(rope, [&](std::string_view name, DType dtype, const Shape& shape, uint64_t shift) {
    const GuardedTensor memory(device, dtype, shape, shift * byteSize(dtype));
    // Results keep their poison.
    if (name == "queries" || name == "keys") memory.set(ropeElements(random, dtype, shape.elementCount()));
    if (name == "positions") memory.set(bytesOf(positionsOf(rope)));
    if (name == "offsets") memory.set(bytesOf(offsetsOf(rope)));
    operands_.push_back({std::string(name), memory, memory.bytes()});
    return memory.tensor();
  });
}

const MultiRoPERun::Operand* MultiRoPERun::find(std::string_view name) const {
  const auto found =
      std::find_if(operands_.begin(), operands_.end(), [&](const Operand& operand) { return operand.name == name; });
  return found == operands_.end() ? nullptr : &*found;
}

const MultiRoPERun::Operand& MultiRoPERun::holding(const HeadsView& view) const {
  return *std::find_if(operands_.begin(), operands_.end(), [&](const Operand& operand) {
    return operand.memory.tensor().buffer() == view.tensor.buffer();
  });
}

void MultiRoPERun::set(std::string_view name, std::span<const std::byte> bytes) {
  for (Operand& operand : operands_) {
    if (operand.name != name) continue;
    operand.memory.set(bytes);
    operand.before.assign(bytes.begin(), bytes.end());
  }
}

std::vector<std::byte> MultiRoPERun::before(std::string_view name) const {
  const Operand* operand = find(name);
  return operand ? operand->before : std::vector<std::byte>{};
}

std::vector<std::byte> MultiRoPERun::now(std::string_view name) const {
  const Operand* operand = find(name);
  return operand ? operand->memory.bytes() : std::vector<std::byte>{};
}

void MultiRoPERun::restore() const {
  for (const Operand& operand : operands_) operand.memory.set(operand.before);
}

MultiRoPEOutcome MultiRoPERun::expected() const {
  return reference(op_, {.queries = holding(op_.queries).before,
                         .keys = op_.keys ? holding(*op_.keys).before : std::vector<std::byte>{},
                         .positions = numbersOf(before("positions")),
                         .offsets = numbersOf(before("offsets"))});
}

void MultiRoPERun::expectUntouched() const {
  const Context context(name_);
  for (const Operand& operand : operands_) {
    operand.memory.expectBordersIntact(operand.name);
    if (operand.memory.bytes() == operand.before) continue;
    fail(__FILE__, __LINE__, fmt::format("{}: contents were changed", operand.name));
  }
}

void MultiRoPERun::expectRotated() const {
  const Context context(name_);
  const MultiRoPEOutcome outcome = expected();
  const HeadsView& queries = op_.rotatedQueries ? *op_.rotatedQueries : op_.queries;
  for (const Operand& operand : operands_) {
    operand.memory.expectBordersIntact(operand.name);
    const auto got = operand.memory.bytes();
    const Tensor& tensor = operand.memory.tensor();
    const Target target{op_.queries.tensor.dtype(), tensor, operand.before, got};
    std::vector<bool> isResult(tensor.shape().elementCount());
    const auto check = [&](std::string_view name, const HeadsView& view, const std::vector<TurnedElement>& elements) {
      if (view.tensor.buffer() != tensor.buffer()) return;
      expectElements(target, name, elements);
      for (const TurnedElement& element : elements) isResult[element.into] = true;
    };
    check("queries", queries, outcome.queries);
    if (op_.keys) check("keys", op_.rotatedKeys ? *op_.rotatedKeys : *op_.keys, outcome.keys);
    expectOthersAsBefore(target, operand.name, isResult);
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

void runOnEveryDevice(const MultiRoPECase& rope) {
  runOnEveryDevice(std::vector{rope});
}

}  // namespace mnk::test
