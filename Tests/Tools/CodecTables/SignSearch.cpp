#include "SignSearch.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "Codec.hpp"

namespace mnk::tables {

namespace {

// splitmix64, in full.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Mean 0, variance 1, approximately normal: a sum of twelve uniform numbers, exact on every machine.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += double(next() >> 40) * 0x1p-24;
    return sum;
  }

 private:
  uint64_t state_;
};

using Row = std::vector<double>;
// Rows of one kind, which differ only randomly.
using Kind = std::vector<Row>;

class Suite {
 public:
  explicit Suite(size_t headDim) : size_(headDim), random_(headDim) {
    const double size = double(headDim);
    // After rotation, any other Walsh row (alternating, half and half) has the same elements in another order.
    add(1, [](size_t) { return 1.0; });
    for (const double noise : {0.1, 0.3, 1.0, 3.0}) {
      add(kDraws, [&](size_t) { return 1 + noise * random_.normal(); });
    }
    add(1, [&](size_t j) { return double(j) / size; });
    add(1, [&](size_t j) { return (2 * double(j) + 1) / size - 1; });
    for (double waves = 0.5; waves < size / 4; waves *= 1.2) {
      for (const double phase : {0.0, 0.125, 0.25, 0.375}) {
        add(1, [&](size_t j) { return std::sin(2 * M_PI * (waves * double(j) / size + phase)); });
      }
    }
    for (double length = 2; length < size; length *= 1.4) {
      add(1, [&](size_t j) { return std::exp(-double(j) / length); });
      add(1, [&](size_t j) { return std::exp(-double(headDim - 1 - j) / length); });
    }
    for (const double share : {0.125, 0.25, 0.75}) {
      add(1, [&](size_t j) { return double(j) < share * size ? 1.0 : 0.0; });
    }
    add(1, [&](size_t j) { return j % 3 == 0 ? 1.0 : 0.0; });
    double last = 0;
    add(kDraws, [&](size_t j) {
      last = j == 0 ? random_.normal() : 0.95 * last + std::sqrt(1 - 0.95 * 0.95) * random_.normal();
      return last;
    });
    addOutliers({3, 3 + headDim / 2}, [](double x, size_t) { return 20 * x; });
    addOutliers({1, headDim / 4 + 2, headDim / 2 + 7, headDim - 5},
                [](double x, size_t i) { return i % 2 ? x - 15 : x + 15; });
    std::vector<size_t> together(16), apart(16);
    for (size_t i = 0; i < 16; i++) {
      together[i] = i;
      apart[i] = i * headDim / 16;
    }
    addOutliers(together, [](double x, size_t) { return x + 6; });
    addOutliers(apart, [](double x, size_t) { return x + 6; });
  }

  const std::vector<Kind>& kinds() const { return kinds_; }

 private:
  static constexpr size_t kDraws = 8;

  void add(size_t draws, const std::function<double(size_t)>& element) {
    Kind kind(draws, Row(size_));
    for (Row& row : kind) {
      for (size_t j = 0; j < size_; j++) row[j] = element(j);
    }
    kinds_.push_back(std::move(kind));
  }

  void addOutliers(const std::vector<size_t>& channels, const std::function<double(double, size_t)>& change) {
    add(kDraws, [&](size_t) { return random_.normal(); });
    for (Row& row : kinds_.back()) {
      for (size_t i = 0; i < channels.size(); i++) {
        row[channels[i]] = change(row[channels[i]], i);
      }
    }
  }

  size_t size_;
  Random random_;
  std::vector<Kind> kinds_;
};

// Gives up on tables that are worse than `limit`; their mean does not cover all kinds.
SignErrors evaluated(size_t headDim, uint32_t seed, const Suite& suite, const Codebook& codebook, double expected,
                     double limit = INFINITY) {
  const std::vector<uint32_t> signs = signsOf(headDim, seed);
  SignErrors errors{seed, 0, 0};
  for (const Kind& kind : suite.kinds()) {
    double plain = 0, searched = 0;
    for (const Row& row : kind) {
      const Row r = rotated(row, signs);
      plain += relativeError(r, codebook, 1) / expected / double(kind.size());
      searched += relativeError(r, codebook, 5) / expected / double(kind.size());
    }
    errors.worst = std::max({errors.worst, plain, searched});
    errors.mean += (plain + searched) / 2 / double(suite.kinds().size());
    if (errors.worst > limit) break;
  }
  return errors;
}

}  // namespace

std::vector<uint32_t> signsOf(size_t headDim, uint32_t seed) {
  Random random(uint64_t(headDim) << 32 | seed);
  std::vector<uint32_t> words((headDim + 31) / 32);
  for (uint32_t& word : words) word = uint32_t(random.next() >> 32);
  return words;
}

SignErrors evaluate(size_t headDim, uint32_t seed) {
  const Codebook codebook = codebookOf(4);
  return evaluated(headDim, seed, Suite(headDim), codebook, expectedError(headDim, codebook));
}

SignErrors bestSigns(size_t headDim, uint32_t seeds) {
  const Suite suite(headDim);
  const Codebook codebook = codebookOf(4);
  const double expected = expectedError(headDim, codebook);
  SignErrors best{0, INFINITY, INFINITY};
  for (uint32_t seed = 1; seed <= seeds; seed++) {
    const SignErrors errors = evaluated(headDim, seed, suite, codebook, expected, best.worst);
    if (std::pair(errors.worst, errors.mean) < std::pair(best.worst, best.mean)) best = errors;
  }
  return best;
}

}  // namespace mnk::tables
