#include "Support/Crc32.hpp"

#include <array>

namespace mnk {

namespace {

constexpr size_t kStep = 16;  // bytes at a time

// Remainders of a byte followed by `i` zero bytes. The lookups for all bytes of a step are independent, so the
// processor overlaps them; with a single table, each byte would wait for the previous one.
using Tables = std::array<std::array<uint32_t, 256>, kStep>;
constexpr Tables makeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ (remainder & 1 ? 0xEDB88320 : 0);
    tables[0][byte] = remainder;
  }
  for (size_t i = 1; i < kStep; ++i) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[i - 1][byte];
      tables[i][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}
constexpr Tables kTables = makeTables();

// Compiles to one load on a little-endian processor.
uint64_t littleEndian(const uint8_t* bytes) {
  uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number |= uint64_t{bytes[i]} << (8 * i);
  return number;
}

}  // namespace

void Crc32::add(std::span<const std::byte> bytes) {
  uint32_t state = state_;
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= kStep; at += kStep, left -= kStep) {
    const uint64_t low = littleEndian(at) ^ state, high = littleEndian(at + 8);
    state = 0;
    for (size_t i = 0; i < 8; ++i) {
      state ^= kTables[15 - i][(low >> (8 * i)) & 0xFF] ^ kTables[7 - i][(high >> (8 * i)) & 0xFF];
    }
  }
  for (; left > 0; ++at, --left) state = kTables[0][(state ^ *at) & 0xFF] ^ (state >> 8);
  state_ = state;
}

}  // namespace mnk
