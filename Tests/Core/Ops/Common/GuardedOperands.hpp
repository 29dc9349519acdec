// The tensors of an op, by name, each between guards, and what they held before the op ran.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "Harness/GuardedTensor.hpp"
#include "Ops/Common/OperandMemory.hpp"

namespace mnk::test {

class GuardedOperands {
 public:
  explicit GuardedOperands(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  // Poisoned, `shift` bytes past an aligned address.
  const Tensor& make(std::string_view name, DType dtype, const Shape& shape, uint64_t shift);
  MakeNamedTensor maker() {
    return [this](std::string_view name, DType dtype, const Shape& shape, uint64_t shift) {
      return make(name, dtype, shape, shift);
    };
  }
  // Contents now and before; for those of a name that there is none of, nothing happens.
  void set(std::string_view name, std::span<const std::byte> bytes);
  void set(const Tensor& tensor, std::span<const std::byte> bytes);
  // Sets each operand to what this gives for it; where that is empty, it stays as it is.
  void setAll(const std::function<std::vector<std::byte>(std::string_view name, const Tensor& tensor)>& contents);
  // Empty for those of a name that there is none of.
  std::vector<std::byte> before(std::string_view name) const;
  std::vector<std::byte> now(std::string_view name) const;
  // By the buffers of tensors.
  OperandMemory memory() const;
  // All contents are again what they were before.
  void restore() const;

  // Fails where a guard was changed, or an operand whose name ends with none of these.
  void expectAsBefore(std::initializer_list<std::string_view> except = {}) const;

 private:
  struct Operand {
    GuardedTensor memory;
    std::vector<std::byte> before;
  };
  const Operand& holding(const Tensor& tensor) const;

  std::shared_ptr<Device> device_;
  std::map<std::string, Operand, std::less<>> operands_;
};

}  // namespace mnk::test
