// A case on a device: operands with known contents between guards, and the check of what became of them.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "Harness/GuardedTensor.hpp"
#include "Harness/Seeded.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

class KVCacheWriteRun {
 public:
  KVCacheWriteRun(const std::shared_ptr<Device>& device, const KVCacheWriteCase& write, Seeded& random);

  const std::string& name() const { return name_; }
  const KVCacheWrite& op() const { return op_; }
  // Source contents of the test's own choosing, in place of random ones.
  void setKeys(std::span<const std::byte> bytes);

  // The cache holds what the reference says; everything else is as it was.
  void expectWritten() const;
  void expectUntouched() const;

 private:
  struct Operand {
    std::string_view name;
    GuardedTensor memory;
    std::vector<std::byte> before;
  };
  const Operand* find(std::string_view name) const;
  std::vector<std::byte> before(std::string_view name) const;
  void expectAsBefore(bool includingCaches) const;

  std::string name_;
  std::vector<Operand> operands_;
  KVCacheWrite op_;
  std::vector<uint32_t> sequences_;
  std::vector<uint32_t> positions_;
};

// Encodes each case on every device, many to a submission, and checks each.
void runOnEveryDevice(const std::vector<KVCacheWriteCase>& cases);
// Runs one case on every device.
void runOnEveryDevice(const KVCacheWriteCase& write);

}  // namespace mnk::test
