#include "KVCacheWriteCall.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "Ops/KVCacheWriteRules.hpp"
#include "Reference/KVCacheWriteReference.hpp"
#include "Support/PlanBuffer.hpp"

namespace mnk::fuzz {

namespace {

using Words = KVCacheWriteWords;

std::string textOf(const std::optional<TensorWords>& tensor) {
  return tensor ? tensor->text() : "NULL";
}

std::string textOf(const RowWords& rows) {
  std::string text = fmt::format(
      "{} of {} {{{}}}", rows.hasList ? "a list" : "NULL instead of a list", rows.listCount.value_or(rows.list.size()),
      fmt::join(rows.list.begin(), rows.list.begin() + std::min<size_t>(rows.list.size(), 16), ", "));
  if (rows.tensor) text = fmt::format("tensor {} with {}", rows.tensor->text(), text);
  return text;
}

std::string textOf(const std::optional<mnk_heads_view>& view) {
  if (!view) return {};
  if (!view->has_strides) {
    return fmt::format(", view of size {}, layout {}", view->size, static_cast<uint32_t>(view->layout));
  }
  return fmt::format(", view of size {}: {} x {} x {} of {} at {}, strides {}, {}, {}", view->size, view->sequences,
                     view->tokens, view->heads, view->head_dim, view->offset, view->sequence_stride, view->token_stride,
                     view->head_stride);
}

class KVCacheWriteCall final : public OpCall {
 public:
  KVCacheWriteCall(World& world, Seeded& random, Words words, bool mayHoldNaN) : words_(std::move(words)) {
    mnk_kv_cache_write& write = storage_.write;
    write = words_.numbers;
    std::memset(storage_.tail, words_.tail, sizeof storage_.tail);
    const auto made = [&](const std::optional<TensorWords>& tensor) {
      return tensor ? world.make(*tensor, random) : nullptr;
    };
    write.keys = made(words_.keys);
    write.values = made(words_.values);
    write.keys_view = viewOf(words_.keysView, write.keys);
    write.values_view = viewOf(words_.valuesView, write.values);
    write.into.keys = made(words_.keyCache);
    write.into.values = made(words_.valueCache);
    for (RowWords* listed : {&words_.sequences, &words_.positions}) listed->list.reserve(1);  // not NULL if empty
    write.sequences = rows(words_.sequences, made(words_.sequences.tensor), world);
    write.positions = rows(words_.positions, made(words_.positions.tensor), world);
    for (const auto* source : {&words_.keys, &words_.values}) {
      if (*source) fillSource(world, random, **source, mayHoldNaN);
    }
    refusal_ = refusalOf(words_);
  }

  std::string text() const override { return words_.text(); }
  std::string refusal() const override { return refusal_; }

  bool isEmpty() const override {
    const SourceDims keys = dimsOfKeys(words_);
    const uint64_t valueDim = words_.values ? dimsOfValues(words_).headDim : 0;
    return tokensOf(words_) == 0 || keys.heads == 0 || (keys.headDim == 0 && valueDim == 0);
  }

  bool isForeign() const override {
    std::vector<const std::optional<TensorWords>*> used{&words_.keys, &words_.keyCache, &words_.values};
    if (words_.values) used.push_back(&words_.valueCache);
    if (words_.numbers.has_rows) used.insert(used.end(), {&words_.sequences.tensor, &words_.positions.tensor});
    return std::any_of(used.begin(), used.end(), [](const auto* tensor) { return *tensor && (*tensor)->device != 0; });
  }

  mnk_plan* makePlan(mnk_error_out error) const override { return mnk_kv_cache_write_make_plan(descriptor(), error); }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_kv_cache_write(encoder, descriptor(), error);
  }

  uint64_t apply(World& world) const override {
    if (isEmpty()) return 0;
    const auto bytes = [&](const std::optional<TensorWords>& tensor) {
      if (!tensor) return std::vector<std::byte>{};
      const auto image = world.image(*tensor);
      return std::vector<std::byte>(image.begin(), image.end());
    };
    const test::KVCacheWriteOutcome outcome = test::reference(
        referenceOp(), {.keys = bytes(words_.keys),
                        .values = bytes(words_.values),
                        .keyCache = bytes(words_.keyCache),
                        .valueCache = words_.values ? bytes(words_.valueCache) : std::vector<std::byte>{},
                        .sequences = numbers(words_.sequences, world),
                        .positions = numbers(words_.positions, world)});
    uint64_t written = store(world, *words_.keyCache, outcome.keyCache);
    if (words_.values) written += store(world, *words_.valueCache, outcome.valueCache);
    const bool isReadByKernel = words_.numbers.has_rows && (words_.sequences.tensor || words_.positions.tensor);
    return isReadByKernel ? kUnknown : written;
  }

 private:
  const mnk_kv_cache_write* descriptor() const { return words_.isNull ? nullptr : &storage_.write; }

  static mnk_row_indices rows(const RowWords& rows, mnk_tensor* tensor, World& world) {
    if (rows.tensor) world.fill(*rows.tensor, std::as_bytes(std::span(rows.list)));
    return {rows.hasList ? rows.list.data() : nullptr, rows.listCount.value_or(rows.list.size()), tensor};
  }

  static std::vector<uint32_t> numbers(const RowWords& rows, World& world) {
    if (!rows.tensor) return rows.list;
    std::vector<uint32_t> contents(rows.tensor->elements());
    if (!contents.empty()) std::memcpy(contents.data(), world.image(*rows.tensor).data(), contents.size() * 4);
    return contents;
  }

  static void fillSource(World& world, Seeded& random, const TensorWords& source, bool mayHoldNaN) {
    std::vector<std::byte> bytes = random.elements(static_cast<DType>(source.dtype), source.elements());
    // All exponents of f16 and of the upper half of f32 and bf16 lose a bit, and with it NaN.
    if (!mayHoldNaN) {
      for (size_t byte = 1; byte < bytes.size(); byte += 2) bytes[byte] &= std::byte{0xbf};
    }
    world.fill(source, bytes);
  }

  static uint64_t store(World& world, const TensorWords& cache, const test::ExpectedPlane& plane) {
    if (plane.bytes.empty()) return 0;
    std::memcpy(world.image(cache).data(), plane.bytes.data(), plane.bytes.size());
    if (plane.isConverted) world.allowAnyNaN(cache, plane.isWritten);
    return static_cast<uint64_t>(std::count(plane.isWritten.begin(), plane.isWritten.end(), true));
  }

  const mnk_heads_view* viewOf(std::optional<mnk_heads_view>& view, mnk_tensor* tensor) {
    if (!view) return nullptr;
    view->tensor = tensor;
    return &*view;
  }

  KVCacheWrite referenceOp() const {
    const mnk_kv_cache_write& n = words_.numbers;
    const auto tensor = [](const TensorWords& words) {
      return test::planTensor(static_cast<DType>(words.dtype), *Shape::make(words.shape));
    };
    KVCacheWrite op{.keys = referenceSource(*words_.keys, words_.keysView, n.source_layout),
                    .sourceOffset = n.source_offset,
                    .sourceIsRing = n.source_is_ring,
                    .into = {.keys = tensor(*words_.keyCache),
                             .layout = static_cast<KVLayout>(n.into.layout),
                             .wrap = static_cast<KVWrap>(n.into.wrap),
                             .pinned = n.into.pinned},
                    .sequence = n.sequence,
                    .position = n.position};
    if (words_.values) {
      op.values = referenceSource(*words_.values, words_.valuesView, n.source_layout);
      op.into.values = tensor(*words_.valueCache);
    }
    if (n.has_tokens) op.tokens = n.tokens;
    if (n.has_rows) op.rows.emplace();
    return op;
  }

  Words words_;
  std::string refusal_;
  struct {
    mnk_kv_cache_write write;
    unsigned char tail[sizeof(mnk_kv_cache_write)];
  } storage_;
};

std::unique_ptr<Case> makeCase(World& world, Seeded& random) {
  return makeOpCase(world, random, makeKVCacheWriteCall);
}

}  // namespace

HeadsView referenceSource(const TensorWords& tensor, const std::optional<mnk_heads_view>& view, mnk_kv_layout layout) {
  const mnk_heads_view places = *placesOfSource(tensor, view, layout);
  return HeadsView(test::planTensor(static_cast<DType>(tensor.dtype), *Shape::make(tensor.shape)),
                   HeadsView::Strides{.sequences = places.sequences,
                                      .tokens = places.tokens,
                                      .heads = places.heads,
                                      .headDim = places.head_dim,
                                      .offset = places.offset,
                                      .sequenceStride = places.sequence_stride,
                                      .tokenStride = places.token_stride,
                                      .headStride = places.head_stride});
}

std::string Words::text() const {
  const mnk_kv_cache_write& n = numbers;
  if (isNull) return "KVCacheWrite: a NULL descriptor";
  const auto layout = [](mnk_kv_layout given) {
    const auto number = static_cast<uint32_t>(given);
    return number == 0 ? std::string("head-major") : (number == 1 ? "token-major" : fmt::format("layout {}", number));
  };
  const auto wrap = static_cast<uint32_t>(n.into.wrap);
  std::string text = fmt::format(
      "KVCacheWrite (size {}, tail {}, view size {}):\n  keys {}\n  values {}\n  {} source from token {}, {} tokens{}\n"
      "  key cache {}\n  value cache {}\n  {}, {}, {} pinned\n  sequence {}, position {}",
      n.size, tail, n.into.size, textOf(keys) + textOf(keysView), textOf(values) + textOf(valuesView),
      layout(n.source_layout), n.source_offset, n.has_tokens ? fmt::format("{}", n.tokens) : "all",
      n.source_is_ring ? " of a ring" : "", textOf(keyCache), textOf(valueCache), layout(n.into.layout),
      wrap == 0 ? "linear" : (wrap == 1 ? "ring" : fmt::format("wrap {}", wrap)), n.into.pinned, n.sequence,
      n.position);
  if (n.has_rows) text += fmt::format("\n  rows: sequences {}, positions {}", textOf(sequences), textOf(positions));
  return text;
}

std::unique_ptr<OpCall> makeKVCacheWriteCall(World& world, Seeded& random, Wish wish, Bank bank) {
  Words words = wish == Wish::valid ? validWrite(random, bank) : attackedWrite(random, bank);
  // What the first of two calls stores may be moved on by the second, and then every bit of it must be known.
  return std::make_unique<KVCacheWriteCall>(world, random, std::move(words), bank == Bank::second);
}

Target kvCacheWriteTarget() {
  // A handle always has memory, so these two cannot be broken through the C door.
  const std::set<std::string_view> unreachable{"a source has no memory", "the cache has no memory"};
  std::vector<std::string_view> refusals = encoderRefusals();
  for (const auto& rule : kvCacheWriteRules()) {
    if (!unreachable.contains(rule.what)) refusals.push_back(rule.what);
  }
  refusals.insert(
      refusals.end(),
      {"mnk_kv_cache_write is missing", "mnk_kv_cache_write has the wrong size", "mnk_kv_cache_view has the wrong size",
       "keys is missing", "into.keys is missing", "the number is not a layout", "the number is not a wrap",
       "the list of rows is missing", "there are too many rows", "keys_view->tensor is missing",
       "values_view->tensor is missing", "mnk_heads_view has the wrong size"});
  return {.name = "KVCacheWrite", .share = 690, .refusals = std::move(refusals), .make = makeCase};
}

}  // namespace mnk::fuzz
