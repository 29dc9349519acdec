#include "Ops/FlashDecode/FlashDecodeReference.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "Harness/SoftFloat.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

namespace {

using Vector = std::vector<double>;
constexpr double kInfiniteScore = std::numeric_limits<double>::infinity();
constexpr double kLowestScore = -3e29;  // lower ones count as -inf
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Vector vectorFrom(const Vector& elements, uint64_t first, uint64_t length) {
  const auto begin = elements.begin() + static_cast<ptrdiff_t>(first);
  return {begin, begin + static_cast<ptrdiff_t>(length)};
}

// Keys or values, as the numbers that they stand for. Of a latent cache of two planes, a plane of keys has their rest.
class Plane {
 public:
  Plane(const FlashDecode& op, const OperandBytes& bytes, bool isKeys) {
    if (const auto* view = std::get_if<KVCacheView>(&op.cache)) {
      const bool isInKeys = isKeys || !view->values;
      useDense(isInKeys ? view->keys : *view->values, bytes.at(isInKeys ? "keys" : "values"));
      if (isInKeys && !isKeys) headDim_ = view->latentDim;
      return;
    }
    const auto& quantized = std::get<QuantizedKVCacheView>(op.cache);
    const QuantizedKVPlane& plane = isKeys ? quantized.keys : *quantized.values;
    if (plane.isDense()) {
      useDense(plane.codes, bytes.at(isKeys ? "keys" : "values"));
      return;
    }
    headDim_ = plane.headDim();
    coded_.emplace(plane, [&](const Tensor& tensor) {
      const auto inputs = inputTensors(op);
      const auto found = std::ranges::find_if(inputs, [&](const auto& input) {
        return input.second.buffer() == tensor.buffer() && input.second.byteOffset() == tensor.byteOffset();
      });
      return bytes.at(found->first);
    });
  }

  uint64_t headDim() const { return headDim_; }

  Vector at(uint64_t index, uint64_t head) const {
    if (!coded_) return vectorFrom(elements_, index * stride_, headDim_);
    const StoredVector stored = coded_->vector(index);
    const VectorCoding coding = coded_->coding(head);
    std::vector<uint32_t> codes = unpacked(coding.codec, headDim_, stored.bytes);
    for (uint32_t& code : codes) code &= (1u << coding.codec.bits) - 1;  // the rest of a byte means nothing
    return decoded(coding, codes, stored.scales);
  }

 private:
  void useDense(const Tensor& tensor, const std::vector<std::byte>& bytes) {
    elements_ = valuesOf(tensor.dtype(), bytes);
    stride_ = headDim_ = tensor.shape()[tensor.shape().rank() - 1];
  }

  Vector elements_;  // of a dense plane
  uint64_t stride_ = 0;
  uint64_t headDim_ = 0;
  std::optional<PlaneContents> coded_;
};

double norm(const Vector& vector) {
  double sum = 0;
  for (double x : vector) sum += x * x;
  return std::sqrt(sum);
}

struct ScoredKey {
  double score = 0;
  double magnitude = 0;
  const Vector* value = nullptr;
};

struct HeldVectors {
  Vector key;
  double keyNorm = 0;
  Vector value;
};

// Divides sums by all weights, that of a sink included.
void divide(AttendedRow& row, double sink) {
  if (!row.seesKeys) {
    row.logSumExp = sink;
    return;
  }
  const double top = std::max(row.largest, sink), fade = std::exp(row.largest - top);
  const double total = row.sum * fade + std::exp(sink - top);
  for (double& x : row.output) x *= fade / total;
  row.logSumExp = top + std::log(total);
}

// Weighs values by scores, and leaves out what has no weight whatever it holds.
void weigh(AttendedRow& row, const std::vector<ScoredKey>& keys, double sink) {
  for (const ScoredKey& key : keys) {
    if (std::isnan(key.score) || key.score == kInfiniteScore) row.largest = kNaN;
    if (!std::isnan(row.largest)) row.largest = std::max(row.largest, key.score);
  }
  row.seesKeys = row.largest != -kInfiniteScore;
  if (std::isnan(row.largest)) {
    row.logSumExp = row.sum = kNaN;
    std::fill(row.output.begin(), row.output.end(), kNaN);
    return;
  }
  for (const ScoredKey& key : keys) {
    if (key.score == -kInfiniteScore) continue;
    const double weight = std::exp(key.score - row.largest);
    if (weight > 1e-12) row.magnitude = std::max(row.magnitude, key.magnitude);
    row.sum += weight;
    for (size_t j = 0; j < row.output.size(); ++j) row.output[j] += weight * (*key.value)[j];
  }
  divide(row, sink);
}

}  // namespace

uint64_t CacheGeometry::indexOf(uint64_t sequence, uint64_t head, uint64_t slot) const {
  if (sequence == kOnlySequence) sequence = 0;
  return layout == KVLayout::headMajor ? (sequence * heads + head) * capacity + slot
                                       : (sequence * capacity + slot) * heads + head;
}

CacheGeometry geometryOf(const FlashDecode& op) {
  return std::visit(
      [](const auto& view) {
        const Tensor* slots;
        if constexpr (std::is_same_v<decltype(view), const KVCacheView&>) {
          slots = &view.keys;
        } else {
          slots = &view.keys.codes;
        }
        const Shape& shape = slots->shape();
        const bool isHeadMajor = view.layout == KVLayout::headMajor;
        const uint64_t first = shape[shape.rank() - 3], second = shape[shape.rank() - 2];
        return CacheGeometry{.sequences = shape.rank() == 4 ? shape[0] : 1,
                             .heads = isHeadMajor ? first : second,
                             .capacity = isHeadMajor ? second : first,
                             .layout = view.layout,
                             .wrap = view.wrap,
                             .pinned = view.pinned};
      },
      op.cache);
}

std::vector<HeldKey> heldKeys(const CacheGeometry& cache, const AttendedSequence& sequence) {
  const uint64_t written = std::max(sequence.length, sequence.highest), ring = cache.capacity - cache.pinned;
  const bool isRing = cache.wrap == KVWrap::ring;
  std::vector<HeldKey> keys;
  const auto add = [&](uint64_t position, uint64_t slot) { keys.push_back({static_cast<int64_t>(position), slot}); };
  for (uint64_t position = 0; position < std::min(sequence.length, cache.pinned); ++position) add(position, position);
  // The newest of the positions that share a slot is the one that is there.
  const uint64_t oldest = isRing && written > cache.capacity ? written - ring : cache.pinned;
  for (uint64_t position = oldest; position < sequence.length; ++position) {
    add(position, isRing ? cache.pinned + (position - cache.pinned) % ring : position);
  }
  return keys;
}

uint64_t queryStart(const FlashDecode& op, uint64_t sequence, uint64_t row, uint64_t head) {
  const HeadsView::Strides s = op.queries.resolved();
  if (op.sequences[sequence].rows != 0) {
    while (sequence > 0) row += op.sequences[--sequence].rows;
  }
  return s.offset + sequence * s.sequenceStride + row * s.tokenStride + head * s.headStride;
}

int64_t rowPosition(const AttendedSequence& sequence, uint64_t rows, uint64_t row) {
  const auto newest = static_cast<int64_t>(sequence.length) - static_cast<int64_t>(rows);
  return sequence.position.value_or(newest) + static_cast<int64_t>(row);
}

bool isVisible(const FlashDecode& op, int64_t keyPosition, int64_t rowPosition) {
  const AttentionOptions& options = op.options;
  if (options.isCausal && keyPosition > rowPosition) return false;
  if (options.windowSeesPinned && keyPosition < static_cast<int64_t>(geometryOf(op).pinned)) return true;
  return options.window == 0 || keyPosition > rowPosition - static_cast<int64_t>(options.window);
}

double maskElement(const Tensor& mask, const std::vector<std::byte>& bytes, const MaskPlace& place) {
  const Shape& shape = mask.shape();
  const uint64_t wanted[] = {place.sequence, place.head, place.row, place.key};
  uint64_t index = 0;
  for (uint32_t axis = 0; axis < shape.rank(); ++axis) {
    const bool servesAll = shape[axis] == 1 && axis + 1 < shape.rank();
    index = index * shape[axis] + (servesAll ? 0 : wanted[4 - shape.rank() + axis]);
  }
  return valueOf(mask.dtype(), bitsAt(bytes, mask.dtype(), index));
}

std::vector<AttendedRow> attended(const FlashDecode& op, const OperandBytes& bytes) {
  const Plane keys(op, bytes, true), values(op, bytes, false);
  const CacheGeometry cache = geometryOf(op);
  const AttentionOptions& options = op.options;
  const HeadsView::Strides axes = op.queries.resolved();
  const uint64_t heads = axes.heads, headDim = axes.headDim, group = heads / cache.heads;
  const Vector queries = valuesOf(op.queries.tensor.dtype(), bytes.at("queries"));
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(headDim));
  const auto perHead = [&](const char* name, uint64_t head) {
    return valueOf(DType::f32, bitsAt(bytes.at(name), DType::f32, head));
  };

  std::vector<AttendedRow> results;
  for (uint64_t s = 0; s < op.sequences.size(); ++s) {
    const uint64_t sequence = op.sequences[s].sequence, ownRows = op.sequences[s].rows;
    const uint64_t rows = ownRows != 0 ? ownRows : axes.tokens, first = results.size();
    results.resize(first + rows * heads);
    for (uint64_t r = first; r < results.size(); ++r) results[r].output.assign(values.headDim(), 0);
    const std::vector<HeldKey> held = heldKeys(cache, op.sequences[s]);
    for (uint64_t kvHead = 0; kvHead < cache.heads; ++kvHead) {
      std::vector<std::optional<HeldVectors>> vectors(held.size());
      for (uint64_t r = 0; r < rows * group; ++r) {
        const uint64_t row = r / group, head = kvHead * group + r % group;
        const int64_t position = rowPosition(op.sequences[s], rows, row);
        const uint64_t at = first + row * heads + head;
        const Vector query = vectorFrom(queries, queryStart(op, s, row, head), headDim);
        const double queryNorm = std::abs(scale) * norm(query);
        std::vector<ScoredKey> scored;
        for (uint64_t k = 0; k < held.size(); ++k) {
          if (!isVisible(op, held[k].position, position)) continue;
          if (!vectors[k]) {
            const uint64_t index = cache.indexOf(sequence, kvHead, held[k].slot);
            Vector key = keys.at(index, kvHead), value = values.at(index, kvHead);
            if (key.size() < headDim) key.insert(key.begin(), value.begin(), value.end());
            const double keyNorm = norm(key);
            vectors[k].emplace(HeldVectors{std::move(key), keyNorm, std::move(value)});
          }
          double score = 0;
          for (uint64_t j = 0; j < headDim; ++j) score += query[j] * vectors[k]->key[j];
          score *= scale;
          double magnitude = queryNorm * vectors[k]->keyNorm;
          if (options.softcap != 0) score = options.softcap * std::tanh(score / options.softcap);
          const auto add = [&](double term) {
            score += term;
            if (std::isfinite(term)) magnitude += std::abs(term);
          };
          if (options.slopes) add(perHead("slopes", head) * static_cast<double>(held[k].position - position));
          if (options.mask) add(maskElement(*options.mask, bytes.at("mask"), {s, head, row, k}));
          scored.push_back({score < kLowestScore ? -kInfiniteScore : score, magnitude, &vectors[k]->value});
        }
        weigh(results[at], scored, options.sinks ? perHead("sinks", head) : -kInfiniteScore);
      }
    }
  }
  return results;
}

std::vector<AttendedRow> merged(const PartsToMerge& parts) {
  std::vector<AttendedRow> results(parts.rows);
  for (uint64_t row = 0; row < parts.rows; ++row) {
    AttendedRow& result = results[row];
    result.output.assign(parts.headDim, 0);
    // Scores of parts are in powers of 2, those of rows in powers of e. A part without a sum has no scores.
    std::vector<std::pair<uint64_t, double>> used;
    for (uint64_t at = row; at < parts.parts * parts.rows; at += parts.rows) {
      if (parts.stats[at * 2 + 1] != 0) used.emplace_back(at, parts.stats[at * 2] * std::numbers::ln2);
    }
    for (const auto& [at, score] : used) result.largest = std::max(result.largest, score);
    result.seesKeys = !used.empty();
    for (const auto& [at, score] : used) {
      const double weight = std::exp(score - result.largest);
      if (weight > 1e-12) result.magnitude = std::max(result.magnitude, std::abs(score));
      result.sum += weight * parts.stats[at * 2 + 1];
      for (uint64_t j = 0; j < parts.headDim; ++j) {
        result.output[j] += weight * parts.sums[at * parts.headDim + j];
      }
    }
    divide(result, parts.sinks.empty() ? -kInfiniteScore : static_cast<double>(parts.sinks[row % parts.sinks.size()]));
  }
  return results;
}

}  // namespace mnk::test
