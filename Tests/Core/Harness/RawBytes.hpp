// The bytes of numbers, as tensors hold them.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace mnk::test {

template <typename Numbers>
std::vector<std::byte> rawBytes(const Numbers& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

}  // namespace mnk::test
