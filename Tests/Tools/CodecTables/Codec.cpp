#include "Codec.hpp"

#include <cmath>

#include "LloydMax.hpp"

namespace mnk::tables {

namespace {

// To eleven significant bits, as in normal f16.
double roundedToHalf(double x) {
  int exponent;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
}

// The number of boundaries below; there is one fewer than a power of two.
size_t indexOf(double u, const Codebook& codebook) {
  size_t index = 0;
  for (size_t step = codebook.levels.size() / 2; step > 0; step /= 2) {
    index += u > codebook.boundaries[index + step - 1] ? step : 0;
  }
  return index;
}

// Candidate m, as a multiple of the plain scale.
double candidateScale(int m, int candidates, double reach) {
  return candidates == 1 ? 1 : 1 + reach * (m - (candidates - 1) / 2) / std::sqrt(candidates - 1);
}

}  // namespace

Codebook codebookOf(int bits) {
  const std::vector<double> half = lloydMaxLevels(bits);
  Codebook codebook;
  codebook.reach = kReach[bits];
  for (size_t i = half.size(); i-- > 0;) codebook.levels.push_back(-half[i]);
  codebook.levels.insert(codebook.levels.end(), half.begin(), half.end());
  for (size_t i = 1; i < codebook.levels.size(); i++) {
    codebook.boundaries.push_back((codebook.levels[i - 1] + codebook.levels[i]) / 2);
  }
  return codebook;
}

double expectedError(size_t headDim, const Codebook& codebook) {
  // Simpson's rule. The density of an element t of a row of length sqrt(D) is zero at its ends.
  constexpr int intervals = 1 << 14;
  const double size = double(headDim), end = std::sqrt(size);
  double mass = 0, error = 0;
  for (int i = 1; i < intervals; i++) {
    const double t = end * (2.0 * i / intervals - 1);
    const double weight = (i % 2 == 0 ? 2 : 4) * std::pow(1 - t * t / size, (size - 3) / 2);
    const double distance = t - codebook.levels[indexOf(t, codebook)];
    mass += weight;
    error += weight * distance * distance;
  }
  return error / mass;
}

std::vector<double> rotated(std::span<const double> row, std::span<const uint32_t> signs) {
  std::vector<double> r(row.begin(), row.end());
  for (size_t j = 0; j < r.size(); j++) {
    if (signs[j / 32] >> (j % 32) & 1) r[j] = -r[j];
  }
  const size_t block = r.size() & (~r.size() + 1);
  for (size_t distance = 1; distance < block; distance *= 2) {
    for (size_t j = 0; j < r.size(); j++) {
      if (j & distance) continue;
      const double a = r[j], b = r[j + distance];
      r[j] = a + b;
      r[j + distance] = a - b;
    }
  }
  for (double& x : r) x /= std::sqrt(double(block));
  for (size_t first = 0; block < r.size() && first < block; first++) {
    double sum = 0;
    for (size_t j = first; j < r.size(); j += block) sum += r[j];
    for (size_t j = first; j < r.size(); j += block) r[j] -= 2 * sum / double(r.size() / block);
  }
  return r;
}

double relativeError(std::span<const double> r, const Codebook& codebook, int candidates) {
  double energy = 0;
  for (const double x : r) energy += x * x;
  const double rms = std::sqrt(energy / double(r.size()));
  double bestDot = 0, bestLength = 1;
  for (int m = 0; m < candidates; m++) {
    const double inverse = 1 / (candidateScale(m, candidates, codebook.reach) * rms);
    double dot = 0, length = 0;
    for (const double x : r) {
      const double level = codebook.levels[indexOf(x * inverse, codebook)];
      dot += x * level;
      length += level * level;
    }
    if (dot * dot * bestLength > bestDot * bestDot * length) {
      bestDot = dot;
      bestLength = length;
    }
  }
  const double scale = roundedToHalf(bestDot / bestLength);
  return (energy - 2 * scale * bestDot + scale * scale * bestLength) / energy;
}

}  // namespace mnk::tables
