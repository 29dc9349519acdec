#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnreadable = std::numeric_limits<double>::quiet_NaN();

double uniform(Seeded& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53;
}

std::vector<std::byte> uniformBytes(Seeded& random, const Tensor& tensor, double low, double high) {
  std::vector<double> elements(tensor.shape().elementCount());
  for (double& element : elements) element = uniform(random, low, high);
  return bytesOfValues(tensor.dtype(), elements);
}

// Queries, among numbers that no kernel may read.
std::vector<std::byte> queryBytes(Seeded& random, const FlashDecode& op, const FlashDecodeCase& contents) {
  std::vector<double> elements(op.queries.tensor.shape().elementCount(), kUnreadable);
  const HeadsView::Strides s = op.queries.resolved();
  for (uint64_t vector = 0; vector < s.totalTokens() * s.heads; ++vector) {
    const uint64_t token = vector / s.heads, head = vector % s.heads;
    const uint64_t first =
        s.offset + token / s.tokens * s.sequenceStride + token % s.tokens * s.tokenStride + head * s.headStride;
    const double size = contents.sizes.empty() ? contents.size : contents.sizes[vector % contents.sizes.size()];
    for (uint64_t j = 0; j < s.headDim; ++j) {
      elements.at(first + j) = std::isfinite(size) ? uniform(random, -size, size) : size;
    }
  }
  return bytesOfValues(op.queries.tensor.dtype(), elements);
}

std::vector<std::byte> maskBytes(Seeded& random, const MaskCase& mask, const Tensor& tensor) {
  const uint64_t keys = tensor.shape()[tensor.shape().rank() - 1];
  if (keys == 0) return {};
  std::vector<bool> isClosed(keys);
  for (uint64_t k = 0; k < keys; ++k) isClosed[k] = mask.hasHoles && random.below(6) == 0;
  const double lowest = tensor.dtype() == DType::f16    ? -65504.0
                        : tensor.dtype() == DType::bf16 ? -0x1.fep127
                                                        : -0x1.fffffep127;
  const double hole = mask.hasFiniteHoles ? lowest : -kInfinity;
  std::vector<double> elements;
  for (uint64_t row = 0; row < tensor.shape().elementCount() / keys; ++row) {
    const bool isEmpty = mask.hasEmptyRows && random.below(3) == 0;
    for (uint64_t k = 0; k < keys; ++k) {
      const bool isHole = isEmpty || isClosed[k] || (mask.hasHoles && random.below(8) == 0);
      elements.push_back(isHole ? hole : uniform(random, -2, 2) + mask.offset);
    }
  }
  return bytesOfValues(tensor.dtype(), elements);
}

// What each vector of the cache is to rows: seen by one, and with a weight in one.
struct Use {
  bool isSeen = false;
  bool isWeighed = false;
};

std::vector<Use> usesOf(const FlashDecode& op, const OperandBytes& bytes) {
  const CacheGeometry cache = geometryOf(op);
  const HeadsView::Strides queries = op.queries.resolved();
  const bool isLatent = std::visit([](const auto& view) { return view.latentDim != 0; }, op.cache);
  std::vector<Use> uses(cache.sequences * cache.heads * cache.capacity);
  for (uint64_t s = 0; s < op.sequences.size(); ++s) {
    const std::vector<HeldKey> held = heldKeys(cache, op.sequences[s]);
    const uint64_t rows = op.sequences[s].rows != 0 ? op.sequences[s].rows : queries.tokens;
    for (uint64_t k = 0; k < held.size(); ++k) {
      for (uint64_t row = 0; row < rows; ++row) {
        const int64_t position = rowPosition(op.sequences[s], rows, row);
        if (!isVisible(op, held[k].position, position)) continue;
        for (uint64_t head = 0; head < queries.heads; ++head) {
          const uint64_t kvHead = head / (queries.heads / cache.heads);
          Use& use = uses[cache.indexOf(op.sequences[s].sequence, kvHead, held[k].slot)];
          use.isSeen = true;
          // A value that is a part of a key is read wherever the key is.
          if (isLatent || !op.options.mask ||
              maskElement(*op.options.mask, bytes.at("mask"), {s, head, row, k}) != -kInfinity) {
            use.isWeighed = true;
          }
        }
      }
    }
  }
  return uses;
}

double anySpecial(Seeded& random) {
  return oneOf(random, {kUnreadable, kInfinity, -kInfinity});
}

// Codes and scales of no real vectors; unused vectors have a NaN scale.
void addCodes(Seeded& random, const FlashDecodeCase& contents, const QuantizedKVPlane& plane, bool isKeys,
              const std::vector<Use>& uses, OperandBytes& into) {
  const uint64_t headDim = plane.headDim();
  const KVCodecSizes size = REQUIRE(sizes(plane.codec, headDim));
  std::vector<std::byte>& codes = into[isKeys ? "key codes" : "value codes"];
  std::vector<double> scales;
  for (const Use& use : uses) {
    std::vector<uint32_t> row(headDim);
    for (uint32_t& code : row) code = static_cast<uint32_t>(random.below(1u << plane.codec.bits));
    const auto bytes = packed(plane.codec, row);
    codes.insert(codes.end(), bytes.begin(), bytes.end());
    // Elements of about 0.5 in every codec.
    double whole = 1;
    if (plane.codec.name != KVCodec::Name::turbo) {
      whole = size.scales == 2 ? static_cast<double>(plane.codec.scaleFactor) : std::sqrt(static_cast<double>(headDim));
    }
    if (plane.codec.name == KVCodec::Name::mlx1Affine4) whole /= 4;
    const auto anySize = [&] {
      if (!contents.hasWideScales) return uniform(random, 0.2, 0.8);
      // Keys stay small, or one of them would have all the weight.
      const double any = std::exp(uniform(random, -4, isKeys ? 0 : 4));
      return random.below(16) == 0 ? 0 : any;
    };
    for (uint64_t s = 0; s < size.scales; ++s) {
      const bool isUsed = isKeys ? use.isSeen : use.isWeighed;
      scales.push_back(isUsed ? anySize() * whole : anySpecial(random));
    }
  }
  into[isKeys ? "key scales" : "value scales"] = bytesOfValues(plane.codec.scaleType(), scales);
}

std::vector<std::byte> vectors(Seeded& random, const Tensor& tensor, bool areKeys, const std::vector<Use>& uses) {
  const uint64_t headDim = tensor.shape()[tensor.shape().rank() - 1];
  std::vector<double> elements;
  for (const Use& use : uses) {
    const bool isUsed = areKeys ? use.isSeen : use.isWeighed;
    const double special = anySpecial(random);
    for (uint64_t j = 0; j < headDim; ++j) elements.push_back(isUsed ? uniform(random, -1, 1) : special);
  }
  return bytesOfValues(tensor.dtype(), elements);
}

void putSpecials(const FlashDecode& op, const FlashDecodeCase& attend, OperandBytes& bytes) {
  const CacheGeometry cache = geometryOf(op);
  for (const SpecialElement& special : attend.specials) {
    const AttendedSequence& sequence = op.sequences[special.sequence];
    const uint64_t slot = heldKeys(cache, sequence).at(special.key).slot;
    const uint64_t index = cache.indexOf(sequence.sequence, special.kvHead, slot);
    const auto put = [&](const char* name, DType dtype, uint64_t first, uint64_t count) {
      const uint64_t bits = nearestBits(dtype, special.number);
      for (uint64_t e = first; e < first + count; ++e) {
        std::memcpy(&bytes.at(name).at(e * byteSize(dtype)), &bits, byteSize(dtype));
      }
    };
    const uint64_t headDim = special.isKey ? attend.headDim : attend.valueHeadDim;
    if (const auto& quantized = special.isKey ? attend.keyCodec : attend.valueCodec) {
      const KVCodec& codec = *quantized;
      const uint64_t scales = REQUIRE(sizes(codec, headDim)).scales;
      put(special.isKey ? "key scales" : "value scales", codec.scaleType(), index * scales, scales);
    } else {
      const bool isInKeys = special.isKey || attend.isOneTensor;
      const uint64_t stride = attend.isOneTensor ? attend.queryDim() : headDim;
      const uint64_t before = attend.isOneTensor && special.isKey ? attend.valueHeadDim : 0;
      put(isInKeys ? "keys" : "values", attend.cache, index * stride + before + special.element.value_or(0),
          special.element ? 1 : headDim);
    }
  }
}

}  // namespace

OperandBytes inputsOf(const FlashDecode& op, const FlashDecodeCase& contents, Seeded& random, bool hidesUnseen) {
  OperandBytes bytes;
  bytes["queries"] = queryBytes(random, op, contents);
  const AttentionOptions& options = op.options;
  if (options.mask) bytes["mask"] = maskBytes(random, contents.mask.value_or(MaskCase{}), *options.mask);
  if (options.slopes) bytes["slopes"] = uniformBytes(random, *options.slopes, 0.004, 0.5);
  if (options.sinks) bytes["sinks"] = uniformBytes(random, *options.sinks, -contents.sinkSize, contents.sinkSize);
  std::vector<Use> uses = usesOf(op, bytes);
  if (!hidesUnseen) std::fill(uses.begin(), uses.end(), Use{.isSeen = true, .isWeighed = true});
  if (const auto* dense = std::get_if<KVCacheView>(&op.cache)) {
    bytes["keys"] = vectors(random, dense->keys, true, uses);
    if (dense->values) bytes["values"] = vectors(random, *dense->values, false, uses);
  } else {
    const auto& quantized = std::get<QuantizedKVCacheView>(op.cache);
    for (const bool isKeys : {true, false}) {
      const QuantizedKVPlane& plane = isKeys ? quantized.keys : *quantized.values;
      if (plane.isDense())
        bytes[isKeys ? "keys" : "values"] = vectors(random, plane.codes, isKeys, uses);
      else
        addCodes(random, contents, plane, isKeys, uses, bytes);
    }
    if (quantized.keys.means) bytes["key means"] = uniformBytes(random, *quantized.keys.means, -1, 1);
    if (quantized.values->means) bytes["value means"] = uniformBytes(random, *quantized.values->means, -1, 1);
    if (const auto& tensor = quantized.keys.channelScales) {
      std::vector<double> scales(tensor->shape().elementCount());
      for (double& scale : scales) scale = uniform(random, 0.5, 2) * (random.below(4) == 0 ? -1 : 1);
      bytes["key channel scales"] = bytesOfValues(DType::f32, scales);
    }
  }
  return bytes;
}

OperandBytes inputsOf(const FlashDecodeCase& attend, Seeded& random) {
  const FlashDecode op = planOp(attend);
  OperandBytes bytes = inputsOf(op, attend, random);
  putSpecials(op, attend, bytes);
  return bytes;
}

std::map<std::string, Tensor> inputTensors(const FlashDecode& op) {
  std::map<std::string, Tensor> all{{"queries", op.queries.tensor}};
  const auto add = [&](const std::string& name, const std::optional<Tensor>& tensor) {
    if (tensor && *tensor) all[name] = *tensor;
  };
  if (const auto* dense = std::get_if<KVCacheView>(&op.cache)) {
    add("keys", dense->keys), add("values", dense->values);
  } else {
    const auto& quantized = std::get<QuantizedKVCacheView>(op.cache);
    for (const bool isKeys : {true, false}) {
      const QuantizedKVPlane& plane = isKeys ? quantized.keys : *quantized.values;
      const std::string name = isKeys ? "key" : "value";
      if (plane.isDense()) add(name + "s", plane.codes);
      if (plane.isDense()) continue;
      add(name + " codes", plane.codes), add(name + " scales", plane.scales), add(name + " means", plane.means);
      add(name + " channel scales", plane.channelScales);
    }
  }
  add("mask", op.options.mask), add("slopes", op.options.slopes), add("sinks", op.options.sinks);
  return all;
}

}  // namespace mnk::test
