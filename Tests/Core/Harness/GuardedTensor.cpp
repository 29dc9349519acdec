#include "Support/GuardedTensor.hpp"

#include "Support/Check.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kBorder = 128;  // more than the widest store, and a multiple of 64

// Differs from byte to byte, so that a border copied onto itself at another place shows too.
std::byte poisonAt(uint64_t offset) {
  return static_cast<std::byte>(0xa5 ^ (offset * 29 + (offset >> 8) * 7));
}

}  // namespace

GuardedTensor::GuardedTensor(const std::shared_ptr<Device>& device, DType dtype, const Shape& shape, uint64_t shift) {
  const uint64_t length = kBorder + shift + shape.elementCount() * byteSize(dtype) + kBorder;
  auto buffer = REQUIRE(device->makeBuffer(length));
  std::vector<std::byte> poison(length);
  for (uint64_t offset = 0; offset < length; ++offset) poison[offset] = poisonAt(offset);
  REQUIRE(buffer->write(0, poison));
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
  std::vector<std::byte> all(tensor_.buffer()->length());
  REQUIRE(tensor_.buffer()->read(0, all));
  const uint64_t begin = tensor_.byteOffset();
  const uint64_t end = begin + tensor_.byteCount();
  for (uint64_t offset = 0; offset < all.size(); ++offset) {
    if ((offset >= begin && offset < end) || all[offset] == poisonAt(offset)) continue;
    const bool isBefore = offset < begin;
    fail(where.file_name(), static_cast<int>(where.line()),
         fmt::format("{}: byte {} {} the tensor was changed: got {:#04x}, expected {:#04x}", name,
                     isBefore ? begin - offset : offset - end + 1, isBefore ? "before" : "after",
                     static_cast<unsigned>(all[offset]), static_cast<unsigned>(poisonAt(offset))));
    return;
  }
}

}  // namespace mnk::test
