// CRC-32 as in zip, PNG and gzip: polynomial 0xEDB88320, reflected. By hand, because a library for these lines would be
// the only thing that the core needs of it. It finds every error of up to 32 bits in a row.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mnk {

class Crc32 {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      state_ = kTable[(state_ ^ static_cast<uint32_t>(byte)) & 0xFF] ^ (state_ >> 8);
    }
  }
  uint32_t value() const { return ~state_; }

 private:
  static constexpr std::array<uint32_t, 256> makeTable() {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < table.size(); ++i) {
      uint32_t remainder = i;
      for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ (remainder & 1 ? 0xEDB88320 : 0);
      table[i] = remainder;
    }
    return table;
  }
  static const std::array<uint32_t, 256> kTable;

  uint32_t state_ = 0xFFFFFFFF;
};

inline constexpr std::array<uint32_t, 256> Crc32::kTable = Crc32::makeTable();

}  // namespace mnk
