#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#include "Support/Errors.hpp"

using namespace mnk;

namespace {

// Refuses a list before it is read if it has more entries than the tokens allow: their sequences or rows, or, with row
// counts, also entries without rows.
Result<void> checkListed(const mnk_cache_step& input, const CacheStep& step) {
  const uint64_t without = input.row_counts ? UINT16_MAX : 0;
  const HeadsView::Strides strides = (step.keys.tensor ? step.keys : step.queries).resolved();
  const uint64_t most = std::max<uint64_t>({strides.totalTokens() + without, strides.sequences, 1});
  if (input.sequence_count <= most) return {};
  return c::tooMany("AttentionCache", "sequences", input.sequence_count, most, "Pass a row for each sequence.");
}

// In place, because a step is large.
Result<void> readStep(CacheStep& into, const mnk_cache_step* step) {
  if (!step) return c::nullArgument("mnk_cache_step");
  const mnk_cache_step& input = *step;
  if (c::isFilled(input.queries)) MNK_TRY(c::read(into.queries, input.queries, {nullptr, "queries"}));
  if (c::isFilled(input.keys)) MNK_TRY(c::read(into.keys, input.keys, {nullptr, "keys"}));
  if (c::isFilled(input.values)) MNK_TRY(c::read(into.values, input.values, {nullptr, "values"}));
  if (!input.sequences && input.sequence_count != 0) return c::nullArgument("sequences");
  MNK_TRY(checkListed(input, into));
  if (input.sequences) into.sequences.assign(input.sequences, input.sequences + input.sequence_count);
  if (input.row_counts) into.rowCounts.emplace(input.row_counts, input.row_counts + into.sequences.size());
  MNK_TRY(c::read(into.results, input.results, {nullptr, "results"}));
  MNK_TRY(c::read(into.options, input.options, {nullptr, "options"}));
  if (!input.prefixes && input.prefix_count != 0) return c::nullArgument("prefixes");
  if (input.prefixes && input.prefix_count == 0) return c::uncounted("AttentionCache", "prefixes", "prefix_count");
  if (input.prefix_count >= MergePartials::kMaxParts) {
    return c::tooMany("AttentionCache", "prefixes", input.prefix_count, MergePartials::kMaxParts - 1,
                      "Put prefixes into one cache.");
  }
  for (size_t i = 0; i < input.prefix_count; ++i) {
    if (!input.prefixes[i].cache) return c::nullArgument("prefixes.cache");
    into.after.push_back({input.prefixes[i].cache->cache, input.prefixes[i].sequence});
  }
  if (input.has_rotary) return c::read(into.rotary.emplace(), input.rotary, {nullptr, "rotary"});
  return c::isFilled(input.rotary) ? c::ignored("mnk_cache_step", "rotary", "has_rotary") : Result<void>();
}

mnk_tensor* makeScales(const mnk_cache* cache, bool ofValues, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{cache, "cache"}}, [&]() -> Result<mnk_tensor*> {
    const auto view = cache->cache.quantizedView();
    if (!view) {
      return Error{.op = "AttentionCache",
                   .what = "a dense cache has no scales",
                   .got = "a cache that is not quantized",
                   .expected = "a quantized cache",
                   .fix = "Ask for scales only of a quantized cache."};
    }
    const QuantizedKVPlane& plane = ofValues ? *view->values : view->keys;
    if (plane.isDense()) {
      return Error{.op = "AttentionCache",
                   .what = "dense vectors have no scales",
                   .got = fmt::format("{} of {}", ofValues ? "values" : "keys", name(plane.codes.dtype())),
                   .expected = "quantized vectors",
                   .fix = "Ask for scales only of what is quantized."};
    }
    return new mnk_tensor{plane.scales};
  });
}

}  // namespace

Result<mnk_cache*> mnk::c::handleFor(Result<AttentionCache> result) {
  if (!result) return std::move(result).error();
  std::unique_ptr<mnk_cache> handle(new mnk_cache{*result});
  handle->descriptor = c::write(result->descriptor(), [&](const std::optional<Tensor>& tensor) {
    return tensor ? &handle->tensors.emplace_back(mnk_tensor{*tensor}) : nullptr;
  });
  return handle.release();
}

mnk_cache* mnk_cache_make(mnk_device* device, const mnk_attention_cache_descriptor* descriptor, mnk_error_out error) {
  return c::make<mnk_cache>(error, {{device, "device"}}, [&]() -> Result<mnk_cache*> {
    if (!descriptor) return c::nullArgument("descriptor");
    AttentionCacheDescriptor input;
    MNK_TRY(c::read(input, *descriptor, {nullptr, "descriptor"}));
    return c::handleFor(AttentionCache::make(device->device, input));
  });
}

mnk_cache* mnk_cache_make_from_path(mnk_device* device, const char* path, uint64_t max_bytes, uint32_t capacity,
                                    mnk_error_out error) {
  return c::make<mnk_cache>(error, {{device, "device"}, {path, "path"}}, [&] {
    return c::handleFor(AttentionCache::load(device->device, path, max_bytes, capacity));
  });
}
bool mnk_cache_save(const mnk_cache* cache, const char* path, mnk_error_out error) {
  return c::run(error, {{cache, "cache"}, {path, "path"}}, [&] { return cache->cache.save(path); });
}

void mnk_cache_release(mnk_cache* cache) {
  delete cache;
}

mnk_attention_cache_descriptor mnk_cache_get_descriptor(const mnk_cache* cache) {
  return cache ? cache->descriptor : mnk_attention_cache_descriptor{};
}
uint64_t mnk_cache_byte_count(const mnk_cache* cache) {
  return cache ? cache->cache.byteCount() : 0;
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

bool mnk_cache_get_sequence(const mnk_cache* cache, uint32_t sequence, mnk_sequence_state* state, mnk_error_out error) {
  return c::run(error, {{cache, "cache"}, {state, "state"}}, [&]() -> Result<void> {
    MNK_TRY(const uint64_t next, cache->cache.nextPosition(sequence));
    MNK_TRY(const uint64_t count, cache->cache.count(sequence));
    *state = {.next_position = next, .count = count, .is_suspect = cache->cache.isSuspect(sequence)};
    return {};
  });
}
bool mnk_cache_is_suspect(const mnk_cache* cache) {
  return cache ? cache->cache.isSuspect() : false;
}
uint64_t mnk_cache_slot(const mnk_cache* cache, uint64_t position) {
  return cache ? cache->cache.view().slotOf(position) : 0;
}

bool mnk_encoder_append(mnk_encoder* encoder, mnk_cache* cache, const mnk_cache_step* step, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<void> {
    CacheStep input;
    MNK_TRY(readStep(input, step));
    return cache->cache.append(encoder->encoder, input);
  });
}

bool mnk_encoder_attend(mnk_encoder* encoder, const mnk_cache* cache, const mnk_cache_step* step, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<void> {
    CacheStep input;
    MNK_TRY(readStep(input, step));
    return cache->cache.attend(encoder->encoder, input);
  });
}

bool mnk_encoder_append_and_attend(mnk_encoder* encoder, mnk_cache* cache, const mnk_cache_step* step,
                                   mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<void> {
    CacheStep input;
    MNK_TRY(readStep(input, step));
    return cache->cache.appendAndAttend(encoder->encoder, input);
  });
}

bool mnk_encoder_copy_sequence(mnk_encoder* encoder, mnk_cache* cache, uint32_t source, uint32_t target,
                               mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}},
                [&] { return cache->cache.copy(encoder->encoder, source, target); });
}

bool mnk_encoder_copy_sequence_to_cache(mnk_encoder* encoder, const mnk_cache* cache, uint32_t source, mnk_cache* into,
                                        uint32_t target, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}, {into, "into"}},
                [&] { return cache->cache.copy(encoder->encoder, source, into->cache, target); });
}

mnk_cache* mnk_encoder_make_grown_cache(mnk_encoder* encoder, const mnk_cache* cache, uint32_t capacity,
                                        mnk_error_out error) {
  return c::make<mnk_cache>(error, {{encoder, "encoder"}, {cache, "cache"}},
                            [&] { return c::handleFor(cache->cache.grown(encoder->encoder, capacity)); });
}

mnk_cache* mnk_encoder_make_quantized_cache(mnk_encoder* encoder, const mnk_cache* cache,
                                            const mnk_kv_quantized_storage* storage, mnk_error_out error) {
  return c::make<mnk_cache>(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<mnk_cache*> {
    if (!storage) return c::nullArgument("storage");
    KVQuantizedStorage input;
    MNK_TRY(c::read(input, *storage, {nullptr, "storage"}));
    return c::handleFor(cache->cache.quantized(encoder->encoder, input));
  });
}

bool mnk_encoder_dequantize(mnk_encoder* encoder, const mnk_cache* cache, const mnk_tensor* keys,
                            const mnk_tensor* values, uint64_t position, uint32_t sequence, mnk_kv_domain domain,
                            mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {cache, "cache"}}, [&]() -> Result<void> {
    KVDomain into = KVDomain::original;
    MNK_TRY(c::read(into, domain));
    return cache->cache.dequantize(encoder->encoder, c::optional(keys), c::optional(values), position, sequence, into);
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
