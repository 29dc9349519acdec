#include "Harness/Seeded.hpp"

#include <cstdlib>
#include <cstring>
#include <iterator>

namespace mnk::test {

namespace {

uint64_t defaultSeed() {
  static const uint64_t value = [] {
    const char* text = std::getenv("MNK_TEST_SEED");
    return text ? std::strtoull(text, nullptr, 0) : uint64_t{20260101};
  }();
  return value;
}

// Keeps exponents near 1, where f16 neither overflows nor underflows; a few are outside on purpose.
uint64_t everyday(DType dtype, uint64_t bits) {
  const uint64_t exponent = 127 - 18 + (bits >> 40) % 36;
  if (dtype == DType::f32) return (bits & 0x807f'ffff) | exponent << 23;
  if (dtype == DType::bf16) return (bits & 0x807f) | exponent << 7;
  return bits;
}

}  // namespace

Seeded::Seeded(uint64_t stream) : Seeded(stream, defaultSeed()) {}

Seeded::Seeded(uint64_t stream, uint64_t seed)
    : state_(seed * 0x9e37'79b9'7f4a'7c15 + stream), context_(fmt::format("seed {}", seed)) {}

uint64_t Seeded::next() {
  state_ += 0x9e37'79b9'7f4a'7c15;
  uint64_t mixed = state_;
  mixed = (mixed ^ mixed >> 30) * 0xbf58'476d'1ce4'e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d0'49bb'1331'11eb;
  return mixed ^ mixed >> 31;
}

uint64_t Seeded::below(uint64_t end) {
  return end == 0 ? 0 : next() % end;
}

std::vector<std::byte> Seeded::elements(DType dtype, uint64_t count) {
  std::vector<std::byte> bytes(count * byteSize(dtype));
  for (uint64_t element = 0; element < count; ++element) {
    const uint64_t random = next();
    const uint64_t bits = random >> 61 == 0 ? random : everyday(dtype, random);
    std::memcpy(&bytes[element * byteSize(dtype)], &bits, byteSize(dtype));
  }
  return bytes;
}

uint64_t edge(Seeded& random, std::initializer_list<uint64_t> near) {
  constexpr uint64_t kFixed[] = {0, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63};
  const uint64_t index = random.below(std::size(kFixed) + 2 * near.size());
  const uint64_t base = index < std::size(kFixed) ? kFixed[index] : near.begin()[(index - std::size(kFixed)) / 2];
  return base + random.below(5) - 2;  // below 0 is just below 2^64
}

}  // namespace mnk::test
