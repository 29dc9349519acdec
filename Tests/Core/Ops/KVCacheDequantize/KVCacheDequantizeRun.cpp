#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.hpp"

#include <algorithm>
#include <cmath>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

namespace mnk::test {

namespace {

constexpr double kMostOfF16 = 65504;

// Now and then with a scale that is NaN, as vectors with a NaN may be stored.
void fillPlane(const QuantizedKVPlane& plane, Seeded& random, const WriteTensor& write) {
  if (plane.isDense()) {
    return write(plane.codes, random.elements(plane.codes.dtype(), plane.codes.shape().elementCount()));
  }
  const KVCodec& codec = plane.codec;
  std::vector<std::byte> codes;
  std::vector<uint64_t> scales(plane.scales.shape().elementCount());
  while (codes.size() < plane.codes.byteCount()) {
    // Equal codes are added up in one place.
    const bool areEqual = coin(random, 1, 8);
    std::vector<uint32_t> row(plane.headDim(), static_cast<uint32_t>(random.below(1u << codec.bits)));
    for (uint32_t& code : row) code = areEqual ? code : static_cast<uint32_t>(random.below(1u << codec.bits));
    auto bytes = packed(codec, row);
    // Memory may hold anything: what a byte has beyond its code does not lead out of the table.
    for (std::byte& byte : bytes) {
      if (codec.name != KVCodec::Name::turbo && codec.bits != 4)
        byte |= std::byte(random.below(256) << codec.bits & 255);
    }
    codes.insert(codes.end(), bytes.begin(), bytes.end());
  }
  for (uint64_t& scale : scales) {
    const uint64_t kind = random.below(32);
    // Vectors near the largest number, of equal codes of the largest entry too.
    const double huge = codec.name == KVCodec::Name::turbo ? kMostOfF16 : plane.vectorSizes().scales == 1 ? 4e37 : 1e36;
    const double number = kind < 2 ? 0 : kind == 2 ? huge : std::exp(static_cast<double>(random.below(1000)) / 125 - 4);
    scale = kind == 3 ? nearestBits(codec.scaleType(), NAN) : scaleBits(codec, number);
  }
  write(plane.codes, codes);
  write(plane.scales, bytesOfBits(plane.codec.scaleType(), scales));
  for (const auto* tensor : {&plane.means, &plane.channelScales}) {
    if (!*tensor) continue;
    std::vector<float> numbers = normalVector(random, (*tensor)->shape().elementCount());
    for (float& number : numbers) number += number < 0 ? -1.0f : 1.0f;
    write(**tensor, rawBytes(numbers));
  }
}

// Elements are rounded once, if at all, in either domain.
void expectElements(DType from, std::span<const uint64_t> elements, DType into, std::span<const uint64_t> got) {
  for (size_t j = 0; j < elements.size(); ++j) {
    const uint64_t expected = nearestBits(into, valueOf(from, elements[j]));
    if (got[j] == expected || (isNaN(into, got[j]) && isNaN(into, expected))) continue;
    return fail(__FILE__, __LINE__, fmt::format("element {}: got {:#x}, expected {:#x}", j, got[j], expected));
  }
}

// In the rotated domain, one product and one rounding to the dtype; in the original, a rounding to 11 or 8 digits.
void expectVector(KVDomain domain, const std::vector<double>& expected, DType dtype, std::span<const uint64_t> bits) {
  double error = 0, size = 0;
  // Beside an element that f16 does not hold, rounding errors of others may be as large.
  const auto isTooLarge = [&](double x) { return dtype == DType::f16 && std::abs(x) > kMostOfF16; };
  const bool hasTooLarge = std::ranges::any_of(expected, isTooLarge);
  for (size_t j = 0; j < expected.size(); ++j) {
    const double got = valueOf(dtype, bits[j]);
    if (std::isnan(expected[j]) || hasTooLarge) {
      EXPECT(std::isnan(expected[j]) ? std::isnan(got) : !isTooLarge(expected[j]) || std::abs(got) >= kMostOfF16);
      continue;
    }
    error += (got - expected[j]) * (got - expected[j]);
    size += expected[j] * expected[j];
    if (domain != KVDomain::rotated) continue;
    const uint64_t nearest = nearestBits(dtype, expected[j]);
    const bool isNear = dtype == DType::f32 ? std::abs(got - expected[j]) <= 1e-6 * std::abs(expected[j])
                                            : bits[j] + 1 >= nearest && bits[j] <= nearest + 1;
    if (!isNear) fail(__FILE__, __LINE__, fmt::format("element {}: got {}, expected {}", j, got, expected[j]));
  }
  const double allowed = dtype == DType::f32 ? 1e-12 : 1.01 * (dtype == DType::f16 ? 0x1p-22 : 0x1p-16);
  if (domain == KVDomain::rotated || error <= allowed * size) return;
  fail(__FILE__, __LINE__, fmt::format("error {} of {}", error, size));
}

std::vector<uint64_t> elementsAt(std::span<const std::byte> bytes, DType dtype, uint64_t first, uint64_t count) {
  std::vector<uint64_t> elements;
  for (uint64_t j = 0; j < count; ++j) elements.push_back(bitsAt(bytes, dtype, first + j));
  return elements;
}

void expectReadPlane(const KVCacheDequantize& op, const OperandMemory& memory, bool isKeys,
                     const std::map<Place, uint64_t>& tokens) {
  const QuantizedKVPlane& plane = isKeys ? op.from.keys : *op.from.values;
  const Tensor& into = isKeys ? *op.keys : *op.values;
  const KVCacheView slots = op.from.codes();
  const uint64_t headDim = plane.headDim();
  const std::vector<std::byte> codes = memory.before(plane.codes), now = memory.now(into);
  std::optional<PlaneContents> contents;
  if (!plane.isDense()) contents.emplace(plane, memory.before);
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < slots.heads(); ++head) {
      const Context context(fmt::format("{} of token {}, head {}", isKeys ? "key" : "value", token, head));
      const uint64_t row = cacheRow(slots, place, head);
      const auto got = elementsAt(now, into.dtype(), sourceElement(into, op.layout, token, head), headDim);
      if (!contents) {
        const DType dtype = plane.codes.dtype();
        expectElements(dtype, elementsAt(codes, dtype, row * headDim, headDim), into.dtype(), got);
        continue;
      }
      const StoredVector stored = contents->vector(row);
      std::vector<uint32_t> vectorCodes = unpacked(plane.codec, headDim, stored.bytes);
      for (uint32_t& code : vectorCodes) code &= (1u << plane.codec.bits) - 1;
      expectVector(op.domain,
                   op.domain == KVDomain::rotated ? decodedRotated(plane.codec, vectorCodes, stored.scales)
                                                  : decoded(contents->coding(head), vectorCodes, stored.scales),
                   into.dtype(), got);
    }
  }
}

}  // namespace

KVCacheDequantizeCase drawnDequantize(Seeded& random) {
  KVCacheDequantizeCase read{.name = "drawn",
                             .stored = drawnQuantize(random),
                             .domain = coin(random, 1, 2) ? KVDomain::original : KVDomain::rotated,
                             .reads = oneOf(random, {KVReads::both, KVReads::both, KVReads::keys, KVReads::values})};
  KVCacheWriteCase& slots = read.stored.write;
  if (slots.valueHeadDim == 0) read.reads = KVReads::keys;
  // Targets are tensors that hold all tokens, in order.
  slots.fused.reset(), slots.rows.reset(), slots.tokens.reset();
  slots.sourceOffset = slots.sourceSequences = 0;
  slots.isSourceRing = slots.isSourceRank2 = false;
  // Tokens whose positions have slots of their own.
  const bool isRing = slots.wrap == KVWrap::ring;
  slots.position = isRing ? random.below(20) : random.below(slots.capacity + 1);
  const uint64_t ofPinned = slots.position < slots.pinned ? slots.pinned - slots.position : 0;
  const uint64_t most = isRing ? ofPinned + slots.capacity - slots.pinned : slots.capacity - slots.position;
  slots.sourceTokens = random.below(most + 1);
  if (isRing && coin(random, 1, 8)) {
    slots.sourceTokens = std::min<uint64_t>(slots.sourceTokens, slots.capacity - slots.pinned);
    slots.position = std::clamp<uint64_t>(edge(random, {uint64_t{1} << 33}), 20, UINT64_MAX - slots.sourceTokens);
  }
  slots.isSourceRank2 = slots.sourceTokens == 1 && slots.sourceLayout == KVLayout::tokenMajor && coin(random, 1, 2);
  if (!slots.isSourceRank2 && coin(random, 1, 3)) {
    slots.sourceSequences = 1 + random.below(3);
    slots.sourceTokens /= slots.sourceSequences;
  }
  return read;
}

KVCacheDequantize makeOp(const KVCacheDequantizeCase& read, const MakeNamedTensor& makeTensor) {
  const KVCacheWriteCase& slots = read.stored.write;
  const KVSources targets = makeSources(slots, makeTensor);
  KVCacheDequantize op{.from = {.keys = makeCachePlane(read.stored, true, makeTensor),
                                .layout = slots.cacheLayout,
                                .wrap = slots.wrap,
                                .pinned = slots.pinned},
                       .sequence = slots.sequence,
                       .position = slots.position,
                       .layout = slots.sourceLayout,
                       .domain = read.domain};
  if (slots.valueHeadDim) op.from.values = makeCachePlane(read.stored, false, makeTensor);
  if (read.reads != KVReads::values) op.keys = targets.keys.tensor;
  if (slots.valueHeadDim && read.reads != KVReads::keys) op.values = targets.values->tensor;
  return op;
}

void fillInputs(const KVCacheDequantize& op, Seeded& random, const WriteTensor& write) {
  fillPlane(op.from.keys, random, write);
  if (op.from.values && op.from.values->codes) fillPlane(*op.from.values, random, write);
}

void fill(KVCacheDequantizeRun& run, const KVCacheDequantizeCase&, Seeded& random) {
  fillInputs(run.op(), random, [&](const Tensor& tensor, auto bytes) { run.set(tensor, bytes); });
}

void expectDequantized(const KVCacheDequantize& op, const OperandMemory& memory) {
  // A position is read from the slot that it would be written to.
  const KVCacheWrite places{
      .keys = op.keys ? *op.keys : *op.values,
      .sourceLayout = op.layout,
      .into = {.keys = op.from.keys.codes, .layout = op.from.layout, .wrap = op.from.wrap, .pinned = op.from.pinned},
      .sequence = op.sequence,
      .position = op.position};
  const auto tokens = winners(places, memory.before);
  EXPECT_EQ(tokens.size(), sourceTokens(places));
  if (op.keys) expectReadPlane(op, memory, true, tokens);
  if (op.values) expectReadPlane(op, memory, false, tokens);
}

void expectOutcome(const KVCacheDequantizeRun& run) {
  expectDequantized(run.op(), run.memory());
  run.expectAsBefore({"keys", "values"});
}

}  // namespace mnk::test
