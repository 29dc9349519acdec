// Random data that comes out the same every time. MNK_TEST_SEED replaces the seed; failures while a generator lives
// name the seed in use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "Harness/Check.hpp"
#include "MLXNativeKernels/DType.hpp"

namespace mnk::test {

class Seeded {
 public:
  // Generators with different streams give different numbers.
  explicit Seeded(uint64_t stream = 0);
  Seeded(uint64_t stream, uint64_t seed);

  uint64_t next();
  uint64_t below(uint64_t end);

  // Elements that are worth converting: everyday magnitudes, and any bit pattern now and then.
  std::vector<std::byte> elements(DType dtype, uint64_t count);

 private:
  uint64_t state_;
  Context context_;
};

}  // namespace mnk::test
