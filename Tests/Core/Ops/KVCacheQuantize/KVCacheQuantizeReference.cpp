#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

namespace mnk::test {

namespace {

// Where elements are alike but for their signs, or zero, sums are exact, and zeros, which lie on a boundary, have the
// code of zero: of a tie, all codecs take the lower code but one, which rounds up.
std::string tieFault(const VectorCoding& coding, const std::vector<double>& vector, const CodedVector& expected,
                     const StoredVector& got) {
  const double largest = std::abs(std::ranges::max(vector, {}, [](double x) { return std::abs(x); }));
  const auto isAlike = [&](double element) { return element == 0 || std::abs(element) == largest; };
  int exponent = 0;
  const bool hasFewDigits = std::fmod(16 * std::frexp(largest, &exponent), 1) == 0;
  const bool isExact = hasFewDigits && std::has_single_bit(vector.size()) && coding.means.empty() &&
                       coding.channelScales.empty() && std::ranges::all_of(vector, isAlike);
  const uint32_t codeOfZero = (1u << coding.codec.bits) / 2 - (coding.codec.name == KVCodec::Name::mlx1Affine4 ? 0 : 1);
  const auto codes = unpacked(coding.codec, vector.size(), got.bytes);
  for (size_t j = 0; isExact && j < codes.size(); ++j) {
    if (expected.rotated[j] == 0 && codes[j] != codeOfZero) return fmt::format("zero {} has the code {}", j, codes[j]);
  }
  return {};
}

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
    if (found->second.fault.empty()) found->second.fault = tieFault(coding, vector, expected, got);
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

// Vectors that a codec could stumble over: of any size, up to one whose squares are not to be had in f32; uneven ones;
// subnormal numbers, which are zero; a row of the rotation's own signs, all of which is in one element once it is
// turned; and one-hot and two-hot vectors, whose elements are alike then, or half of them exactly zero.
std::vector<double> specialVector(Seeded& random, KVCodec::Name codec, std::vector<double> x) {
  const uint64_t n = x.size(), place = 1 + random.below(n - 1);
  const double size = std::ldexp(1.0, static_cast<int>(random.below(240)) - 122);
  const double step = oneOf(random, {0.5, 0x1p-7, 0x1p-60}), hot = oneOf(random, {1.0, -1.0, 0.0});
  const std::vector<double> signs = signsOf(codec, n);
  const std::vector<std::function<double(uint64_t)>> kinds{
      [&](uint64_t j) { return x[j] * size; },
      [&](uint64_t j) { return std::copysign(3e38, x[j]); },
      [&](uint64_t j) { return x[j] * size * std::pow(step, static_cast<double>(j % 6)); },
      // Nothing evens out the halves of a vector that is not rotated: each has a scale of its own.
      [&](uint64_t j) { return x[j] * (j < n / 2 ? std::min(size, 1e28) : 1e-8); },
      [&](uint64_t j) { return x[j] * 0x1p-128; },
      [&](uint64_t j) { return signs[j]; },
      [&](uint64_t j) { return j % 2 == 0 ? -1.0 : 1.0; },
      [&](uint64_t j) { return static_cast<double>(j); },
      [&](uint64_t j) { return j == 0       ? hot
                               : j == place ? 1.0
                                            : 0.0; },
  };
  const auto& kind = kinds[random.below(kinds.size())];
  for (uint64_t j = 0; j < n; ++j) x[j] = kind(j);
  if (random.below(2) == 0) std::reverse(x.begin(), x.end());
  return x;
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

std::vector<std::byte> sourceVectors(Seeded& random, const HeadsView& source, const QuantizedKVPlane& plane) {
  const DType dtype = source.tensor.dtype();
  const uint64_t headDim = plane.headDim(), count = source.tensor.shape().elementCount();
  // Means and channel scales would even out what makes vectors special, and views with strides take parts of several.
  const bool isPlain = !plane.isDense() && !plane.means && !plane.channelScales && !source.strides;
  std::vector<std::byte> bytes;
  for (uint64_t begin = 0; begin < count; begin += headDim) {
    std::vector<double> elements = widened(normalVector(random, headDim));
    const uint64_t kind = random.below(24);
    if (isPlain && kind >= 12) elements = specialVector(random, plane.codec.name, std::move(elements));
    if (kind == 0) std::fill(elements.begin(), elements.end(), 0.0);
    if (kind == 1) elements[random.below(headDim)] = std::numeric_limits<double>::quiet_NaN();
    if (kind == 2) elements[random.below(headDim)] = -std::numeric_limits<double>::infinity();
    if (kind == 3) elements[random.below(headDim)] *= 40;
    double size = std::ldexp(1.0, static_cast<int>(random.below(13)) - 6);
    for (const double element : elements) {
      // Finite numbers stay finite.
      if (std::isfinite(element)) size = std::min(size, (dtype == DType::f16 ? 6e4 : 3.3e38) / std::abs(element));
    }
    for (double& element : elements) element *= size;
    elements.resize(std::min(headDim, count - begin));
    const auto stored = bytesOfValues(dtype, elements);
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
    const uint64_t count = tensor.shape().elementCount();
    const bool areScales = name.ends_with("channel scales");
    if (areScales || name.ends_with("means")) return rawBytes(quantizeFactors(random, count, areScales));
    if (name == "counts") return rawBytes(std::vector<uint32_t>{1000, UINT32_MAX - 1});
    if (name == "keys") return sourceVectors(random, run.op().keys, run.op().into.keys);
    if (name == "values") return sourceVectors(random, *run.op().values, *run.op().into.values);
    return rowNumbers(quantize.write, name);
  });
}

void expectOutcome(const KVCacheQuantizeRun& run) {
  run.expectAsBefore({"probe", "counts", "codes", "key scales", "value scales"});
  expectStored(run.op(), run.memory());
}

}  // namespace mnk::test
