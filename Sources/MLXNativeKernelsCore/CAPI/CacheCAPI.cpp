#include "CAPI/Handles.hpp"

using namespace mnk;

mnk_cache* mnk_cache_make(mnk_device* device, const mnk_cache_descriptor* descriptor, mnk_error_out error) {
  return c::make<mnk_cache>(error, {{device, "device"}}, [&]() -> Result<mnk_cache*> {
    auto given = c::descriptor("mnk_cache_descriptor", descriptor);
    if (!given) return std::move(given).error();
    auto type = c::dtype(given->dtype);
    if (!type) return std::move(type).error();
    auto whenFull = c::wrap(given->when_full);
    if (!whenFull) return std::move(whenFull).error();
    auto cache = AttentionCache::make(device->device, {.kvHeads = given->kv_heads,
                                                       .headDim = given->head_dim,
                                                       .valueHeadDim = given->value_head_dim,
                                                       .capacity = given->capacity,
                                                       .sequences = given->sequences,
                                                       .dtype = *type,
                                                       .whenFull = *whenFull,
                                                       .pinned = given->pinned});
    if (!cache) return std::move(cache).error();
    return new mnk_cache{*cache};
  });
}

void mnk_cache_release(mnk_cache* cache) {
  delete cache;
}
uint64_t mnk_cache_bytes(const mnk_cache* cache) {
  return cache ? cache->cache.bytes() : 0;
}

mnk_tensor* mnk_cache_make_keys(const mnk_cache* cache, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{cache, "cache"}},
                             [&]() -> Result<mnk_tensor*> { return new mnk_tensor{cache->cache.view().keys}; });
}

mnk_tensor* mnk_cache_make_values(const mnk_cache* cache, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{cache, "cache"}},
                             [&]() -> Result<mnk_tensor*> { return new mnk_tensor{*cache->cache.view().values}; });
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

bool mnk_cache_truncate(mnk_cache* cache, uint64_t position, uint32_t sequence, mnk_error_out error) {
  return c::run(error, {{cache, "cache"}}, [&] { return cache->cache.truncate(position, sequence); });
}
bool mnk_cache_reset_sequence(mnk_cache* cache, uint32_t sequence, mnk_error_out error) {
  return c::run(error, {{cache, "cache"}}, [&] { return cache->cache.reset(sequence); });
}
void mnk_cache_reset(mnk_cache* cache) {
  if (cache) cache->cache.reset();
}
