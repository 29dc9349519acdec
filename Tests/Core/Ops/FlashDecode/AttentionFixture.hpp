// A cache that is attended to, and what attention in double makes of the tokens that a test has appended to it.
#pragma once
#include <cmath>
#include <vector>

#include "Cache/QuantizedCacheFixture.hpp"
#include "Ops/FlashDecode/AttentionHistory.hpp"

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
          .whenFull = KVWrap::ring,
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

// Rows of vectors in one of the layouts that models produce.
inline HeadsView viewOfAnyLayout(const std::shared_ptr<Device>& device, Seeded& random,
                                 const std::vector<float>& elements, uint64_t heads, uint64_t dim) {
  const uint64_t rows = elements.size() / (heads * dim);
  const uint64_t layout = random.below(3);
  if (layout == 0) return numbers(device, elements, REQUIRE(Shape::make({rows, heads, dim})));
  // Head-major, or behind other columns that must not be read.
  const uint64_t width = (heads + 1) * dim;
  std::vector<float> moved(layout == 1 ? elements.size() : rows * width, NAN);
  for (uint64_t i = 0; i < elements.size(); ++i) {
    const uint64_t row = i / (heads * dim), head = i / dim % heads;
    moved[(layout == 1 ? (head * rows + row) * dim : row * width + (head + 1) * dim) + i % dim] = elements[i];
  }
  if (layout == 1) return {numbers(device, moved, REQUIRE(Shape::make({heads, rows, dim}))), KVLayout::headMajor};
  return REQUIRE(HeadsView::columns(numbers(device, moved, REQUIRE(Shape::make({rows, width}))), dim, heads, dim));
}

class AttentionFixture {
 public:
  AttentionFixture(std::shared_ptr<Device> onDevice, const AttentionCacheDescriptor& descriptor)
      : device(std::move(onDevice)), cache(makeCache(device, descriptor)) {}

  std::shared_ptr<Device> device;
  AttentionCache cache;
  Seeded random{1};
  AttentionHistory history{kQueryHeads, kAttendedHeads, kAttendedDim};

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
    history.append(keys, values, sequence);
  }
  void appendNow(uint64_t tokens, uint32_t sequence = 0) {
    CommandEncoder encoder(device);
    append(encoder, tokens, sequence);
    REQUIRE(REQUIRE(encoder.commit()).wait());
  }
  void truncate(uint64_t position, uint32_t sequence = 0) {
    REQUIRE(cache.truncate(position, sequence));
    history.truncate(position, sequence);
  }

  // Attends by itself, and gives what was made of the queries.
  std::vector<float> attendNow(const Tensor& queries, const AttentionOptions& options = {}, uint32_t sequence = 0) {
    const Tensor out = REQUIRE(Tensor::zeros(device, DType::f32, queries.shape()));
    CommandEncoder encoder(device);
    REQUIRE(cache.attend(encoder, queries, {.output = out}, options, sequence));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    return floatsOf(out);
  }

  // What the newest rows of a sequence make of those of its positions that are listed.
  std::vector<double> expected(const Tensor& queries, uint64_t rows, const std::vector<uint64_t>& held,
                               uint32_t sequence = 0, uint64_t window = UINT64_MAX) const {
    std::vector<std::vector<uint64_t>> seen(rows);
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t position = history.size(sequence) - rows + row;
      for (const uint64_t key : held) {
        if (key <= position && position - key < window) seen[row].push_back(key);
      }
    }
    return history.attended(floatsOf(queries), seen, sequence);
  }

 private:
  static constexpr uint64_t kWidth = kAttendedHeads * kAttendedDim;
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
