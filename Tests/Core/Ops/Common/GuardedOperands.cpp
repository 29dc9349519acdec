#include "Ops/Common/GuardedOperands.hpp"

#include <algorithm>

#include "Harness/Check.hpp"

namespace mnk::test {

const Tensor& GuardedOperands::make(std::string_view name, DType dtype, const Shape& shape, uint64_t shift) {
  const GuardedTensor memory(device_, dtype, shape, shift);
  return operands_.emplace(name, Operand{memory, memory.bytes()}).first->second.memory.tensor();
}

void GuardedOperands::set(std::string_view name, std::span<const std::byte> bytes) {
  const auto found = operands_.find(name);
  if (found == operands_.end()) return;
  found->second.memory.set(bytes);
  found->second.before.assign(bytes.begin(), bytes.end());
}

void GuardedOperands::set(const Tensor& tensor, std::span<const std::byte> bytes) {
  for (auto& [name, operand] : operands_) {
    if (operand.memory.tensor().buffer() == tensor.buffer()) return set(name, bytes);
  }
}

void GuardedOperands::setAll(
    const std::function<std::vector<std::byte>(std::string_view name, const Tensor& tensor)>& contents) {
  for (const auto& [name, operand] : operands_) {
    const std::vector<std::byte> bytes = contents(name, operand.memory.tensor());
    if (!bytes.empty()) set(name, bytes);
  }
}

std::vector<std::byte> GuardedOperands::before(std::string_view name) const {
  const auto found = operands_.find(name);
  return found == operands_.end() ? std::vector<std::byte>() : found->second.before;
}

std::vector<std::byte> GuardedOperands::now(std::string_view name) const {
  const auto found = operands_.find(name);
  return found == operands_.end() ? std::vector<std::byte>() : found->second.memory.bytes();
}

const GuardedOperands::Operand& GuardedOperands::holding(const Tensor& tensor) const {
  const auto found = std::find_if(operands_.begin(), operands_.end(), [&](const auto& operand) {
    return operand.second.memory.tensor().buffer() == tensor.buffer();
  });
  if (found != operands_.end()) return found->second;
  fail(__FILE__, __LINE__, "a tensor is none of the operands");
  throw Stop{};
}

OperandMemory GuardedOperands::memory() const {
  return {[this](const Tensor& tensor) { return holding(tensor).before; },
          [this](const Tensor& tensor) { return holding(tensor).memory.bytes(); }};
}

void GuardedOperands::restore() const {
  for (const auto& [name, operand] : operands_) operand.memory.set(operand.before);
}

void GuardedOperands::expectAsBefore(std::initializer_list<std::string_view> except) const {
  for (const auto& [name, operand] : operands_) {
    operand.memory.expectBordersIntact(name);
    const auto isExcept = [&](std::string_view end) { return name.ends_with(end); };
    if (std::any_of(except.begin(), except.end(), isExcept) || operand.memory.bytes() == operand.before) continue;
    fail(__FILE__, __LINE__, fmt::format("{}: contents were changed", name));
  }
}

}  // namespace mnk::test
