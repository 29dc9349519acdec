#include "Runtime/FloatElements.hpp"

#include <bit>
#include <vector>

#include "Support/Errors.hpp"

namespace mnk {

namespace {

struct Half {
  _Float16 value;

  static Half from(float number) { return {static_cast<_Float16>(number)}; }
  float number() const { return static_cast<float>(value); }
};

// The compiler's own bfloat type is not available on every processor.
struct BrainFloat {
  uint16_t bits;

  static BrainFloat from(float number) {
    const auto bits = std::bit_cast<uint32_t>(number);
    // Sets the quiet bit, in case only low bits made it a NaN.
    if (number != number) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  }
  float number() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

template <typename Element>
Result<void> readAs(const Tensor& tensor, std::span<float> into) {
  std::vector<Element> elements(into.size());
  MNK_TRY(tensor.read(std::as_writable_bytes(std::span(elements))));
  for (size_t i = 0; i < into.size(); ++i) into[i] = elements[i].number();
  return {};
}

template <typename Element>
Result<void> writeAs(const Tensor& tensor, std::span<const float> from) {
  std::vector<Element> elements(from.size());
  for (size_t i = 0; i < from.size(); ++i) elements[i] = Element::from(from[i]);
  return tensor.write(std::as_bytes(std::span(elements)));
}

Error notFloat(const Tensor& tensor) {
  return invalidArgument("Tensor", "the elements are not of a float type", name(tensor.dtype()),
                         "one of f32, f16, bf16", "Read or write the bytes instead.");
}

Error noFloats() {
  return invalidArgument("Tensor", "floats are missing", "NULL", "an array", "Pass floats.");
}

}  // namespace

Result<void> readFloats(const Tensor& tensor, std::span<float> into) {
  if (!into.data() && !into.empty()) return noFloats();
  switch (tensor.dtype()) {
    case DType::f32:
      return tensor.read(std::as_writable_bytes(into));
    case DType::f16:
      return readAs<Half>(tensor, into);
    case DType::bf16:
      return readAs<BrainFloat>(tensor, into);
    default:
      return notFloat(tensor);
  }
}

Result<void> writeFloats(const Tensor& tensor, std::span<const float> from) {
  if (!from.data() && !from.empty()) return noFloats();
  switch (tensor.dtype()) {
    case DType::f32:
      return tensor.write(std::as_bytes(from));
    case DType::f16:
      return writeAs<Half>(tensor, from);
    case DType::bf16:
      return writeAs<BrainFloat>(tensor, from);
    default:
      return notFloat(tensor);
  }
}

}  // namespace mnk
