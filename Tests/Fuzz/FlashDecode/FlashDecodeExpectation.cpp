// What FlashDecode.hpp defines, in double and in plain loops over the world's images.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>

#include "FlashDecodeCall.hpp"
#include "Reference/KVCodecReference.hpp"
#include "Reference/SoftFloat.hpp"

namespace mnk::fuzz {

namespace {

using Words = FlashDecodeWords;
using Vector = std::vector<double>;

// Keys or values of a cache as numbers.
class Plane {
 public:
  Plane(const Words& words, World& world, bool isKeys)
      : words_(words),
        world_(world),
        tensor_(*(isKeys ? words.cache.write.keyCache : words.cache.write.valueCache)),
        coded_(isKeys ? words.cache.keys : words.cache.values),
        headDim_(isKeys ? keyDimOf(words) : valueDimOf(words)) {
    if (!words.hasQuantized) {
      numbers_ = valuesOf(world, tensor_);
      return;
    }
    scales_ = bitsOf(*coded_.scales);
    if (coded_.means) means_ = floatsOf(*coded_.means);
    if (coded_.channelScales) channels_ = floatsOf(*coded_.channelScales);
  }

  bool hasFiniteMeans() const {
    return std::all_of(means_.begin(), means_.end(), [](float mean) { return std::isfinite(mean); });
  }

  const Vector& at(uint64_t sequence, uint64_t slot, uint64_t head) {
    const uint64_t index = slotIndex(tensor_, words_.view().layout, sequence, slot, head);
    auto [found, isNew] = vectors_.try_emplace(index);
    if (isNew) found->second = words_.hasQuantized ? decoded(index, head) : dense(index);
    return found->second;
  }

 private:
  Vector dense(uint64_t index) const {
    const auto begin = numbers_.begin() + static_cast<ptrdiff_t>(index * headDim_);
    return {begin, begin + static_cast<ptrdiff_t>(headDim_)};
  }

  Vector decoded(uint64_t index, uint64_t head) {
    const KVCodec codec{static_cast<KVCodecName>(coded_.codec.name), coded_.codec.bits,
                        coded_.codec.scale_factor == 0 ? 1 : coded_.codec.scale_factor};
    const uint64_t bytes = tensor_.shape.back(), each = scales_.size() * bytes / tensor_.bytes();
    auto codes = test::unpacked(codec, headDim_, world_.image(tensor_).subspan(index * bytes, bytes));
    for (uint32_t& code : codes) code &= (1u << codec.bits) - 1;  // the rest of a byte means nothing
    const auto ofHead = [&](const std::vector<float>& all) {
      return all.empty() ? std::span<const float>() : std::span(all).subspan(head * headDim_, headDim_);
    };
    return test::decoded({.codec = codec, .means = ofHead(means_), .channelScales = ofHead(channels_)}, codes,
                         std::span(scales_).subspan(index * each, each));
  }

  std::vector<uint64_t> bitsOf(const TensorWords& tensor) const {
    std::vector<uint64_t> bits(tensor.elements());
    for (uint64_t e = 0; e < bits.size(); ++e) {
      std::memcpy(&bits[e], &world_.image(tensor)[e * tensor.elementBytes()], tensor.elementBytes());
    }
    return bits;
  }
  std::vector<float> floatsOf(const TensorWords& tensor) const {
    const std::vector<double> values = valuesOf(world_, tensor);
    return {values.begin(), values.end()};
  }

  const Words& words_;
  World& world_;
  const TensorWords& tensor_;
  const QuantizedPlaneWords& coded_;
  uint64_t headDim_;
  Vector numbers_;
  std::vector<uint64_t> scales_;
  std::vector<float> means_, channels_;
  std::map<uint64_t, Vector> vectors_;
};

struct Row {
  Vector sums;  // of weights and values, before their division
  double largest = -INFINITY;
  double sum = 0;
  double sink = -INFINITY;
  double scoreSlack = 0;  // how far scores may be off
  double largestValue = 0;

  double divisor() const { return sum + std::exp(sink - largest); }
  double logSumExp() const {
    const double top = std::max(largest, sink);
    return top == -INFINITY ? top : top + std::log(sum * std::exp(largest - top) + std::exp(sink - top));
  }
};

class Attention {
 public:
  Attention(const Words& words, World& world)
      : words_(words),
        dims_(queryDims(words)),
        options_(words.usedOptions()),
        keys_(words, world, true),
        values_(words, world, false),
        queries_(valuesOf(world, *words.queries)) {
    const auto read = [&](const std::optional<TensorWords>& tensor) {
      const auto& used = words.used(tensor);
      return used ? valuesOf(world, *used) : Vector();
    };
    mask_ = read(words.mask), slopes_ = read(words.slopes), sinks_ = read(words.sinks);
  }

  // Means of values are added to all results, those of no key included.
  bool hasFiniteMeans() const { return values_.hasFiniteMeans(); }

  Row row(uint64_t sequence, uint64_t index, uint64_t head) {
    const mnk_attended_sequence& attended = words_.sequences[sequence];
    const CacheDims cache = cacheDims(*words_.cache.write.keyCache, words_.view().layout);
    const uint64_t kvHead = head / (dims_.heads / cache.heads);
    const mnk_heads_view places = *queryPlaces(words_);
    const double* query = &queries_[places.offset + sequence * places.sequence_stride + index * places.token_stride +
                                    head * places.head_stride];
    const double scale = options_.scale != 0 ? options_.scale : 1 / std::sqrt(static_cast<double>(dims_.headDim));
    const auto position = static_cast<double>(attended.length) - static_cast<double>(dims_.rows - index);
    Row row{.sums = Vector(valueDimOf(words_))};
    std::vector<std::pair<double, const Vector*>> seen;
    const std::vector<HeldSlot> held = heldSlots(words_, attended);
    for (uint64_t k = 0; k < held.size(); ++k) {
      if (!sees(words_, attended.length, index, held[k].position)) continue;
      const Vector& key = keys_.at(attended.sequence, held[k].slot, kvHead);
      double score = 0, size = 0;
      for (uint64_t e = 0; e < dims_.headDim; ++e) {
        score += query[e] * key[e];
        size += std::abs(query[e] * key[e]);
      }
      score *= scale;
      // Codes are multiplied in their own domain, where elements are no larger than the vector.
      row.scoreSlack = std::max(row.scoreSlack, 1e-6 * (8 + scale * size * (words_.hasQuantized ? 8 : 1)));
      if (options_.softcap != 0) score = options_.softcap * std::tanh(score / options_.softcap);
      if (!slopes_.empty()) score += slopes_[head] * (static_cast<double>(held[k].position) - position);
      if (!mask_.empty()) score += mask_[maskIndex(sequence, head, index, k)];
      row.scoreSlack = std::max(row.scoreSlack, std::isfinite(score) ? 4e-7 * std::abs(score) : 0);
      if (score == -INFINITY) continue;
      seen.emplace_back(score, &values_.at(attended.sequence, held[k].slot, kvHead));
      row.largest = std::max(row.largest, score);
    }
    for (const auto& [score, value] : seen) {
      const double weight = std::exp(score - row.largest);
      row.sum += weight;
      for (uint64_t e = 0; e < row.sums.size(); ++e) {
        row.sums[e] += weight * (*value)[e];
        row.largestValue = std::max(row.largestValue, std::abs((*value)[e]));
      }
    }
    if (!sinks_.empty()) row.sink = sinks_[head];
    return row;
  }

 private:
  uint64_t maskIndex(uint64_t sequence, uint64_t head, uint64_t row, uint64_t key) const {
    const std::vector<uint64_t>& shape = words_.mask->shape;
    const uint64_t wanted[] = {sequence, head, row};
    uint64_t index = 0;
    for (size_t axis = 0; axis + 1 < shape.size(); ++axis) {
      index = index * shape[axis] + (shape[axis] == 1 ? 0 : wanted[4 - shape.size() + axis]);
    }
    return index * shape.back() + key;
  }

  const Words& words_;
  QueryDims dims_;
  mnk_attention_options options_;
  Plane keys_, values_;
  Vector queries_, mask_, slopes_, sinks_;
};

// Writes numbers to an image, each of which may be off by its slack. A large one, or a NaN, allows anything.
void store(World& world, const std::optional<TensorWords>& tensor, const Vector& values, const Vector& slack) {
  if (!tensor) return;
  const auto dtype = static_cast<DType>(tensor->dtype);
  const auto image = world.image(*tensor);
  for (uint64_t e = 0; e < values.size(); ++e) {
    const uint64_t bits = test::nearestBits(dtype, values[e]);
    std::memcpy(&image[e * tensor->elementBytes()], &bits, tensor->elementBytes());
  }
  world.allow(*tensor, [=](uint64_t element, uint64_t, uint64_t got) {
    if (std::isnan(values[element]) || !(slack[element] < 1e3)) return true;
    const double digit = dtype == DType::f32 ? 0x1p-20 : (dtype == DType::f16 ? 0x1p-10 : 0x1p-7);
    const double least = dtype == DType::f16 ? 0x1p-24 : 0x1p-126;
    const double value = values[element];
    return std::abs(test::valueOf(dtype, got) - value) <= slack[element] + digit * std::abs(value) + least;
  });
}

}  // namespace

uint64_t writtenOf(const mnk_attended_sequence& attended) {
  return attended.highest == 0 ? attended.length : attended.highest;
}

std::vector<HeldSlot> heldSlots(const Words& words, const mnk_attended_sequence& attended) {
  const mnk_kv_cache_view& view = words.view();
  const uint64_t capacity = cacheDims(*words.cache.write.keyCache, view.layout).capacity, length = attended.length;
  const uint64_t ring = capacity - view.pinned, written = writtenOf(attended);
  const bool hasLost = view.wrap == MNK_RING && written > capacity;
  std::vector<HeldSlot> held;
  for (uint64_t position = 0; position < std::min<uint64_t>(length, view.pinned); ++position) {
    held.push_back({position, position});
  }
  for (uint64_t position = hasLost ? written - ring : view.pinned; position < length; ++position) {
    held.push_back({position, view.wrap == MNK_RING ? view.pinned + (position - view.pinned) % ring : position});
  }
  return held;
}

uint64_t mostHeld(const Words& words) {
  size_t most = 0;
  for (const mnk_attended_sequence& s : words.sequences) most = std::max(most, heldSlots(words, s).size());
  return most;
}

bool sees(const Words& words, uint64_t length, uint64_t row, uint64_t position) {
  const mnk_attention_options options = words.usedOptions();
  const auto own = static_cast<int64_t>(length + row) - static_cast<int64_t>(queryDims(words).rows);
  const auto key = static_cast<int64_t>(position);
  if (!options.is_bidirectional && key > own) return false;
  if (options.window_sees_pinned && position < words.view().pinned) return true;
  return options.window == 0 || key > own - static_cast<int64_t>(options.window);
}

void applyDecode(const Words& words, World& world) {
  const QueryDims dims = queryDims(words);
  Attention attention(words, world);
  Vector into, intoSlack, sums, sumsSlack, stats, statsSlack, logs, logsSlack;
  for (uint64_t vector = 0; vector < dims.vectors(); ++vector) {
    const Row row =
        attention.row(vector / (dims.rows * dims.heads), vector / dims.heads % dims.rows, vector % dims.heads);
    const bool isEmpty = row.sum == 0;
    // A factor of e^slack in a weight is a part of that size of all values that it weighs.
    // Operands that share memory may hold anything, of which nothing is told here.
    const bool isTold = std::isfinite(row.sum) && std::isfinite(row.scoreSlack) && std::isfinite(row.largestValue) &&
                        (std::isfinite(row.sink) || row.sink == -INFINITY) && attention.hasFiniteMeans();
    const double relative = !isTold ? INFINITY : (isEmpty ? 0 : 2 * row.scoreSlack + 1e-5);
    const double emptySlack = isTold ? 0 : INFINITY;
    for (const double number : row.sums) {
      into.push_back(isEmpty ? 0 : number / row.divisor());
      intoSlack.push_back(isEmpty ? emptySlack : relative * row.largestValue * row.sum / row.divisor());
      sums.push_back(number);
      sumsSlack.push_back(isEmpty ? emptySlack : relative * row.largestValue * row.sum);
    }
    stats.push_back(isEmpty ? 0 : row.largest * std::numbers::log2e), stats.push_back(row.sum);
    // Where there is no key, the largest score says nothing.
    statsSlack.push_back(isEmpty || !isTold ? INFINITY : row.scoreSlack * 2);
    statsSlack.push_back(isTold ? relative * row.sum : INFINITY);
    logs.push_back(row.logSumExp()), logsSlack.push_back(relative);
  }
  store(world, words.into, into, intoSlack);
  store(world, words.sums, sums, sumsSlack);
  store(world, words.stats, stats, statsSlack);
  store(world, words.logSumExp, logs, logsSlack);
  if (words.scratch) world.allow(*words.scratch, [](uint64_t, uint64_t, uint64_t) { return true; });
}

}  // namespace mnk::fuzz
