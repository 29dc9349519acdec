// What KVCacheWrite must do, token after token as its header defines it, in plain loops.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Ops/Common/OperandMemory.hpp"

namespace mnk::test {

// What keys, or values, leave in the cache, and for each byte, whether it is written, or read from their tensor.
struct ExpectedPlane {
  std::vector<std::byte> bytes;
  std::vector<bool> isWritten;
  std::vector<bool> isRead;
};

struct KVCacheWriteOutcome {
  ExpectedPlane keyCache;
  ExpectedPlane valueCache = {};
  uint64_t storedTokens = 0;
};

KVCacheWriteOutcome reference(const KVCacheWrite& op, const ReadTensor& before);

struct Place {
  uint64_t sequence;
  uint64_t slot;
  auto operator<=>(const Place&) const = default;
};

// The source token that each place ends up with: later tokens replace earlier ones.
std::map<Place, uint64_t> winners(const KVCacheWrite& op, const ReadTensor& before);
// Which of a plane's vectors a head has at a place.
uint64_t cacheRow(const KVCacheView& cache, const Place& place, uint64_t head);
// How many tokens the source holds, in all of its sequences.
uint64_t sourceTokens(const KVCacheWrite& op);
// The first element of a vector of keys or values in their tensor.
uint64_t sourceElement(const HeadsView& source, KVLayout layout, uint64_t token, uint64_t head);

}  // namespace mnk::test
