// Generated from Sources/API by generate.py: change the description instead.
// Writes structs of C++ into those of C. `handleOf` gives the handle of a tensor, or NULL of none;
// lists of numbers and strings stay those of the C++ struct, and its `keep` holds lists of structs.
#pragma once
#include <algorithm>

#include "CAPI/Indices.hpp"

namespace mnk::c {

inline mnk_attention_options_kernel write(AttentionOptions::Kernel from) {
  return static_cast<mnk_attention_options_kernel>(static_cast<uint32_t>(from));
}
inline mnk_attention_options_merge write(AttentionOptions::Merge from) {
  return static_cast<mnk_attention_options_merge>(static_cast<uint32_t>(from));
}
inline mnk_dtype write(DType from) {
  return static_cast<mnk_dtype>(static_cast<uint32_t>(from));
}
inline mnk_error_code write(ErrorCode from) {
  return static_cast<mnk_error_code>(static_cast<uint32_t>(from));
}
inline mnk_library_origin write(LibraryOriginKind from) {
  return static_cast<mnk_library_origin>(static_cast<uint32_t>(from));
}
inline mnk_access write(Access from) {
  return static_cast<mnk_access>(static_cast<uint32_t>(from));
}
inline mnk_kv_quantized_planes write(KVQuantizedPlanes from) {
  return static_cast<mnk_kv_quantized_planes>(static_cast<uint32_t>(from));
}
inline mnk_tuning write(Tuning from) {
  return static_cast<mnk_tuning>(static_cast<uint32_t>(from));
}
inline mnk_kv_layout write(KVLayout from) {
  return static_cast<mnk_kv_layout>(static_cast<uint32_t>(from) + 1);
}
inline mnk_kv_wrap write(KVWrap from) {
  return static_cast<mnk_kv_wrap>(static_cast<uint32_t>(from));
}
inline mnk_host_options_level write(HostOptions::Level from) {
  return static_cast<mnk_host_options_level>(static_cast<uint32_t>(from));
}
inline mnk_host_options_checking write(HostOptions::Checking from) {
  return static_cast<mnk_host_options_checking>(static_cast<uint32_t>(from));
}
inline mnk_kv_codec_name write(KVCodec::Name from) {
  return static_cast<mnk_kv_codec_name>(static_cast<uint32_t>(from));
}
inline mnk_kv_scale_rule write(KVScaleRule from) {
  return static_cast<mnk_kv_scale_rule>(static_cast<uint32_t>(from) + 1);
}
inline mnk_kv_non_finite write(KVNonFinite from) {
  return static_cast<mnk_kv_non_finite>(static_cast<uint32_t>(from));
}
inline mnk_kv_domain write(KVDomain from) {
  return static_cast<mnk_kv_domain>(static_cast<uint32_t>(from));
}
inline mnk_rotary_embedding_layout write(RotaryEmbedding::Layout from) {
  return static_cast<mnk_rotary_embedding_layout>(static_cast<uint32_t>(from));
}
inline mnk_rotary_embedding_pairing write(RotaryEmbedding::Pairing from) {
  return static_cast<mnk_rotary_embedding_pairing>(static_cast<uint32_t>(from));
}
inline mnk_rotary_embedding_other_axis write(RotaryEmbedding::OtherAxis from) {
  return static_cast<mnk_rotary_embedding_other_axis>(static_cast<uint32_t>(from));
}

template <typename Handles>
mnk_attention_options write(const AttentionOptions& from, Handles&& handleOf) {
  mnk_attention_options into{};
  into.scale = from.scale;
  into.is_bidirectional = !from.isCausal;
  into.window = from.window;
  into.window_sees_pinned = from.windowSeesPinned;
  into.softcap = from.softcap;
  into.mask = handleOf(from.mask);
  into.slopes = handleOf(from.slopes);
  into.sinks = handleOf(from.sinks);
  into.splits = from.splits;
  into.kernel = write(from.kernel);
  into.merge = write(from.merge);
  return into;
}

template <typename Handles>
mnk_attention_partials write(const AttentionPartials& from, Handles&& handleOf) {
  mnk_attention_partials into{};
  into.sums = handleOf(from.sums);
  into.stats = handleOf(from.stats);
  return into;
}

template <typename Handles>
mnk_attention_results write(const AttentionResults& from, Handles&& handleOf) {
  mnk_attention_results into{};
  into.output = handleOf(from.output);
  if (from.partials) into.partials = write(*from.partials, handleOf);
  into.log_sum_exp = handleOf(from.logSumExp);
  return into;
}

template <typename Handles>
mnk_attended_sequence write(const AttendedSequence& from, Handles&&) {
  mnk_attended_sequence into{};
  into.sequence = from.sequence;
  into.length = from.length;
  into.highest = from.highest;
  into.rows = from.rows;
  if (from.position) {
    into.has_position = true;
    into.position = *from.position;
  }
  return into;
}

template <typename Handles>
mnk_sliding_window write(const SlidingWindow& from, Handles&&) {
  mnk_sliding_window into{};
  into.window = from.window;
  into.max_rows = from.maxRows;
  into.max_draft = from.maxDraft;
  return into;
}

template <typename Handles>
mnk_kv_quantize_options write(const KVQuantizeOptions& from, Handles&&) {
  mnk_kv_quantize_options into{};
  into.candidates = from.candidates;
  into.key_scale = write(from.keyScale);
  into.value_scale = write(from.valueScale);
  into.non_finite = write(from.nonFinite);
  return into;
}

template <typename Handles>
mnk_kv_quantized_storage write(const KVQuantizedStorage& from, Handles&& handleOf) {
  mnk_kv_quantized_storage into{};
  into.codec = write(from.codec);
  into.key_bits = from.keyBits;
  into.value_bits = from.valueBits;
  into.scale_factor = from.scaleFactor;
  into.options = write(from.options, handleOf);
  into.key_means = handleOf(from.keyMeans);
  into.value_means = handleOf(from.valueMeans);
  into.key_channel_scales = handleOf(from.keyChannelScales);
  into.planes = write(from.planes);
  return into;
}

template <typename Handles>
mnk_attention_cache_descriptor write(const AttentionCacheDescriptor& from, Handles&& handleOf) {
  mnk_attention_cache_descriptor into{};
  into.kv_heads = from.kvHeads;
  into.head_dim = from.headDim;
  into.value_head_dim = from.valueHeadDim;
  into.capacity = from.capacity;
  into.sequences = from.sequences;
  into.dtype = write(from.dtype);
  into.when_full = write(from.whenFull);
  into.pinned = from.pinned;
  if (from.quantized) {
    into.has_quantized = true;
    into.quantized = write(*from.quantized, handleOf);
  }
  if (from.slidingWindow) {
    into.has_sliding_window = true;
    into.sliding_window = write(*from.slidingWindow, handleOf);
  }
  into.latent_dim = from.latentDim;
  into.is_storage_only = from.isStorageOnly;
  return into;
}

template <typename Handles>
mnk_heads_view_strides write(const HeadsView::Strides& from, Handles&&) {
  mnk_heads_view_strides into{};
  into.sequences = from.sequences;
  into.tokens = from.tokens;
  into.heads = from.heads;
  into.head_dim = from.headDim;
  into.offset = from.offset;
  into.sequence_stride = from.sequenceStride;
  into.token_stride = from.tokenStride;
  into.head_stride = from.headStride;
  return into;
}

template <typename Handles>
mnk_heads_view write(const HeadsView& from, Handles&& handleOf) {
  mnk_heads_view into{};
  into.tensor = handleOf(from.tensor);
  into.layout = write(from.layout);
  if (from.strides) {
    into.has_strides = true;
    into.strides = write(*from.strides, handleOf);
  }
  return into;
}

template <typename Handles>
mnk_kv_cache_view write(const KVCacheView& from, Handles&& handleOf) {
  mnk_kv_cache_view into{};
  into.keys = handleOf(from.keys);
  into.values = handleOf(from.values);
  into.layout = write(from.layout);
  into.wrap = write(from.wrap);
  into.pinned = from.pinned;
  into.latent_dim = from.latentDim;
  return into;
}

template <typename Handles>
mnk_kv_codec write(const KVCodec& from, Handles&&) {
  mnk_kv_codec into{};
  into.name = write(from.name);
  into.bits = from.bits;
  into.scale_factor = from.scaleFactor;
  return into;
}

template <typename Handles>
mnk_quantized_kv_plane write(const QuantizedKVPlane& from, Handles&& handleOf) {
  mnk_quantized_kv_plane into{};
  into.codec = write(from.codec, handleOf);
  into.codes = handleOf(from.codes);
  into.scales = handleOf(from.scales);
  into.means = handleOf(from.means);
  into.channel_scales = handleOf(from.channelScales);
  return into;
}

template <typename Handles>
mnk_quantized_kv_cache_view write(const QuantizedKVCacheView& from, Handles&& handleOf) {
  mnk_quantized_kv_cache_view into{};
  into.keys = write(from.keys, handleOf);
  if (from.values) into.values = write(*from.values, handleOf);
  into.layout = write(from.layout);
  into.wrap = write(from.wrap);
  into.pinned = from.pinned;
  into.latent_dim = from.latentDim;
  return into;
}

template <typename Handles>
mnk_flash_decode_cache write(const FlashDecode::Cache& from, Handles&& handleOf) {
  mnk_flash_decode_cache into{};
  if (const auto* dense = std::get_if<0>(&from)) into.dense = write(*dense, handleOf);
  if (const auto* quantized = std::get_if<1>(&from)) into.quantized = write(*quantized, handleOf);
  return into;
}

template <typename Handles>
mnk_flash_decode write(const FlashDecode& from, Handles&& handleOf) {
  mnk_flash_decode into{};
  into.queries = write(from.queries, handleOf);
  into.cache = write(from.cache, handleOf);
  std::vector<mnk_attended_sequence> sequences;
  for (const auto& one : from.sequences) sequences.push_back(write(one, handleOf));
  into.sequence_count = sequences.size();
  into.sequences = handleOf.keep(std::move(sequences));
  into.results = write(from.results, handleOf);
  into.options = write(from.options, handleOf);
  into.scratch = handleOf(from.scratch);
  return into;
}

template <typename Handles>
mnk_merge_partials write(const MergePartials& from, Handles&& handleOf) {
  mnk_merge_partials into{};
  into.parts = write(from.parts, handleOf);
  into.sinks = handleOf(from.sinks);
  into.results = write(from.results, handleOf);
  return into;
}

template <typename Handles>
mnk_host_options write(const HostOptions& from, Handles&&) {
  mnk_host_options into{};
  into.workers = from.workers;
  into.order_seed = from.orderSeed;
  into.checking = write(from.checking);
  into.allows_same_value = from.allowsSameValue;
  into.perturbs_results = from.perturbsResults;
  into.level = write(from.level);
  into.compiler = from.compiler.empty() ? nullptr : from.compiler.c_str();
  return into;
}

template <typename Handles>
mnk_kv_cache_write_rows write(const KVCacheWrite::Rows& from, Handles&& handleOf) {
  mnk_kv_cache_write_rows into{};
  into.sequences = write(from.sequences, handleOf);
  into.positions = write(from.positions, handleOf);
  return into;
}

template <typename Handles>
mnk_kv_cache_quantize write(const KVCacheQuantize& from, Handles&& handleOf) {
  mnk_kv_cache_quantize into{};
  into.keys = write(from.keys, handleOf);
  if (from.values) into.values = write(*from.values, handleOf);
  into.source_layout = write(from.sourceLayout);
  into.source_offset = from.sourceOffset;
  if (from.tokens) {
    into.has_tokens = true;
    into.tokens = *from.tokens;
  }
  into.source_is_ring = from.sourceIsRing;
  into.into = write(from.into, handleOf);
  into.sequence = from.sequence;
  into.position = from.position;
  if (from.rows) {
    into.has_rows = true;
    into.rows = write(*from.rows, handleOf);
  }
  into.options = write(from.options, handleOf);
  into.counts = handleOf(from.counts);
  into.probe = handleOf(from.probe);
  return into;
}

template <typename Handles>
mnk_kv_cache_dequantize write(const KVCacheDequantize& from, Handles&& handleOf) {
  mnk_kv_cache_dequantize into{};
  into.from = write(from.from, handleOf);
  into.sequence = from.sequence;
  into.position = from.position;
  into.keys = handleOf(from.keys);
  into.values = handleOf(from.values);
  into.layout = write(from.layout);
  into.domain = write(from.domain);
  return into;
}

template <typename Handles>
mnk_hadamard write(const Hadamard& from, Handles&& handleOf) {
  mnk_hadamard into{};
  into.from = handleOf(from.from);
  into.into = handleOf(from.into);
  if (from.signs) {
    into.has_signs = true;
    into.signs = write(*from.signs);
  }
  into.is_inverse = from.isInverse;
  return into;
}

template <typename Handles>
mnk_kv_cache_write write(const KVCacheWrite& from, Handles&& handleOf) {
  mnk_kv_cache_write into{};
  into.keys = write(from.keys, handleOf);
  if (from.values) into.values = write(*from.values, handleOf);
  into.source_layout = write(from.sourceLayout);
  into.source_offset = from.sourceOffset;
  if (from.tokens) {
    into.has_tokens = true;
    into.tokens = *from.tokens;
  }
  into.source_is_ring = from.sourceIsRing;
  into.into = write(from.into, handleOf);
  into.sequence = from.sequence;
  into.position = from.position;
  if (from.rows) {
    into.has_rows = true;
    into.rows = write(*from.rows, handleOf);
  }
  return into;
}

template <typename Handles>
mnk_rotary_embedding_yarn write(const RotaryEmbedding::YaRN& from, Handles&&) {
  mnk_rotary_embedding_yarn into{};
  into.original_context = from.originalContext;
  into.extension_factor = from.extensionFactor;
  into.attention_factor = from.attentionFactor;
  into.beta_fast = from.betaFast;
  into.beta_slow = from.betaSlow;
  into.keeps_fractions = !from.roundsCorners;
  return into;
}

template <typename Handles>
mnk_rotary_embedding write(const RotaryEmbedding& from, Handles&& handleOf) {
  mnk_rotary_embedding into{};
  into.layout = write(from.layout);
  std::copy(from.sections.begin(), from.sections.end(), into.sections);
  into.base = from.base;
  into.rope_dim = from.ropeDim;
  into.pairing = write(from.pairing);
  into.other_axis = write(from.otherAxis);
  into.scale = from.scale;
  into.frequency_factors = from.frequencyFactors.empty() ? nullptr : from.frequencyFactors.data();
  into.frequency_factor_count = from.frequencyFactors.size();
  if (from.yarn) {
    into.has_yarn = true;
    into.yarn = write(*from.yarn, handleOf);
  }
  into.is_inverse = from.isInverse;
  return into;
}

template <typename Handles>
mnk_rotary_step write(const RotaryStep& from, Handles&& handleOf) {
  mnk_rotary_step into{};
  into.embedding = write(from.embedding, handleOf);
  if (from.positions) into.positions = write(*from.positions, handleOf);
  if (from.offsets) into.offsets = write(*from.offsets, handleOf);
  return into;
}

template <typename Handles>
mnk_multi_rope write(const MultiRoPE& from, Handles&& handleOf) {
  mnk_multi_rope into{};
  into.queries = write(from.queries, handleOf);
  if (from.keys) into.keys = write(*from.keys, handleOf);
  if (from.rotatedQueries) into.rotated_queries = write(*from.rotatedQueries, handleOf);
  if (from.rotatedKeys) into.rotated_keys = write(*from.rotatedKeys, handleOf);
  into.positions = write(from.positions, handleOf);
  if (from.offsets) into.offsets = write(*from.offsets, handleOf);
  into.rotary = write(from.rotary, handleOf);
  return into;
}

}  // namespace mnk::c
