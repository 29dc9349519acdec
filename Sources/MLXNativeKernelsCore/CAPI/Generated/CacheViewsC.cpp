// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(KVLayout& into, mnk_kv_layout from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_KV_LAYOUT_DEFAULT:
      return {};
    case MNK_KV_LAYOUT_HEAD_MAJOR:
      into = KVLayout::headMajor;
      return {};
    case MNK_KV_LAYOUT_TOKEN_MAJOR:
      into = KVLayout::tokenMajor;
      return {};
  }
  return unknownNumber("mnk_kv_layout", from, "MNK_KV_LAYOUT_DEFAULT to MNK_KV_LAYOUT_TOKEN_MAJOR");
}

Result<void> read(KVWrap& into, mnk_kv_wrap from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_KV_WRAP_LINEAR:
      into = KVWrap::linear;
      return {};
    case MNK_KV_WRAP_RING:
      into = KVWrap::ring;
      return {};
  }
  return unknownNumber("mnk_kv_wrap", from, "MNK_KV_WRAP_LINEAR to MNK_KV_WRAP_RING");
}

bool isFilled(const mnk_heads_view_strides& from) {
  return from.sequences != 0 || from.tokens != 0 || from.heads != 0 || from.head_dim != 0 || from.offset != 0 ||
         from.sequence_stride != 0 || from.token_stride != 0 || from.head_stride != 0;
}

Result<void> read(HeadsView::Strides& into, const mnk_heads_view_strides& from, const Field&) {
  if (from.sequences != 0) into.sequences = from.sequences;
  into.tokens = from.tokens;
  into.heads = from.heads;
  into.headDim = from.head_dim;
  into.offset = from.offset;
  into.sequenceStride = from.sequence_stride;
  into.tokenStride = from.token_stride;
  into.headStride = from.head_stride;
  return {};
}

bool isFilled(const mnk_heads_view& from) {
  return from.tensor || from.layout != 0 || from.has_strides || isFilled(from.strides);
}

Result<void> read(HeadsView& into, const mnk_heads_view& from, const Field& field) {
  if (!from.tensor) return nullArgument(Field{&field, "tensor"});
  into.tensor = from.tensor->tensor;
  MNK_TRY(read(into.layout, from.layout));
  if (from.has_strides) {
    MNK_TRY(read(into.strides.emplace(), from.strides, {&field, "strides"}));
  } else if (isFilled(from.strides)) {
    return ignored("mnk_heads_view", Field{&field, "strides"}.text(), "has_strides");
  }
  return {};
}

bool isFilled(const mnk_kv_cache_view& from) {
  return from.keys || from.values || from.layout != 0 || from.wrap != 0 || from.pinned != 0 || from.latent_dim != 0;
}

Result<void> read(KVCacheView& into, const mnk_kv_cache_view& from, const Field& field) {
  if (!from.keys) return nullArgument(Field{&field, "keys"});
  into.keys = from.keys->tensor;
  into.values = optional(from.values);
  MNK_TRY(read(into.layout, from.layout));
  MNK_TRY(read(into.wrap, from.wrap));
  into.pinned = from.pinned;
  into.latentDim = from.latent_dim;
  return {};
}

}  // namespace mnk::c
