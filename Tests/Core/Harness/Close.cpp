#include "Harness/Close.hpp"

#include <cstring>

#include "Harness/Check.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::test {

namespace {

uint64_t bitsAt(std::span<const std::byte> bytes, uint64_t element, uint64_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + element * size, size);
  return bits;
}

std::string coordinates(const KVCacheView& view, const Tensor& plane, uint64_t index) {
  const Shape& shape = plane.shape();
  const uint64_t headDim = shape[shape.rank() - 1];
  const uint64_t element = index % headDim;
  const uint64_t row = index / headDim % (view.heads() * view.capacity());
  const uint64_t sequence = index / headDim / (view.heads() * view.capacity());
  const bool isHeadMajor = view.layout == KVLayout::headMajor;
  const uint64_t head = isHeadMajor ? row / view.capacity() : row % view.heads();
  const uint64_t slot = isHeadMajor ? row % view.capacity() : row / view.heads();
  return fmt::format("(sequence {}, head {}, slot {}, element {})", sequence, head, slot, element);
}

std::string elementText(DType dtype, uint64_t bits) {
  const std::string hex = fmt::format("{:#0{}x}", bits, 2 + 2 * byteSize(dtype));
  return isFloat(dtype) ? fmt::format("{} ({})", valueOf(dtype, bits), hex) : hex;
}

}  // namespace

void expectPlane(std::string_view name, const KVCacheView& view, const Tensor& plane, std::span<const std::byte> got,
                 const ExpectedPlane& expected, std::source_location where) {
  const DType dtype = plane.dtype();
  const uint64_t size = byteSize(dtype);
  uint64_t bad = 0;
  std::string first;
  for (uint64_t element = 0; element < plane.shape().elementCount(); ++element) {
    const uint64_t gotBits = bitsAt(got, element, size);
    const uint64_t expectedBits = bitsAt(expected.bytes, element, size);
    if (gotBits == expectedBits) continue;
    const bool isWritten = expected.isWritten[element * size];
    if (expected.isConverted && isWritten && isNaN(dtype, gotBits) && isNaN(dtype, expectedBits)) continue;
    if (bad++ != 0) continue;
    first = fmt::format("{} {}: got {}, expected {}{}", name, coordinates(view, plane, element),
                        elementText(dtype, gotBits), elementText(dtype, expectedBits),
                        isWritten ? "" : ", which was there before");
  }
  if (bad == 0) return;
  fail(where.file_name(), static_cast<int>(where.line()), fmt::format("{}; {} elements differ", first, bad));
}

}  // namespace mnk::test
