#include <tuple>

#include "CAPI/Attention.hpp"
#include "CAPI/HeadsViews.hpp"
#include "Support/Format.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<KVQuantizedStorage> storageFrom(const mnk_cache_quantization* quantization) {
  MNK_TRY(auto given, c::descriptor("mnk_cache_quantization", quantization));
  MNK_TRY(auto codec, c::codec({given.codec, given.key_bits, given.scale_factor}));
  MNK_TRY(auto options, c::quantizeOptions(given.options));
  MNK_TRY(auto planes, c::quantizedPlanes(given.planes));
  KVQuantizedStorage storage{.codec = codec.name,
                             .keyBits = given.key_bits,
                             .valueBits = given.value_bits == 0 ? given.key_bits : given.value_bits,
                             .scaleFactor = codec.scaleFactor,
                             .options = options,
                             .planes = planes};
  if (given.key_means) storage.keyMeans = given.key_means->tensor;
  if (given.value_means) storage.valueMeans = given.value_means->tensor;
  if (given.key_channel_scales) storage.keyChannelScales = given.key_channel_scales->tensor;
  return storage;
}

Result<AttentionCacheDescriptor> descriptorFrom(const mnk_cache_descriptor* descriptor) {
  MNK_TRY(auto given, c::descriptor("mnk_cache_descriptor", descriptor));
  MNK_TRY(auto type, c::dtype(given.dtype));
  MNK_TRY(auto whenFull, c::wrap(given.when_full));
  AttentionCacheDescriptor made{.kvHeads = given.kv_heads,
                                .headDim = given.head_dim,
                                .valueHeadDim = given.value_head_dim,
                                .capacity = given.capacity,
                                .sequences = given.sequences,
                                .dtype = type,
                                .whenFull = whenFull,
                                .pinned = given.pinned};
  if (given.quantization) {
    MNK_TRY(auto storage, storageFrom(given.quantization));
    made.quantized = std::move(storage);
  }
  const mnk_sliding_window& sliding = given.sliding_window;
  if (sliding.window != 0 || sliding.max_rows != 0 || sliding.max_draft != 0) {
    made.slidingWindow = {.window = given.sliding_window.window,
                          .maxRows = std::max(given.sliding_window.max_rows, 1u),
                          .maxDraft = given.sliding_window.max_draft};
  }
  made.isStorageOnly = given.is_storage_only;
  made.latentDim = given.latent_dim;
  return made;
}

// A step with its views and lists.
struct Step {
  HeadsView queries, keys, values;
  std::span<const uint32_t> sequences, rowCounts;
  AttentionResults results;
  AttentionOptions options;
  std::optional<RotaryStep> rotary;
};
enum StepKind : uint8_t { kAppends = 1, kAttends = 2 };

Result<RotaryStep> rotaryFrom(const mnk_rotary_step* step) {
  MNK_TRY(auto given, c::descriptor("mnk_rotary_step", step));
  MNK_TRY(auto embedding, c::rotary(given.embedding));
  MNK_TRY(auto positions, c::rotaryPositions(given.positions));
  if (given.first_position != 0 && (positions || !given.has_first_position)) {
    return Error{.op = "mnk_rotary_step",
                 .what = "the first position would be ignored",
                 .got = fmt::format("first_position {} {}", given.first_position,
                                    positions ? "beside positions" : "while has_first_position is false"),
                 .expected = "a first position that is used, or 0",
                 .fix = "Set has_first_position, or leave first_position at 0."};
  }
  if (!positions && given.has_first_position) positions = RotaryPositions(given.first_position);
  MNK_TRY(auto offsets, c::rotaryOffsets(given.offsets));
  return RotaryStep{
      .embedding = std::move(embedding), .positions = std::move(positions), .offsets = std::move(offsets)};
}

Result<Step> stepFrom(const mnk_cache_step* step, int kinds) {
  MNK_TRY(auto given, c::descriptor("mnk_cache_step", step));
  Step made;
  const std::tuple<const mnk_heads_view*, HeadsView*, StepKind, std::string_view> views[] = {
      {&given.queries, &made.queries, kAttends, "queries.tensor"},
      {&given.keys, &made.keys, kAppends, "keys.tensor"},
      {&given.values, &made.values, kAppends, "values.tensor"}};
  for (const auto& [from, into, neededFor, name] : views) {
    MNK_TRY(auto view, c::viewFrom(*from));
    if (!view && kinds & neededFor) return c::nullArgument(name);
    if (view) *into = std::move(*view);
  }
  static constexpr uint32_t kFirstSequence = 0;
  if (!given.sequences && given.sequence_count != 0) return c::nullArgument("sequences");
  made.sequences = {given.sequences ? given.sequences : &kFirstSequence, given.sequences ? given.sequence_count : 1};
  if (given.row_counts) made.rowCounts = {given.row_counts, made.sequences.size()};
  if (given.results) {
    MNK_TRY(auto results, c::attentionResults(given.results));
    made.results = std::move(results);
  }
  MNK_TRY(auto options, c::attentionOptions(given.options));
  made.options = std::move(options);
  if (!given.rotary) return made;
  if (kinds != (kAppends | kAttends)) {
    return Error{.op = "AttentionCache",
                 .what = "a step rotates only where it appends and attends",
                 .got = "a rotary argument",
                 .expected = "none",
                 .fix = "Call mnk_encoder_append_and_attend, or rotate with mnk_encoder_multi_rope first."};
  }
  MNK_TRY(auto rotary, rotaryFrom(given.rotary));
  made.rotary = std::move(rotary);
  return made;
}

// Refuses a list before reading it if it has more entries than the view allows: its sequences or rows, or, with row
// counts, also sequences without rows.
Result<void> checkListed(const Step& step, const HeadsView& view, const AttentionCache& cache) {
  const uint64_t without = step.rowCounts.empty() ? 0 : cache.descriptor().sequences;
  const HeadsView::Strides strides = view.resolved();
  const uint64_t most = std::max<uint64_t>({strides.totalTokens() + without, strides.sequences, 1});
  if (step.sequences.size() <= most) return {};
  return c::tooMany("AttentionCache", "sequences", step.sequences.size(), most, "Pass a row for each sequence.");
}

mnk_kv_scale_rule scaleRule(KVScaleRule rule) {
  return rule == KVScaleRule::unbiased ? MNK_SCALE_UNBIASED : MNK_SCALE_LEAST_SQUARES;
}

mnk_tensor* makeScales(const mnk_cache* cache, bool ofValues, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{cache, "cache"}}, [&]() -> Result<mnk_tensor*> {
    const auto view = cache->cache.quantizedView();
    if (!view) {
      return Error{.op = "AttentionCache",
                   .what = "a dense cache has no scales",
                   .got = "a cache without quantization",
                   .expected = "a quantized cache",
                   .fix = "Ask for scales only where the descriptor has a quantization."};
    }
    const QuantizedKVPlane& plane = ofValues ? *view->values : view->keys;
    if (plane.isDense()) {
      return Error{.op = "AttentionCache",
                   .what = "dense vectors have no scales",
                   .got = fmt::format("{} of {}", ofValues ? "values" : "keys", name(plane.codes.dtype())),
                   .expected = "vectors that are coded",
                   .fix = "Ask for scales only of what the quantization codes."};
    }
    return new mnk_tensor{plane.scales};
  });
}

}  // namespace

Result<mnk_cache*> mnk::c::handleFor(Result<AttentionCache> made) {
  if (!made) return std::move(made).error();
  std::unique_ptr<mnk_cache> handle(new mnk_cache{*made});
  if (const auto& storage = made->descriptor().quantized) {
    const auto held = [](std::optional<mnk_tensor>& holder, const std::optional<Tensor>& tensor) {
      if (tensor) holder = mnk_tensor{*tensor};
      return holder ? &*holder : nullptr;
    };
    handle->quantization = {.size = sizeof(mnk_cache_quantization),
                            .codec = static_cast<mnk_kv_codec_name>(storage->codec),
                            .key_bits = storage->keyBits,
                            .value_bits = storage->valueBits,
                            .scale_factor = storage->scaleFactor,
                            .options = {.candidates = storage->options.candidates,
                                        .key_scale = ::scaleRule(storage->options.keyScale),
                                        .value_scale = ::scaleRule(storage->options.valueScale),
                                        .non_finite = static_cast<mnk_kv_non_finite>(storage->options.nonFinite)},
                            .key_means = held(handle->keyMeans, storage->keyMeans),
                            .value_means = held(handle->valueMeans, storage->valueMeans),
                            .key_channel_scales = held(handle->keyChannelScales, storage->keyChannelScales),
                            .planes = static_cast<mnk_quantized_planes>(storage->planes)};
  }
  return handle.release();
}

mnk_cache* mnk_cache_make(mnk_device* device, const mnk_cache_descriptor* descriptor, mnk_error_out error) {
  return c::make<mnk_cache>(error, {{device, "device"}}, [&]() -> Result<mnk_cache*> {
    MNK_TRY(auto given, descriptorFrom(descriptor));
    return c::handleFor(AttentionCache::make(device->device, given));
  });
}

mnk_cache* mnk_cache_make_from_path(mnk_device* device, const char* path, uint64_t max_bytes, mnk_error_out error) {
  return c::make<mnk_cache>(error, {{device, "device"}, {path, "path"}},
                            [&] { return c::handleFor(AttentionCache::load(device->device, path, max_bytes)); });
}
bool mnk_cache_save(const mnk_cache* cache, const char* path, mnk_error_out error) {
  return c::run(error, {{cache, "cache"}, {path, "path"}}, [&] { return cache->cache.save(path); });
}

void mnk_cache_release(mnk_cache* cache) {
  delete cache;
}

mnk_cache_descriptor mnk_cache_get_descriptor(const mnk_cache* cache) {
  mnk_cache_descriptor descriptor{.size = sizeof descriptor};
  if (!cache) return descriptor;
  const AttentionCacheDescriptor& made = cache->cache.descriptor();
  descriptor.kv_heads = made.kvHeads;
  descriptor.head_dim = made.headDim;
  descriptor.value_head_dim = made.valueHeadDim;
  descriptor.capacity = made.capacity;
  descriptor.sequences = made.sequences;
  descriptor.dtype = static_cast<mnk_dtype>(made.dtype);
  descriptor.when_full = static_cast<mnk_kv_wrap>(made.whenFull);
  descriptor.pinned = made.pinned;
  descriptor.quantization = made.quantized ? &cache->quantization : nullptr;
  if (const auto& sliding = made.slidingWindow) {
    descriptor.sliding_window = {
        .window = sliding->window, .max_rows = sliding->maxRows, .max_draft = sliding->maxDraft};
  }
  descriptor.is_storage_only = made.isStorageOnly;
  descriptor.latent_dim = made.latentDim;
  return descriptor;
}
uint64_t mnk_cache_bytes(const mnk_cache* cache) {
  return cache ? cache->cache.bytes() : 0;
}
uint64_t mnk_cache_bytes_per_token(const mnk_cache* cache) {
  return cache ? cache->cache.bytesPerToken() : 0;
}
int64_t mnk_cache_bytes_saved(const mnk_cache* cache) {
  return cache ? cache->cache.bytesSaved() : 0;
}

char* mnk_cache_copy_text(const mnk_cache* cache) {
  return c::copyText({cache, "cache"}, [&] { return cache->cache.text(); });
}

mnk_tensor* mnk_cache_make_keys(const mnk_cache* cache, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{cache, "cache"}},
                             [&]() -> Result<mnk_tensor*> { return new mnk_tensor{cache->cache.view().keys}; });
}

mnk_tensor* mnk_cache_make_values(const mnk_cache* cache, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{cache, "cache"}},
                             [&]() -> Result<mnk_tensor*> { return new mnk_tensor{*cache->cache.view().values}; });
}

mnk_tensor* mnk_cache_make_key_scales(const mnk_cache* cache, mnk_error_out error) {
  return makeScales(cache, false, error);
}
mnk_tensor* mnk_cache_make_value_scales(const mnk_cache* cache, mnk_error_out error) {
  return makeScales(cache, true, error);
}

uint64_t mnk_cache_next_position(const mnk_cache* cache, uint32_t sequence) {
  return cache ? cache->cache.nextPosition(sequence) : 0;
}
uint64_t mnk_cache_count(const mnk_cache* cache, uint32_t sequence) {
  return cache ? cache->cache.count(sequence) : 0;
}
bool mnk_cache_is_suspect(const mnk_cache* cache, uint32_t sequence) {
  return cache ? cache->cache.isSuspect(sequence) : false;
}
uint64_t mnk_cache_slot(const mnk_cache* cache, uint64_t position) {
  return cache ? cache->cache.view().slotOf(position) : 0;
}

bool mnk_encoder_append(mnk_encoder* encoder, mnk_cache* cache, const mnk_tensor* keys, const mnk_tensor* values,
                        uint32_t sequence, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}, {keys, "keys"}, {values, "values"}},
                [&] { return cache->cache.append(encoder->encoder, keys->tensor, values->tensor, sequence); });
}

bool mnk_encoder_append_rows(mnk_encoder* encoder, mnk_cache* cache, const mnk_tensor* keys, const mnk_tensor* values,
                             const uint32_t* sequences, size_t count, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}, {keys, "keys"}, {values, "values"}},
                [&]() -> Result<void> {
                  if (!sequences && count != 0) return c::nullArgument("sequences");
                  return cache->cache.append(encoder->encoder, keys->tensor, values->tensor,
                                             std::span<const uint32_t>(sequences, count));
                });
}

bool mnk_encoder_attend(mnk_encoder* encoder, const mnk_cache* cache, const mnk_tensor* queries,
                        const mnk_attention_results* results, const mnk_attention_options* options, uint32_t sequence,
                        mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}, {queries, "queries"}}, [&]() -> Result<void> {
    MNK_TRY(auto where, c::attentionResults(results));
    MNK_TRY(auto how, c::attentionOptions(options));
    return cache->cache.attend(encoder->encoder, queries->tensor, where, how, sequence);
  });
}

bool mnk_encoder_attend_sequences(mnk_encoder* encoder, const mnk_cache* cache, const mnk_tensor* queries,
                                  const mnk_attention_results* results, const mnk_attention_options* options,
                                  const uint32_t* sequences, size_t count, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}, {queries, "queries"}}, [&]() -> Result<void> {
    if (!sequences && count != 0) return c::nullArgument("sequences");
    const uint64_t most = queries->tensor.shape()[0];
    if (count > most)
      return c::tooMany("AttentionCache", "sequences", count, most, "Pass one for each sequence of the queries.");
    MNK_TRY(auto where, c::attentionResults(results));
    MNK_TRY(auto how, c::attentionOptions(options));
    return cache->cache.attend(encoder->encoder, queries->tensor, where, how, {sequences, count});
  });
}

bool mnk_encoder_append_step(mnk_encoder* encoder, mnk_cache* cache, const mnk_cache_step* step, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<void> {
    MNK_TRY(auto given, stepFrom(step, kAppends));
    MNK_TRY(checkListed(given, given.keys, cache->cache));
    return cache->cache.append(encoder->encoder, given.keys, given.values, given.sequences, given.rowCounts);
  });
}

bool mnk_encoder_attend_step(mnk_encoder* encoder, const mnk_cache* cache, const mnk_cache_step* step,
                             mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<void> {
    MNK_TRY(auto given, stepFrom(step, kAttends));
    MNK_TRY(checkListed(given, given.queries, cache->cache));
    return cache->cache.attend(encoder->encoder, given.queries, given.results, given.options, given.sequences,
                               given.rowCounts);
  });
}

bool mnk_encoder_append_and_attend(mnk_encoder* encoder, mnk_cache* cache, const mnk_cache_step* step,
                                   mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<void> {
    MNK_TRY(auto given, stepFrom(step, kAppends | kAttends));
    MNK_TRY(checkListed(given, given.keys, cache->cache));
    if (given.sequences.empty()) {
      return Error{.op = "AttentionCache.appendAndAttend",
                   .what = "the step has no sequence",
                   .got = "an empty list of sequences",
                   .expected = "at least one sequence",
                   .fix = "List the sequences that the tokens continue."};
    }
    AppendAndAttend op{.queries = given.queries,
                       .keys = given.keys,
                       .values = given.values,
                       .rotary = given.rotary,
                       .results = given.results,
                       .options = given.options,
                       .sequence = given.sequences.front(),
                       .rowCounts = {given.rowCounts.begin(), given.rowCounts.end()}};
    if (given.sequences.size() > 1) op.sequences.assign(given.sequences.begin(), given.sequences.end());
    return cache->cache.appendAndAttend(encoder->encoder, op);
  });
}

bool mnk_encoder_copy_sequence(mnk_encoder* encoder, mnk_cache* cache, uint32_t source, uint32_t target,
                               mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}},
                [&] { return cache->cache.copy(encoder->encoder, source, target); });
}

mnk_cache* mnk_encoder_make_quantized_cache(mnk_encoder* encoder, const mnk_cache* cache,
                                            const mnk_cache_quantization* quantization, mnk_error_out error) {
  return c::make<mnk_cache>(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<mnk_cache*> {
    MNK_TRY(auto storage, storageFrom(quantization));
    return c::handleFor(cache->cache.quantized(encoder->encoder, storage));
  });
}

bool mnk_encoder_dequantize(mnk_encoder* encoder, const mnk_cache* cache, const mnk_tensor* keys,
                            const mnk_tensor* values, uint64_t position, uint32_t sequence, mnk_kv_domain domain,
                            mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<void> {
    MNK_TRY(auto read, c::domain(domain));
    return cache->cache.dequantize(encoder->encoder, c::optional(keys), c::optional(values), position, sequence, read);
  });
}

bool mnk_cache_truncate(mnk_cache* cache, uint64_t position, uint32_t sequence, mnk_error_out error) {
  return c::run(error, {{cache, "cache"}}, [&] { return cache->cache.truncate(position, sequence); });
}
bool mnk_cache_reset_sequence(mnk_cache* cache, uint32_t sequence, mnk_error_out error) {
  return c::run(error, {{cache, "cache"}}, [&] { return cache->cache.reset(sequence); });
}
void mnk_cache_reset(mnk_cache* cache) {
  if (cache) cache->cache.reset();
}
