#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"

#include <cstring>

#include "Harness/RawBytes.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/EveryRun.hpp"

namespace mnk::test {

std::vector<uint32_t> indicesOf(const RowIndices& indices, const OperandMemory& memory) {
  if (const auto* list = std::get_if<std::vector<uint32_t>>(&indices)) return *list;
  const auto bytes = memory.before(std::get<Tensor>(indices));
  std::vector<uint32_t> numbers(bytes.size() / sizeof(uint32_t));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

KVCacheWriteOutcome expectWritten(const KVCacheWrite& op, const OperandMemory& memory) {
  KVCacheWriteBytes bytes{.keys = memory.before(op.keys.tensor), .keyCache = memory.before(op.into.keys)};
  if (op.values) {
    bytes.values = memory.before(op.values->tensor);
    bytes.valueCache = memory.before(*op.into.values);
  }
  if (op.rows) {
    bytes.sequences = indicesOf(op.rows->sequences, memory);
    bytes.positions = indicesOf(op.rows->positions, memory);
  }
  KVCacheWriteOutcome expected = reference(op, bytes);
  expectPlane("key cache", op.into, op.into.keys, memory.now(op.into.keys), expected.keyCache);
  if (op.values) {
    expectPlane("value cache", op.into, *op.into.values, memory.now(*op.into.values), expected.valueCache);
  }
  return expected;
}

void setRows(GuardedOperands& operands, const KVCacheWriteCase& write) {
  std::vector<uint32_t> sequences, positions;
  for (const auto& [sequence, position] : write.rows.value_or(std::vector<KVCacheWriteCase::Row>())) {
    sequences.push_back(sequence);
    positions.push_back(position);
  }
  operands.set("sequences", rawBytes(sequences));
  operands.set("positions", rawBytes(positions));
}

KVCacheWriteRun::KVCacheWriteRun(const std::shared_ptr<Device>& device, const KVCacheWriteCase& write, Seeded& random)
    : GuardedOperands(device), name_(write.name) {
  op_ = makeOp(write, [&](std::string_view name, DType dtype, const Shape& shape, uint64_t shift) {
    const Tensor& tensor = make(name, dtype, shape, shift);
    // A cache keeps its poison.
    if (name == "keys" || name == "values") set(name, random.elements(dtype, shape.elementCount()));
    return tensor;
  });
  setRows(*this, write);
}

void KVCacheWriteRun::expectWritten() const {
  const Context context(name_);
  expectAsBefore({"cache"});
  test::expectWritten(op_, memory());
}

void run(const std::shared_ptr<Device>& device, const KVCacheWrite& op) {
  CommandEncoder encoder(device);
  REQUIRE(encoder.encode(op));
  REQUIRE(REQUIRE(encoder.commit()).wait());
}

void runOnEveryDevice(const std::vector<KVCacheWriteCase>& cases) {
  runCases(cases, &KVCacheWriteRun::expectWritten);
}

}  // namespace mnk::test
