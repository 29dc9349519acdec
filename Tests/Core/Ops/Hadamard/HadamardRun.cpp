#include "Ops/Hadamard/HadamardRun.hpp"

#include <cmath>

#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/StoredVector.hpp"

namespace mnk::test {

void expectTurned(const Hadamard& op, const OperandMemory& memory) {
  const Shape& shape = op.from.shape();
  if (shape.elementCount() == 0) return;
  const Tensor& into = op.into ? *op.into : op.from;
  const uint64_t length = shape[shape.rank() - 1];
  const std::vector<double> signs = op.signs ? signsOf(*op.signs, length) : std::vector<double>(length, 1);
  std::vector<double> expected = valuesOf(op.from.dtype(), memory.before(op.from));
  for (auto vector = expected.begin(); vector != expected.end(); vector += static_cast<ptrdiff_t>(length)) {
    for (size_t j = 0; j < length && !op.isInverse; ++j) vector[static_cast<ptrdiff_t>(j)] *= signs[j];
    const std::vector<double> turned = hadamard({vector, length});
    for (size_t j = 0; j < length; ++j) {
      vector[static_cast<ptrdiff_t>(j)] =
          turned[j] / std::sqrt(static_cast<double>(length)) * (op.isInverse ? signs[j] : 1);
    }
  }
  // Mean squares of rounding: f32 sums of 12 stages at most, and one rounding to the target, of 11 or 8 digits.
  const DType dtype = into.dtype();
  const double allowed = dtype == DType::f32 ? 1e-13 : 1.01 * (dtype == DType::f16 ? 0x1p-22 : 0x1p-16);
  const double error = relativeSquares(valuesOf(dtype, memory.now(into)), expected);
  if (!(error <= allowed)) fail(__FILE__, __LINE__, fmt::format("error {}, allowed {}", error, allowed));
}

Hadamard makeOp(const HadamardCase& turn, const MakeNamedTensor& makeTensor) {
  const Shape shape = REQUIRE(Shape::make({turn.vectors, turn.length}));
  const auto make = [&](std::string_view name, DType dtype) {
    return makeTensor(name, dtype, shape, turn.shift * byteSize(dtype));
  };
  Hadamard op{.from = make("from", turn.from), .signs = turn.signs, .isInverse = turn.isInverse};
  if (turn.into) op.into = make("into", *turn.into);
  return op;
}

void fill(HadamardRun& run, const HadamardCase& turn, Seeded& random) {
  run.set("from", bytesOfValues(turn.from, widened(normalVector(random, turn.vectors * turn.length))));
}

void expectOutcome(const HadamardRun& run) {
  run.expectAsBefore({run.op().into ? "into" : "from"});
  expectTurned(run.op(), run.memory());
}

}  // namespace mnk::test
