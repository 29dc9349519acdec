#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::test {

namespace {

std::string elementText(DType dtype, uint64_t bits) {
  return isFloat(dtype) ? fmt::format("{} ({:#x})", valueOf(dtype, bits), bits) : fmt::format("{:#x}", bits);
}

// The first bad element by its coordinates. Where elements are converted, any NaN matches a NaN: formats and processors
// disagree about payloads.
void expectPlane(std::string_view name, const KVCacheView& view, const Tensor& plane, bool isConverted,
                 const std::vector<std::byte>& got, const ExpectedPlane& expected) {
  if (got == expected.bytes) return;
  const DType dtype = plane.dtype();
  for (uint64_t element = 0; element < plane.shape().elementCount(); ++element) {
    const uint64_t gotBits = bitsAt(got, dtype, element), expectedBits = bitsAt(expected.bytes, dtype, element);
    if (gotBits == expectedBits) continue;
    const bool isWritten = expected.isWritten[element * byteSize(dtype)];
    if (isConverted && isWritten && isNaN(dtype, gotBits) && isNaN(dtype, expectedBits)) continue;
    const uint64_t headDim = plane.shape()[plane.shape().rank() - 1], row = element / headDim;
    const uint64_t rows = view.heads() * view.capacity();
    const bool isHeadMajor = view.layout == KVLayout::headMajor;
    const uint64_t inner = isHeadMajor ? view.capacity() : view.heads();
    const uint64_t outerIndex = row % rows / inner, innerIndex = row % inner;
    return fail(__FILE__, __LINE__,
                fmt::format("{} (sequence {}, head {}, slot {}, element {}): got {}, expected {}{}", name, row / rows,
                            isHeadMajor ? outerIndex : innerIndex, isHeadMajor ? innerIndex : outerIndex,
                            element % headDim, elementText(dtype, gotBits), elementText(dtype, expectedBits),
                            isWritten ? "" : ", which was there before"));
  }
}

}  // namespace

std::vector<std::byte> rowNumbers(const KVCacheWriteCase& write, std::string_view name) {
  std::vector<uint32_t> numbers;
  for (const auto& [sequence, position] : write.rows.value_or(std::vector<KVCacheWriteCase::Row>())) {
    if (name == "sequences") numbers.push_back(sequence);
    if (name == "positions") numbers.push_back(position);
  }
  return rawBytes(numbers);
}

// A cache keeps its poison.
void fill(KVCacheWriteRun& run, const KVCacheWriteCase& write, Seeded& random) {
  run.setAll([&](std::string_view name, const Tensor& tensor) {
    const bool isSource = name == "keys" || name == "values";
    return isSource ? random.elements(tensor.dtype(), tensor.shape().elementCount()) : rowNumbers(write, name);
  });
}

KVCacheWriteOutcome expectWritten(const KVCacheWrite& op, const OperandMemory& memory) {
  KVCacheWriteOutcome expected = reference(op, memory.before);
  const auto expect = [&](std::string_view name, const HeadsView& source, const Tensor& cache,
                          const ExpectedPlane& plane) {
    expectPlane(name, op.into, cache, source.tensor.dtype() != cache.dtype(), memory.now(cache), plane);
  };
  expect("key cache", op.keys, op.into.keys, expected.keyCache);
  if (op.values) expect("value cache", *op.values, *op.into.values, expected.valueCache);
  return expected;
}

void expectOutcome(const KVCacheWriteRun& run) {
  run.expectAsBefore({"cache"});
  expectWritten(run.op(), run.memory());
}

}  // namespace mnk::test
