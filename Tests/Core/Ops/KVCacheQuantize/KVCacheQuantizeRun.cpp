#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/EveryRun.hpp"

namespace mnk::test {

namespace {

// Vectors of many sizes, a few of them without a direction or without a value.
std::vector<std::byte> sourceVectors(Seeded& random, DType dtype, const Shape& shape) {
  const uint64_t headDim = shape[shape.rank() - 1];
  std::vector<std::byte> bytes;
  for (uint64_t vector = 0; vector < shape.elementCount() / headDim; ++vector) {
    std::vector<float> elements = normalVector(random, headDim);
    const float size = std::ldexp(1.0f, static_cast<int>(random.below(13)) - 6);
    const uint64_t kind = random.below(24);
    if (kind == 0) std::fill(elements.begin(), elements.end(), 0.0f);
    if (kind == 1) elements[random.below(headDim)] = std::numeric_limits<float>::quiet_NaN();
    if (kind == 2) elements[random.below(headDim)] = -std::numeric_limits<float>::infinity();
    if (kind == 3) elements[random.below(headDim)] *= 40;
    for (float element : elements) {
      const uint64_t bits = nearestBits(dtype, static_cast<double>(element * size));
      const auto* begin = reinterpret_cast<const std::byte*>(&bits);
      bytes.insert(bytes.end(), begin, begin + byteSize(dtype));
    }
  }
  return bytes;
}

std::vector<float> numbers(Seeded& random, uint64_t count, bool areScales) {
  std::vector<float> result = normalVector(random, count);
  for (float& number : result) {
    if (areScales) number = std::exp(number / 2) * (number > 1 ? -1.0f : 1.0f);
  }
  return result;
}

std::vector<double> vectorAt(const std::vector<std::byte>& bytes, DType dtype, uint64_t first, uint64_t headDim) {
  std::vector<double> vector;
  for (uint64_t j = 0; j < headDim; ++j) {
    uint64_t bits = 0;
    std::memcpy(&bits, &bytes[(first + j) * byteSize(dtype)], byteSize(dtype));
    vector.push_back(valueOf(dtype, bits));
  }
  return vector;
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
  static std::unordered_map<std::string, Verdict> verdicts;
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

std::span<const float> floatsAt(const std::vector<std::byte>& bytes, uint64_t head, uint64_t headDim) {
  return {reinterpret_cast<const float*>(bytes.data()) + head * headDim, headDim};
}

}  // namespace

KVCacheQuantizeRun::KVCacheQuantizeRun(const std::shared_ptr<Device>& device, const KVCacheQuantizeCase& quantize,
                                       Seeded& random)
    : name_(quantize.name) {
  if (quantize.write.rows) {
    for (const auto& row : *quantize.write.rows) {
      sequences_.push_back(row.sequence);
      positions_.push_back(row.position);
    }
  }
  op_ = makeOp(quantize, [&](std::string_view name, DType dtype, const Shape& shape, uint64_t shift) {
    const GuardedTensor memory(device, dtype, shape, shift);
    // Codes, scales and the probe keep their poison.
    if (name == "keys" || name == "values") memory.set(sourceVectors(random, dtype, shape));
    if (name.ends_with("means")) memory.set(rawBytes(numbers(random, shape.elementCount(), false)));
    if (name.ends_with("channel scales")) memory.set(rawBytes(numbers(random, shape.elementCount(), true)));
    if (name == "counts") memory.set(rawBytes(std::vector<uint32_t>{1000, UINT32_MAX - 1}));
    if (name == "sequences") memory.set(rawBytes(sequences_));
    if (name == "positions") memory.set(rawBytes(positions_));
    operands_.emplace(name, Operand{memory, memory.bytes()});
    return memory.tensor();
  });
  places_ = {.keys = op_.keys,
             .sourceLayout = op_.sourceLayout,
             .sourceOffset = op_.sourceOffset,
             .tokens = op_.tokens,
             .sourceIsRing = op_.sourceIsRing,
             .into = {.keys = op_.into.keys.codes,
                      .layout = op_.into.layout,
                      .wrap = op_.into.wrap,
                      .pinned = op_.into.pinned},
             .sequence = op_.sequence,
             .position = op_.position,
             .rows = op_.rows};
}

VectorCoding KVCacheQuantizeRun::codingOf(const Plane& plane, uint64_t head) const {
  VectorCoding coding{.codec = plane.into->codec,
                      .candidates = op_.options.candidates,
                      .rule = plane.rule,
                      .nonFinite = op_.options.nonFinite};
  const uint64_t headDim = plane.into->headDim();
  if (plane.into->means) coding.means = floatsAt(before(plane.name + " means"), head, headDim);
  if (plane.into->channelScales) coding.channelScales = floatsAt(before("key channel scales"), head, headDim);
  return coding;
}

uint64_t KVCacheQuantizeRun::cacheRow(const Place& place, uint64_t head) const {
  const uint64_t heads = places_.into.heads(), capacity = places_.into.capacity();
  return op_.into.layout == KVLayout::headMajor ? (place.sequence * heads + head) * capacity + place.slot
                                                : (place.sequence * capacity + place.slot) * heads + head;
}

const std::string& KVCacheQuantizeRun::sourceName(const Plane& plane) const {
  static const std::string kKeys = "keys", kValues = "values";  // which may lie in one tensor
  return plane.name == "key" || !operands_.contains(kValues) ? kKeys : kValues;
}

// Elements are rounded once, and are the same bits where nothing is to be rounded.
void KVCacheQuantizeRun::expectDensePlane(const Plane& plane, const std::map<Place, uint64_t>& tokens) const {
  const DType from = plane.source->tensor.dtype(), to = plane.into->codes.dtype();
  const uint64_t headDim = plane.into->headDim();
  std::vector<std::byte> expected = before(plane.name + " codes");
  std::vector<std::byte> got = operands_.at(plane.name + " codes").memory.bytes();
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < places_.into.heads(); ++head) {
      const uint64_t first = sourceElement(*plane.source, op_.sourceLayout, token, head);
      for (uint64_t j = 0; j < headDim; ++j) {
        uint64_t bits = 0;
        std::memcpy(&bits, &before(sourceName(plane))[(first + j) * byteSize(from)], byteSize(from));
        const uint64_t at = (cacheRow(place, head) * headDim + j) * byteSize(to);
        if (from != to) {
          uint64_t stored = 0;
          std::memcpy(&stored, &got[at], byteSize(to));
          const double number = valueOf(from, bits);
          bits = std::isnan(number) && std::isnan(valueOf(to, stored)) ? stored : nearestBits(to, number);
        }
        std::memcpy(&expected[at], &bits, byteSize(to));
      }
    }
  }
  const bool isSame = got == expected;
  if (!isSame) fail(__FILE__, __LINE__, fmt::format("{}: elements are not those of the source", plane.name));
}

void KVCacheQuantizeRun::expectPlane(const Plane& plane, const std::map<Place, uint64_t>& tokens,
                                     Counts& counts) const {
  const uint64_t headDim = plane.into->headDim();
  if (plane.into->isDense()) return expectDensePlane(plane, tokens);
  const KVCodecSizes size = REQUIRE(sizes(plane.into->codec, headDim));
  const uint64_t scaleSize = size.scaleBytes / size.scales;
  // What is left after the vectors are taken out must be as it was.
  std::vector<std::byte> codes = operands_.at(plane.name + " codes").memory.bytes();
  std::vector<std::byte> scales = operands_.at(plane.name + " scales").memory.bytes();
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < places_.into.heads(); ++head) {
      const uint64_t from = sourceElement(*plane.source, op_.sourceLayout, token, head);
      const uint64_t to = cacheRow(place, head);
      const VectorCoding coding = codingOf(plane, head);
      const std::vector<double> vector =
          vectorAt(before(sourceName(plane)), plane.source->tensor.dtype(), from, headDim);
      StoredVector got{.bytes = std::vector<std::byte>(size.codeBytes), .scales = std::vector<uint64_t>(size.scales)};
      std::memcpy(got.bytes.data(), &codes[to * size.codeBytes], size.codeBytes);
      std::memcpy(&codes[to * size.codeBytes], &before(plane.name + " codes")[to * size.codeBytes], size.codeBytes);
      for (uint64_t index = 0; index < size.scales; ++index) {
        const uint64_t at = (to * size.scales + index) * scaleSize;
        std::memcpy(&got.scales[index], &scales[at], scaleSize);
        std::memcpy(&scales[at], &before(plane.name + " scales")[at], scaleSize);
      }
      const auto& [wrong, isNonFinite, isSaturated] = verdictOn(coding, vector, got);
      counts.nonFinite += isNonFinite;
      counts.saturated += isSaturated;
      if (!wrong.empty()) {
        fail(__FILE__, __LINE__,
             fmt::format("{} of token {} at (sequence {}, head {}, slot {}): {}", plane.name, token, place.sequence,
                         head, place.slot, wrong));
      }
      if (op_.probe && plane.name == "key") expectProbe(head, encoded(coding, vector));
    }
  }
  const bool isSame = codes == before(plane.name + " codes") && scales == before(plane.name + " scales");
  if (!isSame) fail(__FILE__, __LINE__, fmt::format("{}: slots that are not written were changed", plane.name));
}

void KVCacheQuantizeRun::expectProbe(uint64_t head, const CodedVector& expected) const {
  const auto bytes = operands_.at("probe").memory.bytes();
  const auto got = floatsAt(bytes, head, expected.compared.size());
  for (size_t j = 0; j < got.size(); ++j) {
    // Relative beyond the outermost boundary, where nothing hangs on it.
    const double allowed = 4e-6 * std::max(1.0, std::abs(expected.compared[j]));
    if (std::abs(static_cast<double>(got[j]) - expected.compared[j]) <= allowed) continue;
    return fail(
        __FILE__, __LINE__,
        fmt::format("probe of head {}, element {}: got {}, expected {}", head, j, got[j], expected.compared[j]));
  }
}

void KVCacheQuantizeRun::expectInputsAsBefore() const {
  for (const auto& [name, operand] : operands_) {
    operand.memory.expectBordersIntact(name);
    if (name == "probe" || name == "counts" || name.ends_with("codes")) continue;
    if (name == "key scales" || name == "value scales") continue;
    const bool isSame = operand.memory.bytes() == operand.before;
    if (!isSame) fail(__FILE__, __LINE__, fmt::format("{}: contents were changed", name));
  }
}

void KVCacheQuantizeRun::expectStored() const {
  const Context context(name_);
  expectInputsAsBefore();
  const auto tokens = winners(places_, sequences_, positions_);
  Counts counts;
  expectPlane({"key", &op_.keys, &op_.into.keys, op_.options.keyScale}, tokens, counts);
  if (op_.values) expectPlane({"value", &*op_.values, &*op_.into.values, op_.options.valueScale}, tokens, counts);
  if (!op_.counts) return;
  uint32_t got[2];
  std::memcpy(got, operands_.at("counts").memory.bytes().data(), sizeof got);
  EXPECT_EQ(got[0], 1000 + counts.nonFinite);
  EXPECT_EQ(got[1], UINT32_MAX - 1 + counts.saturated);
}

void runOnEveryDevice(const std::vector<KVCacheQuantizeCase>& cases) {
  runCases(cases, &KVCacheQuantizeRun::expectStored);
}

}  // namespace mnk::test
