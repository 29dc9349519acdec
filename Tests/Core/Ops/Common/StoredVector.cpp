#include "Ops/Common/StoredVector.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/OpRun.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

namespace mnk::test {

namespace {

constexpr double kNearBoundary = 4e-6;
constexpr double kAsGood = 1e-6;

uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

// Of scales, which are never negative: their bits are in the order of their values.
bool isWithin(DType dtype, uint64_t got, uint64_t expected, uint64_t units) {
  return !isNaN(dtype, got) && std::isfinite(valueOf(dtype, got)) && distance(got, expected) <= units;
}

std::string scaleFault(const KVCodec& codec, size_t index, uint64_t got, uint64_t expected) {
  const DType dtype = codec.scaleType();
  return fmt::format("scale {} is {} ({:#x}), expected {} ({:#x})", index, valueOf(dtype, got), got,
                     valueOf(dtype, expected), expected);
}

std::string codeFault(const KVCodec& codec, const CodedVector& expected, const std::vector<uint32_t>& codes) {
  const CodecTable& table = tableOf(codec);
  for (size_t j = 0; j < codes.size(); ++j) {
    if (codes[j] == expected.codes[j]) continue;
    const double boundary = table.boundaries[std::min(codes[j], expected.codes[j])];
    const bool isNear = std::abs(expected.compared[j] - boundary) <= kNearBoundary;
    if (distance(codes[j], expected.codes[j]) == 1 && isNear) continue;
    return fmt::format("code {} is {}, expected {} for {}", j, codes[j], expected.codes[j], expected.compared[j]);
  }
  return {};
}

// The cosine's square that any search must reach. An element that is as near to a boundary as floats can tell may fall
// on either side, where the levels of its size fit unequally well: each candidate counts as the worst that this makes
// of it.
double bestForSure(const VectorCoding& coding, const CodedVector& expected) {
  const CodecTable& table = tableOf(coding.codec);
  double best = 0;
  for (double size : turboSizes(coding.codec.bits, coding.candidates)) {
    std::vector<uint32_t> low, high;
    for (double element : expected.compared) {
      const auto codeOf = [&](double x) {
        const auto& boundaries = table.boundaries;
        return static_cast<uint32_t>(std::lower_bound(boundaries.begin(), boundaries.end(), x) - boundaries.begin());
      };
      low.push_back(codeOf(element / size - kNearBoundary));
      high.push_back(codeOf(element / size + kNearBoundary));
    }
    double worst = std::min(cosineSquared(coding.codec, expected.rotated, low),
                            cosineSquared(coding.codec, expected.rotated, high));
    // Each of them alone on its other side as well; more than two are not met.
    for (size_t j = 0; j < low.size(); ++j) {
      if (low[j] == high[j]) continue;
      for (auto* codes : {&low, &high}) {
        const uint32_t own = (*codes)[j];
        (*codes)[j] = codes == &low ? high[j] : low[j];
        worst = std::min(worst, cosineSquared(coding.codec, expected.rotated, *codes));
        (*codes)[j] = own;
      }
    }
    best = std::max(best, worst);
  }
  return best;
}

// A vector without a direction is stored exactly.
std::string zeroFault(const KVCodec& codec, const CodedVector& expected, const StoredVector& got,
                      const std::vector<uint32_t>& codes) {
  for (size_t j = 0; j < codes.size(); ++j) {
    if (codes[j] != expected.codes[j]) return fmt::format("code {} is {}, expected that of zero", j, codes[j]);
  }
  for (size_t index = 0; index < got.scales.size(); ++index) {
    const bool areNaN = isNaN(codec.scaleType(), got.scales[index]) && isNaN(codec.scaleType(), expected.scales[index]);
    if (areNaN || got.scales[index] == expected.scales[index]) continue;
    return scaleFault(codec, index, got.scales[index], expected.scales[index]);
  }
  return {};
}

}  // namespace

std::string fault(const VectorCoding& coding, const CodedVector& expected, const StoredVector& got) {
  const KVCodec& codec = coding.codec;
  const auto codes = unpacked(codec, expected.codes.size(), got.bytes);
  for (size_t j = 0; j < codes.size(); ++j) {
    if (codes[j] >> codec.bits != 0) return fmt::format("code {} is {}, which has no level", j, codes[j]);
  }
  if (expected.isNonFinite || expected.isZero()) return zeroFault(codec, expected, got, codes);
  if (codec.name != KVCodec::Name::turbo) {
    for (size_t index = 0; index < got.scales.size(); ++index) {
      if (isWithin(DType::f32, got.scales[index], expected.scales[index], 4)) continue;
      return scaleFault(codec, index, got.scales[index], expected.scales[index]);
    }
    return codeFault(codec, expected, codes);
  }
  const uint64_t scale = scaleBits(codec, turboScale(coding.rule, codec, expected.rotated, codes));
  if (coding.candidates == 1) {
    if (std::string text = codeFault(codec, expected, codes); !text.empty()) return text;
  } else {
    const double best = bestForSure(coding, expected);
    const double reached = cosineSquared(codec, expected.rotated, codes);
    if (reached < best - kAsGood) {
      return fmt::format("1 - cosine^2 of the codes is {}, expected {} or less", 1 - reached, 1 - best);
    }
  }
  return isWithin(DType::f16, got.scales[0], scale, 1) ? "" : scaleFault(codec, 0, got.scales[0], scale);
}

PlaneContents::PlaneContents(const QuantizedKVPlane& plane, const ReadTensor& read)
    : codec_(plane.codec),
      headDim_(plane.headDim()),
      size_(plane.vectorSizes()),
      codes_(read(plane.codes)),
      scales_(read(plane.scales)) {
  if (plane.means) means_ = numbersIn<float>(read(*plane.means));
  if (plane.channelScales) channelScales_ = numbersIn<float>(read(*plane.channelScales));
}

StoredVector PlaneContents::vector(uint64_t row) const {
  const auto begin = codes_.begin() + static_cast<ptrdiff_t>(row * size_.codeBytes);
  StoredVector vector{.bytes = {begin, begin + static_cast<ptrdiff_t>(size_.codeBytes)}};
  for (uint64_t index = row * size_.scales; index < (row + 1) * size_.scales; ++index) {
    vector.scales.push_back(bitsAt(scales_, codec_.scaleType(), index));
  }
  return vector;
}

VectorCoding PlaneContents::coding(uint64_t head) const {
  VectorCoding coding{.codec = codec_};
  if (!means_.empty()) coding.means = std::span(means_).subspan(head * headDim_, headDim_);
  if (!channelScales_.empty()) coding.channelScales = std::span(channelScales_).subspan(head * headDim_, headDim_);
  return coding;
}

StoredVectors stored(const std::shared_ptr<Device>& device, const VectorCoding& coding,
                     const std::vector<std::vector<float>>& vectors) {
  const uint64_t count = vectors.size(), headDim = vectors.at(0).size();
  GuardedOperands operands(device);
  const KVCacheQuantize op = makeOp(
      KVCacheQuantizeCase{
          .write = {.heads = 1, .headDim = headDim, .valueHeadDim = 0, .capacity = count, .sourceTokens = count},
          .keyCodec = coding.codec,
          .options = {.candidates = coding.candidates, .keyScale = coding.rule, .nonFinite = coding.nonFinite},
          .hasMeans = !coding.means.empty(),
          .hasChannelScales = !coding.channelScales.empty(),
          .hasCounts = true},
      operands.maker());
  std::vector<float> elements;
  for (const auto& vector : vectors) elements.insert(elements.end(), vector.begin(), vector.end());
  operands.set("keys", rawBytes(elements));
  operands.set("key means", rawBytes(coding.means));
  operands.set("key channel scales", rawBytes(coding.channelScales));
  operands.set("counts", rawBytes(std::vector<uint32_t>(2)));
  run(device, op);
  operands.expectAsBefore({"key codes", "key scales", "counts"});
  const PlaneContents contents(op.into.keys, operands.memory().now);
  const auto counts = numbersIn<uint32_t>(operands.now("counts"));
  StoredVectors result{.vectors = {}, .counts = {counts[0], counts[1]}};
  for (uint64_t v = 0; v < count; ++v) result.vectors.push_back(contents.vector(v));
  return result;
}

double relativeSquares(std::span<const double> got, std::span<const double> expected) {
  double error = 0, size = 0;
  for (size_t j = 0; j < expected.size(); ++j) {
    error += (got[j] - expected[j]) * (got[j] - expected[j]);
    size += expected[j] * expected[j];
  }
  return error / size;
}

std::vector<float> normalVector(Seeded& random, uint64_t headDim) {
  const auto uniform = [&] { return (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53; };
  std::vector<float> vector;
  for (uint64_t j = 0; j < headDim; ++j) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    vector.push_back(static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform())));
  }
  return vector;
}

std::vector<double> widened(const std::vector<float>& vector) {
  return {vector.begin(), vector.end()};
}

}  // namespace mnk::test
