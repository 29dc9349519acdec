// A case on a device: operands with known contents between guards, and the check of what became of them.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "Harness/GuardedTensor.hpp"
#include "Harness/Seeded.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

class KVCacheQuantizeRun {
 public:
  KVCacheQuantizeRun(const std::shared_ptr<Device>& device, const KVCacheQuantizeCase& quantize, Seeded& random);

  const KVCacheQuantize& op() const { return op_; }

  // The cache holds what the reference says; everything else is as it was.
  void expectStored() const;

 private:
  struct Operand {
    GuardedTensor memory;
    std::vector<std::byte> before;
  };
  // Keys or values.
  struct Plane {
    std::string name;  // "key", "value"
    const HeadsView* source;
    const QuantizedKVPlane* into;
    KVScaleRule rule;
  };
  struct Counts {
    uint32_t nonFinite = 0;
    uint32_t saturated = 0;
  };

  const std::vector<std::byte>& before(const std::string& name) const { return operands_.at(name).before; }
  uint64_t cacheRow(const Place& place, uint64_t head) const;
  const std::string& sourceName(const Plane& plane) const;
  VectorCoding codingOf(const Plane& plane, uint64_t head) const;
  void expectPlane(const Plane& plane, const std::map<Place, uint64_t>& tokens, Counts& counts) const;
  void expectDensePlane(const Plane& plane, const std::map<Place, uint64_t>& tokens) const;
  void expectProbe(uint64_t head, const CodedVector& expected) const;
  void expectInputsAsBefore() const;

  std::string name_;
  std::map<std::string, Operand> operands_;
  KVCacheQuantize op_;
  KVCacheWrite places_;  // an op with the same sources, slots and rows
  std::vector<uint32_t> sequences_;
  std::vector<uint32_t> positions_;
};

// Encodes each case on every device, many to a submission, and checks each.
void runOnEveryDevice(const std::vector<KVCacheQuantizeCase>& cases);

}  // namespace mnk::test
