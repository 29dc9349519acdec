// CRC-32 as in zip, PNG and gzip: polynomial 0xEDB88320, reflected. Detects every error burst of up to 32 bits. Not
// from a library, because every Linux build would then need one more development package.
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
