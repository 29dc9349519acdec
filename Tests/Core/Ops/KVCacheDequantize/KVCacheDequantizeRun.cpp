#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/GuardedTensor.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

namespace {

using Case = KVCacheDequantizeCase;

Shape shapeOf(const std::vector<uint64_t>& extents) {
  return REQUIRE(Shape::make(extents));
}

// One of the two planes: what is stored, what it means, and where it is read to.
class Plane {
 public:
  Plane(const std::shared_ptr<Device>& device, const Case& read, const KVCodec& codec, uint64_t headDim, bool isKeys,
        Seeded& random)
      : read_(read), coding_{.codec = codec}, headDim_(headDim), size_(REQUIRE(sizes(codec, headDim))) {
    const bool isHeadMajor = read.cacheLayout == KVLayout::headMajor;
    std::vector<uint64_t> slots{isHeadMajor ? read.heads : read.capacity, isHeadMajor ? read.capacity : read.heads};
    if (read.sequences) slots.insert(slots.begin(), read.sequences);
    std::vector<uint64_t> ofCodes = slots, ofScales = slots;
    ofCodes.push_back(size_.codeBytes);
    if (size_.scales > 1) ofScales.push_back(size_.scales);
    std::vector<uint64_t> target{read.tokens / std::max<uint64_t>(read.targetSequences, 1), read.heads, headDim};
    if (read.layout == KVLayout::headMajor) std::swap(target[0], target[1]);
    if (read.isRank2) target = {read.heads, headDim};
    if (read.targetSequences) target.insert(target.begin(), read.targetSequences);
    memory_.emplace_back(device, DType::u8, shapeOf(ofCodes), read.codeShift);
    memory_.emplace_back(device, codec.scaleType(), shapeOf(ofScales));
    memory_.emplace_back(device, read.dtype, shapeOf(target), read.targetShift);
    stored_ = {.codec = codec, .codes = memory_[0].tensor(), .scales = memory_[1].tensor()};
    makeUp(random);
    if (!read.hasParameters) return;
    const auto parameter = [&](std::vector<float>& numbers, std::optional<Tensor>& into) {
      numbers = normalVector(random, read.heads * headDim);
      for (float& number : numbers) number += number < 0 ? -1.0f : 1.0f;
      memory_.emplace_back(device, DType::f32, shapeOf({read.heads, headDim}));
      memory_.back().set(rawBytes(numbers));
      into = memory_.back().tensor();
    };
    parameter(means_, stored_.means);
    if (isKeys) parameter(channelScales_, stored_.channelScales);
  }

  const QuantizedKVPlane& stored() const { return stored_; }
  const Tensor& target() const { return memory_[2].tensor(); }

  void expectRead(const std::map<Place, uint64_t>& tokens) const {
    for (const GuardedTensor& memory : memory_) memory.expectBordersIntact("an operand");
    EXPECT(memory_[0].bytes() == codeBytes_);
    EXPECT(memory_[1].bytes() == scaleBytes_);
    const auto bytes = memory_[2].bytes();
    for (const auto& [place, token] : tokens) {
      for (uint64_t head = 0; head < read_.heads; ++head) {
        const uint64_t first = sourceElement(target(), read_.layout, token, head) * byteSize(read_.dtype);
        const Context context(fmt::format("token {}, head {}", token, head));
        expectVector(std::span(bytes).subspan(first, headDim_ * byteSize(read_.dtype)), place, head);
      }
    }
  }

 private:
  uint64_t slotIndex(const Place& place, uint64_t head) const {
    return read_.cacheLayout == KVLayout::headMajor
               ? (place.sequence * read_.heads + head) * read_.capacity + place.slot
               : (place.sequence * read_.capacity + place.slot) * read_.heads + head;
  }

  void makeUp(Seeded& random) {
    const uint64_t count = stored_.codes.shape().elementCount() / size_.codeBytes;
    for (uint64_t vector = 0; vector < count; ++vector) {
      std::vector<uint32_t> codes(headDim_);
      for (uint32_t& code : codes) code = static_cast<uint32_t>(random.below(1u << coding_.codec.bits));
      const auto row = packed(coding_.codec, codes);
      codeBytes_.insert(codeBytes_.end(), row.begin(), row.end());
      codes_.push_back(codes);
      scales_.emplace_back();
      for (uint64_t index = 0; index < size_.scales; ++index) {
        const double scale = std::exp(static_cast<double>(random.below(1000)) / 125 - 4);
        scales_.back().push_back(scaleBits(coding_.codec, random.below(16) == 0 ? 0 : scale));
        const auto* begin = reinterpret_cast<const std::byte*>(&scales_.back().back());
        scaleBytes_.insert(scaleBytes_.end(), begin, begin + byteSize(coding_.codec.scaleType()));
      }
    }
    memory_[0].set(codeBytes_);
    memory_[1].set(scaleBytes_);
  }

  void expectVector(std::span<const std::byte> bytes, const Place& place, uint64_t head) const {
    const uint64_t index = slotIndex(place, head);
    VectorCoding coding = coding_;
    if (!means_.empty()) coding.means = std::span(means_).subspan(head * headDim_, headDim_);
    if (!channelScales_.empty()) coding.channelScales = std::span(channelScales_).subspan(head * headDim_, headDim_);
    const bool isRotated = read_.domain == KVDomain::rotated;
    const auto expected = isRotated ? decodedRotated(coding.codec, codes_[index], scales_[index])
                                    : decoded(coding, codes_[index], scales_[index]);
    double error = 0, size = 0;
    for (uint64_t j = 0; j < headDim_; ++j) {
      uint64_t bits = 0;
      std::memcpy(&bits, &bytes[j * byteSize(read_.dtype)], byteSize(read_.dtype));
      const double got = valueOf(read_.dtype, bits);
      error += (got - expected[j]) * (got - expected[j]);
      size += expected[j] * expected[j];
      if (isRotated) expectElement(j, got, bits, expected[j]);
    }
    if (isRotated) return;
    // A rounding to 11 or 8 digits.
    const double allowed = read_.dtype == DType::f32 ? 1e-12 : 1.01 * (read_.dtype == DType::f16 ? 0x1p-22 : 0x1p-16);
    if (!(error <= allowed * size)) fail(__FILE__, __LINE__, fmt::format("error {} of {}", error, size));
  }

  // One product, and one rounding to the dtype.
  void expectElement(uint64_t j, double got, uint64_t bits, double expected) const {
    const uint64_t nearest = nearestBits(read_.dtype, expected);
    const bool isNear = read_.dtype == DType::f32 ? std::abs(got - expected) <= 1e-6 * std::abs(expected)
                                                  : bits + 1 >= nearest && bits <= nearest + 1;
    if (!isNear) fail(__FILE__, __LINE__, fmt::format("element {}: got {}, expected {}", j, got, expected));
  }

  Case read_;
  VectorCoding coding_;
  uint64_t headDim_;
  KVCodecSizes size_;
  QuantizedKVPlane stored_;
  std::vector<GuardedTensor> memory_;  // codes, scales, target, then parameters
  std::vector<std::byte> codeBytes_, scaleBytes_;
  std::vector<std::vector<uint32_t>> codes_;
  std::vector<std::vector<uint64_t>> scales_;
  std::vector<float> means_, channelScales_;
};

}  // namespace

void runOnEveryDevice(const std::vector<Case>& cases) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (const Case& read : cases) {
      const Context context(read.name);
      const Plane keys(device, read, read.keyCodec, read.headDim, true, random);
      const Plane values(device, read, read.valueCodec, read.valueHeadDim, false, random);
      KVCacheDequantize op{.from = {.keys = keys.stored(),
                                    .values = values.stored(),
                                    .layout = read.cacheLayout,
                                    .wrap = read.wrap,
                                    .pinned = read.pinned},
                           .sequence = read.sequence,
                           .position = read.position,
                           .layout = read.layout,
                           .domain = read.domain};
      if (read.reads != KVReads::values) op.keys = keys.target();
      if (read.reads != KVReads::keys) op.values = values.target();
      CommandEncoder encoder(device, "dequantize");
      REQUIRE(encoder.encode(op));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      // A position is read from the slot that it would be written to.
      const Tensor source = REQUIRE(Tensor::zeros(device, DType::u8, shapeOf({read.tokens, read.heads, 1})));
      const KVCacheWrite places{
          .keys = source,
          .into = {.keys = keys.stored().codes, .layout = read.cacheLayout, .wrap = read.wrap, .pinned = read.pinned},
          .sequence = read.sequence,
          .position = read.position};
      const auto tokens = winners(places, {}, {});
      EXPECT_EQ(tokens.size(), read.tokens);
      if (op.keys) keys.expectRead(tokens);
      if (op.values) values.expectRead(tokens);
    }
  });
}

}  // namespace mnk::test
