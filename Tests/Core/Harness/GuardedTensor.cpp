#include "Harness/GuardedTensor.hpp"

#include <algorithm>
#include <cstring>
#include "Harness/Check.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kBorder = 128;  // more than the widest store, and a multiple of 64

// Differs from byte to byte, so that a border copied to another offset is detected too.
std::span<const std::byte> poisonOf(uint64_t length) {
  thread_local std::vector<std::byte> all;
  while (all.size() < length) all.push_back(static_cast<std::byte>(0xa5 ^ (all.size() * 29 + (all.size() >> 8) * 7)));
  return std::span(all).first(length);
}

}  // namespace

GuardedTensor::GuardedTensor(const std::shared_ptr<Device>& device, DType dtype, const Shape& shape, uint64_t shift) {
  const uint64_t length = kBorder + shift + shape.elementCount() * byteSize(dtype) + kBorder;
  auto buffer = REQUIRE(device->makeBuffer(length));
  REQUIRE(buffer->write(0, poisonOf(length)));
  tensor_ = REQUIRE(Tensor::over(buffer, dtype, shape, kBorder + shift));
}

std::vector<std::byte> GuardedTensor::bytes() const {
  std::vector<std::byte> bytes(tensor_.byteCount());
  REQUIRE(tensor_.read(bytes));
  return bytes;
}

void GuardedTensor::set(std::span<const std::byte> bytes) const {
  REQUIRE(tensor_.write(bytes));
}

void GuardedTensor::expectBordersIntact(std::string_view name, std::source_location where) const {
  const uint64_t length = tensor_.buffer()->length(), begin = tensor_.byteOffset(), end = begin + tensor_.byteCount();
  for (const auto& [from, to] : {std::pair(uint64_t{0}, begin), std::pair(end, length)}) {
    std::vector<std::byte> got(to - from);
    REQUIRE(tensor_.buffer()->read(from, got));
    const auto expected = poisonOf(length).subspan(from, got.size());
    if (std::memcmp(got.data(), expected.data(), got.size()) == 0) continue;
    const auto at = static_cast<uint64_t>(std::mismatch(got.begin(), got.end(), expected.begin()).first - got.begin());
    return fail(where.file_name(), static_cast<int>(where.line()),
                fmt::format("{}: byte {} {} the tensor was changed: got {:#04x}, expected {:#04x}", name,
                            from == 0 ? begin - at : at + 1, from == 0 ? "before" : "after",
                            static_cast<unsigned>(got[at]), static_cast<unsigned>(expected[at])));
  }
}

}  // namespace mnk::test
