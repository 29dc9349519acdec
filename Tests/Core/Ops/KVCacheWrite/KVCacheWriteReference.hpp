// What KVCacheWrite must do, token after token as its header defines it, in plain loops.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "Harness/Close.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"

namespace mnk::test {

// The contents of an op's operands.
struct KVCacheWriteBytes {
  std::vector<std::byte> keys;    // of their tensor
  std::vector<std::byte> values;  // of theirs, which may be the same
  std::vector<std::byte> keyCache;
  std::vector<std::byte> valueCache;
  std::vector<uint32_t> sequences;  // of rows
  std::vector<uint32_t> positions;
};

struct KVCacheWriteOutcome {
  ExpectedPlane keyCache;
  ExpectedPlane valueCache;
  std::vector<bool> keysRead;  // by byte: those that arrive in the cache
  std::vector<bool> valuesRead;
  uint64_t storedTokens = 0;
};

KVCacheWriteOutcome reference(const KVCacheWrite& op, const KVCacheWriteBytes& before);

struct Place {
  uint64_t sequence;
  uint64_t slot;
  auto operator<=>(const Place&) const = default;
};

// The source token that each place ends up with: later tokens replace earlier ones.
std::map<Place, uint64_t> winners(const KVCacheWrite& op, std::span<const uint32_t> sequences,
                                  std::span<const uint32_t> positions);
// How many tokens the source holds, in all of its sequences.
uint64_t sourceTokens(const KVCacheWrite& op);
// The first element of a vector of keys or values in their tensor.
uint64_t sourceElement(const HeadsView& source, KVLayout layout, uint64_t token, uint64_t head);

}  // namespace mnk::test
