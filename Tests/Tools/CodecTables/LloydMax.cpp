#include "LloydMax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace mnk::tables {

namespace {

// A cell of the normal distribution: its mean, and the derivatives of the mean with respect to both ends.
struct Cell {
  double mean, perLow, perHigh;
};

// Gauss-Legendre quadrature with eight points. The cells are narrow, so it is accurate to the last digits, and, unlike
// differences of the cumulative distribution, has no cancellation.
constexpr double kPoints[] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975362};
constexpr double kWeights[] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763};

Cell innerCell(double low, double high) {
  const double middle = (low + high) / 2, half = (high - low) / 2;
  // Densities are relative to the density in the middle.
  const auto density = [&](double offset) { return std::exp(-offset * (middle + offset / 2)); };
  double mass = 0, moment = 0;
  for (int i = 0; i < 4; i++) {
    const double offset = kPoints[i] * half;
    mass += kWeights[i] * half * (density(offset) + density(-offset));
    moment += kWeights[i] * half * offset * (density(offset) - density(-offset));
  }
  const double mean = middle + moment / mass;
  return {mean, density(-half) * (mean - low) / mass, density(half) * (high - mean) / mass};
}

Cell outerCell(double low) {
  const double density = std::exp(-low * low / 2) / std::sqrt(2 * M_PI);
  const double mean = density / (std::erfc(low / M_SQRT2) / 2);
  return {mean, mean * (mean - low), 0};
}

std::vector<Cell> cellsOf(const std::vector<double>& levels) {
  std::vector<Cell> cells(levels.size());
  double low = 0;
  for (size_t i = 0; i + 1 < levels.size(); i++) {
    const double high = (levels[i] + levels[i + 1]) / 2;
    cells[i] = innerCell(low, high);
    low = high;
  }
  cells.back() = outerCell(low);
  return cells;
}

// One Newton step on level - mean = 0, where a mean depends on its level and the two adjacent ones. Returns the
// distance that the levels moved.
double improve(std::vector<double>& levels) {
  const std::vector<Cell> cells = cellsOf(levels);
  const size_t count = levels.size();
  std::vector<double> above(count), step(count);
  for (size_t i = 0; i < count; i++) {
    // The low end of the first cell stays at zero.
    const double below = i == 0 ? 0 : -cells[i].perLow / 2;
    const double diagonal = 1 + below - cells[i].perHigh / 2;
    const double pivot = i == 0 ? diagonal : diagonal - below * above[i - 1];
    above[i] = -cells[i].perHigh / 2 / pivot;
    step[i] = (cells[i].mean - levels[i] - (i == 0 ? 0 : below * step[i - 1])) / pivot;
  }
  double farthest = 0;
  for (size_t i = count; i-- > 0;) {
    if (i + 1 < count) step[i] -= above[i] * step[i + 1];
    levels[i] += step[i];
    farthest = std::max(farthest, std::abs(step[i]));
  }
  return farthest;
}

}  // namespace

std::vector<double> lloydMaxLevels(int bits) {
  std::vector<double> levels(size_t(1) << (bits - 1));
  for (size_t i = 0; i < levels.size(); i++) {
    levels[i] = (double(i) + 0.5) / double(levels.size()) * (1 + 0.45 * bits);
  }
  // Lloyd's iteration moves each level to the mean of its cell. It converges from any start, but takes a million rounds
  // for 256 levels; here it only has to come close enough for Newton's method.
  for (int round = 0; round < 500; round++) {
    const std::vector<Cell> cells = cellsOf(levels);
    for (size_t i = 0; i < levels.size(); i++) levels[i] = cells[i].mean;
  }
  for (int round = 0; round < 50; round++) {
    const double moved = improve(levels);
    if (!std::is_sorted(levels.begin(), levels.end()) || !(levels.front() > 0)) break;
    if (moved < 1e-12) return levels;
  }
  throw std::runtime_error("Newton's method does not converge for " + std::to_string(bits) + " bits");
}

float clearlyRounded(double x) {
  const float nearest = float(x);
  const float next = std::nextafter(nearest, x < double(nearest) ? 0.0f : std::numeric_limits<float>::infinity());
  const double toMiddle = std::abs((double(nearest) + double(next)) / 2 - x);
  // The levels are accurate to 1e-13.
  if (toMiddle < 1e-11) throw std::runtime_error("two floats are equally near to a level");
  return nearest;
}

}  // namespace mnk::tables
