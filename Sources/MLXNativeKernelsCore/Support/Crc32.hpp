// CRC-32 as in zip, PNG and gzip: polynomial 0xEDB88320, reflected. It finds every error of up to 32 bits in a row. By
// hand, because with a library every build of an app on Linux would need one more development package.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace mnk {

class Crc32 {
 public:
  void add(std::span<const std::byte> bytes);
  uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = 0xFFFFFFFF;
};

}  // namespace mnk
