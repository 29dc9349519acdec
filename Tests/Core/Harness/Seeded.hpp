// Reproducible random data. MNK_TEST_SEED replaces the seed; failures report the seed while a generator exists.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "Harness/Check.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

class Seeded {
 public:
  // Different streams give different numbers.
  explicit Seeded(uint64_t stream = 0);
  Seeded(uint64_t stream, uint64_t seed);

  uint64_t next();
  uint64_t below(uint64_t end);

  // Elements to convert: mostly ordinary magnitudes, occasionally any bit pattern.
  std::vector<std::byte> elements(DType dtype, uint64_t count);

 private:
  uint64_t state_;
  Context context_;
};

inline bool coin(Seeded& random, uint64_t one, uint64_t in) {
  return random.below(in) < one;
}

template <typename T>
T oneOf(Seeded& random, std::initializer_list<T> choices) {
  return choices.begin()[random.below(choices.size())];
}

// At most two away from 0, 2^31, 2^32, 2^63, 2^64 or one of the numbers given.
uint64_t edge(Seeded& random, std::initializer_list<uint64_t> near);

}  // namespace mnk::test
