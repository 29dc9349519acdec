#include "Ops/FlashDecode/FlashDecodeReference.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecReference.hpp"

namespace mnk::test {

namespace {

using Vector = std::vector<double>;
constexpr double kInfiniteScore = std::numeric_limits<double>::infinity();
constexpr double kLowestScore = -3e29;  // lower ones count as -inf
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double elementAt(const std::vector<std::byte>& bytes, DType dtype, uint64_t index) {
  return valueOf(dtype, bitsAt(bytes, dtype, index));
}

Vector vectorFrom(const std::vector<std::byte>& bytes, DType dtype, uint64_t first, uint64_t length) {
  Vector vector;
  for (uint64_t j = 0; j < length; ++j) vector.push_back(elementAt(bytes, dtype, first + j));
  return vector;
}

uint64_t lastExtent(const Tensor& tensor) {
  return tensor.shape()[tensor.shape().rank() - 1];
}

uint64_t codedHeadDim(const QuantizedKVPlane& plane) {
  const uint64_t bytes = lastExtent(plane.codes);
  if (plane.codec.name == KVCodec::Name::turbo) return bytes * 8 / plane.codec.bits;
  return plane.codec.bits == 4 ? bytes * 2 : bytes;
}

// Keys or values, as the numbers that they stand for. Of a latent cache of two planes, a plane of keys has their rest.
class Plane {
 public:
  Plane(const FlashDecode& op, const OperandBytes& bytes, bool isKeys) : bytes_(bytes), isKeys_(isKeys) {
    if (const auto* dense = std::get_if<KVCacheView>(&op.cache)) {
      isKeys_ = isKeys || !dense->values;
      dense_ = isKeys_ ? &dense->keys : &*dense->values;
      headDim_ = isKeys_ && !isKeys ? dense->latentDim : lastExtent(*dense_);
    } else {
      const auto& quantized = std::get<QuantizedKVCacheView>(op.cache);
      coded_ = isKeys ? &quantized.keys : &*quantized.values;
      if (isFloat(coded_->codes.dtype())) dense_ = &coded_->codes;
      headDim_ = dense_ ? lastExtent(*dense_) : codedHeadDim(*coded_);
    }
  }

  uint64_t headDim() const { return headDim_; }

  Vector at(uint64_t index, uint64_t head) const {
    if (dense_) {
      const auto& all = bytes_.at(isKeys_ ? "keys" : "values");
      return vectorFrom(all, dense_->dtype(), index * lastExtent(*dense_), headDim_);
    }
    const auto called = [&](const char* part) { return (isKeys_ ? "key " : "value ") + std::string(part); };
    const uint64_t codeBytes = lastExtent(coded_->codes);
    const auto row = std::span(bytes_.at(called("codes"))).subspan(index * codeBytes, codeBytes);
    const DType scaleType = coded_->codec.name == KVCodec::Name::turbo ? DType::f16 : DType::f32;
    const uint64_t scaleCount = coded_->scales.shape().rank() == coded_->codes.shape().rank() ? 2 : 1;
    std::vector<uint64_t> scales;
    for (uint64_t s = 0; s < scaleCount; ++s) {
      scales.push_back(bitsAt(bytes_.at(called("scales")), scaleType, index * scaleCount + s));
    }
    VectorCoding coding{.codec = coded_->codec};
    const auto parameters = [&](const char* part) {
      const auto& all = bytes_.at(called(part));
      return std::span(reinterpret_cast<const float*>(all.data()) + head * headDim_, headDim_);
    };
    if (coded_->means) coding.means = parameters("means");
    if (coded_->channelScales) coding.channelScales = parameters("channel scales");
    std::vector<uint32_t> codes = unpacked(coded_->codec, headDim_, row);
    for (uint32_t& code : codes) code &= (1u << coded_->codec.bits) - 1;  // the rest of a byte means nothing
    return decoded(coding, codes, scales);
  }

 private:
  const OperandBytes& bytes_;
  bool isKeys_;
  const Tensor* dense_ = nullptr;
  const QuantizedKVPlane* coded_ = nullptr;
  uint64_t headDim_ = 0;
};

double norm(const Vector& vector) {
  double sum = 0;
  for (double x : vector) sum += x * x;
  return std::sqrt(sum);
}

// A value with what its largest element is.
struct Value {
  explicit Value(Vector of) : vector(std::move(of)) {
    for (double x : vector) largest = std::max(largest, std::abs(x));
  }

  Vector vector;
  double largest = 0;
};

struct ScoredKey {
  double score = 0;
  double magnitude = 0;
  const Value* value = nullptr;
};

struct HeldVectors {
  Vector key;
  double keyNorm = 0;
  Value value;
};

// Weighs values by scores, and leaves out what has no weight whatever it holds.
void weigh(AttendedRow& row, const std::vector<ScoredKey>& keys, double sink) {
  for (const ScoredKey& key : keys) {
    if (std::isnan(key.score) || key.score == kInfiniteScore) row.largest = kNaN;
    if (!std::isnan(row.largest)) row.largest = std::max(row.largest, key.score);
  }
  row.seesKeys = row.largest != -kInfiniteScore;
  if (!row.seesKeys) {
    row.logSumExp = sink;
    return;
  }
  if (std::isnan(row.largest)) {
    row.logSumExp = row.sum = kNaN;
    std::fill(row.output.begin(), row.output.end(), kNaN);
    return;
  }
  for (const ScoredKey& key : keys) {
    if (key.score == -kInfiniteScore) continue;
    const double weight = std::exp(key.score - row.largest);
    if (weight > 1e-12) row.magnitude = std::max(row.magnitude, key.magnitude);
    row.largestValue = std::max(row.largestValue, key.value->largest);
    row.sum += weight;
    for (size_t j = 0; j < row.output.size(); ++j) row.output[j] += weight * key.value->vector[j];
  }
  const double top = std::max(row.largest, sink);
  const double fade = std::exp(row.largest - top);
  const double total = row.sum * fade + std::exp(sink - top);
  for (double& x : row.output) x *= fade / total;
  row.logSumExp = top + std::log(total);
}

}  // namespace

QueryAxes queryAxes(const HeadsView& queries) {
  if (const auto& s = queries.strides) return {s->sequences, s->tokens, s->heads, s->headDim};
  const Shape& shape = queries.tensor.shape();
  const uint64_t inner = shape[shape.rank() - 2], outer = shape.rank() == 2 ? 1 : shape[shape.rank() - 3];
  const bool isHeadMajor = queries.layout == KVLayout::headMajor;
  return {shape.rank() == 4 ? shape[0] : 1, isHeadMajor ? inner : outer, isHeadMajor ? outer : inner,
          lastExtent(queries.tensor)};
}

uint64_t CacheGeometry::indexOf(uint64_t sequence, uint64_t head, uint64_t slot) const {
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

uint64_t queryStart(const HeadsView& queries, uint64_t sequence, uint64_t row, uint64_t head) {
  if (const auto& s = queries.strides) {
    return s->offset + sequence * s->sequenceStride + row * s->tokenStride + head * s->headStride;
  }
  const Shape& shape = queries.tensor.shape();
  const bool isHeadMajor = queries.layout == KVLayout::headMajor;
  const uint64_t inner = shape[shape.rank() - 2], outer = shape.rank() == 2 ? 1 : shape[shape.rank() - 3];
  const uint64_t vector = (sequence * outer + (isHeadMajor ? head : row)) * inner + (isHeadMajor ? row : head);
  return vector * lastExtent(queries.tensor);
}

uint64_t queryStart(const FlashDecode& op, uint64_t sequence, uint64_t row, uint64_t head) {
  if (op.sequences[sequence].rows == 0) return queryStart(op.queries, sequence, row, head);
  for (uint64_t s = 0; s < sequence; ++s) row += op.sequences[s].rows;
  return queryStart(op.queries, 0, row, head);
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
  return elementAt(bytes, mask.dtype(), index);
}

std::vector<AttendedRow> attended(const FlashDecode& op, const OperandBytes& bytes) {
  const Plane keys(op, bytes, true), values(op, bytes, false);
  const CacheGeometry cache = geometryOf(op);
  const AttentionOptions& options = op.options;
  const auto [sequences, axisRows, heads, headDim] = queryAxes(op.queries);
  const uint64_t group = heads / cache.heads;
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(headDim));
  const auto perHead = [&](const char* name, uint64_t head) { return elementAt(bytes.at(name), DType::f32, head); };

  std::vector<AttendedRow> results;
  for (uint64_t s = 0; s < op.sequences.size(); ++s) {
    const bool isOnly = op.sequences[s].sequence == kOnlySequence;
    const uint64_t sequence = isOnly ? 0 : op.sequences[s].sequence, ownRows = op.sequences[s].rows;
    const uint64_t rows = ownRows != 0 ? ownRows : axisRows, first = results.size();
    results.resize(first + rows * heads);
    for (uint64_t r = first; r < results.size(); ++r) results[r].output.assign(values.headDim(), 0);
    const std::vector<HeldKey> held = heldKeys(cache, op.sequences[s]);
    for (uint64_t kvHead = 0; kvHead < cache.heads; ++kvHead) {
      std::vector<std::optional<HeldVectors>> vectors(held.size());
      for (uint64_t r = 0; r < rows * group; ++r) {
        const uint64_t row = r / group, head = kvHead * group + r % group;
        const int64_t position = rowPosition(op.sequences[s], rows, row);
        const uint64_t at = first + row * heads + head;
        const Vector query =
            vectorFrom(bytes.at("queries"), op.queries.tensor.dtype(), queryStart(op, s, row, head), headDim);
        const double queryNorm = std::abs(scale) * norm(query);
        std::vector<ScoredKey> scored;
        for (uint64_t k = 0; k < held.size(); ++k) {
          if (!isVisible(op, held[k].position, position)) continue;
          if (!vectors[k]) {
            const uint64_t index = cache.indexOf(sequence, kvHead, held[k].slot);
            Vector key = keys.at(index, kvHead), value = values.at(index, kvHead);
            if (key.size() < headDim) key.insert(key.begin(), value.begin(), value.end());
            const double keyNorm = norm(key);
            vectors[k].emplace(HeldVectors{std::move(key), keyNorm, Value(std::move(value))});
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
    // In powers of e, as rows of attention have them.
    std::vector<ScoredKey> scored;
    std::vector<Value> values;
    values.reserve(parts.parts);  // whose addresses are kept
    double top = -kInfiniteScore;
    const double sink =
        parts.sinks.empty() ? -kInfiniteScore : static_cast<double>(parts.sinks[row % parts.sinks.size()]);
    for (uint64_t part = 0; part < parts.parts; ++part) {
      const uint64_t at = part * parts.rows + row;
      const double largest = parts.stats[at * 2], sum = parts.stats[at * 2 + 1];
      if (sum == 0) continue;
      Vector vector;
      for (uint64_t j = 0; j < parts.headDim; ++j) vector.push_back(parts.sums[at * parts.headDim + j] / sum);
      values.emplace_back(std::move(vector));
      top = std::max(top, largest * std::numbers::ln2);
      const double score = largest * std::numbers::ln2 + std::log(sum);
      scored.push_back({score, std::abs(score), &values.back()});
    }
    results[row].output.assign(parts.headDim, 0);
    weigh(results[row], scored, sink);
    // What parts have in common is counted from the largest of them, not from the one of most weight.
    const double all = results[row].largest + std::log(results[row].sum);
    results[row].largest = top;
    results[row].sum = results[row].seesKeys ? std::exp(all - top) : 0;
  }
  return results;
}

}  // namespace mnk::test
