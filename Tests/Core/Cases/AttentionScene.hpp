// A cache that is attended to, and a plain attention in double over the tokens that a test has appended to it.
#pragma once
#include <cmath>
#include <map>
#include <vector>

#include "Cases/QuantizedCacheScene.hpp"

namespace mnk::test {

inline constexpr uint64_t kAttendedDim = 32;
inline constexpr uint64_t kAttendedHeads = 2;
inline constexpr uint64_t kQueryHeads = 4;

inline AttentionCacheDescriptor attendedDescriptor(uint32_t capacity, uint32_t pinned = 0) {
  return {.kvHeads = kAttendedHeads,
          .headDim = kAttendedDim,
          .capacity = capacity,
          .sequences = 3,
          .dtype = DType::f32,
          .pinned = pinned};
}

// Positions [begin, end).
inline std::vector<uint64_t> positions(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> all;
  for (; begin < end; ++begin) all.push_back(begin);
  return all;
}

inline std::vector<uint64_t> operator+(std::vector<uint64_t> some, const std::vector<uint64_t>& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

// Elements below 1, so that many keys have weight.
inline std::vector<float> smallNumbers(Seeded& random, uint64_t count) {
  std::vector<float> elements(count);
  for (float& element : elements) element = static_cast<float>(static_cast<int64_t>(random.below(2001)) - 1000) / 1024;
  return elements;
}

class AttentionScene {
 public:
  AttentionScene(std::shared_ptr<Device> onDevice, const AttentionCacheDescriptor& descriptor)
      : device(std::move(onDevice)), cache(makeCache(device, descriptor)) {}

  std::shared_ptr<Device> device;
  AttentionCache cache;
  Seeded random{1};

  Tensor tensor(const std::vector<float>& elements, std::vector<uint64_t> shape) const {
    return numbers(device, elements, REQUIRE(Shape::make(shape)));
  }
  Tensor zeros(std::vector<uint64_t> shape) const {
    return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make(shape))));
  }
  Tensor someQueries(uint64_t rows) {
    return tensor(smallNumbers(random, rows * kQueryHeads * kAttendedDim), {rows, kQueryHeads, kAttendedDim});
  }

  void append(CommandEncoder& encoder, uint64_t tokens, uint32_t sequence = 0) {
    const std::vector<float> keys = smallNumbers(random, tokens * kWidth),
                             values = smallNumbers(random, tokens * kWidth);
    REQUIRE(cache.append(encoder, tensor(keys, {tokens, kAttendedHeads, kAttendedDim}),
                         tensor(values, {tokens, kAttendedHeads, kAttendedDim}), sequence));
    for (uint64_t t = 0; t < tokens; ++t) {
      const auto part = [&](const std::vector<float>& all) {
        return std::vector<double>(all.begin() + t * kWidth, all.begin() + (t + 1) * kWidth);
      };
      history_[sequence].push_back({part(keys), part(values)});
    }
  }
  void appendNow(uint64_t tokens, uint32_t sequence = 0) {
    CommandEncoder encoder(device);
    append(encoder, tokens, sequence);
    REQUIRE(REQUIRE(encoder.commit()).wait());
  }
  void truncate(uint64_t position, uint32_t sequence = 0) {
    REQUIRE(cache.truncate(position, sequence));
    history_[sequence].resize(position);
  }

  // Attends by itself, and gives what was made of the queries.
  std::vector<float> attendNow(const Tensor& queries, const AttentionOptions& options = {}, uint32_t sequence = 0) {
    const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.shape()));
    CommandEncoder encoder(device);
    REQUIRE(cache.attend(encoder, queries, {.into = out}, options, sequence));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    return floatsOf(out);
  }

  // What the newest rows of a sequence make of those of its positions that are listed.
  std::vector<double> expected(const Tensor& queries, uint64_t rows, const std::vector<uint64_t>& held,
                               uint32_t sequence = 0, uint64_t window = UINT64_MAX) const {
    const std::vector<float> all = floatsOf(queries);
    const std::vector<Token>& tokens = history_.at(sequence);
    std::vector<double> out;
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t position = tokens.size() - rows + row;
      std::vector<uint64_t> seen;
      for (const uint64_t key : held) {
        if (key <= position && position - key < window) seen.push_back(key);
      }
      for (uint64_t head = 0; head < kQueryHeads; ++head) {
        const float* query = &all[(row * kQueryHeads + head) * kAttendedDim];
        const std::vector<double> attended = attendedTo(tokens, seen, query, head / (kQueryHeads / kAttendedHeads));
        out.insert(out.end(), attended.begin(), attended.end());
      }
    }
    return out;
  }

 private:
  static constexpr uint64_t kWidth = kAttendedHeads * kAttendedDim;
  struct Token {
    std::vector<double> keys, values;
  };

  static std::vector<double> attendedTo(const std::vector<Token>& tokens, const std::vector<uint64_t>& seen,
                                        const float* query, uint64_t head) {
    std::vector<double> out(kAttendedDim);
    double sum = 0;
    for (const uint64_t key : seen) {
      double score = 0;
      for (uint64_t e = 0; e < kAttendedDim; ++e) score += query[e] * tokens[key].keys[head * kAttendedDim + e];
      const double weight = std::exp(score / std::sqrt(double{kAttendedDim}));  // scores are too small to overflow
      sum += weight;
      for (uint64_t e = 0; e < kAttendedDim; ++e) out[e] += weight * tokens[key].values[head * kAttendedDim + e];
    }
    for (double& element : out) element = sum == 0 ? 0 : element / sum;
    return out;
  }

  std::map<uint32_t, std::vector<Token>> history_;
};

// The largest difference, or infinity where there is none to speak of.
inline double largestDifference(const std::vector<float>& got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

// Sums of f32 numbers below 1, of a few dozen terms.
inline constexpr double kF32Sums = 1e-5;

}  // namespace mnk::test
