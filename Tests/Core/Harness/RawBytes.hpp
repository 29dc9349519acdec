// The bytes of numbers, as tensors hold them, and numbers in bytes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace mnk::test {

template <typename Numbers>
std::vector<std::byte> rawBytes(const Numbers& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

template <typename Number>
std::vector<Number> numbersIn(std::span<const std::byte> bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::copy_n(bytes.begin(), numbers.size() * sizeof(Number), std::as_writable_bytes(std::span(numbers)).begin());
  return numbers;
}

}  // namespace mnk::test
