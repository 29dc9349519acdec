#include "Harness/SoftFloat.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace mnk::test {

namespace {

struct Format {
  int exponentBits;
  int fractionBits;

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  uint64_t allOnesExponent() const { return (uint64_t{1} << exponentBits) - 1; }
};

Format formatOf(DType dtype) {
  if (dtype == DType::f16) return {5, 10};
  if (dtype == DType::bf16) return {8, 7};
  return {8, 23};
}

// value / 2^shift, ties to even.
uint64_t shiftedToNearest(uint64_t value, int shift) {
  if (shift <= 0) return value << -shift;
  if (shift > 60) return 0;
  const uint64_t quotient = value >> shift;
  const uint64_t rest = value - (quotient << shift);
  const uint64_t half = uint64_t{1} << (shift - 1);
  return quotient + (rest > half || (rest == half && quotient % 2 == 1) ? 1 : 0);
}

}  // namespace

double valueOf(DType dtype, uint64_t bits) {
  const Format format = formatOf(dtype);
  const uint64_t fraction = bits & ((uint64_t{1} << format.fractionBits) - 1);
  const uint64_t exponent = bits >> format.fractionBits & format.allOnesExponent();
  const bool isNegative = bits >> (format.fractionBits + format.exponentBits) & 1;
  double magnitude;
  if (exponent == format.allOnesExponent()) {
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<double>(fraction), 1 - format.bias() - format.fractionBits);
  } else {
    const uint64_t significand = fraction | uint64_t{1} << format.fractionBits;
    magnitude =
        std::ldexp(static_cast<double>(significand), static_cast<int>(exponent) - format.bias() - format.fractionBits);
  }
  return isNegative ? -magnitude : magnitude;
}

uint64_t nearestBits(DType dtype, double value) {
  const Format format = formatOf(dtype);
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = bits >> 63 << (format.fractionBits + format.exponentBits);
  const uint64_t infinity = format.allOnesExponent() << format.fractionBits;
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & 0xf'ffff'ffff'ffff;
  if (exponent == 0x7ff) return sign | infinity | (fraction ? uint64_t{1} << (format.fractionBits - 1) : 0);
  if (exponent == 0) return sign;  // a subnormal double is far below half of the smallest number of the other formats
  const uint64_t significand = fraction | uint64_t{1} << 52;
  // Below the format's normal range the last place is fixed, so more bits are dropped.
  const int target = exponent - 1023 + format.bias();
  const int shift = 52 - format.fractionBits + (target < 1 ? 1 - target : 0);
  const uint64_t rounded = shiftedToNearest(significand, shift);
  // The leading bit of a normal number adds one to the exponent field, and so does a carry out of the fraction.
  const uint64_t field = target < 1 ? rounded : (static_cast<uint64_t>(target - 1) << format.fractionBits) + rounded;
  return sign | (field < infinity ? field : infinity);
}

bool isNaN(DType dtype, uint64_t bits) {
  return isFloat(dtype) && std::isnan(valueOf(dtype, bits));
}

uint64_t bitsAt(std::span<const std::byte> bytes, DType dtype, uint64_t element) {
  uint64_t bits = 0;
  std::memcpy(&bits, &bytes[element * byteSize(dtype)], byteSize(dtype));
  return bits;
}

std::vector<std::byte> bytesOfBits(DType dtype, std::span<const uint64_t> bits) {
  std::vector<std::byte> bytes(bits.size() * byteSize(dtype));
  for (size_t element = 0; element < bits.size(); ++element) {
    std::memcpy(&bytes[element * byteSize(dtype)], &bits[element], byteSize(dtype));
  }
  return bytes;
}

std::vector<std::byte> bytesOfValues(DType dtype, std::span<const double> values) {
  std::vector<uint64_t> bits;
  for (const double value : values) bits.push_back(nearestBits(dtype, value));
  return bytesOfBits(dtype, bits);
}

std::vector<double> valuesOf(DType dtype, std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / byteSize(dtype));
  for (size_t element = 0; element < values.size(); ++element) {
    values[element] = valueOf(dtype, bitsAt(bytes, dtype, element));
  }
  return values;
}

}  // namespace mnk::test
