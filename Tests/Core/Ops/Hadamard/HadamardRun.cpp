#include "Ops/Hadamard/HadamardRun.hpp"

#include <cmath>

#include "Harness/Check.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/KVCodecTables.hpp"

namespace mnk::test {

std::vector<double> turnedValues(std::span<const double> values, uint64_t length, std::optional<KVCodec::Name> codec,
                                 bool isInverse) {
  std::vector<double> all;
  const std::vector<double> signs = codec ? signsOf(*codec, length) : std::vector<double>(length, 1);
  for (uint64_t begin = 0; begin < values.size(); begin += length) {
    std::vector<double> x(values.begin() + static_cast<ptrdiff_t>(begin),
                          values.begin() + static_cast<ptrdiff_t>(begin + length));
    for (uint64_t j = 0; j < length && !isInverse; ++j) x[j] *= signs[j];
    x = hadamard(x);
    for (uint64_t j = 0; j < length; ++j) {
      all.push_back(x[j] / std::sqrt(static_cast<double>(length)) * (isInverse ? signs[j] : 1));
    }
  }
  return all;
}

double errorOf(const std::vector<double>& got, const std::vector<double>& expected) {
  double error = 0, size = 0;
  for (size_t index = 0; index < got.size(); ++index) {
    error += (got[index] - expected[index]) * (got[index] - expected[index]);
    size += expected[index] * expected[index];
  }
  return error / size;
}

// Mean squares of rounding: f32 sums of 12 stages at most, and one rounding to the target, of 11 or 8 digits.
double allowedHadamardError(DType dtype) {
  if (dtype == DType::f32) return 1e-13;
  return 1.01 * (dtype == DType::f16 ? 0x1p-22 : 0x1p-16);
}

void expectTurned(const Hadamard& op, const OperandMemory& memory) {
  const Shape& shape = op.from.shape();
  if (shape.elementCount() == 0) return;
  const Tensor& into = op.into ? *op.into : op.from;
  const auto values = valuesOf(op.from.dtype(), memory.before(op.from));
  const auto expected = turnedValues(values, shape[shape.rank() - 1], op.signs, op.isInverse);
  const double error = errorOf(valuesOf(into.dtype(), memory.now(into)), expected);
  if (error <= allowedHadamardError(into.dtype())) return;
  fail(__FILE__, __LINE__, fmt::format("error {}, allowed {}", error, allowedHadamardError(into.dtype())));
}

}  // namespace mnk::test
