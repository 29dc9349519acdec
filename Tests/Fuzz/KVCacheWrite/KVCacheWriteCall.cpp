#include "KVCacheWriteCall.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "Harness/PlanBuffer.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRules.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheWriteSpec;

std::string textOf(const std::optional<TensorSpec>& tensor) {
  return tensor ? tensor->text() : "NULL";
}

std::string textOf(const RowSpec& rows) {
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
  KVCacheWriteCall(Arena& arena, Seeded& random, Spec spec, bool mayHoldNaN) : spec_(std::move(spec)) {
    mnk_kv_cache_write& write = storage_.write;
    write = spec_.numbers;
    std::memset(storage_.tail, spec_.tail, sizeof storage_.tail);
    const auto made = [&](const std::optional<TensorSpec>& tensor) {
      return tensor ? arena.make(*tensor, random) : nullptr;
    };
    write.keys = made(spec_.keys);
    write.values = made(spec_.values);
    write.keys_view = viewOf(spec_.keysView, write.keys);
    write.values_view = viewOf(spec_.valuesView, write.values);
    write.into.keys = made(spec_.keyCache);
    write.into.values = made(spec_.valueCache);
    for (RowSpec* listed : {&spec_.sequences, &spec_.positions}) listed->list.reserve(1);  // not NULL if empty
    write.sequences = rows(spec_.sequences, made(spec_.sequences.tensor), arena);
    write.positions = rows(spec_.positions, made(spec_.positions.tensor), arena);
    for (const auto* source : {&spec_.keys, &spec_.values}) {
      if (*source) fillSource(arena, random, **source, mayHoldNaN);
    }
    refusal_ = refusalOf(spec_);
  }

  std::string text() const override { return spec_.text(); }
  std::string refusal() const override { return refusal_; }

  bool isEmpty() const override {
    const SourceDims keys = dimsOfKeys(spec_);
    const uint64_t valueDim = spec_.values ? dimsOfValues(spec_).headDim : 0;
    return tokensOf(spec_) == 0 || keys.heads == 0 || (keys.headDim == 0 && valueDim == 0);
  }

  bool isForeign() const override {
    std::vector<const std::optional<TensorSpec>*> used{&spec_.keys, &spec_.keyCache, &spec_.values};
    if (spec_.values) used.push_back(&spec_.valueCache);
    if (spec_.numbers.has_rows) used.insert(used.end(), {&spec_.sequences.tensor, &spec_.positions.tensor});
    return std::any_of(used.begin(), used.end(), [](const auto* tensor) { return *tensor && (*tensor)->device != 0; });
  }

  mnk_plan* makePlan(mnk_error_out error) const override { return mnk_kv_cache_write_make_plan(descriptor(), error); }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_kv_cache_write(encoder, descriptor(), error);
  }

  uint64_t apply(Arena& arena) const override {
    if (isEmpty()) return 0;
    const auto bytes = [&](const std::optional<TensorSpec>& tensor) {
      if (!tensor) return std::vector<std::byte>{};
      const auto image = arena.image(*tensor);
      return std::vector<std::byte>(image.begin(), image.end());
    };
    const test::KVCacheWriteOutcome outcome =
        test::reference(referenceOp(), {.keys = bytes(spec_.keys),
                                        .values = bytes(spec_.values),
                                        .keyCache = bytes(spec_.keyCache),
                                        .valueCache = spec_.values ? bytes(spec_.valueCache) : std::vector<std::byte>{},
                                        .sequences = numbers(spec_.sequences, arena),
                                        .positions = numbers(spec_.positions, arena)});
    uint64_t written = store(arena, *spec_.keyCache, outcome.keyCache);
    if (spec_.values) written += store(arena, *spec_.valueCache, outcome.valueCache);
    const bool isReadByKernel = spec_.numbers.has_rows && (spec_.sequences.tensor || spec_.positions.tensor);
    return isReadByKernel ? kUnknown : written;
  }

 private:
  const mnk_kv_cache_write* descriptor() const { return spec_.isNull ? nullptr : &storage_.write; }

  static mnk_row_indices rows(const RowSpec& rows, mnk_tensor* tensor, Arena& arena) {
    if (rows.tensor) arena.fill(*rows.tensor, std::as_bytes(std::span(rows.list)));
    return {rows.hasList ? rows.list.data() : nullptr, rows.listCount.value_or(rows.list.size()), tensor};
  }

  static std::vector<uint32_t> numbers(const RowSpec& rows, Arena& arena) {
    if (!rows.tensor) return rows.list;
    std::vector<uint32_t> contents(rows.tensor->elements());
    if (!contents.empty()) std::memcpy(contents.data(), arena.image(*rows.tensor).data(), contents.size() * 4);
    return contents;
  }

  static void fillSource(Arena& arena, Seeded& random, const TensorSpec& source, bool mayHoldNaN) {
    std::vector<std::byte> bytes = random.elements(static_cast<DType>(source.dtype), source.elements());
    // All exponents of f16 and of the upper half of f32 and bf16 lose a bit, and with it NaN.
    if (!mayHoldNaN) {
      for (size_t byte = 1; byte < bytes.size(); byte += 2) bytes[byte] &= std::byte{0xbf};
    }
    arena.fill(source, bytes);
  }

  static uint64_t store(Arena& arena, const TensorSpec& cache, const test::ExpectedPlane& plane) {
    if (plane.bytes.empty()) return 0;
    std::memcpy(arena.image(cache).data(), plane.bytes.data(), plane.bytes.size());
    if (plane.isConverted) arena.allowAnyNaN(cache, plane.isWritten);
    return static_cast<uint64_t>(std::count(plane.isWritten.begin(), plane.isWritten.end(), true));
  }

  const mnk_heads_view* viewOf(std::optional<mnk_heads_view>& view, mnk_tensor* tensor) {
    if (!view) return nullptr;
    view->tensor = tensor;
    return &*view;
  }

  KVCacheWrite referenceOp() const {
    const mnk_kv_cache_write& n = spec_.numbers;
    const auto tensor = [](const TensorSpec& spec) {
      return test::planTensor(static_cast<DType>(spec.dtype), *Shape::make(spec.shape));
    };
    KVCacheWrite op{.keys = referenceSource(*spec_.keys, spec_.keysView, n.source_layout),
                    .sourceOffset = n.source_offset,
                    .sourceIsRing = n.source_is_ring,
                    .into = {.keys = tensor(*spec_.keyCache),
                             .layout = static_cast<KVLayout>(n.into.layout),
                             .wrap = static_cast<KVWrap>(n.into.wrap),
                             .pinned = n.into.pinned},
                    .sequence = n.sequence,
                    .position = n.position};
    if (spec_.values) {
      op.values = referenceSource(*spec_.values, spec_.valuesView, n.source_layout);
      op.into.values = tensor(*spec_.valueCache);
    }
    if (n.has_tokens) op.tokens = n.tokens;
    if (n.has_rows) op.rows.emplace();
    return op;
  }

  Spec spec_;
  std::string refusal_;
  struct {
    mnk_kv_cache_write write;
    unsigned char tail[sizeof(mnk_kv_cache_write)];
  } storage_;
};

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  return makeOpCase(arena, random, makeKVCacheWriteCall);
}

}  // namespace

HeadsView referenceSource(const TensorSpec& tensor, const std::optional<mnk_heads_view>& view, mnk_kv_layout layout) {
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

std::string Spec::text() const {
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

std::unique_ptr<OpCall> makeKVCacheWriteCall(Arena& arena, Seeded& random, Wish wish, Bank bank) {
  Spec spec = wish == Wish::valid ? validWrite(random, bank) : mutatedWrite(random, bank);
  // What the first of two calls stores may be moved on by the second, and then every bit of it must be known.
  return std::make_unique<KVCacheWriteCall>(arena, random, std::move(spec), bank == Bank::second);
}

Target kvCacheWriteTarget() {
  // A handle always has memory, so these two cannot be broken through the C API.
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
