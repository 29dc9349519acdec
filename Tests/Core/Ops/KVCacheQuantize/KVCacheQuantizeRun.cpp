#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"

namespace mnk::test {

namespace {

// What became of a vector. The reference judges equal vectors once: devices are given the same ones, and mostly store
// the same.
struct Verdict {
  std::string fault;
  bool isNonFinite = false;
  bool isSaturated = false;
};
const Verdict& verdictOn(const VectorCoding& coding, const std::vector<double>& vector, const StoredVector& got) {
  constexpr size_t kMostRemembered = 1 << 15;
  thread_local std::unordered_map<std::string, Verdict> verdicts;
  std::string key;
  const auto add = [&](const auto& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    key += static_cast<char>('0' + (bytes.empty() ? 0 : 1));
  };
  add(std::array{static_cast<double>(coding.codec.name), double{coding.codec.scaleFactor},
                 static_cast<double>(coding.codec.bits), static_cast<double>(coding.candidates),
                 static_cast<double>(coding.rule), static_cast<double>(coding.nonFinite)});
  add(coding.means), add(coding.channelScales), add(vector), add(got.bytes), add(got.scales);
  if (verdicts.size() == kMostRemembered) verdicts.clear();
  const auto [found, isNew] = verdicts.try_emplace(std::move(key));
  if (isNew) {
    const CodedVector expected = encoded(coding, vector);
    found->second = {fault(coding, expected, got), expected.isNonFinite, expected.isSaturated};
  }
  return found->second;
}

struct QuantizeCounts {
  uint32_t nonFinite = 0;
  uint32_t saturated = 0;
};

void expectProbe(std::span<const float> got, const std::vector<double>& expected) {
  for (size_t j = 0; j < got.size(); ++j) {
    // Relative beyond the outermost boundary, where nothing hangs on it.
    const double allowed = 4e-6 * std::max(1.0, std::abs(expected[j]));
    if (std::abs(static_cast<double>(got[j]) - expected[j]) <= allowed) continue;
    return fail(__FILE__, __LINE__,
                fmt::format("element {} of the probe: got {}, expected {}", j, got[j], expected[j]));
  }
}

// The vectors of keys or values are coded as the reference would, and others are as they were.
void expectVectors(const KVCacheQuantize& op, const OperandMemory& memory, bool isKeys, QuantizeCounts& counts) {
  const KVCacheWrite places = placesOf(op);
  const HeadsView& source = isKeys ? op.keys : *op.values;
  const QuantizedKVPlane& plane = isKeys ? op.into.keys : *op.into.values;
  const uint64_t headDim = plane.headDim();
  const PlaneContents before(plane, memory.before), now(plane, memory.now);
  const std::vector<double> elements = valuesOf(source.tensor.dtype(), memory.before(source.tensor));
  const auto probe = op.probe && isKeys ? numbersIn<float>(memory.now(*op.probe)) : std::vector<float>();
  std::vector<bool> isWritten(now.rows());
  for (const auto& [place, token] : winners(places, memory.before)) {
    for (uint64_t head = 0; head < places.into.heads(); ++head) {
      const Context context(fmt::format("{} of token {} at (sequence {}, head {}, slot {})", isKeys ? "key" : "value",
                                        token, place.sequence, head, place.slot));
      VectorCoding coding = before.coding(head);
      coding.candidates = op.options.candidates;
      coding.rule = isKeys ? op.options.keyScale : op.options.valueScale;
      coding.nonFinite = op.options.nonFinite;
      const auto first = elements.begin() + static_cast<ptrdiff_t>(sourceElement(source, op.sourceLayout, token, head));
      const std::vector<double> vector(first, first + static_cast<ptrdiff_t>(headDim));
      const uint64_t row = cacheRow(places.into, place, head);
      isWritten[row] = true;
      const auto& [wrong, isNonFinite, isSaturated] = verdictOn(coding, vector, now.vector(row));
      if (!wrong.empty()) fail(__FILE__, __LINE__, wrong);
      counts.nonFinite += isNonFinite;
      counts.saturated += isSaturated;
      if (probe.empty()) continue;
      expectProbe(std::span(probe).subspan(head * headDim, headDim), encoded(coding, vector).compared);
    }
  }
  for (uint64_t row = 0; row < now.rows(); ++row) {
    if (isWritten[row] || now.vector(row) == before.vector(row)) continue;
    fail(__FILE__, __LINE__, fmt::format("vector {} of {} was changed", row, isKeys ? "keys" : "values"));
  }
}

}  // namespace

KVCacheWrite placesOf(const KVCacheQuantize& op) {
  return {
      .keys = op.keys,
      .sourceLayout = op.sourceLayout,
      .sourceOffset = op.sourceOffset,
      .tokens = op.tokens,
      .sourceIsRing = op.sourceIsRing,
      .into = {.keys = op.into.keys.codes, .layout = op.into.layout, .wrap = op.into.wrap, .pinned = op.into.pinned},
      .sequence = op.sequence,
      .position = op.position,
      .rows = op.rows};
}

std::vector<std::byte> sourceVectors(Seeded& random, DType dtype, uint64_t count, uint64_t headDim) {
  std::vector<std::byte> bytes;
  for (uint64_t begin = 0; begin < count; begin += headDim) {
    std::vector<float> elements = normalVector(random, headDim);
    const float size = std::ldexp(1.0f, static_cast<int>(random.below(13)) - 6);
    const uint64_t kind = random.below(24);
    if (kind == 0) std::fill(elements.begin(), elements.end(), 0.0f);
    if (kind == 1) elements[random.below(headDim)] = std::numeric_limits<float>::quiet_NaN();
    if (kind == 2) elements[random.below(headDim)] = -std::numeric_limits<float>::infinity();
    if (kind == 3) elements[random.below(headDim)] *= 40;
    elements.resize(std::min(headDim, count - begin));
    for (float& element : elements) element *= size;
    const auto stored = bytesOfValues(dtype, widened(elements));
    bytes.insert(bytes.end(), stored.begin(), stored.end());
  }
  return bytes;
}

std::vector<float> quantizeFactors(Seeded& random, uint64_t count, bool areScales) {
  std::vector<float> result = normalVector(random, count);
  for (float& number : result) {
    if (areScales) number = std::exp(number / 2) * (number > 1 ? -1.0f : 1.0f);
  }
  return result;
}

void expectStored(const KVCacheQuantize& op, const OperandMemory& memory) {
  QuantizeCounts counts;
  for (const bool isKeys : {true, false}) {
    if (!isKeys && !op.values) continue;
    const QuantizedKVPlane& plane = isKeys ? op.into.keys : *op.into.values;
    if (!plane.isDense()) {
      expectVectors(op, memory, isKeys, counts);
      continue;
    }
    KVCacheWrite dense = placesOf(op);
    dense.keys = isKeys ? op.keys : *op.values;
    dense.into.keys = plane.codes;
    expectWritten(dense, memory);
  }
  if (!op.counts) return;
  const auto before = numbersIn<uint32_t>(memory.before(*op.counts)), got = numbersIn<uint32_t>(memory.now(*op.counts));
  EXPECT_EQ(got[0], before[0] + counts.nonFinite);
  EXPECT_EQ(got[1], before[1] + counts.saturated);
}

// Codes, scales and the probe keep their poison.
void fill(KVCacheQuantizeRun& run, const KVCacheQuantizeCase& quantize, Seeded& random) {
  run.setAll([&](std::string_view name, const Tensor& tensor) {
    const Shape& shape = tensor.shape();
    const uint64_t count = shape.elementCount();
    const bool areScales = name.ends_with("channel scales");
    if (areScales || name.ends_with("means")) return rawBytes(quantizeFactors(random, count, areScales));
    if (name == "counts") return rawBytes(std::vector<uint32_t>{1000, UINT32_MAX - 1});
    const bool isSource = name == "keys" || name == "values";
    return isSource ? sourceVectors(random, tensor.dtype(), count, shape[shape.rank() - 1])
                    : rowNumbers(quantize.write, name);
  });
}

void expectOutcome(const KVCacheQuantizeRun& run) {
  run.expectAsBefore({"probe", "counts", "codes", "key scales", "value scales"});
  expectStored(run.op(), run.memory());
}

}  // namespace mnk::test
