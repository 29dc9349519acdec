#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/GuardedOperands.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

namespace {

using Case = KVCacheDequantizeCase;

Shape shapeOf(const std::vector<uint64_t>& extents) {
  return REQUIRE(Shape::make(extents));
}

QuantizedKVPlane makePlane(const Case& read, bool isKeys, const MakeNamedTensor& makeTensor) {
  const KVCodec& codec = isKeys ? read.keyCodec : read.valueCodec;
  const uint64_t headDim = isKeys ? read.headDim : read.valueHeadDim;
  const std::string of = isKeys ? "key" : "value";
  const bool isHeadMajor = read.cacheLayout == KVLayout::headMajor;
  std::vector<uint64_t> slots{isHeadMajor ? read.heads : read.capacity, isHeadMajor ? read.capacity : read.heads};
  if (read.sequences) slots.insert(slots.begin(), read.sequences);
  std::vector<uint64_t> ofCodes = slots, ofScales = slots;
  if (const auto& dense = isKeys ? read.denseKeys : read.denseValues) {
    ofCodes.push_back(headDim);
    return {.codes = makeTensor(of + " codes", *dense, shapeOf(ofCodes), read.codeShift * byteSize(*dense))};
  }
  const KVCodecSizes size = REQUIRE(sizes(codec, headDim));
  ofCodes.push_back(size.codeBytes);
  if (size.scales > 1) ofScales.push_back(size.scales);
  QuantizedKVPlane plane{.codec = codec,
                         .codes = makeTensor(of + " codes", DType::u8, shapeOf(ofCodes), read.codeShift),
                         .scales = makeTensor(of + " scales", codec.scaleType(), shapeOf(ofScales), 0)};
  if (!read.hasParameters) return plane;
  plane.means = makeTensor(of + " means", DType::f32, shapeOf({read.heads, headDim}), 0);
  if (isKeys) plane.channelScales = makeTensor(of + " channel scales", DType::f32, shapeOf({read.heads, headDim}), 0);
  return plane;
}

Tensor makeTarget(const Case& read, bool isKeys, const MakeNamedTensor& makeTensor) {
  const uint64_t headDim = isKeys ? read.headDim : read.valueHeadDim;
  std::vector<uint64_t> target{read.tokens / std::max<uint64_t>(read.targetSequences, 1), read.heads, headDim};
  if (read.layout == KVLayout::headMajor) std::swap(target[0], target[1]);
  if (read.isRank2) target = {read.heads, headDim};
  if (read.targetSequences) target.insert(target.begin(), read.targetSequences);
  return makeTensor(isKeys ? "keys" : "values", read.dtype, shapeOf(target), read.targetShift);
}

void fillPlane(const QuantizedKVPlane& plane, Seeded& random, const WriteTensor& write) {
  if (plane.isDense()) {
    return write(plane.codes, random.elements(plane.codes.dtype(), plane.codes.shape().elementCount()));
  }
  const KVCodecSizes size = plane.vectorSizes();
  std::vector<std::byte> codes, scales;
  for (uint64_t vector = 0; vector < plane.codes.shape().elementCount() / size.codeBytes; ++vector) {
    std::vector<uint32_t> row(plane.headDim());
    for (uint32_t& code : row) code = static_cast<uint32_t>(random.below(1u << plane.codec.bits));
    const auto bytes = packed(plane.codec, row);
    codes.insert(codes.end(), bytes.begin(), bytes.end());
    for (uint64_t index = 0; index < size.scales; ++index) {
      const double scale = std::exp(static_cast<double>(random.below(1000)) / 125 - 4);
      const uint64_t bits = scaleBits(plane.codec, random.below(16) == 0 ? 0 : scale);
      const auto* begin = reinterpret_cast<const std::byte*>(&bits);
      scales.insert(scales.end(), begin, begin + byteSize(plane.codec.scaleType()));
    }
  }
  write(plane.codes, codes);
  write(plane.scales, scales);
  for (const auto* tensor : {&plane.means, &plane.channelScales}) {
    if (!*tensor) continue;
    std::vector<float> numbers = normalVector(random, (*tensor)->shape().elementCount());
    for (float& number : numbers) number += number < 0 ? -1.0f : 1.0f;
    write(**tensor, rawBytes(numbers));
  }
}

// One product, and one rounding to the dtype.
void expectElement(DType dtype, uint64_t j, uint64_t bits, double expected) {
  const double got = valueOf(dtype, bits);
  const uint64_t nearest = nearestBits(dtype, expected);
  const bool isNear = dtype == DType::f32 ? std::abs(got - expected) <= 1e-6 * std::abs(expected)
                                          : bits + 1 >= nearest && bits <= nearest + 1;
  if (!isNear) fail(__FILE__, __LINE__, fmt::format("element {}: got {}, expected {}", j, got, expected));
}

// What a plane of the cache means, and what was read of it.
class ReadPlane {
 public:
  ReadPlane(const KVCacheDequantize& op, const OperandMemory& memory, bool isKeys)
      : op_(op),
        from_(isKeys ? op.from.keys : *op.from.values),
        into_(isKeys ? *op.keys : *op.values),
        size_(from_.vectorSizes()),
        codes_(memory.before(from_.codes)),
        got_(memory.now(into_)) {
    if (!from_.isDense()) scales_ = memory.before(from_.scales);
    if (from_.means) means_ = memory.before(*from_.means);
    if (from_.channelScales) channelScales_ = memory.before(*from_.channelScales);
  }

  void expect(const std::map<Place, uint64_t>& tokens) const {
    for (const auto& [place, token] : tokens) {
      for (uint64_t head = 0; head < op_.from.codes().heads(); ++head) {
        const Context context(fmt::format("token {}, head {}", token, head));
        const uint64_t first = sourceElement(into_, op_.layout, token, head);
        from_.isDense() ? expectElements(first, slotIndex(place, head)) : expectVector(first, place, head);
      }
    }
  }

 private:
  uint64_t slotIndex(const Place& place, uint64_t head) const {
    const uint64_t heads = op_.from.codes().heads(), capacity = op_.from.codes().capacity();
    return op_.from.layout == KVLayout::headMajor ? (place.sequence * heads + head) * capacity + place.slot
                                                  : (place.sequence * capacity + place.slot) * heads + head;
  }

  // Elements are rounded once, if at all, in either domain.
  void expectElements(uint64_t first, uint64_t slot) const {
    const DType from = from_.codes.dtype(), into = into_.dtype();
    for (uint64_t j = 0; j < from_.headDim(); ++j) {
      const double number = valueOf(from, bitsAt(codes_, from, slot * from_.headDim() + j));
      const uint64_t expected = nearestBits(into, number), got = bitsAt(got_, into, first + j);
      if (got == expected || (isNaN(into, got) && isNaN(into, expected))) continue;
      return fail(__FILE__, __LINE__, fmt::format("element {}: got {:#x}, expected {:#x}", j, got, expected));
    }
  }

  std::vector<double> expectedAt(const Place& place, uint64_t head) const {
    const uint64_t index = slotIndex(place, head), headDim = from_.headDim();
    const auto row = std::span(codes_).subspan(index * size_.codeBytes, size_.codeBytes);
    const std::vector<uint32_t> codes = unpacked(from_.codec, headDim, row);
    std::vector<uint64_t> scales(size_.scales);
    const uint64_t scaleBytes = size_.scaleBytes / size_.scales;
    for (uint64_t s = 0; s < size_.scales; ++s) {
      std::memcpy(&scales[s], &scales_[(index * size_.scales + s) * scaleBytes], scaleBytes);
    }
    if (op_.domain == KVDomain::rotated) return decodedRotated(from_.codec, codes, scales);
    VectorCoding coding{.codec = from_.codec};
    const auto headValues = [&](const std::vector<std::byte>& bytes) {
      return std::span(reinterpret_cast<const float*>(bytes.data()) + head * headDim, headDim);
    };
    if (from_.means) coding.means = headValues(means_);
    if (from_.channelScales) coding.channelScales = headValues(channelScales_);
    return decoded(coding, codes, scales);
  }

  void expectVector(uint64_t first, const Place& place, uint64_t head) const {
    const DType dtype = into_.dtype();
    const std::vector<double> expected = expectedAt(place, head);
    double error = 0, size = 0;
    for (uint64_t j = 0; j < expected.size(); ++j) {
      const uint64_t bits = bitsAt(got_, dtype, first + j);
      const double got = valueOf(dtype, bits);
      error += (got - expected[j]) * (got - expected[j]);
      size += expected[j] * expected[j];
      if (op_.domain == KVDomain::rotated) expectElement(dtype, j, bits, expected[j]);
    }
    if (op_.domain == KVDomain::rotated) return;
    // A rounding to 11 or 8 digits.
    const double allowed = dtype == DType::f32 ? 1e-12 : 1.01 * (dtype == DType::f16 ? 0x1p-22 : 0x1p-16);
    if (!(error <= allowed * size)) fail(__FILE__, __LINE__, fmt::format("error {} of {}", error, size));
  }

  const KVCacheDequantize& op_;
  const QuantizedKVPlane& from_;
  const Tensor& into_;
  KVCodecSizes size_;
  std::vector<std::byte> codes_, scales_, got_, means_, channelScales_;
};

}  // namespace

Case drawnDequantize(Seeded& random) {
  const auto layout = [&] { return coin(random, 1, 2) ? KVLayout::headMajor : KVLayout::tokenMajor; };
  const auto [keys, values] = drawnCodings(random);
  Case read{.name = "drawn",
            .keyCodec = keys.codec,
            .valueCodec = values.codec,
            .headDim = keys.headDim,
            .valueHeadDim = values.headDim,
            .heads = coin(random, 1, 40) ? 0 : 1 + random.below(3),
            .sequences = coin(random, 1, 2) ? 0 : 1 + random.below(3),
            .capacity = 1 + random.below(9),
            .cacheLayout = layout(),
            .wrap = coin(random, 2, 3) ? KVWrap::ring : KVWrap::linear,
            .layout = layout(),
            .dtype = oneOf(random, {DType::f32, DType::f16, DType::bf16}),
            .domain = coin(random, 1, 2) ? KVDomain::original : KVDomain::rotated};
  read.reads = oneOf(random, {KVReads::both, KVReads::both, KVReads::keys, KVReads::values});
  read.hasParameters = keys.codec.name == KVCodec::Name::turbo && coin(random, 1, 2);
  read.sequence = random.below(std::max<uint64_t>(read.sequences, 1));
  const bool isRing = read.wrap == KVWrap::ring;
  if (isRing && coin(random, 1, 2)) read.pinned = static_cast<uint32_t>(random.below(read.capacity));
  // Tokens whose positions have slots of their own.
  read.position = isRing ? random.below(20) : random.below(read.capacity + 1);
  const uint64_t ofPinned = read.position < read.pinned ? read.pinned - read.position : 0;
  read.tokens = random.below(isRing ? ofPinned + read.capacity - read.pinned + 1 : read.capacity - read.position + 1);
  if (isRing && coin(random, 1, 8)) {
    read.tokens = std::min<uint64_t>(read.tokens, read.capacity - read.pinned);
    read.position = std::clamp<uint64_t>(edge(random, {uint64_t{1} << 33}), 20, UINT64_MAX - read.tokens);
  }
  read.isRank2 = read.tokens == 1 && read.layout == KVLayout::tokenMajor && coin(random, 1, 2);
  if (!read.isRank2 && coin(random, 1, 3)) {
    read.targetSequences = 1 + random.below(3);
    read.tokens -= read.tokens % read.targetSequences;
  }
  const bool isTurbo = keys.codec.name == KVCodec::Name::turbo;
  if ((isTurbo || read.headDim == read.valueHeadDim) && coin(random, 1, 4)) {
    (coin(random, 1, 2) ? read.denseKeys : read.denseValues) = oneOf(random, {DType::f32, DType::f16, DType::bf16});
  }
  if (coin(random, 1, 2)) read.codeShift = random.below(10), read.targetShift = byteSize(read.dtype) * random.below(9);
  return read;
}

KVCacheDequantize makeOp(const Case& read, const MakeNamedTensor& makeTensor) {
  KVCacheDequantize op{.from = {.keys = makePlane(read, true, makeTensor),
                                .values = makePlane(read, false, makeTensor),
                                .layout = read.cacheLayout,
                                .wrap = read.wrap,
                                .pinned = read.pinned},
                       .sequence = read.sequence,
                       .position = read.position,
                       .layout = read.layout,
                       .domain = read.domain};
  if (read.reads != KVReads::values) op.keys = makeTarget(read, true, makeTensor);
  if (read.reads != KVReads::keys) op.values = makeTarget(read, false, makeTensor);
  return op;
}

void fillInputs(const KVCacheDequantize& op, Seeded& random, const WriteTensor& write) {
  fillPlane(op.from.keys, random, write);
  if (op.from.values && op.from.values->codes) fillPlane(*op.from.values, random, write);
}

void expectDequantized(const KVCacheDequantize& op, const OperandMemory& memory) {
  // A position is read from the slot that it would be written to.
  const KVCacheWrite places{
      .keys = op.keys ? *op.keys : *op.values,
      .sourceLayout = op.layout,
      .into = {.keys = op.from.keys.codes, .layout = op.from.layout, .wrap = op.from.wrap, .pinned = op.from.pinned},
      .sequence = op.sequence,
      .position = op.position};
  const auto tokens = winners(places, {}, {});
  EXPECT_EQ(tokens.size(), sourceTokens(places));
  if (op.keys) ReadPlane(op, memory, true).expect(tokens);
  if (op.values) ReadPlane(op, memory, false).expect(tokens);
}

void runOnEveryDevice(const std::vector<Case>& cases) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (const Case& read : cases) {
      const Context context(read.name);
      GuardedOperands operands(device);
      const KVCacheDequantize op = makeOp(read, [&](auto name, DType dtype, const Shape& shape, uint64_t shift) {
        return operands.make(name, dtype, shape, shift);
      });
      fillInputs(op, random, [&](const Tensor& tensor, auto bytes) { operands.set(tensor, bytes); });
      CommandEncoder encoder(device, "dequantize");
      REQUIRE(encoder.encode(op));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      expectDequantized(op, operands.memory());
      operands.expectAsBefore({"keys", "values"});
    }
  });
}

}  // namespace mnk::test
