#include "CodeGuess.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

namespace mnk::tables {

namespace {

// A number and the bounds of its guess.
struct Point {
  double x, low, high;
};

using Coefficients = std::array<double, 5>;

double polynomial(const Coefficients& k, double x) {
  return x * (k[0] + x * (k[1] + x * (k[2] + x * (k[3] + x * k[4]))));
}

double distance(const Point& point, double guess) {
  return std::abs(guess - std::clamp(guess, point.low, point.high));
}

// Solves the normal equations of weighted least squares by Gaussian elimination.
Coefficients leastSquares(std::span<const Point> points, std::span<const double> targets,
                          std::span<const double> weights, size_t degree) {
  std::array<std::array<double, 6>, 5> rows{};
  for (size_t i = 0; i < points.size(); i++) {
    for (size_t a = 0; a < degree; a++) {
      const double power = weights[i] * std::pow(points[i].x, a + 1.0);
      for (size_t b = 0; b < degree; b++) rows[a][b] += power * std::pow(points[i].x, b + 1.0);
      rows[a][5] += power * targets[i];
    }
  }
  for (size_t pivot = 0; pivot < degree; pivot++) {
    for (size_t a = 0; a < degree; a++) {
      if (a == pivot) continue;
      const double factor = rows[a][pivot] / rows[pivot][pivot];
      for (size_t b = pivot; b < 6; b++) rows[a][b] -= factor * rows[pivot][b];
    }
  }
  Coefficients k{};
  for (size_t a = 0; a < degree; a++) k[a] = rows[a][5] / rows[a][a];
  return k;
}

// Iterated least squares with larger weights where the error was larger (Lawson), which converges to the minimax
// polynomial.
Coefficients fit(std::span<const Point> points, size_t degree) {
  std::vector<double> targets, weights(points.size(), 1.0);
  for (const Point& point : points) targets.push_back((point.low + point.high) / 2);
  Coefficients best{};
  double least = HUGE_VAL;
  for (int round = 0; round < 60 && least > 0.02; round++) {
    const Coefficients k = leastSquares(points, targets, weights, degree);
    double farthest = 0, sum = 0;
    for (const Point& point : points) farthest = std::max(farthest, distance(point, polynomial(k, point.x)));
    if (farthest < least) best = k;
    least = std::min(least, farthest);
    for (size_t i = 0; i < points.size(); i++) {
      const double guess = polynomial(k, points[i].x);
      targets[i] = std::clamp(guess, points[i].low, points[i].high);
      sum += weights[i] *= distance(points[i], guess) + farthest / 1000;
    }
    for (double& weight : weights) weight /= sum;
  }
  return best;
}

// To five digits, so that rounding differences between machines do not matter.
double rounded(double x) {
  if (x == 0) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(x))) - 4);
  return std::round(x / unit) * unit;
}

}  // namespace

std::vector<float> codeGuess(int bits, std::span<const float> boundaries, double reach) {
  const double last = boundaries.back(), limit = rounded(last * (1 + reach) * 1.0002), end = limit / (1 - reach);
  // Numbers are fitted relative to the largest. Beyond the last boundary, all have the last code or one more. The sum
  // that is rounded must not fall below 2, hence the quarter.
  std::vector<Point> points;
  for (size_t i = 0; i < boundaries.size(); i++) points.push_back({boundaries[i] / end, i + 1.0, i + 1.0});
  const double count = double(boundaries.size());
  for (int i = 0; i <= 32; i++) points.push_back({(last + (end - last) * i / 32) / end, count, count + 0.75});
  Coefficients k = fit(points, bits <= 5 ? 2 : 5);
  std::vector<float> guess;
  for (size_t a = 0; a < k.size(); a++) {
    guess.push_back(float(rounded(k[a] / std::pow(end, a + 1.0))));
    k[a] = double(guess.back());
  }
  guess.push_back(float(limit));
  for (int i = 1; i <= 100000; i++) {
    const double x = end * i / 100000;
    const auto below = double(std::lower_bound(boundaries.begin(), boundaries.end(), x) - boundaries.begin());
    if (distance({x, below, below + 1}, polynomial(k, x)) > 0.4 || polynomial(k, x) > count + 1.2) {
      throw std::runtime_error("no guess for codes of " + std::to_string(bits) + " bits is good enough");
    }
  }
  return guess;
}

}  // namespace mnk::tables
