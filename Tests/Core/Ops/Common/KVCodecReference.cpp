#include "Ops/Common/KVCodecReference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "Harness/ShippedTables.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecTables.hpp"

namespace mnk::test {

namespace {

constexpr double kLargestFloat = std::numeric_limits<float>::max();
constexpr double kSmallestNormalFloat = std::numeric_limits<float>::min();
constexpr double kSmallestElement = 0x1p-125;
constexpr double kLargestHalf = 65504;

// Both halves of a codebook that ships its positive one. The last boundary stands for none.
CodecTable mirrored(const shipped::Codebook& codebook) {
  CodecTable table;
  table.levels.assign(codebook.levels.begin(), codebook.levels.end());
  table.boundaries.assign(codebook.boundaries.begin(), codebook.boundaries.end() - 1);
  table.boundaries.insert(table.boundaries.begin(), 0);
  for (const float level : codebook.levels) table.levels.insert(table.levels.begin(), -level);
  for (size_t i = 0; i + 1 < codebook.levels.size(); ++i) {
    table.boundaries.insert(table.boundaries.begin(), -codebook.boundaries[i]);
  }
  return table;
}

CodecTable madeTable(const KVCodec& codec) {
  if (codec.name == KVCodec::Name::turbo) return mirrored(shipped::turbo(static_cast<int>(codec.bits)));
  if (codec.name != KVCodec::Name::mlx1Affine4) return mirrored(shipped::mlx1(static_cast<int>(codec.bits)));
  CodecTable affine;
  for (int code = 0; code < 16; ++code) affine.levels.push_back(code - 7.5);
  for (int code = 1; code < 16; ++code) affine.boundaries.push_back(code - 8);
  return affine;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

// How many boundaries lie below.
uint32_t codeOf(const CodecTable& table, double compared) {
  const auto& boundaries = table.boundaries;
  return static_cast<uint32_t>(std::lower_bound(boundaries.begin(), boundaries.end(), compared) - boundaries.begin());
}

std::vector<uint32_t> codesOf(const CodecTable& table, std::span<const double> compared, double size) {
  std::vector<uint32_t> codes;
  for (double element : compared) codes.push_back(codeOf(table, element / size));
  return codes;
}

std::vector<double> codebookEntries(const KVCodec& codec, std::span<const uint32_t> codes) {
  const CodecTable& table = tableOf(codec);
  std::vector<double> levels;
  for (uint32_t code : codes) levels.push_back(table.levels[code]);
  return levels;
}

uint32_t codeOfZero(const KVCodec& codec) {
  return (1u << codec.bits) / 2 - 1;
}

// What is quantized: numbers at the lower end of f32, and those far below the vector's largest, are zero.
std::vector<double> prepared(const VectorCoding& coding, std::span<const double> vector) {
  const auto flushed = [](double x) { return std::abs(x) < kSmallestElement ? 0 : x; };
  std::vector<double> result;
  double largest = 0;
  for (size_t j = 0; j < vector.size(); ++j) {
    double x = flushed(vector[j]);
    if (!coding.means.empty()) x -= coding.means[j];
    if (!coding.channelScales.empty()) x *= coding.channelScales[j];
    result.push_back(flushed(x));
    largest = std::max(largest, std::abs(x));
  }
  for (double& x : result) {
    if (std::abs(x) < std::ldexp(largest, -100)) x = 0;
  }
  return result;
}

bool isCodable(double x) {
  return std::abs(x) <= kLargestFloat;
}

// The elements that share a scale.
uint64_t blockLength(const KVCodec& codec, uint64_t headDim) {
  const bool isWhole = codec.name == KVCodec::Name::turbo || codec.name == KVCodec::Name::mlx1Affine4;
  return headDim == 512 && !isWhole ? 256 : headDim;
}

// Planes of a row of codes, the widest first: how many bits each holds.
std::vector<uint32_t> planes(const KVCodec& codec) {
  if (codec.name != KVCodec::Name::turbo) return {codec.bits == 4 ? 4u : 8u};
  std::vector<uint32_t> widths;
  for (uint32_t width : {8, 4, 2, 1}) {
    if (codec.bits & width) widths.push_back(width);
  }
  return widths;
}

CodedVector encodedMlx1(const VectorCoding& coding, std::span<const double> rotated) {
  const KVCodec& codec = coding.codec;
  const uint64_t headDim = rotated.size();
  const uint64_t length = blockLength(codec, headDim);
  CodedVector result{.rotated = {rotated.begin(), rotated.end()}};
  for (uint64_t begin = 0; begin < headDim; begin += length) {
    const auto block = rotated.subspan(begin, length);
    const double energy = dot(block, block);
    const double norm = std::sqrt(headDim == 512 ? energy / 256 : energy);
    const double perElement = headDim == 512 ? norm / codec.scaleFactor : norm / std::sqrt(headDim);
    // Smaller vectors have a norm and no direction.
    for (double element : block) result.compared.push_back(norm <= 1e-10 ? 0 : element / perElement);
    result.scales.push_back(scaleBits(codec, norm));
    result.isSaturated |= result.scales.back() == scaleBits(codec, kLargestFloat);
  }
  result.codes = codesOf(tableOf(codec), result.compared, 1);
  return result;
}

CodedVector encodedAffine(const VectorCoding& coding, std::span<const double> rotated) {
  CodedVector result{.rotated = {rotated.begin(), rotated.end()}};
  double largest = 0;
  for (double element : rotated) largest = std::max(largest, std::abs(element));
  for (double element : rotated) {
    result.compared.push_back(largest <= 1e-10 ? 0 : 7.5 * element / largest);
    result.codes.push_back(
        static_cast<uint32_t>(std::floor(std::clamp(7.5 + result.compared.back(), 0.0, 15.0) + 0.5)));
  }
  const double scale = largest * std::sqrt(static_cast<double>(rotated.size())) / 7.5;
  result.scales = {scaleBits(coding.codec, scale)};
  result.isSaturated = scale > kLargestFloat;
  return result;
}

CodedVector encodedTurbo(const VectorCoding& coding, std::span<const double> rotated) {
  const KVCodec& codec = coding.codec;
  CodedVector result{.rotated = {rotated.begin(), rotated.end()}};
  const double size = std::sqrt(dot(rotated, rotated) / static_cast<double>(rotated.size()));
  for (double element : rotated) result.compared.push_back(size == 0 ? 0 : element / size);
  if (size == 0) {
    result.codes.assign(rotated.size(), codeOfZero(codec));
    result.scales = {0};
    return result;
  }
  double best = -1;
  for (double candidate : turboSizes(codec.bits, coding.candidates)) {
    auto codes = codesOf(tableOf(codec), result.compared, candidate);
    const double quality = cosineSquared(codec, rotated, codes);
    if (quality > best) best = quality, result.codes = std::move(codes);
  }
  const double scale = turboScale(coding.rule, codec, rotated, result.codes);
  result.isSaturated = scale > kLargestHalf;
  result.scales = {scaleBits(codec, scale)};
  return result;
}

// From a vector that is rotated already and finite.
CodedVector encodedRotated(const VectorCoding& coding, std::span<const double> rotated) {
  if (coding.codec.name == KVCodec::Name::turbo) return encodedTurbo(coding, rotated);
  return coding.codec.name == KVCodec::Name::mlx1Affine4 ? encodedAffine(coding, rotated)
                                                         : encodedMlx1(coding, rotated);
}

}  // namespace

const CodecTable& tableOf(const KVCodec& codec) {
  thread_local std::map<std::pair<KVCodec::Name, uint32_t>, CodecTable> tables;
  const auto [found, isNew] = tables.try_emplace({codec.name, codec.bits});
  if (isNew) found->second = madeTable(codec);
  return found->second;
}

std::vector<double> signsOf(KVCodec::Name codec, uint64_t headDim) {
  std::span<const uint32_t> words;
  if (codec == KVCodec::Name::turbo) words = shipped::turboSigns(headDim);
  if (codec == KVCodec::Name::mlx1 && (headDim == 256 || headDim == 512)) words = shipped::kMlx1Signs;
  std::vector<double> signs(headDim, 1);
  for (uint64_t j = 0; j < headDim && !words.empty(); ++j) {
    if (words[j / 32] >> j % 32 & 1) signs[j] = -1;
  }
  return signs;
}

std::vector<double> turboSizes(uint32_t bits, uint32_t candidates) {
  if (candidates == 1) return {1};
  std::vector<double> sizes;
  for (uint32_t m = 0; m < candidates; ++m) {
    const double fromMiddle = m - (candidates - 1) / 2.0;
    sizes.push_back(1 + double{shipped::kTurboReach[bits]} * fromMiddle / std::sqrt(candidates - 1.0));
  }
  return sizes;
}

bool CodedVector::isZero() const {
  return std::all_of(rotated.begin(), rotated.end(), [](double x) { return x == 0; });
}

CodedVector encoded(const VectorCoding& coding, std::span<const double> vector) {
  const std::vector<double> elements = prepared(coding, vector);
  if (std::all_of(elements.begin(), elements.end(), isCodable)) {
    return encodedRotated(coding, rotated(coding.codec.name, elements));
  }
  const std::vector<double> zeros(vector.size(), 0);
  CodedVector result = encodedRotated(coding, zeros);
  result.isNonFinite = true;
  if (coding.nonFinite == KVNonFinite::propagate) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::fill(result.scales.begin(), result.scales.end(), nearestBits(coding.codec.scaleType(), nan));
  }
  return result;
}

std::vector<double> hadamard(std::span<const double> x) {
  std::vector<double> y(x.begin(), x.end());
  size_t block = 1;
  while (y.size() % (2 * block) == 0) block *= 2;
  for (size_t half = 1; half < block; half *= 2) {
    for (size_t i = 0; i < y.size(); ++i) {
      if (i & half) continue;
      const double sum = y[i] + y[i + half];
      y[i + half] = y[i] - y[i + half];
      y[i] = sum;
    }
  }
  const size_t blocks = y.size() / block;
  const double root = std::sqrt(static_cast<double>(blocks));
  for (size_t i = 0; i < block && blocks > 1; ++i) {
    double sum = 0;
    for (size_t b = 0; b < blocks; ++b) sum += y[b * block + i];
    for (size_t b = 0; b < blocks; ++b) y[b * block + i] = root * y[b * block + i] - 2 / root * sum;
  }
  return y;
}

std::vector<double> rotated(KVCodec::Name codec, std::span<const double> x) {
  if (codec == KVCodec::Name::mlx1Unrotated) return {x.begin(), x.end()};
  std::vector<double> turned = signsOf(codec, x.size());
  for (size_t j = 0; j < x.size(); ++j) turned[j] *= x[j];
  turned = hadamard(turned);
  for (double& element : turned) element /= std::sqrt(static_cast<double>(x.size()));
  return turned;
}

std::vector<std::byte> packed(const KVCodec& codec, std::span<const uint32_t> codes) {
  std::vector<std::byte> bytes;
  uint32_t below = 0;
  for (uint32_t width : planes(codec)) {
    const size_t begin = bytes.size();
    bytes.resize(begin + codes.size() * width / 8);
    for (size_t j = 0; j < codes.size(); ++j) {
      const uint32_t part = codes[j] >> below & ((1u << width) - 1);
      bytes[begin + j * width / 8] |= static_cast<std::byte>(part << j * width % 8);
    }
    below += width;
  }
  return bytes;
}

std::vector<uint32_t> unpacked(const KVCodec& codec, uint64_t headDim, std::span<const std::byte> bytes) {
  std::vector<uint32_t> codes(headDim, 0);
  uint32_t below = 0;
  size_t begin = 0;
  for (uint32_t width : planes(codec)) {
    for (size_t j = 0; j < headDim; ++j) {
      const uint32_t byte = static_cast<uint32_t>(bytes[begin + j * width / 8]);
      codes[j] |= (byte >> j * width % 8 & ((1u << width) - 1)) << below;
    }
    below += width;
    begin += headDim * width / 8;
  }
  return codes;
}

double cosineSquared(const KVCodec& codec, std::span<const double> rotated, std::span<const uint32_t> codes) {
  const auto levels = codebookEntries(codec, codes);
  const double product = dot(rotated, levels);
  return product * product / (dot(levels, levels) * dot(rotated, rotated));
}

double turboScale(KVScaleRule rule, const KVCodec& codec, std::span<const double> rotated,
                  std::span<const uint32_t> codes) {
  const auto levels = codebookEntries(codec, codes);
  const double product = dot(rotated, levels);
  return rule == KVScaleRule::unbiased ? dot(rotated, rotated) / product : product / dot(levels, levels);
}

uint64_t scaleBits(const KVCodec& codec, double scale) {
  if (codec.name == KVCodec::Name::turbo) return nearestBits(DType::f16, std::min(scale, kLargestHalf));
  return nearestBits(DType::f32, scale < kSmallestNormalFloat ? 0 : std::min(scale, kLargestFloat));
}

std::vector<double> decodedRotated(const KVCodec& codec, std::span<const uint32_t> codes,
                                   std::span<const uint64_t> scales) {
  std::vector<double> result = codebookEntries(codec, codes);
  const uint64_t headDim = codes.size();
  for (uint64_t j = 0; j < headDim; ++j) {
    const double scale = valueOf(codec.scaleType(), scales[j / blockLength(codec, headDim)]);
    if (codec.name == KVCodec::Name::turbo) {
      result[j] *= scale;
    } else {
      result[j] *= blockLength(codec, headDim) != headDim ? scale / codec.scaleFactor
                                                          : scale / std::sqrt(static_cast<double>(headDim));
    }
  }
  return result;
}

std::vector<double> decoded(const VectorCoding& coding, std::span<const uint32_t> codes,
                            std::span<const uint64_t> scales) {
  std::vector<double> result = decodedRotated(coding.codec, codes, scales);
  if (coding.codec.name == KVCodec::Name::mlx1Unrotated) return result;
  result = hadamard(result);
  const std::vector<double> signs = signsOf(coding.codec.name, codes.size());
  for (size_t j = 0; j < result.size(); ++j) {
    result[j] *= signs[j] / std::sqrt(static_cast<double>(codes.size()));
    if (!coding.channelScales.empty()) result[j] /= coding.channelScales[j];
    if (!coding.means.empty()) result[j] += coding.means[j];
  }
  return result;
}

}  // namespace mnk::test
