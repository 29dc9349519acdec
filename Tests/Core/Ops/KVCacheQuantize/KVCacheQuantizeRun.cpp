#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/EveryRun.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"

namespace mnk::test {

namespace {

std::vector<double> vectorAt(std::span<const std::byte> bytes, DType dtype, uint64_t first, uint64_t headDim) {
  return valuesOf(dtype, bytes.subspan(first * byteSize(dtype), headDim * byteSize(dtype)));
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
  }
  return found->second;
}

std::span<const float> floatsAt(const std::vector<std::byte>& bytes, uint64_t head, uint64_t headDim) {
  return {reinterpret_cast<const float*>(bytes.data()) + head * headDim, headDim};
}

// Keys or values of a call, before and after it.
class StoredPlane {
 public:
  struct Counts {
    uint32_t nonFinite = 0;
    uint32_t saturated = 0;
  };

  StoredPlane(const KVCacheQuantize& op, const OperandMemory& memory, bool isKeys)
      : op_(op),
        memory_(memory),
        isKeys_(isKeys),
        source_(isKeys ? op.keys : *op.values),
        into_(isKeys ? op.into.keys : *op.into.values),
        places_(placesOf(op)),
        headDim_(into_.headDim()),
        vectors_(memory.before(source_.tensor)),
        codesBefore_(memory.before(into_.codes)) {
    if (into_.means) means_ = memory.before(*into_.means);
    if (into_.channelScales) channelScales_ = memory.before(*into_.channelScales);
  }

  void expect(const std::map<Place, uint64_t>& tokens, Counts& counts) const {
    if (into_.isDense()) return expectElements(tokens);
    const KVCodecSizes size = REQUIRE(sizes(into_.codec, headDim_));
    const uint64_t scaleSize = size.scaleBytes / size.scales;
    // What is left after the vectors are taken out must be as it was.
    std::vector<std::byte> codes = memory_.now(into_.codes), scales = memory_.now(into_.scales);
    const std::vector<std::byte> scalesBefore = memory_.before(into_.scales);
    for (const auto& [place, token] : tokens) {
      for (uint64_t head = 0; head < places_.into.heads(); ++head) {
        const uint64_t from = sourceElement(source_, op_.sourceLayout, token, head);
        const uint64_t to = cacheRow(place, head);
        const VectorCoding coding = codingOf(head);
        const std::vector<double> vector = vectorAt(vectors_, source_.tensor.dtype(), from, headDim_);
        StoredVector got{.bytes = std::vector<std::byte>(size.codeBytes), .scales = std::vector<uint64_t>(size.scales)};
        std::memcpy(got.bytes.data(), &codes[to * size.codeBytes], size.codeBytes);
        std::memcpy(&codes[to * size.codeBytes], &codesBefore_[to * size.codeBytes], size.codeBytes);
        for (uint64_t index = 0; index < size.scales; ++index) {
          const uint64_t at = (to * size.scales + index) * scaleSize;
          std::memcpy(&got.scales[index], &scales[at], scaleSize);
          std::memcpy(&scales[at], &scalesBefore[at], scaleSize);
        }
        const auto& [wrong, isNonFinite, isSaturated] = verdictOn(coding, vector, got);
        counts.nonFinite += isNonFinite;
        counts.saturated += isSaturated;
        if (!wrong.empty()) {
          fail(__FILE__, __LINE__,
               fmt::format("{} of token {} at (sequence {}, head {}, slot {}): {}", name(), token, place.sequence, head,
                           place.slot, wrong));
        }
        if (op_.probe && isKeys_) expectProbe(head, encoded(coding, vector));
      }
    }
    const bool isSame = codes == codesBefore_ && scales == scalesBefore;
    if (!isSame) fail(__FILE__, __LINE__, fmt::format("{}: slots that are not written were changed", name()));
  }

 private:
  const char* name() const { return isKeys_ ? "key" : "value"; }

  VectorCoding codingOf(uint64_t head) const {
    VectorCoding coding{.codec = into_.codec,
                        .candidates = op_.options.candidates,
                        .rule = isKeys_ ? op_.options.keyScale : op_.options.valueScale,
                        .nonFinite = op_.options.nonFinite};
    if (into_.means) coding.means = floatsAt(means_, head, headDim_);
    if (into_.channelScales) coding.channelScales = floatsAt(channelScales_, head, headDim_);
    return coding;
  }

  uint64_t cacheRow(const Place& place, uint64_t head) const {
    const uint64_t heads = places_.into.heads(), capacity = places_.into.capacity();
    return op_.into.layout == KVLayout::headMajor ? (place.sequence * heads + head) * capacity + place.slot
                                                  : (place.sequence * capacity + place.slot) * heads + head;
  }

  // Elements are rounded once, and are the same bits where nothing is to be rounded.
  void expectElements(const std::map<Place, uint64_t>& tokens) const {
    const DType from = source_.tensor.dtype(), to = into_.codes.dtype();
    std::vector<std::byte> expected = codesBefore_;
    const std::vector<std::byte> got = memory_.now(into_.codes);
    for (const auto& [place, token] : tokens) {
      for (uint64_t head = 0; head < places_.into.heads(); ++head) {
        const uint64_t first = sourceElement(source_, op_.sourceLayout, token, head);
        for (uint64_t j = 0; j < headDim_; ++j) {
          uint64_t bits = 0;
          std::memcpy(&bits, &vectors_[(first + j) * byteSize(from)], byteSize(from));
          const uint64_t at = (cacheRow(place, head) * headDim_ + j) * byteSize(to);
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
    if (!isSame) fail(__FILE__, __LINE__, fmt::format("{}: elements are not those of the source", name()));
  }

  void expectProbe(uint64_t head, const CodedVector& expected) const {
    const auto bytes = memory_.now(*op_.probe);
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

  const KVCacheQuantize& op_;
  const OperandMemory& memory_;
  bool isKeys_;
  const HeadsView& source_;
  const QuantizedKVPlane& into_;
  KVCacheWrite places_;
  uint64_t headDim_;
  std::vector<std::byte> vectors_, codesBefore_, means_, channelScales_;
};

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
    for (float element : elements) {
      const uint64_t bits = nearestBits(dtype, static_cast<double>(element * size));
      const auto* begin = reinterpret_cast<const std::byte*>(&bits);
      bytes.insert(bytes.end(), begin, begin + byteSize(dtype));
    }
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
  const std::vector<uint32_t> none;
  const auto tokens = winners(placesOf(op), op.rows ? indicesOf(op.rows->sequences, memory) : none,
                              op.rows ? indicesOf(op.rows->positions, memory) : none);
  StoredPlane::Counts counts;
  StoredPlane(op, memory, true).expect(tokens, counts);
  if (op.values) StoredPlane(op, memory, false).expect(tokens, counts);
  if (!op.counts) return;
  uint32_t before[2], got[2];
  std::memcpy(before, memory.before(*op.counts).data(), sizeof before);
  std::memcpy(got, memory.now(*op.counts).data(), sizeof got);
  EXPECT_EQ(got[0], before[0] + counts.nonFinite);
  EXPECT_EQ(got[1], before[1] + counts.saturated);
}

KVCacheQuantizeRun::KVCacheQuantizeRun(const std::shared_ptr<Device>& device, const KVCacheQuantizeCase& quantize,
                                       Seeded& random)
    : GuardedOperands(device), name_(quantize.name) {
  op_ = makeOp(quantize, [&](std::string_view name, DType dtype, const Shape& shape, uint64_t shift) {
    const Tensor& tensor = make(name, dtype, shape, shift);
    const uint64_t count = shape.elementCount();
    // Codes, scales and the probe keep their poison.
    if (name == "keys" || name == "values") set(name, sourceVectors(random, dtype, count, shape[shape.rank() - 1]));
    if (name.ends_with("means")) set(name, rawBytes(quantizeFactors(random, count, false)));
    if (name.ends_with("channel scales")) set(name, rawBytes(quantizeFactors(random, count, true)));
    if (name == "counts") set(name, rawBytes(std::vector<uint32_t>{1000, UINT32_MAX - 1}));
    return tensor;
  });
  setRows(*this, quantize.write);
}

void KVCacheQuantizeRun::expectStored() const {
  const Context context(name_);
  expectAsBefore({"probe", "counts", "codes", "key scales", "value scales"});
  test::expectStored(op_, memory());
}

void runOnEveryDevice(const std::vector<KVCacheQuantizeCase>& cases) {
  runCases(cases, &KVCacheQuantizeRun::expectStored);
}

}  // namespace mnk::test
