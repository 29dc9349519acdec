// Attention through the C API, made so that results are the weights themselves: value k is 1 at element k alone, and
// the score of key k is its first element times that of the query.
#pragma once
#include <cmath>
#include <numeric>
#include <vector>

#include "CAPI/CApiHarness.hpp"

namespace mnk::test {

inline constexpr uint64_t kDim = 32, kSlots = 8, kAttending = 4;

// What keys have as their first element.
inline const std::vector<double> kScores{0.5, -1, 2, 0, 1, -0.5, 1.5, 0.25};

// A tensor of these numbers.
inline Owned<mnk_tensor> tensorOf(mnk_device* device, const std::vector<float>& numbers,
                                  const std::vector<uint64_t>& shape) {
  auto tensor = makeTensor(device, MNK_F32, shape);
  write(tensor, numbers.data());
  return tensor;
}

// Vectors of slots by slots of zeros, with one element of each set.
inline std::vector<float> keyVectors() {
  std::vector<float> elements;
  for (uint64_t head = 0; head < 2; ++head) {
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      elements.push_back(static_cast<float>(kScores[slot]));
      elements.resize(elements.size() + kDim - 1);
    }
  }
  return elements;
}
inline std::vector<float> valueVectors() {
  std::vector<float> elements(2 * kSlots * kDim);
  for (uint64_t vector = 0; vector < 2 * kSlots; ++vector) elements[vector * kDim + vector % kSlots] = 1;
  return elements;
}

// Softmax of scores, with a sink's beside them.
inline std::vector<double> weightsOf(const std::vector<double>& scores, double sink = -INFINITY) {
  std::vector<double> weights;
  double sum = std::exp(sink);
  for (const double score : scores) sum += weights.emplace_back(std::exp(score));
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Scores of the first keys, the others hidden.
inline std::vector<double> scoresOf(uint64_t begin, uint64_t end) {
  std::vector<double> scores(kSlots, -INFINITY);
  for (uint64_t key = begin; key < end; ++key) scores[key] = kScores[key];
  return scores;
}

struct AttendFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> keys = tensorOf(device.get(), keyVectors(), {2, kSlots, kDim});
  Owned<mnk_tensor> values = tensorOf(device.get(), valueVectors(), {2, kSlots, kDim});
  Owned<mnk_tensor> queries = makeTensor(device.get(), MNK_F32, {2, kAttending, kDim});
  Owned<mnk_tensor> out = makeTensor(device.get(), MNK_F32, {2, kAttending, kDim});
  mnk_kv_cache_view view{.size = sizeof view, .keys = keys.get(), .values = values.get()};
  mnk_attended_sequence sequence{.sequence = 0, .length = kSlots};
  mnk_attention_results results{.size = sizeof results, .into = out.get()};
  mnk_attention_options options{.size = sizeof options, .scale = 1};
  mnk_flash_decode op = sound();

  AttendFixture() {
    std::vector<float> elements(2 * kAttending * kDim);
    for (uint64_t vector = 0; vector < 2 * kAttending; ++vector) elements[vector * kDim] = 1;
    write(queries, elements.data());
  }
  AttendFixture(const AttendFixture&) = delete;

  mnk_flash_decode sound() const {
    mnk_flash_decode op{};
    op.size = sizeof op;
    op.queries = queries.get();
    op.dense = &view;
    op.sequences = &sequence;
    op.sequence_count = 1;
    op.results = &results;
    op.options = &options;
    return op;
  }

  // Weights of a row and head, after the op has run.
  std::vector<float> weights(uint64_t row = 1, uint64_t head = 0) const {
    runOp(device.get(), op, mnk_encoder_flash_decode);
    return weightsIn(out, row, head);
  }
  static std::vector<float> weightsIn(const Owned<mnk_tensor>& tensor, uint64_t row, uint64_t head) {
    const auto all = contents<float>(tensor);
    const auto* begin = &all[(row * kAttending + head) * kDim];
    for (uint64_t e = kSlots; e < kDim; ++e) EXPECT_EQ(begin[e], 0.0f);
    return {begin, begin + kSlots};
  }
};

// Within what f32 loses in a few sums.
inline bool areClose(const std::vector<float>& got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return false;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - expected[i]) < 2e-6)) return false;
  }
  return true;
}

}  // namespace mnk::test
