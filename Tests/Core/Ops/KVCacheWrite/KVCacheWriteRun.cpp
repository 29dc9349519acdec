#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "Harness/RawBytes.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/EveryRun.hpp"

namespace mnk::test {

KVCacheWriteRun::KVCacheWriteRun(const std::shared_ptr<Device>& device, const KVCacheWriteCase& write, Seeded& random)
    : name_(write.name) {
  if (write.rows) {
    for (const auto& row : *write.rows) {
      sequences_.push_back(row.sequence);
      positions_.push_back(row.position);
    }
  }
  std::vector<std::string_view> names{"keys"};
  if (write.valueHeadDim && !write.fused) names.push_back("values");
  names.push_back("key cache");
  if (write.valueHeadDim) names.push_back("value cache");
  if (write.areSequencesTensor) names.push_back("sequences");
  if (write.arePositionsTensor) names.push_back("positions");

  op_ = makeOp(write, [&](DType dtype, const Shape& shape, uint64_t shift) {
    const std::string_view name = names[operands_.size()];
    const GuardedTensor memory(device, dtype, shape, shift);
    // A cache keeps its poison.
    if (name == "keys" || name == "values") memory.set(random.elements(dtype, shape.elementCount()));
    if (name == "sequences") memory.set(rawBytes(sequences_));
    if (name == "positions") memory.set(rawBytes(positions_));
    operands_.push_back({name, memory, memory.bytes()});
    return memory.tensor();
  });
}

void KVCacheWriteRun::setKeys(std::span<const std::byte> bytes) {
  operands_[0].memory.set(bytes);
  operands_[0].before.assign(bytes.begin(), bytes.end());
}

const KVCacheWriteRun::Operand* KVCacheWriteRun::find(std::string_view name) const {
  const auto found =
      std::find_if(operands_.begin(), operands_.end(), [&](const Operand& operand) { return operand.name == name; });
  return found == operands_.end() ? nullptr : &*found;
}

std::vector<std::byte> KVCacheWriteRun::before(std::string_view name) const {
  const Operand* operand = find(name);
  return operand ? operand->before : std::vector<std::byte>{};
}

void KVCacheWriteRun::expectAsBefore(bool includingCaches) const {
  for (const Operand& operand : operands_) {
    operand.memory.expectBordersIntact(operand.name);
    const bool isCache = operand.name == "key cache" || operand.name == "value cache";
    if (isCache && !includingCaches) continue;
    const bool isSame = operand.memory.bytes() == operand.before;
    if (!isSame) fail(__FILE__, __LINE__, fmt::format("{}: contents were changed", operand.name));
  }
}

void KVCacheWriteRun::expectUntouched() const {
  const Context context(name_);
  expectAsBefore(true);
}

void KVCacheWriteRun::expectWritten() const {
  const Context context(name_);
  expectAsBefore(false);
  const KVCacheWriteOutcome expected = reference(op_, {.keys = before("keys"),
                                                       .values = find("values") ? before("values") : before("keys"),
                                                       .keyCache = before("key cache"),
                                                       .valueCache = before("value cache"),
                                                       .sequences = sequences_,
                                                       .positions = positions_});
  expectPlane("key cache", op_.into, op_.into.keys, find("key cache")->memory.bytes(), expected.keyCache);
  if (!op_.into.values) return;
  expectPlane("value cache", op_.into, *op_.into.values, find("value cache")->memory.bytes(), expected.valueCache);
}

void runOnEveryDevice(const std::vector<KVCacheWriteCase>& cases) {
  runCases(cases, &KVCacheWriteRun::expectWritten);
}

void runOnEveryDevice(const KVCacheWriteCase& write) {
  runOnEveryDevice(std::vector{write});
}

}  // namespace mnk::test
